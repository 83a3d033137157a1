// SPDX-License-Identifier: Apache-2.0
// Whether a lesson's goals were reached, and not by doing less.
#include <stdio.h>
#include <string.h>

#include "headroom/lesson.h"

#include "base/text.h"
#include "knobs/lesson.h"

// What is learned from: fewer samples, or one batch again and again, are less work.
static bool is_data(hr_knob_id knob)
{
    return knob == HR_KNOB_PIPELINE_SOURCE || knob == HR_KNOB_PIPELINE_PATH ||
           knob == HR_KNOB_PIPELINE_FILTER || knob == HR_KNOB_PIPELINE_SAMPLES ||
           knob == HR_KNOB_PIPELINE_RESIDENT;
}

bool hr_lesson_unlocks(const hr_lesson *lesson, hr_knob_id knob)
{
    const char *key = hr_knob_rows(NULL)[knob].key;
    const hr_lesson_texts *unlocked = &lesson->about.unlocked;
    for (uint32_t k = 0; k < unlocked->count; k++) {
        const size_t length = strlen(unlocked->data[k].text);
        if (strncmp(key, unlocked->data[k].text, length) == 0 &&
            (key[length] == '\0' || (key[length] == '.' && !is_data(knob)))) {
            return true;
        }
    }
    return false;
}

hr_status hr_lesson_knobs(const hr_lesson *lesson, const char *pairs, hr_knobs *out, hr_err *err)
{
    hr_knobs knobs = lesson->start;
    HR_TRY(hr_knobs_set_pairs(&knobs, pairs, err));
    HR_TRY(hr_knobs_validate(&knobs, err));
    *out = knobs;
    return HR_OK;
}

void hr_lesson_see(hr_lesson_events *events, const hr_event *event, bool computes)
{
    const bool changes = event->kind == HR_EVENT_ALLOC || event->kind == HR_EVENT_FREE;
    if (changes && event->phase == HR_PHASE_UPDATE && event->u.memory.in_use_bytes > events->updating_bytes) {
        events->updating_bytes = event->u.memory.in_use_bytes;
    }
    if (event->kind == HR_EVENT_ALLOC) {
        events->since_step++;
    } else if (event->kind == HR_EVENT_STEP) {
        const hr_event_step *step = &event->u.step;
        events->allocations = events->since_step;
        events->since_step = 0;
        events->update_bytes = events->updating_bytes;
        events->updating_bytes = 0;
        events->first_floor_bytes = events->steps == 0 ? step->floor_in_use_bytes : events->first_floor_bytes;
        events->last_floor_bytes = step->floor_in_use_bytes;
        events->steps++;
        // compared with itself, as no other number differs from itself
        events->lost_loss = events->lost_loss || (computes && !(step->loss - step->loss == 0));
    }
}

void hr_lesson_seen_deinit(hr_lesson_seen *seen)
{
    hr_report_deinit(&seen->report);
    *seen = (hr_lesson_seen){.name = ""};
}

// ---- rows -----------------------------------------------------------------------------------------------------

static hr_lesson_row *add_row(hr_lesson_verdict *v, const char *want, bool holds, bool is_guard)
{
    if (v->count >= HR_LESSON_ROWS_MAX) {
        return NULL;
    }
    hr_lesson_row *row = &v->rows[v->count++];
    row->holds = holds;
    row->is_guard = is_guard;
    text_copy(row->want, sizeof row->want, want);
    v->passed = v->passed && holds;
    return row;
}

// What stands left of the sign, as it is.
static void say_have(const char *condition, const hr_lesson_runs *runs, hr_lesson_row *row)
{
    char left[HR_LESSON_ROW_TEXT_MAX], said[HR_LESSON_VALUE_TEXT_MAX];
    hr_lesson_value value;
    (void)snprintf(left, sizeof left, "%.*s", (int)strcspn(condition, "=!<>"), condition);
    if (hr_lesson_evaluate(left, runs, &value, NULL) == HR_OK && value.kind != HR_LESSON_UNKNOWN &&
        !(row->holds && value.kind == HR_LESSON_WORD)) { // a word that is as wanted says nothing more
        text_copy(row->have, sizeof row->have, hr_lesson_say(&value, said));
    }
}

