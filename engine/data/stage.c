// SPDX-License-Identifier: Apache-2.0
#include "data/stage.h"

#include <stddef.h>

void data_stage_hold(data_stage *s, uint64_t bytes)
{
    uint64_t now = atomic_load_explicit(&s->held_bytes, memory_order_relaxed) + bytes;
    atomic_store_explicit(&s->held_bytes, now, memory_order_relaxed);
    if (now > atomic_load_explicit(&s->peak_held_bytes, memory_order_relaxed)) {
        atomic_store_explicit(&s->peak_held_bytes, now, memory_order_relaxed);
    }
}

void data_stage_release(data_stage *s, uint64_t bytes)
{
    uint64_t now = atomic_load_explicit(&s->held_bytes, memory_order_relaxed) - bytes;
    atomic_store_explicit(&s->held_bytes, now, memory_order_relaxed);
}

void data_stage_close(data_stage *s)
{
    while (s != NULL) {
        data_stage *before = s->before;
        s->ops->close(s);
        s = before;
    }
}
