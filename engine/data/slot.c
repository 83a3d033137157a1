// SPDX-License-Identifier: Apache-2.0
#include "data/slot.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

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
    static const uint8_t bytes[] = {[DATA_FLOAT] = 4, [DATA_IDS] = 4, [DATA_MASK] = 1, [DATA_F16] = 2,
                                    [DATA_BF16] = 2,  [DATA_F64] = 8, [DATA_BYTES] = 1};
    return data_slot_values(slot) * bytes[slot->type];
}

bool data_slot_is_real(const data_slot *slot)
{
    return slot->type != DATA_IDS && slot->type != DATA_MASK;
}

bool data_slot_continues(const data_slot *input, const data_slot *label)
{
    return input->type == DATA_IDS && label->type == DATA_IDS && label->is_label && !input->is_label &&
           input->rank > 0 && label->rank == input->rank && input->classes == label->classes &&
           memcmp(input->dim, label->dim, sizeof input->dim) == 0;
}

data_form data_form_narrowed(const data_form *form, const data_type types[DATA_MAX_SLOTS])
{
    data_form narrow = *form;
    for (uint32_t k = 0; k < form->count; k++) {
        narrow.slot[k].type = form->slot[k].type == DATA_FLOAT ? types[k] : form->slot[k].type;
    }
    return narrow;
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
        if (data_slot_is_real(slot)) {
            (void)snprintf(text + used, size - used, "%s floats", one);
        } else {
            (void)snprintf(text + used, size - used, "%s %s below %u", one,
                           slot->type == DATA_IDS ? "ids" : "mask values", slot->classes);
        }
    }
    return text;
}

static hr_status take_slot(const pinned_memory *from, uint64_t bytes, void **out, hr_err *err)
{
    if (from->take != NULL) {
        return from->take(from->context, bytes, out, err);
    }
    *out = hr_calloc(bytes, 1);
    return *out != NULL
               ? HR_OK
               : HR_FAIL(err, NOMEM, "the buffer of a batch: needed %" PRIu64 " bytes, had less", bytes);
}

hr_status data_room_take(const data_form *form, uint32_t samples, const pinned_memory *from, data_room *room,
                         hr_err *err)
{
    *room = (data_room){.from = *from};
    for (uint32_t k = 0; k < form->count; k++) {
        const hr_status status =
            take_slot(from, samples * data_slot_bytes(&form->slot[k]), &room->slot[k], err);
        if (status != HR_OK) {
            room->slot[k] = NULL;
            data_room_give_back(room);
            return status;
        }
    }
    return HR_OK;
}

void data_room_give_back(data_room *room)
{
    for (uint32_t k = 0; k < DATA_MAX_SLOTS; k++) {
        if (room->slot[k] != NULL && room->from.give_back != NULL) {
            room->from.give_back(room->from.context, room->slot[k]);
        } else {
            hr_free(room->slot[k]);
        }
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

uint64_t data_slot_packed_bytes(const data_slot *slot)
{
    return (data_slot_bytes(slot) + sizeof(uint64_t) - 1) & ~(uint64_t)(sizeof(uint64_t) - 1);
}

uint64_t data_form_packed_bytes(const data_form *form)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < form->count; k++) {
        bytes += data_slot_packed_bytes(&form->slot[k]);
    }
    return bytes;
}

data_room data_room_packed(const data_form *form, uint8_t *bytes)
{
    data_room room = {0};
    for (uint32_t k = 0; k < form->count; k++) {
        room.slot[k] = bytes;
        bytes += data_slot_packed_bytes(&form->slot[k]);
    }
    return room;
}

bool data_form_is_small(const data_form *form)
{
    uint64_t bytes = 0;
    bool fits = true;
    for (uint32_t k = 0; k < form->count; k++) {
        uint64_t slot_bytes = 2 * sizeof(uint64_t); // of the widest value, and what packing adds at most
        for (uint32_t d = 0; d < form->slot[k].rank; d++) {
            fits = fits && hr_mul_bytes(slot_bytes, form->slot[k].dim[d], &slot_bytes);
        }
        fits = fits && hr_add_bytes(bytes, slot_bytes, &bytes);
    }
    return fits && data_form_packed_bytes(form) <= INT32_MAX;
}

void data_room_pack(const data_form *form, const data_room *from, uint8_t *bytes)
{
    for (uint32_t k = 0; k < form->count; k++) {
        memcpy(bytes, from->slot[k], data_slot_bytes(&form->slot[k]));
        bytes += data_slot_packed_bytes(&form->slot[k]);
    }
}

void data_room_unpack(const data_form *form, const uint8_t *bytes, const data_room *to)
{
    for (uint32_t k = 0; k < form->count; k++) {
        memcpy(to->slot[k], bytes, data_slot_bytes(&form->slot[k]));
        bytes += data_slot_packed_bytes(&form->slot[k]);
    }
}
