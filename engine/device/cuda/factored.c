// SPDX-License-Identifier: Apache-2.0
// Updates that hold less than a moment for each weight: Adafactor's rows and columns, Adam's bytes.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/code8.h"
#include "base/host_mem.h"
#include "cuda_device.h"
#include "kernels/adafactor_args.h"
#include "kernels/adam8bit_args.h"

enum { LANES = 32, LINE_FLOATS = 64 };

_Static_assert(sizeof(adafactor_scalars) <= CUDA_SCALAR_BYTES, "scalars of an update");
_Static_assert(sizeof(adam8bit_scalars) <= CUDA_SCALAR_BYTES, "scalars of an update");
_Static_assert((int)ADAM8BIT_VALUES == CODE8_VALUES, "codes of a byte");

// NULL: nothing forbids the update.
static const int32_t *finite_of(const cuda_run *r)
{
    const op_query *q = r->query;
    return q->in_count == q->out_count + 2u ? (const int32_t *)r->in[q->in_count - 1] : NULL;
}

static double kept_of(const op_query *q, const step_io *io)
{
    return 1.0 - io->learning_rate * q->attr.rate;
}

static int64_t pieces(int64_t whole, int64_t piece)
{
    return whole / piece + (whole % piece != 0);
}

// ---- adafactor: sizes -------------------------------------------------------------------------------------

static bool is_vector(const op_query *q)
{
    return q->out_count == 2;
}

static bool adafactor_fits(const cuda_device *device, const op_query *q)
{
    (void)device;
    bool uniform = true;
    for (uint32_t k = 1; k <= q->out_count; k++) {
        uniform = uniform && q->in[k].dtype == q->in[0].dtype;
    }
    return uniform;
}

// No more tiles than ADAFACTOR_TILES but for what columns make necessary: a tile is as high as that needs.
static void cut_tiles(adafactor_args *a, const op_query *q)
{
    const int64_t lane = ADAFACTOR_LANE_BYTES / (int64_t)dtype_bytes((hr_dtype)q->in[0].dtype);
    const int64_t across = a->matrices * pieces(a->columns, LANES * lane);
    const int64_t high = pieces(across * pieces(a->rows, ADAFACTOR_TILE_ROWS), ADAFACTOR_TILES);
    const int64_t all_rows = pieces(a->rows, ADAFACTOR_TILE_ROWS);
    a->tile_rows = (int32_t)(ADAFACTOR_TILE_ROWS * (high < all_rows ? high : all_rows));
    a->row_tiles = pieces(a->rows, a->tile_rows);
    a->column_tiles = pieces(a->columns, LANES * lane);
    a->row_lines = pieces(a->rows, ADAFACTOR_LINE);
    a->column_lines = pieces(a->columns, ADAFACTOR_LINE);
    a->in_vectors = a->columns % lane == 0;
}

static int32_t at_most(int64_t blocks, int64_t most)
{
    return (int32_t)(blocks < most ? blocks : most);
}

static int64_t tile_count(const adafactor_args *a)
{
    return a->matrices * a->row_tiles * a->column_tiles;
}

static adafactor_args sizes_of(const op_query *q)
{
    const hr_shape *s = &q->in[0].shape;
    adafactor_args a = {
        .rows = 1, .columns = s->dim[s->rank - 1], .elements = (int64_t)cuda_elements(&q->in[0])};
    if (is_vector(q)) {
        const int64_t blocks = pieces(a.elements, ADAFACTOR_SMALL);
        a.parts = blocks == 1 ? 1 : at_most(pieces(a.elements, 4 * ADAFACTOR_THREADS), ADAFACTOR_BLOCKS_MAX);
        return a;
    }
    a.rows = s->dim[s->rank - 2];
    a.matrices = a.elements / (a.rows * a.columns);
    cut_tiles(&a, q);
    a.parts = at_most(tile_count(&a), ADAFACTOR_BLOCKS_MAX);
    return a;
}

// The next piece of the workspace; *at counts floats.
static float *take(float *base, int64_t *at, int64_t floats)
{
    float *piece = base == NULL ? NULL : base + *at;
    *at += pieces(floats, LINE_FLOATS) * LINE_FLOATS;
    return piece;
}

// Returns the bytes.
static uint64_t place_parts(adafactor_args *a, float *workspace)
{
    int64_t at = 0;
    if (a->matrices > 0) {
        a->row_part = take(workspace, &at, a->matrices * a->column_tiles * a->rows);
        a->column_part = take(workspace, &at, a->matrices * a->row_tiles * a->columns);
        a->r_now = take(workspace, &at, a->matrices * a->rows);
        a->c_now = take(workspace, &at, a->matrices * a->columns);
        a->r_part = take(workspace, &at, a->matrices * a->row_lines);
    } else if (a->parts == 1) {
        return 0;
    }
    a->w_part = take(workspace, &at, a->parts);
    a->u_part = take(workspace, &at, a->parts);
    return (uint64_t)at * sizeof(float);
}

