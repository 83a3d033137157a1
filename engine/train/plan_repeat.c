// SPDX-License-Identifier: Apache-2.0
// `plan --repeat N`: N one-step plans at batch.size + i mod 16, with nothing remembered but workspace answers.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/host_mem.h"
#include "program/compile.h"
#include "train/engine_impl.h"

enum { REPEAT_BATCHES = 16 };

static hr_status plan_once(const hr_engine *e, const hr_knobs *knobs, uint64_t *peak_bytes, hr_err *err)
{
    const build *b = e->build;
    program *p = NULL;
    play_result played;
    uint32_t batch = (uint32_t)hr_knob_int(knobs, HR_KNOB_BATCH_SIZE);
    play_place place = {
        .device = b->device, .device_context = b->context, .knobs = knobs, .limit_bytes = b->limit_bytes};
    const target_judge judge = play_judge(&place);
    hr_target target = b->target;
    target.judge = &judge;
    HR_TRY(program_compile(e->model, knobs, PROGRAM_TRAIN, batch, &target, &p, err));
    hr_status status = play_programs(b->device, b->context, knobs, b->limit_bytes,
                                     (const program *const[]){p}, 1, 1, &played, err);
    program_destroy(p);
    *peak_bytes = status == HR_OK ? played.peak.in_use_bytes : 0;
    return status;
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint64_t count_distinct(const uint64_t *values, uint32_t count)
{
    uint64_t distinct = 0;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t j = 0;
        while (values[j] != values[k]) {
            j++;
        }
        distinct += j == k;
    }
    return distinct;
}

static hr_status plan_all(const hr_engine *e, uint32_t repeat, double *seconds, hr_report *report,
                          hr_err *err)
{
    uint64_t peaks[REPEAT_BATCHES] = {0};
    int64_t batch = hr_knob_int(&e->knobs, HR_KNOB_BATCH_SIZE);
    for (uint32_t k = 0; k < repeat; k++) {
        hr_knobs knobs = e->knobs;
        char text[24];
        (void)snprintf(text, sizeof text, "%" PRId64, batch + k % REPEAT_BATCHES);
        HR_TRY(hr_knobs_set(&knobs, HR_KNOB_BATCH_SIZE, text, err));
        uint64_t begin_ns = clock_now_ns();
        HR_TRY(plan_once(e, &knobs, &peaks[k % REPEAT_BATCHES], err));
        seconds[k] = (double)(clock_now_ns() - begin_ns) * 1e-9;
    }
    qsort(seconds, repeat, sizeof *seconds, by_number);
    report->plan.seconds_median = seconds[repeat / 2];
    report->plan.seconds_max = seconds[repeat - 1];
    report->plan.distinct_peaks = count_distinct(peaks, repeat < REPEAT_BATCHES ? repeat : REPEAT_BATCHES);
    return HR_OK;
}

hr_status hr_engine_plan_repeat(hr_engine *e, uint32_t repeat, hr_report *report, hr_err *err)
{
    if (repeat == 0) {
        return HR_FAIL(err, USAGE, "--repeat needs at least 1 plan, had 0");
    }
    if (e->build == NULL) {
        HR_TRY(engine_rebuild(e, err));
    }
    double *seconds = hr_calloc(repeat, sizeof *seconds);
    if (seconds == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for %u plans", repeat);
    }
    hr_status status = plan_all(e, repeat, seconds, report, err);
    hr_free(seconds);
    return status;
}
