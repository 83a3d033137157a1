// SPDX-License-Identifier: Apache-2.0
#include "memory/pack.h"

#include "memory/pack_items.h"

enum { OFFSETS_NODES = 1000 };

hr_status pack_offsets(const pack_buffer *buffers, uint32_t count, uint64_t alignment_bytes,
                       uint64_t *offsets, uint64_t *height_bytes, hr_err *err)
{
    const pack_goal goal = {.node_limit = OFFSETS_NODES};
    pack_result result;
    hr_status status = pack_search(buffers, count, alignment_bytes, &goal, offsets, &result, err);
    *height_bytes = result.height_bytes;
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
