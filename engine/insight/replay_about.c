// SPDX-License-Identifier: Apache-2.0
// What can be said of a trace without an allocator.
#include <math.h>
#include <string.h>

#include "headroom/units.h"

#include "formats/formats.h"
#include "insight/replay.h"

// Of one device.
typedef struct tally {
    uint64_t live_bytes, peak_bytes;
    uint64_t grown_bytes, shrunk_bytes;
    int64_t highest_growth; // of grown − shrunk
    uint64_t lives;         // allocations and frees of the file's own rows
    bool has_pool;
} tally;

static uint64_t sum_of(uint64_t a, uint64_t b)
{
    uint64_t sum;
    (void)hr_add_bytes(a, b, &sum); // a hostile file's sums end at 2^64 − 1
    return sum;
}

static uint64_t without(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t max_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void count_pool(tally *t, const trace_event *e)
{
    t->has_pool = true;
    t->grown_bytes = sum_of(t->grown_bytes, e->kind == TRACE_GROW ? e->bytes : 0);
    t->shrunk_bytes = sum_of(t->shrunk_bytes, e->kind == TRACE_SHRINK ? e->bytes : 0);
    int64_t growth = (int64_t)(t->grown_bytes - t->shrunk_bytes);
    t->highest_growth = growth > t->highest_growth ? growth : t->highest_growth;
}

static void count_event(tally *t, const trace_event *e, hr_replay_about *about)
{
    bool is_life = e->kind == TRACE_ALLOC || e->kind == TRACE_FREE;
    t->lives += is_life && e->row != TRACE_BEFORE;
    about->events += is_life || e->kind == TRACE_REFUSED || e->kind == TRACE_STEP;
    switch ((trace_kind)e->kind) {
    case TRACE_ALLOC:
        about->allocations++;
        t->live_bytes = sum_of(t->live_bytes, e->bytes);
        t->peak_bytes = max_of(t->peak_bytes, t->live_bytes);
        break;
    case TRACE_FREE:
        t->live_bytes = without(t->live_bytes, e->bytes);
        break;
    case TRACE_REFUSED:
        about->refused++;
        t->peak_bytes = max_of(t->peak_bytes, sum_of(t->live_bytes, e->bytes));
        break;
    case TRACE_STEP:
        about->steps++;
        break;
    case TRACE_GROW:
    case TRACE_SHRINK:
        count_pool(t, e);
        break;
    case TRACE_RETIRE:
    case TRACE_KINDS:
        break;
    }
}

// What stood before the trace began is what the heap at its end has beyond the growth in it.
static uint64_t recorded_peak_pool(const tally *t, const heap_snapshot *heap)
{
    if (!t->has_pool) {
        return heap == NULL ? HR_NONE : max_of(heap->counters.peak_pool_bytes, heap->counters.pool_bytes);
    }
    uint64_t end_bytes = without(t->grown_bytes, t->shrunk_bytes);
    uint64_t before_bytes = heap == NULL ? 0 : without(heap->counters.pool_bytes, end_bytes);
    return sum_of(before_bytes, (uint64_t)t->highest_growth);
}

static void describe_recorded(const tally *t, const heap_snapshot *heap, hr_replay_about *about)
{
    about->recorded.peak_pool_bytes = recorded_peak_pool(t, heap);
    about->recorded.limit_bytes =
        heap == NULL || heap->counters.limit_bytes == 0 ? HR_NONE : heap->counters.limit_bytes;
    about->recorded.peak_in_use_bytes = heap == NULL ? HR_NONE : heap->counters.peak_in_use_bytes;
    about->recorded.in_use_bytes = heap == NULL ? HR_NONE : heap->counters.in_use_bytes;
    about->recorded.largest_free_bytes = heap == NULL ? HR_NONE : heap->counters.largest_free_bytes;
    about->recorded.fragmentation = heap == NULL ? (double)NAN : heap->counters.fragmentation;
    // Behind the heap stands at most the request that it refused.
    about->is_heap = heap != NULL && t->lives <= heap->refusal.any;
    about->refused += about->is_heap && heap->refusal.any;
    about->damaged_regions = heap == NULL ? 0 : heap->damaged_regions;
}

static const char *line_of(const char *format)
{
    for (const trace_format *const *f = trace_formats; *f != NULL; f++) {
        if (format != NULL && strcmp((*f)->name, format) == 0) {
            return (*f)->line;
        }
    }
    return "a trace";
}

static bool has_refused(const trace *t, uint32_t device)
{
    return t->heaps[device] != NULL && t->heaps[device]->refusal.any;
}

// A device whose heap was drawn at its refusal, else any; of these the one that holds most at once.
static uint32_t shown_device(const trace *t, const tally *tallies)
{
    uint32_t shown = 0;
    for (uint32_t k = 1; k < t->device_count; k++) {
        const bool k_refused = has_refused(t, k), shown_refused = has_refused(t, shown);
        if (k_refused != shown_refused ? k_refused : tallies[k].peak_bytes > tallies[shown].peak_bytes) {
            shown = k;
        }
    }
    return shown;
}

void replay_describe(const trace *t, hr_replay_about *out)
{
    tally tallies[TRACE_DEVICES_MAX] = {0};
    *out = (hr_replay_about){
        .format = t->format == NULL ? "" : t->format,
        .format_line = line_of(t->format),
        .rows = t->rows,
        .blocks = t->block_count,
        .lost_frees = t->lost_frees,
        .device_count = t->device_count,
    };
    for (uint32_t k = 0; k < t->events.count; k++) {
        count_event(&tallies[t->events.data[k].device], &t->events.data[k], out);
    }
    out->device = shown_device(t, tallies);
    out->peak_requested_bytes = tallies[out->device].peak_bytes;
    describe_recorded(&tallies[out->device], t->heaps[out->device], out);
}

uint64_t replay_asked_bytes(const trace *t, uint32_t device)
{
    tally of_device = {0};
    hr_replay_about unused = {0};
    for (uint32_t k = 0; k < t->events.count; k++) {
        if (t->events.data[k].device == device) {
            count_event(&of_device, &t->events.data[k], &unused);
        }
    }
    return of_device.peak_bytes;
}
