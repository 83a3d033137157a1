// SPDX-License-Identifier: Apache-2.0
// An open lesson beside the screen: its runs and the learner's are played on a thread of their own, and judged here.
#include <stdio.h>
#include <string.h>

#include "app/tui/screens/learn/learn.h"

void lesson_end(lesson_state *s)
{
    hr_lesson_end(s->table);
    hr_lesson_close(s->open);
    *s = (lesson_state){.serial = s->serial + 1};
}

hr_status lesson_begin(learn_state *l, const char *name, hr_err *err)
{
    hr_lesson *lesson = NULL;
    hr_lesson_table *table = NULL;
    HR_TRY(hr_lesson_open(name, &lesson, NULL, err));
    const hr_status status = hr_lesson_begin_beside(lesson, &table, err);
    if (status != HR_OK) {
        hr_lesson_close(lesson);
        return status;
    }
    lesson_end(&l->lesson);
    l->lesson.open = lesson;
    l->lesson.table = table;
    l->lesson.begins = true;
    if (l->lessons_path[0] != '\0') {
        hr_lesson_progress_read(l->lessons_path, hr_lesson_tell(lesson)->name, &l->lesson.progress);
    }
    (void)learn_take(l); // a script waits for it here
    return hr_lesson_knobs(lesson, "", &l->lesson.start, err);
}

// ---- what trains ----------------------------------------------------------------------------------------------

static bool are_same(const hr_knobs *a, const hr_knobs *b)
{
    for (unsigned k = 0; k < HR_KNOB_COUNT; k++) {
        char of_a[HR_KNOB_TEXT_MAX], of_b[HR_KNOB_TEXT_MAX];
        if (strcmp(hr_knob_format(a, (hr_knob_id)k, of_a), hr_knob_format(b, (hr_knob_id)k, of_b)) != 0) {
            return false;
        }
    }
    return true;
}

// The lesson's situation is what trains: its preset, which began with its knobs.
void learn_follow(learn_state *l)
{
    lesson_state *s = &l->lesson;
    const bool works =
        s->open != NULL && s->phase == LESSON_WORKS && hr_lesson_starts_from(s->open, l->feed->preset);
    s->has_begun = works && (s->has_begun || are_same(&l->feed->knobs, &s->start));
}

bool learn_waits(const learn_state *l)
{
    return l->lesson.begins || l->lesson.tries;
}

const hr_lesson *learn_holds(const learn_state *l)
{
    return l->lesson.has_begun && !l->lesson.in_sandbox ? l->lesson.open : NULL;
}

bool learn_is_at_work(const learn_state *l)
{
    const lesson_state *s = &l->lesson;
    return s->has_begun ||
           (s->open != NULL && s->phase == LESSON_AFTER && hr_lesson_starts_from(s->open, l->feed->preset));
}

// ---- judging --------------------------------------------------------------------------------------------------

static void pass(learn_state *l)
{
    lesson_state *s = &l->lesson;
    hr_lesson_progress_pass(&s->progress, s->verdict.turned);
    s->phase = LESSON_AFTER;
    s->tells = true;
    s->at = s->reread = 0;
    s->top = 0;
}

static void take_verdict(learn_state *l, hr_status status, const hr_err *err)
{
    lesson_state *s = &l->lesson;
    (void)snprintf(s->wrong, sizeof s->wrong, "%s", status == HR_OK ? "" : err->sentence);
    s->is_judged = true;
    s->verdict.count = status == HR_OK ? s->verdict.count : 0;
    s->progress.runs++;
    if (status == HR_OK && s->verdict.passed) {
        pass(l);
    }
    lessons_note(l);
}

// The plan is the run: the knobs as they stand are played, once each time that they were turned. What is not to be turned is refused
// before a run is made of it.
static void try_knobs(learn_state *l)
{
    lesson_state *s = &l->lesson;
    hr_err err = {0};
    s->judged = l->feed->knobs;
    if (!hr_lesson_judge_knobs(s->open, &s->judged, &s->verdict)) {
        take_verdict(l, HR_OK, &err);
        return;
    }
    const hr_status status = hr_lesson_try_beside(s->table, &s->judged, &err);
    s->tries = status == HR_OK;
    if (status != HR_OK) {
        take_verdict(l, status, &err);
    }
}

// What the knobs were turned to meanwhile is tried next, and this is not said of it.
static bool take_try(learn_state *l)
{
    lesson_state *s = &l->lesson;
    hr_err err = {0};
    hr_status status;
    if (!hr_lesson_is_done(s->table, l->feed->scripted, &status, &err)) {
        return false;
    }
    s->tries = false;
    if (s->has_begun && !s->in_sandbox && are_same(&s->judged, &l->feed->knobs)) {
        status = status == HR_OK ? hr_lesson_judge(s->open, hr_lesson_table_runs(s->table), &s->verdict, &err)
                                 : status;
        take_verdict(l, status, &err);
    }
    return true;
}

static bool take_begun(learn_state *l)
{
    lesson_state *s = &l->lesson;
    hr_err err = {0};
    hr_status status;
    if (!hr_lesson_is_done(s->table, l->feed->scripted, &status, &err)) {
        return false;
    }
    s->begins = false;
    s->is_broken = status != HR_OK;
    if (s->is_broken) {
        (void)snprintf(s->wrong, sizeof s->wrong, "%s", err.sentence);
    }
    return true;
}

bool learn_take(learn_state *l)
{
    lesson_state *s = &l->lesson;
    if (s->open == NULL) {
        return false;
    }
    learn_follow(l);
    bool is_new = s->begins && take_begun(l);
    is_new = (s->tries && take_try(l)) || is_new;
    if (s->has_begun && !s->in_sandbox && !s->tries &&
        !(s->is_judged && are_same(&s->judged, &l->feed->knobs))) {
        try_knobs(l);
        is_new = (s->tries && take_try(l)) || is_new; // a script waits for it here
    }
    return is_new;
}
