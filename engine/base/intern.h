// SPDX-License-Identifier: Apache-2.0
// Texts by number: equal texts have equal numbers, numbered 0, 1, 2 … in the order of their first coming.
#ifndef BASE_INTERN_H
#define BASE_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define INTERN_NONE UINT32_MAX

// Starts zeroed.
typedef struct intern {
    VEC(char) bytes; // each text with its NUL
    VEC(uint32_t) starts;
    uint32_t *buckets; // 1 + number; 0: empty. Open addressing, at most half full
    uint32_t bucket_count;
} intern;

void intern_deinit(intern *n);
// The text's number; INTERN_NONE when host memory is short or the texts would exceed 4 GiB. A NUL in `bytes` ends it.
uint32_t intern_add(intern *n, const char *bytes, size_t count);
// The same without adding: INTERN_NONE when it is not there.
uint32_t intern_find(const intern *n, const char *bytes, size_t count);
const char *intern_text(const intern *n, uint32_t number); // NULL when there is no such number
uint32_t intern_count(const intern *n);

#endif
