// SPDX-License-Identifier: Apache-2.0
// Python pickles of plain data, protocols 2 to 5, as a stream: no value is ever built. A container is a 32-bit word that
// its visitor makes of its items, which it is told in the order in which they are put in and which are gone then:
//
//   file      } ( 'addr' 4096 'frames' ] ( … e u          stack   {} [] …
//   visitor                             fill([], …)        list's word = 7
//             fill({}, 'addr' 4096 'frames' [word 7])      dictionary's word = 12
//
// Python writes every container a second time as a number, its place in the memo. The memo keeps a container's word
// only where the visitor calls it lasting; else what is referred to again is an empty container of the same kind.
// Nothing in a pickle is run: opcodes that make anything but plain data are refused (the opcodes are those of CPython's
// Lib/pickletools.py). Bounded: 192 MiB of memo, 64 Ki values and 1000 marks at once, 16 MiB of distinct texts.
#ifndef FORMATS_PICKLE_H
#define FORMATS_PICKLE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#include "base/input.h"
#include "base/intern.h"

typedef enum pickle_kind {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_WHOLE,
    PICKLE_REAL,
    PICKLE_TEXT,
    PICKLE_BYTES, // passed over
    PICKLE_TUPLE,
    PICKLE_LIST,
    PICKLE_DICT
} pickle_kind;

enum {
    PICKLE_WORD_MAX = (1 << 28) - 1, // of a container
    PICKLE_TEXT_MAX = 1024,          // bytes; a longer text is cut
    PICKLE_TEXTS_MAX = 1 << 20,      // distinct ones; those beyond have no number
    PICKLE_TEXT_BYTES_MAX = 16 << 20
};

typedef struct pickle_value {
    union {
        int64_t whole; // BOOL: 0 or 1
        double real;
        uint32_t memo; // of a container: 1 + its place there; the reader's
    } u;
    uint32_t
        word; // TEXT: its number among the texts, INTERN_NONE beyond the bounds. A container's: 0 at first
    uint8_t kind; // pickle_kind
    bool lasting; // the word of this container is good also where the container is referred to again
    bool again;   // referred to again: whole already
} pickle_value;

typedef struct pickle pickle;

typedef struct pickle_visitor {
    // Some or all items of a tuple, a list or a dictionary (key, value, key, value, …), never none; `into` has the kind
    // and the word so far. May set word and lasting. Items are good until it returns.
    hr_status (*fill)(void *context, const pickle *p, pickle_value *into, const pickle_value *items,
                      uint32_t count, hr_err *err);
    void *context;
    intern *texts; // what stands in it already keeps its number: keys to be known by number
} pickle_visitor;

// Reads one pickle up to its STOP; *top is what it held. READ error with the byte and what was needed there, NOMEM, or
// what the visitor returned.
HR_MUST_CHECK hr_status pickle_read(input *in, const pickle_visitor *visitor, pickle_value *top, hr_err *err);

// Whether a file that begins so is a pickle of protocol 2 to 5.
bool pickle_is_pickle(const char *start, size_t bytes);
const char *pickle_kind_name(uint8_t kind); // "a list"

// For visitors: a READ error that names file and byte.
hr_status pickle_fail(const pickle *p, hr_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
