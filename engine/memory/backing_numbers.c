// SPDX-License-Identifier: Apache-2.0
// Pure numbers: a plan's memory. Nothing lies behind the addresses.
#include "headroom/units.h"

#include "base/host_mem.h"
#include "memory/address_space.h"
#include "memory/backing.h"

// No real pointer of a process begins here, so that one that leaks out of a plan faults at once.
static const uint64_t FIRST_ADDRESS = UINT64_C(1) << 40;

static uint64_t take(void *context, uint64_t bytes)
{
    return address_space_take(context, bytes);
}

static void give_back(void *context, uint64_t address, uint64_t bytes)
{
    (void)address_space_give_back(context, address, bytes);
}

static uint64_t reserve(void *context, uint64_t bytes)
{
    return address_space_reserve(context, bytes);
}

static void release(void *context, uint64_t address, uint64_t bytes)
{
    (void)address_space_release(context, address, bytes);
}

static bool map(void *context, uint64_t address, uint64_t bytes)
{
    return address_space_map(context, address, bytes);
}

static void unmap(void *context, uint64_t address, uint64_t bytes)
{
    address_space_unmap(context, address, bytes);
}

static void close_numbers(void *context)
{
    address_space_deinit(context);
    hr_free(context);
}

hr_status backing_numbers_open(uint64_t capacity_bytes, uint64_t granularity_bytes, backing *out, hr_err *err)
{
    *out = (backing){0};
    if (granularity_bytes == 0 || (granularity_bytes & (granularity_bytes - 1)) != 0 ||
        granularity_bytes > FIRST_ADDRESS) {
        return HR_FAIL(err, DEVICE, "card: needed a granularity that is a power of two, had %llu bytes",
                       (unsigned long long)granularity_bytes);
    }
    address_space *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "planned memory: needed %zu bytes for its bookkeeping, had none",
                       sizeof *s);
    }
    if (!address_space_init(s, capacity_bytes, granularity_bytes, UINT64_MAX)) {
        hr_free(s);
        char text[HR_BYTES_TEXT_MAX];
        return HR_FAIL(err, HOST_LIMIT, "planned memory: needed at most 2 EiB, had %s",
                       hr_bytes_human(capacity_bytes, text));
    }
    address_space_place(s, FIRST_ADDRESS);
    *out = (backing){
        .context = s,
        .granularity_bytes = granularity_bytes,
        .alignment_bytes = granularity_bytes,
        .mapping_bytes = s->mapping_bytes,
        .take = take,
        .give_back = give_back,
        .reserve = reserve,
        .release = release,
        .map = map,
        .unmap = unmap,
        .close = close_numbers,
    };
    return HR_OK;
}
