// SPDX-License-Identifier: Apache-2.0
// Text as it stands inside a JSON string (RFC 8259, section 7): quotes, backslashes and control characters are escaped,
// UTF-8 stays, and each byte that belongs to no character becomes U+FFFD. Thread-safe.
#ifndef HEADROOM_JSON_H
#define HEADROOM_JSON_H

#include <stddef.h>
#include <stdio.h>

enum { HR_JSON_CHAR_MAX = 6 }; // "\u001f"

// The first character before `end` of *text, which is not empty, into form; *text goes on behind it. Returns the bytes of
// form.
size_t hr_json_char(const char **text, const char *end, char form[HR_JSON_CHAR_MAX]);
// All of it, between quotes. A failure is the stream's (ferror).
void hr_json_put(FILE *out, const char *text, size_t bytes);

#endif
