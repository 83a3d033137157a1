// SPDX-License-Identifier: Apache-2.0
#include "winograd.h"

#include "base/workers.h"
#include "cast.h"
#include "gemm.h"
#include "sums.h"

enum {
    CHANNELS_MIN = 32,        // below, the changes cost more than the products
    TILES_MIN = 32,           // of all images: the weights are changed for as many
    GAIN_PCT = 75,            // products of the tiles against those of the definition, at most
    WEIGHT_FLOATS = 65536,    // of one place's weights at once
    PRODUCT_FLOATS = 1 << 14, // of one place's weight gradient at once
    TILE_FLOATS = 24576,      // of one place's input and output at once, for one worker
    TILES_AT_ONCE_MIN = 32,
    TILES_AT_ONCE_MAX = 128,
    BACK_TILES = 64, // the same for all threads, so that sums have one order
    GAP_FLOATS = 16  // between places and rows, so that they do not fall on the same cache sets
};

// How the work is cut. Derived from the sizes alone.
typedef struct cut {
    int64_t columns;                         // of the output's channels at once
    int64_t tiles;                           // at once
    int64_t c;                               // of the input's channels, of one worker
    int64_t bias_floats;                     // of a bias in two bytes
    int64_t shared_floats;                   // scratch that all workers share
    int64_t floats;                          // of one worker
    winograd_scratch weights, in, out, sums; // sizes of their parts of the scratch
} cut;

