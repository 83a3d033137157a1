// SPDX-License-Identifier: Apache-2.0
#include "formats/lifetimes.h"

#include <stdlib.h>

#include "base/host_mem.h"

void lifetimes_deinit(lifetimes *l)
{
    vec_deinit(&l->list);
    vec_deinit(&l->gaps);
    intern_deinit(&l->ids);
    *l = (lifetimes){0};
}

static int ascending(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static uint32_t place_of(const uint64_t *times, uint32_t count, uint64_t time)
{
    uint32_t low = 0, high = count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        *(times[middle] <= time ? &low : &high) = middle;
    }
    return low;
}

hr_status lifetimes_instants(const lifetimes *l, uint32_t *births, uint32_t *deaths, hr_err *err)
{
    const uint32_t count = l->list.count;
    uint64_t *times = count > UINT32_MAX / 2 ? NULL : hr_calloc(2 * (size_t)count, sizeof *times);
    if (times == NULL) {
        return count == 0 ? HR_OK
                          : HR_FAIL(err, NOMEM, "lifetimes: needed memory for %u times, had none", 2 * count);
    }
    for (uint32_t k = 0; k < count; k++) {
        times[2 * k] = l->list.data[k].lower;
        times[2 * k + 1] = l->list.data[k].upper;
    }
    qsort(times, 2 * (size_t)count, sizeof *times, ascending);
    uint32_t different = 0;
    for (uint32_t k = 0; k < 2 * count; k++) {
        if (k == 0 || times[k] != times[different - 1]) {
            times[different++] = times[k];
        }
    }
    for (uint32_t k = 0; k < count; k++) {
        births[k] = place_of(times, different, l->list.data[k].lower);
        deaths[k] = place_of(times, different, l->list.data[k].upper);
    }
    hr_free(times);
    return HR_OK;
}
