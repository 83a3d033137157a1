// SPDX-License-Identifier: Apache-2.0
// Dense layers with whole-number weights. int8: rows of x become int8 with a scale each, products and sums are
// int32, the result is divided by both scales. Weights alone: a block of columns at a time becomes float32 in the
// workspace, behind the product of float32 (gemm.h). Of a table (OP_FLAG_TRANSPOSE) a row is what else is a column.
#include <math.h>
#include <string.h>

#include "base/quantize.h"
#include "base/workers.h"
#include "cpu.h"
#include "gemm.h"
#include "int8.h"
#include "simd.h"

// Panels are packed for each block of rows: 256 of them make that a hundredth of the product.
enum { BLOCK_ROWS = 256, COLUMN_BLOCK = 256, ALIGNMENT = 64 };
// Rows of the input, of weights that are widened at a time, and of these in one pass over the sums.
enum { FEW_ROWS = 4, FEW_LINES = 16, FEW_STEP = 4 };

typedef struct shape2 {
    int64_t rows, depth, units;
} shape2;

static shape2 shape2_of(const op_query *q)
{
    const hr_shape *x = &q->in[0].shape, *y = &q->out[0].shape;
    const int64_t depth = x->dim[x->rank - 1];
    return (shape2){cpu_elements_of(&q->in[0]) / depth, depth, y->dim[y->rank - 1]};
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static bool is_turned(const op_query *q)
{
    return (q->attr.flags & OP_FLAG_TRANSPOSE) != 0;
}

static int64_t at_least(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

// ---- int8 products --------------------------------------------------------------------------------------------

typedef struct int8_job {
    const int8_tiles *tiles;
    const float *x, *unit_scale, *bias; // bias NULL: none
    const int8_t *w;
    float *y, *row_inverse;
    int16_t *a;
    char *scratch; // of each worker: panels, sums
    shape2 s;
    int64_t a_row, groups, block_rows;
    bool turned; // w[units,depth]
    float floor, ceiling;
} int8_job;

static void int8_rows_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const int8_job *j = argument;
    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        j->row_inverse[r] = j->tiles->quantize(j->x + r * j->s.depth, j->s.depth, j->a + r * j->a_row);
    }
}

// A block of rows, a group of columns and a part of the depth.
typedef struct int8_pass {
    int64_t row, rows, column, columns, k, depth;
    int16_t *panels;
    int32_t *sums;                               // [rows][INT8_GROUP]
    float inverse[INT8_GROUP], bias[INT8_GROUP]; // inverse: of the columns' scales
} int8_pass;

static void set_columns(const int8_job *j, int8_pass *p, int64_t column)
{
    const int64_t left = j->s.units - column;
    p->column = column;
    p->columns = left < INT8_GROUP ? left : INT8_GROUP;
    for (int64_t c = 0; c < INT8_GROUP; c++) {
        p->inverse[c] = c < p->columns ? 1 / j->unit_scale[column + c] : 0;
        p->bias[c] = c < p->columns && j->bias != NULL ? j->bias[column + c] : 0;
    }
}

// One panel against all rows; behind the last part of the depth the sums become values.
static void run_panel(const int8_job *j, const int8_pass *p, int64_t first)
{
    const int64_t left = p->columns - first;
    const bool is_last = p->k + p->depth == j->s.depth;
    int8_finish f = {.inverse = p->inverse + first,
                     .bias = p->bias + first,
                     .y_row = j->s.units,
                     .columns = left < INT8_COLUMNS ? left : INT8_COLUMNS,
                     .floor = j->floor,
                     .ceiling = j->ceiling};
    int8_tile t = {.panel = p->panels + first * INT8_DEPTH,
                   .a_row = j->a_row,
                   .sums_row = INT8_GROUP,
                   .pairs = (p->depth + 1) / 2,
                   .add = p->k > 0};
    for (int64_t row = 0; row < p->rows; row += INT8_ROWS) {
        t.rows = p->rows - row < INT8_ROWS ? p->rows - row : INT8_ROWS;
        t.a = j->a + (p->row + row) * j->a_row + p->k;
        t.sums = p->sums + row * INT8_GROUP + first;
        j->tiles->run(&t);
        if (is_last) {
            f.row_inverse = j->row_inverse + p->row + row;
            f.y = j->y + (p->row + row) * j->s.units + p->column + first;
            j->tiles->finish(&t, &f);
        }
    }
}