static uint64_t adafactor_workspace(const cuda_device *device, const op_query *q)
{
    (void)device;
    adafactor_args a = sizes_of(q);
    return place_parts(&a, NULL);
}

// ---- adafactor: kernels -----------------------------------------------------------------------------------

enum { MEASURE, FACTORS, SIZE, APPLY, STAGES };

typedef struct adafactor_stages {
    CUfunction of[STAGES];
} adafactor_stages;

// NULL: the stage is left out.
static const char *stage_name(const op_query *q, uint32_t stage)
{
    static const char *const matrix[STAGES] = {"measure", "factors", "size", "apply"};
    static const char *const vector[STAGES] = {"vector_measure", NULL, NULL, "vector_apply"};
    static const char *const small[STAGES] = {NULL, NULL, NULL, "vector_small"};
    return (!is_vector(q) ? matrix : sizes_of(q).parts == 1 ? small : vector)[stage];
}

static hr_status find_stages(cuda_device *device, const op_query *q, adafactor_stages *stages, hr_err *err)
{
    char name[CUDA_NAME_MAX];
    for (uint32_t k = 0; k < STAGES; k++) {
        if (stage_name(q, k) != NULL) {
            (void)snprintf(name, sizeof name, "adafactor_%s_%s", stage_name(q, k), cuda_suffix(cuda_type(q)));
            HR_TRY(cuda_function(device, "adafactor", name, &stages->of[k], err));
        }
    }
    return HR_OK;
}

static void release(cuda_device *device, void *state)
{
    (void)device;
    hr_free(state);
}

static hr_status adafactor_prepare(cuda_device *device, const program *p, const instr *i, const op_query *q,
                                   uint64_t workspace_bytes, void **state, hr_err *err)
{
    (void)p, (void)i, (void)workspace_bytes;
    adafactor_stages *stages = hr_calloc(1, sizeof *stages);
    if (stages == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the kernels of %s", op_name((hr_op)q->op));
    }
    const hr_status status = find_stages(device, q, stages, err);
    if (status != HR_OK) {
        hr_free(stages);
        return status;
    }
    *state = stages;
    return HR_OK;
}

static void adafactor_fill(const op_query *q, const step_io *io, unsigned char slot[CUDA_SCALAR_BYTES])
{
    const double t = (double)io->update, fresh = pow(t, q->attr.beta2);
    const adafactor_scalars s = {.rate = (float)fmin(io->learning_rate, 1.0 / sqrt(t)),
                                 .kept = (float)kept_of(q, io),
                                 .keep = (float)(1.0 - fresh),
                                 .fresh = (float)fresh};
    memcpy(slot, &s, sizeof s);
}

static uint32_t stage_blocks(const adafactor_args *a, uint32_t stage)
{
    const int64_t lines = a->matrices * (a->row_lines + a->column_lines);
    return (uint32_t)(stage == FACTORS ? at_most(lines, 4 * ADAFACTOR_BLOCKS_MAX) : a->parts);
}

static hr_status adafactor_run(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const adafactor_stages *stages = r->state;
    adafactor_args a = sizes_of(q);
    (void)place_parts(&a, (float *)r->workspace);
    a.w = (void *)r->in[0];
    a.g = (const void *)r->in[1];
    a.r = is_vector(q) ? NULL : (void *)r->in[2];
    a.c = is_vector(q) ? NULL : (void *)r->in[3];
    a.v = is_vector(q) ? (void *)r->in[2] : q->out_count == 4 ? (void *)r->in[4] : NULL;
    a.finite = finite_of(r);
    a.scalars = (const adafactor_scalars *)r->scalars;
    a.epsilon = (float)q->attr.epsilon;
    a.least = (float)q->attr.beta1;
    for (uint32_t k = 0; k < STAGES; k++) {
        if (stages->of[k] != NULL) {
            const cuda_grid grid = {stage_blocks(&a, k), 1, 1, ADAFACTOR_THREADS, 0};
            HR_TRY(cuda_launch(r, stages->of[k], grid, &a, sizeof a, err));
        }
    }
    return HR_OK;
}

// ---- adam8bit: codes --------------------------------------------------------------------------------------

enum { DECADES = 7, ZERO_RUN = 0 };

// Of the codes above zero: decade d holds `cells` of them from code `first` on (base/code8.c).
typedef struct decade {
    int32_t cells, first;
    double unit; // what the decade ends at
} decade;

static decade decade_of(code8_kind kind, int d)
{
    const bool is_signed = kind == CODE8_SIGNED;
    return (decade){is_signed ? 1 << d : 2 << d, is_signed ? 1 << d : (2 << d) - 1,
                    pow(10.0, d + 1 - DECADES)};
}

// A decade's middles lie half a cell above its edges, so that the nearest code follows from the cell. A hundredth of a
// cell is taken off, so that rounding never leads to the code above; half a cell because adding INTEGER_BITS rounds.
static code_run run_of(const decade *d)
{
    const double slope = (double)d->cells / (0.9 * d->unit);
    return (code_run){(float)slope, (float)((double)d->first - slope * 0.1 * d->unit - 0.51),
                      (float)(d->first + d->cells - 1), 0.0F};
}

