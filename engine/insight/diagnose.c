// SPDX-License-Identifier: Apache-2.0
#include "insight/diagnose.h"

#include <inttypes.h>
#include <stdio.h>

#include "headroom/units.h"

static hr_oom_cause cause_of(const hr_report_oom *oom, uint64_t waste_bytes)
{
    if (oom->free_bytes >= oom->requested_bytes) {
        return HR_OOM_FRAGMENTATION;
    }
    return oom->free_bytes + waste_bytes >= oom->requested_bytes ? HR_OOM_ROUNDING : HR_OOM_CAPACITY;
}

static hr_category largest_category(const hr_report_oom *oom)
{
    hr_category largest = HR_CATEGORY_WEIGHTS;
    for (int k = 0; k < HR_CATEGORY_COUNT; k++) {
        if (oom->by_category[k] > oom->by_category[largest]) {
            largest = (hr_category)k;
        }
    }
    return largest;
}

static void say_capacity(hr_report_oom *oom)
{
    char needed[HR_BYTES_TEXT_MAX];
    char had[HR_BYTES_TEXT_MAX];
    char limit[HR_BYTES_TEXT_MAX];
    char held[HR_BYTES_TEXT_MAX];
    hr_category largest = largest_category(oom);
    (void)snprintf(oom->sentence, sizeof oom->sentence,
                   "capacity: %s needs %s, and of the limit of %s only %s are left; %s hold %s", oom->tensor,
                   hr_bytes_human(oom->requested_bytes, needed), hr_bytes_human(oom->limit_bytes, limit),
                   hr_bytes_human(oom->free_bytes, had), hr_category_name(largest),
                   hr_bytes_human(oom->by_category[largest], held));
}

static void say_fragmentation(hr_report_oom *oom)
{
    char needed[HR_BYTES_TEXT_MAX];
    char had[HR_BYTES_TEXT_MAX];
    char hole[HR_BYTES_TEXT_MAX];
    (void)snprintf(oom->sentence, sizeof oom->sentence,
                   "fragmentation: %s are free, but the largest piece is %s and %s needs %s in one",
                   hr_bytes_human(oom->free_bytes, had), hr_bytes_human(oom->largest_free_bytes, hole),
                   oom->tensor, hr_bytes_human(oom->requested_bytes, needed));
}

static void say_rounding(hr_report_oom *oom, uint64_t waste_bytes)
{
    char needed[HR_BYTES_TEXT_MAX];
    char waste[HR_BYTES_TEXT_MAX];
    (void)snprintf(oom->sentence, sizeof oom->sentence,
                   "rounding: %s needs %s and would fit, but %s inside handed-out chunks are waste",
                   oom->tensor, hr_bytes_human(oom->requested_bytes, needed),
                   hr_bytes_human(waste_bytes, waste));
}

static void say_attempt(const hr_knobs *knobs, hr_report_oom *oom)
{
    int64_t batch = hr_knob_int(knobs, HR_KNOB_BATCH_SIZE);
    bool growth = hr_knob_is(knobs, HR_KNOB_ALLOCATOR_GROWTH, "on");
    if (oom->cause != HR_OOM_CAPACITY && growth) {
        (void)snprintf(oom->attempt, sizeof oom->attempt, "-s allocator.growth=off");
    } else if (hr_knob_is(knobs, HR_KNOB_EXECUTION_MODE, "eager")) {
        (void)snprintf(oom->attempt, sizeof oom->attempt,
                       "-s execution.mode=graph, or -s batch.size=%" PRId64, batch > 1 ? batch / 2 : 1);
    } else if (batch > 1) {
        (void)snprintf(oom->attempt, sizeof oom->attempt, "-s batch.size=%" PRId64, batch / 2);
    } else {
        char vram[HR_BYTES_TEXT_MAX];
        (void)snprintf(oom->attempt, sizeof oom->attempt, "-s device.vram=%s",
                       hr_bytes_exact(oom->limit_bytes * 2, vram));
    }
}

void diagnose_oom(const hr_knobs *knobs, uint64_t waste_bytes, hr_report_oom *oom)
{
    oom->cause = cause_of(oom, waste_bytes);
    if (oom->cause == HR_OOM_FRAGMENTATION) {
        say_fragmentation(oom);
    } else if (oom->cause == HR_OOM_ROUNDING) {
        say_rounding(oom, waste_bytes);
    } else {
        say_capacity(oom);
    }
    say_attempt(knobs, oom);
}
