// SPDX-License-Identifier: Apache-2.0
// What is to replace a training is tried first, in a process of its own: neither its time nor its death is felt by the
// training that goes on meanwhile.
#include "app/tui/app.h"

static judgement refuse(app *a, const hr_err *err)
{
    app_forget_judge(a);
    app_say_error(a, err);
    return JUDGED_REFUSED;
}

static hr_status ask(app *a, const hr_preset *preset, const hr_knobs *knobs, hr_err *err)
{
    HR_TRY(hr_planning_start(a->scripted, &a->judge, err));
    hr_planning_open(a->judge, hr_preset_path(preset), hr_preset_trusts(preset));
    return hr_planning_ask_stands(a->judge, knobs) != 0
               ? HR_OK
               : HR_FAIL(err, STATE, "%.200s could not be tried: its process takes no question",
                         hr_preset_name(preset));
}

judgement app_judge(app *a, const hr_preset *preset, const hr_knobs *knobs)
{
    hr_answer answer;
    hr_err err = {0};
    if (a->judge == NULL && ask(a, preset, knobs, &err) != HR_OK) {
        return refuse(a, &err);
    }
    if (!hr_planning_take(a->judge, &answer)) {
        return JUDGED_WAITS;
    }
    const hr_status status = answer.status;
    if (status != HR_OK) {
        (void)hr_err_set(&err, status, __FILE__, __LINE__, "%s", answer.sentence);
    }
    hr_answer_deinit(&answer);
    if (status != HR_OK) {
        return refuse(a, &err);
    }
    app_forget_judge(a);
    return JUDGED_STANDS;
}

void app_forget_judge(app *a)
{
    hr_planning_stop(a->judge);
    a->judge = NULL;
}