static uint64_t int8_scratch_bytes(void)
{
    return INT8_DEPTH * INT8_GROUP * sizeof(int16_t) + BLOCK_ROWS * INT8_GROUP * sizeof(int32_t);
}

static void pack_part(const int8_job *j, const int8_pass *p)
{
    const int64_t step = INT8_DEPTH * INT8_COLUMNS;
    if (j->turned) {
        j->tiles->pack_turned(j->w + p->column * j->s.depth + p->k, p->depth, j->s.depth, p->columns,
                              p->panels, step);
    } else {
        j->tiles->pack(j->w + p->k * j->s.units + p->column, p->depth, j->s.units, p->columns, p->panels,
                       step);
    }
}

// An item is a block of rows and a group of columns; the groups of a block follow one another.
static void int8_product_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const int8_job *j = argument;
    int8_pass p = {.panels = (int16_t *)(j->scratch + worker * int8_scratch_bytes())};
    p.sums = (int32_t *)(p.panels + INT8_DEPTH * INT8_GROUP);
    for (int64_t item = begin; item < end; item++) {
        p.row = item / j->groups * j->block_rows;
        p.rows = j->s.rows - p.row < j->block_rows ? j->s.rows - p.row : j->block_rows;
        set_columns(j, &p, item % j->groups * INT8_GROUP);
        for (p.k = 0; p.k < j->s.depth; p.k += INT8_DEPTH) {
            p.depth = j->s.depth - p.k < INT8_DEPTH ? j->s.depth - p.k : INT8_DEPTH;
            pack_part(j, &p);
            for (int64_t first = 0; first < p.columns; first += INT8_COLUMNS) {
                run_panel(j, &p, first);
            }
        }
    }
}

static bool int8_fits(const cpu_device *device, const op_query *q)
{
    (void)device;
    return shape2_of(q).depth <= INT8_DEPTH_MAX;
}

static int64_t int8_row_of(const shape2 *s)
{
    return (s->depth + INT8_DEPTH_STEP - 1) / INT8_DEPTH_STEP * INT8_DEPTH_STEP;
}

// The rows as int16, the inverse of their scales, and what each worker needs.
static uint64_t int8_workspace(const cpu_device *device, const op_query *q)
{
    const shape2 s = shape2_of(q);
    return aligned((uint64_t)(s.rows * int8_row_of(&s)) * sizeof(int16_t)) +
           aligned((uint64_t)s.rows * sizeof(float)) + device->threads * int8_scratch_bytes();
}

// Where groups of columns are fewer than the workers, each of these has a block of rows, of enough to do: a block packs its weights anew,
// and a worker has to wake.
static int64_t block_rows_of(const cpu_device *device, const shape2 *s, int64_t groups)
{
    enum { WORTH = 1 << 19 }; // multiplications
    const int64_t blocks = (device->threads + groups - 1) / groups, shared = (s->rows + blocks - 1) / blocks;
    const int64_t least = WORTH / (s->depth * INT8_GROUP) + 1, rows = at_least(least, shared);
    return rows < BLOCK_ROWS ? (rows + INT8_ROWS - 1) / INT8_ROWS * INT8_ROWS : BLOCK_ROWS;
}

