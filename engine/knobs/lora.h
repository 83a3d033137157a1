// SPDX-License-Identifier: Apache-2.0
// What compress.lora and its companions say.
#ifndef KNOBS_LORA_H
#define KNOBS_LORA_H

#include <stdbool.h>

#include "headroom/knobs.h"

typedef enum lora_targets {
    LORA_AUTO, // LORA_QV where the model has attention, LORA_DENSE where it has dense layers, LORA_CONV otherwise
    LORA_QV,  // queries and values of attention
    LORA_QKV, // keys too: GPT-2's c_attn, apart
    LORA_ATTENTION,
    LORA_DENSE,
    LORA_CONV,
    LORA_ALL,
    LORA_LIST
} lora_targets;

// In the order of held_as (ops/held.h).
typedef enum lora_base {
    LORA_BASE_NONE,
    LORA_BASE_INT8,
    LORA_BASE_INT4,
    LORA_BASE_NF4,
    LORA_BASE_COUNT
} lora_base;

typedef struct lora_choice {
    int64_t rank; // 0: none
    double scale; // alpha over the rank
    lora_targets targets;
    lora_base base;   // what the weights beside adapters are held as
    const char *list; // of LORA_LIST: names with commas between, in the knobs
} lora_choice;

// False when compress.lora_targets is none of the words.
bool lora_of(const hr_knobs *knobs, lora_choice *out);

#endif
