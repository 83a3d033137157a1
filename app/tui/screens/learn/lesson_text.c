// SPDX-License-Identifier: Apache-2.0
// What of an open lesson is shown, as text.
#include "app/tui/screens/learn/lesson_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void add(lesson_state *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(lesson_state *s, const char *format, ...)
{
    va_list arguments;
    const size_t used = strlen(s->text);
    va_start(arguments, format);
    (void)vsnprintf(s->text + used, sizeof s->text - used, format, arguments);
    va_end(arguments);
}

static void add_page(lesson_state *s, const char *page)
{
    char *filled = NULL;
    hr_err err;
    if (hr_lesson_fill(page, hr_lesson_table_runs(s->table), &filled, &err) != HR_OK) {
        add(s, "%s\n", err.sentence);
        return;
    }
    add(s, "%s%s", filled, filled[0] == '\0' || filled[strlen(filled) - 1] == '\n' ? "" : "\n");
    hr_lesson_text_free(filled);
}

// ---- questions ------------------------------------------------------------------------------------------------

// Of a number four are offered, of which one is right; which one depends on the question alone.
static const double factors[] = {0.25, 0.5, 1, 2, 4};
enum { OFFERED = 4 };

static unsigned first_factor(const hr_lesson_question *q)
{
    return (unsigned)(strlen(q->question) % 2);
}

uint32_t lesson_options(const hr_lesson_question *q)
{
    return q->choices.count > 0 ? q->choices.count : OFFERED;
}

static hr_lesson_value truth(const lesson_state *s, const hr_lesson_question *q)
{
    hr_lesson_value value = {.kind = HR_LESSON_UNKNOWN};
    (void)!hr_lesson_evaluate(q->answer, hr_lesson_table_runs(s->table), &value, NULL);
    return value;
}

static void add_option(lesson_state *s, const hr_lesson_question *q, uint32_t option)
{
    char said[HR_LESSON_VALUE_TEXT_MAX];
    hr_lesson_value value = truth(s, q);
    if (q->choices.count > 0) {
        add(s, "%s", q->choices.data[option].text);
        return;
    }
    value.number *= factors[first_factor(q) + option];
    add(s, "%s", hr_lesson_say(&value, said));
}

static uint32_t right_option(const hr_lesson_question *q)
{
    return q->choice > 0 ? q->choice - 1 : 2 - first_factor(q);
}

static void add_question(lesson_state *s, const hr_lesson_question *q)
{
    add_page(s, q->question);
    add(s, "\n");
    for (uint32_t k = 0; k < lesson_options(q); k++) {
        add(s, " %s ", k == s->option ? ">" : " ");
        add_option(s, q, k);
        add(s, "\n");
    }
    add(s, "\nGuess before you see it: up and down choose, Enter answers.\n");
}

static void add_answer(lesson_state *s, const hr_lesson_question *q)
{
    const uint32_t right = right_option(q);
    add_page(s, q->question);
    add(s, "\n%s: ", s->picked[s->at] == right ? "Right" : "Not so");
    add_option(s, q, right);
    add(s, "\n\n");
    add_page(s, q->because);
}

// ---- at work --------------------------------------------------------------------------------------------------

static void add_row(lesson_state *s, const hr_lesson_row *row)
{
    add(s, "  %s %s%s%s%s\n", row->holds ? "yes" : "NO ", row->want, row->have[0] == '\0' ? "" : " (",
        row->have, row->have[0] == '\0' ? "" : ")");
}

static void add_goals(lesson_state *s, const hr_lesson_about *about)
{
    add(s, "Wanted:\n");
    for (uint32_t k = 0; k < s->verdict.count && s->is_judged; k++) {
        add_row(s, &s->verdict.rows[k]);
    }
    // not judged either where what may not be turned was
    const bool are_open = !s->is_judged || (s->verdict.count > 0 && s->verdict.rows[0].is_guard);
    for (uint32_t k = 0; k < about->goal_count && are_open; k++) {
        add(s, "  -   %s\n", about->goals[k].want);
    }
    if (s->wrong[0] != '\0') {
        add(s, "  %s\n", s->wrong);
    }
}

static void add_unlocked(lesson_state *s, const hr_lesson_about *about)
{
    add(s, "\nMay be turned:");
    for (uint32_t k = 0; k < about->unlocked.count; k++) {
        add(s, "%s %s", k > 0 ? "," : "", about->unlocked.data[k].text);
    }
    add(s, "\nType :KEY=VALUE to turn one, or turn it on the Bench (1) and come back (6).\n");
}

static void add_work(lesson_state *s, const hr_lesson_about *about)
{
    if (!s->has_begun) {
        add(s, "The lesson has a training of its own, %s. Enter begins it.\n", about->preset);
        return;
    }
    if (s->in_sandbox) {
        add(s, "In the sandbox: turn whatever you like, nothing counts. s goes back to where\nyou were.\n");
        return;
    }
    add_goals(s, about);
    add_unlocked(s, about);
    if (s->hint > 0) {
        add(s, "\nHint %u of %d:\n", s->hint, HR_LESSON_HINTS);
        add_page(s, about->hints.data[s->hint - 1].text);
    } else {
        add(s, "h gives a hint, s a sandbox.\n");
    }
}

static void add_after(lesson_state *s, const hr_lesson_about *about)
{
    if (s->at == 0) {
        add(s, "Done, with %u knob%s turned (par is %u) and %u hint%s.\n\n", s->verdict.turned,
            s->verdict.turned == 1 ? "" : "s", about->par, s->progress.hints,
            s->progress.hints == 1 ? "" : "s");
    }
    add_page(s, about->after.data[s->at].text);
}

void lesson_write(lesson_state *s)
{
    const hr_lesson_about *about = hr_lesson_tell(s->open);
    s->text[0] = '\0';
    switch (s->phase) {
    case LESSON_PAGES:
        add_page(s, about->pages.data[s->at].text);
        break;
    case LESSON_ASKS:
        add_question(s, &about->questions[s->at]);
        break;
    case LESSON_ANSWERS:
        add_answer(s, &about->questions[s->at]);
        break;
    case LESSON_WORKS:
        add_work(s, about);
        break;
    case LESSON_AFTER:
        add_after(s, about);
        break;
    }
}