static void run_int8(const cpu_run *r)
{
    const shape2 s = shape2_of(r->query);
    const int64_t groups = (s.units + INT8_GROUP - 1) / INT8_GROUP;
    const int64_t block_rows = block_rows_of(r->device, &s, groups),
                  blocks = (s.rows + block_rows - 1) / block_rows;
    const int32_t act = r->query->attr.act;
    int8_job j = {.tiles = int8_tiles_here(),
                  .x = r->in[0],
                  .w = r->in[1],
                  .unit_scale = r->in[2],
                  .bias = r->query->in_count > 3 ? r->in[3] : NULL,
                  .y = r->out[0],
                  .a = r->workspace,
                  .s = s,
                  .a_row = int8_row_of(&s),
                  .turned = is_turned(r->query),
                  .groups = groups,
                  .block_rows = block_rows,
                  .floor = act == HR_ACT_NONE ? -INFINITY : 0,
                  .ceiling = act == HR_ACT_NONE ? INFINITY : cpu_ceiling(act)};
    j.row_inverse = (float *)((char *)r->workspace + aligned((uint64_t)(s.rows * j.a_row) * sizeof(int16_t)));
    j.scratch = (char *)j.row_inverse + aligned((uint64_t)s.rows * sizeof(float));
    workers_for_pieces(r->device->workers, s.rows, at_least(1, 4096 / s.depth), int8_rows_body, &j);
    workers_for(r->device->workers, blocks * j.groups, 1, int8_product_body, &j);
}

// ---- whole-number weights alone -------------------------------------------------------------------------------

typedef struct widen_job {
    const cpu_run *r;
    shape2 s;
    int64_t column, columns;
    float *to;
    float inverse[COLUMN_BLOCK]; // of the scales, int8 alone
} widen_job;

static void set_block(widen_job *j, int64_t column)
{
    const int64_t left = j->s.units - column;
    j->column = column;
    j->columns = left < COLUMN_BLOCK ? left : COLUMN_BLOCK;
    for (int64_t c = 0; j->r->query->op == HR_OP_DENSE_INT8_WEIGHTS && c < j->columns; c++) {
        j->inverse[c] = 1 / ((const float *)j->r->in[2])[column + c];
    }
}

// Rows [begin, end) of the weights, one behind the other from `to` on.
CPU_HOT static void widen_int8(const widen_job *j, int64_t begin, int64_t end, float *restrict to)
{
    const int64_t columns = j->columns, units = j->s.units;
    for (int64_t k = begin; k < end; k++, to += columns) {
        const int8_t *q = (const int8_t *)j->r->in[1] + k * units + j->column;
        for (int64_t c = 0; c < columns; c++) {
            to[c] = (float)q[c] * j->inverse[c];
        }
    }
}

// Blocks of columns begin at a whole byte, and all but the last end there: of an odd one the last half is not used.
CPU_HOT static void widen_int4(const widen_job *j, int64_t begin, int64_t end, float *restrict to)
{
    const int64_t pitch = j->r->query->in[1].shape.dim[1], columns = j->columns, pairs = (columns + 1) / 2;
    uint8_t half[COLUMN_BLOCK];
    for (int64_t k = begin; k < end; k++, to += columns) {
        const int64_t group = k / QUANTIZE_BLOCK * j->s.units + j->column;
        const float *scale = (const float *)j->r->in[2] + group;
        const int8_t *zero = (const int8_t *)j->r->in[3] + group;
        const uint8_t *q = (const uint8_t *)j->r->in[1] + k * pitch + j->column / 2;
        for (int64_t c = 0; c < pairs; c++) {
            half[2 * c] = q[c] & 0xf;
            half[2 * c + 1] = q[c] >> 4;
        }
        for (int64_t c = 0; c < columns; c++) {
            to[c] = (float)((half[c] ^ 8) - 8 - zero[c]) * scale[c];
        }
    }
}

CPU_HOT static void widen_row(const int8_t *restrict q, float inverse, int64_t depth, float *restrict to)
{
    for (int64_t k = 0; k < depth; k++) {
        to[k] = (float)q[k] * inverse;
    }
}

// Columns [begin, end) of the block, which are rows of a table, one behind the other from `to` on.
static void widen_turned(const widen_job *j, int64_t begin, int64_t end, float *to)
{
    const int64_t depth = j->s.depth, pitch = j->r->query->in[1].shape.dim[1];
    const int64_t groups = (int64_t)quantize_int4_groups((uint64_t)depth);
    for (int64_t n = begin; n < end; n++, to += depth) {
        const int64_t row = j->column + n;
        const uint8_t *q = (const uint8_t *)j->r->in[1] + row * pitch;
        if (j->r->query->op == HR_OP_DENSE_INT8_WEIGHTS) {
            widen_row((const int8_t *)q, j->inverse[n], depth, to);
        } else {
            cpu_widen_int4(q, (const float *)j->r->in[2] + row * groups,
                           (const int8_t *)j->r->in[3] + row * groups, depth, to);
        }
    }
}

