// SPDX-License-Identifier: Apache-2.0
#include "data/tuned.h"

#include "headroom/units.h"

#include "base/machine.h"

enum { BYTES_PER_THREAD = 1 << 20 /* what one more thread is worth waking for */ };
#define BUDGET_UNIT_BYTES (64 * HR_MIB)

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t batch_of(const hr_knobs *knobs)
{
    return (uint64_t)hr_knob_int(knobs, HR_KNOB_BATCH_SIZE);
}

// Both stay UINT64_MAX once they were.
static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product = 0;
    (void)hr_mul_bytes(a, b, &product);
    return product;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t sum = 0;
    (void)hr_add_bytes(a, b, &sum);
    return sum;
}

uint32_t data_threads(const hr_knobs *knobs, const data_form *model)
{
    const uint64_t batch = batch_of(knobs);
    uint64_t threads = (uint64_t)hr_knob_int(knobs, HR_KNOB_PIPELINE_MAP_THREADS);
    if (threads == 0) {
        const uint64_t worth = times(batch, data_form_bytes(model)) / BYTES_PER_THREAD;
        threads = worth > 1 ? smaller(worth, hr_machine_cores()) : 1;
    }
    return (uint32_t)smaller(threads, smaller(batch, DATA_THREADS_MAX));
}

static tuned_by tuned_by_of(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_PIPELINE_AUTOTUNE, "headroom")     ? TUNED_BY_HEADROOM
           : hr_knob_is(knobs, HR_KNOB_PIPELINE_AUTOTUNE, "tensorflow") ? TUNED_BY_TENSORFLOW
                                                                        : TUNED_BY_NOBODY;
}

// Without a limit of one's own half of the memory that is built in, not of what is free just now: the same in a plan and in
// its run.
static uint64_t budget_of(const hr_knobs *knobs)
{
    const uint64_t limit_bytes = hr_knob_bytes(knobs, HR_KNOB_PIPELINE_RAM_LIMIT, 0);
    return limit_bytes > 0 ? limit_bytes
                           : hr_machine_memory_bytes() / 2 / BUDGET_UNIT_BYTES * BUDGET_UNIT_BYTES;
}

// Threads first: each has its scratch, and two batches are there at least.
static void take_most(data_tuned *t, const hr_knobs *knobs, const data_map *map, uint64_t others_bytes)
{
    const uint64_t batch_bytes = times(batch_of(knobs), data_form_bytes(&map->to));
    const uint64_t scratch_bytes = data_map_scratch_bytes(map);
    const uint64_t left = t->budget_bytes > others_bytes ? t->budget_bytes - others_bytes : 0;
    while (t->threads_auto && t->threads > 1 &&
           plus(times(t->threads, scratch_bytes), times(2, batch_bytes)) > left) {
        t->threads--;
    }
    while (t->prefetch_auto && t->prefetch > 1 &&
           plus(times(t->threads, scratch_bytes), times((uint64_t)t->prefetch + 1, batch_bytes)) > left) {
        t->prefetch--;
    }
}

static void take_auto(data_tuned *t, const hr_knobs *knobs, const data_map *map, bool prefetches,
                      uint64_t others_bytes)
{
    t->threads_auto = !hr_knob_is_set(knobs, HR_KNOB_PIPELINE_MAP_THREADS);
    t->prefetch_auto = !hr_knob_is_set(knobs, HR_KNOB_PIPELINE_PREFETCH) && prefetches;
    t->budget_bytes = budget_of(knobs);
    if (t->threads_auto) {
        t->threads = (uint32_t)smaller(hr_machine_cores(), smaller(batch_of(knobs), DATA_THREADS_MAX));
    }
    if (t->prefetch_auto) {
        t->prefetch = t->by == TUNED_BY_HEADROOM ? TUNED_PREFETCH_MOST : TUNED_PREFETCH_MOST_TENSORFLOW;
    }
    take_most(t, knobs, map, others_bytes);
}

data_tuned data_tuned_of(const hr_knobs *knobs, const data_map *map, bool prefetches, uint64_t others_bytes)
{
    const bool is_set = hr_knob_is_set(knobs, HR_KNOB_PIPELINE_PREFETCH);
    data_tuned t = {.by = tuned_by_of(knobs),
                    .threads = data_threads(knobs, &map->source->form),
                    .prefetch = !prefetches ? 0
                                : is_set    ? (uint32_t)hr_knob_int(knobs, HR_KNOB_PIPELINE_PREFETCH)
                                            : DATA_PREFETCH};
    if (t.by != TUNED_BY_NOBODY) {
        take_auto(&t, knobs, map, prefetches, others_bytes);
    }
    return t;
}
