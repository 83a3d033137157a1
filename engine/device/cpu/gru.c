// SPDX-License-Identifier: Apache-2.0
// GRU, in float32 or two bytes. A step is one product, h(t-1) · Wh, and one pass over the gates in float32; what a step hands
// to the next one stays float32. All samples' weights gradients are one product at the end, over all steps.
#include <math.h>
#include <string.h>

#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "gemm.h"
#include "half_product.h"
#include "simd.h"
#include "smooth.h"

enum { LINE_BYTES = 64 };

typedef struct gru {
    int64_t samples, steps, units;
    hr_dtype type;
    bool forward;
} gru;

static gru gru_of(const op_query *q)
{
    const bool forward = q->op == HR_OP_GRU;
    const op_operand *h = forward ? &q->out[0] : &q->in[1];
    const int64_t *d = h->shape.dim;
    return (gru){d[0], d[1], d[2], (hr_dtype)h->dtype, forward};
}

// ---- the workspace ----------------------------------------------------------------------------------------

// Where each part begins, in bytes. [N, ...] each, float32 unless said.
typedef struct rooms {
    uint64_t product; // [3H] forward, [H] backward
    uint64_t gates;   // [4H]
    uint64_t h;       // [H]: h; backward: dy
    uint64_t before;  // [H], backward: h(t-1)
    uint64_t carried; // [H], backward: of dh, what h(t-1) has without a product
    uint64_t bias;    // [3H] of no sample, forward
    uint64_t left;    // the next product's left side, in the type: h or dq
    uint64_t all;     // backward: dq of all steps, in the type
    uint64_t moved;   // backward: h of all steps, moved by one, in the type
    uint64_t end;     // the products' own
} rooms;

