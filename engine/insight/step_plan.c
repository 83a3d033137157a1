// SPDX-License-Identifier: Apache-2.0
#include "insight/step_plan.h"

#include <math.h>

#include "base/host_mem.h"
#include "device/cost.h"

hr_status step_plan_make(const hr_model *model, const play_case *c, hr_step_plan *out, play_result *played,
                         hr_err *err)
{
    step_plan_draft d = {.model = model, .c = c, .p = c->programs[0], .out = out};
    cost_times times = {.seconds = (double)NAN};
    *out = (hr_step_plan){0};
    hr_status status = step_plan_describe(&d, err);
    if (status == HR_OK) {
        status = step_plan_play(&d, played, err);
    }
    if (status == HR_OK) {
        status = cost_step_times(c->device, c->device_context, d.p, &times, err);
        out->step_seconds = times.seconds;
        out->step_basis = times.basis;
    }
    out->texts = d.texts.bytes.data;
    out->texts_bytes = d.texts.bytes.count;
    d.texts.bytes.data = NULL;
    intern_deinit(&d.texts);
    if (status != HR_OK) {
        hr_step_plan_deinit(out);
    }
    return status;
}

const char *hr_step_plan_text(const hr_step_plan *p, uint32_t text)
{
    return text < p->texts_bytes ? p->texts + text : "";
}

void hr_step_plan_deinit(hr_step_plan *p)
{
    if (p == NULL) {
        return;
    }
    hr_free(p->instrs);
    hr_free(p->tensors);
    hr_free(p->layers);
    hr_free(p->events);
    hr_free(p->texts);
    *p = (hr_step_plan){0};
}
