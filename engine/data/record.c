// SPDX-License-Identifier: Apache-2.0
#include "data/record.h"

#include <inttypes.h>

hr_status record_read(const uint8_t *bytes, uint32_t classes, const char *name, uint64_t offset,
                      data_record *out, hr_err *err)
{
    if (bytes[0] >= classes) {
        return HR_FAIL(err, DATA, "%s, offset %" PRIu64 ": needed a label from 0 to %u, had %u", name, offset,
                       classes - 1, bytes[0]);
    }
    *out = (data_record){.planes = bytes + 1, .label = bytes[0]};
    return HR_OK;
}
