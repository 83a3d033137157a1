// SPDX-License-Identifier: Apache-2.0
// A growing array of plain values: `struct { T *data; uint32_t count, capacity; }` declared with VEC(T).
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VEC(T)                                                                                               \
    struct {                                                                                                 \
        T *data;                                                                                             \
        uint32_t count, capacity;                                                                            \
    }

// Appends one zeroed element and yields its address, or NULL when memory is short (the array is unchanged).
#define vec_push(v)                                                                                          \
    (vec_reserve_((void **)&(v)->data, &(v)->capacity, (v)->count + 1u, sizeof *(v)->data)                   \
         ? (vec_zero_(&(v)->data[(v)->count], sizeof *(v)->data), &(v)->data[(v)->count++])                  \
         : NULL)
// Room for `more` further elements, so that pushing them cannot fail; false when memory is short.
#define vec_reserve(v, more)                                                                                 \
    vec_reserve_((void **)&(v)->data, &(v)->capacity, (v)->count + (more), sizeof *(v)->data)
#define vec_deinit(v)                                                                                        \
    do {                                                                                                     \
        vec_free_((v)->data);                                                                                \
        (v)->data = NULL;                                                                                    \
        (v)->count = (v)->capacity = 0;                                                                      \
    } while (0)

bool vec_reserve_(void **data, uint32_t *capacity, uint32_t count, size_t size);
void vec_zero_(void *element, size_t size);
void vec_free_(void *data);

#endif
