// SPDX-License-Identifier: Apache-2.0
#include "app/cli/emit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/json.h"
#include "headroom/knobs.h"
#include "headroom/report.h"

static void new_line(const emitter *e)
{
    if (e->flat == 0 || e->depth < e->flat) {
        fprintf(e->out, "\n%*s", (int)(2 * e->depth), "");
    }
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
        hr_json_put(e->out, key, strlen(key));
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
    hr_json_put(e->out, value, strlen(value));
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

void emit_pairs(emitter *e, const char *key, const char *pairs)
{
    emit_array(e, key);
    while (*pairs != '\0') {
        char pair[2 * HR_KNOB_TEXT_MAX];
        const size_t length = strcspn(pairs, " ");
        (void)snprintf(pair, sizeof pair, "%.*s", (int)length, pairs);
        emit_text(e, NULL, pair);
        pairs += length + (pairs[length] == ' ');
    }
    emit_end_array(e);
}
