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

// Of a number four are offered, so far apart that one alone is near enough; which one is right depends on the question, unless the
// card is too small for what would be offered beyond it.
enum { OFFERED = 4 };
static const double NEAREST_RATIO = 1.3, ASIDE = 3; // ASIDE: of what a guess may be off

static hr_lesson_value truth(const lesson_state *s, const hr_lesson_question *q)
{
    hr_lesson_value value = {.kind = HR_LESSON_UNKNOWN};
    (void)!hr_lesson_evaluate(q->answer, hr_lesson_table_runs(s->table), &value, NULL);
    return value;
}

static double ratio_of(const hr_lesson_question *q)
{
    const double ratio = 1 + ASIDE * q->within;
    return ratio > NEAREST_RATIO ? ratio : NEAREST_RATIO;
}

static uint32_t right_of_four(const lesson_state *s, const hr_lesson_question *q)
{
    const hr_lesson_value value = truth(s, q);
    const hr_lesson_runs *runs = hr_lesson_table_runs(s->table);
    const double card = (double)runs->seen[0]->report.memory.limit_bytes;
    uint32_t right = 1 + (uint32_t)(strlen(q->question) % 2);
    while (value.kind == HR_LESSON_BYTES && value.number <= card && right + 1 < OFFERED &&
           value.number * pow(ratio_of(q), OFFERED - 1 - right) > card) {
        right++;
    }
    return right;
}

uint32_t lesson_options(const hr_lesson_question *q)
{
    return q->choices.count > 0 ? q->choices.count : OFFERED;
}

static void add_option(lesson_state *s, const hr_lesson_question *q, uint32_t option)
{
    char said[HR_LESSON_VALUE_TEXT_MAX];
    hr_lesson_value value = truth(s, q);
    if (q->choices.count > 0) {
        add(s, "%s", q->choices.data[option].text);
        return;
    }
    value.number *= pow(ratio_of(q), (double)option - (double)right_of_four(s, q));
    add(s, "%s", hr_lesson_say(&value, said));
}

static uint32_t right_option(const lesson_state *s, const hr_lesson_question *q)
{
    return q->choice > 0 ? q->choice - 1 : right_of_four(s, q);
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
    const uint32_t right = right_option(s, q);
    add_page(s, q->question);
    if (s->picked[s->at] == right) {
        add(s, "\nRight: ");
    } else {
        add(s, "\nYour guess: ");
        add_option(s, q, s->picked[s->at]);
        add(s, "\nIt is:      ");
    }
    add_option(s, q, right);
    add(s, "\n\n");
    add_page(s, q->because);
}

// ---- at work --------------------------------------------------------------------------------------------------

static void add_row(lesson_state *s, const hr_lesson_row *row)
{
    add(s, "  %s %s%s%s%s\n", row->holds ? "yes" : "NO ", row->want, row->have[0] == '\0' ? "" : " (now ",
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

static void add_unlocked(lesson_state *s)
{
    const char *before = "";
    add(s, "\nMay be turned: ");
    for (unsigned k = 0; k < HR_KNOB_COUNT; k++) {
        char now[HR_KNOB_TEXT_MAX];
        if (hr_lesson_unlocks(s->open, (hr_knob_id)k)) {
            add(s, "%s%s=%s", before, hr_knob_rows(NULL)[k].key,
                hr_knob_format(&s->judged, (hr_knob_id)k, now));
            before = ", ";
        }
    }
    add(s, "\nType :set KEY=VALUE to turn one (Tab completes), or turn it on the Bench (1) and come back "
           "(6).\n");
}

static void add_work(lesson_state *s, const hr_lesson_about *about)
{
    if (s->reread > 0) {
        add_page(s, about->pages.data[about->pages.count - s->reread].text);
        return;
    }
    if (!s->has_begun) {
        add(s, "The lesson has a training of its own, %s. Enter begins it.\n", about->preset);
        return;
    }
    if (s->in_sandbox) {
        add(s, "In the sandbox: turn whatever you like, nothing counts. s goes back to where\nyou were.\n\n"
               "In the lesson is wanted:\n");
        for (uint32_t k = 0; k < about->goal_count; k++) {
            add(s, "  -   %s\n", about->goals[k].want);
        }
        return;
    }
    add_goals(s, about);
    if (s->tries) {
        add(s, "  ...\n");
    }
    add_unlocked(s);
    if (s->hint > 0) {
        add(s, "\nHint %u of %d:\n", s->hint, HR_LESSON_HINTS);
        add_page(s, about->hints.data[s->hint - 1].text);
    } else {
        add(s, "h gives a hint, s a sandbox, ← the pages again.\n");
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
    if (s->begins) {
        add(s, "One moment: what this lesson shows is being planned.\n");
        return;
    }
    if (s->is_broken) {
        add(s, "This lesson cannot be played here: %s\n", s->wrong);
        return;
    }
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

// ---- in a line ------------------------------------------------------------------------------------------------

// The first goal that is not reached; of what may not be turned, where it was.
static const char *wanted(const lesson_state *s)
{
    const hr_lesson_about *about = hr_lesson_tell(s->open);
    for (uint32_t k = 0; s->is_judged && k < s->verdict.count; k++) {
        if (!s->verdict.rows[k].holds) {
            return s->verdict.rows[k].want;
        }
    }
    return about->goals[0].want;
}

void learn_line(const learn_state *l, char *line, size_t size)
{
    const lesson_state *s = &l->lesson;
    const char *title = hr_lesson_tell(s->open)->title;
    if (s->phase == LESSON_AFTER) {
        (void)snprintf(line, size, "6 lesson %s · done: 6 says what is behind it", title);
    } else if (s->in_sandbox) {
        (void)snprintf(line, size, "6 lesson %s · sandbox, nothing counts: s goes back", title);
    } else {
        (void)snprintf(line, size, "6 lesson %s · h hint · %s", title, wanted(s));
    }
}
