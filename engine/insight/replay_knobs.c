// SPDX-License-Identifier: Apache-2.0
// Which knobs a replay listens to, and which of them an allocator.
#include <assert.h>
#include <string.h>

#include "headroom/replay.h"

#include "memory/allocator.h"

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

bool hr_replay_knob_concerns(hr_knob_id id, const char *allocator_kind)
{
    const char *only = hr_knob_rows(NULL)[id].allocator;
    return hr_replay_knob_applies(id) && (only == NULL || strcmp(only, allocator_kind) == 0);
}

bool hr_replay_plays(const char *allocator_kind)
{
    return !allocator_traits_of(allocator_kind).is_drivers;
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
