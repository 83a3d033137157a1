// SPDX-License-Identifier: Apache-2.0
#include "memory/spans.h"

#include <string.h>

void spans_deinit(spans *s)
{
    vec_deinit(&s->list);
}

uint32_t spans_behind(const spans *s, uint32_t from, uint64_t address)
{
    uint32_t low = from, high = s->list.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->list.data[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool spans_add(spans *s, uint64_t begin, uint64_t end)
{
    // [first, behind): the spans that the new one touches.
    uint32_t first = begin == 0 ? 0 : spans_behind(s, 0, begin - 1);
    uint32_t behind = first;
    while (behind < s->list.count && s->list.data[behind].begin <= end) {
        behind++;
    }
    if (first == behind) {
        if (vec_push(&s->list) == NULL) {
            return false;
        }
        span *at = &s->list.data[first];
        memmove(at + 1, at, (s->list.count - 1 - first) * sizeof *at);
        *at = (span){begin, end};
        return true;
    }
    span *kept = &s->list.data[first];
    uint64_t last_end = s->list.data[behind - 1].end;
    kept->begin = begin < kept->begin ? begin : kept->begin;
    kept->end = end > last_end ? end : last_end;
    memmove(kept + 1, &s->list.data[behind], (s->list.count - behind) * sizeof *kept);
    s->list.count -= behind - first - 1;
    return true;
}
