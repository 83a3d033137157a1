// SPDX-License-Identifier: Apache-2.0
// The gradient of streaming attention. Weights are computed again, p = exp(score - lse), a tile at a time; with
// mean = Σ dy·y of a query
//
//     dv += pᵀ·dy     dp = dy·vᵀ     ds = p (dp - mean) scale     dq += ds·k     dk += dsᵀ·q
//
// With dropout p in dv, and dp, are multiplied with the mask and its scale.
// A worker takes a whole head: its sums have one order, however many workers there are.
#include <string.h>

#include "attention.h"
#include "base/workers.h"
#include "exp.h"
#include "simd.h"

// The scratch of one worker.
typedef struct scratch {
    float *q_turned, *dy_turned; // [features][QUERIES], both times the scale
    float *weights, *ds;         // [KEYS][QUERIES]: scores and dp at first
    float *kept;                 // the same: the factors of dropout
    float *dq;                   // [QUERIES][padded]
    float *q, *dy, *k;           // [tile][padded], where they must be copied
    float *lse, *mean;           // [QUERIES]; the mean times the scale
} scratch;

typedef struct job {
    attention_sizes sizes;
    attention_dropout dropout;
    const gemm_tiles *tiles;
    const float *q, *k, *v, *y, *dy, *lse;
    float *dq, *dk, *dv;
    float *workspace;
} job;

enum { WIDE_BUFFERS = 5, KEY_BUFFERS = 1, SCORE_BUFFERS = 2, ROW_BUFFERS = 2 };

static int64_t scratch_floats(const attention_sizes *s, bool drops)
{
    return (WIDE_BUFFERS * ATTENTION_QUERIES + KEY_BUFFERS * ATTENTION_KEYS) * s->padded +
           (SCORE_BUFFERS + (drops ? 1 : 0)) * ATTENTION_KEYS * ATTENTION_QUERIES +
           ROW_BUFFERS * ATTENTION_QUERIES;
}

static scratch scratch_of(const job *j, uint32_t worker)
{
    const int64_t wide = ATTENTION_QUERIES * j->sizes.padded, square = ATTENTION_KEYS * ATTENTION_QUERIES;
    scratch r = {.q_turned = j->workspace + scratch_floats(&j->sizes, j->dropout.drops) * worker};
    r.dy_turned = r.q_turned + wide;
    r.dq = r.dy_turned + wide;
    r.q = r.dq + wide;
    r.dy = r.q + wide;
    r.weights = r.dy + wide;
    r.ds = r.weights + square;
    r.k = r.ds + square;
    r.lse = r.k + ATTENTION_KEYS * j->sizes.padded;
    r.mean = r.lse + ATTENTION_QUERIES;
    r.kept = r.mean + ATTENTION_QUERIES;
    return r;
}

// A tile of queries of one head and where its operands lie.
typedef struct queries {
    int64_t head, at, count;
    const float *q, *dy; // as right sides
    int64_t q_row, dy_row;
} queries;

// ---- products ---------------------------------------------------------------------------------------------

// to[key][query] = rows of keys or values · turned queries or dy
static attention_product against(const job *j, const float *rows, const float *turned, float *to)
{
    return (attention_product){.depth = j->sizes.features,
                               .a = rows,
                               .a_row = j->sizes.width,
                               .a_step = 1,
                               .b = turned,
                               .b_row = ATTENTION_QUERIES,
                               .c = to,
                               .c_row = ATTENTION_QUERIES,
                               .cut = CUT_ROWS};
}

// dk or dv += from[key][query] · rows of q or dy
static attention_product onto_keys(const job *j, const float *from, const float *right, int64_t right_row,
                                   float *to)
{
    return (attention_product){.n = j->sizes.features,
                               .a = from,
                               .a_row = ATTENTION_QUERIES,
                               .a_step = 1,
                               .b = right,
                               .b_row = right_row,
                               .c = to,
                               .c_row = j->sizes.width,
                               .cut = CUT_DEPTH_BEGIN};
}

// ---- one tile ---------------------------------------------------------------------------------------------

typedef struct lanes {
    f32x16 lse, mean;
} lanes;

