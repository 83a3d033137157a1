// SPDX-License-Identifier: Apache-2.0
// A lesson at the terminal: pages, questions, then an experiment of a line a command. Without a terminal the commands come
// from stdin and nothing is asked for.
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/units.h"
#include "headroom/words.h"

#include "app/cli/interrupt.h"
#include "app/cli/lesson.h"
#include "app/cli/lesson_show.h"
#include "app/cli/say.h"
#include "app/cli/state.h"

enum { LINE_MAX_BYTES = 512 };

typedef struct talk {
    const hr_lesson *lesson;
    const hr_lesson_about *about;
    hr_lesson_table *table;
    hr_knobs knobs;  // as they are turned
    hr_knobs parked; // what they were when the sandbox was entered
    bool in_sandbox, has_run, passed, wants_next, left, at_terminal;
    uint32_t hints;                          // that were shown now
    double guessed[HR_LESSON_QUESTIONS_MAX]; // NaN: nothing was said
    hr_lesson_progress progress;
    char state[PATH_MAX]; // "": nothing is remembered
} talk;

// A command of the experiment.
typedef struct talk_command {
    const char *word, *takes, *line;
    hr_status (*act)(talk *t, const char *rest, hr_err *err);
} talk_command;

static void remember(const talk *t)
{
    if (t->state[0] != '\0') {
        hr_lesson_progress_write(t->state, t->about->name, &t->progress);
    }
}

// The next line without blanks around it; false at the end of what is said.
static bool listen(talk *t, const char *prompt, char line[LINE_MAX_BYTES])
{
    if (t->at_terminal) {
        printf("%s ", prompt);
    }
    (void)fflush(stdout);
    if (fgets(line, LINE_MAX_BYTES, stdin) == NULL) {
        t->left = true;
        return false;
    }
    size_t length = strlen(line);
    while (length > 0 && strchr(" \t\r\n", line[length - 1]) != NULL) {
        line[--length] = '\0';
    }
    const size_t blanks = strspn(line, " \t");
    memmove(line, line + blanks, length - blanks + 1);
    return true;
}

static const hr_lesson_runs *runs_of(const talk *t)
{
    return hr_lesson_table_runs(t->table);
}

// ---- pages and questions --------------------------------------------------------------------------------------

static hr_status show_pages(talk *t, const hr_lesson_texts *pages, bool waits_at_end, hr_err *err)
{
    char line[LINE_MAX_BYTES];
    for (uint32_t k = 0; k < pages->count && !t->left; k++) {
        HR_TRY(lesson_show_page(pages->data[k].text, runs_of(t), err));
        if (t->at_terminal && (k + 1 < pages->count || waits_at_end)) {
            (void)listen(t, "  Enter goes on", line);
        }
    }
    return HR_OK;
}

static bool is_answer(const hr_lesson_question *q, const char *typed, double *guessed)
{
    return hr_lesson_read_number(typed, guessed) &&
           (q->choices.count == 0 ||
            (*guessed >= 1 && *guessed <= q->choices.count && floor(*guessed) == *guessed));
}

static hr_status print_question(const talk *t, const hr_lesson_question *q, hr_err *err)
{
    char *question = NULL;
    HR_TRY(hr_lesson_fill(q->question, runs_of(t), &question, err));
    fputs("  ? ", stdout);
    say_paragraph(question, 4);
    hr_lesson_text_free(question);
    for (uint32_t k = 0; k < q->choices.count; k++) {
        printf("    %u  ", k + 1);
        say_paragraph(q->choices.data[k].text, 7);
    }
    return HR_OK;
}

// Of a size: the unit in which its answer is said, which a number alone is taken in. "": it is no size.
static void unit_of(const talk *t, const hr_lesson_question *q, char unit[8])
{
    hr_lesson_value value = {.kind = HR_LESSON_UNKNOWN};
    char said[HR_LESSON_VALUE_TEXT_MAX];
    unit[0] = '\0';
    if (q->choices.count == 0 && hr_lesson_evaluate(q->answer, runs_of(t), &value, NULL) == HR_OK &&
        value.kind == HR_LESSON_BYTES) {
        const char *blank = strrchr(hr_lesson_say(&value, said), ' ');
        (void)snprintf(unit, 8, "%s", blank == NULL ? "B" : blank + 1);
    }
}

static bool take_guess(const hr_lesson_question *q, const char *typed, const char *unit, double *guessed)
{
    char sized[LINE_MAX_BYTES + 8];
    const bool is_number = strspn(typed, "0123456789., _") == strlen(typed);
    (void)snprintf(sized, sizeof sized, "%s%s", typed, is_number ? unit : "");
    return is_answer(q, sized, guessed);
}

