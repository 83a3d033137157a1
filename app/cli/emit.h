// SPDX-License-Identifier: Apache-2.0
// JSON, written as it is said: the code that prints a document has its shape. Nothing is held, so nothing can run
// out; integers are written as integers up to 2^64 − 1, and every number that is unknown as null.
#ifndef APP_CLI_EMIT_H
#define APP_CLI_EMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { EMIT_EXACT = 17, EMIT_LOSS = 9 }; // significant digits

// Zero-initialised but for `out`.
typedef struct emitter {
    FILE *out;
    unsigned depth, flat; // flat: depth below which everything stands on one line; 0: nowhere
    bool filled;          // the innermost container has a member already
} emitter;

// `key` is NULL for the document itself and inside arrays.
void emit_object(emitter *e, const char *key);
void emit_array(emitter *e, const char *key);
void emit_row(emitter *e, const char *key); // an object on one line
void emit_end_object(emitter *e);
void emit_end_array(emitter *e);

void emit_pairs(emitter *e, const char *key, const char *pairs);            // "a.b=1 c.d=2", as a list
void emit_text(emitter *e, const char *key, const char *value);             // NULL: null
void emit_count(emitter *e, const char *key, uint64_t value);               // HR_NONE: null
void emit_real(emitter *e, const char *key, double value, unsigned digits); // not finite: null
void emit_bool(emitter *e, const char *key, bool value);
void emit_null(emitter *e, const char *key);

#endif
