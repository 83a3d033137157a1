// SPDX-License-Identifier: Apache-2.0
// A preset's model: how it is written, word for word, and what comes of it, layer by layer. Any thread.
#ifndef HEADROOM_MODEL_H
#define HEADROOM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/knobs.h"
#include "headroom/preset.h"
#include "headroom/report.h"
#include "headroom/status.h"

typedef enum hr_written_kind { HR_WRITTEN_WORD, HR_WRITTEN_LIST, HR_WRITTEN_MAPPING } hr_written_kind;

// A piece of the mapping behind `model:`, or of `widths:`. Borrowed from the preset until it is closed.
typedef struct hr_written {
    hr_written_kind kind;
    bool quoted;      // a word that was quoted: never a number
    const char *key;  // in a mapping; NULL elsewhere
    const char *text; // of a word; NULL elsewhere
    const void *node;
} hr_written;

// The model's mapping, after `model: NAME`, `like:` and `extends:` were followed; its `sizes` are knobs (model.*), which may have
// been turned since. False: the preset is a trace, which has no model.
bool hr_preset_written(const hr_preset *preset, hr_written *out);
// Section k of the widths that narrow its layers, from the base to the derived: a later one counts. False behind the last.
bool hr_preset_written_widths(const hr_preset *preset, uint32_t k, hr_written *out);
bool hr_written_first(const hr_written *of, hr_written *out); // the first piece within it
bool hr_written_next(hr_written *piece);                      // what follows it beside it

typedef struct hr_model_layer {
    char name[HR_NAME_MAX], kind[HR_NAME_MAX];
    char output_shape[HR_SHAPE_TEXT_MAX]; // of what it gives for one sample
    uint64_t parameters;                  // its own, not those it shares
    uint64_t parameter_bytes;             // in float32
    uint64_t output_bytes;                // of one sample, as the model has it: float32, ids int32
} hr_model_layer;

typedef struct hr_model_layers {
    hr_model_layer *layers; // repeats written out, without a teacher's
    size_t count;
} hr_model_layers;

// Under the sizes and whatever else of `knobs` makes the model another one. The errors of hr_preset_check_model.
HR_MUST_CHECK hr_status hr_model_list_layers(const hr_preset *preset, const hr_knobs *knobs,
                                             hr_model_layers *out, hr_err *err);
void hr_model_layers_deinit(hr_model_layers *layers);

#endif