static void widen(const widen_job *j, int64_t begin, int64_t end, float *to)
{
    if (j->r->query->op == HR_OP_DENSE_INT8_WEIGHTS) {
        widen_int8(j, begin, end, to);
    } else {
        widen_int4(j, begin, end, to);
    }
}

static void widen_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const widen_job *j = argument;
    (void)worker;
    if (is_turned(j->r->query)) {
        widen_turned(j, begin, end, j->to + begin * j->s.depth);
    } else {
        widen(j, begin, end, j->to + begin * j->columns);
    }
}

static const float *bias_of(const cpu_run *r)
{
    const uint32_t at = r->query->op == HR_OP_DENSE_INT8_WEIGHTS ? 3 : 4;
    return r->query->in_count > at ? r->in[at] : NULL;
}

// ---- few rows: weights are read once, and never written as float32 ----------------------------------------------

CPU_HOT static void add_rows(const float *restrict w, int64_t columns, const float *x, int64_t depth,
                             float *restrict y)
{
    for (int64_t k = 0; k < depth; k += FEW_STEP) {
        for (int64_t c = 0; c < columns; c++) {
            float sum = y[c];
            for (int64_t i = 0; i < FEW_STEP; i++) {
                sum += x[k + i] * w[(k + i) * columns + c];
            }
            y[c] = sum;
        }
    }
}

static void finish_few(const widen_job *j, float *y)
{
    const float *bias = bias_of(j->r);
    const int32_t act = j->r->query->attr.act;
    for (int64_t c = 0; c < j->columns; c++) {
        const float value = y[c] + (bias == NULL ? 0 : bias[j->column + c]);
        const float raised = act != HR_ACT_NONE && value < 0 ? 0 : value;
        y[c] = act != HR_ACT_NONE && raised > cpu_ceiling(act) ? cpu_ceiling(act) : raised;
    }
}

// Blocks [begin, end) of columns. Behind the last row of weights stand rows of zeros, times zeros of x.
static void few_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    widen_job j = *(const widen_job *)argument;
    float lines[FEW_LINES * COLUMN_BLOCK], x[FEW_LINES];
    (void)worker;
    for (int64_t block = begin; block < end; block++) {
        set_block(&j, block * COLUMN_BLOCK);
        float *y = (float *)j.r->out[0] + j.column;
        for (int64_t r = 0; r < j.s.rows; r++) {
            memset(y + r * j.s.units, 0, (size_t)j.columns * sizeof *y);
        }
        for (int64_t k = 0; k < j.s.depth; k += FEW_LINES) {
            const int64_t left = j.s.depth - k, lines_here = left < FEW_LINES ? left : FEW_LINES;
            widen(&j, k, k + lines_here, lines);
            memset(lines + lines_here * j.columns, 0,
                   (size_t)((FEW_LINES - lines_here) * j.columns) * sizeof *lines);
            for (int64_t r = 0; r < j.s.rows; r++) {
                memset(x, 0, sizeof x);
                memcpy(x, (const float *)j.r->in[0] + r * j.s.depth + k, (size_t)lines_here * sizeof *x);
                add_rows(lines, j.columns, x, FEW_LINES, y + r * j.s.units);
            }
        }
        for (int64_t r = 0; r < j.s.rows; r++) {
            finish_few(&j, y + r * j.s.units);
        }
    }
}

CPU_HOT static float dot(const float *restrict w, const float *restrict x, int64_t depth)
{
    f32x16 sums = {0};
    float sum = 0;
    int64_t k = 0;
    for (; k + CPU_LANES <= depth; k += CPU_LANES) {
        sums += F32X16(w + k) * F32X16(x + k);
    }
    for (; k < depth; k++) {
        sum += w[k] * x[k];
    }
    for (int64_t c = 0; c < CPU_LANES; c++) {
        sum += sums[c];
    }
    return sum;
}

