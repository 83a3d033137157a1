// SPDX-License-Identifier: Apache-2.0
// The largest batch, predicted and run, of every preset that is shipped under three limits each: cli/largest_batch.h has the
// promise. By hand; from the root of the checkout.
//
//   soak_largest_batch [--seconds S] [--most MIB] [NAME]
//
// --most: presets of which one sample needs more are named and left out, as are those that begin after the time. A line for each
// limit on stderr, one JSON object on stdout; exit 1 when the promise was broken.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "headroom/preset.h"

#include "cli/largest_batch.h"

enum { TINY_SAMPLES = 5, MOST_MIB = 2048 };

typedef struct tally {
    unsigned presets, limits, exact, broken, by_cuts, by_host, left_out;
    bool wrote; // a row of the list under way
} tally;

static double now_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t option(int argc, char **argv, const char *name, uint64_t otherwise)
{
    for (int k = 1; k + 1 < argc; k++) {
        if (strcmp(argv[k], name) == 0) {
            return strtoull(argv[k + 1], NULL, 10);
        }
    }
    return otherwise;
}

// What stands alone behind pairs of options and numbers.
static const char *only_name(int argc, char **argv)
{
    return argc % 2 == 0 ? argv[argc - 1] : NULL;
}

static bool is_tiny(const char *name)
{
    return strstr(name, "_tiny") != NULL;
}

static void leave_out(const char *name, const char *why, tally *t)
{
    char clean[256];
    size_t used = 0;
    for (; *why != '\0' && used + 1 < sizeof clean; why++) {
        clean[used++] = *why == '"' || *why == '\\' || *why < ' ' ? '\'' : *why;
    }
    clean[used] = '\0';
    fprintf(stderr, "%-28s left out: %s\n", name, clean);
    printf("%s{\"preset\": \"%s\", \"left_out\": \"%s\"}", t->wrote ? ",\n" : "", name, clean);
    t->wrote = true;
    t->left_out++;
}

static void check_limit(const char *name, const hr_preset *preset, const hr_knobs *knobs,
                        uint64_t limit_bytes, tally *t)
{
    char why[512] = "";
    largest_batch found;
    const double begin = now_seconds();
    const bool holds = largest_batch_holds(preset, knobs, limit_bytes, &found, why, sizeof why);
    fprintf(stderr, "%-28s %12" PRIu64 " B  batch %6" PRIu64 "  %6.2f s  %s%s\n", name, limit_bytes,
            found.batch, now_seconds() - begin, holds ? "exact" : "BROKEN ", holds ? "" : why);
    printf("%s{\"preset\": \"%s\", \"limit_bytes\": %" PRIu64 ", \"batch\": %" PRIu64
           ", \"peak_bytes\": %" PRIu64 ", \"counted_bytes\": %" PRIu64 ", \"one_more_bytes\": %" PRIu64
           ", \"exact\": %s}",
           t->wrote ? ",\n" : "", name, limit_bytes, found.batch, found.planned_bytes, found.counted_bytes,
           found.beyond_bytes, holds ? "true" : "false");
    t->wrote = true;
    t->limits++;
    t->exact += holds;
    t->broken += !holds;
    t->by_cuts += holds && !found.is_last && found.by_cuts;
    t->by_host += holds && found.by_host;
}

static void check_preset(const char *name, uint64_t most_bytes, tally *t)
{
    char why[512] = "";
    uint64_t limits[LARGEST_BATCH_LIMITS];
    hr_preset *preset = NULL;
    hr_err err = {0};
    if (hr_preset_open(name, false, &preset, NULL, &err) != HR_OK) {
        leave_out(name, err.sentence, t);
        return;
    }
    hr_knobs knobs = *hr_preset_knobs(preset);
    if (hr_knobs_set(&knobs, HR_KNOB_DEVICE_KIND, "cpu", &err) != HR_OK ||
        hr_knobs_set(&knobs, HR_KNOB_DEVICE_CARD, "", &err) != HR_OK) {
        leave_out(name, err.sentence, t);
    } else if (!largest_batch_limits(preset, &knobs, is_tiny(name) ? TINY_SAMPLES : 1, most_bytes, limits,
                                     why, sizeof why)) {
        leave_out(name, why, t);
    } else {
        t->presets++;
        for (int k = 0; k < LARGEST_BATCH_LIMITS; k++) {
            check_limit(name, preset, &knobs, limits[k], t);
        }
    }
    hr_preset_close(preset);
}

int main(int argc, char **argv)
{
    tally t = {0};
    hr_preset_entry *entries = NULL;
    size_t count = 0;
    hr_err err = {0};
    const double until = now_seconds() + (double)option(argc, argv, "--seconds", 3600);
    const uint64_t most_bytes = option(argc, argv, "--most", MOST_MIB) << 20;
    const char *only = only_name(argc, argv);
    hr_preset_search_beside(".");
    if (hr_preset_list(NULL, &entries, &count, &err) != HR_OK) {
        fprintf(stderr, "%s\n", err.sentence);
        return 2;
    }
    printf("{\"rows\": [\n");
    for (size_t n = 0; n < 2 * count; n++) { // the tiny ones first
        const char *name = entries[n % count].name;
        const bool asked = strcmp(entries[n % count].folder, "cards") != 0 && is_tiny(name) == (n < count) &&
                           (only == NULL || strcmp(only, name) == 0);
        if (asked && now_seconds() < until) {
            check_preset(name, most_bytes, &t);
        } else if (asked) {
            leave_out(name, "the time was over", &t);
        }
        (void)fflush(stdout);
    }
    hr_preset_list_free(entries);
    printf("],\n\"presets\": %u, \"limits\": %u, \"exact\": %u, \"kept_out_by_cuts\": %u, "
           "\"kept_out_by_host\": %u, \"broken\": %u, "
           "\"left_out\": %u, \"steps\": %d}\n",
           t.presets, t.limits, t.exact, t.by_cuts, t.by_host, t.broken, t.left_out,
           (int)LARGEST_BATCH_STEPS);
    return t.broken == 0 ? 0 : 1;
}