typedef struct job {
    const winograd *w;
    const cut *cut;
    const void *x, *weights, *dy;
    void *to;
    float *scratch;
    winograd_end ending;
    int64_t f, f_end; // the present columns
} job;

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static int64_t round_up(int64_t value, int64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

// ---- geometry ---------------------------------------------------------------------------------------------

static winograd winograd_of(const conv_shape *s)
{
    const cpu_image x = {s->n, s->h, s->w, s->c}, y = {s->n, s->oh, s->ow, s->f};
    const bool turned = s->kind == CONV_BWD_DATA;
    winograd w = {.in = turned ? y : x,
                  .out = turned ? x : y,
                  .pad_top = turned ? 2 - s->pad_top : s->pad_top,
                  .pad_left = turned ? 2 - s->pad_left : s->pad_left,
                  .turned = turned};
    w.tiles_h = (w.out.height + 1) / 2;
    w.tiles_w = (w.out.width + 1) / 2;
    w.tiles = w.out.images * w.tiles_h * w.tiles_w;
    return w;
}

static winograd winograd_of_query(const op_query *q)
{
    const conv_shape s = cpu_conv_shape(q);
    winograd w = winograd_of(&s);
    w.type = (hr_dtype)q->in[0].dtype;
    return w;
}

// Pairs of an output and an input that it sees, along one direction.
static int64_t pairs(int64_t in, int64_t out, int64_t pad)
{
    int64_t count = 0;
    for (int64_t k = 0; k < 3; k++) {
        const int64_t first = clamp(pad - k, 0, out), last = clamp(in + pad - k, first, out);
        count += last - first;
    }
    return count;
}

static bool pays(const winograd *w)
{
    const int64_t products = 16 * w->tiles_h * w->tiles_w;
    const int64_t defined =
        pairs(w->in.height, w->out.height, w->pad_top) * pairs(w->in.width, w->out.width, w->pad_left);
    return w->tiles >= TILES_MIN && 100 * products <= GAIN_PCT * defined;
}

static bool suits(const conv_shape *s)
{
    const bool shape = s->kernel_h == 3 && s->kernel_w == 3 && s->stride_h == 1 && s->stride_w == 1 &&
                       s->gap_h == 0 && s->gap_w == 0 && s->groups == 1 && s->pad_top <= 2 &&
                       s->pad_left <= 2;
    const bool channels =
        s->c >= CHANNELS_MIN && s->f >= CHANNELS_MIN && s->c % CPU_LANES == 0 && s->f % CPU_LANES == 0;
    const winograd w = winograd_of(s);
    return shape && channels && pays(&w);
}

static bool fits(const cpu_device *device, const op_query *q)
{
    (void)device;
    const conv_shape s = cpu_conv_shape(q);
    return q->in[0].layout == HR_LAYOUT_PLAIN && q->in[1].layout == HR_LAYOUT_PLAIN &&
           q->out[0].layout == HR_LAYOUT_PLAIN && suits(&s);
}

// ---- scratch ----------------------------------------------------------------------------------------------

static int64_t scratch_floats(const winograd_scratch *scratch)
{
    return WINOGRAD_PLACES * scratch->place;
}

static winograd_scratch scratch_of(int64_t rows, int64_t row)
{
    return (winograd_scratch){.place = rows * row + GAP_FLOATS, .row = row};
}

static gemm product_of(const cut *u, int64_t depth)
{
    return (gemm){.m = u->tiles,
                  .n = WINOGRAD_PANEL,
                  .k = depth,
                  .a_row = u->in.row,
                  .b_row = WINOGRAD_PANEL,
                  .c_row = u->out.row};
}

static int64_t gemm_floats(const gemm *g)
{
    return round_up((int64_t)(gemm_scratch_bytes(g) / sizeof(float)), GAP_FLOATS);
}

static int64_t tiles_at_once(const winograd *w, int64_t channels)
{
    const int64_t most = w->tiles < TILES_AT_ONCE_MAX ? round_up(w->tiles, 8) : TILES_AT_ONCE_MAX;
    return clamp(TILE_FLOATS / channels / 8 * 8, TILES_AT_ONCE_MIN, most);
}

static cut cut_of(const winograd *w)
{
    const int64_t c = w->in.channels, f = round_up(w->out.channels, WINOGRAD_PANEL);
    cut u = {.columns = clamp(WEIGHT_FLOATS / c / WINOGRAD_PANEL * WINOGRAD_PANEL, WINOGRAD_PANEL, f)};
    u.tiles = tiles_at_once(w, c + u.columns);
    u.weights = scratch_of(c, u.columns);
    u.in = scratch_of(u.tiles, c + GAP_FLOATS);
    u.out = scratch_of(u.tiles, u.columns + GAP_FLOATS);
    const gemm g = product_of(&u, c);
    u.bias_floats = w->type == HR_F32 ? 0 : w->out.channels;
    u.shared_floats = scratch_floats(&u.weights) + u.bias_floats;
    u.floats = scratch_floats(&u.in) + scratch_floats(&u.out) + gemm_floats(&g);
    return u;
}

// Workers share the input's channels.
static gemm product_back_of(const cut *u, int64_t c, int64_t tiles)
{
    return (gemm){.m = c,
                  .n = WINOGRAD_PANEL,
                  .k = tiles,
                  .a_row = u->in.row,
                  .b_row = WINOGRAD_PANEL,
                  .c_row = u->sums.row,
                  .a_transposed = true};
}

static cut cut_back_of(const winograd *w, workers *team)
{
    const int64_t f = round_up(w->out.channels, WINOGRAD_PANEL), blocks = w->in.channels / CPU_LANES;
    const int64_t ranges = workers_for_ranges(team, w->in.channels, CPU_LANES);
    cut u = {.c = (blocks + ranges - 1) / ranges * CPU_LANES};
    u.columns = clamp(PRODUCT_FLOATS / u.c / WINOGRAD_PANEL * WINOGRAD_PANEL, WINOGRAD_PANEL, f);
    u.tiles = BACK_TILES;
    u.in = scratch_of(u.tiles, u.c + GAP_FLOATS);
    u.out = scratch_of(u.tiles, u.columns);
    u.sums = scratch_of(u.c, u.columns + GAP_FLOATS);
    const gemm g = product_back_of(&u, u.c, u.tiles);
    u.floats = scratch_floats(&u.in) + scratch_floats(&u.out) + scratch_floats(&u.sums) + gemm_floats(&g);
    return u;
}

static uint64_t workspace(const cpu_device *device, const op_query *q)
{
    const winograd w = winograd_of_query(q);
    const bool back = q->op == HR_OP_CONV2D_BWD_WEIGHTS;
    const cut u = back ? cut_back_of(&w, device->workers) : cut_of(&w);
    const uint64_t bytes =
        (uint64_t)(u.shared_floats + u.floats * workers_count(device->workers)) * sizeof(float);
    const uint64_t sums = q->out_count < 2   ? 0
                          : w.type == HR_F32 ? sums_scratch_bytes(device->workers, w.out.channels)
                                             : cpu_half_sums_bytes(device, w.out.channels);
    return bytes > sums ? bytes : sums;
}

// The parts of a worker's scratch, in their order.
static winograd_scratch take(winograd_scratch scratch, float **at)
{
    scratch.data = *at;
    *at += scratch_floats(&scratch);
    return scratch;
}

// ---- forward, and the data gradient ----------------------------------------------------------------------

static void weights_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float *at = j->scratch;
    const winograd_scratch to = take(j->cut->weights, &at);
    (void)worker;
    winograd_weights(j->w, j->weights, begin, end, j->f, j->f_end, &to);
}