static uint64_t take(uint64_t *end, int64_t elements, uint64_t each)
{
    const uint64_t at = *end;
    *end += ((uint64_t)elements * each + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    return at;
}

static rooms rooms_of(const gru *l)
{
    const int64_t one = l->samples * l->units, every = l->forward ? 0 : one * l->steps;
    const uint64_t each = dtype_bytes(l->type);
    rooms r = {0};
    r.product = take(&r.end, l->forward ? 3 * one : one, sizeof(float));
    r.gates = take(&r.end, 4 * one, sizeof(float));
    r.h = take(&r.end, one, sizeof(float));
    r.before = take(&r.end, l->forward ? 0 : one, sizeof(float));
    r.carried = take(&r.end, l->forward ? 0 : one, sizeof(float));
    r.bias = take(&r.end, l->forward ? 3 * l->units : 0, sizeof(float));
    r.left = take(&r.end, l->forward ? one : 3 * one, each);
    r.all = take(&r.end, 3 * every, each);
    r.moved = take(&r.end, every, each);
    return r;
}

// ---- one step of one sample ---------------------------------------------------------------------------------

typedef struct job {
    gru l;
    int64_t t;
    uint64_t each;                                 // bytes of an element
    float *product, *gates, *h, *before, *carried; // rooms
    const float *bias;
    char *left, *all;
    const char *g, *h_in, *a_in, *dy; // operands
    char *h_out, *a_out, *dg;
    bool multiplied; // product is there: at all steps but the first one taken
} job;

static job job_of(const cpu_run *r, const gru *l, const rooms *room)
{
    char *base = r->workspace;
    job j = {.l = *l,
             .each = dtype_bytes(l->type),
             .product = (float *)(void *)(base + room->product),
             .gates = (float *)(void *)(base + room->gates),
             .h = (float *)(void *)(base + room->h),
             .before = (float *)(void *)(base + room->before),
             .carried = (float *)(void *)(base + room->carried),
             .bias = (const float *)(const void *)(base + room->bias),
             .left = base + room->left,
             .all = base + room->all};
    if (l->forward) {
        j.g = r->in[0];
        j.h_out = r->out[0];
        j.a_out = r->out[1];
    } else {
        j.h_in = r->in[1];
        j.a_in = r->in[2];
        j.dy = r->in[3];
        j.dg = r->out[0];
    }
    return j;
}

// Byte of row (sample, step) of an operand that has `width` elements a row.
static int64_t row_at(const job *j, int64_t sample, int64_t step, int64_t width)
{
    return (sample * j->l.steps + step) * width * (int64_t)j->each;
}

CPU_INLINE void load(f32x16 *x, const float *from, int64_t count)
{
    *x = (f32x16){0};
    memcpy(x, from, (size_t)(count < CPU_LANES ? count : CPU_LANES) * sizeof *from);
}

CPU_INLINE void store(float *to, const f32x16 *x, int64_t count)
{
    memcpy(to, x, (size_t)(count < CPU_LANES ? count : CPU_LANES) * sizeof *to);
}

// `gates` holds g, and then z, r, n and q of n.
CPU_HOT static void forward_units(const job *j, float *gates, const float *product, float *h)
{
    const int64_t H = j->l.units;
    for (int64_t k = 0; k < H; k += CPU_LANES) {
        f32x16 x[3], q[3], before = {0};
        for (int64_t gate = 0; gate < 3; gate++) {
            f32x16 more = {0};
            load(&x[gate], gates + gate * H + k, H - k);
            load(&q[gate], j->bias + gate * H + k, H - k);
            if (j->multiplied) {
                load(&more, product + gate * H + k, H - k);
            }
            q[gate] += more;
        }
        f32x16 z, r, n, sum = x[0] + q[0];
        sigmoid_of(&sum, &z);
        sum = x[1] + q[1];
        sigmoid_of(&sum, &r);
        n = x[2] + r * q[2];
        tanh_lanes(&n);
        if (j->multiplied) {
            load(&before, h + k, H - k);
        }
        const f32x16 now = n + z * (before - n);
        store(gates + k, &z, H - k);
        store(gates + H + k, &r, H - k);
        store(gates + 2 * H + k, &n, H - k);
        store(gates + 3 * H + k, &q[2], H - k);
        store(h + k, &now, H - k);
    }
}

// `gates` holds z, r, n and q of n, and then their gradients: dq is dg but for n.
CPU_HOT static void backward_units(const job *j, float *gates, const float *dy, const float *before,
                                   const float *product, float *carried)
{
    const int64_t H = j->l.units;
    for (int64_t k = 0; k < H; k += CPU_LANES) {
        f32x16 z, r, n, q, dh, h = {0};
        load(&z, gates + k, H - k);
        load(&r, gates + H + k, H - k);
        load(&n, gates + 2 * H + k, H - k);
        load(&q, gates + 3 * H + k, H - k);
        load(&dh, dy + k, H - k);
        if (j->multiplied) {
            f32x16 more, own;
            load(&more, product + k, H - k);
            load(&own, carried + k, H - k);
            dh += more + own;
        }
        if (j->t > 0) {
            load(&h, before + k, H - k);
        }
        const f32x16 dn = dh * (1.0f - z) * (1.0f - n * n), dz = dh * (h - n) * z * (1.0f - z);
        const f32x16 dr = dn * q * r * (1.0f - r), dq = dn * r, left = dh * z;
        store(gates + k, &dz, H - k);
        store(gates + H + k, &dr, H - k);
        store(gates + 2 * H + k, &dn, H - k);
        store(gates + 3 * H + k, &dq, H - k);
        store(carried + k, &left, H - k);
    }
}

static void forward_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const int64_t H = j->l.units;
    (void)worker;
    for (int64_t n = begin; n < end; n++) {
        float *gates = j->gates + n * 4 * H, *h = j->h + n * H;
        cast_widen(gates, j->g + row_at(j, n, j->t, 3 * H), j->l.type, 3 * H);
        forward_units(j, gates, j->product + n * 3 * H, h);
        cast_narrow(j->h_out + row_at(j, n, j->t, H), j->l.type, h, H);
        cast_narrow(j->a_out + row_at(j, n, j->t, 4 * H), j->l.type, gates, 4 * H);
        cast_narrow(j->left + n * H * (int64_t)j->each, j->l.type, h, H);
    }
}

