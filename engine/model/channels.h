// SPDX-License-Identifier: Apache-2.0
// Channels of a model: which places of which parameters are of one filter of a product, from its kernel as far as the
// products that read what it gives.
//
//   conv1/weights [3,3,3,F]  GIVES F filters along axis 3
//   conv1/bias, norm/gamma … FOLLOW: what they have for a filter goes when it goes
//   conv2/weights [3,3,F,G]  READS: its inputs along axis 2; its own filters are other channels
//
// A filter that is 0, with all that follows it, gives 0 wherever it arrives: it may go, and its places with it, and nothing but the order
// of sums is another. Kernels whose filters may go are those of which every path ends in products of weights, through operations that
// keep channels apart and 0 at 0 (op_row.keeps_channels), normalisation by batch, flattening, and concatenation. What is
// added to another's result, compared along its channels, judged by a loss, or not known here, keeps all its channels
// (inner convolutions of residual blocks go, their last ones stay: Li et al. 2017, "Pruning Filters for Efficient ConvNets").
#ifndef MODEL_CHANNELS_H
#define MODEL_CHANNELS_H

#include "base/vec.h"
#include "model/model.h"

typedef enum channel_role { CHANNEL_GIVES, CHANNEL_FOLLOWS, CHANNEL_READS } channel_role;

// Along `axis` of `param`, in every `pitch` places, filter f of `kernel` has the `each` from offset + f * each on.
typedef struct channel_part {
    uint32_t kernel, param;
    channel_role role;
    int32_t axis;
    int64_t offset, each, pitch;
} channel_part;

typedef struct model_channels {
    bool *may_go; // [param_count] of a kernel: its filters may
    VEC(channel_part) parts;
} model_channels;

// NOMEM error; *out is to be ended in any case.
HR_MUST_CHECK hr_status model_channels_of(const hr_model *model, model_channels *out, hr_err *err);
void model_channels_deinit(model_channels *c);

// Along which axis a kernel has its filters; -1 where its filters may not go.
int32_t model_filter_axis(const model_channels *c, uint32_t param);
// So many; 0 where its filters may not go.
int64_t model_filters(const hr_model *model, const model_channels *c, uint32_t param);
// Which of its kernel's `filters` has `place` of the part's axis; -1: none.
static inline int64_t channel_filter_at(const channel_part *part, int64_t filters, int64_t place)
{
    const int64_t from = place % part->pitch - part->offset;
    return from < 0 || from >= filters * part->each ? -1 : from / part->each;
}

#endif
