// SPDX-License-Identifier: Apache-2.0
// Writes pickles of plain data, protocol 2, which every Python and PyTorch's viewer read, into a growing text.
//
//   pickle_begin  pickle_open(o, '{')  pickle_text key, pickle_whole value, …  pickle_close(o, '}')  pickle_end
//
// Texts are remembered and written once. Items of lists go in batches of 1000: the viewer hands a batch to a JavaScript
// function as its arguments. A failure to grow stays in the text (base/text.h).
#ifndef FORMATS_PICKLE_WRITE_H
#define FORMATS_PICKLE_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/text.h"
#include "base/vec.h"

// Starts zeroed but for `to`.
typedef struct pickle_out {
    text *to;
    intern words;
    VEC(uint32_t) places; // of a word by its number, in the memo
    uint32_t next_place;
} pickle_out;

void pickle_begin(pickle_out *o);
void pickle_end(pickle_out *o);
void pickle_out_deinit(pickle_out *o);

// "{", "}", "[", "]" around keys and values, or items.
void pickle_open(pickle_out *o, char bracket);
void pickle_close(pickle_out *o, char bracket);
// Between item `index` of a list and the one before it: a new batch where it is due.
void pickle_item(pickle_out *o, uint64_t index);
// A list that can be put in again by its place.
uint32_t pickle_open_shared(pickle_out *o);
void pickle_again(pickle_out *o, uint32_t place);

void pickle_whole(pickle_out *o, int64_t value);
void pickle_truth(pickle_out *o, bool value);
void pickle_word(pickle_out *o, const char *word); // bytes that are no UTF-8 become U+FFFD
void pickle_pair(pickle_out *o, int64_t first, int64_t second);

#endif
