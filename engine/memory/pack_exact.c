// SPDX-License-Identifier: Apache-2.0
#include "memory/pack_exact.h"

#include "base/hash.h"
#include "base/host_mem.h"
#include "memory/pack_niche.h"
#include "memory/pack_state.h"

enum { POLL_NODES = 256, POLL_WORK = 1 << 16, TABLE_BITS = 10, TABLE_BITS_MAX = 20 };

// Sections [begin, end) that are to be completed, on their own.
typedef struct part {
    uint32_t begin, end;
    uint32_t parent; // the frame whose choice cut them out
    uint32_t next;   // that is to be completed too
} part;

// A part at work: the question asked, the answers left, and how to get back to before the answer.
typedef struct frame {
    uint32_t begin, end, parent;
    uint32_t waiting, part_count; // of the parts, without this one
    uint32_t trail_count;
    uint32_t answer, answer_end; // next one, behind the last one
    uint32_t section;
    uint64_t key;
} frame;

struct pack_exact {
    pack_state state;
    pack_niches niches;
    VEC(frame) frames;
    VEC(part) parts;
    VEC(uint32_t) answers; // items, PACK_NONE: a loss
    uint32_t waiting;      // parts, linked; PACK_NONE: none
    uint64_t *failed;      // [1 << table_bits] hashes of what cannot be completed
    unsigned table_bits;
    uint32_t failed_count; // entered since the table has this size
    pack_dive *dive;       // at work
    uint64_t next_poll;    // in its nodes
    bool is_over;          // by its limit or its stop
};

pack_exact *pack_exact_create(const pack_items *items)
{
    pack_exact *e = hr_calloc(1, sizeof *e);
    if (e == NULL) {
        return NULL;
    }
    e->table_bits = TABLE_BITS;
    e->failed = hr_calloc((size_t)1 << e->table_bits, sizeof *e->failed);
    if (!pack_state_init(&e->state, items) || !pack_niches_init(&e->niches, &e->state) || e->failed == NULL) {
        pack_exact_destroy(e);
        return NULL;
    }
    return e;
}

void pack_exact_destroy(pack_exact *e)
{
    if (e == NULL) {
        return;
    }
    pack_state_deinit(&e->state);
    pack_niches_deinit(&e->niches);
    vec_deinit(&e->frames);
    vec_deinit(&e->parts);
    vec_deinit(&e->answers);
    hr_free(e->failed);
    hr_free(e);
}

void pack_exact_read(const pack_exact *e, uint64_t *offsets)
{
    for (uint32_t k = 0; k < e->state.count; k++) {
        offsets[e->state.items[k].id] = e->state.offset[k];
    }
}

// ---- parts ----------------------------------------------------------------------------------------------------

static bool reserve_parts(pack_exact *e, uint32_t sections)
{
    return vec_reserve_((void **)&e->parts.data, &e->parts.capacity, e->parts.count + sections,
                        sizeof *e->parts.data);
}

// Adds what is left of [begin, end) to the parts that are to be completed; the shortest comes first.
static void add_parts(pack_exact *e, uint32_t begin, uint32_t end, uint32_t parent)
{
    const pack_section *sections = e->state.sections;
    uint32_t first_new = e->parts.count;
    for (uint32_t t = begin; t < end; t++) {
        if (sections[t].rest == 0) {
            continue;
        }
        uint32_t from = t;
        while (sections[t].crossing > 0) {
            t++;
        }
        uint32_t at = e->parts.count++;
        for (; at > first_new && e->parts.data[at - 1].end - e->parts.data[at - 1].begin < t + 1 - from;
             at--) {
            e->parts.data[at] = e->parts.data[at - 1];
        }
        e->parts.data[at] = (part){from, t + 1, parent, PACK_NONE};
    }
    for (uint32_t k = first_new; k < e->parts.count; k++) {
        e->parts.data[k].next = e->waiting;
        e->waiting = k;
    }
}

// ---- frames ---------------------------------------------------------------------------------------------------

static uint64_t *slot_of(const pack_exact *e, uint64_t key)
{
    return &e->failed[key >> (64 - e->table_bits)];
}

// A later failure takes the slot of an earlier one.
static void remember(pack_exact *e, uint64_t key)
{
    *slot_of(e, key) = key;
    e->failed_count++;
}

// A table that is half full is exchanged for one of four times its size.
static bool widen_table(pack_exact *e)
{
    uint32_t size = UINT32_C(1) << e->table_bits;
    if (e->failed_count < size / 2 || e->table_bits == TABLE_BITS_MAX) {
        return true;
    }
    uint64_t *old = e->failed, *wider = hr_calloc((size_t)size * 4, sizeof *wider);
    if (wider == NULL) {
        return false;
    }
    e->failed = wider;
    e->table_bits += 2;
    e->failed_count = 0;
    for (uint32_t k = 0; k < size; k++) {
        if (old[k] != 0) {
            remember(e, old[k]);
        }
    }
    hr_free(old);
    return true;
}

