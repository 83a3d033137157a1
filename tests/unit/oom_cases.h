// SPDX-License-Identifier: Apache-2.0
// Out-of-memories of a known cause: a training is drawn, one thing is put into it that it could do without, and the limit lies
// between what it takes with it and what it takes without. The judge is the plain player (unit/scenario_play.h): the case
// counts only where it fails, and goes through once that one thing is gone.
#ifndef TESTS_UNIT_OOM_CASES_H
#define TESTS_UNIT_OOM_CASES_H

#include "headroom/report.h"
#include "headroom/units.h"

#include "unit/scenario_play.h"

enum { OOM_LAYERS_MAX = 10, OOM_TINY_MAX = 4000 };

typedef struct oom_case {
    hr_oom_cause cause;
    uint64_t seed;
    const char *kind; // the allocator
    bool growth, marks_steps;
    bool keeps_losses; // next to nothing that every step leaves behind, which is the cause of nothing
    uint64_t limit_bytes;
    uint64_t card_bytes; // outside, limit: what the card would have had, or has
    uint32_t layers, steps;
    uint64_t weights[OOM_LAYERS_MAX], outputs[OOM_LAYERS_MAX], input_bytes;
    uint64_t
        warm_bytes; // that the first step alone has beside the others: a search for algorithms, an evaluation
    uint64_t thing_bytes; // of what could go, one piece
    uint32_t things;      // pieces
} oom_case;

static inline uint64_t oom_between(uint64_t *seed, uint64_t least, uint64_t most)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return least + (*seed >> 33) % (most - least + 1);
}

static inline bool oom_leaks(const oom_case *c)
{
    return c->cause == HR_OOM_LEAK || c->cause == HR_OOM_NEAR_FULL;
}

// ---- traces ---------------------------------------------------------------------------------------------------

typedef struct oom_maker {
    trace *t;
    trace_builder builder;
    uint64_t next_address;
    uint32_t row;
    uint16_t stream;
} oom_maker;

static inline void oom_add(oom_maker *m, trace_kind kind, uint64_t bytes, const char *name, uint64_t address)
{
    trace_event e = {.kind = (uint8_t)kind,
                     .bytes = bytes,
                     .block = HR_NO_ID,
                     .name = HR_NO_ID,
                     .row = m->row++,
                     .stream = m->stream};
    if (name != NULL) {
        e.name = intern_add(&m->t->names, name, strlen(name));
    }
    ck_assert_int_eq(trace_add(&m->builder, e, address, NULL), HR_OK);
}

static inline uint64_t oom_take(oom_maker *m, const char *name, uint64_t bytes)
{
    oom_add(m, TRACE_ALLOC, bytes, name, ++m->next_address);
    return m->next_address;
}

static inline void oom_give(oom_maker *m, uint64_t address)
{
    oom_add(m, TRACE_FREE, 0, NULL, address);
}

static inline const char *oom_name(char name[32], uint32_t layer, const char *what)
{
    (void)snprintf(name, 32, "layer%u/%s", layer, what);
    return name;
}

// With the thing, or without it; `scale` is the batch's.
typedef struct oom_training {
    const oom_case *c;
    bool with;
    uint64_t queue[16]; // batches that wait
    uint32_t queued;
} oom_training;

static inline void oom_weights(oom_maker *m, const oom_training *r)
{
    char name[32];
    for (uint32_t k = 0; k < r->c->layers; k++) {
        const bool twice = r->with && r->c->cause == HR_OOM_DOUBLE_COPY;
        const uint64_t initial =
            twice ? oom_take(m, oom_name(name, k, "kernel:initial"), r->c->weights[k]) : 0;
        (void)oom_take(m, oom_name(name, k, "kernel"), r->c->weights[k]);
        if (twice) {
            oom_give(m, initial);
        }
    }
}

// A new batch comes in behind, the oldest is used and goes.
static inline uint64_t oom_batch(oom_maker *m, oom_training *r)
{
    if (r->c->cause != HR_OOM_PIPELINE) {
        return oom_take(m, "batch", r->c->input_bytes);
    }
    const uint32_t depth = r->with ? r->c->things : 1;
    while (r->queued < depth) {
        r->queue[r->queued++] = oom_take(m, "batch", r->c->thing_bytes);
    }
    const uint64_t used = r->queue[0];
    memmove(r->queue, r->queue + 1, --r->queued * sizeof *r->queue);
    return used;
}

