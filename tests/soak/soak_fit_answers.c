// SPDX-License-Identifier: Apache-2.0
// What Fit answers, run on the cpu device, of every tiny preset under three limits each: cli/fit_answers.h has the promise. By hand;
// from the root of the checkout, with rates of this machine (headroom doctor --calibrate -s threads.count=1), without which a frontier is one point.
//
//   soak_fit_answers [--seconds S] [--most POINTS] [NAME]
//
// --most: of one search, where its frontier has fewer. Presets that begin after the time are named and left out. A line for each limit
// on stderr, one JSON object on stdout; exit 1 when the promise was broken.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "headroom/preset.h"

#include "cli/fit_answers.h"

enum { MOST = 8 };

typedef struct tally {
    unsigned presets, limits, nothing_fits, ran, exact, frontier, left_out;
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

static void print_text(const char *key, const char *text)
{
    printf(", \"%s\": \"", key);
    for (; *text != '\0'; text++) {
        (void)putchar(*text == '"' || *text == '\\' || *text < ' ' ? '\'' : *text);
    }
    (void)putchar('"');
}

static void begin_row(const char *name, tally *t)
{
    printf("%s{\"preset\": \"%s\"", t->wrote ? ",\n" : "", name);
    t->wrote = true;
}

static void leave_out(const char *name, const char *why, tally *t)
{
    fprintf(stderr, "%-28s left out: %s\n", name, why);
    begin_row(name, t);
    print_text("left_out", why);
    (void)putchar('}');
    t->left_out++;
}

static void check_limit(const char *name, const hr_preset *preset, const hr_knobs *knobs,
                        uint64_t limit_bytes, unsigned most, tally *t)
{
    fit_answers found;
    const double begin = now_seconds();
    const bool holds = fit_answers_hold(preset, knobs, limit_bytes, most, &found);
    fprintf(stderr,
            "%-28s %12" PRIu64 " B  %4u of %4u fit, %3u on a frontier; %u of %u exact  %6.1f s  %s%s: %s\n",
            name, limit_bytes, found.fitting, found.ways, found.frontier, found.exact, found.ran,
            now_seconds() - begin, holds ? "" : "BROKEN ", found.knobs, found.why);
    begin_row(name, t);
    printf(", \"limit_bytes\": %" PRIu64
           ", \"ways\": %u, \"fitting\": %u, \"frontier\": %u, \"ran\": %u, \"exact\": %u",
           limit_bytes, found.ways, found.fitting, found.frontier, found.ran, found.exact);
    if (!holds) {
        print_text("knobs", found.knobs);
        print_text("why", found.why);
    }
    (void)putchar('}');
    t->limits++;
    t->nothing_fits += found.fitting == 0;
    t->ran += found.ran;
    t->exact += found.exact;
    t->frontier += found.frontier;
}

static void check_preset(const char *name, unsigned most, tally *t)
{
    char why[512] = "";
    uint64_t limits[FIT_ANSWERS_LIMITS];
    hr_preset *preset = NULL;
    hr_err err = {0};
    if (hr_preset_open(name, false, &preset, NULL, &err) != HR_OK) {
        leave_out(name, err.sentence, t);
        return;
    }
    hr_knobs knobs = *hr_preset_knobs(preset);
    if (hr_knobs_set(&knobs, HR_KNOB_DEVICE_KIND, "cpu", &err) != HR_OK ||
        hr_knobs_set(&knobs, HR_KNOB_DEVICE_CARD, "", &err) != HR_OK ||
        hr_knobs_set(&knobs, HR_KNOB_THREADS_COUNT, "1", &err) != HR_OK) {
        leave_out(name, err.sentence, t);
    } else if (!fit_answers_limits(preset, &knobs, limits, why, sizeof why)) {
        leave_out(name, why, t);
    } else {
        t->presets++;
        for (int k = 0; k < FIT_ANSWERS_LIMITS; k++) {
            check_limit(name, preset, &knobs, limits[k], most, t);
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
    const unsigned most = (unsigned)option(argc, argv, "--most", MOST);
    const char *only = only_name(argc, argv);
    hr_preset_search_beside(".");
    if (hr_preset_list(NULL, &entries, &count, &err) != HR_OK) {
        fprintf(stderr, "%s\n", err.sentence);
        return 2;
    }
    printf("{\"rows\": [\n");
    for (size_t n = 0; n < count; n++) {
        const char *name = entries[n].name;
        const bool asked = only != NULL ? strcmp(only, name) == 0
                                        : strcmp(name, "demo") == 0 || strstr(name, "_tiny") != NULL;
        if (asked && now_seconds() < until) {
            check_preset(name, most, &t);
        } else if (asked) {
            leave_out(name, "the time was over", &t);
        }
        (void)fflush(stdout);
    }
    hr_preset_list_free(entries);
    printf("],\n\"presets\": %u, \"limits\": %u, \"nothing_fits\": %u, \"frontier\": %u, \"points\": %u, "
           "\"exact\": %u, "
           "\"left_out\": %u}\n",
           t.presets, t.limits, t.nothing_fits, t.frontier, t.ran, t.exact, t.left_out);
    return t.ran == t.exact ? 0 : 1;
}