static hr_status ask(talk *t, uint32_t index, hr_err *err)
{
    const hr_lesson_question *q = &t->about->questions[index];
    char line[LINE_MAX_BYTES], prompt[64], unit[8];
    t->guessed[index] = (double)NAN;
    unit_of(t, q, unit);
    (void)snprintf(prompt, sizeof prompt, "  your %s%s%s:", q->choices.count > 0 ? "number" : "guess",
                   unit[0] != '\0' ? ", in " : "", unit);
    HR_TRY(print_question(t, q, err));
    while (listen(t, prompt, line)) {
        double guessed = (double)NAN;
        if (strcmp(line, "q") == 0 || strcmp(line, "quit") == 0) {
            t->left = true;
            break;
        }
        if (line[0] == '\0' || take_guess(q, line, unit, &guessed)) {
            t->guessed[index] = guessed;
            break;
        }
        puts(q->choices.count > 0 ? "    the number of one of them; Enter alone passes, q leaves"
                                  : "    a number or a size, such as 48MiB; Enter alone passes, q leaves");
    }
    return HR_OK;
}

// What was guessed beside what is so.
static hr_status answer(const talk *t, uint32_t index, hr_err *err)
{
    const hr_lesson_question *q = &t->about->questions[index];
    const double guessed = t->guessed[index];
    char said[HR_LESSON_VALUE_TEXT_MAX];
    hr_lesson_value value = {.number = q->choice};
    if (q->choice == 0) {
        HR_TRY(hr_lesson_evaluate(q->answer, runs_of(t), &value, err));
    }
    const bool right = fabs(guessed - value.number) <= (q->choice > 0 ? 0 : q->within * fabs(value.number));
    printf("  %s ", isnan(guessed) ? "Answer:" : right ? "Right:" : "No, it is");
    say_paragraph(q->choice > 0 ? q->choices.data[q->choice - 1].text : hr_lesson_say(&value, said), 10);
    return q->because[0] == '\0' ? HR_OK : lesson_show_page(q->because, runs_of(t), err);
}

// ---- commands -------------------------------------------------------------------------------------------------

static hr_status show_goals(talk *t, const char *rest, hr_err *err)
{
    hr_lesson_verdict v;
    (void)rest;
    if (!t->has_run || t->in_sandbox) {
        lesson_show_goals(t->about);
        return HR_OK;
    }
    HR_TRY(hr_lesson_judge(t->lesson, runs_of(t), &v, err)); // of the last run
    lesson_show_verdict(&v);
    return HR_OK;
}

static hr_status show_knobs(talk *t, const char *rest, hr_err *err)
{
    if (rest[0] != '\0') {
        return lesson_show_knob(&t->knobs, rest, err);
    }
    lesson_show_knobs(t->lesson, &t->knobs, t->in_sandbox);
    puts("    knobs KEY says what one does, and its values.");
    return HR_OK;
}

static hr_status pass(talk *t, const hr_lesson_verdict *v, hr_err *err)
{
    hr_lesson_progress_pass(&t->progress, v->turned);
    t->passed = true;
    remember(t);
    printf("\n  Done, with %u knob%s turned (par is %u) and %u hint%s.\n\n", v->turned,
           v->turned == 1 ? "" : "s", t->about->par, t->progress.hints, t->progress.hints == 1 ? "" : "s");
    HR_TRY(show_pages(t, &t->about->after, false, err));
    puts("  next opens the next lesson, quit leaves; knobs can still be turned, and run.");
    return HR_OK;
}

static hr_status check(talk *t, const char *rest, hr_err *err)
{
    hr_lesson_verdict v;
    (void)rest;
    if (t->in_sandbox) {
        puts("  In the sandbox nothing is checked; back returns to the lesson.");
        return HR_OK;
    }
    if (!t->has_run) {
        puts("  Nothing was run yet: run does it.");
        return HR_OK;
    }
    HR_TRY(hr_lesson_judge(t->lesson, runs_of(t), &v, err));
    lesson_show_verdict(&v);
    return v.passed && !t->passed ? pass(t, &v, err) : HR_OK;
}

static hr_status run(talk *t, const char *rest, hr_err *err)
{
    (void)rest;
    HR_TRY(hr_knobs_validate(&t->knobs, err));
    HR_TRY(hr_lesson_try(t->table, &t->knobs, err));
    t->has_run = true;
    if (!t->in_sandbox) {
        t->progress.runs++;
        remember(t);
    }
    lesson_show_run(runs_of(t)->seen[0]);
    return t->in_sandbox ? HR_OK : check(t, "", err);
}

