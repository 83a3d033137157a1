// SPDX-License-Identifier: Apache-2.0
#include "insight/near_full.h"

#include "headroom/report.h"

enum { HELD = LEAK_STEPS + 1 };

static uint64_t floor_at(const near_full *n, uint64_t back)
{
    return n->floor_bytes[(n->steps - 1 - back) % HELD];
}

static bool rises(const near_full *n)
{
    for (uint64_t back = 0; back < LEAK_STEPS; back++) {
        if (floor_at(n, back) <= floor_at(n, back + 1)) {
            return false;
        }
    }
    return true;
}

bool near_full_step(near_full *n, uint64_t floor_bytes, uint64_t peak_bytes, uint64_t limit_bytes,
                    near_full_warning *out)
{
    n->floor_bytes[n->steps++ % HELD] = floor_bytes;
    if (n->told || limit_bytes == HR_NONE || n->steps <= HELD ||
        !rises(n)) { // the first step makes what all have
        return false;
    }
    out->rise_bytes = (floor_bytes - floor_at(n, LEAK_STEPS)) / LEAK_STEPS;
    out->steps =
        limit_bytes > peak_bytes && out->rise_bytes > 0 ? (limit_bytes - peak_bytes) / out->rise_bytes : 0;
    n->told = out->rise_bytes > 0 && out->steps <= NEAR_FULL_STEPS;
    return n->told;
}
