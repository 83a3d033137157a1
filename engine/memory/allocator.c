// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator.h"

#include <string.h>

#include "headroom/units.h"

void allocator_destroy(allocator *a)
{
    if (a != NULL) {
        a->ops->destroy(a);
    }
}

static void emit_oom(allocator *a, const allocator_request *r, const heap_counters *stats)
{
    hr_event event = {
        .kind = HR_EVENT_OOM,
        .u.memory = {.requested_bytes = r->bytes,
                     .in_use_bytes = stats->in_use_bytes,
                     .pool_bytes = stats->pool_bytes,
                     .largest_free_bytes = stats->largest_free_bytes,
                     .tensor = r->tensor,
                     .stream = r->stream},
    };
    trace_emit(a->bus, &event);
}

// An expandable pool can pass its limit by a handle.
static uint64_t left_to_grow(const heap_counters *c)
{
    return c->limit_bytes > c->pool_bytes ? c->limit_bytes - c->pool_bytes : 0;
}

// Out of memory, with what a reader needs to tell a heap that is full from one that is in pieces.
static hr_status refuse(allocator *a, const allocator_request *r, hr_err *err)
{
    heap_counters stats = allocator_get_stats(a);
    a->refusal.any = true;
    a->refusal.requested_bytes = r->bytes;
    a->refusal.tensor = r->tensor;
    a->refusal.stream = r->stream;
    emit_oom(a, r, &stats); // a listener may look at the heap
    if (err == NULL) {
        return HR_OOM;
    }
    char needed[HR_BYTES_TEXT_MAX], pool_free[HR_BYTES_TEXT_MAX], pool[HR_BYTES_TEXT_MAX];
    char largest[HR_BYTES_TEXT_MAX], left[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX];
    return HR_FAIL(err, OOM,
                   "%s allocator: needed %s in one piece, had %s free in a pool of %s, the largest piece %s, "
                   "and %s left to grow under the limit of %s",
                   a->ops->name, hr_bytes_human(r->bytes, needed),
                   hr_bytes_human(stats.pool_bytes - stats.in_use_bytes, pool_free),
                   hr_bytes_human(stats.pool_bytes, pool), hr_bytes_human(stats.largest_free_bytes, largest),
                   hr_bytes_human(left_to_grow(&stats), left), hr_bytes_human(stats.limit_bytes, limit));
}

hr_status allocator_serve(allocator *a, const allocator_request *r, uint64_t *address, hr_err *err)
{
    *address = 0;
    if (r->bytes == 0) {
        return HR_OK;
    }
    hr_status status = a->ops->alloc(a, r, address, err);
    if (status == HR_OOM) {
        return refuse(a, r, err);
    }
    if (status == HR_NOMEM) {
        return HR_FAIL(err, NOMEM, "%s allocator: needed host memory to book one more chunk, had none",
                       a->ops->name);
    }
    return status;
}

hr_status allocator_alloc(allocator *a, uint64_t bytes, uint32_t tensor, uint64_t *address, hr_err *err)
{
    return allocator_serve(a, &(allocator_request){.bytes = bytes, .tensor = tensor}, address, err);
}

void allocator_free(allocator *a, uint64_t address)
{
    if (address != 0) {
        a->ops->free(a, address);
    }
}

heap_counters allocator_get_stats(const allocator *a)
{
    heap_counters c = a->counters;
    uint64_t free_bytes = c.pool_bytes - c.in_use_bytes;
    c.largest_free_bytes = a->ops->largest_free(a);
    c.fragmentation = free_bytes == 0 ? 0.0 : 1.0 - (double)c.largest_free_bytes / (double)free_bytes;
    return c;
}

void allocator_clear_peaks(allocator *a)
{
    heap_counters *c = &a->counters;
    c->peak_requested_bytes = c->requested_bytes;
    c->peak_in_use_bytes = c->in_use_bytes;
    c->peak_pool_bytes = c->pool_bytes;
    c->largest_allocation_bytes = 0;
    c->allocations = 0;
}

void allocator_synchronise(allocator *a)
{
    if (a->ops->synchronise != NULL) {
        a->ops->synchronise(a);
    }
}

bool allocator_plans(const allocator *a)
{
    return a->ops->plan != NULL;
}

hr_status allocator_plan_ahead(allocator *a, const allocator_plan *plan, uint64_t *needed_bytes, hr_err *err)
{
    *needed_bytes = 0;
    if (!allocator_plans(a)) {
        return HR_OK;
    }
    hr_status status = a->ops->plan(a, plan, needed_bytes, err);
    allocator_request whole = {.bytes = *needed_bytes, .tensor = HR_NO_ID};
    return status == HR_OOM ? refuse(a, &whole, err) : status;
}

hr_status allocator_follow(allocator *a, uint32_t step, hr_err *err)
{
    return a->ops->follow == NULL ? HR_OK : a->ops->follow(a, step, err);
}
