// SPDX-License-Identifier: Apache-2.0
// "Did you mean …?"
#ifndef HEADROOM_WORDS_H
#define HEADROOM_WORDS_H

#include <stddef.h>

// The nearest of `words` within max(1, strlen(word) / 3) typing errors; NULL when none is near. Borrowed from words.
const char *hr_word_nearest(const char *word, const char *const *words, size_t count);

#endif