// No octave has two thresholds: they lie more than seven times apart.
static void make_finder(code8_kind kind, const float *value, code_finder *out)
{
    out->run[ZERO_RUN] = (code_run){0};
    for (uint32_t k = 0; k < ADAM8BIT_OCTAVES; k++) {
        out->octave[k] = (code_octave){INFINITY, 0};
    }
    for (int d = 0; d < DECADES; d++) {
        const decade own = decade_of(kind, d);
        const float threshold = (value[own.first - 1] + value[own.first]) / 2;
        out->run[d + 1] = run_of(&own);
        for (int k = 0; k < ADAM8BIT_OCTAVES; k++) {
            const float begin = ldexpf(1.0F, k - ADAM8BIT_OCTAVES);
            out->octave[k].below += threshold < begin;
            out->octave[k].threshold =
                threshold >= begin && threshold < 2 * begin ? threshold : out->octave[k].threshold;
        }
    }
}

static void make_codes(adam8bit_args *a)
{
    enum { ZERO = CODE8_VALUES / 2 - 1 };
    float values[CODE8_VALUES];
    code8_table(CODE8_SIGNED, values);
    memcpy(a->m_value, values + ZERO, sizeof a->m_value);
    code8_table(CODE8_UNSIGNED, a->v_value);
    make_finder(CODE8_SIGNED, a->m_value, &a->m_finder);
    make_finder(CODE8_UNSIGNED, a->v_value, &a->v_finder);
}

// ---- adam8bit: kernel -------------------------------------------------------------------------------------

static bool adam8bit_fits(const cuda_device *device, const op_query *q)
{
    (void)device;
    return q->in[1].dtype == q->in[0].dtype && q->in[2].dtype == HR_U8 && q->in[3].dtype == HR_U8 &&
           q->in[4].dtype == HR_F32;
}

static void adam8bit_name(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "adam8bit_%s", cuda_suffix(cuda_type(q)));
}

static hr_status adam8bit_prepare(cuda_device *device, const program *p, const instr *i, const op_query *q,
                                  uint64_t workspace_bytes, void **state, hr_err *err)
{
    (void)device, (void)p, (void)i, (void)workspace_bytes;
    const op_attr *attr = &q->attr;
    adam8bit_args *a = hr_calloc(1, sizeof *a);
    if (a == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the codes of adam8bit");
    }
    *a = (adam8bit_args){.elements = (int64_t)cuda_elements(&q->in[0]),
                         .blocks = (int64_t)cuda_elements(&q->in[4]) / 2,
                         .keep1 = (float)(1.0 - attr->beta1),
                         .keep2 = (float)(1.0 - attr->beta2),
                         .epsilon = (float)attr->epsilon};
    make_codes(a);
    *state = a;
    return HR_OK;
}

static void adam8bit_fill(const op_query *q, const step_io *io, unsigned char slot[CUDA_SCALAR_BYTES])
{
    const double t = (double)io->update;
    const double corrected =
        io->learning_rate * sqrt(1.0 - pow(q->attr.beta2, t)) / (1.0 - pow(q->attr.beta1, t));
    const adam8bit_scalars s = {(float)corrected, (float)kept_of(q, io)};
    memcpy(slot, &s, sizeof s);
}

static hr_status adam8bit_run(const cuda_run *r, hr_err *err)
{
    adam8bit_args a = *(const adam8bit_args *)r->state;
    a.w = (void *)r->in[0];
    a.g = (const void *)r->in[1];
    a.m = (uint8_t *)r->in[2];
    a.v = (uint8_t *)r->in[3];
    a.scales = (float *)r->in[4];
    a.finite = finite_of(r);
    a.scalars = (const adam8bit_scalars *)r->scalars;
    const cuda_grid grid = cuda_grid_over(r->device, (uint64_t)a.blocks * LANES, 1, ADAM8BIT_THREADS);
    return cuda_launch(r, r->function, grid, &a, sizeof a, err);
}

#define ADAFACTOR(id)                                                                                        \
    {                                                                                                        \
        .op = HR_OP_##id, .types = CUDA_REAL, .name = "tiles", .fits = adafactor_fits,                       \
        .workspace = adafactor_workspace, .prepare = adafactor_prepare, .release = release,                  \
        .scalars = adafactor_fill, .run = adafactor_run                                                      \
    }

static const cuda_impl impls[] = {
    ADAFACTOR(ADAFACTOR),
    ADAFACTOR(ADAFACTOR_KERAS),
    {.op = HR_OP_ADAM8BIT,
     .types = CUDA_REAL,
     .name = "blocks of 256",
     .fits = adam8bit_fits,
     .module = "adam8bit",
     .kernel = adam8bit_name,
     .prepare = adam8bit_prepare,
     .release = release,
     .scalars = adam8bit_fill,
     .run = adam8bit_run},
};

const cuda_family cuda_family_factored = CUDA_FAMILY(impls);
