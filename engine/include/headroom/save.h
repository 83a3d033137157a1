// SPDX-License-Identifier: Apache-2.0
// What a save says of itself, without its tensors: its header alone is read. Any thread.
#ifndef HEADROOM_SAVE_H
#define HEADROOM_SAVE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/knobs.h"

enum { HR_SAVE_PATH_MAX = 4096 };

typedef struct hr_save_about {
    char model[64];
    uint64_t steps;
    // Of a session's save, which can be gone on from by itself; "" for one that a person asked for.
    char preset[HR_SAVE_PATH_MAX];
    bool trusts;
    hr_knobs knobs;
} hr_save_about;

// READ error when it cannot be read, SAVE error when it is no save of headroom. A knob that this build does not have is
// passed over.
HR_MUST_CHECK hr_status hr_save_look(const char *path, hr_save_about *out, hr_err *err);

#endif