static void multiply(const job *j, const winograd_scratch *in, const winograd_scratch *weights,
                     const winograd_scratch *out, int64_t tiles, float *scratch)
{
    const int64_t c = j->w->in.channels;
    gemm g = product_of(j->cut, c);
    g.m = tiles;
    for (int64_t place = 0; place < WINOGRAD_PLACES; place++) {
        for (int64_t n = 0; n < j->f_end - j->f; n += WINOGRAD_PANEL) {
            g.n = j->f_end - j->f - n < WINOGRAD_PANEL ? j->f_end - j->f - n : WINOGRAD_PANEL;
            const gemm_operands o = {.a = in->data + place * in->place,
                                     .b = weights->data + place * weights->place + n * c,
                                     .c = out->data + place * out->place + n};
            gemm_run(&g, &o, scratch);
        }
    }
}

static void tiles_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float *at = j->scratch;
    const winograd_scratch weights = take(j->cut->weights, &at);
    at = j->scratch + j->cut->shared_floats + j->cut->floats * worker;
    const winograd_scratch in = take(j->cut->in, &at), out = take(j->cut->out, &at);
    for (int64_t tile = begin; tile < end; tile += j->cut->tiles) {
        const int64_t tile_end = end - tile < j->cut->tiles ? end : tile + j->cut->tiles;
        winograd_input(j->w, j->x, tile, tile_end, 0, j->w->in.channels, &in);
        multiply(j, &in, &weights, &out, tile_end - tile, at);
        winograd_output(j->w, &out, tile, tile_end, j->f, j->f_end, &j->ending, j->to);
    }
}

static const float *bias_of(const cpu_run *r, const winograd *w, const cut *u)
{
    float *scratch = (float *)r->workspace + u->shared_floats - u->bias_floats;
    if (w->type == HR_F32) {
        return r->in[2];
    }
    cast_widen(scratch, r->in[2], w->type, w->out.channels);
    return scratch;
}

static void run_convolution(const cpu_run *r)
{
    const winograd w = winograd_of_query(r->query);
    const cut u = cut_of(&w);
    workers *team = r->device->workers;
    const bool forward = r->query->op == HR_OP_CONV2D;
    job j = {
        .w = &w, .cut = &u, .x = r->in[0], .weights = r->in[1], .to = r->out[0], .scratch = r->workspace};
    if (forward) {
        j.ending = (winograd_end){r->query->in_count > 2 ? bias_of(r, &w, &u) : NULL,
                                  r->query->attr.act != HR_ACT_NONE, cpu_ceiling(r->query->attr.act)};
    }
    for (j.f = 0; j.f < w.out.channels; j.f = j.f_end) {
        j.f_end = clamp(j.f + u.columns, 0, w.out.channels);
        workers_for(team, w.in.channels, CPU_LANES, weights_body, &j);
        workers_for(team, w.tiles, 8, tiles_body, &j);
    }
}

// ---- weight gradient --------------------------------------------------------------------------------------

// Adds the products of the tiles at hand to the sums; the first ones replace them.
static void multiply_back(const job *j, const winograd_scratch *in, const winograd_scratch *dy,
                          const winograd_scratch *sums, int64_t c, int64_t columns, int64_t tiles, bool first,
                          float *scratch)
{
    gemm g = product_back_of(j->cut, c, tiles);
    g.add = !first;
    for (int64_t place = 0; place < WINOGRAD_PLACES; place++) {
        for (int64_t n = 0; n < columns; n += WINOGRAD_PANEL) {
            g.n = columns - n < WINOGRAD_PANEL ? columns - n : WINOGRAD_PANEL;
            const gemm_operands o = {.a = in->data + place * in->place,
                                     .b = dy->data + place * dy->place + n * tiles,
                                     .c = sums->data + place * sums->place + n};
            gemm_run(&g, &o, scratch);
        }
    }
}

