// SPDX-License-Identifier: Apache-2.0
// Filters that are 0, with all that follows them (model/channels.h), taken out of weights and out of the preset: the same answers of a
// narrower model. A kernel keeps at least one filter.
#ifndef TRAIN_SHRINK_H
#define TRAIN_SHRINK_H

#include "headroom/deploy.h"

#include "base/text.h"
#include "model/channels.h"
#include "train/store.h"

typedef struct shrinking {
    const hr_model *model;
    model_channels channels;
    uint64_t *first; // [param_count + 1] of a kernel: where its filters begin in `gone`
    bool *gone;      // of each filter of each kernel
    bool any;
} shrinking;

// Finds what may go of these weights of the model, which is held until shrink_close. NOMEM error; to be closed in any case.
HR_MUST_CHECK hr_status shrink_open(const hr_model *model, const store *weights, shrinking *out, hr_err *err);
void shrink_close(shrinking *s);

// The weights without them, into `to`, which starts empty and is the caller's to deinit, also after a failure.
HR_MUST_CHECK hr_status shrink_weights(const shrinking *s, const store *weights, store *to, hr_err *err);
// The layers that lose filters, in the model's order; owned by the caller.
HR_MUST_CHECK hr_status shrink_layers(const shrinking *s, hr_deploy_layer **out, size_t *count, hr_err *err);

// A preset of the narrower model with these knobs, which are of `preset`: no longer pruned, nor a training that goes on.
// `path` as in hr_knob_export.
typedef struct shrunk_preset {
    const hr_preset *preset;
    const hr_knobs *knobs;
    const hr_deploy_layer *layers;
    size_t layer_count;
    const char *path;
} shrunk_preset;

HR_MUST_CHECK hr_status shrink_preset(const shrunk_preset *p, text *out, hr_err *err);
// Where that stands beside the weights: their path with .yaml for .safetensors. The caller frees with hr_free; NULL: NOMEM.
char *shrink_preset_path(const char *weights);
// Weights that do not fit a model are of the preset that export wrote beside them, where one is: what to try then, as
// "headroom COMMAND PRESET OPTIONWEIGHTS".
void shrink_try_preset(const char *weights, const char *command, const char *option, hr_err *err);
// A file that stands there must have been written so. WRITE error, with nothing to try.
HR_MUST_CHECK hr_status shrink_check_preset(const char *path, hr_err *err);

#endif