static inline void oom_backward(oom_maker *m, const oom_case *c, const uint64_t *outputs)
{
    char name[32];
    uint64_t grads[OOM_LAYERS_MAX], below = 0;
    for (uint32_t k = c->layers; k-- > 0;) {
        const uint64_t above = below;
        const bool frozen =
            c->cause == HR_OOM_DOUBLE_COPY && k + 1 == c->layers; // its gradient would be a third
        grads[k] = oom_take(m, oom_name(name, k, "kernel:grad"), frozen ? HR_KIB : c->weights[k]);
        below = oom_take(m, oom_name(name, k, "out:grad"), c->outputs[k] / 2);
        oom_give(m, outputs[k]);
        if (above != 0) {
            oom_give(m, above);
        }
    }
    oom_give(m, below);
    for (uint32_t k = 0; k < c->layers; k++) {
        oom_give(m, grads[k]);
    }
}

static inline void oom_step(oom_maker *m, oom_training *r, uint32_t scale)
{
    const oom_case *c = r->c;
    char name[32];
    uint64_t outputs[OOM_LAYERS_MAX];
    const uint64_t batch = oom_batch(m, r);
    for (uint32_t k = 0; k < c->layers; k++) {
        const uint64_t scratch =
            k % 3 == 1 ? oom_take(m, oom_name(name, k, "scratch"), c->outputs[k] / 3) : 0;
        outputs[k] = oom_take(m, oom_name(name, k, "out"), c->outputs[k] * scale / 4);
        if (scratch != 0) {
            oom_give(m, scratch);
        }
    }
    if (r->with && oom_leaks(c)) {
        (void)oom_take(m, "train.py:31 losses", c->thing_bytes);
    }
    if (c->keeps_losses) {
        (void)oom_take(m, "train.py:12 loss", 4);
    }
    oom_backward(m, c, outputs);
    oom_give(m, batch);
    if (c->marks_steps) {
        oom_add(m, TRACE_STEP, 0, NULL, 0);
    }
}

// Many blocks that are far smaller than what an allocator gives out; or their bytes in one piece.
static inline void oom_tiny(oom_maker *m, const oom_case *c, bool with)
{
    if (!with) {
        (void)oom_take(m, "tables", c->thing_bytes * c->things);
    }
    for (uint32_t k = 0; with && k < c->things; k++) {
        (void)oom_take(m, "table", c->thing_bytes);
    }
}

// Blocks that go and small ones between them that stay; or these first.
static inline void oom_pins(oom_maker *m, const oom_case *c, bool with)
{
    uint64_t blocks[64];
    for (uint32_t k = 0; !with && k < c->things; k++) {
        (void)oom_take(m, "pin", HR_KIB);
    }
    for (uint32_t k = 0; k < c->things; k++) {
        blocks[k] = oom_take(m, "passing", c->thing_bytes);
        if (with) {
            (void)oom_take(m, "pin", HR_KIB);
        }
    }
    for (uint32_t k = 0; k < c->things; k++) {
        oom_give(m, blocks[k]);
    }
    oom_give(m, oom_take(m, "wide", c->thing_bytes * c->things * 3 / 4));
}

// What one stream has cached and split, another one wants; or the same one.
static inline void oom_streams(oom_maker *m, const oom_case *c, bool with)
{
    m->stream = with;
    const uint64_t large = oom_take(m, "side", c->thing_bytes);
    oom_give(m, large);
    (void)oom_take(m, "side/kept", 2 * HR_MIB);
    m->stream = 0;
    oom_give(m, oom_take(m, "main", c->thing_bytes * 3 / 4));
}

