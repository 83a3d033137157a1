// SPDX-License-Identifier: Apache-2.0
#include "app/tui/feed/input_bound.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/tui/base/format.h"

#define PRODUCER_IDLE 0.25 // share of its time that the producer waits for room: it could make more

typedef struct stage_times {
    const hr_event_stage *stage; // NULL: there is none of that name, or its times are not known
    double busy, waits;
} stage_times;

static stage_times times_of(const run_state *m, const char *name)
{
    stage_times t = {.stage = NULL};
    for (uint32_t i = 0; i < m->stage_count; i++) {
        if (strcmp(m->stage[i].name, name) == 0 && run_state_stage_shares(m, i, &t.busy, &t.waits)) {
            t.stage = &m->stage[i];
        }
    }
    return t;
}

static void blame(input_bound *b, const char *stage, double busy)
{
    b->stage = stage;
    b->busy = busy;
}

// Nothing is made while the step computes.
static void blame_no_queue(input_bound *b)
{
    blame(b, "batch", UNKNOWN);
    snprintf(b->why, sizeof b->why, "nothing is made while the step computes");
    snprintf(b->helps, sizeof b->helps, "pipeline.prefetch=2");
}

// There is room for more, and yet it is empty at times.
static void blame_queue(input_bound *b, const stage_times *prefetch)
{
    char share[FORMAT_MAX];
    blame(b, "prefetch", 1 - prefetch->waits);
    snprintf(b->why, sizeof b->why,
             "batches come unevenly: prefetch waits %s of the time for room, and is empty at others",
             format_percent(prefetch->waits, share));
    snprintf(b->helps, sizeof b->helps, "pipeline.prefetch=%" PRIu32,
             prefetch->stage->queue_capacity < 32 ? prefetch->stage->queue_capacity * 2 : 64);
}

static void blame_making(const feed *f, input_bound *b, const stage_times *map, const char *name)
{
    char share[FORMAT_MAX];
    const uint32_t threads = map->stage->threads > 0 ? map->stage->threads : 1, cores = map->stage->cores;
    const bool keeps = !hr_knob_is(&f->applied, HR_KNOB_PIPELINE_CACHE, "none");
    blame(b, name, map->busy);
    snprintf(b->why, sizeof b->why, "%s is at work %s of the time on %" PRIu32 " thread%s", name,
             format_percent(map->busy, share), threads, threads == 1 ? "" : "s");
    if (threads < cores) {
        snprintf(b->helps, sizeof b->helps, "pipeline.map_threads=%" PRIu32,
                 threads * 2 < cores ? threads * 2 : cores);
    } else if (!keeps) {
        snprintf(b->helps, sizeof b->helps, "pipeline.cache=ram");
    }
}

static void find_blame(const feed *f, input_bound *b)
{
    const run_state *m = feed_run_state(f);
    const stage_times map = times_of(m, "map"), batch = times_of(m, "batch"),
                      prefetch = times_of(m, "prefetch");
    if (batch.stage == NULL) {
        return;
    }
    if (prefetch.stage == NULL) {
        blame_no_queue(b);
    } else if (prefetch.waits > PRODUCER_IDLE) {
        blame_queue(b, &prefetch);
    } else if (map.stage != NULL && map.busy >= batch.busy) {
        blame_making(f, b, &map, "map");
    } else {
        blame_making(f, b, &batch, "batch");
    }
}

input_bound input_bound_of(const feed *f)
{
    input_bound b = {.by = BOUND_UNKNOWN, .waits = UNKNOWN, .stage = "", .busy = UNKNOWN};
    const double waits = run_state_wait_share(feed_run_state(f));
    if (hr_knob_is(&f->applied, HR_KNOB_DEVICE_KIND, "plan") || isnan(waits)) {
        return b;
    }
    b.waits = waits;
    b.by = waits >= INPUT_BOUND_FROM ? BOUND_INPUT : BOUND_COMPUTE;
    if (b.by == BOUND_INPUT) {
        find_blame(f, &b);
    }
    return b;
}
