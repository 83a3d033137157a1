// SPDX-License-Identifier: Apache-2.0
// The product of two-byte matrices: tiles of C, each over the whole of k in passes, with the inner tiles of gemm.h.
#include <math.h>
#include <string.h>

#include "base/workers.h"
#include "cast.h"
#include "gemm_pack.h"
#include "half_stage.h"
#include "simd.h"

enum {
    ROWS_MAX = 256, // of a tile of C
    COLUMNS_MAX = 256,
    DEPTH_MAX = 128, // of k in one pass
    SMALLEST = 32,   // sides of a tile are not halved below
    FEW_TILES = 8,   // for each thread: then one more for some would be seen
    SPLIT_DEPTH_MIN = 512,
    CLOSE_COLUMNS_MAX = 128, // farther apart, rows fall on few sets of the nearest cache
    C_FLOATS = ROWS_MAX * COLUMNS_MAX,
    SERIAL_FLOPS = 1 << 19, // below this the second thread costs more than it brings
    LINE_FLOATS = 16
};

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t at_least_one(int64_t count)
{
    return count < 1 ? 1 : count;
}

static int64_t parts_of(int64_t all, int64_t part)
{
    return (all + part - 1) / part;
}

static int64_t in_lines(int64_t floats)
{
    return parts_of(floats, LINE_FLOATS) * LINE_FLOATS;
}

// Smaller tiles until every thread has one; as many for each, where they are few.
static void share_out(const half_multiply *p, half_shares *u)
{
    while (parts_of(p->m, u->rows) * parts_of(p->n, u->columns) * u->batch < u->threads &&
           (u->rows > SMALLEST || u->columns > SMALLEST)) {
        int64_t *side = u->rows >= u->columns ? &u->rows : &u->columns;
        *side = (*side + 1) / 2;
    }
    const int64_t down = parts_of(p->m, u->rows), across = parts_of(p->n, u->columns);
    const int64_t all = down * across * u->batch;
    if (all < (int64_t)FEW_TILES * u->threads && all % u->threads != 0 && p->m >= p->n) {
        u->rows = at_least_one(parts_of(p->m, parts_of(down, u->threads) * u->threads));
    } else if (all < (int64_t)FEW_TILES * u->threads && all % u->threads != 0) {
        u->columns = at_least_one(parts_of(p->n, parts_of(across, u->threads) * u->threads));
    }
    u->rows = min_of(parts_of(u->rows, u->tiles->rows) * u->tiles->rows, p->m);
    u->columns = min_of(parts_of(u->columns, u->panel) * u->panel, p->n);
}

static void size_rooms(const half_multiply *p, half_shares *u)
{
    const int64_t deepest = u->staged && p->a_turned ? u->stage.pixels : u->depth;
    u->a_row = p->a_turned ? u->rows : u->depth;
    u->b_row = u->depth;
    u->c_row = in_lines(u->columns);
    u->a_floats = in_lines(u->staged ? u->stage.floats : u->a_row * (p->a_turned ? u->depth : u->rows));
    u->close_b = !p->b_turned && p->b.kind == HALF_MATRIX && p->b.row == p->n && u->columns == p->n &&
                 p->n <= CLOSE_COLUMNS_MAX;
    u->b_floats =
        in_lines((u->close_b ? u->columns : u->panel) * deepest + u->panel); // read in whole registers
    u->turned_floats = p->b_turned ? in_lines(u->b_row * u->panel) : 0;
    u->c_floats = u->c_row * u->rows;
    u->bias_floats = in_lines(parts_of(u->columns, u->panel) * u->panel);
    u->own_floats = u->a_floats + u->b_floats + u->turned_floats + u->c_floats + u->bias_floats;
}

// Tiles of whole bands of pixels, at least one for each thread where there are as many rows.
static void cut_bands(const half_multiply *p, half_shares *u)
{
    u->stage = half_stage_of(p, min_of(ROWS_MAX, parts_of(p->m, u->threads)));
    u->rows = u->stage.pixels;
    u->down = u->stage.bands;
}

// A tile of C as large as there is scratch, so that few tiles stage the same images.
static void cut_places(const half_multiply *p, half_shares *u)
{
    const int64_t most = C_FLOATS / in_lines(u->columns);
    u->stage = half_stage_of(p, DEPTH_MAX);
    u->rows = min_of(p->m, most > ROWS_MAX ? most : ROWS_MAX);
}

static bool shares_depth(const half_multiply *p, const half_shares *u)
{
    const bool one_tile = u->batch == 1 && p->m <= u->rows && p->n <= u->columns;
    const bool long_enough = u->staged ? p->a_turned && u->stage.bands >= (int64_t)u->threads
                                       : p->k >= (int64_t)SPLIT_DEPTH_MIN * u->threads;
    return u->threads > 1 && one_tile && long_enough;
}

