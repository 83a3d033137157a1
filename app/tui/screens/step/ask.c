// SPDX-License-Identifier: Apache-2.0
// What turning the selected knob would change in the listing: asked of the planner, in the background.
#include <stdlib.h>
#include <string.h>

#include "app/tui/screens/step/step.h"

static void forget_answer(step_changes *c)
{
    free(c->text);
    free(c->line_at);
    c->text = NULL;
    c->line_at = NULL;
    c->line_count = 0;
    c->asked = c->answered = false;
    c->version++;
}

static bool is_about(const feed *f, const step_changes *c)
{
    return c->asked_knob == feed_knob(f) && c->asked_question == c->question &&
           memcmp(&c->asked_of, &f->knobs, sizeof f->knobs) == 0;
}

void step_forget_stale(step_view *step)
{
    step_changes *c = &step->changes;
    if ((c->asked || c->answered) && !is_about(step->feed, c)) {
        forget_answer(c);
    }
}

bool step_wants_diff(step_view *step, hr_knobs *before, hr_knobs *after)
{
    step_changes *c = &step->changes;
    char next[HR_KNOB_TEXT_MAX];
    step_forget_stale(step);
    if (c->question == STEP_LAST || c->asked) {
        return false;
    }
    c->asked = true;
    c->asked_of = *before = *after = step->feed->knobs;
    c->asked_knob = feed_knob(step->feed);
    c->asked_question = c->question;
    int direction = c->question == STEP_LESS ? KNOB_EDIT_LESS : KNOB_EDIT_MORE;
    if (!knob_edit_reach(&step->feed->knobs, c->asked_knob, direction, step->feed->live.limit_bytes, next,
                         NULL) ||
        knob_edit_set(after, c->asked_knob, next, NULL) != HR_OK) {
        step_take_diff(step, NULL);
        return false;
    }
    return true;
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (const char *at = text; *at != '\0'; lines++) {
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    return lines;
}

static void split_lines(step_changes *c)
{
    for (char *at = c->text; *at != '\0';) {
        c->line_at[c->line_count++] = (uint32_t)(at - c->text);
        at += strcspn(at, "\n");
        if (*at == '\n') {
            *at++ = '\0';
        }
    }
}

void step_take_diff(step_view *step, const char *text)
{
    step_changes *c = &step->changes;
    bool asked = c->asked;
    forget_answer(c);
    c->asked = asked;
    c->answered = true;
    if (text == NULL || strlen(text) >= UINT32_MAX) {
        return;
    }
    c->text = strdup(text);
    c->line_at = calloc(count_lines(text) + 1, sizeof *c->line_at);
    if (c->text == NULL || c->line_at == NULL) {
        forget_answer(c);
        c->asked = asked;
        c->answered = true;
        return;
    }
    split_lines(c);
}
