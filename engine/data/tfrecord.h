// SPDX-License-Identifier: Apache-2.0
// TFRecord files (tensorflow/core/lib/io/record_writer.h): records one behind the other, each
//
//   length   8 bytes, little-endian
//   sum of the length, masked CRC-32C, 4 bytes
//   data
//   sum of the data, 4 bytes
//
// Files without compression, one behind the other as one run (parts.h). Kept is where each record begins, 8 bytes a record.
#ifndef DATA_TFRECORD_H
#define DATA_TFRECORD_H

#include "headroom/status.h"

#include "data/parts.h"

enum {
    TFRECORD_HEAD_BYTES = 12,
    TFRECORD_FRAME_BYTES = 16, // of a record beside its data
    TFRECORD_MOST_BYTES = 1 << 28,
    TFRECORD_MOST_RECORDS = 1 << 25, // 256 MiB of offsets
};

// Names of such files, as listing_read takes them: ImageNet's "train-00000-of-01024" too.
#define TFRECORD_ENDINGS ".tfrecord .tfrecords -#-of-# .tfrecord.gz .tfrecords.gz"

typedef struct tfrecords {
    parts files;
    uint64_t *offset; // of each record, in the run
    uint32_t count;
    uint32_t most_bytes; // of the data of one
    uint64_t held_bytes; // of names, files and offsets
} tfrecords;

// As parts_open. Every length is checked; of the data a record is checked when it is read. DATA errors name file and offset.
// tfrecords_close also after an error.
HR_MUST_CHECK hr_status tfrecords_open(const char *folder, const listing *from, name_use use, tfrecords *out,
                                       hr_err *err);
void tfrecords_close(tfrecords *t);

uint32_t tfrecords_bytes(const tfrecords *t, uint32_t index); // of its data
// How many records begin before that place of the run.
uint32_t tfrecords_from(const tfrecords *t, uint64_t offset);
// *data in room, which has t->most_bytes + TFRECORD_FRAME_BYTES. Thread-safe.
HR_MUST_CHECK hr_status tfrecords_read(const tfrecords *t, uint32_t index, uint8_t *room,
                                       const uint8_t **data, hr_err *err);
// "FILE, offset N". Returns text, which has PARTS_PLACE_MAX.
const char *tfrecords_place(const tfrecords *t, uint32_t index, char *text);

#endif