static half_shares shares_of(const cpu_device *device, const half_multiply *p)
{
    const gemm_tiles *tiles = gemm_tiles_here();
    half_shares u = {.tiles = tiles,
                     .panel = (int64_t)tiles->vectors * tiles->lanes,
                     .rows = min_of(p->m, ROWS_MAX),
                     .columns = min_of(p->n, COLUMNS_MAX),
                     .depth = min_of(at_least_one(p->k), DEPTH_MAX),
                     .batch = at_least_one(p->outer) * at_least_one(p->inner),
                     .staged = half_is_staged(p)};
    const bool small = 2.0 * (double)p->m * (double)p->n * (double)p->k * (double)u.batch < SERIAL_FLOPS;
    u.threads = small ? 1 : device->threads;
    if (u.staged && p->a_turned) {
        cut_places(p, &u);
    }
    u.by_depth = shares_depth(p, &u);
    if (u.staged && !p->a_turned) {
        cut_bands(p, &u);
    } else {
        if (!u.by_depth) {
            share_out(p, &u);
        }
        u.down = parts_of(p->m, u.rows);
    }
    u.across = parts_of(p->n, u.columns);
    size_rooms(p, &u);
    return u;
}

uint64_t half_multiply_bytes(const cpu_device *device, const half_multiply *p)
{
    const half_shares u = shares_of(device, p);
    return (uint64_t)u.own_floats * u.threads * sizeof(float);
}

// ---- one tile ---------------------------------------------------------------------------------------------

static void move_to(half_matrix *m, const product_steps *steps, int64_t outer, int64_t inner)
{
    m->data = (char *)m->data + (outer * steps->outer + inner * steps->inner) * (int64_t)dtype_bytes(m->type);
}

static void load_bias(const half_multiply *p, int64_t inner, half_tile *t)
{
    const int64_t at = inner * p->n + t->n;
    if (p->bias == NULL) {
        t->bias = NULL;
    } else if (p->bias_type == HR_F32) {
        memcpy(t->bias, (const float *)p->bias + at, (size_t)t->columns * sizeof *t->bias);
    } else {
        cast_widen(t->bias, (const uint16_t *)p->bias + at, p->bias_type, t->columns);
    }
}

static half_tile tile_of(const half_job *j, int64_t item, uint32_t worker)
{
    const half_multiply *p = j->p;
    const half_shares *u = j->u;
    const int64_t tiles = u->down * u->across, batch = item / tiles, at = item % tiles;
    const int64_t outer = batch / at_least_one(p->inner), inner = batch % at_least_one(p->inner);
    half_tile t = {
        .a = p->a, .b = p->b, .c = p->c, .m = at % u->down * u->rows, .n = at / u->down * u->columns};
    t.rows = min_of(u->rows, p->m - t.m);
    if (u->staged && !p->a_turned) {
        const half_band_at b = half_band_on(p, &u->stage, at % u->down);
        t.m = b.pixel;
        t.rows = b.pixels;
    }
    t.columns = min_of(u->columns, p->n - t.n);
    t.scratch_a = j->scratch_areas + u->own_floats * worker;
    t.scratch_b = t.scratch_a + u->a_floats;
    t.turned = t.scratch_b + u->b_floats;
    t.scratch_c = t.turned + u->turned_floats;
    t.bias = t.scratch_c + u->c_floats;
    move_to(&t.a, &p->a_at, outer, inner);
    move_to(&t.b, &p->b_at, outer, inner);
    move_to(&t.c, &p->c_at, outer, inner);
    load_bias(p, inner, &t);
    return t;
}

static void load_a(const half_job *j, const half_tile *t, int64_t k, int64_t depth)
{
    if (j->p->a_turned) {
        half_gather(&t->a, k, depth, t->m, t->rows, t->scratch_a, j->u->a_row);
    } else {
        half_gather(&t->a, t->m, t->rows, k, depth, t->scratch_a, j->u->a_row);
    }
}

void half_load_panel(const half_job *j, const half_tile *t, int64_t n, int64_t columns, int64_t k,
                     gemm_tile *g)
{
    const half_shares *u = j->u;
    g->b = t->scratch_b + (u->close_b ? n - t->n : 0);
    g->b_step = u->close_b ? t->columns : u->panel;
    if (u->close_b) {
        if (n == t->n) {
            half_gather(&t->b, k, g->depth, n, t->columns, t->scratch_b, t->columns);
        }
        return;
    }
    if (columns < u->panel) { // zeros behind the last column
        memset(t->scratch_b, 0, (size_t)(u->panel * g->depth) * sizeof *t->scratch_b);
    }
    if (j->p->b_turned) {
        half_gather(&t->b, n, columns, k, g->depth, t->turned, u->b_row);
        gemm_transpose(t->scratch_b, u->panel, t->turned, u->b_row, columns, g->depth);
    } else {
        half_gather(&t->b, k, g->depth, n, columns, t->scratch_b, u->panel);
    }
}

int64_t half_whole_columns(const half_job *j, int64_t columns)
{
    return parts_of(columns, j->u->tiles->lanes) * j->u->tiles->lanes;
}

void half_end_pass(const half_job *j, const half_tile *t, gemm_tile *g)
{
    g->scale = j->p->scale;
    g->bias = t->bias;
    g->relu = j->p->relu;
}