static hr_status judge_goals(const hr_lesson *lesson, const hr_lesson_runs *runs, hr_lesson_verdict *v,
                             hr_err *err)
{
    for (uint32_t k = 0; k < lesson->about.goal_count; k++) {
        const hr_lesson_goal *goal = &lesson->about.goals[k];
        bool holds = false;
        HR_TRY(hr_lesson_holds(goal->that, runs, &holds, err));
        hr_lesson_row *row = add_row(v, goal->want, holds, false);
        if (row != NULL) {
            say_have(goal->that, runs, row);
        }
    }
    return HR_OK;
}

// ---- guards ---------------------------------------------------------------------------------------------------

static void guard_knobs(const hr_lesson *lesson, const hr_knobs *now, hr_lesson_verdict *v)
{
    for (unsigned k = 0; k < HR_KNOB_COUNT; k++) {
        char before[HR_KNOB_TEXT_MAX], after[HR_KNOB_TEXT_MAX], want[HR_LESSON_ROW_TEXT_MAX];
        const hr_knob_id id = (hr_knob_id)k;
        if (strcmp(hr_knob_format(&lesson->start, id, before), hr_knob_format(now, id, after)) == 0) {
            continue;
        }
        v->turned++;
        if (!hr_lesson_unlocks(lesson, id)) {
            (void)snprintf(want, sizeof want, "%s stays %.60s here", hr_knob_rows(NULL)[k].key,
                           before[0] == '\0' ? "as it is" : before);
            (void)add_row(v, want, false, true);
        }
    }
}

bool hr_lesson_judge_knobs(const hr_lesson *lesson, const hr_knobs *knobs, hr_lesson_verdict *out)
{
    *out = (hr_lesson_verdict){.passed = true};
    guard_knobs(lesson, knobs, out);
    return out->passed;
}

static uint64_t batch_of(const hr_knobs *knobs)
{
    return (uint64_t)hr_knob_int(knobs, HR_KNOB_BATCH_SIZE) *
           (uint64_t)hr_knob_int(knobs, HR_KNOB_BATCH_ACCUMULATE);
}

static void guard_batch(const hr_lesson *lesson, const hr_knobs *now, hr_lesson_verdict *v)
{
    char want[HR_LESSON_ROW_TEXT_MAX];
    const uint64_t needed = lesson->about.batch > 0 ? lesson->about.batch : batch_of(&lesson->start);
    const uint64_t had = batch_of(now);
    if (had < needed) {
        (void)snprintf(want, sizeof want, "an update sees %llu samples", (unsigned long long)needed);
        hr_lesson_row *row = add_row(v, want, false, true);
        if (row != NULL) {
            (void)snprintf(row->have, sizeof row->have, "%llu: batch.size times batch.accumulate",
                           (unsigned long long)had);
        }
    }
}

static void guard_gradients(const hr_lesson *lesson, const hr_knobs *now, hr_lesson_verdict *v)
{
    if (hr_knob_is(now, HR_KNOB_EXECUTION_TAPE, "none") &&
        !hr_knob_is(&lesson->start, HR_KNOB_EXECUTION_TAPE, "none")) {
        hr_lesson_row *row = add_row(v, "a step trains", false, true);
        if (row != NULL) {
            text_copy(row->have, sizeof row->have, "execution.tape=none: no gradients are taken");
        }
    }
}

static void guard_steps(const hr_lesson *lesson, const hr_lesson_seen *now, hr_lesson_verdict *v)
{
    char want[HR_LESSON_ROW_TEXT_MAX];
    if (hr_oom_cause_refuses(now->report.oom.cause)) {
        hr_lesson_row *row = add_row(v, "it does not run out of memory", false, true);
        if (row != NULL) {
            text_copy(row->have, sizeof row->have, hr_oom_cause_name(now->report.oom.cause));
        }
    } else if (now->events.done < lesson->about.steps) {
        (void)snprintf(want, sizeof want, "it does %u steps", lesson->about.steps);
        (void)add_row(v, want, false, true);
    }
    if (now->events.lost_loss) {
        (void)add_row(v, "the loss stays a number", false, true);
    }
}

hr_status hr_lesson_judge(const hr_lesson *lesson, const hr_lesson_runs *runs, hr_lesson_verdict *out,
                          hr_err *err)
{
    const hr_lesson_seen *now = runs->seen[0];
    *out = (hr_lesson_verdict){.passed = true};
    HR_TRY(judge_goals(lesson, runs, out, err));
    guard_knobs(lesson, &now->knobs, out);
    guard_batch(lesson, &now->knobs, out);
    guard_gradients(lesson, &now->knobs, out);
    guard_steps(lesson, now, out);
    return HR_OK;
}
