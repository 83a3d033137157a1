// SPDX-License-Identifier: Apache-2.0
// Bytes that come one after the other, from a file of any size or from memory (fuzzing, tests): what a parser sees
// never lies whole in memory. Not thread-safe.
#ifndef BASE_INPUT_H
#define BASE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/status.h"

enum { INPUT_PIECE_MAX = 16 << 20 }; // the longest piece that can be asked for at once

// Starts zeroed; everything below is the parser's to read, none to write.
typedef struct input {
    const char *name;   // in errors; borrowed
    const char *window; // what is at hand: window[at .. end)
    size_t at, end;
    uint64_t passed; // bytes before the window
    char *buffer;    // NULL: the window is the caller's memory
    size_t capacity;
    int fd;
    bool ended;        // nothing comes behind the window
    bool failed;       // reading failed: `err` says how
    bool rest_of_line; // the last line was cut: its rest comes first
    hr_err err;
} input;

HR_MUST_CHECK hr_status input_open(input *in, const char *path, hr_err *err);
void input_of_memory(input *in, const char *name, const void *bytes, size_t count);
void input_close(input *in);

// How many of `bytes` are at hand, after reading until there are as many or the file ends; never more than asked.
// bytes ≤ INPUT_PIECE_MAX. They begin at input_here, until the next call.
size_t input_ahead(input *in, size_t bytes);
static inline const char *input_here(const input *in)
{
    return in->window + in->at;
}
// Passes over bytes that are at hand.
static inline void input_pass(input *in, size_t bytes)
{
    in->at += bytes;
}
// Passes over `bytes`, at hand or not; false when the file is shorter.
bool input_skip(input *in, uint64_t bytes);
// The next `bytes` and passes over them; NULL when fewer are left. bytes ≤ INPUT_PIECE_MAX.
const char *input_take(input *in, size_t bytes);
// The next line without its end ("\n" or "\r\n"), passing over it; NULL at the end of the file. A longer one than
// `max` comes cut; mix lines with other calls only where none was. Not NUL-terminated; good until the next call.
const char *input_line(input *in, size_t max, size_t *length);
uint64_t input_offset(const input *in); // of what comes next
// READ error when reading failed (not at the plain end).
HR_MUST_CHECK hr_status input_status(const input *in, hr_err *err);

#endif
