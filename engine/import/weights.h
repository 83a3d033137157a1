// SPDX-License-Identifier: Apache-2.0
// What the weights beside a config.json say of how many parameters there are: `model.safetensors.index.json`, or the header
// of `model.safetensors`. The weights themselves are never read.
#ifndef IMPORT_WEIGHTS_H
#define IMPORT_WEIGHTS_H

#include "config.h"
#include "model_text.h"

// A note where they count other parameters than the layers have, or cannot be read. Without such a file nothing. NOMEM.
HR_MUST_CHECK hr_status weights_compare(const config *c, model_text *t);

#endif
