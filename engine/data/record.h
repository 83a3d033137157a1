// SPDX-License-Identifier: Apache-2.0
// CIFAR-10's binary form (https://www.cs.toronto.edu/~kriz/cifar.html): a file is records without a header; a
// record is one label byte and then the channel planes, each row by row. CIFAR-10 itself has 1 + 3 × 32 × 32.
#ifndef DATA_RECORD_H
#define DATA_RECORD_H

#include <stdint.h>

#include "headroom/status.h"

#include "data/source.h"

// Reads the record that stands at bytes[0] and came from `name` at `offset`. *out points into `bytes`.
HR_MUST_CHECK hr_status record_read(const uint8_t *bytes, uint32_t classes, const char *name, uint64_t offset,
                                    data_record *out, hr_err *err);

// The image as the model wants it: channel planes of bytes become interleaved floats in [0, 1], in one pass.
void record_write_image(const pipeline_info *info, const uint8_t *planes, float *to);

#endif