CPU_INLINE void differentiate(float *weights, float *ds, const lanes *l, const i32x16 *sees)
{
    f32x16 p = F32X16(weights) - l->lse;
    exp_lanes(&p);
    p = (f32x16)((i32x16)p & *sees);
    const f32x16 d = p * (F32X16(ds) - l->mean);
    F32X16W(weights) = p;
    F32X16W(ds) = (f32x16)((i32x16)d & *sees);
}

// Scores become weights and dp becomes ds; both are 0 where a query does not see a key.
CPU_HOT static void differentiate_tile(const scratch *r, int64_t count, int64_t keys, int64_t shift)
{
    const i32x16 order = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, every = ~(i32x16){0};
    for (int64_t q = 0; q < count; q += CPU_LANES) {
        const lanes l = {F32X16(r->lse + q), F32X16(r->mean + q)};
        const i32x16 last = order + (int32_t)(shift + q);
        const int64_t any = attention_min(keys, shift + q + CPU_LANES),
                      all = attention_min(any, shift + q + 1);
        float *weights = r->weights + q, *ds = r->ds + q;
        for (int64_t k = 0; k < all; k++) {
            differentiate(weights + k * ATTENTION_QUERIES, ds + k * ATTENTION_QUERIES, &l, &every);
        }
        for (int64_t k = all; k < any; k++) {
            const i32x16 sees = last >= (int32_t)k;
            differentiate(weights + k * ATTENTION_QUERIES, ds + k * ATTENTION_QUERIES, &l, &sees);
        }
        for (int64_t k = any; k < keys; k++) {
            F32X16W(weights + k * ATTENTION_QUERIES) = F32X16W(ds + k * ATTENTION_QUERIES) = (f32x16){0};
        }
    }
}

// `adds`: an earlier tile of queries has written to these keys.
static void meet(const job *j, const scratch *r, const queries *t, int64_t at, int64_t keys, bool adds)
{
    const attention_sizes *s = &j->sizes;
    const int64_t shift = attention_shift(s, t->at, at);
    const int64_t place = attention_place(s, t->head, s->keys) + at * s->width;
    int64_t k_row = 0;
    const float *k = attention_right(s, r->k, j->k + place, keys, &k_row);
    attention_product up[] = {against(j, j->k + place, r->q_turned, r->weights),
                              against(j, j->v + place, r->dy_turned, r->ds)};
    attention_product down[] = {onto_keys(j, r->weights, t->dy, t->dy_row, j->dv + place),
                                onto_keys(j, r->ds, t->q, t->q_row, j->dk + place),
                                {.n = s->padded, // dq += ds·k
                                 .a = r->ds,
                                 .a_row = 1,
                                 .a_step = ATTENTION_QUERIES,
                                 .b = k,
                                 .b_row = k_row,
                                 .c = r->dq,
                                 .c_row = s->padded,
                                 .cut = CUT_DEPTH_END}};
    for (int i = 0; i < 2; i++) {
        up[i].m = keys;
        up[i].n = (t->count + CPU_LANES - 1) / CPU_LANES * CPU_LANES;
        up[i].shift = shift;
        attention_multiply(j->tiles, &up[i]);
    }
    if (j->dropout.drops) {
        attention_draw(&j->dropout, s, t->head, t->at, t->count, at, keys, r->kept);
        attention_drop(r->ds, r->kept, keys);
    }
    differentiate_tile(r, t->count, keys, shift);
    if (j->dropout.drops) {
        attention_drop(r->weights, r->kept, keys);
    }
    for (int i = 0; i < 3; i++) {
        down[i].m = i < 2 ? keys : t->count;
        down[i].depth = i < 2 ? t->count : keys;
        down[i].add = i < 2 ? adds : at > 0;
        down[i].shift = shift;
        attention_multiply(j->tiles, &down[i]);
    }
}

// ---- one head ---------------------------------------------------------------------------------------------

CPU_HOT static float dot(const float *a, const float *b, int64_t count)
{
    f32x16 sum = {0};
    float total = 0.0f;
    int64_t i = 0;
    for (; i + CPU_LANES <= count; i += CPU_LANES) {
        sum += F32X16(a + i) * F32X16(b + i);
    }
    for (; i < count; i++) {
        total += a[i] * b[i];
    }
    for (int k = 0; k < CPU_LANES; k++) {
        total += sum[k];
    }
    return total;
}