// Of a table, whose rows are widened one at a time: a row of it lies in the nearest cache for each row of x.
static void few_turned_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    widen_job j = *(const widen_job *)argument;
    float *line = j.to + worker * j.s.depth;
    for (int64_t block = begin; block < end; block++) {
        set_block(&j, block * COLUMN_BLOCK);
        for (int64_t n = 0; n < j.columns; n++) {
            widen_turned(&j, n, n + 1, line);
            for (int64_t r = 0; r < j.s.rows; r++) {
                const float *x = (const float *)j.r->in[0] + r * j.s.depth;
                ((float *)j.r->out[0])[r * j.s.units + j.column + n] = dot(line, x, j.s.depth);
            }
        }
        for (int64_t r = 0; r < j.s.rows; r++) {
            finish_few(&j, (float *)j.r->out[0] + r * j.s.units + j.column);
        }
    }
}

// ---- many rows: blocks of columns as float32 --------------------------------------------------------------------

static gemm weights_gemm(const cpu_device *device, const op_query *q, int64_t columns)
{
    const shape2 s = shape2_of(q);
    return (gemm){.m = s.rows,
                  .n = columns,
                  .k = s.depth,
                  .c_row = s.units,
                  .b_transposed = is_turned(q),
                  .relu = q->attr.act != HR_ACT_NONE,
                  .workers = device->workers};
}

// A block of columns as float32 and what its product needs: that of the last block may be another than that of a whole one.
static uint64_t weights_workspace(const cpu_device *device, const op_query *q)
{
    const shape2 s = shape2_of(q);
    if (s.rows <= FEW_ROWS) {
        return is_turned(q) ? device->threads * (uint64_t)s.depth * sizeof(float) : 0;
    }
    const int64_t most = s.units < COLUMN_BLOCK ? s.units : COLUMN_BLOCK, left = s.units % COLUMN_BLOCK;
    const gemm whole = weights_gemm(device, q, most), rest = weights_gemm(device, q, left == 0 ? most : left);
    const uint64_t a = gemm_scratch_bytes(&whole), b = gemm_scratch_bytes(&rest);
    return aligned((uint64_t)(s.depth * most) * sizeof(float)) + (a > b ? a : b);
}

static void run_many(widen_job *j)
{
    const cpu_run *r = j->r;
    const int64_t most = j->s.units < COLUMN_BLOCK ? j->s.units : COLUMN_BLOCK;
    float *scratch = (float *)((char *)r->workspace + aligned((uint64_t)(j->s.depth * most) * sizeof(float)));
    for (int64_t column = 0; column < j->s.units; column += most) {
        set_block(j, column);
        const gemm g = weights_gemm(r->device, r->query, j->columns);
        const gemm_operands o = {r->in[0], j->to, bias_of(r) == NULL ? NULL : bias_of(r) + column,
                                 (float *)r->out[0] + column, NULL};
        const int64_t lines = is_turned(r->query) ? j->columns : j->s.depth;
        const int64_t line = is_turned(r->query) ? j->s.depth : j->columns;
        workers_for_pieces(r->device->workers, lines, at_least(1, 4096 / line), widen_body, j);
        gemm_run(&g, &o, scratch);
    }
    const float ceiling = cpu_ceiling(r->query->attr.act);
    if (r->query->attr.act != HR_ACT_NONE && !isinf(ceiling)) {
        cpu_rectify(r->device, r->out[0], j->s.rows * j->s.units, ceiling);
    }
}

static void run_weights(const cpu_run *r)
{
    widen_job j = {.r = r, .s = shape2_of(r->query), .to = r->workspace};
    if (j.s.rows <= FEW_ROWS) {
        workers_for(r->device->workers, (j.s.units + COLUMN_BLOCK - 1) / COLUMN_BLOCK, 1,
                    is_turned(r->query) ? few_turned_body : few_body, &j);
    } else {
        run_many(&j);
    }
}

const cpu_impl cpu_dense_int8 = {
    .name = "int8 tiles", .fits = int8_fits, .workspace = int8_workspace, .run = run_int8};
const cpu_impl cpu_dense_weights = {
    .name = "widened tiles", .workspace = weights_workspace, .run = run_weights};
