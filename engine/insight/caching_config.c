// SPDX-License-Identifier: Apache-2.0
#include "insight/caching_config.h"

#include <string.h>

_Static_assert((int)CACHING_ROUNDUP_SIZES == (int)TORCH_DIVISIONS, "divisions for the same sizes");

caching_options caching_options_of(const torch_conf *c)
{
    caching_options o = {
        .max_split_bytes = c->max_split_bytes,
        .max_non_split_rounding_bytes = c->max_non_split_rounding_bytes,
        .large_segment_bytes = c->large_segment_bytes,
        .gc_threshold = c->gc_threshold,
        .expandable_segments = c->expandable_segments,
        .refuses_early = c->throws_early,
    };
    memcpy(o.roundup_divisions, c->divisions, sizeof o.roundup_divisions);
    return o;
}

caching_order caching_order_of_version(const char *version)
{
    static const struct {
        const char *version;
        caching_order order;
    } versions[] = {{"2.12", CACHING_BY_BLOCK}, {"2.11", CACHING_BY_ADDRESS}};
    for (size_t k = 0; k < sizeof versions / sizeof *versions; k++) {
        if (strcmp(version, versions[k].version) == 0) {
            return versions[k].order;
        }
    }
    return CACHING_BY_SEGMENT;
}
