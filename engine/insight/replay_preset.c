// SPDX-License-Identifier: Apache-2.0
// A trace in a preset's place.
#include <assert.h>
#include <string.h>

#include "headroom/card.h"
#include "headroom/file_kind.h"
#include "headroom/units.h"

#include "insight/replay_plan.h"

static void set(hr_knobs *knobs, hr_knob_id id, const char *value)
{
    if (hr_knobs_set(knobs, id, value, NULL) != HR_OK) {
        assert(!"a value of the knob table");
    }
}

void hr_replay_knobs_of(const hr_replay *replay, hr_knobs *knobs)
{
    const hr_replay_about *about = &replay->about;
    const uint64_t own_bytes = replay_own_limit(about);
    char size[HR_BYTES_TEXT_MAX];
    hr_replay_knobs_init(knobs);
    set(knobs, HR_KNOB_ALLOCATOR_KIND, strcmp(about->format, "pytorch_snapshot") == 0 ? "caching" : "bfc");
    if (own_bytes != HR_NONE) {
        set(knobs, HR_KNOB_DEVICE_VRAM, hr_bytes_exact(own_bytes, size));
    } else {
        set(knobs, HR_KNOB_DEVICE_CARD, HR_CARD_UNLIMITED);
    }
}

hr_status hr_replay_check_requests(const hr_replay *replay, const char *name, hr_err *err)
{
    if (replay->about.peak_requested_bytes > 0) {
        return HR_OK;
    }
    const hr_status status =
        HR_FAIL(err, USAGE, "%.200s: needed requests for memory to plan, had none", name);
    hr_err_try(err, "headroom replay '%.200s', for what is in it", name);
    return status;
}

hr_status replay_open_step(const char *path, hr_replay **out, hr_err *err)
{
    HR_TRY(hr_replay_open(path, out, err));
    const hr_status status = hr_replay_check_requests(*out, path, err);
    if (status != HR_OK) {
        hr_replay_close(*out);
        *out = NULL;
    }
    return status;
}

hr_status hr_replay_open_preset(const char *word, bool trust, hr_preset **out, char **problems, hr_err *err)
{
    hr_replay *replay = NULL;
    hr_knobs knobs;
    if (hr_file_kind_of(word) != HR_FILE_TRACE) {
        return hr_preset_open(word, trust, out, problems, err);
    }
    *out = NULL;
    if (problems != NULL) {
        *problems = NULL;
    }
    HR_TRY(replay_open_step(word, &replay, err));
    hr_replay_knobs_of(replay, &knobs);
    hr_replay_close(replay);
    return hr_preset_of_trace(word, &knobs, out, err);
}
