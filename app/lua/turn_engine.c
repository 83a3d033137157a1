// SPDX-License-Identifier: Apache-2.0
// The knobs of a training that goes on. An engine looks at each turn by itself, so that of two that are legal only together one
// is refused before the other: what is refused is tried again behind the rest.
#include <string.h>

#include "app/lua/script.h"

bool script_same_knob(const hr_knobs *a, const hr_knobs *b, int id)
{
    char x[HR_KNOB_TEXT_MAX], y[HR_KNOB_TEXT_MAX];
    return strcmp(hr_knob_format(a, (hr_knob_id)id, x), hr_knob_format(b, (hr_knob_id)id, y)) == 0;
}

static hr_status turn_one(hr_engine *engine, const hr_knobs *wanted, int id, hr_err *err)
{
    hr_command c = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_KNOB, .knob = (uint32_t)id};
    (void)hr_knob_format(wanted, (hr_knob_id)id, c.text);
    return hr_engine_command(engine, &c, err);
}

// Those that can be turned are, whatever becomes of the others.
static hr_status turn_what_can_be(hr_engine *engine, const hr_knobs *wanted, hr_err *err)
{
    hr_status status = HR_OK;
    bool turned = true;
    while (turned) {
        turned = false;
        status = HR_OK;
        for (int id = 0; id < HR_KNOB_COUNT; id++) {
            if (script_same_knob(hr_engine_knobs(engine), wanted, id)) {
                continue;
            }
            hr_err why = {0};
            if (turn_one(engine, wanted, id, &why) == HR_OK) {
                turned = true;
            } else if (status == HR_OK) {
                status = why.status;
                *err = why;
            }
        }
    }
    return status;
}

hr_status script_turn_engine(hr_engine *engine, const hr_knobs *wanted, hr_err *err)
{
    const hr_knobs before = *hr_engine_knobs(engine);
    const hr_status status = turn_what_can_be(engine, wanted, err);
    if (status != HR_OK) {
        hr_err back = {0};
        (void)turn_what_can_be(engine, &before, &back); // where it was a moment ago
    }
    return status;
}
