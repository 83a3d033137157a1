// SPDX-License-Identifier: Apache-2.0
// Short trainings of small presets on one thread of the cpu device, with some knobs turned.
#ifndef TESTS_CLI_SHORT_RUNS_H
#define TESTS_CLI_SHORT_RUNS_H

#include <check.h>

#include "headroom/engine.h"
#include "headroom/preset.h"

static inline hr_preset *open_model(const char *name)
{
    hr_preset *preset = NULL;
    hr_err err = {0};
    hr_preset_search_beside(".");
    ck_assert_msg(hr_preset_open(name, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    return preset;
}

// "key=value" each; NULL ends them.
static inline void set_all(hr_knobs *knobs, const char *const *pairs)
{
    static const char *const common[] = {"device.kind=cpu", "device.vram=4GiB", "threads.count=1"};
    hr_err err = {0};
    for (size_t k = 0; k < sizeof common / sizeof *common; k++) {
        ck_assert_int_eq(hr_knobs_set_pair(knobs, common[k], NULL), HR_OK);
    }
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
}

static inline hr_engine *start(const char *model, const char *const *pairs)
{
    hr_engine *e = NULL;
    hr_err err = {0};
    hr_preset *preset = open_model(model);
    hr_knobs knobs = *hr_preset_knobs(preset);
    set_all(&knobs, pairs);
    ck_assert_msg(hr_engine_create(preset, &knobs, NULL, &e, &err) == HR_OK, "%s", err.sentence);
    hr_preset_close(preset);
    return e;
}

// To `steps` in all.
static inline void advance(hr_engine *e, uint64_t steps)
{
    hr_command run = {
        .version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = steps - hr_engine_steps(e)};
    ck_assert_int_eq(hr_engine_command(e, &run, NULL), HR_OK);
    for (bool idle = false; !idle;) {
        hr_engine_advance(e, &idle);
    }
}

// Trains to `steps` and says what the report does, which the caller puts away.
static inline hr_report train(const char *model, uint64_t steps, const char *const *pairs)
{
    hr_report r;
    hr_engine *e = start(model, pairs);
    advance(e, steps);
    ck_assert_msg(hr_engine_steps(e) == steps, "%s", hr_engine_error(e)->sentence);
    ck_assert_int_eq(hr_engine_report(e, &r, NULL), HR_OK);
    hr_engine_destroy(e);
    return r;
}

#endif
