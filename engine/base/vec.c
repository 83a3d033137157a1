// SPDX-License-Identifier: Apache-2.0
#include "base/vec.h"

#include <string.h>

#include "base/host_mem.h"

bool vec_reserve_(void **data, uint32_t *capacity, uint32_t count, size_t size)
{
    if (count == 0) { // the caller's count + 1 wrapped
        return false;
    }
    if (count <= *capacity) {
        return true;
    }
    uint32_t wanted = *capacity < 8 ? 8 : *capacity <= UINT32_MAX / 2 ? *capacity * 2 : UINT32_MAX;
    if (wanted < count) {
        wanted = count;
    }
    void *grown = hr_realloc(*data, wanted, size);
    if (grown == NULL) {
        return false;
    }
    *data = grown;
    *capacity = wanted;
    return true;
}

void vec_zero_(void *element, size_t size)
{
    memset(element, 0, size);
}

void vec_free_(void *data)
{
    hr_free(data);
}
