// SPDX-License-Identifier: Apache-2.0
// The memo of target answers: an open-addressing table keyed by a 128-bit hash of target, query and limit.
#include "program/target.h"

#include <pthread.h>

#include "base/hash.h"
#include "base/host_mem.h"

typedef struct memo_entry {
    uint64_t key[2]; // both 0: empty
    target_answer answer;
} memo_entry;

enum { MEMO_FIRST_CAPACITY = 1024 };

static pthread_mutex_t memo_lock = PTHREAD_MUTEX_INITIALIZER;
static memo_entry *memo;
static uint64_t memo_capacity, memo_count;

static memo_entry *memo_place(memo_entry *table, uint64_t capacity, const uint64_t key[2])
{
    uint64_t at = key[0] & (capacity - 1);
    while ((table[at].key[0] != 0 || table[at].key[1] != 0) &&
           (table[at].key[0] != key[0] || table[at].key[1] != key[1])) {
        at = (at + 1) & (capacity - 1);
    }
    return &table[at];
}

static bool memo_grow(void)
{
    uint64_t capacity = memo_capacity == 0 ? MEMO_FIRST_CAPACITY : memo_capacity * 2;
    memo_entry *table = hr_calloc(capacity, sizeof *table);
    if (table == NULL) {
        return false;
    }
    for (uint64_t k = 0; k < memo_capacity; k++) {
        if (memo[k].key[0] != 0 || memo[k].key[1] != 0) {
            *memo_place(table, capacity, memo[k].key) = memo[k];
        }
    }
    hr_free(memo);
    memo = table;
    memo_capacity = capacity;
    return true;
}

static bool memo_find(const uint64_t key[2], target_answer *out)
{
    pthread_mutex_lock(&memo_lock);
    const memo_entry *e = memo_capacity == 0 ? NULL : memo_place(memo, memo_capacity, key);
    bool found = e != NULL && (e->key[0] != 0 || e->key[1] != 0);
    if (found) {
        *out = e->answer;
    }
    pthread_mutex_unlock(&memo_lock);
    return found;
}

// A full table only costs time: the answer is asked again.
static void memo_remember(const uint64_t key[2], const target_answer *answer)
{
    pthread_mutex_lock(&memo_lock);
    if (memo_count * 2 < memo_capacity || memo_grow()) {
        memo_entry *e = memo_place(memo, memo_capacity, key);
        memo_count += e->key[0] == 0 && e->key[1] == 0;
        *e = (memo_entry){.key = {key[0], key[1]}, .answer = *answer};
    }
    pthread_mutex_unlock(&memo_lock);
}

hr_status target_ask(const hr_target *target, const op_query *q, uint64_t workspace_limit, target_answer *out,
                     hr_err *err)
{
    uint64_t key[2];
    key[0] = hash64_mix(hash64(q, sizeof *q, target->key), workspace_limit);
    key[1] = hash64_mix(hash64(q, sizeof *q, ~target->key), workspace_limit) | 1;
    if (memo_find(key, out)) {
        return HR_OK;
    }
    *out = (target_answer){0};
    HR_TRY(target->ask(target->context, q, workspace_limit, out, err));
    memo_remember(key, out);
    return HR_OK;
}

void target_forget(void)
{
    pthread_mutex_lock(&memo_lock);
    hr_free(memo);
    memo = NULL;
    memo_capacity = memo_count = 0;
    pthread_mutex_unlock(&memo_lock);
}
