// SPDX-License-Identifier: Apache-2.0
// Putting tensors together, cutting, repeating, padding and summing them. What only moves is one kernel, gather: every
// operation describes where each place of its result comes from, axis by axis.
#include "combine.h"

#include <stdio.h>

#include "kernels/combine_args.h"
#include "ops/permute.h"

enum { THREADS = 256, PACK_BYTES = 16 };

// The largest of 2, 4, 8 and 16 bytes that divides `bytes`.
static int64_t unit_of(int64_t bytes)
{
    int64_t unit = PACK_BYTES;
    while (bytes % unit != 0) {
        unit /= 2;
    }
    return unit;
}

static int64_t element_bytes(const op_query *q)
{
    return (int64_t)dtype_bytes((hr_dtype)q->out[0].dtype);
}

// ---- gather ---------------------------------------------------------------------------------------------------

// A gather in elements, before it is one in units.
typedef struct gather_plan {
    struct {
        int64_t extent, stride, low, high, turn;
    } axis[GATHER_AXES]; // innermost first
    uint32_t axes;
    int64_t begin; // element of the operand that place 0 is, or would be
} gather_plan;

static void add_window(gather_plan *p, int64_t extent, int64_t stride, int64_t low, int64_t high)
{
    p->axis[p->axes].extent = extent;
    p->axis[p->axes].stride = stride;
    p->axis[p->axes].low = low;
    p->axis[p->axes].high = high;
    p->axis[p->axes].turn = 0;
    p->axes++;
}

// An axis of one place says nothing.
static void add_axis(gather_plan *p, int64_t extent, int64_t stride)
{
    if (extent > 1) {
        add_window(p, extent, stride, 0, extent);
    }
}

static void plan_slice(const op_query *q, gather_plan *p)
{
    const cuda_around whole = cuda_around_axes(&q->in[0].shape, q->attr.axis, 1);
    const cuda_around part = cuda_around_axes(&q->out[0].shape, q->attr.axis, 1);
    add_axis(p, part.middle * part.inner, 1);
    add_axis(p, part.outer, whole.middle * whole.inner);
    p->begin = q->attr.offset * whole.inner;
}

static void plan_slice_bwd(const op_query *q, gather_plan *p)
{
    const cuda_around whole = cuda_around_axes(&q->out[0].shape, q->attr.axis, 1);
    const cuda_around part = cuda_around_axes(&q->in[0].shape, q->attr.axis, 1);
    const int64_t low = q->attr.offset * whole.inner, run = part.middle * part.inner;
    add_window(p, whole.middle * whole.inner, 1, low, low + run);
    add_axis(p, whole.outer, run);
}

// [outer, inner] repeated in the middle.
static void plan_repeat(cuda_around a, gather_plan *p)
{
    add_axis(p, a.inner, 1);
    add_axis(p, a.middle, 0);
    add_axis(p, a.outer, a.inner);
}

static void plan_zero_pad(const op_query *q, gather_plan *p)
{
    const int64_t *large = q->out[0].shape.dim, *small = q->in[0].shape.dim;
    const int64_t left = q->attr.pad_left * large[3], row = small[2] * small[3];
    add_window(p, large[2] * large[3], 1, left, left + row);
    add_window(p, large[1], row, q->attr.pad_top, q->attr.pad_top + small[1]);
    add_axis(p, large[0], small[1] * row);
}

static void plan_zero_pad_bwd(const op_query *q, gather_plan *p)
{
    const int64_t *large = q->in[0].shape.dim, *small = q->out[0].shape.dim;
    const int64_t row = large[2] * large[3];
    add_axis(p, small[2] * small[3], 1);
    add_axis(p, small[1], row);
    add_axis(p, small[0], large[1] * row);
    p->begin = q->attr.pad_top * row + q->attr.pad_left * large[3];
}

static void plan_upsample(const op_query *q, gather_plan *p)
{
    const int64_t *small = q->in[0].shape.dim;
    add_axis(p, small[3], 1);
    add_axis(p, q->attr.kernel_w, 0);
    add_axis(p, small[2], small[3]);
    add_axis(p, q->attr.kernel_h, 0);
    add_axis(p, small[0] * small[1], small[2] * small[3]);
}