static void backward_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const int64_t H = j->l.units, each = (int64_t)j->each;
    (void)worker;
    for (int64_t n = begin; n < end; n++) {
        float *gates = j->gates + n * 4 * H, *dy = j->h + n * H, *before = j->before + n * H;
        char *all = j->all + row_at(j, n, j->t, 3 * H), *left = j->left + n * 3 * H * each;
        cast_widen(gates, j->a_in + row_at(j, n, j->t, 4 * H), j->l.type, 4 * H);
        cast_widen(dy, j->dy + row_at(j, n, j->t, H), j->l.type, H);
        if (j->t > 0) {
            cast_widen(before, j->h_in + row_at(j, n, j->t - 1, H), j->l.type, H);
        }
        backward_units(j, gates, dy, before, j->product + n * H, j->carried + n * H);
        cast_narrow(j->dg + row_at(j, n, j->t, 3 * H), j->l.type, gates, 3 * H);
        cast_narrow(all, j->l.type, gates, 2 * H);
        cast_narrow(all + 2 * H * each, j->l.type, gates + 3 * H, H);
        memcpy(left, all, (size_t)(3 * H * each));
    }
}

static void run_step(const cpu_run *r, const job *j)
{
    workers_for(r->device->workers, j->l.samples, 1, j->l.forward ? forward_body : backward_body, j);
}

// ---- behind all steps -----------------------------------------------------------------------------------------

static void move_by_one_step(const job *j, char *moved)
{
    const size_t row = (size_t)j->l.units * j->each;
    for (int64_t n = 0; n < j->l.samples; n++) {
        char *to = moved + row_at(j, n, 0, j->l.units);
        memset(to, 0, row);
        memcpy(to + row, j->h_in + row_at(j, n, 0, j->l.units), (size_t)(j->l.steps - 1) * row);
    }
}

typedef struct bias_job {
    const job *of;
    char *out;
} bias_job;

// Sums of dq over samples and steps; item k is a block of the 3H.
static void bias_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const bias_job *b = argument;
    const job *j = b->of;
    const int64_t width = 3 * j->l.units, each = (int64_t)j->each;
    (void)worker;
    for (int64_t k = begin * CPU_LANES; k < end * CPU_LANES && k < width; k += CPU_LANES) {
        const int64_t count = width - k < CPU_LANES ? width - k : CPU_LANES;
        double sum[CPU_LANES] = {0};
        float part[CPU_LANES] = {0};
        for (int64_t row = 0; row < j->l.samples * j->l.steps; row++) {
            cast_widen(part, j->all + (row * width + k) * each, j->l.type, count);
            for (int64_t lane = 0; lane < CPU_LANES; lane++) {
                sum[lane] += (double)part[lane];
            }
        }
        for (int64_t lane = 0; lane < CPU_LANES; lane++) {
            part[lane] = (float)sum[lane];
        }
        cast_narrow(b->out + k * each, j->l.type, part, count);
    }
}

static void run_bias(const cpu_run *r, const job *j)
{
    const bias_job b = {j, r->out[2]};
    workers_for(r->device->workers, (3 * j->l.units + CPU_LANES - 1) / CPU_LANES, 1, bias_body, &b);
}

// The order of the steps: t = 0, 1, … forward, the last one first backward.
static bool next_step(job *j)
{
    j->t += j->l.forward ? 1 : -1;
    j->multiplied = true;
    return j->t >= 0 && j->t < j->l.steps;
}

static job first_step(const cpu_run *r, const gru *l, const rooms *room)
{
    job j = job_of(r, l, room);
    j.t = l->forward ? 0 : l->steps - 1;
    if (l->forward) {
        cast_widen((float *)(void *)((char *)r->workspace + room->bias), r->in[2], l->type, 3 * l->units);
    }
    run_step(r, &j);
    return j;
}

// ---- float32 ------------------------------------------------------------------------------------------------

// left[N, H] · Wh[H, 3H], or dq[N, 3H] · Whᵀ; Wh is copied into the order of the tiles once for all steps.
static gemm step_product(const cpu_device *device, const gru *l)
{
    return (gemm){.m = l->samples,
                  .n = l->forward ? 3 * l->units : l->units,
                  .k = l->forward ? l->units : 3 * l->units,
                  .b_transposed = !l->forward,
                  .b_packed = true,
                  .workers = device->workers};
}

// Of h of the steps before, [N*T, H]ᵀ, with dq [N*T, 3H].
static gemm weights_product(const cpu_device *device, const gru *l)
{
    return (gemm){.m = l->units,
                  .n = 3 * l->units,
                  .k = l->samples * l->steps,
                  .a_transposed = true,
                  .workers = device->workers};
}

