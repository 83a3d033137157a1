// SPDX-License-Identifier: Apache-2.0
#include "batch_norm_shape.h"

enum {
    WARP = 32,
    PACK_BYTES = 16,
    PARTS_PER_PROCESSOR = 4, // blocks of 8 warps: half of the warps that a multiprocessor holds
    FLIGHTS = 2,             // of a block at least, where that leaves no multiprocessor without one
    JOINED_LEAST = 8,        // floats of a sector
};

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t divided_up(int64_t count, int64_t by)
{
    return (count + by - 1) / by;
}

// Lanes that join a channel's entries.
static int32_t group_of(int64_t entries)
{
    int32_t group = 1;
    while (group < WARP && group * 4 <= entries) {
        group *= 2;
    }
    return group;
}

batch_norm_division batch_norm_divide(const op_operand *t)
{
    const int64_t channels = t->shape.dim[t->shape.rank - 1];
    uint64_t count = 0;
    (void)shape_elements(&t->shape, &count); // a tensor that is there
    const int64_t total = (int64_t)count;
    int64_t v = PACK_BYTES / (int64_t)dtype_bytes((hr_dtype)t->dtype);
    int64_t period = channels / common_divisor(channels, v);
    if (total % v != 0 || (channels % v != 0 && period > BATCH_NORM_THREADS)) {
        v = 1;
        period = channels;
    }
    const bool wide =
        period > WARP && period * v == channels; // a period is a row, and more than a warp reads at once
    const int64_t tiles = wide ? divided_up(period, WARP) : 1, across = divided_up(period, tiles);
    const int64_t down = BATCH_NORM_THREADS / across, width = across * down, step = period * down;
    const int64_t entries = wide ? down : width * v / channels;
    return (batch_norm_division){.walk = {.packs = total / v,
                                          .step = step,
                                          .steps = divided_up(total / v, step),
                                          .period = period,
                                          .channels = channels,
                                          .rows = total / channels,
                                          .span = wide ? across * v : channels,
                                          .width = (int32_t)width,
                                          .across = (int32_t)across,
                                          .entries = (int32_t)entries,
                                          .group = group_of(entries),
                                          .vectors = v > 1},
                                 .tiles = (uint32_t)tiles,
                                 .threads = (uint32_t)(divided_up(width, WARP) * WARP),
                                 .values = (uint32_t)(width * v)};
}

// Chunks of the fewest equal rounds of `each` steps; no more parts than chunks: one without values has no mean.
static batch_norm_parts in_rounds(int64_t steps, int64_t parts, int64_t each, uint32_t flight)
{
    const int64_t chunk = divided_up(each, divided_up(each, flight)), chunks = divided_up(steps, chunk);
    return (batch_norm_parts){.count = (uint32_t)at_most(parts, chunks), .chunk = (int32_t)chunk};
}

int64_t batch_norm_steps_most(const batch_norm_division *d, const batch_norm_parts *p)
{
    return divided_up(divided_up(d->walk.steps, p->chunk), p->count) * p->chunk;
}

batch_norm_parts batch_norm_parts_of(const batch_norm_division *d, uint32_t multiprocessors, uint32_t flight)
{
    const int64_t tiles = d->tiles, steps = d->walk.steps;
    const int64_t blocks = divided_up(steps, (int64_t)flight * FLIGHTS) * tiles;
    const int64_t for_each = at_most(divided_up(blocks, multiprocessors), PARTS_PER_PROCESSOR);
    const int64_t parts = at_most(divided_up(for_each * multiprocessors, tiles), steps);
    const batch_norm_parts all = in_rounds(steps, parts, steps / parts, flight),
                           fewer = in_rounds(steps, parts, divided_up(steps, parts), flight);
    return batch_norm_steps_most(d, &fewer) < batch_norm_steps_most(d, &all) ? fewer : all;
}

batch_norm_join batch_norm_join_of(const batch_norm_division *d, uint32_t parts, uint32_t multiprocessors)
{
    batch_norm_join j = {.across = WARP};
    while (j.across > JOINED_LEAST && divided_up(d->walk.channels, j.across) < multiprocessors) {
        j.across /= 2;
    }
    j.threads = 2 * WARP;
    while (j.threads < BATCH_NORM_JOIN_THREADS && j.threads < parts * j.across) {
        j.threads *= 2;
    }
    j.blocks = (uint32_t)divided_up(d->walk.channels, j.across);
    return j;
}
