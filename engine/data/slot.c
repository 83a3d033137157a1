// SPDX-License-Identifier: Apache-2.0
#include "data/slot.h"

#include <stddef.h>
#include <stdio.h>

#include "base/host_mem.h"

uint64_t data_slot_values(const data_slot *slot)
{
    uint64_t values = 1;
    for (uint32_t k = 0; k < slot->rank; k++) {
        values *= slot->dim[k];
    }
    return values;
}

uint64_t data_slot_bytes(const data_slot *slot)
{
    return data_slot_values(slot) * (slot->type == DATA_MASK ? sizeof(uint8_t) : sizeof(float));
}

uint64_t data_form_bytes(const data_form *form)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < form->count; k++) {
        bytes += data_slot_bytes(&form->slot[k]);
    }
    return bytes;
}

const data_slot *data_form_label(const data_form *form)
{
    uint32_t k = 0;
    while (k + 1 < form->count && !form->slot[k].is_label) {
        k++;
    }
    return &form->slot[k];
}

const char *data_slot_text(const data_slot *slot, char *text, uint32_t size)
{
    uint32_t used = 0;
    text[0] = '\0';
    for (uint32_t k = 0; k < slot->rank && used < size; k++) {
        used += (uint32_t)snprintf(text + used, size - used, k == 0 ? "%u" : "x%u", slot->dim[k]);
    }
    if (used < size) {
        const char *one = slot->rank == 0 ? "1" : "";
        if (slot->type == DATA_FLOAT) {
            (void)snprintf(text + used, size - used, "%s floats", one);
        } else {
            (void)snprintf(text + used, size - used, "%s %s below %u", one,
                           slot->type == DATA_IDS ? "ids" : "mask values", slot->classes);
        }
    }
    return text;
}

bool data_room_take(const data_form *form, uint32_t samples, data_room *room)
{
    *room = (data_room){0};
    for (uint32_t k = 0; k < form->count; k++) {
        room->slot[k] = hr_calloc(samples, data_slot_bytes(&form->slot[k]));
        if (room->slot[k] == NULL) {
            data_room_give_back(room);
            return false;
        }
    }
    return true;
}

void data_room_give_back(data_room *room)
{
    for (uint32_t k = 0; k < DATA_MAX_SLOTS; k++) {
        hr_free(room->slot[k]);
        room->slot[k] = NULL;
    }
}

data_room data_room_at(const data_form *form, const data_room *room, uint32_t place)
{
    data_room at = {0};
    for (uint32_t k = 0; k < form->count; k++) {
        at.slot[k] = (uint8_t *)room->slot[k] + place * data_slot_bytes(&form->slot[k]);
    }
    return at;
}
