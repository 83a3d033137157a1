// SPDX-License-Identifier: Apache-2.0
// The product of two-byte matrices: tiles of C, each over the whole of k in passes, with the inner tiles of gemm.h.
#include <math.h>
#include <string.h>

#include "cast.h"
#include "gemm_pack.h"
#include "gemm_tiles.h"
#include "half_matrix.h"
#include "simd.h"
#include "workers.h"

enum {
    ROWS_MAX = 256, // of a tile of C
    COLUMNS_MAX = 256,
    DEPTH_MAX = 128, // of k in one pass
    SMALLEST = 32,   // sides of a tile are not halved below
    FEW_TILES = 8,   // for each thread: then one more for some would be seen
    SPLIT_DEPTH_MIN = 512,
    SERIAL_FLOPS = 1 << 19, // below this the second thread costs more than it brings
    LINE_FLOATS = 16
};

// How a product is cut: derived from sizes and threads alone. Rooms in floats, of one worker.
typedef struct cut {
    const gemm_tiles *tiles;
    int64_t panel;                // columns of a full inner tile
    int64_t rows, columns, depth; // of a tile of C; of a pass over k
    int64_t down, across, batch;  // how many tiles; how many products
    int64_t a_row, b_row, c_row;  // of the rooms; b_row: of a B whose rows are n, before it is turned
    int64_t a_floats, b_floats, turned_floats, c_floats, bias_floats, own_floats;
    uint32_t threads;
    bool by_depth; // threads share k; their sums are added in their order
} cut;

typedef struct job {
    const half_multiply *p;
    const cut *u;
    float *rooms;
} job;

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
static void share_out(const half_multiply *p, cut *u)
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

static void size_rooms(const half_multiply *p, cut *u)
{
    u->a_row = p->a_turned ? u->rows : u->depth;
    u->b_row = u->depth;
    u->c_row = in_lines(u->columns);
    u->a_floats = in_lines(u->a_row * (p->a_turned ? u->depth : u->rows));
    u->b_floats = in_lines(u->panel * u->depth);
    u->turned_floats = p->b_turned ? in_lines(u->b_row * u->panel) : 0;
    u->c_floats = u->c_row * u->rows;
    u->bias_floats = in_lines(parts_of(u->columns, u->panel) * u->panel);
    u->own_floats = u->a_floats + u->b_floats + u->turned_floats + u->c_floats + u->bias_floats;
}

static cut cut_of(const cpu_device *device, const half_multiply *p)
{
    const gemm_tiles *tiles = gemm_tiles_here();
    cut u = {.tiles = tiles,
             .panel = (int64_t)tiles->vectors * tiles->lanes,
             .rows = min_of(p->m, ROWS_MAX),
             .columns = min_of(p->n, COLUMNS_MAX),
             .depth = min_of(at_least_one(p->k), DEPTH_MAX),
             .batch = at_least_one(p->outer) * at_least_one(p->inner)};
    const bool small = 2.0 * (double)p->m * (double)p->n * (double)p->k * (double)u.batch < SERIAL_FLOPS;
    u.threads = small ? 1 : device->threads;
    u.by_depth = u.threads > 1 && u.batch == 1 && p->m <= u.rows && p->n <= u.columns &&
                 p->k >= (int64_t)SPLIT_DEPTH_MIN * u.threads;
    if (!u.by_depth) {
        share_out(p, &u);
    }
    u.down = parts_of(p->m, u.rows);
    u.across = parts_of(p->n, u.columns);
    size_rooms(p, &u);
    return u;
}

uint64_t half_multiply_bytes(const cpu_device *device, const half_multiply *p)
{
    const cut u = cut_of(device, p);
    return (uint64_t)u.own_floats * u.threads * sizeof(float);
}

// ---- one tile ---------------------------------------------------------------------------------------------

// A tile of one of the products, with the rooms of its worker.
typedef struct tile {
    half_matrix a, b, c;
    int64_t m, rows, n, columns;
    float *room_a, *room_b, *turned, *room_c, *bias;
} tile;

static void move_to(half_matrix *m, const product_steps *steps, int64_t outer, int64_t inner)
{
    m->data = (char *)m->data + (outer * steps->outer + inner * steps->inner) * (int64_t)dtype_bytes(m->type);
}

static void load_bias(const half_multiply *p, int64_t inner, tile *t)
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

static tile tile_of(const job *j, int64_t item, uint32_t worker)
{
    const half_multiply *p = j->p;
    const cut *u = j->u;
    const int64_t tiles = u->down * u->across, batch = item / tiles, at = item % tiles;
    const int64_t outer = batch / at_least_one(p->inner), inner = batch % at_least_one(p->inner);
    tile t = {.a = p->a, .b = p->b, .c = p->c, .m = at % u->down * u->rows, .n = at / u->down * u->columns};
    t.rows = min_of(u->rows, p->m - t.m);
    t.columns = min_of(u->columns, p->n - t.n);
    t.room_a = j->rooms + u->own_floats * worker;
    t.room_b = t.room_a + u->a_floats;
    t.turned = t.room_b + u->b_floats;
    t.room_c = t.turned + u->turned_floats;
    t.bias = t.room_c + u->c_floats;
    move_to(&t.a, &p->a_at, outer, inner);
    move_to(&t.b, &p->b_at, outer, inner);
    move_to(&t.c, &p->c_at, outer, inner);
    load_bias(p, inner, &t);
    return t;
}