static void plan_permute(const op_query *q, gather_plan *p)
{
    const hr_shape *y = &q->out[0].shape;
    for (uint32_t k = y->rank; k-- > 0;) {
        add_axis(p, y->dim[k], permute_stride(&q->attr, &q->in[0].shape, k));
    }
}

static void add_turned(gather_plan *p, int64_t extent, int64_t stride, int64_t turn)
{
    add_window(p, extent, stride, 0, extent);
    p->axis[p->axes - 1].turn = turn;
}

static void plan_roll(const op_query *q, gather_plan *p)
{
    const int64_t *d = q->in[0].shape.dim;
    const int64_t row = (int64_t)cuda_elements(&q->in[0]) / (d[0] * d[1]);
    add_turned(p, row, 1, q->attr.pad_left * (row / d[2]));
    add_turned(p, d[1], row, q->attr.pad_top);
    add_axis(p, d[0], d[1] * row);
}

static gather_plan plan_of(const op_query *q)
{
    const op_attr *a = &q->attr;
    gather_plan p = {.axes = 0};
    switch ((int)q->op) {
    case HR_OP_SLICE:
        plan_slice(q, &p);
        break;
    case HR_OP_SLICE_BWD:
        plan_slice_bwd(q, &p);
        break;
    case HR_OP_STACK:
        plan_repeat(cuda_around_axes(&q->out[0].shape, a->axis, 1), &p);
        break;
    case HR_OP_BROADCAST:
        plan_repeat(cuda_around_axes(&q->out[0].shape, 0, 1), &p);
        break;
    case HR_OP_REDUCE_BWD:
        plan_repeat(cuda_around_axes(&q->out[0].shape, a->axis, a->count), &p);
        break;
    case HR_OP_ZERO_PAD:
        plan_zero_pad(q, &p);
        break;
    case HR_OP_ZERO_PAD_BWD:
        plan_zero_pad_bwd(q, &p);
        break;
    case HR_OP_PERMUTE:
        plan_permute(q, &p);
        break;
    case HR_OP_ROLL:
        plan_roll(q, &p);
        break;
    default:
        plan_upsample(q, &p);
        break;
    }
    if (p.axes == 0) {
        add_window(&p, 1, 1, 0, 1);
    }
    return p;
}

// Bytes that every row, offset and stride is a multiple of; single elements where the innermost axis repeats them.
static int64_t gather_unit(const gather_plan *p, int64_t element)
{
    if (p->axis[0].stride != 1) {
        return element;
    }
    int64_t any = p->axis[0].extent | p->axis[0].low | p->axis[0].high | p->axis[0].turn | p->begin;
    for (uint32_t k = 1; k < p->axes; k++) {
        any |= p->axis[k].stride;
    }
    return unit_of(any * element); // the lowest bit of all decides
}

static gather_args gather_in_units(const gather_plan *p, int64_t elements, int64_t of)
{
    gather_args a = {.count = elements / of, .axes = p->axes};
    for (uint32_t k = 0; k < p->axes; k++) {
        const int64_t along = k == 0 ? of : 1, across = k == 0 ? 1 : of;
        a.axis[k] = (gather_axis){.extent = divisor_of(p->axis[k].extent / along),
                                  .stride = p->axis[k].stride / across,
                                  .low = p->axis[k].low / along,
                                  .high = p->axis[k].high / along,
                                  .turn = p->axis[k].turn / along};
    }
    return a;
}

static hr_status launch_over(const cuda_run *r, int64_t pieces, const void *args, uint32_t bytes, hr_err *err)
{
    return cuda_launch(r, r->function, cuda_grid_over(r->device, (uint64_t)pieces, 1, THREADS), args, bytes,
                       err);
}

