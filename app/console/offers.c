// SPDX-License-Identifier: Apache-2.0
#include "app/console/offers.h"

#include <string.h>

enum { SHOWN_MAX = 100, BETWEEN = 2, INDENT = 4 };

static unsigned width_of(const char *text, size_t bytes)
{
    unsigned width = 0;
    for (size_t k = 0; k < bytes; k++) {
        width += ((unsigned char)text[k] & 0xC0U) != 0x80U;
    }
    return width;
}

static void print_wrapped(const char *text, unsigned columns, FILE *to)
{
    unsigned used = 0;
    while (*text != '\0') {
        const size_t bytes = strcspn(text, " ");
        const unsigned width = width_of(text, bytes);
        if (used > 0 && used + 1 + width > columns) {
            fprintf(to, "\n%*s", INDENT, "");
            used = INDENT;
        } else if (used > 0) {
            fputc(' ', to);
            used++;
        }
        fwrite(text, 1, bytes, to);
        used += width;
        text += bytes + (text[bytes] == ' ');
    }
    fputc('\n', to);
}

// Down the columns, as ls has them.
static void print_columns(const script_completion *c, unsigned shown, unsigned columns, FILE *to)
{
    unsigned widest = 1;
    for (unsigned k = 0; k < shown; k++) {
        const char *text = script_candidate(c, k);
        const unsigned width = width_of(text, strlen(text));
        widest = width > widest ? width : widest;
    }
    const unsigned across = columns / (widest + BETWEEN) > 0 ? columns / (widest + BETWEEN) : 1;
    const unsigned lines = (shown + across - 1) / across;
    for (unsigned line = 0; line < lines; line++) {
        for (unsigned k = line; k < shown; k += lines) {
            const char *text = script_candidate(c, k);
            const bool last = k + lines >= shown;
            fprintf(to, "%s%*s", text, last ? 0 : (int)(widest + BETWEEN - width_of(text, strlen(text))), "");
        }
        fputc('\n', to);
    }
}

void offers_print(const script_completion *c, unsigned columns, FILE *to)
{
    const unsigned shown = c->count < SHOWN_MAX ? c->count : SHOWN_MAX;
    if (c->hint[0] != '\0') {
        print_wrapped(c->hint, columns, to);
    }
    if (c->count > 0) {
        print_columns(c, shown, columns, to);
    }
    if (c->more || c->count > shown) {
        fputs("… and more\n", to);
    }
}