static void load_a(const job *j, const tile *t, int64_t k, int64_t depth)
{
    if (j->p->a_turned) {
        half_gather(&t->a, k, depth, t->m, t->rows, t->room_a, j->u->a_row);
    } else {
        half_gather(&t->a, t->m, t->rows, k, depth, t->room_a, j->u->a_row);
    }
}

// One panel of B, [depth][panel], zeros behind the last column.
static void load_panel(const job *j, const tile *t, int64_t n, int64_t columns, int64_t k, int64_t depth)
{
    const int64_t panel = j->u->panel;
    float *to = t->room_b;
    if (columns < panel) {
        memset(to, 0, (size_t)(panel * depth) * sizeof *to);
    }
    if (j->p->b_turned) {
        half_gather(&t->b, n, columns, k, depth, t->turned, j->u->b_row);
        gemm_transpose(to, panel, t->turned, j->u->b_row, columns, depth);
    } else {
        half_gather(&t->b, k, depth, n, columns, to, panel);
    }
}

// All rows of the tile against one panel.
static void run_panel(const job *j, const tile *t, gemm_tile g, int64_t n, int64_t columns)
{
    const cut *u = j->u;
    const bool turned = j->p->a_turned;
    g.b = t->room_b;
    g.b_step = u->panel;
    g.a_row = turned ? 1 : u->a_row;
    g.a_step = turned ? u->a_row : 1;
    g.c_row = u->c_row;
    g.bias = g.bias == NULL ? NULL : t->bias + (n - t->n);
    for (int64_t m = 0; m < t->rows; m += u->tiles->rows) {
        g.a = t->room_a + m * g.a_row;
        g.c = t->room_c + m * u->c_row + (n - t->n);
        gemm_tile_run(u->tiles, &g, min_of(u->tiles->rows, t->rows - m), columns);
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

static void finish(const job *j, const tile *t)
{
    for (int64_t r = 0; r < t->rows; r++) {
        finish_row(j->p, t->room_c + r * j->u->c_row, t->bias, t->columns);
    }
}

// The sum of the tile over [k, end) into its room; `whole`: what belongs to the whole sum follows the last pass.
static void sum_tile(const job *j, const tile *t, int64_t begin, int64_t end, bool whole)
{
    for (int64_t k = begin; k < end; k += j->u->depth) {
        const int64_t depth = min_of(j->u->depth, end - k);
        const bool last = whole && k + depth == end;
        const gemm_tile g = {.depth = depth,
                             .add = k > begin,
                             .scale = last ? j->p->scale : 0.0F,
                             .bias = last ? t->bias : NULL,
                             .relu = last && j->p->relu};
        load_a(j, t, k, depth);
        for (int64_t n = t->n; n < t->n + t->columns; n += j->u->panel) {
            const int64_t columns = min_of(j->u->panel, t->n + t->columns - n);
            load_panel(j, t, n, columns, k, depth);
            run_panel(j, t, g, n, columns);
        }
    }
    if (begin >= end) { // no tap reaches these pixels
        memset(t->room_c, 0, (size_t)j->u->c_floats * sizeof *t->room_c);
        finish(j, t);
    }
}

CPU_HOT static void cut_off(float *c, int64_t count, float ceiling)
{
    for (int64_t i = 0; i < count; i++) {
        c[i] = c[i] > ceiling ? ceiling : c[i];
    }
}

static void store_tile(const job *j, const tile *t)
{
    if (j->p->relu && !isinf(j->p->ceiling)) {
        for (int64_t r = 0; r < t->rows; r++) {
            cut_off(t->room_c + r * j->u->c_row, t->columns, j->p->ceiling);
        }
    }
    half_scatter(&t->c, t->m, t->rows, t->n, t->columns, t->room_c, j->u->c_row);
}

static void tiles_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    for (int64_t item = begin; item < end; item++) {
        const tile t = tile_of(j, item, worker);
        sum_tile(j, &t, 0, j->p->k, true);
        store_tile(j, &t);
    }
}

// ---- shared depth -----------------------------------------------------------------------------------------

static void depth_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const tile t = tile_of(j, 0, worker);
    sum_tile(j, &t, begin, end, false);
}

CPU_HOT static void add_to(float *restrict sum, const float *restrict part, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sum[i] += part[i];
    }
}

static void finish_depth(const job *j, uint32_t ranges)
{
    const tile t = tile_of(j, 0, 0);
    for (uint32_t part = 1; part < ranges; part++) {
        add_to(t.room_c, t.room_c + j->u->own_floats * part, t.rows * j->u->c_row);
    }
    finish(j, &t);
    store_tile(j, &t);
}

void half_multiply_run(const cpu_device *device, const half_multiply *p, void *workspace)
{
    const cut u = cut_of(device, p);
    const job j = {p, &u, workspace};
    const int64_t items = u.down * u.across * u.batch;
    if (u.by_depth) {
        cpu_for(device->workers, p->k, u.depth, depth_body, &j);
        finish_depth(&j, cpu_for_ranges(device->workers, p->k, u.depth));
    } else if (u.threads == 1) {
        tiles_body(&j, 0, items, 0);
    } else {
        cpu_for(device->workers, items, 1, tiles_body, &j);
    }
}
