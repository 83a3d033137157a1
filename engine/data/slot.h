// SPDX-License-Identifier: Apache-2.0
// What a model wants of a sample: one slot for each of its inputs and labels. Samples are written straight into the
// slots of a batch, each slot [samples, dim…] plain.
#ifndef DATA_SLOT_H
#define DATA_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pinned.h"

enum { DATA_MAX_SLOTS = 4, DATA_MAX_RANK = 4 };

typedef enum data_type {
    DATA_FLOAT, // float32; images are HWC in [0, 1]
    DATA_IDS,   // int32, 0 … classes - 1
    DATA_MASK,  // uint8, 0 … classes - 1
    DATA_F16,   // as DATA_FLOAT, narrowed: in batches only, as what follows
    DATA_BF16,
    DATA_F64,   // widened; of images the quotient in double
    DATA_BYTES, // images' bytes 0 … 255, which the device makes numbers of
} data_type;

typedef struct data_slot {
    data_type type;
    bool is_label, binary; // binary: a FLOAT label that is 0 or 1
    uint32_t classes;      // of IDS and MASK
    uint32_t rank;         // 0: one number
    uint32_t dim[DATA_MAX_RANK];
} data_slot;

// Inputs first, then labels; at least one of each.
typedef struct data_form {
    data_slot slot[DATA_MAX_SLOTS];
    uint32_t count;
} data_form;

uint64_t data_slot_values(const data_slot *slot); // of a sample
uint64_t data_slot_bytes(const data_slot *slot);  // of a sample
uint64_t data_form_bytes(const data_form *form);  // of a sample, all slots
// Whether a sample is small enough to be made: packed, and in any other of the ways above, it has at most INT32_MAX bytes.
bool data_form_is_small(const data_form *form);
// The first label.
const data_slot *data_form_label(const data_form *form);
// "32x32x3 floats", "64 ids below 256". Returns text.
const char *data_slot_text(const data_slot *slot, char *text, uint32_t size);

// Does it hold floats, of whatever width?
bool data_slot_is_real(const data_slot *slot);
// Does the label continue an input of ids token by token?
bool data_slot_continues(const data_slot *input, const data_slot *label);
// The form of batches whose floats have these types: of DATA_FLOAT slots DATA_FLOAT, or one that is in batches only.
data_form data_form_narrowed(const data_form *form, const data_type types[DATA_MAX_SLOTS]);

// The room of a batch: one buffer a slot.
typedef struct data_room {
    void *slot[DATA_MAX_SLOTS]; // NULL beyond the form's slots
    pinned_memory from;         // that gave the buffers; all zero: host memory did
} data_room;

// Zeroed. NOMEM error when memory is short: nothing is held then.
HR_MUST_CHECK hr_status data_room_take(const data_form *form, uint32_t samples, const pinned_memory *from,
                                       data_room *room, hr_err *err);
void data_room_give_back(data_room *room);
// Where sample `place` of a batch begins in each slot.
data_room data_room_at(const data_form *form, const data_room *room, uint32_t place);

// One sample's slots side by side, each where its values may lie: how many bytes, and the room that begins at `bytes`,
// which lies where any value may.
uint64_t data_slot_packed_bytes(const data_slot *slot);
uint64_t data_form_packed_bytes(const data_form *form);
data_room data_room_packed(const data_form *form, uint8_t *bytes);
void data_room_pack(const data_form *form, const data_room *from, uint8_t *bytes);
void data_room_unpack(const data_form *form, const uint8_t *bytes, const data_room *to);

#endif
