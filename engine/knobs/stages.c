// SPDX-License-Identifier: Apache-2.0
#include "knobs/stages.h"

#include <string.h>

typedef enum stage_word {
    SLICES,
    INTERLEAVE,
    CACHE,
    REPEAT,
    SHUFFLE,
    MAP,
    BATCH,
    PREFETCH,
    STAGE_WORDS
} stage_word;

static const char *const words[STAGE_WORDS] = {
    [SLICES] = "slices", [INTERLEAVE] = "interleave", [CACHE] = "cache",
    [REPEAT] = "repeat", [SHUFFLE] = "shuffle",       [MAP] = "map",
    [BATCH] = "batch",   [PREFETCH] = "prefetch",
};

static stage_word word_of(const char *text, size_t length)
{
    stage_word word = SLICES;
    while (word < STAGE_WORDS && (strlen(words[word]) != length || memcmp(words[word], text, length) != 0)) {
        word++;
    }
    return word;
}

// Where each word stands, from 1; 0: nowhere. False for an unknown word, or one that comes twice.
static bool places_of(const char *text, unsigned place[STAGE_WORDS])
{
    memset(place, 0, STAGE_WORDS * sizeof *place);
    for (unsigned at = 1;; at++) {
        text += strspn(text, ", ");
        const size_t length = strcspn(text, ", ");
        if (length == 0) {
            return true;
        }
        const stage_word word = word_of(text, length);
        if (word == STAGE_WORDS || place[word] != 0) {
            return false;
        }
        place[word] = at;
        text += length;
    }
}

bool stage_order_of(const hr_knobs *knobs, stage_order *out)
{
    unsigned at[STAGE_WORDS];
    if (!places_of(hr_knob_text(knobs, HR_KNOB_PIPELINE_STAGES), at)) {
        return false;
    }
    const bool batches_repeat = at[REPEAT] > 0 && at[REPEAT] < at[BATCH];
    *out = (stage_order){.slices = at[SLICES] > 0,
                         .interleave = at[INTERLEAVE] > 0,
                         .cache = at[CACHE] > 0,
                         .shuffle = at[SHUFFLE] > 0,
                         .prefetch = at[PREFETCH] > 0,
                         .cache_before_map = at[CACHE] < at[MAP],
                         .shuffle_before_map = at[SHUFFLE] < at[MAP],
                         .cache_before_shuffle = at[CACHE] < at[SHUFFLE],
                         .batches_repeat = batches_repeat,
                         .shuffle_repeats = batches_repeat && at[REPEAT] < at[SHUFFLE]};
    return at[MAP] > 0 && at[MAP] < at[BATCH] && at[CACHE] < at[BATCH] && at[SHUFFLE] < at[BATCH] &&
           at[SLICES] <= 1 && at[INTERLEAVE] <= 1 && (at[PREFETCH] == 0 || at[PREFETCH] > at[BATCH]) &&
           (at[REPEAT] == 0 || at[REPEAT] > at[CACHE]);
}

bool stages_fill_batches(const hr_knobs *knobs)
{
    stage_order order;
    return stage_order_of(knobs, &order) && order.batches_repeat;
}
