// SPDX-License-Identifier: Apache-2.0
// Adafactor: rows and columns of a variable's second moments, less than one for each weight.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/adafactor_args.h"
#include "update.h"

enum { LANES = 32, LINE_FLOATS = 64 };

_Static_assert(sizeof(adafactor_scalars) <= CUDA_SCALAR_BYTES, "scalars of an update");

static int64_t pieces(int64_t whole, int64_t piece)
{
    return whole / piece + (whole % piece != 0);
}

// ---- sizes -------------------------------------------------------------------------------------

static bool is_vector(const op_query *q)
{
    return q->out_count == 2;
}

static bool fits(const cuda_device *device, const op_query *q)
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

static uint64_t workspace(const cuda_device *device, const op_query *q)
{
    (void)device;
    adafactor_args a = sizes_of(q);
    return place_parts(&a, NULL);
}

// ---- kernels -----------------------------------------------------------------------------------

// Of matrices. Vectors are measured and applied, small ones in one.
enum { MEASURE, FACTORS, SIZE, APPLY, STAGES };

static uint32_t stage_count(const op_query *q)
{
    return !is_vector(q) ? STAGES : sizes_of(q).parts == 1 ? 1 : 2;
}

static uint32_t name_stages(const op_query *q, char name[CUDA_STAGES_MAX][CUDA_NAME_MAX])
{
    static const char *const matrix[] = {"measure", "factors", "size", "apply"};
    static const char *const vector[] = {"vector_measure", "vector_apply"};
    static const char *const small[] = {"vector_small"};
    const uint32_t count = stage_count(q);
    const char *const *stages = count == STAGES ? matrix : count == 1 ? small : vector;
    for (uint32_t k = 0; k < count; k++) {
        (void)snprintf(name[k], CUDA_NAME_MAX, "adafactor_%s_%s", stages[k], cuda_suffix(cuda_type(q)));
    }
    return count;
}

static void fill(const op_query *q, const step_io *io, unsigned char slot[CUDA_SCALAR_BYTES])
{
    const double t = (double)io->update, fresh = pow(t, q->attr.beta2);
    const adafactor_scalars s = {.rate = (float)fmin(io->learning_rate, 1.0 / sqrt(t)),
                                 .kept = (float)cuda_kept_of(q, io),
                                 .keep = (float)(1.0 - fresh),
                                 .fresh = (float)fresh};
    memcpy(slot, &s, sizeof s);
}

static uint32_t stage_blocks(const adafactor_args *a, uint32_t stage)
{
    const int64_t lines = a->matrices * (a->row_lines + a->column_lines);
    return (uint32_t)(a->matrices > 0 && stage == FACTORS ? at_most(lines, 4 * ADAFACTOR_BLOCKS_MAX)
                                                          : a->parts);
}

static hr_status run(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    adafactor_args a = sizes_of(q);
    (void)place_parts(&a, (float *)r->workspace);
    a.w = (void *)r->in[0];
    a.g = (const void *)r->in[1];
    a.r = is_vector(q) ? NULL : (void *)r->in[2];
    a.c = is_vector(q) ? NULL : (void *)r->in[3];
    a.v = is_vector(q) ? (void *)r->in[2] : q->out_count == 4 ? (void *)r->in[4] : NULL;
    a.finite = (const int32_t *)cuda_verdict_of(r);
    a.scalars = (const adafactor_scalars *)r->scalars;
    a.epsilon = (float)q->attr.epsilon;
    a.least = (float)q->attr.beta1;
    const uint32_t count = stage_count(q);
    for (uint32_t k = 0; k < count; k++) {
        const cuda_grid grid = {stage_blocks(&a, k), 1, 1, ADAFACTOR_THREADS, 0};
        HR_TRY(cuda_launch(r, r->stage[k], grid, &a, sizeof a, err));
    }
    return HR_OK;
}

#define ADAFACTOR(id)                                                                                        \
    {                                                                                                        \
        .op = HR_OP_##id, .types = CUDA_REAL, .name = "tiles", .fits = fits, .workspace = workspace,         \
        .module = "adafactor", .stages = name_stages, .scalars = fill, .run = run                            \
    }

static const cuda_impl impls[] = {ADAFACTOR(ADAFACTOR), ADAFACTOR(ADAFACTOR_KERAS)};

const cuda_family cuda_family_adafactor = CUDA_FAMILY(impls);
