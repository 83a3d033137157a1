// SPDX-License-Identifier: Apache-2.0
// The promise that a plan is the run, over one covering array after the other, until the time is up; and over every
// model at its published size whose step fits this machine. By hand; from the root of the checkout.
//
//   soak_plan_equals_run [--seconds S] [--seed N] [--full]    --full: the published sizes first, eager and graph
//
// A line for each configuration on stderr, one JSON object on stdout.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "headroom/preset.h"

#include "cli/covering.h"
#include "cli/exactness.h"

typedef struct tally {
    unsigned configurations, broken, full_size, too_large;
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

static bool flag(int argc, char **argv, const char *name)
{
    for (int k = 1; k < argc; k++) {
        if (strcmp(argv[k], name) == 0) {
            return true;
        }
    }
    return false;
}

static void must_set(hr_knobs *knobs, hr_knob_id id, const char *value)
{
    hr_err err = {0};
    if (hr_knobs_set(knobs, id, value, &err) != HR_OK) {
        fprintf(stderr, "%s\n", err.sentence);
        exit(2);
    }
}

static hr_preset *open_on_cpu(const char *name, hr_knobs *knobs)
{
    hr_preset *preset = NULL;
    hr_err err = {0};
    if (hr_preset_open(name, false, &preset, NULL, &err) != HR_OK) {
        fprintf(stderr, "%s\n", err.sentence);
        exit(2);
    }
    *knobs = *hr_preset_knobs(preset);
    must_set(knobs, HR_KNOB_DEVICE_KIND, "cpu");
    must_set(knobs, HR_KNOB_DEVICE_CARD, "");
    must_set(knobs, HR_KNOB_DEVICE_VRAM, "64GiB");
    return preset;
}

static bool check_one(const char *text, const hr_preset *preset, const hr_knobs *knobs, tally *t)
{
    char why[512] = "";
    uint64_t peak_bytes = 0;
    double begin = now_seconds();
    const bool holds =
        exactness_without_refused(preset, *knobs, &peak_bytes, why, sizeof why) == EXACTNESS_HOLDS;
    const bool too_large = !holds && strstr(why, "of this machine's available memory") != NULL;
    fprintf(stderr, "%12" PRIu64 " B %6.2f s  %s  %s%s\n", peak_bytes, now_seconds() - begin,
            holds       ? "same     "
            : too_large ? "too large"
                        : "BROKEN   ",
            text, holds ? "" : why);
    t->configurations += !too_large;
    t->too_large += too_large;
    t->broken += !holds && !too_large;
    return holds;
}

static void check_configuration(const configuration *c, tally *t)
{
    const axis *axes = NULL;
    char text[2048];
    hr_knobs knobs;
    (void)covering_axes(&axes);
    hr_preset *preset = open_on_cpu(axes[0].values[c->value[0]], &knobs);
    configuration_apply(c, &knobs);
    (void)check_one(configuration_text(c, text, sizeof text), preset, &knobs, t);
    hr_preset_close(preset);
}

static void check_full_sizes(tally *t)
{
    static const char *const models[] = {"cifar10_separable_cnn",
                                         "mlp",
                                         "resnet18_cifar",
                                         "resnet18",
                                         "resnet50",
                                         "resnet50_keras",
                                         "mobilenet_v2",
                                         "mobilenet_v2_keras",
                                         "vgg16",
                                         "unet",
                                         "gpt2_124m",
                                         "gpt2_355m",
                                         "gpt2_1558m",
                                         "bert_base",
                                         "vit_b16",
                                         "lstm_lm_medium"};
    static const char *const modes[] = {"eager", "graph"};
    for (size_t k = 0; k < 2 * sizeof models / sizeof *models; k++) {
        char text[96];
        hr_knobs knobs;
        hr_preset *preset = open_on_cpu(models[k / 2], &knobs);
        must_set(&knobs, HR_KNOB_BATCH_SIZE, "2");
        must_set(&knobs, HR_KNOB_EXECUTION_MODE, modes[k % 2]);
        snprintf(text, sizeof text, "%s batch 2 %s", models[k / 2], modes[k % 2]);
        t->full_size += check_one(text, preset, &knobs, t);
        hr_preset_close(preset);
    }
}

int main(int argc, char **argv)
{
    tally t = {0, 0, 0, 0};
    const double limit = (double)option(argc, argv, "--seconds", 60);
    const uint64_t seed = option(argc, argv, "--seed", 1);
    const double begin = now_seconds();
    hr_preset_search_beside(".");
    if (flag(argc, argv, "--full")) {
        check_full_sizes(&t);
    }
    for (uint64_t round = 0; now_seconds() - begin < limit; round++) {
        covering c = covering_make(seed * 1000 + round);
        for (size_t k = 0; k < c.count && now_seconds() - begin < limit; k++) {
            check_configuration(&c.list[k], &t);
        }
        covering_deinit(&c);
    }
    printf("{\"configurations\": %u, \"full_size\": %u, \"too_large_for_this_machine\": %u, \"steps\": %u, "
           "\"broken\": %u, \"seed\": %" PRIu64 "}\n",
           t.configurations, t.full_size, t.too_large, (unsigned)EXACTNESS_STEPS, t.broken, seed);
    return t.broken == 0 ? 0 : 1;
}
