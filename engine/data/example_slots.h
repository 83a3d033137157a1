// SPDX-License-Identifier: Apache-2.0
// Which features of a tf.train.Example fill which slots of a model. It is decided by one record, and then holds for all: a name
// that is usual for such a slot, or else the only feature that has its type and its size.
//
//   floats   a list of as many floats; or bytes: one for each value, or where the slot is an image with a class a JPEG or PNG
//   ids      a list of as many whole numbers
//   mask     the same, or as many bytes
#ifndef DATA_EXAMPLE_SLOTS_H
#define DATA_EXAMPLE_SLOTS_H

#include "headroom/status.h"

#include "data/example.h"
#include "data/slot.h"

enum { EXAMPLE_NAME_MAX = 128 };

typedef struct example_record {
    const uint8_t *bytes;
    uint32_t count;
    const char *place; // "FILE, offset N": for sentences
} example_record;

typedef struct example_slots {
    data_form form;
    char name[DATA_MAX_SLOTS][EXAMPLE_NAME_MAX];
    feature_kind kind[DATA_MAX_SLOTS];
    bool has_image;  // an image of bytes and its class
    bool is_encoded; // and the image is a JPEG or PNG
} example_slots;

// DATA error when a slot gets no feature, or could get several.
HR_MUST_CHECK hr_status example_slots_choose(const data_form *form, const example_record *record,
                                             example_slots *out, hr_err *err);
// The slots' features in another record; DATA error when one is missing, or is not what the slot takes.
HR_MUST_CHECK hr_status example_slots_find(const example_slots *s, const example_record *record,
                                           feature found[DATA_MAX_SLOTS], hr_err *err);
// The same of a record that was found good before.
void example_slots_look(const example_slots *s, const uint8_t *bytes, uint32_t count,
                        feature found[DATA_MAX_SLOTS]);
void example_slots_write(const example_slots *s, const feature found[DATA_MAX_SLOTS], const data_room *to);

// The one number of a class.
int32_t example_class(const feature *f);

#endif
