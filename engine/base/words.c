// SPDX-License-Identifier: Apache-2.0
#include "headroom/words.h"

#include <string.h>

#include "base/text.h"

const char *hr_word_nearest(const char *word, const char *const *words, size_t count)
{
    return text_nearest(word, words, count);
}

size_t hr_control_bytes(const char *at, const char *kept)
{
    const unsigned char c = (unsigned char)at[0];
    if (c == 0xC2 && (unsigned char)at[1] >= 0x80 && (unsigned char)at[1] < 0xA0) { // U+0080 to U+009F
        return 2;
    }
    return c != '\0' && (c < ' ' || c == 0x7F) && strchr(kept, c) == NULL;
}

char *hr_plain_text(char *words, const char *kept)
{
    for (char *c = words; *c != '\0'; c++) {
        for (size_t bytes = hr_control_bytes(c, kept); bytes > 0; bytes--) {
            c[bytes - 1] = '?';
        }
    }
    return words;
}
