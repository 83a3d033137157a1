// SPDX-License-Identifier: Apache-2.0
#include "app/cli/plan_play.h"

hr_status plan_play(hr_engine *engine, uint64_t steps, hr_err *err)
{
    hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = steps};
    HR_TRY(hr_engine_command(engine, &run, err));
    for (bool idle = false; !idle;) {
        hr_engine_advance(engine, &idle);
    }
    if (hr_engine_get_state(engine) == HR_ENGINE_FAILED) {
        *err = *hr_engine_error(engine);
        return err->status;
    }
    return HR_OK;
}
