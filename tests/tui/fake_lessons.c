// SPDX-License-Identifier: Apache-2.0
// hr_lesson_* of the scripted engine: two lessons that need no files. The first is passed with a batch of 128.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/lesson.h"

#include "tests/tui/fake_engine.h"

#define TEXTS(...)                                                                                           \
    {                                                                                                        \
        (const hr_lesson_text[]){__VA_ARGS__},                                                               \
            sizeof((const hr_lesson_text[]){__VA_ARGS__}) / sizeof(hr_lesson_text)                           \
    }

struct hr_lesson {
    hr_lesson_about about;
};

struct hr_lesson_table {
    hr_lesson_runs runs;
    hr_lesson_seen now;
};

static const hr_lesson_question question = {.question = "What grows with the batch?",
                                            .choices = TEXTS({"weights", 0}, {"activations", 0}),
                                            .choice = 2,
                                            .answer = "2",
                                            .because = "Weights are the same at every batch.\n"};
static const hr_lesson_goal goal = {"the largest batch that fits", "knobs.batch.size = 128"};

static struct hr_lesson lessons[] = {
    {{.name = "05-batch-size",
      .title = "Batch size",
      .line = "activations grow with the batch, weights do not",
      .preset = "wide",
      .knobs = "",
      .steps = 2,
      .par = 1,
      .solution = "batch.size=128",
      .unlocked = TEXTS({"batch.size", 0}),
      .pages = TEXTS({"A training step holds two kinds of things.\n", 0},
                     {"Here is a batch that does not fit.\n", 0}),
      .after = TEXTS({"Half of it does.\n", 0}),
      .hints = TEXTS({"Less.\n", 0}, {"Half of it.\n", 0}, {"set batch.size=128\n", 0}),
      .questions = &question,
      .question_count = 1,
      .goals = &goal,
      .goal_count = 1}},
    {{.name = "06-mixed-precision",
      .title = "Mixed precision",
      .line = "half the bytes of activations, and none less of the optimizer",
      .preset = "demo",
      .knobs = "",
      .steps = 2,
      .par = 1,
      .solution = "precision.policy=mixed_bfloat16",
      .unlocked = TEXTS({"precision.policy", 0}),
      .pages = TEXTS({"Kernels compute with 16-bit numbers.\n", 0}),
      .after = TEXTS({"Done.\n", 0}),
      .hints = TEXTS({"a\n", 0}, {"b\n", 0}, {"c\n", 0}),
      .goals = &goal,
      .goal_count = 1}},
};

enum { LESSONS = sizeof lessons / sizeof *lessons };

static void copy(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%.*s", (int)size - 1, from);
}

hr_status hr_lesson_list(hr_lesson_entry **entries, size_t *count, hr_err *err)
{
    *count = LESSONS;
    *entries = calloc(LESSONS, sizeof **entries);
    if (*entries == NULL) {
        return HR_FAIL(err, NOMEM, "no memory for %d lessons", LESSONS);
    }
    for (size_t k = 0; k < LESSONS; k++) {
        copy((*entries)[k].name, sizeof(*entries)[k].name, lessons[k].about.name);
        copy((*entries)[k].title, sizeof(*entries)[k].title, lessons[k].about.title);
        copy((*entries)[k].line, sizeof(*entries)[k].line, lessons[k].about.line);
    }
    return HR_OK;
}

void hr_lesson_list_free(hr_lesson_entry *entries)
{
    free(entries);
}

hr_status hr_lesson_open(const char *lesson, hr_lesson **out, char **problems, hr_err *err)
{
    (void)problems;
    for (size_t k = 0; k < LESSONS; k++) {
        if (strcmp(lessons[k].about.name, lesson) == 0) {
            *out = &lessons[k];
            return HR_OK;
        }
    }
    return HR_FAIL(err, USAGE, "there is no lesson '%s'", lesson);
}

void hr_lesson_close(hr_lesson *lesson)
{
    (void)lesson;
}

const hr_lesson_about *hr_lesson_tell(const hr_lesson *lesson)
{
    return &lesson->about;
}

hr_status hr_lesson_knobs(const hr_lesson *lesson, const char *pairs, hr_knobs *out, hr_err *err)
{
    hr_preset *preset = NULL;
    HR_TRY(hr_preset_open(lesson->about.preset, false, &preset, NULL, err));
    *out = *hr_preset_knobs(preset);
    return hr_knobs_set_pairs(out, pairs, err);
}

hr_status hr_lesson_begin(const hr_lesson *lesson, const hr_lesson_watch *watch, hr_lesson_table **out,
                          hr_err *err)
{
    (void)lesson;
    (void)watch;
    *out = calloc(1, sizeof **out);
    if (*out == NULL) {
        return HR_FAIL(err, NOMEM, "no memory for a lesson");
    }
    (*out)->runs = (hr_lesson_runs){.seen = {&(*out)->now}, .count = 1};
    return HR_OK;
}

