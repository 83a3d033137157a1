// SPDX-License-Identifier: Apache-2.0
// The independent judge of every allocator: it sees the walk and the counters, nothing else.
#include <inttypes.h>
#include <math.h>
#include <stddef.h>

#include "memory/allocator.h"

typedef struct check {
    hr_err *err;
    hr_status status;
    bool merges_late;
    bool any;
    heap_chunk last;
    uint64_t chunks;
    uint64_t requested_bytes, in_use_bytes, pool_bytes, largest_free_bytes;
    uint64_t expandable_bytes; // of the largest region that grew by handles
} check;

#define OFFENCE(c, ...) ((c)->status = HR_FAIL((c)->err, CHECK, __VA_ARGS__), false)

static uint64_t end_of(const heap_chunk *c)
{
    return c->address + c->size_bytes;
}

static bool same_region(const heap_chunk *a, const heap_chunk *b)
{
    return a->region_address == b->region_address && a->region_bytes == b->region_bytes;
}

static bool check_chunk(check *c, const heap_chunk *now)
{
    if (now->size_bytes == 0 || end_of(now) < now->address) {
        return OFFENCE(c, "chunk %" PRIu64 ": has a size of %" PRIu64 " bytes", c->chunks, now->size_bytes);
    }
    if (now->in_use != (now->allocation_id != 0) || now->requested_bytes > now->size_bytes ||
        (now->requested_bytes == 0) == now->in_use || (now->in_use && now->freed_at != 0)) {
        return OFFENCE(
            c, "chunk %" PRIu64 ": %s, allocation %" PRIu64 ", %" PRIu64 " of %" PRIu64 " bytes asked",
            c->chunks, now->in_use ? "in use" : "free", now->allocation_id, now->requested_bytes,
            now->size_bytes);
    }
    return true;
}

// A chunk begins where the one before it ends, or a region begins after the one before it was filled.
static bool check_place(check *c, const heap_chunk *now)
{
    bool goes_on = c->any && same_region(&c->last, now);
    uint64_t expected = goes_on ? end_of(&c->last) : now->region_address;
    if (now->address != expected) {
        return OFFENCE(c, "chunk %" PRIu64 ": needed to begin at %#" PRIx64 ", begins at %#" PRIx64,
                       c->chunks, expected, now->address);
    }
    if (end_of(now) > now->region_address + now->region_bytes) {
        return OFFENCE(c, "chunk %" PRIu64 ": ends %" PRIu64 " bytes behind its region", c->chunks,
                       end_of(now) - now->region_address - now->region_bytes);
    }
    if (goes_on && !c->last.in_use && !now->in_use && !c->merges_late) {
        return OFFENCE(c, "chunk %" PRIu64 ": is free, as the one before it in its region", c->chunks);
    }
    return true;
}

static bool check_region(check *c, const heap_chunk *now)
{
    if (c->any && end_of(&c->last) != c->last.region_address + c->last.region_bytes) {
        return OFFENCE(c, "region at %#" PRIx64 ": its last %" PRIu64 " bytes belong to no chunk",
                       c->last.region_address,
                       c->last.region_address + c->last.region_bytes - end_of(&c->last));
    }
    if (now != NULL && c->any && now->region_address < end_of(&c->last)) {
        return OFFENCE(c, "region at %#" PRIx64 ": begins before the one at %#" PRIx64 " ends",
                       now->region_address, c->last.region_address);
    }
    if (now != NULL) {
        c->pool_bytes += now->region_bytes;
        if (now->region_kind == HEAP_REGION_EXPANDABLE && now->region_bytes > c->expandable_bytes) {
            c->expandable_bytes = now->region_bytes;
        }
    }
    return true;
}

static bool visit(void *context, const heap_chunk *now)
{
    check *c = context;
    bool begins_region = !c->any || !same_region(&c->last, now);
    if ((begins_region && !check_region(c, now)) || !check_chunk(c, now) || !check_place(c, now)) {
        return false;
    }
    if (now->in_use) {
        c->requested_bytes += now->requested_bytes;
        c->in_use_bytes += now->size_bytes;
    } else if (now->size_bytes > c->largest_free_bytes) {
        c->largest_free_bytes = now->size_bytes;
    }
    c->chunks++;
    c->last = *now;
    c->any = true;
    return true;
}

static bool check_sum(check *c, const char *name, uint64_t walked_bytes, uint64_t counted_bytes)
{
    if (walked_bytes != counted_bytes) {
        return OFFENCE(c, "%s: the chunks hold %" PRIu64 " bytes, the counter says %" PRIu64, name,
                       walked_bytes, counted_bytes);
    }
    return true;
}

static bool check_order(check *c, const char *name, uint64_t small_bytes, uint64_t large_bytes)
{
    if (small_bytes > large_bytes) {
        return OFFENCE(c, "%s: %" PRIu64 " is more than %" PRIu64, name, small_bytes, large_bytes);
    }
    return true;
}

// Expandable regions grow by whole handles and may pass the limit by less than one; none is larger than its region.
static uint64_t least_limit(const check *c, const heap_counters *s)
{
    uint64_t passed_bytes = s->pool_bytes > s->limit_bytes ? s->pool_bytes - s->limit_bytes : 0;
    return passed_bytes < c->expandable_bytes ? s->pool_bytes - passed_bytes : s->pool_bytes;
}

static bool check_counters(check *c, const heap_counters *s)
{
    uint64_t free_bytes = c->pool_bytes - c->in_use_bytes;
    double fragmentation = free_bytes == 0 ? 0.0 : 1.0 - (double)c->largest_free_bytes / (double)free_bytes;
    if (!(check_sum(c, "requested", c->requested_bytes, s->requested_bytes) &&
          check_sum(c, "in use", c->in_use_bytes, s->in_use_bytes) &&
          check_sum(c, "pool", c->pool_bytes, s->pool_bytes) &&
          check_sum(c, "largest free", c->largest_free_bytes, s->largest_free_bytes) &&
          check_order(c, "requested beyond in use", s->requested_bytes, s->in_use_bytes) &&
          check_order(c, "in use beyond pool", s->in_use_bytes, s->pool_bytes) &&
          check_order(c, "pool beyond limit", least_limit(c, s), s->limit_bytes) &&
          check_order(c, "requested beyond its peak", s->requested_bytes, s->peak_requested_bytes) &&
          check_order(c, "in use beyond its peak", s->in_use_bytes, s->peak_in_use_bytes) &&
          check_order(c, "pool beyond its peak", s->pool_bytes, s->peak_pool_bytes))) {
        return false;
    }
    if (fabs(fragmentation - s->fragmentation) > 1e-12) {
        return OFFENCE(c, "fragmentation: the chunks give %.6f, the counter says %.6f", fragmentation,
                       s->fragmentation);
    }
    return true;
}

hr_status allocator_check(const allocator *a, hr_err *err)
{
    check c = {.err = err, .status = HR_OK, .merges_late = a->merges_late};
    a->ops->walk(a, visit, &c);
    if (c.status == HR_OK && check_region(&c, NULL)) {
        heap_counters stats = allocator_get_stats(a);
        (void)check_counters(&c, &stats);
    }
    return c.status;
}
