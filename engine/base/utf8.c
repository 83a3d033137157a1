// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <stdbool.h>

// How characters begin: their first byte, their second, and how many there are.
static const struct {
    unsigned char first, last, second_first, second_last;
    size_t bytes;
} forms[] = {
    {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

size_t utf8_bytes(const char *text, size_t size)
{
    const unsigned char *c = (const unsigned char *)text;
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        const size_t bytes = forms[k].bytes;
        if (*c < forms[k].first || *c > forms[k].last) {
            continue;
        }
        bool fits =
            bytes <= size && (bytes < 2 || (c[1] >= forms[k].second_first && c[1] <= forms[k].second_last));
        for (size_t n = 2; fits && n < bytes; n++) {
            fits = (c[n] & 0xc0) == 0x80;
        }
        return fits ? bytes : 0;
    }
    return 0;
}
