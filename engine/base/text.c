// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"

// ---- growing text ---------------------------------------------------------------------------------------------

// Makes room for `count` bytes and the terminator.
static bool text_reserve(text *t, size_t count)
{
    if (t->failed) {
        return false;
    }
    size_t needed;
    if (__builtin_add_overflow(t->length, count, &needed) || needed > SIZE_MAX / 2) {
        t->failed = true;
        return false;
    }
    if (needed < t->capacity) {
        return true;
    }
    size_t capacity = t->capacity < 64 ? 64 : t->capacity;
    while (capacity <= needed) {
        capacity *= 2;
    }
    char *grown = hr_realloc(t->data, capacity, 1);
    if (grown == NULL) {
        t->failed = true;
        return false;
    }
    t->data = grown;
    t->capacity = capacity;
    return true;
}

void text_append(text *t, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        t->failed = true;
    } else if (text_reserve(t, (size_t)length)) {
        vsnprintf(t->data + t->length, (size_t)length + 1, format, again);
        t->length += (size_t)length;
    }
    va_end(again);
}

void text_append_bytes(text *t, const char *bytes, size_t count)
{
    if (!text_reserve(t, count)) {
        return;
    }
    if (count > 0) {
        memcpy(t->data + t->length, bytes, count);
    }
    t->length += count;
    t->data[t->length] = '\0';
}

void text_deinit(text *t)
{
    hr_free(t->data);
    *t = (text){0};
}

char *text_take(text *t)
{
    text_append_bytes(t, "", 0); // so that nothing appended is the empty text
    char *data = t->data;
    if (t->failed) {
        hr_free(data);
        data = NULL;
    }
    *t = (text){0};
    return data;
}

static ssize_t append_written(void *cookie, const char *bytes, size_t count)
{
    text *t = cookie;
    text_append_bytes(t, bytes, count);
    return t->failed ? 0 : (ssize_t)count;
}

FILE *text_stream(text *t)
{
    return fopencookie(t, "w", (cookie_io_functions_t){.write = append_written});
}

bool text_is_list(const char *words)
{
    const size_t length = strlen(words);
    return length > 0 && words[0] != ',' && words[length - 1] != ',' && strstr(words, ",,") == NULL;
}

bool text_ends_in(const char *words, const char *ending)
{
    const size_t length = strlen(words), tail = strlen(ending);
    return tail > 0 && length > tail && strcmp(words + length - tail, ending) == 0;
}

void text_slug(const char *from, char *to, size_t size)
{
    size_t used = 0;
    for (const char *at = from; *at != '\0' && used + 1 < size; at++) {
        const bool plain = isalnum((unsigned char)*at) != 0;
        if (plain || (used > 0 && to[used - 1] != '-')) {
            to[used++] = plain ? (char)tolower((unsigned char)*at) : '-';
        }
    }
    while (used > 0 && to[used - 1] == '-') {
        used--;
    }
    to[used] = '\0';
}

bool text_copy(char *to, size_t size, const char *from)
{
    size_t length = strlen(from);
    size_t kept = length < size ? length : size - 1;
    memmove(to, from, kept);
    to[kept] = '\0';
    return kept == length;
}

// ---- did you mean ---------------------------------------------------------------------------------------------

enum { WORD_MAX = 128 }; // longer words are never near anything

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

// Three rows of the dynamic programme are enough: two for the distance, one more for the swap.
unsigned text_distance(const char *a, const char *b, unsigned limit)
{
    size_t rows = strlen(a), columns = strlen(b);
    size_t gap = rows > columns ? rows - columns : columns - rows;
    if (gap > limit || rows > WORD_MAX || columns > WORD_MAX) {
        return limit + 1;
    }
    unsigned row[3][WORD_MAX + 1];
    for (size_t j = 0; j <= columns; j++) {
        row[0][j] = (unsigned)j;
    }
    for (size_t i = 1; i <= rows; i++) {
        const unsigned *before = row[(i + 1) % 3], *last = row[(i - 1) % 3];
        unsigned *now = row[i % 3];
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= columns; j++) {
            unsigned replace = last[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = smaller(smaller(last[j], now[j - 1]) + 1, replace);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                now[j] = smaller(now[j], before[j - 2] + 1);
            }
        }
    }
    return smaller(row[rows % 3][columns], limit + 1);
}

// The longest of the words that `word` begins with, or the shortest that begins with it.
static const char *nearest_by_beginning(const char *word, const char *const *words, size_t count)
{
    enum { LEAST = 3 };
    const size_t length = strlen(word);
    const char *inner = NULL, *outer = NULL;
    for (size_t i = 0; i < count; i++) {
        const size_t other = strlen(words[i]);
        if (other >= LEAST && other < length && strncmp(word, words[i], other) == 0) {
            inner = inner == NULL || strlen(inner) < other ? words[i] : inner;
        } else if (length >= LEAST && length < other && strncmp(word, words[i], length) == 0) {
            outer = outer == NULL || strlen(outer) > other ? words[i] : outer;
        }
    }
    return inner != NULL ? inner : outer;
}

const char *text_nearest(const char *word, const char *const *words, size_t count)
{
    size_t third = strlen(word) / 3;
    unsigned limit = third > WORD_MAX ? WORD_MAX : third < 1 ? 1 : (unsigned)third;
    const char *nearest = NULL;
    for (size_t i = 0; i < count; i++) {
        unsigned distance = text_distance(word, words[i], limit);
        if (distance <= limit) {
            nearest = words[i];
            if (distance == 0) {
                break;
            }
            limit = distance - 1; // from here on only something nearer
        }
    }
    return nearest != NULL ? nearest : nearest_by_beginning(word, words, count);
}

// ---- numbers --------------------------------------------------------------------------------------------------

static bool starts_number(const char *t)
{
    t += *t == '-' || *t == '+';
    return (*t >= '0' && *t <= '9') || *t == '.';
}

bool text_to_int(const char *t, int64_t *out)
{
    if (!starts_number(t)) {
        return false;
    }
    char *end;
    errno = 0;
    long long value = strtoll(t, &end, 10);
    if (end == t || *end != '\0' || errno != 0) {
        return false;
    }
    *out = value;
    return true;
}

// Decimal only: strtod would also take hexadecimal, "inf" and "nan".
bool text_to_real(const char *t, double *out)
{
    if (!starts_number(t) || strspn(t, "0123456789+-.eE") != strlen(t)) {
        return false;
    }
    char *end;
    errno = 0;
    double value = strtod(t, &end);
    if (end == t || *end != '\0' || !isfinite(value)) {
        return false;
    }
    *out = value;
    return true;
}
