// SPDX-License-Identifier: Apache-2.0
// The ten figures of the generated data, for sources that draw them too.
#ifndef DATA_GENERATED_H
#define DATA_GENERATED_H

#include "data/draws.h"
#include "data/source.h"

enum { GENERATED_FIGURES = 10, GENERATED_TRAIN_SAMPLES = 10000, GENERATED_EVAL_SAMPLES = 2000 };

uint64_t generated_scratch_bytes(const data_shape *shape);
// Draws figure `kind` under noise. scratch[0 .. height * width) is its mask of zeros and ones, *planes (in scratch)
// its channel planes.
void generated_figure(draws *d, uint32_t kind, const data_shape *shape, uint8_t *scratch, uint8_t **planes);
// False, with a DATA error, when images of this shape are not drawn.
HR_MUST_CHECK hr_status generated_check(const data_shape *shape, hr_err *err);

#endif