static queries load_queries(const job *j, const scratch *r, int64_t head, int64_t at)
{
    const attention_sizes *s = &j->sizes;
    queries t = {.head = head, .at = at, .count = attention_min(ATTENTION_QUERIES, s->queries - at)};
    const int64_t place = attention_place(s, head, s->queries) + at * s->width;
    attention_turn(s, r->q_turned, j->q + place, t.count);
    attention_turn(s, r->dy_turned, j->dy + place, t.count);
    t.q = attention_right(s, r->q, j->q + place, t.count, &t.q_row);
    t.dy = attention_right(s, r->dy, j->dy + place, t.count, &t.dy_row);
    memset(r->lse, 0, 2 * ATTENTION_QUERIES * sizeof *r->lse); // and the mean behind it
    memcpy(r->lse, j->lse + head * s->queries + at, (size_t)t.count * sizeof *r->lse);
    for (int64_t i = 0; i < t.count; i++) {
        const int64_t row = place + i * s->width;
        r->mean[i] = s->scale * dot(j->dy + row, j->y + row, s->features);
    }
    return t;
}

static void store_dq(const job *j, const scratch *r, const queries *t)
{
    const attention_sizes *s = &j->sizes;
    float *dq = j->dq + attention_place(s, t->head, s->queries) + t->at * s->width;
    for (int64_t i = 0; i < t->count; i++) {
        memcpy(dq + i * s->width, r->dq + i * s->padded, (size_t)s->features * sizeof *dq);
    }
}

// Keys that no query sees, behind the last one of a masked head, have no gradient.
static void clear_unseen(const job *j, int64_t head)
{
    const attention_sizes *s = &j->sizes;
    const int64_t tiles = (s->queries + ATTENTION_QUERIES - 1) / ATTENTION_QUERIES;
    const int64_t first = s->causal ? attention_min(s->keys, tiles * ATTENTION_QUERIES) : s->keys;
    for (int64_t i = first; i < s->keys; i++) {
        const int64_t at = attention_place(s, head, s->keys) + i * s->width;
        memset(j->dk + at, 0, (size_t)s->features * sizeof *j->dk);
        memset(j->dv + at, 0, (size_t)s->features * sizeof *j->dv);
    }
}

static void attend_heads(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const attention_sizes *s = &j->sizes;
    const scratch r = scratch_of(j, worker);
    for (int64_t head = begin; head < end; head++) {
        for (int64_t q = 0; q < s->queries; q += ATTENTION_QUERIES) {
            const queries t = load_queries(j, &r, head, q);
            // A whole tile's keys, so that all of a tile of keys is written by the first queries that meet it.
            const int64_t keys = attention_keys_seen(s, q, ATTENTION_QUERIES);
            for (int64_t at = 0; at < keys; at += ATTENTION_KEYS) {
                const bool adds = q > (s->causal ? at : 0);
                meet(j, &r, &t, at, attention_min(ATTENTION_KEYS, keys - at), adds);
            }
            store_dq(j, &r, &t);
        }
        clear_unseen(j, head);
    }
}

static uint64_t workspace(const cpu_device *device, const op_query *q)
{
    const attention_sizes s = attention_sizes_of(q);
    return (uint64_t)scratch_floats(&s, q->attr.rate > 0.0) * device->threads * sizeof(float);
}

static void run(const cpu_run *r)
{
    const job j = {.sizes = attention_sizes_of(r->query),
                   .dropout = attention_dropout_of(r),
                   .tiles = gemm_tiles_here(),
                   .q = r->in[0],
                   .k = r->in[1],
                   .v = r->in[2],
                   .y = r->in[3],
                   .dy = r->in[4],
                   .lse = r->in[5],
                   .dq = r->out[0],
                   .dk = r->out[1],
                   .dv = r->out[2],
                   .workspace = r->workspace};
    workers_for(r->device->workers, j.sizes.samples * j.sizes.heads, 1, attend_heads, &j);
}

_Static_assert(ATTENTION_KEYS == ATTENTION_QUERIES, "attend_heads: a diagonal tile is square");

const cpu_impl cpu_attention_bwd = {.name = "tiles", .workspace = workspace, .run = run};
