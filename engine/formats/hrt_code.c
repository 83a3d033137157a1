// SPDX-License-Identifier: Apache-2.0
#include "formats/hrt_code.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the union of an event goes into the file as it lies");

// As PNG's: the first byte is no text, the line ends show what a transfer as text has done.
const uint8_t hrt_magic[8] = {0x89, 'H', 'R', 'T', '\r', '\n', 0x1a, '\n'};

// CRC-32 with the polynomial 0xEDB88320, half a byte at a time.
uint32_t hrt_crc(uint32_t crc, const void *bytes, size_t count)
{
    static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                       0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                       0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    const uint8_t *at = bytes;
    crc = ~crc;
    for (const uint8_t *end = at + count; at < end; at++) {
        crc = table[(crc ^ *at) & 15] ^ crc >> 4;
        crc = table[(crc ^ (uint32_t)*at >> 4) & 15] ^ crc >> 4;
    }
    return ~crc;
}

void hrt_put_u32(uint8_t *to, uint32_t value)
{
    for (unsigned k = 0; k < 4; k++) {
        to[k] = (uint8_t)(value >> 8 * k);
    }
}

uint32_t hrt_get_u32(const uint8_t *from)
{
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

hrt_known hrt_known_of(const hr_event *event)
{
    const hr_event_memory *m = &event->u.memory;
    return (hrt_known){m->address, m->requested_bytes, m->allocated_bytes, m->stream, event->category};
}

uint64_t hrt_in_use_after(const hrt_last *last, uint8_t kind, uint64_t allocated_bytes)
{
    const uint64_t change = kind == HR_EVENT_ALLOC  ? allocated_bytes
                            : kind == HR_EVENT_FREE ? 0 - allocated_bytes
                                                    : 0;
    return last->in_use_bytes + change;
}

uint64_t hrt_pool_after(const hrt_last *last, uint8_t kind, uint64_t allocated_bytes)
{
    const uint64_t change = kind == HR_EVENT_GROW     ? allocated_bytes
                            : kind == HR_EVENT_SHRINK ? 0 - allocated_bytes
                                                      : 0;
    return last->pool_bytes + change;
}
