// SPDX-License-Identifier: Apache-2.0
#include "insight/diagnose.h"

#include <stdio.h>

#include "headroom/units.h"

static hr_oom_cause cause_of(const hr_report_oom *oom, uint64_t needed_bytes)
{
    if (needed_bytes > oom->limit_bytes) {
        return HR_OOM_CAPACITY;
    }
    if (oom->by_category[HR_CATEGORY_RETAINED] > 0) {
        return HR_OOM_LEAK;
    }
    return oom->free_bytes >= oom->requested_bytes ? HR_OOM_FRAGMENTATION : HR_OOM_ROUNDING;
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

static void say_capacity(uint64_t needed_bytes, hr_report_oom *oom)
{
    char needed[HR_BYTES_TEXT_MAX];
    char limit[HR_BYTES_TEXT_MAX];
    char held[HR_BYTES_TEXT_MAX];
    hr_category largest = largest_category(oom);
    (void)snprintf(
        oom->sentence, sizeof oom->sentence,
        "capacity: the step needs %s at its peak, the limit is %s; when %s was asked for, %s held %s",
        hr_bytes_human(needed_bytes, needed), hr_bytes_human(oom->limit_bytes, limit), oom->tensor,
        hr_category_name(largest), hr_bytes_human(oom->by_category[largest], held));
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

static void say_leak(uint64_t needed_bytes, hr_report_oom *oom)
{
    char needed[HR_BYTES_TEXT_MAX];
    char limit[HR_BYTES_TEXT_MAX];
    char retained[HR_BYTES_TEXT_MAX];
    (void)snprintf(oom->sentence, sizeof oom->sentence,
                   "leak: one step needs %s and would fit into %s, but %s are retained by the steps so far "
                   "and never freed; there was no room for %s",
                   hr_bytes_human(needed_bytes, needed), hr_bytes_human(oom->limit_bytes, limit),
                   hr_bytes_human(oom->by_category[HR_CATEGORY_RETAINED], retained), oom->tensor);
}

void diagnose_oom(uint64_t needed_bytes, uint64_t waste_bytes, hr_report_oom *oom)
{
    oom->cause = cause_of(oom, needed_bytes);
    if (oom->cause == HR_OOM_FRAGMENTATION) {
        say_fragmentation(oom);
    } else if (oom->cause == HR_OOM_LEAK) {
        say_leak(needed_bytes, oom);
    } else if (oom->cause == HR_OOM_ROUNDING) {
        say_rounding(oom, waste_bytes);
    } else {
        say_capacity(needed_bytes, oom);
    }
}

void diagnose_block(uint64_t needed_bytes, hr_report_oom *oom)
{
    char needed[HR_BYTES_TEXT_MAX];
    char block[HR_BYTES_TEXT_MAX];
    char limit[HR_BYTES_TEXT_MAX];
    oom->cause = needed_bytes > oom->limit_bytes ? HR_OOM_CAPACITY : HR_OOM_FRAGMENTATION;
    (void)snprintf(oom->sentence, sizeof oom->sentence,
                   "%s: the step needs %s at its peak, laid out in one block %s; the limit is %s",
                   hr_oom_cause_name(oom->cause), hr_bytes_human(needed_bytes, needed),
                   hr_bytes_human(oom->requested_bytes, block), hr_bytes_human(oom->limit_bytes, limit));
}
