// SPDX-License-Identifier: Apache-2.0
// What is to replace a training is tried first, in a process of its own: neither its time nor its death is felt by the
// training that goes on meanwhile.
#include "app/tui/feed/feed.h"

static judgement refuse(feed *f, const hr_err *err)
{
    feed_forget_judge(f);
    feed_say_error(f, err);
    return JUDGED_REFUSED;
}

static hr_status ask(feed *f, const hr_preset *preset, const hr_knobs *knobs, hr_err *err)
{
    HR_TRY(hr_planning_start(f->scripted, &f->judge, err));
    hr_planning_open(f->judge, hr_preset_path(preset), hr_preset_trusts(preset));
    return hr_planning_ask_stands(f->judge, knobs) != 0
               ? HR_OK
               : HR_FAIL(err, STATE, "%.200s could not be tried: its process takes no question",
                         hr_preset_name(preset));
}

judgement feed_judge(feed *f, const hr_preset *preset, const hr_knobs *knobs)
{
    hr_answer answer;
    hr_err err = {0};
    if (f->judge == NULL && ask(f, preset, knobs, &err) != HR_OK) {
        return refuse(f, &err);
    }
    if (!hr_planning_take(f->judge, &answer)) {
        return JUDGED_WAITS;
    }
    const hr_status status = answer.status;
    if (status != HR_OK) {
        (void)hr_err_set(&err, status, __FILE__, __LINE__, "%s", answer.sentence);
    }
    hr_answer_deinit(&answer);
    if (status != HR_OK) {
        return refuse(f, &err);
    }
    feed_forget_judge(f);
    return JUDGED_STANDS;
}

void feed_forget_judge(feed *f)
{
    hr_planning_stop(f->judge);
    f->judge = NULL;
}
