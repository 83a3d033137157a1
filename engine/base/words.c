// SPDX-License-Identifier: Apache-2.0
#include "headroom/words.h"

#include "base/text.h"

const char *hr_word_nearest(const char *word, const char *const *words, size_t count)
{
    return text_nearest(word, words, count);
}
