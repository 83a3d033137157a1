// SPDX-License-Identifier: Apache-2.0
// Streaming attention: y and one log-sum-exp per query, with a tile of scores at a time. A worker takes a tile of
// queries of one head and all keys that it sees, so that results do not depend on how many workers there are.
#include "attention.h"

#include <math.h>

#include "base/workers.h"
#include "exp.h"
#include "simd.h"

// The scratch of one worker.
typedef struct scratch {
    float *turned;  // queries [features][QUERIES]
    float *scores;  // [KEYS][QUERIES], then weights
    float *kept;    // the same: the factors of dropout
    float *y;       // [QUERIES][padded]
    float *values;  // [KEYS][padded], where they must be copied
    float *largest; // [QUERIES]: score so far
    float *sum;     // [QUERIES]: of exp(score - largest)
    float *factor;  // [QUERIES]: of what was summed before the last tile
} scratch;

typedef struct job {
    attention_sizes sizes;
    attention_dropout dropout;
    const gemm_tiles *tiles;
    const float *q, *k, *v;
    float *y, *lse;
    float *workspace;
    int64_t tiles_of_head;
} job;

static int64_t scratch_floats(const attention_sizes *s, bool drops)
{
    return ATTENTION_QUERIES * s->padded * 2 + ATTENTION_KEYS * ATTENTION_QUERIES * (drops ? 2 : 1) +
           ATTENTION_KEYS * s->padded + 3 * ATTENTION_QUERIES;
}

static scratch scratch_of(const job *j, uint32_t worker)
{
    const attention_sizes *s = &j->sizes;
    scratch r = {.turned = j->workspace + scratch_floats(s, j->dropout.drops) * worker};
    r.scores = r.turned + ATTENTION_QUERIES * s->padded;
    r.y = r.scores + ATTENTION_KEYS * ATTENTION_QUERIES;
    r.values = r.y + ATTENTION_QUERIES * s->padded;
    r.largest = r.values + ATTENTION_KEYS * s->padded;
    r.sum = r.largest + ATTENTION_QUERIES;
    r.factor = r.sum + ATTENTION_QUERIES;
    r.kept = r.factor + ATTENTION_QUERIES;
    return r;
}

// ---- one tile ---------------------------------------------------------------------------------------------

#define PICK(mask, a, b) ((f32x16)(((i32x16)(a) & (mask)) | ((i32x16)(b) & ~(mask))))

// One register of queries: their scores of `keys` keys, the first `all` of which every lane sees and the others
// those lanes whose `last` is not before them, become weights against the new largest score.
CPU_INLINE void weigh_lanes(float *scores, int64_t all, int64_t keys, const i32x16 *last, float *largest,
                            float *sum, float *factor)
{
    const f32x16 before = F32X16(largest), lowest = {0.0f};
    f32x16 most = before, total = lowest;
    for (int64_t k = 0; k < all; k++) {
        const f32x16 score = F32X16(scores + k * ATTENTION_QUERIES);
        most = PICK(score > most, score, most);
    }
    for (int64_t k = all; k < keys; k++) {
        const f32x16 score = F32X16(scores + k * ATTENTION_QUERIES);
        most = PICK((score > most) & (*last >= (int32_t)k), score, most);
    }
    for (int64_t k = 0; k < all; k++) {
        f32x16 weight = F32X16(scores + k * ATTENTION_QUERIES) - most;
        exp_lanes(&weight);
        F32X16W(scores + k * ATTENTION_QUERIES) = weight;
        total += weight;
    }
    for (int64_t k = all; k < keys; k++) {
        f32x16 weight = F32X16(scores + k * ATTENTION_QUERIES) - most;
        exp_lanes(&weight);
        weight = (f32x16)((i32x16)weight & (*last >= (int32_t)k));
        F32X16W(scores + k * ATTENTION_QUERIES) = weight;
        total += weight;
    }
    f32x16 share = before - most;
    exp_lanes(&share);
    F32X16W(largest) = most;
    F32X16W(factor) = share;
    F32X16W(sum) = F32X16(sum) * share + total;
}

CPU_HOT static void weigh(const scratch *r, int64_t queries, int64_t keys, int64_t shift)
{
    const i32x16 lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    for (int64_t q = 0; q < queries; q += CPU_LANES) {
        const int64_t any = attention_min(keys, shift + q + CPU_LANES);
        const i32x16 last = lanes + (int32_t)(shift + q);
        weigh_lanes(r->scores + q, attention_min(any, shift + q + 1), any, &last, r->largest + q, r->sum + q,
                    r->factor + q);
    }
}

CPU_HOT static void rescale(float *y, const float *factor, int64_t queries, int64_t padded)
{
    for (int64_t q = 0; q < queries; q++) {
        for (int64_t d = 0; d < padded; d += CPU_LANES) {
            F32X16W(y + q * padded + d) = F32X16(y + q * padded + d) * factor[q];
        }
    }
}

