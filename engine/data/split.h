// SPDX-License-Identifier: Apache-2.0
// Which samples of a data set without held-out files are held out: one of every ten that follow each other, at a place
// that a fixed hash of the ten's number draws, and one of those that are left over. Nothing is kept for it, the two
// sets share no sample, and the order of each is the files'.
#ifndef DATA_SPLIT_H
#define DATA_SPLIT_H

#include <stdint.h>

#include "data/source.h"

enum { SPLIT_OF = 10 };

// Of `samples` ≥ 2 samples, how many are in the set.
uint64_t split_count(uint64_t samples, data_set set);
// The number, among all of them, of sample `index` of the set.
uint64_t split_number(uint64_t samples, data_set set, uint64_t index);
// How many training samples there are among the first `number` of all.
uint64_t split_train_before(uint64_t samples, uint64_t number);

#endif
