// SPDX-License-Identifier: Apache-2.0
// LSTM. A step is one product, h(t-1) · Wh, and one pass over the gates; all samples' weights gradients are one product
// at the end, over all steps.
#include "lstm.h"

#include <math.h>
#include <string.h>

#include "gemm.h"
#include "simd.h"
#include "smooth.h"

enum { GRAIN_BLOCKS = 64 };

typedef lstm_step job;

lstm lstm_of(const op_operand *gates)
{
    const int64_t *d = gates->shape.dim;
    return (lstm){d[0], d[1], d[2] / 4};
}

// `count` of sixteen floats; the others are zero.
CPU_INLINE void load(f32x16 *x, const float *from, int64_t count)
{
    if (count == CPU_LANES) {
        *x = F32X16(from);
        return;
    }
    *x = (f32x16){0};
    for (int64_t k = 0; k < count; k++) {
        (*x)[k] = from[k];
    }
}

CPU_INLINE void store(float *to, const f32x16 *x, int64_t count)
{
    if (count == CPU_LANES) {
        F32X16W(to) = *x;
        return;
    }
    for (int64_t k = 0; k < count; k++) {
        to[k] = (*x)[k];
    }
}

// Where a block of up to sixteen units lies.
typedef struct block {
    int64_t sample, row, unit, count;
} block;

CPU_INLINE block block_of(const job *j, int64_t item)
{
    const int64_t blocks = lstm_blocks(&j->l);
    block b = {.sample = item / blocks, .unit = item % blocks * CPU_LANES};
    b.row = b.sample * j->l.steps + j->step;
    b.count = j->l.units - b.unit < CPU_LANES ? j->l.units - b.unit : CPU_LANES;
    return b;
}

CPU_INLINE void forward_block(const job *j, const block *b)
{
    const int64_t H = j->l.units, at = b->row * H + b->unit;
    f32x16 gate[4], squashed;
    for (int64_t k = 0; k < 4; k++) {
        load(&gate[k], j->g + b->row * 4 * H + k * H + b->unit, b->count);
        if (j->p != NULL) {
            f32x16 more;
            load(&more, j->p + b->sample * 4 * H + k * H + b->unit, b->count);
            gate[k] += more;
        }
        if (k == 2) {
            tanh_lanes(&gate[k]);
        } else {
            f32x16 s;
            sigmoid_of(&gate[k], &s);
            gate[k] = s;
        }
        store(j->a + b->row * 4 * H + k * H + b->unit, &gate[k], b->count);
    }
    f32x16 c = gate[0] * gate[2];
    if (j->before != NULL) {
        f32x16 before;
        load(&before, j->before + b->sample * j->before_row + b->unit, b->count);
        c += gate[1] * before;
    }
    store(j->c + at, &c, b->count);
    squashed = c;
    tanh_lanes(&squashed);
    squashed *= gate[3];
    store(j->h + at, &squashed, b->count);
}

CPU_HOT static void forward_range(const job *j, int64_t begin, int64_t end)
{
    for (int64_t item = begin; item < end; item++) {
        const block b = block_of(j, item);
        forward_block(j, &b);
    }
}

// dg may lie on a: a block's gates are read before their gradients are written.
CPU_INLINE void backward_block(const job *j, const block *b)
{
    const int64_t H = j->l.units, at = b->row * H + b->unit, carried = b->sample * H + b->unit;
    f32x16 gate[4], dh, dc = {0}, squashed, before = {0};
    for (int64_t k = 0; k < 4; k++) {
        load(&gate[k], j->a + b->row * 4 * H + k * H + b->unit, b->count);
    }
    load(&dh, j->dy + at, b->count);
    load(&squashed, j->c + at, b->count);
    tanh_lanes(&squashed);
    if (j->before != NULL) {
        load(&before, j->before + b->sample * j->before_row + b->unit, b->count);
    }
    if (j->dh != NULL) {
        f32x16 more;
        load(&more, j->dh + carried, b->count);
        dh += more;
        load(&dc, j->dc + carried, b->count);
    }
    dc += dh * gate[3] * (1.0f - squashed * squashed);
    const f32x16 dg[4] = {dc * gate[2] * gate[0] * (1.0f - gate[0]), dc * before * gate[1] * (1.0f - gate[1]),
                          dc * gate[0] * (1.0f - gate[2] * gate[2]),
                          dh * squashed * gate[3] * (1.0f - gate[3])};
    for (int64_t k = 0; k < 4; k++) {
        store(j->dg + b->row * 4 * H + k * H + b->unit, &dg[k], b->count);
    }
    dc *= gate[1];
    store(j->dc + carried, &dc, b->count);
}

CPU_HOT static void backward_range(const job *j, int64_t begin, int64_t end)
{
    for (int64_t item = begin; item < end; item++) {
        const block b = block_of(j, item);
        backward_block(j, &b);
    }
}

int64_t lstm_blocks(const lstm *l)
{
    return (l->units + CPU_LANES - 1) / CPU_LANES;
}

void lstm_forward_blocks(const lstm_step *j, int64_t begin, int64_t end)
{
    forward_range(j, begin, end);
}

void lstm_backward_blocks(const lstm_step *j, int64_t begin, int64_t end)
{
    backward_range(j, begin, end);
}

static void forward_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    forward_range(argument, begin, end);
}

static void backward_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    backward_range(argument, begin, end);
}

static void run_step(const cpu_run *r, const job *j, workers_body body)
{
    workers_for(r->device->workers, j->l.samples * lstm_blocks(&j->l), GRAIN_BLOCKS, body, j);
}

