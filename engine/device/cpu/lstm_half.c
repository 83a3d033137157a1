// SPDX-License-Identifier: Apache-2.0
// LSTM over two bytes: products multiply them and sum in float32, a step's gates are widened, and what a step hands to
// the next one beside h, c and its gradient, stays float32.
#include <string.h>

#include "base/workers.h"
#include "cast.h"
#include "half_product.h"
#include "lstm.h"

enum { LINE_FLOATS = 16 };

static int64_t in_lines(int64_t floats)
{
    return (floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
}

static bool is_forward(const op_query *q)
{
    return q->op == HR_OP_LSTM;
}

static hr_dtype type_of(const op_query *q)
{
    return (hr_dtype)q->in[0].dtype;
}

static lstm sizes_of(const op_query *q)
{
    return lstm_of(&q->in[is_forward(q) ? 0 : 3]);
}

// ---- scratch areas ------------------------------------------------------------------------------------------------

// In the workspace, [N, ...] each.
typedef struct scratch {
    float *product;  // [4H] forward, dh [H] backward
    float *gates;    // [4H]: activated, or their gradients, in place
    float *h, *c;    // [H]; backward: dy and c
    float *before;   // [H], backward: c(t-1)
    float *dc;       // [H], backward
    uint16_t *left;  // the next product's left side, close: h or dg
    uint16_t *moved; // backward: h of all steps, moved by one
    void *scratch;
} scratch;

static uint64_t bytes_without_scratch(const op_query *q)
{
    const lstm l = sizes_of(q);
    const int64_t row = in_lines(l.samples * l.units), gates = in_lines(4 * l.samples * l.units);
    int64_t floats = gates + 4 * row + 2 * gates;
    floats += is_forward(q) ? 0 : in_lines((l.samples * l.steps * l.units + 1) / 2); // moved
    return (uint64_t)floats * sizeof(float);
}

static scratch scratch_of(const cpu_run *r)
{
    const lstm l = sizes_of(r->query);
    const int64_t row = in_lines(l.samples * l.units), gates = in_lines(4 * l.samples * l.units);
    scratch s = {.product = r->workspace};
    s.gates = s.product + gates;
    s.h = s.gates + gates;
    s.c = s.h + row;
    s.before = s.c + row;
    s.dc = s.before + row;
    s.left = (uint16_t *)(void *)(s.dc + row);
    s.moved = s.left + 2 * gates;
    s.scratch = (char *)r->workspace + bytes_without_scratch(r->query);
    return s;
}

// ---- one step ---------------------------------------------------------------------------------------------

typedef struct job {
    lstm_step step; // of one step in the scratch_areas: rows are samples
    hr_dtype type;
    lstm l;
    int64_t t;
    const scratch *scratch;
    const uint16_t *g, *c_in, *a_in, *dy;
    uint16_t *h, *c, *a; // written; backward: a is dg
} job;

static void widen_row(const job *j, float *to, const uint16_t *from, int64_t sample, int64_t t, int64_t width)
{
    cast_widen(to + sample * width, from + (sample * j->l.steps + t) * width, j->type, width);
}

static void narrow_row(const job *j, uint16_t *to, const float *from, int64_t sample, int64_t width)
{
    cast_narrow(to + (sample * j->l.steps + j->t) * width, j->type, from + sample * width, width);
}

static void forward_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const scratch *s = j->scratch;
    const int64_t H = j->l.units, blocks = lstm_blocks(&j->l);
    (void)worker;
    for (int64_t n = begin; n < end; n++) {
        widen_row(j, s->gates, j->g, n, j->t, 4 * H);
        lstm_forward_blocks(&j->step, n * blocks, (n + 1) * blocks);
        narrow_row(j, j->h, s->h, n, H);
        narrow_row(j, j->c, s->c, n, H);
        narrow_row(j, j->a, s->gates, n, 4 * H);
        cast_narrow(s->left + n * H, j->type, s->h + n * H, H);
    }
}

static void backward_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const scratch *s = j->scratch;
    const int64_t H = j->l.units, blocks = lstm_blocks(&j->l);
    (void)worker;
    for (int64_t n = begin; n < end; n++) {
        widen_row(j, s->gates, j->a_in, n, j->t, 4 * H);
        widen_row(j, s->c, j->c_in, n, j->t, H);
        widen_row(j, s->h, j->dy, n, j->t, H);
        if (j->t > 0) {
            widen_row(j, s->before, j->c_in, n, j->t - 1, H);
        }
        lstm_backward_blocks(&j->step, n * blocks, (n + 1) * blocks);
        narrow_row(j, j->a, s->gates, n, 4 * H);
        cast_narrow(s->left + n * 4 * H, j->type, s->gates + n * 4 * H, 4 * H);
    }
}

