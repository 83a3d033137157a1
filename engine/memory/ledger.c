// SPDX-License-Identifier: Apache-2.0
#include "memory/ledger.h"

#include <assert.h>
#include <string.h>

static void take_peak(ledger *l, const heap_counters *stats, uint32_t instr)
{
    l->peak = (ledger_peak){
        .in_use_bytes = stats->in_use_bytes,
        .requested_bytes = l->requested_bytes,
        .pool_bytes = stats->pool_bytes,
        .largest_free_bytes = stats->largest_free_bytes,
        .fragmentation = stats->fragmentation,
        .instr = instr,
    };
    memcpy(l->peak.by_category, l->by_category, sizeof l->by_category);
}

void ledger_init(ledger *l)
{
    *l = (ledger){.peak.instr = HR_NO_ID};
}

void ledger_alloc(ledger *l, const allocator *a, hr_category category, uint64_t requested_bytes,
                  uint32_t instr)
{
    assert(category < HR_CATEGORY_COUNT);
    l->by_category[category] += requested_bytes;
    l->requested_bytes += requested_bytes;
    if (l->requested_bytes > l->peak_requested_bytes) {
        l->peak_requested_bytes = l->requested_bytes;
    }
    heap_counters stats = allocator_get_stats(a);
    if (stats.in_use_bytes > l->peak.in_use_bytes) { // the first attainment stays
        take_peak(l, &stats, instr);
    }
}

void ledger_free(ledger *l, hr_category category, uint64_t requested_bytes)
{
    assert(category < HR_CATEGORY_COUNT && l->by_category[category] >= requested_bytes);
    l->by_category[category] -= requested_bytes;
    l->requested_bytes -= requested_bytes;
}

void ledger_reset_peak(ledger *l, const allocator *a)
{
    heap_counters stats = allocator_get_stats(a);
    l->peak_requested_bytes = l->requested_bytes;
    take_peak(l, &stats, HR_NO_ID);
}
