// SPDX-License-Identifier: Apache-2.0
#include "ops/prune.h"

#include <math.h>

static uint64_t step_of(const op_attr *attr, uint64_t update)
{
    return update + (uint64_t)attr->slot;
}

// GROUPS know no schedule but its beginning (conditional_mask_update).
static bool has_turn(const op_attr *attr, uint64_t t)
{
    const uint64_t begin = (uint64_t)attr->offset;
    if (attr->stride_h == 0) {
        return false;
    }
    if (attr->rule == PRUNE_GROUPS) {
        return t == (begin > 0 ? begin : 1);
    }
    return t >= begin && (attr->count < 0 || t <= (uint64_t)attr->count) &&
           (t - begin) % (uint64_t)attr->stride_h == 0;
}

prune_act prune_act_at(const op_attr *attr, uint64_t update)
{
    const bool masked = attr->slot == 0 || (attr->flags & OP_FLAG_MASKED) != 0;
    return has_turn(attr, step_of(attr, update)) ? PRUNE_MAKE : masked ? PRUNE_NOTHING : PRUNE_MASK;
}

bool update_masks_at(const op_attr *attr, uint64_t update)
{
    return (attr->flags & OP_FLAG_MASKED) != 0 && !has_turn(attr, step_of(attr, update));
}

double prune_sparsity(const op_attr *attr, uint64_t t)
{
    const double length = (double)attr->count - attr->offset, done = (double)t - attr->offset;
    const double part = length > 0.0 ? fmin(1.0, fmax(0.0, done / length)) : 1.0;
    return attr->momentum + (attr->epsilon - attr->momentum) * pow(1.0 - part, attr->base);
}

float prune_sparsity32(const op_attr *attr, uint64_t t)
{
    const float length = (float)((double)attr->count - attr->offset);
    const float done = (float)((double)t - attr->offset);
    const float part = length > 0.0f ? fminf(1.0f, fmaxf(0.0f, done / length)) : 1.0f;
    const float left = (float)pow((double)(1.0f - part), attr->base);
    const float way = (float)(attr->epsilon - attr->momentum) * left;
    return way + (float)attr->momentum;
}

uint64_t prune_kept(const op_attr *attr, uint64_t units, uint64_t update)
{
    const float share = 1.0f - prune_sparsity32(attr, step_of(attr, update));
    const float kept = rintf((float)units * share);
    const uint64_t whole = kept < 1.0f ? 1 : (uint64_t)kept;
    return whole < units ? whole : units;
}

uint64_t prune_units(const op_query *q)
{
    const op_attr *a = &q->attr;
    const hr_shape *w = &q->in[0].shape;
    uint64_t elements = 0;
    if (a->rule == PRUNE_BLOCKS) {
        return (uint64_t)((w->dim[0] + a->kernel_h - 1) / a->kernel_h) *
               (uint64_t)((w->dim[1] + a->kernel_w - 1) / a->kernel_w);
    }
    (void)shape_elements(w, &elements);
    return a->rule == PRUNE_FILTERS ? (uint64_t)w->dim[a->axis] : elements;
}

int64_t prune_axis_step(const op_query *q)
{
    int64_t step = 1;
    const hr_shape *of = &q->in[q->op == HR_OP_PRUNE_CHANNELS ? 1 : 0].shape;
    for (uint32_t k = (uint32_t)q->attr.axis + 1; k < of->rank; k++) {
        step *= of->dim[k];
    }
    return step;
}

prune_region prune_region_of(const op_query *q, int64_t unit)
{
    const op_attr *a = &q->attr;
    const int64_t *dim = q->in[0].shape.dim;
    if (a->rule == PRUNE_ELEMENTS) {
        return (prune_region){.first = unit, .lines = 1, .width = 1};
    }
    if (a->rule == PRUNE_FILTERS) {
        const int64_t step = prune_axis_step(q), side = dim[a->axis];
        int64_t lines = 1;
        for (int32_t k = 0; k < a->axis; k++) {
            lines *= dim[k];
        }
        return (prune_region){unit * step, lines, step, side * step};
    }
    const int64_t across = (dim[1] + a->kernel_w - 1) / a->kernel_w;
    const int64_t row = unit / across * a->kernel_h, column = unit % across * a->kernel_w;
    return (prune_region){.first = row * dim[1] + column,
                          .lines = dim[0] - row < a->kernel_h ? dim[0] - row : a->kernel_h,
                          .width = dim[1] - column < a->kernel_w ? dim[1] - column : a->kernel_w,
                          .pitch = dim[1]};
}