static unsigned played;

unsigned fake_lessons_played(void)
{
    return played;
}

bool hr_lesson_starts_from(const hr_lesson *lesson, const hr_preset *preset)
{
    return strcmp(lesson->about.preset, hr_preset_name(preset)) == 0;
}

// The first lesson's batch may be turned, and nothing else.
bool hr_lesson_judge_knobs(const hr_lesson *lesson, const hr_knobs *knobs, hr_lesson_verdict *out)
{
    hr_knobs start;
    *out = (hr_lesson_verdict){.passed = hr_lesson_knobs(lesson, "", &start, NULL) == HR_OK};
    for (unsigned k = 0; k < HR_KNOB_COUNT && out->passed; k++) {
        char before[HR_KNOB_TEXT_MAX], after[HR_KNOB_TEXT_MAX];
        if (k != HR_KNOB_BATCH_SIZE && strcmp(hr_knob_format(&start, (hr_knob_id)k, before),
                                              hr_knob_format(knobs, (hr_knob_id)k, after)) != 0) {
            out->passed = false;
            out->count = 1;
            (void)snprintf(out->rows[0].want, sizeof out->rows[0].want, "%s stays %.60s here",
                           hr_knob_rows(NULL)[k].key, before);
            (void)snprintf(out->rows[0].have, sizeof out->rows[0].have, "only the batch may be turned in it");
        }
    }
    return out->passed;
}

hr_status hr_lesson_try(hr_lesson_table *table, const hr_knobs *knobs, hr_err *err)
{
    (void)err;
    played++;
    table->now.knobs = *knobs;
    return HR_OK;
}

const hr_lesson_runs *hr_lesson_table_runs(const hr_lesson_table *table)
{
    return &table->runs;
}

hr_status hr_lesson_begin_beside(const hr_lesson *lesson, hr_lesson_table **out, hr_err *err)
{
    return hr_lesson_begin(lesson, &(hr_lesson_watch){.goes_on = NULL}, out, err);
}

hr_status hr_lesson_try_beside(hr_lesson_table *table, const hr_knobs *knobs, hr_err *err)
{
    return hr_lesson_try(table, knobs, err);
}

// As long as a test wants it to take.
static unsigned looks_to_come;
static const char *reason; // why the next play fails; NULL: it does not

void fake_lessons_fail(const char *why)
{
    reason = why;
}

void fake_lessons_take(unsigned looks)
{
    looks_to_come = looks;
}

bool hr_lesson_is_done(hr_lesson_table *table, bool waits, hr_status *status, hr_err *err)
{
    (void)table;
    *status = reason == NULL ? HR_OK : HR_FAIL(err, NOMEM, "%s", reason);
    looks_to_come -= looks_to_come > 0;
    return waits || looks_to_come == 0;
}

bool hr_lesson_unlocks(const hr_lesson *lesson, hr_knob_id knob)
{
    return strcmp(lesson->about.unlocked.data[0].text, hr_knob_rows(NULL)[knob].key) == 0;
}

void hr_lesson_end(hr_lesson_table *table)
{
    free(table);
}

hr_status hr_lesson_judge(const hr_lesson *lesson, const hr_lesson_runs *runs, hr_lesson_verdict *out,
                          hr_err *err)
{
    (void)lesson;
    (void)err;
    const bool holds = hr_knob_int(&runs->seen[0]->knobs, HR_KNOB_BATCH_SIZE) == 128;
    *out = (hr_lesson_verdict){.count = 1, .turned = 1, .passed = holds};
    out->rows[0].holds = holds;
    (void)snprintf(out->rows[0].want, sizeof out->rows[0].want, "%s", goal.want);
    return HR_OK;
}

hr_status hr_lesson_evaluate(const char *expression, const hr_lesson_runs *runs, hr_lesson_value *out,
                             hr_err *err)
{
    (void)runs;
    (void)err;
    *out = (hr_lesson_value){.kind = HR_LESSON_COUNT, .number = strtod(expression, NULL)};
    return HR_OK;
}

const char *hr_lesson_say(const hr_lesson_value *value, char said[HR_LESSON_VALUE_TEXT_MAX])
{
    (void)snprintf(said, HR_LESSON_VALUE_TEXT_MAX, "%g", value->number);
    return said;
}

hr_status hr_lesson_fill(const char *page, const hr_lesson_runs *runs, char **out, hr_err *err)
{
    (void)runs;
    *out = strdup(page);
    return *out != NULL ? HR_OK : HR_FAIL(err, NOMEM, "no memory for a page");
}

void hr_lesson_text_free(char *page)
{
    free(page);
}
