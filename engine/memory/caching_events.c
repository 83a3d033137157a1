// SPDX-License-Identifier: Apache-2.0
// Streams that work with another stream's blocks: a freed block waits until all of them have got past the release.
// One event for each stream is recorded when the block is freed.
#include "memory/caching.h"
#include "memory/caching_parts.h"

uint32_t caching_count_uses(const caching *c, uint32_t block)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < c->uses.count; k++) {
        count += c->uses.data[k].block == block ? 1 : 0;
    }
    return count;
}

static bool is_recorded(const caching *c, uint32_t block, uint32_t stream)
{
    for (uint32_t k = 0; k < c->uses.count; k++) {
        if (c->uses.data[k].block == block && c->uses.data[k].stream == stream) {
            return true;
        }
    }
    return false;
}

hr_status caching_record_stream(allocator *a, uint64_t address, uint32_t stream, hr_err *err)
{
    caching *c = caching_of(a);
    const uint32_t block = chunks_find(&c->chunks, address);
    if (block == CHUNK_NONE) {
        return HR_FAIL(err, STATE, "caching allocator: no living block begins at %#llx",
                       (unsigned long long)address);
    }
    chunk *b = &c->chunks.records[block];
    const bool shared = (b->group & CACHING_SHARED) != 0;
    if (c->queues.data[caching_queue_of(b)].stream == stream || (shared && is_recorded(c, block, stream))) {
        return HR_OK;
    }
    caching_use *use = vec_push(&c->uses);
    if (use == NULL) {
        return HR_FAIL(err, NOMEM, "caching allocator: needed host memory to record a stream, had none");
    }
    *use = (caching_use){block, stream};
    chunk_assign(b, b->group | CACHING_SHARED);
    return HR_OK;
}

// An event has happened.
static void arrive(caching *c, uint32_t block)
{
    chunk *b = &c->chunks.records[block];
    b->chained--;
    if (b->chained == 0) {
        chunk_assign(b, b->group & ~(uint32_t)CACHING_SHARED);
        caching_complete_free(c, block);
    }
}

static void arrive_on(caching *c, uint32_t stream, bool every_stream)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < c->uses.count; k++) {
        const caching_use use = c->uses.data[k];
        const bool pending = caching_state_of(&c->chunks.records[use.block]) == CACHING_PENDING;
        if (pending && (every_stream || use.stream == stream)) {
            arrive(c, use.block);
        } else {
            c->uses.data[kept++] = use;
        }
    }
    c->uses.count = kept;
}

void caching_events_done(allocator *a, uint32_t stream)
{
    arrive_on(caching_of(a), stream, false);
}

void caching_settle_events(caching *c)
{
    arrive_on(c, 0, true);
}
