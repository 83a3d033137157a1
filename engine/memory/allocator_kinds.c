// SPDX-License-Identifier: Apache-2.0
// The allocators that there are, by the word of allocator.kind.
#include <string.h>

#include "headroom/units.h"

#include "memory/async.h"
#include "memory/bfc.h"
#include "memory/caching.h"
#include "memory/direct.h"
#include "memory/static.h"

#define LIMIT_MAX_BYTES (UINT64_C(1) << 60) // sums of sizes below it cannot wrap

typedef hr_status (*allocator_maker)(const allocator_config *config, backing *source, trace_bus *bus,
                                     allocator **out, hr_err *err);

static const struct {
    const char *kind;
    allocator_maker create;
    allocator_traits traits;
} kinds[] = {
    {"async", async_create, {0}},   {"async_driver", async_driver_create, {.is_drivers = true}},
    {"bfc", bfc_create, {0}},       {"caching", caching_create, {.expands = true}},
    {"direct", direct_create, {0}}, {"static", static_create, {0}},
};

allocator_traits allocator_traits_of(const char *kind)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (strcmp(kinds[k].kind, kind) == 0) {
            return kinds[k].traits;
        }
    }
    return (allocator_traits){0};
}

allocator_config allocator_config_of(const char *kind, uint64_t limit_bytes)
{
    return (allocator_config){
        .kind = kind,
        .limit_bytes = limit_bytes,
        .garbage_collection = true,
        .caching = {.max_split_bytes = UINT64_MAX,
                    .max_non_split_rounding_bytes = 20 * HR_MIB,
                    .large_segment_bytes = 20 * HR_MIB},
        .release_threshold_bytes = limit_bytes,
    };
}

hr_status allocator_create(const allocator_config *config, backing *source, trace_bus *bus, allocator **out,
                           hr_err *err)
{
    *out = NULL;
    if (config->limit_bytes > LIMIT_MAX_BYTES) {
        char text[HR_BYTES_TEXT_MAX];
        return HR_FAIL(err, KNOB, "device.vram: needed at most 1 EiB, had %s",
                       hr_bytes_human(config->limit_bytes, text));
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].kind, config->kind) == 0) {
            return kinds[i].create(config, source, bus, out, err);
        }
    }
    return HR_FAIL(err, KNOB, "allocator.kind: there is no allocator '%s'", config->kind);
}