static inline trace oom_trace(const oom_case *c, bool with)
{
    trace t = {.format = "made"};
    oom_maker m = {.t = &t};
    oom_training r = {.c = c, .with = with};
    trace_builder_init(&m.builder, &t);
    oom_weights(&m, &r);
    if (c->cause == HR_OOM_ROUNDING) {
        oom_tiny(&m, c, with);
    }
    for (uint32_t k = 0; k < c->steps; k++) {
        const bool larger = c->cause == HR_OOM_RETRIES && k % 3 == 2;
        if (k == 0 && c->warm_bytes > 0) {
            oom_give(&m, oom_take(&m, "warm", c->warm_bytes));
        }
        const bool last = c->cause == HR_OOM_CAPACITY && c->things > 0 && k + 1 == c->steps;
        oom_step(&m, &r, last ? 8 : larger ? 5 : 4);
    }
    if (c->cause == HR_OOM_FRAGMENTATION) {
        oom_pins(&m, c, with);
    } else if (c->cause == HR_OOM_OTHER_STREAM) {
        oom_streams(&m, c, with);
    }
    trace_builder_deinit(&m.builder);
    t.rows = m.row;
    return t;
}

// ---- cases ----------------------------------------------------------------------------------------------------

static inline played oom_play(const oom_case *c, bool with, uint64_t limit_bytes)
{
    allocator_config config = allocator_config_of(c->kind, limit_bytes);
    config.growth = c->growth;
    trace t = oom_trace(c, with);
    const played p = play_trace(&t, &config);
    trace_deinit(&t);
    return p;
}

static inline void oom_draw_thing(oom_case *c, uint64_t *seed)
{
    switch (c->cause) {
    case HR_OOM_NEAR_FULL:
        c->warm_bytes = oom_between(seed, 0, 3) * 300 * HR_MIB;
        c->steps = (uint32_t)oom_between(seed, 8, 24);
        c->thing_bytes = oom_between(seed, 256 * HR_KIB, 24 * HR_MIB);
        break;
    case HR_OOM_LEAK:
        c->steps = (uint32_t)oom_between(seed, 8, 24);
        c->thing_bytes = oom_between(seed, 256 * HR_KIB, 24 * HR_MIB);
        break;
    case HR_OOM_PIPELINE:
        c->things = (uint32_t)oom_between(seed, 3, 10);
        c->steps = c->things + 6;
        c->thing_bytes = oom_between(seed, 2 * HR_MIB, 30 * HR_MIB);
        break;
    case HR_OOM_DOUBLE_COPY:
        c->weights[c->layers - 1] = oom_between(seed, 200, 500) * HR_MIB; // the classifier's
        break;
    case HR_OOM_ROUNDING:
        c->kind = "bfc";
        c->things = (uint32_t)oom_between(seed, 1000, OOM_TINY_MAX);
        c->thing_bytes = oom_between(seed, 1, 128);
        break;
    case HR_OOM_FRAGMENTATION:
        c->things = (uint32_t)oom_between(seed, 3, 40);
        c->thing_bytes = oom_between(seed, 4, 64) * HR_MIB;
        break;
    case HR_OOM_OTHER_STREAM:
        c->kind = "caching";
        c->growth = false;
        c->thing_bytes = oom_between(seed, 40, 900) * HR_MIB;
        break;
    case HR_OOM_RETRIES:
        c->kind = "caching";
        c->growth = false;
        c->steps = (uint32_t)oom_between(seed, 6, 18);
        break;
    case HR_OOM_CAPACITY: // at once, or when a batch comes that is twice as large
        c->things = (uint32_t)oom_between(seed, 0, 1);
        c->steps = c->things > 0 ? (uint32_t)oom_between(seed, 5, 12) : c->steps;
        break;
    case HR_OOM_NONE:
    case HR_OOM_OUTSIDE:
    case HR_OOM_LIMIT:
    case HR_OOM_CAUSE_COUNT:
        break;
    }
}

