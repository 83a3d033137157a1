// SPDX-License-Identifier: Apache-2.0
// card.h's functions for tests, which do not link the emulated card: on a real one there are none.
#ifndef TESTS_CARD_REACH_H
#define TESTS_CARD_REACH_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "card.h"

#define CARD_MAP(X)                                                                                          \
    X(card_enqueue)                                                                                          \
    X(card_holds)                                                                                            \
    X(card_reset)                                                                                            \
    X(card_count)                                                                                            \
    X(card_calls)                                                                                            \
    X(card_launches)                                                                                         \
    X(card_fail)                                                                                             \
    X(card_lose_at)                                                                                          \
    X(card_others)                                                                                           \
    X(card_memory_now)

typedef struct card_reach {
#define X(name) __typeof__(name) *name;
    CARD_MAP(X)
#undef X
} card_reach;

// False where libcuda.so.1 is not the emulated card, or is not there.
static inline bool card_is_emulated(card_reach *out)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    bool found = library != NULL;
#define X(name)                                                                                              \
    if (found) {                                                                                             \
        void *symbol = dlsym(library, #name);                                                                \
        found = symbol != NULL;                                                                              \
        *(void **)(void *)&out->name = symbol;                                                               \
    }
    CARD_MAP(X)
#undef X
    return found;
}

#endif
