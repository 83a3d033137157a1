// SPDX-License-Identifier: Apache-2.0
#include "headroom/json.h"

#include <string.h>

#include "base/utf8.h"

static size_t put_escape(char form[HR_JSON_CHAR_MAX], unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    memcpy(form, "\\u00", 4);
    form[4] = digits[c >> 4];
    form[5] = digits[c & 0xf];
    return 6;
}

size_t hr_json_char(const char **text, const char *end, char form[HR_JSON_CHAR_MAX])
{
    const size_t bytes = utf8_bytes(*text, (size_t)(end - *text));
    const char *at = *text;
    const unsigned char c = (unsigned char)*at;
    *text += bytes == 0 ? 1 : bytes;
    if (bytes == 0) {
        memcpy(form, "\\ufffd", 6);
        return 6;
    }
    if (c == '"' || c == '\\' || c == '\n') {
        form[0] = '\\';
        form[1] = c == '\n' ? 'n' : (char)c;
        return 2;
    }
    if (c < ' ' || c == 0x7f) {
        return put_escape(form, c);
    }
    memcpy(form, at, bytes);
    return bytes;
}

void hr_json_put(FILE *out, const char *text, size_t bytes)
{
    char form[HR_JSON_CHAR_MAX];
    const char *end = text + bytes;
    fputc('"', out);
    while (text < end) {
        const size_t count = hr_json_char(&text, end, form);
        fwrite(form, 1, count, out);
    }
    fputc('"', out);
}
