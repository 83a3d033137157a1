// SPDX-License-Identifier: Apache-2.0
// The layers of a preset while they are written, with the parameters that they come to. A memory failure is kept by the
// texts (text.failed).
#ifndef IMPORT_MODEL_TEXT_H
#define IMPORT_MODEL_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

// What the layer language takes (engine/model): the largest count, and elements of one tensor; blocks are model.depth.
enum { MODEL_TEXT_COUNT = 16777216, MODEL_TEXT_HEADS = 65535, MODEL_TEXT_ROUNDS = 256 };
enum { MODEL_TEXT_EXPERTS = 1024, MODEL_TEXT_CHOICES = 16 };
#define MODEL_TEXT_ELEMENTS (INT64_C(1) << 40)

typedef struct model_text {
    text head;           // `input:` to `defaults:`
    text layers;         // what stands below `layers:`
    text notes;          // what was left out, in whole sentences
    uint64_t parameters; // of the layers so far
    int64_t rounds;      // of the repeat in progress; 0: none
    int64_t large[2];    // the first tensor that is beyond the largest, rows and columns; 0: none
} model_text;

void model_text_deinit(model_text *t);
bool model_text_failed(const model_text *t);

// A line of `head`, indented; and one of `layers`: "name: norm, kind: rms_norm".
void model_line(model_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void model_layer(model_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
// The layers until the end stand `rounds` times, each with {i}: the size $depth, which a line `sizes:` of `head` has.
void model_repeat(model_text *t, int64_t rounds);
// The same of a number that is no size.
void model_rounds(model_text *t, int64_t rounds);
void model_repeat_end(model_text *t);
// Counts weights [rows, columns], and a bias of `columns`, of the layer that was written last.
void model_weights(model_text *t, int64_t rows, int64_t columns, bool bias);
// Keeps a tensor that is beyond the largest, for a refusal.
void model_fits(model_text *t, int64_t rows, int64_t columns);
// One sentence: ends with its full stop.
void model_note(model_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
// 1235814400 as "1,235,814,400".
void model_number(uint64_t number, char out[32]);
// The letters, digits, '_', '-' and '.' of the name, which is what a model's name has.
enum { MODEL_NAME = 64 };
void model_name(const char *name, char out[MODEL_NAME + 1]);

#endif