static hr_status set(talk *t, const char *rest, hr_err *err)
{
    hr_knobs turned = t->knobs;
    if (rest[0] == '\0') {
        return show_knobs(t, rest, err);
    }
    HR_TRY(hr_knobs_set_pairs(&turned, rest, err));
    for (unsigned k = 0; k < HR_KNOB_COUNT && !t->in_sandbox; k++) {
        char before[HR_KNOB_TEXT_MAX], after[HR_KNOB_TEXT_MAX];
        const hr_knob_id id = (hr_knob_id)k;
        if (!hr_lesson_unlocks(t->lesson, id) &&
            strcmp(hr_knob_format(&t->knobs, id, before), hr_knob_format(&turned, id, after)) != 0) {
            const hr_status status =
                HR_FAIL(err, KNOB, "%s stays as it is in this lesson", hr_knob_rows(NULL)[k].key);
            hr_err_try(err, "knobs # what may be turned here; sandbox lets you turn everything");
            return status;
        }
    }
    HR_TRY(hr_knobs_validate(&turned, err));
    t->knobs = turned;
    if (t->at_terminal) {
        puts("  Turned; run tries it.");
    }
    return HR_OK;
}

static hr_status hint(talk *t, const char *rest, hr_err *err)
{
    (void)rest;
    const uint32_t index = t->hints < HR_LESSON_HINTS ? t->hints : HR_LESSON_HINTS - 1;
    t->hints = index + 1;
    if (t->hints > t->progress.hints) { // one that was shown some other time is not counted again
        t->progress.hints = t->hints;
        remember(t);
    }
    printf("  Hint %u of %d:\n", index + 1, HR_LESSON_HINTS);
    return lesson_show_page(t->about->hints.data[index].text, runs_of(t), err);
}

static hr_status solution(talk *t, const char *rest, hr_err *err)
{
    (void)rest;
    (void)err;
    if (!t->progress.done && t->progress.hints < HR_LESSON_HINTS) {
        puts("  It is shown when the lesson is done, or behind the last hint: hint.");
    } else {
        printf("  set %s\n", t->about->solution);
    }
    return HR_OK;
}

static hr_status reset(talk *t, const char *rest, hr_err *err)
{
    (void)rest;
    HR_TRY(hr_lesson_knobs(t->lesson, "", &t->knobs, err));
    puts("  All knobs are as at the start.");
    return HR_OK;
}

static hr_status sandbox(talk *t, const char *rest, hr_err *err)
{
    (void)rest;
    (void)err;
    if (!t->in_sandbox) {
        t->parked = t->knobs;
        t->in_sandbox = true;
        puts("  Every knob turns now and nothing counts; back returns to where you were.");
    }
    return HR_OK;
}

static hr_status back(talk *t, const char *rest, hr_err *err)
{
    (void)rest;
    if (!t->in_sandbox) {
        puts("  This is the lesson; sandbox leaves it.");
        return HR_OK;
    }
    t->knobs = t->parked;
    t->in_sandbox = false;
    puts("  Back in the lesson, with its knobs as you left them.");
    return hr_lesson_try(t->table, &t->knobs, err);
}

static hr_status next(talk *t, const char *rest, hr_err *err)
{
    (void)rest;
    (void)err;
    if (!t->progress.done) {
        puts("  The next lesson begins when this one is done; q leaves.");
    } else {
        t->wants_next = true;
    }
    return HR_OK;
}

static hr_status pages(talk *t, const char *rest, hr_err *err)
{
    (void)rest;
    return show_pages(t, &t->about->pages, false, err);
}

static hr_status quit(talk *t, const char *rest, hr_err *err)
{
    (void)rest;
    (void)err;
    t->left = true;
    return HR_OK;
}

static hr_status help(talk *t, const char *rest, hr_err *err);

