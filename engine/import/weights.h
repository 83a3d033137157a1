// SPDX-License-Identifier: Apache-2.0
// What the weights say of how many parameters there are: those beside a config.json (`model.safetensors.index.json`, or the
// header of `model.safetensors`), or those of the file itself. The weights are never read.
#ifndef IMPORT_WEIGHTS_H
#define IMPORT_WEIGHTS_H

#include "config.h"
#include "model_text.h"
#include "tensors.h"

enum { WEIGHTS_PATH_BYTES = 4096 };

// A note where they count other parameters than the layers have, or cannot be read. `named`: the file of safetensors that was named
// and has been read; NULL: what lies beside the config.json. An index beside a named file counts where it lists that file. Without such
// a file nothing. NOMEM.
HR_MUST_CHECK hr_status weights_compare(const config *c, const tensors *named, model_text *t);
// The same of the tensors that the file has; a note of their types, too.
HR_MUST_CHECK hr_status weights_compare_file(const tensors *w, model_text *t);
// Of how many files it is one, as its name says (model-00001-of-00003.safetensors); 1: whole.
uint64_t weights_shards(const char *path);
// Whether a config.json lies beside the file of weights, and where.
bool weights_config_beside(const char *path, char out[WEIGHTS_PATH_BYTES]);

#endif
