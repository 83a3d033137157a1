// SPDX-License-Identifier: Apache-2.0
// CIFAR-10's binary form (https://www.cs.toronto.edu/~kriz/cifar.html): a file is records without a header; a
// record is one label byte and then the channel planes, each row by row. CIFAR-10 itself has 1 + 3 × 32 × 32.
#ifndef DATA_RECORD_H
#define DATA_RECORD_H

#include <stdint.h>

#include "headroom/status.h"

#include "data/source.h"

// Reads the record of `size_bytes` that stands at bytes[0] and came from `name` at `offset`. *out points into `bytes`.
HR_MUST_CHECK hr_status record_read(const uint8_t *bytes, uint64_t size_bytes, uint32_t classes,
                                    const char *name, uint64_t offset, data_raw *out, hr_err *err);

// An image of channel planes, pixel by pixel: ops->decode of sources whose samples are such planes.
HR_MUST_CHECK hr_status record_decode(const data_source *s, const data_raw *raw, uint8_t *scratch,
                                      uint8_t *image, hr_err *err);
// ops->write of sources whose samples are their slots side by side (data_room_packed).
HR_MUST_CHECK hr_status record_write_packed(const data_source *s, const data_raw *raw, uint8_t *scratch,
                                            const data_room *to, hr_err *err);

#endif