static hr_status launch_gather(const cuda_run *r, int64_t unit, hr_err *err)
{
    const int64_t element = element_bytes(r->query), elements = (int64_t)cuda_elements(&r->query->out[0]);
    const gather_plan p = plan_of(r->query);
    gather_args a = gather_in_units(&p, elements, unit / element);
    a.in = (const void *)(r->in[0] + (uint64_t)(p.begin * element));
    a.out = (void *)r->out[0];
    a.share = cuda_share_of(
        &r->query->attr,
        cuda_around_axes(&r->query->out[0].shape, r->query->attr.axis, r->query->attr.count).middle);
    const int64_t vectors = (a.count + PACK_BYTES / unit - 1) / (PACK_BYTES / unit);
    return launch_over(r, vectors, &a, sizeof a, err);
}

static void gather_name(const op_query *q, char name[CUDA_NAME_MAX])
{
    const gather_plan p = plan_of(q);
    (void)snprintf(name, CUDA_NAME_MAX, "gather_%d", (int)gather_unit(&p, element_bytes(q)));
}

static hr_status run_gather(const cuda_run *r, hr_err *err)
{
    const gather_plan p = plan_of(r->query);
    return launch_gather(r, gather_unit(&p, element_bytes(r->query)), err);
}

// ---- spread: a gather whose values are scaled -----------------------------------------------------------------

static bool means(const cuda_device *device, const op_query *q)
{
    return cuda_one_type(device, q) && (q->attr.flags & OP_FLAG_MEAN) != 0;
}

static bool spreads_wide(const op_query *q)
{
    const gather_plan p = plan_of(q);
    return gather_unit(&p, element_bytes(q)) == PACK_BYTES;
}

static void spread_name(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "spread_%s_%s", spreads_wide(q) ? "wide" : "narrow",
                   cuda_suffix(cuda_type(q)));
}

static hr_status run_spread(const cuda_run *r, hr_err *err)
{
    return launch_gather(r, spreads_wide(r->query) ? PACK_BYTES : element_bytes(r->query), err);
}

// ---- concat ---------------------------------------------------------------------------------------------------

// Elements of one row of input k.
static int64_t run_of(const op_query *q, uint32_t k)
{
    const cuda_around a = cuda_around_axes(&q->in[k].shape, q->attr.axis, 1);
    return a.middle * a.inner;
}

static int64_t concat_unit(const op_query *q)
{
    int64_t any = 0;
    for (uint32_t k = 0; k < q->in_count; k++) {
        any |= run_of(q, k);
    }
    return unit_of(any * element_bytes(q));
}

static void concat_name(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "concat_%d", (int)concat_unit(q));
}

static hr_status run_concat(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const int64_t unit = concat_unit(q), of = unit / element_bytes(q);
    concat_args a = {
        .out = (void *)r->out[0], .count = (int64_t)cuda_elements(&q->out[0]) / of, .sources = q->in_count};
    for (uint32_t k = 0; k < q->in_count; k++) {
        a.in[k] = (const void *)r->in[k];
        a.begin[k + 1] = a.begin[k] + run_of(q, k) / of;
    }
    a.row = divisor_of(a.begin[q->in_count]);
    const int64_t vectors = (a.count + PACK_BYTES / unit - 1) / (PACK_BYTES / unit);
    return launch_over(r, vectors, &a, sizeof a, err);
}

// ---- what computes --------------------------------------------------------------------------------------------

static void typed_name(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "%s_%s", op_name((hr_op)q->op), cuda_suffix(cuda_type(q)));
}

static hr_status run_add_broadcast(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const repeated_sum_args a = {.a = (const void *)r->in[0],
                                 .b = (const void *)r->in[1],
                                 .out = (void *)r->out[0],
                                 .count = (int64_t)cuda_elements(&q->out[0]),
                                 .inner = divisor_of((int64_t)cuda_elements(&q->in[1]))};
    const int64_t lanes = PACK_BYTES / element_bytes(q);
    return launch_over(r, (a.count + lanes - 1) / lanes, &a, sizeof a, err);
}

