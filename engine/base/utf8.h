// SPDX-License-Identifier: Apache-2.0
// UTF-8 as The Unicode Standard, table 3-7, has it: no overlong forms, no surrogates, nothing above U+10FFFF.
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" // U+FFFD

// Bytes, 1 to 4, of the character that text[0 .. size) begins with; 0 where it begins with none. size > 0.
size_t utf8_bytes(const char *text, size_t size);

#endif
