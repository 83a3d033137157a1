// SPDX-License-Identifier: Apache-2.0
#include "model_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE_MAX_BYTES = 512 };

void model_text_deinit(model_text *t)
{
    text_deinit(&t->head);
    text_deinit(&t->layers);
    text_deinit(&t->notes);
}

bool model_text_failed(const model_text *t)
{
    return t->head.failed || t->layers.failed || t->notes.failed;
}

void model_line(model_text *t, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    text_append(&t->head, "  %s\n", line);
}

void model_layer(model_text *t, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    text_append(&t->layers, "%s    - {%s}\n", t->rounds > 0 ? "    " : "", line);
}

void model_repeat(model_text *t, int64_t rounds)
{
    text_append(&t->layers, "    - repeat: $depth\n      index: i\n      layers:\n");
    t->rounds = rounds;
}

void model_rounds(model_text *t, int64_t rounds)
{
    text_append(&t->layers, "    - repeat: %lld\n      index: i\n      layers:\n", (long long)rounds);
    t->rounds = rounds;
}

void model_repeat_end(model_text *t)
{
    t->rounds = 0;
}

void model_fits(model_text *t, int64_t rows, int64_t columns)
{
    if (rows > MODEL_TEXT_ELEMENTS / columns && t->large[0] == 0) {
        t->large[0] = rows;
        t->large[1] = columns;
    }
}

void model_weights(model_text *t, int64_t rows, int64_t columns, bool bias)
{
    const uint64_t rounds = t->rounds > 0 ? (uint64_t)t->rounds : 1;
    model_fits(t, rows, columns);
    t->parameters += rounds * ((uint64_t)rows * (uint64_t)columns + (bias ? (uint64_t)columns : 0));
}

void model_note(model_text *t, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (char *c = line; *c != '\0'; c++) { // words of the file may stand in it, cut anywhere
        *c = *c == '"' ? '\'' : *c == '\\' ? '/' : *c < ' ' || *c > '~' ? '?' : *c;
    }
    text_append(&t->notes, "%s%s", t->notes.length > 0 ? " " : "", line);
}

void model_number(uint64_t number, char out[32])
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%" PRIu64, number);
    int used = 0;
    for (int k = 0; k < length; k++) {
        if (k > 0 && (length - k) % 3 == 0) {
            out[used++] = ',';
        }
        out[used++] = digits[k];
    }
    out[used] = '\0';
}

void model_name(const char *name, char out[MODEL_NAME + 1])
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    size_t used = 0;
    name += strspn(name, "-."); // alone they are no text in YAML
    for (; *name != '\0' && used < MODEL_NAME; name++) {
        out[used++] = strchr(allowed, *name) != NULL ? *name : '_';
    }
    out[used] = '\0';
    if (used == 0) {
        (void)text_copy(out, MODEL_NAME + 1, "model");
    }
}
