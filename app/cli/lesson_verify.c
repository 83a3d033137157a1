// SPDX-License-Identifier: Apache-2.0
// What a lesson promises, proved by doing it: its start fails for the reason stated, its solution passes, doing less does not,
// its text is true and fits, and its first hints do not give the answer away.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "app/cli/interrupt.h"
#include "app/cli/lesson.h"
#include "app/cli/lesson_show.h"

enum { CONDITION_MAX = 1024 };

typedef struct proof {
    const hr_lesson *lesson;
    const hr_lesson_about *about;
    hr_lesson_table *table;
    unsigned broken;   // promises that are not kept
    unsigned attempts; // that do less, and did not pass
} proof;

static void breaks(proof *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void breaks(proof *p, const char *format, ...)
{
    va_list arguments;
    if (p->broken++ == 0) {
        printf("%-28s does not keep what it promises:\n", p->about->name);
    }
    fputs("  ", stdout);
    va_start(arguments, format);
    (void)vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

static const hr_lesson_runs *runs_of(const proof *p)
{
    return hr_lesson_table_runs(p->table);
}

// ---- conditions -----------------------------------------------------------------------------------------------

static hr_status expect_conditions(proof *p, const hr_lesson_texts *conditions, const char *what, hr_err *err)
{
    for (uint32_t k = 0; k < conditions->count; k++) {
        bool holds = false;
        const char *condition = conditions->data[k].text;
        HR_TRY(hr_lesson_holds(condition, runs_of(p), &holds, err));
        if (!holds) {
            char left[CONDITION_MAX], said[HR_LESSON_VALUE_TEXT_MAX];
            hr_lesson_value value = {.kind = HR_LESSON_UNKNOWN};
            (void)snprintf(left, sizeof left, "%.*s", (int)strcspn(condition, "=!<>"), condition);
            HR_TRY(hr_lesson_evaluate(left, runs_of(p), &value, err));
            breaks(p, "line %u: %s does not hold: %s (it is %s)", conditions->data[k].line, what, condition,
                   hr_lesson_say(&value, said));
        }
    }
    return HR_OK;
}

static hr_status check_start(proof *p, hr_err *err)
{
    hr_lesson_verdict v;
    HR_TRY(expect_conditions(p, &p->about->fails, "of its start", err));
    HR_TRY(hr_lesson_judge(p->lesson, runs_of(p), &v, err));
    if (v.passed) {
        breaks(p, "its start reaches all goals");
    }
    return HR_OK;
}

static hr_status check_questions(proof *p, hr_err *err)
{
    for (uint32_t k = 0; k < p->about->question_count; k++) {
        hr_lesson_value value;
        const hr_lesson_question *q = &p->about->questions[k];
        if (q->choice > 0) {
            continue;
        }
        HR_TRY(hr_lesson_evaluate(q->answer, runs_of(p), &value, err));
        if (value.kind == HR_LESSON_UNKNOWN || value.kind == HR_LESSON_WORD) {
            breaks(p, "question %u: its answer is no number: %s", k + 1, q->answer);
        }
    }
    return HR_OK;
}

// ---- attempts -------------------------------------------------------------------------------------------------

// The start's knobs with these, or what the engine says to them in *refused (OK: nothing): both are answers. Else it fails.
static hr_status attempt(proof *p, const char *pairs, hr_lesson_verdict *v, hr_err *refused, hr_err *err)
{
    hr_knobs knobs;
    *v = (hr_lesson_verdict){.passed = false};
    *refused = (hr_err){.status = HR_OK};
    hr_status status = hr_lesson_knobs(p->lesson, pairs, &knobs, refused);
    status = status == HR_OK ? hr_lesson_try(p->table, &knobs, refused) : status;
    if (status == HR_INTERRUPTED || status == HR_NOMEM) {
        *err = *refused;
        return status;
    }
    return status == HR_OK ? hr_lesson_judge(p->lesson, runs_of(p), v, err) : HR_OK;
}

static hr_status check_solution(proof *p, hr_err *err)
{
    hr_lesson_verdict v;
    hr_err refused;
    HR_TRY(attempt(p, p->about->solution, &v, &refused, err));
    if (refused.status != HR_OK) {
        breaks(p, "its solution is refused: %s", refused.sentence);
    }
    for (uint32_t k = 0; k < v.count; k++) {
        if (!v.rows[k].holds) {
            breaks(p, "its solution does not pass: %s%s%s%s", v.rows[k].want,
                   v.rows[k].have[0] == '\0' ? "" : " (", v.rows[k].have,
                   v.rows[k].have[0] == '\0' ? "" : ")");
        }
    }
    if (v.turned > p->about->par) {
        breaks(p, "its par is %u, and its solution turns %u knobs", p->about->par, v.turned);
    }
    return HR_OK;
}

static hr_status expect_failure(proof *p, const char *pairs, const char *what, hr_err *err)
{
    hr_lesson_verdict v;
    hr_err refused;
    HR_TRY(attempt(p, pairs, &v, &refused, err));
    p->attempts += !v.passed;
    if (v.passed) {
        breaks(p, "doing less passes: %s", what);
    }
    return HR_OK;
}

// The solution with half the samples, which every lesson has to refuse.
static hr_status check_half(proof *p, hr_err *err)
{
    hr_knobs knobs;
    char half[CONDITION_MAX + 64];
    if (hr_lesson_knobs(p->lesson, p->about->solution, &knobs, NULL) != HR_OK) {
        return HR_OK; // said of the solution
    }
    const int64_t batch = hr_knob_int(&knobs, HR_KNOB_BATCH_SIZE);
    (void)snprintf(half, sizeof half, "%s batch.size=%lld", p->about->solution, (long long)(batch / 2));
    if (batch < 2 || hr_lesson_knobs(p->lesson, half, &knobs, NULL) != HR_OK) {
        return HR_OK;
    }
    return expect_failure(p, half, "its solution with half the batch", err);
}

// And a run that stops before its last step.
static hr_status check_fewer_steps(proof *p, hr_err *err)
{
    hr_lesson_verdict v;
    hr_lesson_events *events = &runs_of(p)->seen[0]->events;
    const uint64_t steps = events->done;
    events->done = p->about->steps - 1;
    const hr_status status = hr_lesson_judge(p->lesson, runs_of(p), &v, err);
    events->done = steps;
    if (status == HR_OK && v.passed) {
        breaks(p, "doing less passes: a step less");
    }
    return status;
}

static hr_status check_less(proof *p, hr_err *err)
{
    for (uint32_t k = 0; k < p->about->less.count; k++) {
        const char *pairs = p->about->less.data[k].text;
        HR_TRY(expect_failure(p, pairs, pairs, err));
    }
    return check_half(p, err);
}

// ---- text -----------------------------------------------------------------------------------------------------

static hr_status check_page(proof *p, const hr_lesson_text *page, hr_err *err)
{
    char *filled = NULL;
    unsigned lines = 0;
    HR_TRY(hr_lesson_fill(page->text, runs_of(p), &filled, err));
    for (const char *at = filled; *at != '\0'; lines++) {
        const size_t bytes = strcspn(at, "\n");
        if (hr_lesson_columns(at, bytes) > HR_LESSON_PAGE_COLUMNS) {
            breaks(p, "line %u: with its figures it is longer than %d columns: %.*s", page->line + 1 + lines,
                   HR_LESSON_PAGE_COLUMNS, (int)bytes, at);
        }
        at += bytes + (at[bytes] == '\n');
    }
    if (lines > HR_LESSON_PAGE_LINES) {
        breaks(p, "line %u: the page has %u lines, more than %d", page->line, lines, HR_LESSON_PAGE_LINES);
    }
    if (strstr(filled, "unknown") != NULL) {
        breaks(p, "line %u: a figure of the page is not known", page->line);
    }
    hr_lesson_text_free(filled);
    return HR_OK;
}

static hr_status check_pages(proof *p, const hr_lesson_texts *pages, hr_err *err)
{
    for (uint32_t k = 0; k < pages->count; k++) {
        HR_TRY(check_page(p, &pages->data[k], err));
    }
    return HR_OK;
}

// A question is one paragraph, and its answer a page: they are filled with what is so at the start.
static hr_status check_question_texts(proof *p, hr_err *err)
{
    for (uint32_t k = 0; k < p->about->question_count; k++) {
        const hr_lesson_question *q = &p->about->questions[k];
        char *question = NULL;
        HR_TRY(hr_lesson_fill(q->question, runs_of(p), &question, err));
        if (strstr(question, "unknown") != NULL) {
            breaks(p, "question %u: a figure of it is not known: %s", k + 1, question);
        }
        hr_lesson_text_free(question);
        HR_TRY(check_page(p, &(hr_lesson_text){q->because, q->line}, err));
    }
    return HR_OK;
}

static bool names_word(const char *words, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = strstr(words, word); at != NULL; at = strstr(at + 1, word)) {
        static const char inside[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
        const bool begins = at == words || strchr(inside, at[-1]) == NULL;
        if (begins && (at[length] == '\0' || strchr(inside, at[length]) == NULL)) {
            return true;
        }
    }
    return false;
}

// "on" and "off" stand in every other sentence: they tell nothing without the key.
static void check_hint(proof *p, uint32_t index, const char *pair)
{
    const char *hint = p->about->hints.data[index].text, *value = strchr(pair, '=');
    if (value == NULL) {
        return;
    }
    const bool plain = strcmp(value + 1, "on") == 0 || strcmp(value + 1, "off") == 0;
    if (strstr(hint, pair) != NULL || (!plain && names_word(hint, value + 1))) {
        breaks(p, "hint %u gives the answer away: %s", index + 1, pair);
    }
}

static void check_hints(proof *p)
{
    for (uint32_t k = 0; k + 1 < p->about->hints.count; k++) {
        char pairs[1024], *rest = NULL;
        (void)snprintf(pairs, sizeof pairs, "%s", p->about->solution);
        for (char *pair = strtok_r(pairs, " \n", &rest); pair != NULL; pair = strtok_r(NULL, " \n", &rest)) {
            check_hint(p, k, pair);
        }
    }
}

// ---- all of it ------------------------------------------------------------------------------------------------

static hr_status prove(proof *p, hr_err *err)
{
    HR_TRY(check_start(p, err));
    HR_TRY(check_questions(p, err));
    HR_TRY(check_question_texts(p, err));
    HR_TRY(check_pages(p, &p->about->pages, err));
    HR_TRY(check_pages(p, &p->about->hints, err));
    HR_TRY(check_solution(p, err));
    HR_TRY(check_fewer_steps(p, err));
    HR_TRY(check_pages(p, &p->about->after, err));
    HR_TRY(expect_conditions(p, &p->about->facts, "as it claims", err));
    HR_TRY(check_less(p, err));
    check_hints(p);
    return HR_OK;
}

hr_status lesson_verify(const hr_lesson *lesson, bool *kept, hr_err *err)
{
    proof p = {.lesson = lesson, .about = hr_lesson_tell(lesson)};
    interrupt_watch();
    HR_TRY(hr_lesson_begin(lesson, &lesson_until_signal, &p.table, err));
    const hr_status status = prove(&p, err);
    hr_lesson_end(p.table);
    HR_TRY(status);
    if (p.broken == 0) {
        printf("%-28s start fails, solution passes, %u that do less do not, %u facts hold\n", p.about->name,
               p.attempts, p.about->facts.count);
    }
    *kept = p.broken == 0;
    return HR_OK;
}
