// SPDX-License-Identifier: Apache-2.0
// Growing text, and the distance between two words for "did you mean".
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Starts zeroed. After a failure to grow, `failed` stays true and further appends do nothing.
typedef struct text {
    char *data; // NUL-terminated once something was appended
    size_t length, capacity;
    bool failed;
} text;

void text_append(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_append_bytes(text *t, const char *bytes, size_t count);
void text_deinit(text *t);
// Hands the buffer to the caller (hr_free) and empties t; NULL when an append had failed.
char *text_take(text *t);

// A stream that appends to t, which must outlive it; what was written is there after fflush or fclose. NULL: no host
// memory.
FILE *text_stream(text *t);

// Copies `from` into to[0..size), always terminated; false when it was cut.
bool text_copy(char *to, size_t size, const char *from);

// Does `ending` come last, with something before it? "" is no ending.
bool text_ends_in(const char *words, const char *ending);

// Is it a list, "A" or "A,B,C": no item is empty?
bool text_is_list(const char *words);

// "NVIDIA RTX 9000" is "nvidia-rtx-9000": letters and digits in small letters, one hyphen for what is between. Cut where `size` is
// small, always terminated.
void text_slug(const char *from, char *to, size_t size);

// Optimal string alignment distance (insert, delete, replace, swap neighbours), at most `limit + 1`.
unsigned text_distance(const char *a, const char *b, unsigned limit);
// The nearest of `words` within max(1, strlen(word)/3); NULL when none is near.
const char *text_nearest(const char *word, const char *const *words, size_t count);

// Strict numbers: the whole text must be one, without leading or trailing blanks.
bool text_to_int(const char *t, int64_t *out);
bool text_to_real(const char *t, double *out);

#endif
