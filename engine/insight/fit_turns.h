// SPDX-License-Identifier: Apache-2.0
// What Fit turns: one dimension per knob that trades memory for time, its words, and how a combination of them becomes
// knobs. A choice that enters the knob table enters here; constraints say which combinations are legal.
//
// The knobs are named in headroom/fit.h. Without a permission weights come out the same, up to the order of sums (a
// smaller workspace may choose another kernel); with one also precision, and the optimizers of insight/fit_change.h, are turned.
#ifndef INSIGHT_FIT_TURNS_H
#define INSIGHT_FIT_TURNS_H

#include "headroom/fit.h"

enum { FIT_DIMENSIONS = 16, FIT_WORDS_MAX = 12, FIT_AS_ASKED = -1, FIT_BUDGET = FIT_WORDS_MAX };

// Which word each dimension is turned to; FIT_AS_ASKED: it stays as it is asked about.
typedef struct fit_combination {
    int8_t word[FIT_DIMENSIONS];
} fit_combination;

fit_combination fit_as_asked(void);

// The number of words that a dimension has for these knobs; 0: it stays as it is.
int fit_words(const hr_knobs *asked, const hr_fit_wish *wish, int dimension);
// Whether turning it changes what is learned. The batch's does where batch normalisation sees what is in it.
bool fit_is_learning(int dimension, bool normalises_batches);

// Whether another dimension matters only where this one is on: how it is done.
bool fit_has_manner(int dimension);

// The knobs of a combination, and the pairs in which they differ from `asked`, one space between two. False: one of its words
// is what stands there already, the pairs have no room, or it is refused.
bool fit_turn(const hr_knobs *asked, const fit_combination *c, hr_knobs *knobs, char *pairs, size_t size);

// Whether recomputation under a budget may take the place of the checkpoints that are asked about.
bool fit_can_budget(const hr_knobs *asked, const hr_fit_wish *wish);
// A combination with recomputation under a budget in its checkpoints' place: FIT_BUDGET, which is none of fit_words.
fit_combination fit_under_budget(const fit_combination *c);
bool fit_has_checkpoints(const fit_combination *c); // turned to others than as asked
// fit_turn of what fit_under_budget gave.
bool fit_turn_to_budget(const hr_knobs *asked, const fit_combination *c, uint64_t budget_bytes,
                        hr_knobs *knobs, char *pairs, size_t size);

#endif
