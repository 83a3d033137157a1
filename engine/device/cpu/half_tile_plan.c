// SPDX-License-Identifier: Apache-2.0
// Which operations are cut, and how.
#include <string.h>

#include "half.h"

enum { TILE_ELEMENTS = 2048, TILE_ROW_ELEMENTS = 4096, TILE_IMAGE_ELEMENTS = 16384 };

static int64_t at_least_one(int64_t count)
{
    return count < 1 ? 1 : count;
}

static bool is_repeated(const op_traits *m, uint32_t input)
{
    return (m->repeated >> input & 1) != 0;
}

static void cut_rows(const op_query *q, half_tile_plan *cut)
{
    const hr_shape *x = &q->in[0].shape;
    const int64_t columns = x->dim[x->rank - 1];
    cut->items = cpu_elements_of(&q->in[0]) / columns;
    cut->most = at_least_one(TILE_ROW_ELEMENTS / columns);
    if ((q->attr.flags & OP_FLAG_CAUSAL) != 0 && x->rank > 1) {
        cut->group = x->dim[x->rank - 2]; // where a row's number in its matrix begins anew
    }
}

// What is repeated is short, and a tile holds it several times, or long, and a tile is a part of it.
static void cut_periods(const op_query *q, const op_traits *m, half_tile_plan *cut)
{
    const int64_t period = cpu_elements_of(&q->in[is_repeated(m, 1) ? 1 : 0]);
    const int64_t all = cpu_elements_of(&q->out[0]);
    if (period > TILE_ELEMENTS) {
        cut->items = all;
        cut->group = period;
        cut->most = TILE_ELEMENTS;
    } else {
        cut->items = all / period;
        cut->most = at_least_one(TILE_ELEMENTS / period);
    }
}

// ---- images -----------------------------------------------------------------------------------------------

static bool is_large(const op_traits *m, const op_query *q, uint32_t k)
{
    const uint32_t bit = k < q->in_count ? k : 4 + k - q->in_count;
    return (m->large >> bit & 1) != 0;
}

static const op_operand *operand_at(const op_query *q, uint32_t k)
{
    return k < q->in_count ? &q->in[k] : &q->out[k - q->in_count];
}

// The first operand that is an image on this side; every operation that is cut so has one.
static const op_operand *image_of(const op_traits *m, const op_query *q, bool large)
{
    uint32_t k = 0;
    for (; k + 1 < (uint32_t)q->in_count + q->out_count; k++) {
        const bool whole =
            k < q->in_count ? (m->whole >> k & 1) != 0 : (m->sum >> (k - q->in_count) & 1) != 0;
        if (!whole && is_large(m, q, k) == large) {
            break;
        }
    }
    return operand_at(q, k);
}

static int64_t row_elements(const op_operand *t)
{
    return t->shape.dim[2] * t->shape.dim[3];
}

