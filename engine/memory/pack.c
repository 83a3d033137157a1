// SPDX-License-Identifier: Apache-2.0
#include "memory/pack.h"

#include "base/host_mem.h"
#include "memory/pack_items.h"

static void clear(uint64_t *offsets, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        offsets[k] = 0;
    }
}

hr_status pack_offsets(const pack_buffer *buffers, uint32_t count, uint64_t alignment_bytes,
                       uint64_t *offsets, uint64_t *height_bytes, hr_err *err)
{
    pack_items items;
    *height_bytes = 0;
    clear(offsets, count);
    hr_status status = pack_items_init(&items, buffers, count, alignment_bytes, err);
    if (status == HR_OK) {
        pack_items_sort(&items, PACK_BY_SIZE);
        if (!pack_first_fit(&items, offsets, height_bytes)) {
            status = HR_FAIL(err, NOMEM, "no host memory to pack %u buffers", count);
        }
    }
    pack_items_deinit(&items);
    return status;
}

hr_status pack_lower_bound(const pack_buffer *buffers, uint32_t count, uint64_t alignment_bytes,
                           uint64_t *bytes, hr_err *err)
{
    pack_items items;
    hr_status status = pack_items_init(&items, buffers, count, alignment_bytes, err);
    *bytes = items.most_bytes;
    pack_items_deinit(&items);
    return status;
}