static const talk_command commands[] = {
    {"set", "KEY=VALUE", "turn a knob; with nothing behind it, what may be turned", set},
    {"run", "", "plan or train it as it stands, and check", run},
    {"check", "", "which goals are reached", check},
    {"goal", "", "what is wanted", show_goals},
    {"knobs", "[KEY]", "what may be turned, and how it stands; what one does", show_knobs},
    {"hint", "", "three of them, each says more; they are counted", hint},
    {"solution", "", "when it is done, or behind the last hint", solution},
    {"reset", "", "all knobs as at the start", reset},
    {"sandbox", "", "turn whatever you like; nothing counts", sandbox},
    {"back", "", "from the sandbox to where you were", back},
    {"pages", "", "the text again", pages},
    {"next", "", "the next lesson, once this one is done", next},
    {"quit", "", "leave; what was done is remembered", quit},
    {"help", "", "this list", help},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static hr_status help(talk *t, const char *rest, hr_err *err)
{
    (void)t;
    (void)rest;
    (void)err;
    for (size_t k = 0; k < COMMANDS; k++) {
        printf("  %-8s %-10s %s\n", commands[k].word, commands[k].takes, commands[k].line);
    }
    puts("  A first letter will do (sa: sandbox, so: solution), and KEY=VALUE without set.");
    return HR_OK;
}

// The first that begins so: "s" is set, "sa" sandbox.
static const talk_command *find_command(const char *word, size_t length)
{
    for (size_t k = 0; k < COMMANDS && length > 0; k++) {
        if (strncmp(commands[k].word, word, length) == 0) {
            return &commands[k];
        }
    }
    return NULL;
}

static hr_status refuse(const char *word, size_t length, hr_err *err)
{
    const char *words[COMMANDS];
    char typed[LINE_MAX_BYTES];
    for (size_t k = 0; k < COMMANDS; k++) {
        words[k] = commands[k].word;
    }
    (void)snprintf(typed, sizeof typed, "%.*s", (int)length, word);
    const char *near = hr_word_nearest(typed, words, COMMANDS);
    (void)HR_FAIL(err, USAGE, "a lesson has no '%.40s'%s%s%s", typed, near == NULL ? "" : " — did you mean '",
                  near == NULL ? "" : near, near == NULL ? "" : "'?");
    hr_err_try(err, "%s", near == NULL ? "help" : near);
    return HR_USAGE;
}

static hr_status obey(talk *t, const char *line, hr_err *err)
{
    const size_t length = strcspn(line, " ");
    const talk_command *command = find_command(line, length);
    if (line[0] == '\0' || line[0] == '#') {
        return HR_OK;
    }
    if (command == NULL && memchr(line, '=', length) != NULL) {
        return set(t, line, err);
    }
    return command == NULL ? refuse(line, length, err)
                           : command->act(t, line + length + strspn(line + length, " "), err);
}

// ---- the whole of it ------------------------------------------------------------------------------------------

static hr_status predict(talk *t, hr_err *err)
{
    const uint32_t count = t->about->question_count;
    for (uint32_t k = 0; k < count && !t->left; k++) {
        HR_TRY(ask(t, k, err));
    }
    for (uint32_t k = 0; k < count && !t->left; k++) {
        HR_TRY(answer(t, k, err));
    }
    return HR_OK;
}

// Wrong words are said and the lesson goes on. A signal ends the program: what was done is remembered as it is done.
static hr_status experiment(talk *t, hr_err *err)
{
    char line[LINE_MAX_BYTES];
    puts("  As it stands:");
    lesson_show_run(runs_of(t)->seen[1]);
    lesson_show_goals(t->about);
    puts("  set KEY=VALUE, run, hint, knobs, sandbox, quit; help says all of them.");
    while (!t->left && !t->wants_next && listen(t, t->in_sandbox ? "sandbox>" : "lesson>", line)) {
        hr_err wrong = {0};
        const hr_status status = obey(t, line, &wrong);
        if (status == HR_NOMEM) {
            *err = wrong;
            return status;
        }
        if (status != HR_OK) {
            fputs("  ", stdout);
            say_paragraph(wrong.sentence, 2);
            const bool is_option = strncmp(wrong.hint, "-s ", 3) == 0; // here it is a command
            printf("  try: %s", is_option ? "set " : "");
            say_paragraph(is_option               ? wrong.hint + 3
                          : wrong.hint[0] != '\0' ? wrong.hint
                                                  : hr_status_try(status),
                          7);
        }
    }
    return HR_OK;
}

hr_status lesson_talk(const hr_lesson *lesson, bool *passed, bool *wants_next, hr_err *err)
{
    talk t = {.lesson = lesson, .about = hr_lesson_tell(lesson), .at_terminal = isatty(STDIN_FILENO) != 0};
    if (!state_lessons_path(t.state, sizeof t.state)) {
        t.state[0] = '\0';
    }
    hr_lesson_progress_read(t.state, t.about->name, &t.progress);
    HR_TRY(hr_lesson_begin(lesson, &(hr_lesson_watch){.goes_on = NULL}, &t.table, err));
    printf("\n  %s: %s\n\n", t.about->name, t.about->title);
    hr_status status = hr_lesson_knobs(lesson, "", &t.knobs, err);
    status = status == HR_OK ? show_pages(&t, &t.about->pages, t.about->question_count == 0, err) : status;
    status = status == HR_OK ? predict(&t, err) : status;
    status = status == HR_OK && !t.left ? experiment(&t, err) : status;
    hr_lesson_end(t.table);
    *passed = t.passed;
    *wants_next = t.wants_next;
    return status;
}
