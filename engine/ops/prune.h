// SPDX-License-Identifier: Apache-2.0
// What PRUNE does of its schedule in update t, the first of which, counted from where pruning began, is 1: masks by magnitude, as the TensorFlow Model Optimization
// Toolkit 0.8 makes them (tfmot, python/core/sparsity/keras: pruning_schedule.py, pruning_impl.py, pruning_utils.py).
//
//   attr.offset, count    first and last update of the schedule; count -1: it does not end
//   attr.stride_h         a mask is made in every so many updates, counted from `offset`; 0: never
//   attr.epsilon, momentum, base   sparsity at the first, at the last, and the power of the way between
//   attr.rule             op_prune_rule, with attr.kernel_h and kernel_w; GROUPS lie along attr.axis
//   attr.slot             0: in front of update t, which it prepares where it has a turn, else it does nothing.
//                         1: behind update t. It then does what comes before update t + 1, so that the weights that lie there
//                         between two updates are masked, and every forward pass has those that tfmot's has
//
// tfmot: s(t) = s1 + (s0 - s1) (1 - clip((t - offset) / (count - offset), 0, 1))^power, of n units max(1, round(n (1 - s)))
// stay, half to even, in float32; those as large as the last of them stay too. A unit is a weight by its absolute value,
// or a block of a matrix by the mean of its absolute values; and, which tfmot has not, a filter, a place of attr.axis, by the sum of its
// absolute values, in the order in which they lie. GROUPS have a mask once, before update max(1, offset): in each run of
// kernel_w weights the kernel_h smallest become 0, of equal ones the later; what a run lacks at its end counts as smaller.
// Where no block fits in whole, tfmot takes the mean over windows that begin half of what is missing before the matrix, and masks
// blocks that begin with it: so do we.
//
// PRUNE_CHANNELS follows: biases, gains, offsets and depthwise kernels behind a kernel, so that what a masked filter gives is 0 as far
// as the next product. attr.axis is the mask's axis of filters. In the last dimension of w, in every attr.stride_w places, filter f has the
// attr.count from attr.offset + f * attr.count on.
// An update with OP_FLAG_MASKED masks as it writes: the mask is its operand behind the slots, and offset, count, stride_h, rule and
// slot are those of the PRUNE behind it. Where that makes the mask anew it needs weights as they are, and the update lets them be. A PRUNE with
// OP_FLAG_MASKED has nothing to do in all other updates.
//
// Absolute values are compared by their bits: a NaN is larger than everything. A pruned weight is +0, whatever it was.
#ifndef OPS_PRUNE_H
#define OPS_PRUNE_H

#include "ops/op.h"

typedef enum op_prune_rule {
    PRUNE_ELEMENTS,
    PRUNE_BLOCKS,
    PRUNE_GROUPS,
    PRUNE_FILTERS,
    PRUNE_RULES
} op_prune_rule;

// What an instruction does once update `update` is over, or about to begin (attr.slot).
typedef enum prune_act {
    PRUNE_NOTHING,
    PRUNE_MASK, // w = 0 where the mask is
    PRUNE_MAKE  // the mask is made of w first
} prune_act;

prune_act prune_act_at(const op_attr *attr, uint64_t update);

// Which operand of an update is its mask; 0: none.
static inline uint32_t update_mask_operand(const op_query *q)
{
    return q->attr.flags & OP_FLAG_MASKED ? q->out_count + 1u : 0;
}

// Which operand of an update, the last one, may forbid it; 0: none.
static inline uint32_t update_finite_operand(const op_query *q)
{
    const uint32_t last = q->out_count + (q->attr.flags & OP_FLAG_MASKED ? 2u : 1u);
    return q->in_count > last ? last : 0;
}

// Does an update with a mask apply it in update `update`?
bool update_masks_at(const op_attr *attr, uint64_t update);
// The schedule's sparsity for update t, in double.
double prune_sparsity(const op_attr *attr, uint64_t t);
// As tfmot has it, rounded to float32 after each operation: which of two weights stays may hang on it.
float prune_sparsity32(const op_attr *attr, uint64_t t);
// Units that stay of so many, for what follows `update` by attr.slot.
uint64_t prune_kept(const op_attr *attr, uint64_t units, uint64_t update);
// Of all but GROUPS.
uint64_t prune_units(const op_query *q);

// The rows or columns [begin, end) that give block `index` of `size` its mean, of a side of so many.
typedef struct prune_span {
    int64_t begin, end;
} prune_span;

static inline prune_span prune_window(int64_t side, int32_t size, int64_t index)
{
    const int64_t missing = (side + size - 1) / size * size - side, first = index * size - missing / 2;
    return (prune_span){first < 0 ? 0 : first, first + size < side ? first + size : side};
}

// The elements of a unit: `lines` pieces of `width` neighbours, `pitch` apart, from `first` on.
typedef struct prune_region {
    int64_t first, lines, width, pitch;
} prune_region;

// Of all but GROUPS.
prune_region prune_region_of(const op_query *q, int64_t unit);
// From one place of attr.axis to the next.
int64_t prune_axis_step(const op_query *q);

// Of PRUNE_CHANNELS: where the mask says whether `place` of the last dimension of w stays; -1: it is of no filter.
static inline int64_t prune_channel_at(const op_query *q, int64_t step, int64_t place)
{
    const op_attr *a = &q->attr;
    const int64_t from = place % a->stride_w - a->offset;
    return from < 0 || from >= q->in[1].shape.dim[a->axis] * a->count ? -1 : from / a->count * step;
}

#endif