static half_rows rows_of(const op_traits *m, const op_query *q)
{
    const op_attr *a = &q->attr;
    const bool stretches = q->op == HR_OP_UPSAMPLE || q->op == HR_OP_UPSAMPLE_BWD;
    return (half_rows){.large = image_of(m, q, true)->shape.dim[1],
                       .small = image_of(m, q, false)->shape.dim[1],
                       .kernel = op_reach(a->kernel_h, a->gap_h),
                       .stride = stretches ? a->kernel_h : a->stride_h,
                       .pad = stretches ? 0 : a->pad_top,
                       .by_large = (m->large & OP_TILE_OUT_0) != 0};
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

// The windows that `count` rows of the large image from `first` on lie in; one at least.
static void windows_over(const half_rows *r, int64_t first, int64_t count, half_band *b)
{
    const int64_t ahead = first + r->pad - r->kernel + 1;
    int64_t begin = ahead <= 0 ? 0 : (ahead + r->stride - 1) / r->stride;
    begin = smaller(begin, r->small - 1);
    if (begin * r->stride - r->pad > first && begin > 0) { // rows that lie between two windows
        begin--;
    }
    const int64_t end = smaller(r->small, (first + count - 1 + r->pad) / r->stride + 1);
    b->small = begin;
    b->small_rows = larger(end - begin, 1);
}

half_band half_band_of(const half_tile_plan *cut, int64_t at, int64_t count)
{
    const half_rows *r = &cut->rows;
    const int64_t first = at % cut->group;
    half_band b = {.image = at / cut->group, .small = first, .small_rows = count};
    if (r->by_large) {
        windows_over(r, first, count, &b);
    }
    const int64_t seen = b.small * r->stride - r->pad;
    int64_t begin = smaller(larger(seen, 0), r->large);
    int64_t end = smaller(seen + (b.small_rows - 1) * r->stride + r->kernel, r->large);
    if (r->by_large) {
        begin = smaller(begin, first);
        end = larger(end, first + count);
    }
    b.large = begin;
    b.large_rows = larger(end - begin, 1);
    b.kept = r->by_large ? first - begin : 0;
    b.kept_rows = r->by_large ? count : b.large_rows;
    b.pad_top = (int32_t)(begin - seen);
    return b;
}

// Whole images where several fill a tile, else rows of one.
static void cut_images(const op_query *q, const op_traits *m, half_tile_plan *cut)
{
    const op_operand *large = image_of(m, q, true), *small = image_of(m, q, false);
    const int64_t all = large->shape.dim[1] * row_elements(large) + small->shape.dim[1] * row_elements(small);
    const half_rows r = rows_of(m, q);
    // Windows that see nothing but the padding below have no rows to be cut with.
    const bool stays_whole = !r.by_large && (r.small - 1) * r.stride - r.pad >= r.large;
    cut->items = large->shape.dim[0];
    cut->most = stays_whole ? at_least_one(TILE_IMAGE_ELEMENTS / all) : TILE_IMAGE_ELEMENTS / all;
    cut->by_images = cut->most >= 1;
    if (!cut->by_images) {
        const int64_t height = r.by_large ? r.large : r.small;
        const int64_t down = r.by_large ? 1 : r.stride;
        cut->by_rows = true;
        cut->rows = r;
        cut->items *= height;
        cut->group = height;
        cut->most = smaller(at_least_one(TILE_IMAGE_ELEMENTS / (row_elements(large) * down)), height);
    }
}

// Every operand's largest tile, wherever it begins.
static void size_rows(half_tile_plan *cut)
{
    const half_rows *r = &cut->rows;
    int64_t small = cut->most, large = (small - 1) * r->stride + r->kernel;
    if (r->by_large) {
        small = smaller((cut->most + r->kernel - 2) / r->stride + 2, r->small);
        large = small * r->stride + r->kernel + cut->most;
    }
    large = smaller(large, r->large);
    for (uint32_t k = 0; k < cut->in_count + cut->out_count; k++) {
        half_operand *o = k < cut->in_count ? &cut->in[k] : &cut->out[k - cut->in_count];
        o->most = o->role == HALF_LARGE ? o->each * large : o->role == HALF_SMALL ? o->each * small : o->most;
    }
}

static void set_items(const op_query *q, const op_traits *m, half_tile_plan *cut)
{
    switch ((int)m->tiling) {
    case OP_BY_ROW:
        cut_rows(q, cut);
        break;
    case OP_BY_PERIOD:
        cut_periods(q, m, cut);
        break;
    case OP_BY_IMAGE:
        cut_images(q, m, cut);
        break;
    case OP_BY_HEAD:
        cut->heads = attention_sizes_of(q);
        cut->items = cut->heads.samples * cut->heads.heads;
        cut->most = 1;
        break;
    default:
        cut->items = cpu_elements_of(&q->out[0]);
        cut->most = TILE_ELEMENTS;
    }
}

static half_operand operand_of(const half_tile_plan *cut, const op_operand *t, half_role role)
{
    const int64_t all = cpu_elements_of(t);
    const int64_t each = role == HALF_WHOLE || role == HALF_SUM     ? all
                         : role == HALF_LARGE || role == HALF_SMALL ? row_elements(t)
                         : role == HALF_PERIODIC                    ? 1
                                                                    : all / cut->items;
    return (half_operand){role, (hr_dtype)t->dtype, each, each * cut->most};
}

static half_role in_role(const half_tile_plan *cut, const op_traits *m, const op_query *q, uint32_t k)
{
    if (is_repeated(m, k)) {
        return cut->group > 0 ? HALF_PERIODIC : HALF_WHOLE;
    }
    // The flag that an update happens is the last operand of its rule.
    if ((m->whole >> k & 1) != 0 || q->in[k].dtype == HR_I32) {
        return HALF_WHOLE;
    }
    if (cut->by_rows) {
        return is_large(m, q, k) ? HALF_LARGE : HALF_SMALL;
    }
    return m->tiling == OP_BY_HEAD && q->in[k].shape.rank == 3 && q->in[k].dtype != HR_F32 ? HALF_HEAD
                                                                                           : HALF_ROWS;
}

static half_role out_role(const half_tile_plan *cut, const op_traits *m, const op_query *q, uint32_t k)
{
    if ((m->sum >> k & 1) != 0) {
        return HALF_SUM;
    }
    if (cut->by_rows) {
        return is_large(m, q, q->in_count + k) ? HALF_LARGE : HALF_SMALL;
    }
    return m->tiling == OP_BY_HEAD && q->out[k].dtype != HR_F32 ? HALF_HEAD : HALF_ROWS;
}

// Of convolutions those whose kernel needs few weights: one filter a channel.
static bool is_cut(const op_query *q, const op_traits *m)
{
    const bool filters =
        q->op == HR_OP_CONV2D || q->op == HR_OP_CONV2D_BWD_DATA || q->op == HR_OP_CONV2D_BWD_WEIGHTS;
    return m->tiling != OP_WHOLE && (m->tiling == OP_BY_ELEMENT || q->in[0].layout == HR_LAYOUT_PLAIN) &&
           (!filters || (q->attr.groups > 1 && q->attr.groups == q->in[0].shape.dim[3]));
}

bool half_tile_plan_of(const op_query *q, half_tile_plan *out)
{
    const op_traits *m = &op_row_of((hr_op)q->op)->traits;
    *out = (half_tile_plan){
        .in_count = q->in_count, .out_count = q->out_count, .updated = op_row_of((hr_op)q->op)->updates};
    if (!is_cut(q, m)) {
        return false;
    }
    set_items(q, m, out);
    out->most = out->most < out->items ? out->most : out->items;
    for (uint32_t k = 0; k < q->in_count; k++) {
        out->in[k] = operand_of(out, &q->in[k], in_role(out, m, q, k));
    }
    for (uint32_t k = 0; k < q->out_count; k++) {
        out->out[k] = operand_of(out, &q->out[k], out_role(out, m, q, k));
    }
    if (out->by_rows) {
        size_rows(out);
    }
    return true;
}

static void shape_tile(const half_tile_plan *cut, const half_operand *o, const half_band *band, int64_t count,
                       op_operand *t)
{
    t->dtype = dtype_is_real(o->dtype) ? HR_F32 : (uint32_t)o->dtype;
    t->layout = HR_LAYOUT_PLAIN;
    if (o->role == HALF_HEAD) {
        const int64_t features = cut->heads.features;
        t->shape = shape_of(3, (const int64_t[]){1, o->each / features, features});
    } else if (o->role == HALF_LARGE || o->role == HALF_SMALL) {
        t->shape.dim[0] = 1;
        t->shape.dim[1] = o->role == HALF_LARGE ? band->large_rows : band->small_rows;
    } else if (cut->by_images && o->role == HALF_ROWS) {
        t->shape.dim[0] = count;
    } else if (o->role == HALF_ROWS || o->role == HALF_PERIODIC) {
        t->shape = shape_of(2, (const int64_t[]){count, o->each});
    }
}

void half_tile_query(const half_tile_plan *cut, int64_t at, int64_t count, const op_query *q, op_query *tile)
{
    const half_band band = cut->by_rows ? half_band_of(cut, at, count) : (half_band){0};
    *tile = *q;
    tile->attr.heads = 1;
    if ((q->attr.flags & OP_FLAG_MASKED) == 0) { // else it is of a schedule, the same for all
        tile->attr.offset = cut->group > 0 ? (int32_t)(at % cut->group) : 0;
    }
    if (cut->heads.heads > 0) { // whose masks are drawn by their place
        tile->attr.offset = (int32_t)at;
        tile->attr.count = q->attr.heads;
    }
    if (cut->by_rows) {
        const int64_t end = (band.small_rows - 1) * cut->rows.stride + cut->rows.kernel - band.pad_top;
        tile->attr.pad_top = band.pad_top;
        tile->attr.pad_bottom = (int32_t)larger(end - band.large_rows, 0);
    }
    for (uint32_t k = 0; k < q->in_count; k++) {
        shape_tile(cut, &cut->in[k], &band, count, &tile->in[k]);
    }
    for (uint32_t k = 0; k < q->out_count; k++) {
        shape_tile(cut, &cut->out[k], &band, count, &tile->out[k]);
    }
}