static lstm_step step_of(const scratch *s, const lstm *l)
{
    return (lstm_step){.l = {l->samples, 1, l->units},
                       .before_row = l->units,
                       .g = s->gates,
                       .h = s->h,
                       .c = s->c,
                       .a = s->gates,
                       .dy = s->h,
                       .dc = s->dc,
                       .dg = s->gates};
}

// ---- all steps --------------------------------------------------------------------------------------------

static hr_status run_forward(const cpu_run *r, hr_err *err)
{
    const half_pair *made = r->state;
    const scratch s = scratch_of(r);
    const lstm l = sizes_of(r->query);
    job j = {.step = step_of(&s, &l),
             .type = type_of(r->query),
             .l = l,
             .scratch = &s,
             .g = r->in[0],
             .h = r->out[0],
             .c = r->out[1],
             .a = r->out[2]};
    for (; j.t < l.steps; j.t++) {
        if (j.t > 0) {
            HR_TRY(
                half_product_run(r->device, made->step, s.left, r->in[1], NULL, s.product, s.scratch, err));
            j.step.p = s.product;
            j.step.before = s.c;
        }
        workers_for(r->device->workers, l.samples, 1, forward_body, &j);
    }
    return HR_OK;
}

static void move_by_one_step(const lstm *l, const uint16_t *h, uint16_t *moved)
{
    const size_t steps_bytes = (size_t)((l->steps - 1) * l->units) * sizeof *h;
    for (int64_t n = 0; n < l->samples; n++) {
        uint16_t *to = moved + n * l->steps * l->units;
        memset(to, 0, (size_t)l->units * sizeof *to);
        memcpy(to + l->units, h + n * l->steps * l->units, steps_bytes);
    }
}

static hr_status run_backward(const cpu_run *r, hr_err *err)
{
    const half_pair *made = r->state;
    const scratch s = scratch_of(r);
    const lstm l = sizes_of(r->query);
    job j = {.step = step_of(&s, &l),
             .type = type_of(r->query),
             .l = l,
             .scratch = &s,
             .c_in = r->in[2],
             .a_in = r->in[3],
             .dy = r->in[4],
             .a = r->out[0]};
    for (j.t = l.steps - 1; j.t >= 0; j.t--) {
        j.step.before = j.t > 0 ? s.before : NULL;
        workers_for(r->device->workers, l.samples, 1, backward_body, &j);
        if (j.t > 0) {
            HR_TRY(
                half_product_run(r->device, made->step, s.left, r->in[0], NULL, s.product, s.scratch, err));
            j.step.dh = s.product;
        }
    }
    move_by_one_step(&l, r->in[1], s.moved);
    return half_product_run(r->device, made->weights, s.moved, r->out[0], NULL, r->out[1], s.scratch, err);
}

// ---- which products ---------------------------------------------------------------------------------------

// h(t-1)[N, H] · Wh[H, 4H], or dg(t)[N, 4H] · Whᵀ; of h of the steps before, [N*T, H]ᵀ, with dg [N*T, 4H].
static half_pair_shape pair_of(const op_query *q)
{
    const lstm l = sizes_of(q);
    const bool forward = is_forward(q);
    half_pair_shape pair = {.step = {.m = l.samples,
                                     .n = forward ? 4 * l.units : l.units,
                                     .k = forward ? l.units : 4 * l.units,
                                     .b_transposed = !forward,
                                     .wide = true},
                            .type = type_of(q),
                            .rooms_bytes = bytes_without_scratch(q)};
    if (!forward) {
        pair.weights =
            (product_shape){.m = l.units, .n = 4 * l.units, .k = l.samples * l.steps, .a_transposed = true};
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

const cpu_impl cpu_lstm_half = {.name = CPU_LIBRARY,
                                .types = CPU_HALF,
                                .fits = fits,
                                .ask = ask,
                                .prepare = prepare,
                                .release = half_pair_release,
                                .call = run_forward};
const cpu_impl cpu_lstm_bwd_half = {.name = CPU_LIBRARY,
                                    .types = CPU_HALF,
                                    .fits = fits,
                                    .ask = ask,
                                    .prepare = prepare,
                                    .release = half_pair_release,
                                    .call = run_backward};