static bool push_answer(pack_exact *e, uint32_t answer)
{
    uint32_t *pushed = vec_push(&e->answers);
    if (pushed != NULL) {
        *pushed = answer;
    }
    return pushed != NULL;
}

static bool push_answers(pack_exact *e, const pack_question *q)
{
    for (uint32_t k = 0; k < q->count; k++) {
        if (!push_answer(e, e->niches.answers[k])) {
            return false;
        }
    }
    return !q->may_lose || push_answer(e, PACK_NONE);
}

// Begins with a part: a frame with its question, unless the part cannot be completed.
static bool open_frame(pack_exact *e, const part *p, bool *is_open)
{
    pack_state *s = &e->state;
    pack_question q;
    *is_open = false;
    if (!pack_state_reserve(s) || !reserve_parts(e, p->end - p->begin)) {
        return false;
    }
    if (!pack_state_tighten(s, p->begin, p->end, e->niches.is_hasty)) {
        return true;
    }
    uint64_t key = pack_state_hash(s, p->begin, p->end);
    if (*slot_of(e, key) == key) {
        return true;
    }
    if (!pack_niches_ask(&e->niches, s, p->begin, p->end, &q)) {
        remember(e, key);
        return true;
    }
    uint32_t answer = e->answers.count;
    frame *f = vec_push(&e->frames);
    if (f == NULL || !push_answers(e, &q)) {
        return false;
    }
    *f = (frame){p->begin,       p->end, p->parent,        e->waiting, e->parts.count,
                 s->trail.count, answer, e->answers.count, q.section,  key};
    return *is_open = true;
}

// One more node, unless the dive is over. The larger the problem, the fewer nodes between two polls.
static bool count_node(pack_exact *e)
{
    pack_dive *d = e->dive;
    e->is_over = d->nodes >= d->node_limit;
    if (!e->is_over && d->nodes >= e->next_poll) {
        uint64_t nodes = POLL_WORK / e->state.count;
        e->next_poll = d->nodes + (nodes < 1 ? 1 : nodes < POLL_NODES ? nodes : POLL_NODES);
        e->is_over = d->stop != NULL && d->stop(d->stop_context, d->nodes);
    }
    d->nodes += !e->is_over;
    return !e->is_over;
}

static bool take_answer(pack_exact *e, const frame *f, uint32_t answer)
{
    pack_state *s = &e->state;
    if (answer != PACK_NONE) {
        return pack_state_place(s, answer);
    }
    uint64_t floor = pack_niches_next_floor(s, f->begin, f->section);
    return floor < s->capacity && pack_state_raise(s, f->section, floor) &&
           !pack_state_has_hole(s, f->section);
}

// Back to a frame, and on to its next answer that leads to no contradiction. False when there is none, or when the
// dive is over.
static bool advance(pack_exact *e, uint32_t at)
{
    frame *f = &e->frames.data[at];
    e->frames.count = at + 1;
    e->answers.count = f->answer_end;
    while (f->answer < f->answer_end) {
        if (!count_node(e)) {
            return false;
        }
        pack_state_undo(&e->state, f->trail_count);
        e->waiting = f->waiting;
        e->parts.count = f->part_count;
        if (take_answer(e, f, e->answers.data[f->answer++])) {
            add_parts(e, f->begin, f->end, at);
            return true;
        }
    }
    remember(e, f->key);
    return false;
}

// ---- dive -----------------------------------------------------------------------------------------------------

static bool begin_dive(pack_exact *e, pack_dive *d)
{
    d->nodes = 0;
    e->dive = d;
    e->next_poll = 0;
    e->is_over = false;
    e->frames.count = e->parts.count = e->answers.count = 0;
    e->waiting = PACK_NONE;
    pack_state_reset(&e->state, d->capacity_bytes);
    pack_niches_choose_style(&e->niches, &e->state, d->round, d->seed);
    if (!reserve_parts(e, e->state.section_count) || !widen_table(e)) {
        return false;
    }
    add_parts(e, 0, e->state.section_count, PACK_NONE);
    return true;
}

// Puts the part at the head of the list to work, and goes on from it, or from the last frame that has another answer.
static pack_verdict step(pack_exact *e)
{
    part p = e->parts.data[e->waiting];
    bool is_open = false;
    e->waiting = p.next;
    if (!open_frame(e, &p, &is_open)) {
        return PACK_NO_MEMORY;
    }
    uint32_t at = is_open ? e->frames.count - 1 : p.parent;
    while (at != PACK_NONE && !advance(e, at)) {
        if (e->is_over) {
            return PACK_STOPPED;
        }
        at = e->frames.data[at].parent;
    }
    return at == PACK_NONE ? PACK_EXHAUSTED : PACK_FOUND;
}

pack_verdict pack_exact_dive(pack_exact *e, pack_dive *d)
{
    pack_verdict verdict = begin_dive(e, d) ? PACK_FOUND : PACK_NO_MEMORY;
    while (verdict == PACK_FOUND && e->waiting != PACK_NONE) {
        verdict = step(e);
    }
    return verdict;
}
