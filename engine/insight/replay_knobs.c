// SPDX-License-Identifier: Apache-2.0
// Which knobs a replay listens to, and which of them an allocator.
#include <assert.h>
#include <string.h>

#include "headroom/replay.h"

static const char *const heard[] = {"device.card", "device.vram", "device.logical", "allocator."};

bool hr_replay_knob_applies(hr_knob_id id)
{
    const char *key = hr_knob_rows(NULL)[id].key;
    for (size_t k = 0; k < sizeof heard / sizeof *heard; k++) {
        if (strncmp(key, heard[k], strlen(heard[k])) == 0) {
            return true;
        }
    }
    return false;
}

// The row says itself who listens: "with allocator.kind bfc and allocator.growth on", "with allocator.kind a, b or c".
bool hr_replay_knob_concerns(hr_knob_id id, const char *allocator_kind)
{
    static const char who[] = "allocator.kind ";
    const char *applies = hr_knob_rows(NULL)[id].applies;
    const char *word = applies == NULL ? NULL : strstr(applies, who);
    if (word == NULL) {
        return hr_replay_knob_applies(id);
    }
    for (word += sizeof who - 1;;) {
        size_t length = strcspn(word, " ,:;.");
        if (length == strlen(allocator_kind) && strncmp(word, allocator_kind, length) == 0) {
            return true;
        }
        word += length;
        if (strncmp(word, " or ", 4) != 0 && strncmp(word, ", ", 2) != 0) {
            return false;
        }
        word += word[0] == ',' ? 2 : 4;
    }
}

void hr_replay_knobs_init(hr_knobs *knobs)
{
    static const struct {
        hr_knob_id id;
        const char *value;
    } aside[] = {{HR_KNOB_DEVICE_KIND, "plan"}, {HR_KNOB_EXECUTION_MODE, "graph"}};
    hr_knobs_init(knobs);
    for (size_t k = 0; k < sizeof aside / sizeof *aside; k++) {
        if (hr_knobs_set(knobs, aside[k].id, aside[k].value, NULL) != HR_OK) {
            assert(!"a choice of the knob table");
        }
    }
}
