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

uint32_t data_number_bytes(bool has_place, bool has_epoch)
{
    const size_t place = has_place ? sizeof(uint32_t) : 0, epoch = has_epoch ? sizeof(uint64_t) : 0;
    return (uint32_t)(sizeof(uint32_t) + place + epoch);
}

static void add(atomic_uint_fast64_t *to, uint64_t more)
{
    atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + more, memory_order_relaxed);
}

void stage_times_add(stage_times *t, const stage_spent *spent)
{
    add(&t->busy_ns, spent->busy_ns);
    add(&t->wall_ns, spent->wall_ns);
    add(&t->wait_ns, spent->wait_ns);
    add(&t->items, spent->items);
}

stage_spent stage_times_now(const stage_times *t)
{
    return (stage_spent){.busy_ns = atomic_load_explicit(&t->busy_ns, memory_order_relaxed),
                         .wall_ns = atomic_load_explicit(&t->wall_ns, memory_order_relaxed),
                         .wait_ns = atomic_load_explicit(&t->wait_ns, memory_order_relaxed),
                         .items = atomic_load_explicit(&t->items, memory_order_relaxed)};
}

hr_status data_stage_take_room(data_stage *s, const data_buffers *buffers, uint32_t samples, data_room *room,
                               hr_err *err)
{
    static const pinned_memory ordinary = {.take = NULL};
    const uint64_t bytes = samples * data_form_bytes(&buffers->form);
    if (buffers->pinned.take != NULL && buffers->refusal->status == HR_OK) {
        if (data_room_take(&buffers->form, samples, &buffers->pinned, room, buffers->refusal) == HR_OK) {
            atomic_fetch_add_explicit(&s->pinned_bytes, bytes, memory_order_relaxed);
            return HR_OK;
        }
    }
    HR_TRY(data_room_take(&buffers->form, samples, &ordinary, room, err));
    data_stage_hold(s, bytes);
    return HR_OK;
}

void data_stage_give_back_room(data_stage *s, const data_form *form, uint32_t samples, data_room *room)
{
    const uint64_t bytes = samples * data_form_bytes(form);
    if (room->slot[0] == NULL) {
        return;
    }
    if (room->from.take != NULL) {
        atomic_fetch_sub_explicit(&s->pinned_bytes, bytes, memory_order_relaxed);
    } else {
        data_stage_release(s, bytes);
    }
    data_room_give_back(room);
}

void data_stage_close(data_stage *s)
{
    while (s != NULL) {
        data_stage *before = s->before;
        s->ops->close(s);
        s = before;
    }
}
