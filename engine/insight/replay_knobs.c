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

static void set(hr_knobs *knobs, hr_knob_id id, const char *value)
{
    if (hr_knobs_set(knobs, id, value, NULL) != HR_OK) {
        assert(!"a value of the knob table");
    }
}

void hr_replay_knobs_init(hr_knobs *knobs)
{
    hr_knobs_init(knobs);
    set(knobs, HR_KNOB_DEVICE_KIND, "plan");
    set(knobs, HR_KNOB_EXECUTION_MODE, "graph");
}

hr_status hr_replay_check_turn(hr_knob_id knob, const char *value, hr_err *err)
{
    if (knob == HR_KNOB_ALLOCATOR_KIND && !hr_replay_plays(value)) {
        return HR_FAIL(err, KNOB,
                       "allocator.kind=%.64s is the driver's own pool: a recorded step has no driver", value);
    }
    if (hr_replay_knob_applies(knob)) {
        return HR_OK;
    }
    const hr_status status =
        HR_FAIL(err, KNOB, "%s cannot be turned: this is a recorded step, whose requests are what they were",
                hr_knob_rows(NULL)[knob].key);
    hr_err_try(err, "device.card, device.vram or allocator.kind, which decide how they are served");
    return status;
}