static inline oom_case oom_draw(hr_oom_cause cause, uint64_t *seed)
{
    oom_case c = {.cause = cause, .seed = *seed, .layers = (uint32_t)oom_between(seed, 3, OOM_LAYERS_MAX)};
    c.kind = oom_between(seed, 0, 1) == 0 ? "bfc" : "caching";
    c.marks_steps = oom_between(seed, 0, 1) == 0;
    c.keeps_losses = oom_between(seed, 0, 1) == 0;
    c.steps = (uint32_t)oom_between(seed, 1, 4);
    c.input_bytes = oom_between(seed, HR_MIB, 8 * HR_MIB);
    for (uint32_t k = 0; k < c.layers; k++) {
        c.weights[k] = oom_between(seed, 64 * HR_KIB, 12 * HR_MIB);
        c.outputs[k] = oom_between(seed, HR_MIB, 40 * HR_MIB);
    }
    oom_draw_thing(&c, seed);
    const uint64_t endless = UINT64_C(64) * HR_GIB;
    const uint64_t least = oom_play(&c, false, endless).end.peak_in_use_bytes;
    const uint64_t most = oom_play(&c, true, endless).end.peak_in_use_bytes;
    const uint64_t thing = cause == HR_OOM_LEAK ? 2 * c.thing_bytes : 0; // it shows behind the first steps
    c.limit_bytes =
        cause == HR_OOM_CAPACITY || cause == HR_OOM_OUTSIDE || cause == HR_OOM_LIMIT
            ? least * oom_between(seed, c.things > 0 ? 85 : 50, 95) / 100
        : cause == HR_OOM_RETRIES || cause == HR_OOM_FRAGMENTATION || cause == HR_OOM_OTHER_STREAM ||
                cause == HR_OOM_NEAR_FULL
            ? most * oom_between(seed, 100, 140) / 100
            : least + thing + (most > least + thing ? oom_between(seed, 0, most - least - thing) : 0);
    c.limit_bytes &= ~((cause == HR_OOM_ROUNDING ? 256 : 2 * HR_MIB) - 1);
    c.card_bytes = c.limit_bytes + least * oom_between(seed, 100, 300) / 100;
    c.card_bytes &= ~(2 * HR_MIB - 1);
    return c;
}

// It fails so, and goes through without the thing; where bytes were short and where they were not, as the cause has it.
static inline bool oom_is_case(const oom_case *c)
{
    const played with = oom_play(c, true, c->limit_bytes);
    if (c->cause == HR_OOM_RETRIES) {
        return with.failures == 0 && with.retries >= 1 && oom_play(c, true, 4 * c->limit_bytes).retries == 0;
    }
    if (c->cause == HR_OOM_NEAR_FULL) {
        return with.failures == 0 && with.retries == 0;
    }
    if (with.failures == 0) {
        return false;
    }
    const uint64_t in_use = with.at_failure.in_use_bytes, free_bytes = c->limit_bytes - in_use;
    const uint64_t waste = in_use - with.at_failure.requested_bytes, needed = with.failed_bytes;
    const bool short_of_bytes = free_bytes < needed, wasted = free_bytes + waste >= needed;
    if (c->cause == HR_OOM_CAPACITY) {
        return short_of_bytes && !wasted;
    }
    if (c->cause == HR_OOM_OUTSIDE || c->cause == HR_OOM_LIMIT) {
        return short_of_bytes && !wasted && oom_play(c, true, c->card_bytes).failures == 0;
    }
    // Of these the whole trace asks for more than the limit, so that neither waste nor holes are what is too much.
    const bool asks_for_more =
        oom_play(c, true, UINT64_C(64) * HR_GIB).end.peak_requested_bytes > c->limit_bytes;
    const bool as_it_should = c->cause == HR_OOM_FRAGMENTATION || c->cause == HR_OOM_OTHER_STREAM
                                  ? !short_of_bytes
                              : c->cause == HR_OOM_ROUNDING ? short_of_bytes && wasted && !asks_for_more
                                                            : short_of_bytes && asks_for_more;
    return as_it_should && oom_play(c, false, c->limit_bytes).failures == 0;
}

static inline oom_case oom_next_case(hr_oom_cause cause, uint64_t *seed)
{
    for (int tries = 0; tries < 400; tries++) {
        const oom_case c = oom_draw(cause, seed);
        if (oom_is_case(&c)) {
            return c;
        }
    }
    ck_abort_msg("no case of %s among 400 that were drawn", hr_oom_cause_name(cause));
}

#endif
