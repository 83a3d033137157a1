// SPDX-License-Identifier: Apache-2.0
#include "knobs/lora.h"

#include <string.h>

#include "base/text.h"

static const char *const words[] = {
    [LORA_AUTO] = "auto",   [LORA_QV] = "qv",     [LORA_QKV] = "qkv", [LORA_ATTENTION] = "attention",
    [LORA_DENSE] = "dense", [LORA_CONV] = "conv", [LORA_ALL] = "all",
};

static const char *const bases[LORA_BASE_COUNT] = {"none", "int8", "int4", "nf4"};

bool lora_of(const hr_knobs *knobs, lora_choice *out)
{
    static const char list[] = "list:";
    const char *value = hr_knob_text(knobs, HR_KNOB_COMPRESS_LORA_TARGETS);
    *out = (lora_choice){.scale = 1};
    if (hr_knob_is_set(knobs, HR_KNOB_COMPRESS_LORA)) {
        out->rank = hr_knob_int(knobs, HR_KNOB_COMPRESS_LORA);
    }
    if (out->rank > 0 && hr_knob_is_set(knobs, HR_KNOB_COMPRESS_LORA_ALPHA)) {
        out->scale = hr_knob_real(knobs, HR_KNOB_COMPRESS_LORA_ALPHA) / (double)out->rank;
    }
    while (out->rank > 0 && out->base + 1 < LORA_BASE_COUNT &&
           !hr_knob_is(knobs, HR_KNOB_COMPRESS_LORA_BASE, bases[out->base])) {
        out->base++;
    }
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        if (strcmp(value, words[k]) == 0) {
            out->targets = (lora_targets)k;
            return true;
        }
    }
    out->targets = LORA_LIST;
    out->list = value + sizeof list - 1;
    return strncmp(value, list, sizeof list - 1) == 0 && text_is_list(out->list);
}
