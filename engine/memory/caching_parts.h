// SPDX-License-Identifier: Apache-2.0
// What the files of the caching allocator share: its state, and the functions of each topic.
//
//   queue (one per stream)          segments, by address
//     free[small] ─▶ tree ┐         ┌────────────────────┐ ┌──────────────────────────────────────────────┐
//     free[large] ─▶ tree ┴ blocks  │ used │ free │ used │ │ used │ free │ unmapped │ free │   unmapped    │
//     unmapped[…] ─▶ list           └────────────────────┘ └──────────────────────────────────────────────┘
//                                     ordinary: one take     expandable: one reservation, handles mapped into it
#ifndef MEMORY_CACHING_PARTS_H
#define MEMORY_CACHING_PARTS_H

#include "base/vec.h"
#include "memory/allocator.h"
#include "memory/caching_round.h"
#include "memory/caching_stats.h"
#include "memory/chunks.h"

typedef enum caching_pool { CACHING_SMALL, CACHING_LARGE, CACHING_POOLS } caching_pool;

typedef enum caching_state {
    CACHING_FREE, // in its pool's tree
    CACHING_USED,
    CACHING_PENDING,  // freed, but streams that used it have not got there yet; `chained` counts them
    CACHING_UNMAPPED, // addresses of an expandable segment with nothing behind them; in its pool's list
} caching_state;

// The free blocks that belong to one stream.
typedef struct caching_queue {
    uint32_t stream;
    uint32_t free[CACHING_POOLS];     // trees
    uint32_t unmapped[CACHING_POOLS]; // lists by address, linked by `right`
} caching_queue;

// One taken range, or one reservation. Its first block is the same record for the segment's whole life.
typedef struct caching_segment {
    uint64_t address, bytes;
    uint32_t first;
    uint32_t order; // of its free blocks, where segments decide
    bool expandable;
} caching_segment;

// A stream other than the block's own that works with it.
typedef struct caching_use {
    uint32_t block, stream;
} caching_use;

typedef struct caching {
    allocator base;
    chunks chunks;
    VEC(caching_queue) queues;
    VEC(uint32_t) by_stream;       // queues, ordered by stream
    uint32_t last_queue;           // that was asked for: a guess
    VEC(caching_segment) segments; // by address
    VEC(uint32_t) orders;          // by segment: those of the segments there are, ascending
    VEC(uint32_t) numbers;         // by block: of each record
    uint32_t next_order;           // of a segment or a block
    VEC(caching_use) uses;
    caching_options options;
    bool expands;          // segments are expandable
    bool limited;          // the limit is a fraction: garbage is collected below it
    uint64_t device_bytes; // the whole card
    uint64_t searches;     // of large pools, while garbage collection is on: the clock of ages
    caching_stats stats;
} caching;

// A request on its way down the ladder.
typedef struct caching_request {
    uint32_t queue;
    caching_pool pool;
    uint64_t bytes;         // rounded
    uint64_t segment_bytes; // asked of the driver when nothing fits
} caching_request;

// ---- what a block says of itself (chunk.group) -----------------------------------------------------------------

enum {
    CACHING_STATE_BITS = 2,
    CACHING_EXPANDABLE = 1 << 2,
    CACHING_IN_SMALL = 1 << 3,
    CACHING_SHARED = 1 << 4, // streams have been recorded
    CACHING_QUEUE_SHIFT = 5,
    CACHING_QUEUES_MAX = 1 << 19,
};

static inline caching_state caching_state_of(const chunk *b)
{
    return (caching_state)(b->group & ((1u << CACHING_STATE_BITS) - 1));
}

static inline void caching_set_state(chunk *b, caching_state state)
{
    chunk_assign(b, (uint32_t)((b->group & ~((1u << CACHING_STATE_BITS) - 1)) | state));
}

static inline bool caching_is_free(const chunk *b)
{
    return caching_state_of(b) == CACHING_FREE;
}

static inline bool caching_is_expandable(const chunk *b)
{
    return (b->group & CACHING_EXPANDABLE) != 0;
}

static inline caching_pool caching_pool_of(const chunk *b)
{
    return (b->group & CACHING_IN_SMALL) != 0 ? CACHING_SMALL : CACHING_LARGE;
}

static inline uint32_t caching_queue_of(const chunk *b)
{
    return b->group >> CACHING_QUEUE_SHIFT;
}

static inline bool caching_is_split(const chunk *b)
{
    return b->prev != CHUNK_NONE || b->next != CHUNK_NONE;
}