// Channels [begin, end) of the input.
static void channels_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const winograd *w = j->w;
    const cut *u = j->cut;
    float *at = j->scratch + u->floats * worker;
    const winograd_scratch in = take(u->in, &at), dy = take(u->out, &at), sums = take(u->sums, &at);
    for (int64_t f = 0; f < w->out.channels; f += u->columns) {
        const int64_t f_end = clamp(f + u->columns, 0, w->out.channels);
        for (int64_t tile = 0; tile < w->tiles; tile += u->tiles) {
            const int64_t tile_end = clamp(tile + u->tiles, 0, w->tiles);
            winograd_input(w, j->x, tile, tile_end, begin, end, &in);
            winograd_gradient(w, j->dy, tile, tile_end, f, f_end, &dy);
            multiply_back(j, &in, &dy, &sums, end - begin, f_end - f, tile_end - tile, tile == 0, at);
        }
        winograd_weights_back(w, &sums, begin, end, f, f_end, j->to);
    }
}

static void run_weight_gradient(const cpu_run *r)
{
    const winograd w = winograd_of_query(r->query);
    const cut u = cut_back_of(&w, r->device->workers);
    const job j = {
        .w = &w, .cut = &u, .x = r->in[0], .dy = r->in[1], .to = r->out[0], .scratch = r->workspace};
    workers_for(r->device->workers, w.in.channels, CPU_LANES, channels_body, &j);
    if (r->query->out_count > 1 && w.type != HR_F32) {
        cpu_half_sums(r->device, &r->query->in[1], r->in[1], &r->query->out[1], r->out[1], r->workspace);
    } else if (r->query->out_count > 1) {
        sums_columns(r->device->workers, r->in[1], w.out.images * w.out.height * w.out.width, w.out.channels,
                     r->out[1], r->workspace);
    }
}

// ---- where the workspace is limited -----------------------------------------------------------------------
// Under a limit that is too small the library's convolution is taken; in two bytes ours without Winograd's places.

static void run_own(const cpu_run *r)
{
    if (r->query->op == HR_OP_CONV2D_BWD_WEIGHTS) {
        run_weight_gradient(r);
    } else {
        run_convolution(r);
    }
}

static hr_status ask(const cpu_device *device, const op_query *q, uint64_t limit, target_answer *out,
                     hr_err *err)
{
    const uint64_t bytes = workspace(device, q);
    if (bytes > limit) {
        return cpu_onednn_conv.ask(device, q, limit, out, err);
    }
    out->impl = "own winograd";
    out->workspace_bytes = bytes;
    return HR_OK;
}

static hr_status prepare(const cpu_device *device, const program *p, const instr *i, const op_query *q,
                         void **state, hr_err *err)
{
    return cpu_temporary_bytes(p, i) >= workspace(device, q)
               ? HR_OK
               : cpu_onednn_conv.prepare(device, p, i, q, state, err);
}

static void release(void *state)
{
    cpu_onednn_conv.release(state);
}

static hr_status run(const cpu_run *r, hr_err *err)
{
    if (r->state != NULL) {
        return cpu_onednn_conv.call(r, err);
    }
    run_own(r);
    return HR_OK;
}

static hr_status ask_half(const cpu_device *device, const op_query *q, uint64_t limit, target_answer *out,
                          hr_err *err)
{
    (void)err;
    const uint64_t bytes = workspace(device, q);
    out->impl = bytes > limit ? target_impl_name("own", cpu_half_conv.name) : "own winograd";
    out->workspace_bytes = bytes > limit ? cpu_half_conv.workspace(device, q) : bytes;
    return HR_OK;
}

// The state is the implementation that runs in its stead.
static hr_status prepare_half(const cpu_device *device, const program *p, const instr *i, const op_query *q,
                              void **state, hr_err *err)
{
    static const cpu_impl *smaller = &cpu_half_conv;
    (void)err;
    *state = cpu_temporary_bytes(p, i) >= workspace(device, q) ? NULL : &smaller;
    return HR_OK;
}

static void release_half(void *state)
{
    (void)state;
}

static void run_half(const cpu_run *r)
{
    if (r->state != NULL) {
        (*(const cpu_impl **)r->state)->run(r);
    } else {
        run_own(r);
    }
}

const cpu_impl cpu_winograd = {
    .name = "winograd", .fits = fits, .ask = ask, .prepare = prepare, .release = release, .call = run};
const cpu_impl cpu_winograd_half = {.name = "winograd",
                                    .types = CPU_HALF,
                                    .fits = fits,
                                    .ask = ask_half,
                                    .prepare = prepare_half,
                                    .release = release_half,
                                    .run = run_half};