// Queries [q, q + count) of a head meet the keys [at, at + keys). `k` and `v` are the head's.
static void meet(const job *j, const scratch *r, const float *k, const float *v, int64_t head, int64_t q,
                 int64_t count, int64_t at, int64_t keys)
{
    const attention_sizes *s = &j->sizes;
    const int64_t shift = attention_shift(s, q, at);
    int64_t row = 0;
    const float *values = attention_right(s, r->values, v + at * s->width, keys, &row);
    const attention_product score = {.m = keys,
                                     .n = (count + CPU_LANES - 1) / CPU_LANES * CPU_LANES,
                                     .depth = s->features,
                                     .a = k + at * s->width,
                                     .a_row = s->width,
                                     .a_step = 1,
                                     .b = r->turned,
                                     .b_row = ATTENTION_QUERIES,
                                     .c = r->scores,
                                     .c_row = ATTENTION_QUERIES,
                                     .cut = CUT_ROWS,
                                     .shift = shift};
    const attention_product collect = {.m = count,
                                       .n = s->padded,
                                       .depth = keys,
                                       .a = r->scores,
                                       .a_row = 1,
                                       .a_step = ATTENTION_QUERIES,
                                       .b = values,
                                       .b_row = row,
                                       .c = r->y,
                                       .c_row = s->padded,
                                       .add = at > 0,
                                       .cut = CUT_DEPTH_END,
                                       .shift = shift};
    attention_multiply(j->tiles, &score);
    weigh(r, count, keys, shift);
    if (j->dropout.drops) {
        attention_draw(&j->dropout, s, head, q, count, at, keys, r->kept);
        attention_drop(r->scores, r->kept, keys);
    }
    if (at > 0) {
        rescale(r->y, r->factor, count, s->padded);
    }
    attention_multiply(j->tiles, &collect);
}

CPU_HOT static void divide_row(float *to, const float *from, float sum, int64_t count)
{
    const float inverse = 1.0f / sum;
    for (int64_t d = 0; d < count; d++) {
        to[d] = from[d] * inverse;
    }
}

static void attend(const job *j, const scratch *r, int64_t head, int64_t q)
{
    const attention_sizes *s = &j->sizes;
    const int64_t count = attention_min(ATTENTION_QUERIES, s->queries - q);
    const int64_t end = attention_keys_seen(s, q, count), first_key = attention_place(s, head, s->keys);
    const int64_t place = attention_place(s, head, s->queries) + q * s->width;
    attention_turn(s, r->turned, j->q + place, count);
    for (int64_t i = 0; i < ATTENTION_QUERIES; i++) {
        r->largest[i] = -INFINITY;
        r->sum[i] = 0.0f;
    }
    for (int64_t at = 0; at < end; at += ATTENTION_KEYS) {
        meet(j, r, j->k + first_key, j->v + first_key, head, q, count, at,
             attention_min(ATTENTION_KEYS, end - at));
    }
    for (int64_t i = 0; i < count; i++) {
        divide_row(j->y + place + i * s->width, r->y + i * s->padded, r->sum[i], s->features);
        j->lse[head * s->queries + q + i] = (float)((double)r->largest[i] + log((double)r->sum[i]));
    }
}

// Tiles of a head from both ends in turn: with a mask the last ones see the most keys, and each worker gets its
// share of both.
static void attend_range(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const scratch r = scratch_of(j, worker);
    for (int64_t i = begin; i < end; i++) {
        const int64_t turn = i % j->tiles_of_head;
        const int64_t tile = turn % 2 == 0 ? turn / 2 : j->tiles_of_head - 1 - turn / 2;
        attend(j, &r, i / j->tiles_of_head, tile * ATTENTION_QUERIES);
    }
}

static uint64_t workspace(const cpu_device *device, const op_query *q)
{
    const attention_sizes s = attention_sizes_of(q);
    return (uint64_t)scratch_floats(&s, q->attr.rate > 0.0) * device->threads * sizeof(float);
}

static void run(const cpu_run *r)
{
    job j = {.sizes = attention_sizes_of(r->query),
             .dropout = attention_dropout_of(r),
             .tiles = gemm_tiles_here(),
             .q = r->in[0],
             .k = r->in[1],
             .v = r->in[2],
             .y = r->out[0],
             .lse = r->out[1],
             .workspace = r->workspace};
    j.tiles_of_head = (j.sizes.queries + ATTENTION_QUERIES - 1) / ATTENTION_QUERIES;
    workers_for(r->device->workers, j.sizes.samples * j.sizes.heads * j.tiles_of_head, 1, attend_range, &j);
}

const cpu_impl cpu_attention = {.name = "tiles", .workspace = workspace, .run = run};
