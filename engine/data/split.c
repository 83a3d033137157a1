// SPDX-License-Identifier: Apache-2.0
#include "data/split.h"

#include "base/philox.h"

enum { SPLIT_SEED = 12 }; // of every data set; train.seed does not move samples between the sets

// Place of the one that is held out among samples ten × SPLIT_OF …
static uint64_t held_out_place(uint64_t samples, uint64_t ten)
{
    const uint64_t left = samples - ten * SPLIT_OF;
    uint32_t words[4];
    philox(philox_key_of(SPLIT_SEED, "split"), ten, 0, words);
    return philox_below(words[0], words[1], left < SPLIT_OF ? left : SPLIT_OF);
}

uint64_t split_count(uint64_t samples, data_set set)
{
    const uint64_t held_out = samples / SPLIT_OF + (samples % SPLIT_OF > 0);
    return set == DATA_EVAL ? held_out : samples - held_out;
}

uint64_t split_number(uint64_t samples, data_set set, uint64_t index)
{
    if (set == DATA_EVAL) {
        return index * SPLIT_OF + held_out_place(samples, index);
    }
    const uint64_t ten = index / (SPLIT_OF - 1), place = index % (SPLIT_OF - 1);
    return ten * SPLIT_OF + place + (place >= held_out_place(samples, ten));
}

uint64_t split_train_before(uint64_t samples, uint64_t number)
{
    const uint64_t ten = number / SPLIT_OF, place = number % SPLIT_OF;
    return ten * (SPLIT_OF - 1) + place - (place > 0 && held_out_place(samples, ten) < place);
}