static hr_status run_multiply_broadcast(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const hr_shape *b = &q->in[1].shape;
    const int64_t channels = b->dim[b->rank - 1], groups = (int64_t)cuda_elements(&q->in[1]) / channels;
    const int64_t count = (int64_t)cuda_elements(&q->out[0]), lanes = PACK_BYTES / element_bytes(q);
    const factor_args a = {.a = (const void *)r->in[0],
                           .factor = (const void *)r->in[1],
                           .out = (void *)r->out[0],
                           .count = count,
                           .group = divisor_of(count / groups),
                           .inner = divisor_of(channels)};
    return launch_over(r, (count + lanes - 1) / lanes, &a, sizeof a, err);
}

static int64_t upsample_lanes(const op_query *q)
{
    const int64_t lanes = PACK_BYTES / element_bytes(q);
    return q->out[0].shape.dim[3] % lanes == 0 ? lanes : 1;
}

static void upsample_bwd_name(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "upsample_bwd_%s_%s", upsample_lanes(q) > 1 ? "wide" : "narrow",
                   cuda_suffix(cuda_type(q)));
}

static hr_status run_upsample_bwd(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const int64_t lanes = upsample_lanes(q);
    const upsample_bwd_args a = {.dy = (const void *)r->in[0],
                                 .dx = (void *)r->out[0],
                                 .count = (int64_t)cuda_elements(&q->out[0]) / lanes,
                                 .width = divisor_of(q->out[0].shape.dim[2]),
                                 .channels = divisor_of(q->out[0].shape.dim[3] / lanes),
                                 .times_h = q->attr.kernel_h,
                                 .times_w = q->attr.kernel_w};
    return launch_over(r, a.count, &a, sizeof a, err);
}

#define GATHER(OP, text)                                                                                     \
    {                                                                                                        \
        .op = HR_OP_##OP, .types = CUDA_REAL, .name = (text), .fits = cuda_one_type, .module = "combine",    \
        .kernel = gather_name, .run = run_gather                                                             \
    }

static const cuda_impl impls[] = {
    {.op = HR_OP_CONCAT,
     .types = CUDA_REAL,
     .name = "concat",
     .fits = cuda_one_type,
     .module = "combine",
     .kernel = concat_name,
     .run = run_concat},
    GATHER(SLICE, "slice"),
    GATHER(SLICE_BWD, "slice_bwd"),
    GATHER(STACK, "stack"),
    GATHER(BROADCAST, "broadcast"),
    {.op = HR_OP_REDUCE_BWD,
     .types = CUDA_REAL,
     .name = "spread",
     .fits = means,
     .module = "combine",
     .kernel = spread_name,
     .run = run_spread},
    GATHER(REDUCE_BWD, "reduce_bwd"),
    GATHER(ZERO_PAD, "zero_pad"),
    GATHER(ZERO_PAD_BWD, "zero_pad_bwd"),
    GATHER(UPSAMPLE, "upsample"),
    GATHER(PERMUTE, "permute"),
    GATHER(ROLL, "roll"),
    {.op = HR_OP_UPSAMPLE_BWD,
     .types = CUDA_REAL,
     .name = "upsample_bwd",
     .fits = cuda_one_type,
     .module = "combine",
     .kernel = upsample_bwd_name,
     .run = run_upsample_bwd},
    {.op = HR_OP_ADD_BROADCAST,
     .types = CUDA_REAL,
     .name = "add_broadcast",
     .fits = cuda_one_type,
     .module = "combine",
     .kernel = typed_name,
     .run = run_add_broadcast},
    {.op = HR_OP_MULTIPLY_BROADCAST,
     .types = CUDA_REAL,
     .name = "multiply_broadcast",
     .fits = cuda_one_type,
     .module = "combine",
     .kernel = typed_name,
     .run = run_multiply_broadcast},
    {.op = HR_OP_REDUCE,
     .types = CUDA_REAL,
     .name = "reduce",
     .fits = cuda_one_type,
     .workspace = cuda_reduce_workspace,
     .prepare = cuda_reduce_prepare,
     .release = cuda_reduce_release,
     .run = cuda_reduce_run},
};

const cuda_family cuda_family_combine = CUDA_FAMILY(impls);
