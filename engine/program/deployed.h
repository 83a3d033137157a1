// SPDX-License-Identifier: Apache-2.0
// What of a model is deployed, in bytes: its weights and running statistics as they are held, or as whole numbers with their scales
// (headroom/deploy.h). Training's gradients, slots, masks, ranges and casts are not, nor is a teacher.
#ifndef PROGRAM_DEPLOYED_H
#define PROGRAM_DEPLOYED_H

#include "headroom/deploy.h"

#include "model/model.h"

// Of a matrix as whole numbers, with scales of its columns or, of a table, of its rows; `mode` is not HR_QUANTIZE_NONE.
typedef struct deployed_parts {
    hr_shape q, scale, zero; // scale float32, zero int8 and of rank 0 where there is none
    hr_dtype q_type;
} deployed_parts;

void deployed_parts_of(const hr_shape *shape, hr_quantize mode, bool by_row, deployed_parts *out);

typedef struct deployed_size {
    uint64_t stripped_bytes; // as trained
    uint64_t
        bytes; // as compress.quantize says; of qat, which trains for any of them, as trained. Without the filters that
    // compress.prune_structure=filter has taken when its schedule is over (of filters with equal sums, more may stay)
} deployed_size;

// What `headroom export` finds that a save of this model, trained with these knobs, has in RAM. NOMEM error.
HR_MUST_CHECK hr_status deployed_size_of(const hr_model *model, const hr_knobs *knobs, deployed_size *out,
                                         hr_err *err);

#endif