static inline caching *caching_of(allocator *a)
{
    return (caching *)a;
}

static inline const caching *caching_of_const(const allocator *a)
{
    return (const caching *)a;
}

// Is the age of free blocks kept, because garbage may be collected?
static inline bool caching_collects(const caching *c)
{
    return c->limited && c->options.gc_threshold > 0;
}

// ---- pools (caching_pools.c) -----------------------------------------------------------------------------------

// The queue of the stream, made when it is the first request of it. NOMEM; nothing has changed then.
HR_MUST_CHECK hr_status caching_find_queue(caching *c, uint32_t stream, uint32_t *queue);
// The word that describes a block of this queue and pool.
uint32_t caching_group(uint32_t queue, caching_pool pool, bool expandable);
void caching_insert(caching *c, uint32_t block); // a free block into its tree; it is as young as can be
void caching_remove(caching *c, uint32_t block);
void caching_insert_unmapped(caching *c, uint32_t block);
void caching_remove_unmapped(caching *c, uint32_t block);
// The best fit, taken out of its tree; CHUNK_NONE when there is none or the rules of oversize blocks reject it.
uint32_t caching_fit(caching *c, const caching_request *r);
// Cuts a block to `bytes`: what is behind is a block of the same group, in no tree. Which of both is the new one is
// told by its number alone.
typedef enum caching_side { CACHING_LOW, CACHING_HIGH } caching_side;
uint32_t caching_cut(caching *c, uint32_t block, uint64_t bytes, caching_side fresh);
// Joins a block that is in no tree with its neighbours in `state` (FREE or UNMAPPED), the previous one first; how
// many bytes and blocks were joined to it. The block that remains keeps the number of the one that came.
typedef struct caching_joined {
    uint32_t block, count;
    uint64_t bytes;
} caching_joined;
caching_joined caching_join(caching *c, uint32_t block, caching_state state);
// A block that no stream uses any more goes back into its pool.
void caching_complete_free(caching *c, uint32_t block);

// ---- order (caching_order.c) -----------------------------------------------------------------------------------

// Records and numbers for `fresh` more blocks; false when host memory is short.
bool caching_reserve_blocks(caching *c, uint32_t fresh);
// What a free block carries as its order.
uint32_t caching_order_of(const caching *c, uint32_t block);
void caching_number_block(caching *c, uint32_t block); // as the newest
void caching_pass_number(caching *c, uint32_t from, uint32_t to);
uint32_t caching_enter_order(caching *c); // of a segment that is being added
void caching_leave_order(caching *c, const caching_segment *s);
// How many of the segments there are were taken before this one; 0 where segments do not decide.
uint32_t caching_segment_rank(const caching *c, const caching_segment *s);
// Of each record how many blocks are older, where blocks decide: the caller's to hr_free; NULL also when host memory
// is short.
uint32_t *caching_block_ranks(const caching *c);

// ---- segments and the ladder (caching_segments.c) --------------------------------------------------------------

enum { CACHING_FRESH = 4 }; // records that serving a request takes at most: segment, mapping, split

// The segment that an address lies in.
uint32_t caching_segment_at(const caching *c, uint64_t address);
// Room for one more, without which none may be added; false when host memory is short.
bool caching_reserve_segment(caching *c);
void caching_add_segment(caching *c, const caching_segment *s); // and gives it its order
void caching_drop_segment(caching *c, uint32_t at);
// May the driver be asked for so much more?
bool caching_may_grow(const caching *c, uint64_t bytes);
// Everything that can be done once the pools have nothing: *block is in no tree then. OOM or NOMEM.
HR_MUST_CHECK hr_status caching_climb(caching *c, const caching_request *r, uint32_t *block);

// ---- expandable segments (caching_expandable.c) ----------------------------------------------------------------

uint64_t caching_handle_bytes(const caching *c, caching_pool pool);
// Maps what is missing of `r` at the lowest address that has room for it: *block, in no tree. False when the driver
// refuses; what was mapped by then is free.
bool caching_expand(caching *c, const caching_request *r, uint32_t *block);
// Unmaps the whole empty handles of every free block of the pool, in the order of its trees. NOMEM when that needs more records than there is
// host memory for; what was unmapped by then stays so.
HR_MUST_CHECK hr_status caching_unmap_free(caching *c, caching_pool pool);

// ---- events (caching_events.c) ---------------------------------------------------------------------------------

// How many streams have been recorded for a block.
uint32_t caching_count_uses(const caching *c, uint32_t block);
void caching_settle_events(caching *c); // all of them have happened

#endif
