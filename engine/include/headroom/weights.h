// SPDX-License-Identifier: Apache-2.0
// What the header of a file of weights says: GGUF and safetensors. The weights are never read.
#ifndef HEADROOM_WEIGHTS_H
#define HEADROOM_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

enum { HR_WEIGHTS_TYPES = 64 };

typedef struct hr_weights_type {
    const char *name; // "BF16", "Q4_K"; static
    uint64_t tensors, elements, bytes;
} hr_weights_type;

typedef struct hr_weights {
    const char *format;    // "GGUF", "safetensors"; static
    char architecture[64]; // as a GGUF file says it; "": it says none
    bool
        names_network; // hr_preset_open reads it: a family of GGUF that is read, or a config.json lies beside it
    uint64_t tensors, parameters, bytes, files; // files: of how many it is one
    // Of the data, with what lies between them, and how many bytes the file has of that: fewer where it is cut, none of a header alone.
    uint64_t data_bytes, held_bytes;
    hr_weights_type types[HR_WEIGHTS_TYPES]; // in the order of their first coming
    uint32_t type_count;
} hr_weights;

// parameters: elements that an optimizer trains, which slots and state of a save of headroom are not. READ error when the file cannot be read; PRESET, one sentence, where it is no such
// file, has a header that is cut, or contradicts itself; NOMEM. Any thread.
HR_MUST_CHECK hr_status hr_weights_read(const char *path, hr_weights *out, hr_err *err);

#endif
