// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_write.h"

#include <string.h>

#include "formats/row_file.h"

enum { BATCH = 1000 };

static void put(pickle_out *o, const void *bytes, size_t count)
{
    text_append_bytes(o->to, bytes, count);
}

// An opcode and `count` bytes of its argument, the lowest first.
static void put_op(pickle_out *o, uint8_t op, uint64_t argument, size_t count)
{
    uint8_t bytes[9] = {op};
    for (size_t k = 0; k < count; k++) {
        bytes[1 + k] = (uint8_t)(argument >> 8 * k);
    }
    put(o, bytes, 1 + count);
}

void pickle_begin(pickle_out *o)
{
    put_op(o, 0x80, 2, 1);
}

void pickle_end(pickle_out *o)
{
    put_op(o, '.', 0, 0);
}

void pickle_out_deinit(pickle_out *o)
{
    intern_deinit(&o->words);
    vec_deinit(&o->places);
}

void pickle_open(pickle_out *o, char bracket)
{
    put(o, bracket == '{' ? "}(" : "](", 2);
}

void pickle_close(pickle_out *o, char bracket)
{
    put(o, bracket == '}' ? "u" : "e", 1);
}

void pickle_item(pickle_out *o, uint64_t index)
{
    if (index > 0 && index % BATCH == 0) {
        put(o, "e(", 2);
    }
}

static uint32_t remember(pickle_out *o)
{
    if (o->next_place <= UINT8_MAX) {
        put_op(o, 'q', o->next_place, 1);
    } else {
        put_op(o, 'r', o->next_place, 4);
    }
    return o->next_place++;
}

uint32_t pickle_open_shared(pickle_out *o)
{
    put(o, "]", 1);
    uint32_t place = remember(o);
    put(o, "(", 1);
    return place;
}

void pickle_again(pickle_out *o, uint32_t place)
{
    if (place <= UINT8_MAX) {
        put_op(o, 'h', place, 1);
    } else {
        put_op(o, 'j', place, 4);
    }
}

void pickle_whole(pickle_out *o, int64_t value)
{
    if (value >= 0 && value <= UINT8_MAX) {
        put_op(o, 'K', (uint64_t)value, 1);
    } else if (value >= 0 && value <= UINT16_MAX) {
        put_op(o, 'M', (uint64_t)value, 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        put_op(o, 'J', (uint64_t)value, 4);
    } else {
        put_op(o, 0x8a, 8, 1);
        uint8_t bytes[8];
        for (size_t k = 0; k < sizeof bytes; k++) {
            bytes[k] = (uint8_t)((uint64_t)value >> 8 * k);
        }
        put(o, bytes, sizeof bytes);
    }
}

void pickle_truth(pickle_out *o, bool value)
{
    put_op(o, value ? 0x88 : 0x89, 0, 0);
}

void pickle_word(pickle_out *o, const char *word)
{
    uint32_t number = intern_add(&o->words, word, strlen(word));
    if (number < o->places.count) {
        pickle_again(o, o->places.data[number]);
        return;
    }
    uint32_t *place = number == INTERN_NONE ? NULL : vec_push(&o->places);
    if (place == NULL) {
        o->to->failed = true;
        return;
    }
    size_t length_at = o->to->length + 1;
    put_op(o, 'X', 0, 4);
    row_append_utf8(o->to, word);
    if (!o->to->failed) {
        size_t count = o->to->length - length_at - 4;
        for (size_t k = 0; k < 4; k++) {
            o->to->data[length_at + k] = (char)(count >> 8 * k);
        }
    }
    *place = remember(o);
}

void pickle_pair(pickle_out *o, int64_t first, int64_t second)
{
    pickle_whole(o, first);
    pickle_whole(o, second);
    put_op(o, 0x86, 0, 0);
}
