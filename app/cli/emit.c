// SPDX-License-Identifier: Apache-2.0
#include "app/cli/emit.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "headroom/report.h"

enum { UTF8_TAIL_BITS = 6 };

static void new_line(const emitter *e)
{
    if (e->flat == 0 || e->depth < e->flat) {
        fprintf(e->out, "\n%*s", (int)(2 * e->depth), "");
    }
}

// Length of the UTF-8 sequence at `s`; 0 when there is none (overlong forms and surrogates are none).
static unsigned utf8_length(const unsigned char *s)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned length = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    uint32_t code = length < 2 ? s[0] : s[0] & (0x7FU >> length);
    for (unsigned k = 1; k < length; k++) {
        if (s[k] >> UTF8_TAIL_BITS != 2) {
            return 0;
        }
        code = code << UTF8_TAIL_BITS | (s[k] & 0x3FU);
    }
    bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    return length == 0 || code < least[length] || code > 0x10FFFF || surrogate ? 0 : length;
}

static void put_text(const emitter *e, const char *text)
{
    fputc('"', e->out);
    for (const unsigned char *s = (const unsigned char *)text; *s != '\0';) {
        unsigned length = utf8_length(s);
        if (*s == '"' || *s == '\\') {
            fprintf(e->out, "\\%c", *s);
        } else if (*s == '\n') {
            fputs("\\n", e->out);
        } else if (*s < ' ' || *s == 0x7F) {
            fprintf(e->out, "\\u%04x", *s);
        } else if (length == 0) {
            fputc('?', e->out);
        } else {
            fwrite(s, 1, length, e->out);
        }
        s += length == 0 ? 1 : length;
    }
    fputc('"', e->out);
}

// Everything that stands before a value: comma, line, key.
static void begin_value(emitter *e, const char *key)
{
    if (e->depth > 0) {
        bool flat = e->flat != 0 && e->depth >= e->flat;
        fputs(e->filled ? flat ? ", " : "," : "", e->out);
        new_line(e);
    }
    e->filled = true;
    if (key != NULL) {
        put_text(e, key);
        fputs(": ", e->out);
    }
}

static void open_container(emitter *e, const char *key, char bracket)
{
    begin_value(e, key);
    fputc(bracket, e->out);
    e->depth++;
    e->filled = false;
}

static void close_container(emitter *e, char bracket)
{
    bool was_flat = e->flat != 0 && e->depth >= e->flat;
    e->depth--;
    if (e->filled && !was_flat) {
        fprintf(e->out, "\n%*s", (int)(2 * e->depth), "");
    }
    fputc(bracket, e->out);
    if (e->depth + 1 == e->flat) {
        e->flat = 0;
    }
    e->filled = true;
    if (e->depth == 0) {
        fputc('\n', e->out);
    }
}

void emit_object(emitter *e, const char *key)
{
    open_container(e, key, '{');
}

void emit_array(emitter *e, const char *key)
{
    open_container(e, key, '[');
}

void emit_row(emitter *e, const char *key)
{
    open_container(e, key, '{');
    e->flat = e->flat == 0 ? e->depth : e->flat;
}

void emit_end_object(emitter *e)
{
    close_container(e, '}');
}

void emit_end_array(emitter *e)
{
    close_container(e, ']');
}

void emit_text(emitter *e, const char *key, const char *value)
{
    if (value == NULL) {
        emit_null(e, key);
        return;
    }
    begin_value(e, key);
    put_text(e, value);
}

void emit_count(emitter *e, const char *key, uint64_t value)
{
    if (value == HR_NONE) {
        emit_null(e, key);
        return;
    }
    begin_value(e, key);
    fprintf(e->out, "%" PRIu64, value);
}

// The shortest form of at most `digits` digits that reads back as the same number.
void emit_real(emitter *e, const char *key, double value, unsigned digits)
{
    char text[40];
    if (!isfinite(value)) {
        emit_null(e, key);
        return;
    }
    unsigned least = digits < 15 ? digits : 15;
    do {
        (void)snprintf(text, sizeof text, "%.*g", (int)least, value);
    } while (strtod(text, NULL) != value && least++ < digits);
    begin_value(e, key);
    fputs(text, e->out);
}

void emit_bool(emitter *e, const char *key, bool value)
{
    begin_value(e, key);
    fputs(value ? "true" : "false", e->out);
}

void emit_null(emitter *e, const char *key)
{
    begin_value(e, key);
    fputs("null", e->out);
}