// All rows of the tile against one panel.
static void run_panel(const half_job *j, const half_tile *t, gemm_tile g, int64_t n, int64_t columns)
{
    const half_shares *u = j->u;
    const bool turned = j->p->a_turned;
    g.a_row = turned ? 1 : u->a_row;
    g.a_step = turned ? u->a_row : 1;
    g.c_row = u->c_row;
    g.bias = g.bias == NULL ? NULL : t->bias + (n - t->n);
    for (int64_t m = 0; m < t->rows; m += u->tiles->rows) {
        g.a = t->scratch_a + m * g.a_row;
        g.c = t->scratch_c + m * u->c_row + (n - t->n);
        gemm_tile_run(u->tiles, &g, min_of(u->tiles->rows, t->rows - m), half_whole_columns(j, columns));
    }
}

static void finish_row(const half_multiply *p, float *row, const float *bias, int64_t columns)
{
    const float scale = p->scale == 0.0F ? 1.0F : p->scale;
    for (int64_t c = 0; c < columns; c++) {
        const float value = scale * row[c] + (bias == NULL ? 0.0F : bias[c]);
        row[c] = p->relu && value < 0.0F ? 0.0F : value;
    }
}

static void finish(const half_job *j, const half_tile *t)
{
    for (int64_t r = 0; r < t->rows; r++) {
        finish_row(j->p, t->scratch_c + r * j->u->c_row, t->bias, t->columns);
    }
}

// The sum of the tile over [k, end) into its scratch; `whole`: what belongs to the whole sum follows the last pass.
static void sum_tile(const half_job *j, const half_tile *t, int64_t begin, int64_t end, bool whole)
{
    for (int64_t k = begin; k < end; k += j->u->depth) {
        const int64_t depth = min_of(j->u->depth, end - k);
        gemm_tile g = {.depth = depth, .add = k > begin};
        if (whole && k + depth == end) {
            half_end_pass(j, t, &g);
        }
        load_a(j, t, k, depth);
        for (int64_t n = t->n; n < t->n + t->columns; n += j->u->panel) {
            const int64_t columns = min_of(j->u->panel, t->n + t->columns - n);
            half_load_panel(j, t, n, columns, k, &g);
            run_panel(j, t, g, n, columns);
        }
    }
    if (begin >= end) { // no tap reaches these pixels
        memset(t->scratch_c, 0, (size_t)j->u->c_floats * sizeof *t->scratch_c);
        finish(j, t);
    }
}

CPU_HOT static void cut_off(float *c, int64_t count, float ceiling)
{
    for (int64_t i = 0; i < count; i++) {
        c[i] = c[i] > ceiling ? ceiling : c[i];
    }
}

static void store_tile(const half_job *j, const half_tile *t)
{
    if (j->p->relu && !isinf(j->p->ceiling)) {
        for (int64_t r = 0; r < t->rows; r++) {
            cut_off(t->scratch_c + r * j->u->c_row, t->columns, j->p->ceiling);
        }
    }
    half_scatter(&t->c, t->m, t->rows, t->n, t->columns, t->scratch_c, j->u->c_row);
}

static void tiles_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const half_job *j = argument;
    for (int64_t item = begin; item < end; item++) {
        const half_tile t = tile_of(j, item, worker);
        if (!j->u->staged || j->p->k == 0) {
            sum_tile(j, &t, 0, j->p->k, true);
        } else if (j->p->a_turned) {
            half_sum_bands(j, &t, 0, j->u->stage.bands);
        } else {
            half_sum_band(j, &t, item % j->u->down);
        }
        store_tile(j, &t);
    }
}

// ---- shared depth -----------------------------------------------------------------------------------------

static void depth_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const half_job *j = argument;
    const half_tile t = tile_of(j, 0, worker);
    if (j->u->staged) {
        half_sum_bands(j, &t, begin, end);
    } else {
        sum_tile(j, &t, begin, end, false);
    }
}

CPU_HOT static void add_to(float *restrict sum, const float *restrict part, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sum[i] += part[i];
    }
}

static void finish_depth(const half_job *j, uint32_t ranges)
{
    const half_tile t = tile_of(j, 0, 0);
    for (uint32_t part = 1; part < ranges; part++) {
        add_to(t.scratch_c, t.scratch_c + j->u->own_floats * part, t.rows * j->u->c_row);
    }
    finish(j, &t);
    store_tile(j, &t);
}

void half_multiply_run(const cpu_device *device, const half_multiply *p, void *workspace)
{
    const half_shares u = shares_of(device, p);
    const half_job j = {p, &u, workspace};
    const int64_t items = u.down * u.across * u.batch;
    if (u.by_depth) {
        const int64_t parts = u.staged ? u.stage.bands : p->k, grain = u.staged ? 1 : u.depth;
        workers_for(device->workers, parts, grain, depth_body, &j);
        finish_depth(&j, workers_for_ranges(device->workers, parts, grain));
    } else if (u.threads == 1) {
        tiles_body(&j, 0, items, 0);
    } else {
        workers_for(device->workers, items, 1, tiles_body, &j);
    }
}
