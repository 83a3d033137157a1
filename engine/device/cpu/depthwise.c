// SPDX-License-Identifier: Apache-2.0
#include "depthwise.h"

#include <string.h>

#include "base/workers.h"

static int64_t taps_of(const op_query *q)
{
    return (int64_t)q->attr.kernel_h * q->attr.kernel_w;
}

static depthwise job_of(const cpu_run *r, const op_operand *x, const op_operand *y)
{
    const op_attr *a = &r->query->attr;
    return (depthwise){.x = cpu_image_of(x),
                       .y = cpu_image_of(y),
                       .kernel_h = a->kernel_h,
                       .kernel_w = a->kernel_w,
                       .stride_h = a->stride_h,
                       .stride_w = a->stride_w,
                       .pad_top = a->pad_top,
                       .pad_left = a->pad_left,
                       .channels = x->shape.dim[3],
                       .scratch = r->workspace};
}

static bool is_wide(const op_operand *x)
{
    return x->shape.dim[3] % CPU_LANES == 0;
}

static bool is_depthwise(const op_query *q, const op_operand *x, const op_operand *y)
{
    return q->attr.groups == x->shape.dim[3] && q->attr.groups == y->shape.dim[3] && q->attr.groups > 1 &&
           taps_of(q) <= DEPTHWISE_TAPS_MAX && q->attr.gap_h == 0 && q->attr.gap_w == 0 &&
           x->layout == HR_LAYOUT_PLAIN && y->layout == HR_LAYOUT_PLAIN;
}

static bool suits_narrow(const op_query *q, const op_operand *y)
{
    return q->attr.stride_w == 1 && y->shape.dim[2] * y->shape.dim[3] >= CPU_LANES;
}

static bool forward_fits(const cpu_device *device, const op_query *q)
{
    (void)device;
    return q->in[1].layout == HR_LAYOUT_PLAIN && is_depthwise(q, &q->in[0], &q->out[0]) &&
           (is_wide(&q->in[0]) || suits_narrow(q, &q->out[0]));
}

static bool bwd_data_fits(const cpu_device *device, const op_query *q)
{
    (void)device;
    return q->in[1].layout == HR_LAYOUT_PLAIN && is_depthwise(q, &q->out[0], &q->in[0]) &&
           is_wide(&q->out[0]);
}

static bool bwd_weights_fits(const cpu_device *device, const op_query *q)
{
    (void)device;
    return q->out[0].layout == HR_LAYOUT_PLAIN && is_depthwise(q, &q->in[0], &q->in[1]) &&
           (is_wide(&q->in[0]) || suits_narrow(q, &q->in[1]));
}

static void wide_forward_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    depthwise_wide_forward(argument, begin, end);
}

static void narrow_forward_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const depthwise *j = argument;
    depthwise_narrow_forward(j, begin, end, j->scratch + (int64_t)worker * j->scratch_floats);
}

static void run_forward(const cpu_run *r)
{
    depthwise j = job_of(r, &r->query->in[0], &r->query->out[0]);
    j.x_data = r->in[0];
    j.w = r->in[1];
    j.bias = r->query->in_count > 2 ? r->in[2] : NULL;
    j.relu = r->query->attr.act != HR_ACT_NONE;
    j.ceiling = cpu_ceiling(r->query->attr.act);
    j.out = r->out[0];
    j.scratch_floats = depthwise_narrow_scratch(&j);
    if (is_wide(&r->query->in[0])) {
        workers_for_pieces(r->device->workers, j.y.images * j.y.height, 1, wide_forward_body, &j);
    } else {
        workers_for(r->device->workers, j.y.images, 1, narrow_forward_body, &j);
    }
}

static void bwd_data_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    depthwise_wide_bwd_data(argument, begin, end);
}

static void run_bwd_data(const cpu_run *r)
{
    depthwise j = job_of(r, &r->query->out[0], &r->query->in[0]);
    j.dy = r->in[0];
    j.w = r->in[1];
    j.out = r->out[0];
    workers_for_pieces(r->device->workers, j.x.images * j.x.height, 1, bwd_data_body, &j);
}

// Every worker sums into its own copy of dw and db, which lie first in its scratch.
static int64_t weight_floats(const depthwise *j)
{
    return round_up_16((j->kernel_h * j->kernel_w + 1) * j->channels);
}

static void bwd_weights_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const depthwise *j = argument;
    float *total = j->scratch + (int64_t)worker * j->scratch_floats;
    memset(total, 0, (size_t)weight_floats(j) * sizeof *total);
    if (j->channels % CPU_LANES == 0) {
        depthwise_wide_bwd_weights(j, total, begin, end, total + weight_floats(j));
    } else {
        depthwise_narrow_bwd_weights(j, total, begin, end, total + weight_floats(j));
    }
}

static int64_t bwd_weights_scratch(const depthwise *j)
{
    return weight_floats(j) + (j->channels % CPU_LANES == 0 ? weight_floats(j) : depthwise_narrow_scratch(j));
}

// Adds the workers' sums, in their order.
static void gather(const depthwise *j, float *to, int64_t first, int64_t count, uint32_t ranges)
{
    for (int64_t i = 0; i < count; i++) {
        float sum = j->scratch[first + i];
        for (uint32_t w = 1; w < ranges; w++) {
            sum += j->scratch[(int64_t)w * j->scratch_floats + first + i];
        }
        to[i] = sum;
    }
}

static void run_bwd_weights(const cpu_run *r)
{
    depthwise j = job_of(r, &r->query->in[0], &r->query->in[1]);
    j.x_data = r->in[0];
    j.dy = r->in[1];
    j.scratch_floats = bwd_weights_scratch(&j);
    workers_for(r->device->workers, j.x.images, 1, bwd_weights_body, &j);
    const uint32_t ranges = workers_for_ranges(r->device->workers, j.x.images, 1);
    const int64_t weights = j.kernel_h * j.kernel_w * j.channels;
    gather(&j, r->out[0], 0, weights, ranges);
    if (r->query->out_count > 1) {
        gather(&j, r->out[1], weights, j.channels, ranges);
    }
}

static depthwise job_of_query(const op_query *q, const op_operand *x, const op_operand *y)
{
    const cpu_run r = {.query = q};
    return job_of(&r, x, y);
}

static uint64_t forward_workspace(const cpu_device *device, const op_query *q)
{
    const depthwise j = job_of_query(q, &q->in[0], &q->out[0]);
    return is_wide(&q->in[0]) ? 0 : (uint64_t)depthwise_narrow_scratch(&j) * device->threads * sizeof(float);
}

static uint64_t bwd_weights_workspace(const cpu_device *device, const op_query *q)
{
    const depthwise j = job_of_query(q, &q->in[0], &q->in[1]);
    return (uint64_t)bwd_weights_scratch(&j) * device->threads * sizeof(float);
}

const cpu_impl cpu_depthwise = {
    .name = "rows", .fits = forward_fits, .workspace = forward_workspace, .run = run_forward};
const cpu_impl cpu_depthwise_bwd_data = {.name = "rows", .fits = bwd_data_fits, .run = run_bwd_data};
const cpu_impl cpu_depthwise_bwd_weights = {
    .name = "rows", .fits = bwd_weights_fits, .workspace = bwd_weights_workspace, .run = run_bwd_weights};