// ---- products ---------------------------------------------------------------------------------------------
//
// Wh is copied into the order of the tiles once and serves all steps.

// h(t-1)[N, H] · Wh[H, 4H], rows of one step lie T apart.
static gemm step_product(const cpu_device *device, const lstm *l)
{
    return (gemm){.m = l->samples,
                  .n = 4 * l->units,
                  .k = l->units,
                  .a_row = l->steps * l->units,
                  .b_packed = true,
                  .workers = device->workers};
}

// dg(t)[N, 4H] · Whᵀ
static gemm step_bwd_product(const cpu_device *device, const lstm *l)
{
    return (gemm){.m = l->samples,
                  .n = l->units,
                  .k = 4 * l->units,
                  .a_row = l->steps * 4 * l->units,
                  .b_transposed = true,
                  .b_packed = true,
                  .workers = device->workers};
}

// Of h of the steps before, [N*T, H]ᵀ, with dg [N*T, 4H].
static gemm weights_product(const cpu_device *device, const lstm *l)
{
    return (gemm){.m = l->units,
                  .n = 4 * l->units,
                  .k = l->samples * l->steps,
                  .a_transposed = true,
                  .workers = device->workers};
}

static int64_t in_lines(int64_t floats)
{
    return (floats + CPU_LANES - 1) / CPU_LANES * CPU_LANES;
}

// ---- forward ----------------------------------------------------------------------------------------------

static uint64_t workspace(const cpu_device *device, const op_query *q)
{
    const lstm l = lstm_of(&q->in[0]);
    const gemm g = step_product(device, &l);
    return (uint64_t)in_lines(l.samples * 4 * l.units) * sizeof(float) + gemm_packed_bytes(&g) +
           gemm_scratch_bytes(&g);
}

static void run(const cpu_run *r)
{
    const lstm l = lstm_of(&r->query->in[0]);
    const gemm g = step_product(r->device, &l);
    float *product = r->workspace, *wh = product + in_lines(l.samples * 4 * l.units);
    float *scratch = wh + gemm_packed_bytes(&g) / sizeof *wh;
    gemm_pack_right(&g, r->in[1], wh);
    job j = {.l = l,
             .before_row = l.steps * l.units,
             .g = r->in[0],
             .h = r->out[0],
             .c = r->out[1],
             .a = r->out[2]};
    for (; j.step < l.steps; j.step++) {
        if (j.step > 0) {
            const gemm_operands o = {.a = j.h + (j.step - 1) * l.units, .b = wh, .c = product};
            gemm_run(&g, &o, scratch);
            j.p = product;
            j.before = j.c + (j.step - 1) * l.units;
        }
        run_step(r, &j, forward_body);
    }
}

// ---- backward ---------------------------------------------------------------------------------------------

// Floats of the carried dh and dc, and of h moved by one step; behind them the products' scratch.
static int64_t carried_floats(const lstm *l)
{
    return 2 * in_lines(l->samples * l->units);
}

static int64_t moved_floats(const lstm *l)
{
    return in_lines(l->samples * l->steps * l->units);
}

static uint64_t bwd_workspace(const cpu_device *device, const op_query *q)
{
    const lstm l = lstm_of(&q->in[3]);
    const gemm step = step_bwd_product(device, &l), weights = weights_product(device, &l);
    const uint64_t a = gemm_packed_bytes(&step) + gemm_scratch_bytes(&step), b = gemm_scratch_bytes(&weights);
    return (uint64_t)(carried_floats(&l) + moved_floats(&l)) * sizeof(float) + (a > b ? a : b);
}

static void move_by_one_step(const lstm *l, const float *h, float *moved)
{
    const size_t steps_bytes = (size_t)((l->steps - 1) * l->units) * sizeof *h;
    for (int64_t n = 0; n < l->samples; n++) {
        float *to = moved + n * l->steps * l->units;
        memset(to, 0, (size_t)l->units * sizeof *to);
        memcpy(to + l->units, h + n * l->steps * l->units, steps_bytes);
    }
}

static void run_bwd(const cpu_run *r)
{
    const lstm l = lstm_of(&r->query->in[3]);
    const gemm step = step_bwd_product(r->device, &l), weights = weights_product(r->device, &l);
    float *dh = r->workspace, *moved = dh + carried_floats(&l), *wh = moved + moved_floats(&l);
    float *scratch = wh + gemm_packed_bytes(&step) / sizeof *wh;
    gemm_pack_right(&step, r->in[0], wh);
    job j = {.l = l,
             .before_row = l.steps * l.units,
             .c = r->in[2],
             .a = r->in[3],
             .dy = r->in[4],
             .dc = dh + in_lines(l.samples * l.units),
             .dg = r->out[0]};
    for (j.step = l.steps - 1; j.step >= 0; j.step--) {
        j.before = j.step > 0 ? j.c + (j.step - 1) * l.units : NULL;
        run_step(r, &j, backward_body);
        if (j.step > 0) {
            const gemm_operands o = {.a = j.dg + j.step * 4 * l.units, .b = wh, .c = dh};
            gemm_run(&step, &o, scratch);
            j.dh = dh;
        }
    }
    move_by_one_step(&l, r->in[1], moved);
    const gemm_operands o = {.a = moved, .b = r->out[0], .c = r->out[1]};
    gemm_run(&weights, &o, wh);
}

const cpu_impl cpu_lstm = {.name = "steps", .workspace = workspace, .run = run};
const cpu_impl cpu_lstm_bwd = {.name = "steps", .workspace = bwd_workspace, .run = run_bwd};
