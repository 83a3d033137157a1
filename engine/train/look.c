// SPDX-License-Identifier: Apache-2.0
// Where a training stands between two advances.
#include <math.h>
#include <string.h>

#include "train/engine_impl.h"
#include "train/schedule.h"

static hr_engine_next what_is_next(const hr_engine *e)
{
    if (e->state != HR_ENGINE_RUNNING) {
        return HR_ENGINE_WAITS;
    }
    if (e->needs_build) {
        return HR_ENGINE_BUILDS;
    }
    if (e->eval.running || e->eval.wanted) {
        return HR_ENGINE_EVALUATES;
    }
    const bool ends =
        e->build->arithmetic && !e->build->resident && pipeline_epoch_is_over(e->data, e->position);
    return ends || e->steps >= e->target_steps ? HR_ENGINE_ENDS : HR_ENGINE_TRAINS;
}

void hr_engine_look(const hr_engine *e, hr_engine_now *now)
{
    *now = (hr_engine_now){.next = what_is_next(e),
                           .epoch = e->position.epoch,
                           .epoch_steps = HR_NONE,
                           .learning_rate = schedule_learning_rate(&e->knobs, e->updates + 1),
                           .loss_scale = e->loss_scale > 0 ? (double)e->loss_scale : (double)NAN,
                           .in_use_bytes = HR_NONE,
                           .pool_bytes = HR_NONE,
                           .largest_free_bytes = HR_NONE,
                           .fragmentation = (double)NAN};
    if (e->build != NULL) {
        const heap_counters c = allocator_get_stats(e->build->heap);
        const ledger *l = executor_ledger(e->build->x);
        now->epoch_steps =
            e->build->arithmetic && !e->build->resident ? pipeline_epoch_updates(e->data) : HR_NONE;
        now->in_use_bytes = c.in_use_bytes;
        now->pool_bytes = c.pool_bytes;
        now->largest_free_bytes = c.largest_free_bytes;
        now->fragmentation = c.fragmentation;
        memcpy(now->by_category, l->by_category, sizeof now->by_category);
    }
}
