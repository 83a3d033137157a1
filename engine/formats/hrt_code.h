// SPDX-License-Identifier: Apache-2.0
// What the writer and the reader of .hrt files share (formats/hrt.h describes the file).
#ifndef FORMATS_HRT_CODE_H
#define FORMATS_HRT_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/event.h"

enum { HRT_HEAD_BYTES = 16, HRT_FRAME_HEAD_BYTES = 12, HRT_FRAME_MAX = 4 << 20 };
enum { HRT_SUBJECT = 0 }; // the kind of a record that introduces one

enum {
    HRT_CATEGORY = 1,
    HRT_PHASE = 2,
    HRT_DEVICE = 4,
    HRT_STEP = 8,
    HRT_INSTR = 16,
    HRT_SEQ = 32,
    HRT_VERSION_AND_RESERVED = 64,
    HRT_CHANGES = 128
};

// What a memory event says of itself.
enum {
    HRT_ADDRESS = 1,
    HRT_REQUESTED = 2,
    HRT_ALLOCATED = 4,
    HRT_STREAM = 8,
    HRT_IN_USE = 16,
    HRT_POOL = 32,
    HRT_LARGEST_FREE = 64,
    HRT_SAID = 128
};

extern const uint8_t hrt_magic[8];

// What a record is coded against, beside what is known of its subject.
typedef struct hrt_last {
    hr_event event;
    uint64_t in_use_bytes, pool_bytes; // of the last memory event
} hrt_last;

// Of a subject: from its last event. A step takes the same tensors as the one before it.
typedef struct hrt_known {
    uint64_t address, requested_bytes, allocated_bytes;
    uint32_t stream;
    uint8_t category;
} hrt_known;

hrt_known hrt_known_of(const hr_event *event);
// Chain by passing the last result; the first is 0.
uint32_t hrt_crc(uint32_t crc, const void *bytes, size_t count);
void hrt_put_u32(uint8_t *to, uint32_t value);
uint32_t hrt_get_u32(const uint8_t *from);
// What the event makes of the bytes in use and in the pool.
uint64_t hrt_in_use_after(const hrt_last *last, uint8_t kind, uint64_t allocated_bytes);
uint64_t hrt_pool_after(const hrt_last *last, uint8_t kind, uint64_t allocated_bytes);

#endif