static uint64_t workspace(const cpu_device *device, const op_query *q)
{
    const gru l = gru_of(q);
    const gemm step = step_product(device, &l), weights = weights_product(device, &l);
    const uint64_t a = gemm_packed_bytes(&step) + gemm_scratch_bytes(&step);
    const uint64_t b = l.forward ? 0 : gemm_scratch_bytes(&weights);
    return rooms_of(&l).end + (a > b ? a : b);
}

static void run(const cpu_run *r)
{
    const gru l = gru_of(r->query);
    const rooms room = rooms_of(&l);
    const gemm g = step_product(r->device, &l);
    char *base = r->workspace;
    float *wh = (float *)(void *)(base + room.end), *scratch = wh + gemm_packed_bytes(&g) / sizeof *wh;
    gemm_pack_right(&g, r->in[l.forward ? 1 : 0], wh);
    const gemm_operands o = {.a = (const float *)(const void *)(base + room.left),
                             .b = wh,
                             .c = (float *)(void *)(base + room.product)};
    job j = first_step(r, &l, &room);
    while (next_step(&j)) {
        gemm_run(&g, &o, scratch);
        run_step(r, &j);
    }
    if (!l.forward) {
        const gemm weights = weights_product(r->device, &l);
        const gemm_operands all = {.a = (const float *)(const void *)(base + room.moved),
                                   .b = (const float *)(const void *)(base + room.all),
                                   .c = r->out[1]};
        move_by_one_step(&j, base + room.moved);
        gemm_run(&weights, &all, wh);
        run_bias(r, &j);
    }
}

const cpu_impl cpu_gru = {.name = "steps", .workspace = workspace, .run = run};

// ---- two bytes ----------------------------------------------------------------------------------------------

static half_pair_shape pair_of(const op_query *q)
{
    const gru l = gru_of(q);
    half_pair_shape pair = {.step = {.m = l.samples,
                                     .n = l.forward ? 3 * l.units : l.units,
                                     .k = l.forward ? l.units : 3 * l.units,
                                     .b_transposed = !l.forward,
                                     .wide = true},
                            .type = l.type,
                            .rooms_bytes = rooms_of(&l).end};
    if (!l.forward) {
        pair.weights =
            (product_shape){.m = l.units, .n = 3 * l.units, .k = l.samples * l.steps, .a_transposed = true};
    }
    return pair;
}

static bool fits(const cpu_device *device, const op_query *q)
{
    const half_pair_shape shape = pair_of(q);
    return half_pair_fits(device, &shape);
}

static hr_status ask(const cpu_device *device, const op_query *q, uint64_t limit, target_answer *out,
                     hr_err *err)
{
    const half_pair_shape shape = pair_of(q);
    return half_pair_ask(device, &shape, limit, out, err);
}

static hr_status prepare(const cpu_device *device, const program *p, const instr *i, const op_query *q,
                         void **state, hr_err *err)
{
    const half_pair_shape shape = pair_of(q);
    return half_pair_prepare(device, &shape, cpu_temporary_bytes(p, i), state, err);
}

static hr_status call(const cpu_run *r, hr_err *err)
{
    const half_pair *made = r->state;
    const gru l = gru_of(r->query);
    const rooms room = rooms_of(&l);
    char *base = r->workspace;
    job j = first_step(r, &l, &room);
    while (next_step(&j)) {
        HR_TRY(half_product_run(r->device, made->step, j.left, r->in[l.forward ? 1 : 0], NULL, j.product,
                                base + room.end, err));
        run_step(r, &j);
    }
    if (l.forward) {
        return HR_OK;
    }
    move_by_one_step(&j, base + room.moved);
    run_bias(r, &j);
    return half_product_run(r->device, made->weights, base + room.moved, j.all, NULL, r->out[1],
                            base + room.end, err);
}

const cpu_impl cpu_gru_half = {.name = CPU_LIBRARY,
                               .types = CPU_HALF,
                               .fits = fits,
                               .ask = ask,
                               .prepare = prepare,
                               .release = half_pair_release,
                               .call = call};
