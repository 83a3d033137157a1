// SPDX-License-Identifier: Apache-2.0
// Names of implementations: a table of fixed size, never emptied, so that programs and answers only point at them.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "program/target.h"

enum { NAMES_CAPACITY = 8192, NAMES_MAX = NAMES_CAPACITY / 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char names[NAMES_CAPACITY][TARGET_IMPL_MAX]; // open addressing; "": empty
static uint32_t name_count;

static const char *find_or_add(const char *words)
{
    uint64_t at = hash64(words, strlen(words), 0) % NAMES_CAPACITY;
    while (names[at][0] != '\0' && strcmp(names[at], words) != 0) {
        at = (at + 1) % NAMES_CAPACITY;
    }
    if (names[at][0] == '\0') {
        if (name_count == NAMES_MAX) {
            return "one of too many";
        }
        name_count++;
        memcpy(names[at], words, strlen(words) + 1);
    }
    return names[at];
}

const char *target_impl_name(const char *library, const char *name)
{
    char words[TARGET_IMPL_MAX];
    const bool both = library[0] != '\0' && name[0] != '\0';
    (void)snprintf(words, sizeof words, "%s%s%s", library, both ? " " : "", name);
    pthread_mutex_lock(&lock);
    const char *kept = find_or_add(words);
    pthread_mutex_unlock(&lock);
    return kept;
}
