// SPDX-License-Identifier: Apache-2.0
// Putting tensors together, cutting, repeating, padding and summing them. All walk a tensor as [outer, middle,
// inner] around one axis, or around neighbouring ones.
#include <string.h>

#include "kernels.h"

typedef struct around {
    uint64_t outer, middle, inner;
} around;

// `count` axes from `axis` on are the middle.
static around around_axes(const hr_shape *shape, int32_t axis, int32_t count)
{
    around a = {1, 1, 1};
    for (int32_t k = 0; k < (int32_t)shape->rank; k++) {
        uint64_t *part = k < axis ? &a.outer : k < axis + count ? &a.middle : &a.inner;
        *part *= (uint64_t)shape->dim[k];
    }
    return a;
}

void reference_concat(const reference_call *call)
{
    const op_query *q = call->query;
    const around y = around_axes(&q->out[0].shape, q->attr.axis, 1);
    uint64_t offset = 0;
    for (uint32_t k = 0; k < q->in_count; k++) {
        const uint64_t run = around_axes(&q->in[k].shape, q->attr.axis, 1).middle * y.inner;
        for (uint64_t o = 0; o < y.outer; o++) {
            memcpy((double *)call->out[0] + o * y.middle * y.inner + offset,
                   (const double *)call->in[k] + o * run, run * sizeof(double));
        }
        offset += run;
    }
}

// Copies between the part of `whole` that the attributes name and `part`.
static void copy_part(const op_attr *attr, const hr_shape *whole_shape, const hr_shape *part_shape,
                      double *whole, double *part, bool to_whole)
{
    const around w = around_axes(whole_shape, attr->axis, 1), p = around_axes(part_shape, attr->axis, 1);
    const uint64_t run = p.middle * p.inner;
    for (uint64_t o = 0; o < w.outer; o++) {
        double *inside = whole + (o * w.middle + (uint64_t)attr->offset) * w.inner, *beside = part + o * run;
        memcpy(to_whole ? inside : beside, to_whole ? beside : inside, run * sizeof(double));
    }
}

void reference_slice(const reference_call *call)
{
    const op_query *q = call->query;
    copy_part(&q->attr, &q->in[0].shape, &q->out[0].shape, call->in[0], call->out[0], false);
}

void reference_slice_bwd(const reference_call *call)
{
    const op_query *q = call->query;
    memset(call->out[0], 0, call->out_count[0] * sizeof(double));
    copy_part(&q->attr, &q->out[0].shape, &q->in[0].shape, call->out[0], call->in[0], true);
}

void reference_stack(const reference_call *call)
{
    const op_query *q = call->query;
    const around y = around_axes(&q->out[0].shape, q->attr.axis, 1);
    for (uint64_t copy = 0; copy < y.outer * y.middle; copy++) {
        memcpy((double *)call->out[0] + copy * y.inner,
               (const double *)call->in[0] + copy / y.middle * y.inner, y.inner * sizeof(double));
    }
}

static double share_of(const op_attr *attr, const around *a)
{
    return (attr->flags & OP_FLAG_MEAN) != 0 ? 1.0 / (double)a->middle : 1.0;
}

void reference_reduce(const reference_call *call)
{
    const op_attr *attr = &call->query->attr;
    const around a = around_axes(&call->query->in[0].shape, attr->axis, attr->count);
    const double *x = call->in[0], *times = call->query->in_count > 1 ? call->in[1] : NULL;
    double *y = call->out[0];
    for (uint64_t i = 0; i < a.outer * a.inner; i++) {
        const uint64_t first = i / a.inner * a.middle * a.inner + i % a.inner;
        double sum = 0.0;
        for (uint64_t m = 0; m < a.middle; m++) {
            const uint64_t at = first + m * a.inner;
            sum += times == NULL ? x[at] : x[at] * times[at];
        }
        y[i] = sum * share_of(attr, &a);
    }
}

void reference_reduce_bwd(const reference_call *call)
{
    const op_attr *attr = &call->query->attr;
    const around a = around_axes(&call->query->out[0].shape, attr->axis, attr->count);
    const double *dy = call->in[0];
    double *dx = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        dx[i] = dy[i / (a.middle * a.inner) * a.inner + i % a.inner] * share_of(attr, &a);
    }
}

void reference_zeros(const reference_call *call)
{
    const hr_dtype dtype = (hr_dtype)call->query->out[0].dtype;
    const bool real = dtype_is_real(dtype);
    memset(call->out[0], 0, call->out_count[0] * (real ? sizeof(double) : dtype_bytes(dtype)));
}

// Rows of the small image inside the large one, which begins pad_top rows and pad_left columns before it.
static void copy_inside(const op_attr *attr, const hr_shape *large, const hr_shape *small, double *large_data,
                        double *small_data, bool to_large)
{
    const int64_t row = small->dim[2] * small->dim[3];
    for (int64_t n = 0; n < small->dim[0]; n++) {
        for (int64_t h = 0; h < small->dim[1]; h++) {
            double *inside =
                large_data +
                ((n * large->dim[1] + h + attr->pad_top) * large->dim[2] + attr->pad_left) * large->dim[3];
            double *alone = small_data + (n * small->dim[1] + h) * row;
            memcpy(to_large ? inside : alone, to_large ? alone : inside, (size_t)row * sizeof(double));
        }
    }
}

void reference_zero_pad(const reference_call *call)
{
    const op_query *q = call->query;
    memset(call->out[0], 0, call->out_count[0] * sizeof(double));
    copy_inside(&q->attr, &q->out[0].shape, &q->in[0].shape, call->out[0], call->in[0], true);
}

void reference_zero_pad_bwd(const reference_call *call)
{
    const op_query *q = call->query;
    copy_inside(&q->attr, &q->in[0].shape, &q->out[0].shape, call->in[0], call->out[0], false);
}

// Element of the small image that element i of the large one comes from.
static uint64_t upsampled_from(const op_attr *attr, const hr_shape *large, uint64_t i)
{
    const int64_t channels = large->dim[3], c = (int64_t)i % channels, pixel = (int64_t)i / channels;
    const int64_t w = pixel % large->dim[2] / attr->kernel_w;
    const int64_t h = pixel / large->dim[2] % large->dim[1] / attr->kernel_h;
    const int64_t n = pixel / large->dim[2] / large->dim[1];
    const int64_t height = large->dim[1] / attr->kernel_h, width = large->dim[2] / attr->kernel_w;
    return (uint64_t)(((n * height + h) * width + w) * channels + c);
}

void reference_upsample(const reference_call *call)
{
    const op_query *q = call->query;
    const double *x = call->in[0];
    double *y = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        y[i] = x[upsampled_from(&q->attr, &q->out[0].shape, i)];
    }
}

void reference_upsample_bwd(const reference_call *call)
{
    const op_query *q = call->query;
    const double *dy = call->in[0];
    double *dx = call->out[0];
    memset(dx, 0, call->out_count[0] * sizeof *dx);
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        dx[upsampled_from(&q->attr, &q->in[0].shape, i)] += dy[i];
    }
}
