// SPDX-License-Identifier: Apache-2.0
#include "knobs/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "base/text.h"

static const struct {
    const char *word;
    checkpoint_kind kind;
} words[] = {
    {"none", CHECKPOINT_NONE},
    {"sqrt", CHECKPOINT_SQRT},
    {"blocks", CHECKPOINT_BLOCKS},
    {"selective", CHECKPOINT_SELECTIVE},
};

// "every:4" → 4; 0 when that is not what it says.
static uint32_t layers_of(const char *value)
{
    static const char prefix[] = "every:";
    if (strncmp(value, prefix, sizeof prefix - 1) != 0) {
        return 0;
    }
    char *end = NULL;
    const long layers = strtol(value + sizeof prefix - 1, &end, 10);
    return *end == '\0' && layers > 0 && layers <= INT32_MAX ? (uint32_t)layers : 0;
}

hr_status checkpoint_strategy_of(const hr_knobs *knobs, checkpoint_strategy *out, hr_err *err)
{
    static const char list[] = "list:", budget[] = "budget:";
    const char *value = hr_knob_text(knobs, HR_KNOB_CHECKPOINT_STRATEGY);
    *out = (checkpoint_strategy){.kind = CHECKPOINT_NONE};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        if (strcmp(value, words[k].word) == 0) {
            out->kind = words[k].kind;
            return HR_OK;
        }
    }
    if (strncmp(value, list, sizeof list - 1) == 0 && text_is_list(value + sizeof list - 1)) {
        *out = (checkpoint_strategy){.kind = CHECKPOINT_LIST, .names = value + sizeof list - 1};
        return HR_OK;
    }
    const uint32_t layers = layers_of(value);
    if (layers > 0) {
        *out = (checkpoint_strategy){.kind = CHECKPOINT_EVERY, .layers = layers};
        return HR_OK;
    }
    uint64_t budget_bytes = 0;
    if (strncmp(value, budget, sizeof budget - 1) == 0 &&
        hr_bytes_parse(value + sizeof budget - 1, &budget_bytes) && budget_bytes > 0) {
        *out = (checkpoint_strategy){.kind = CHECKPOINT_BUDGET, .budget_bytes = budget_bytes};
        return HR_OK;
    }
    hr_status status = HR_FAIL(err, KNOB,
                               "checkpoint.strategy must be none, every:K, sqrt, blocks, selective, "
                               "list:A,B or budget:SIZE, had '%s'",
                               value);
    hr_err_try(err, "-s checkpoint.strategy=sqrt");
    return status;
}

bool checkpoint_is_budget(const hr_knobs *knobs)
{
    checkpoint_strategy s;
    return checkpoint_strategy_of(knobs, &s, NULL) == HR_OK && s.kind == CHECKPOINT_BUDGET;
}
