// SPDX-License-Identifier: Apache-2.0
// pipeline.bad=skip: a sample that cannot be read or decoded is replaced by the next one of its set that can, in file
// order, and behind the last by the first. Which one that is depends on the files alone, whoever asks and when.
// Thread-safe.
#ifndef DATA_BAD_H
#define DATA_BAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "headroom/status.h"

typedef struct data_bad {
    atomic_uint_fast64_t replaced; // samples, each time they were asked for
    pthread_mutex_t lock;
    hr_err first; // what was wrong with the one that was met first; all zero:
                  // none was
} data_bad;

void data_bad_init(data_bad *b);
void data_bad_deinit(data_bad *b);
// Keeps the sentence of the first.
void data_bad_note(data_bad *b, const hr_err *why);

#endif
