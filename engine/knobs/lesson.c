// SPDX-License-Identifier: Apache-2.0
// lesson.yaml, key by key: one row a key, and what a row's value is made of.
#include "knobs/lesson.h"

#include <stdio.h>
#include <string.h>

#include "headroom/words.h"

#include "base/text.h"
#include "knobs/lesson_find.h"
#include "knobs/lesson_values.h"
#include "knobs/search.h"
#include "knobs/yaml.h"

enum { STEPS_MAX = 2000, TITLE_COLUMNS = 32, LINE_COLUMNS = 76 };

// ---- rows of rows ---------------------------------------------------------------------------------------------

// "preset=NAME a.b=1": another preset's knobs in place of the start's.
static hr_lesson_run take_run(lesson_reading *r, const yaml_node *node)
{
    static const char word[] = "preset=";
    hr_lesson_run run = {.name = lesson_keep_text(r, node->key), .pairs = ""};
    yaml_node pairs = *node;
    if (node->kind == YAML_SCALAR && strncmp(node->text, word, sizeof word - 1) == 0) {
        const size_t length = strcspn(node->text, " ");
        char preset[SEARCH_PATH_MAX];
        (void)snprintf(preset, sizeof preset, "%.*s", (int)(length - (sizeof word - 1)),
                       node->text + sizeof word - 1);
        run.preset = lesson_take_preset(r, node, preset);
        pairs.text = node->text + length + strspn(node->text + length, " ");
    }
    run.pairs = lesson_take_pairs(r, &pairs);
    return run;
}

static void take_runs(lesson_reading *r, const yaml_node *node)
{
    hr_lesson_about *about = &r->lesson->about;
    hr_lesson_run *runs = node->kind == YAML_MAPPING ? lesson_memory(r, node->count, sizeof *runs) : NULL;
    if (node->kind != YAML_MAPPING || node->count > HR_LESSON_RUNS_MAX) {
        yaml_problem(r->file, node->line, node->column,
                     "'runs' needs at most %d names with knobs: 'half: batch.size=64'", HR_LESSON_RUNS_MAX);
        return;
    }
    for (const yaml_node *child = node->child; child != NULL && runs != NULL; child = child->next) {
        lesson_check_run_name(r, child);
        runs[about->run_count] = take_run(r, child);
        r->names[r->name_count++] = runs[about->run_count++].name;
    }
    about->runs = runs;
}

static void take_goal(lesson_reading *r, const yaml_node *node, hr_lesson_goal *out)
{
    static const char *const keys[] = {"want", "that"};
    *out = (hr_lesson_goal){"", ""};
    for (const yaml_node *child = node->child; child != NULL && node->kind == YAML_MAPPING;
         child = child->next) {
        if (strcmp(child->key, "want") == 0) {
            out->want = lesson_take_text(r, child);
        } else if (strcmp(child->key, "that") == 0) {
            lesson_check_that(r, child);
            out->that = lesson_take_text(r, child);
        } else {
            lesson_report_unknown(r, child, "a goal", keys, 2);
        }
    }
    if (out->want[0] == '\0' || out->that[0] == '\0') {
        yaml_problem(r->file, node->line, node->column,
                     "a goal says what it wants: 'want' in words, 'that' as a condition");
    }
}

static void take_goals(lesson_reading *r, const yaml_node *node)
{
    hr_lesson_about *about = &r->lesson->about;
    enum { GOALS_MAX = HR_LESSON_ROWS_MAX - 6 }; // guards have rows, too
    hr_lesson_goal *goals = lesson_memory(r, node->count, sizeof *goals);
    if (node->kind != YAML_SEQUENCE || node->count > GOALS_MAX) {
        yaml_problem(r->file, node->line, node->column, "'goals' needs a list of at most %d goals",
                     GOALS_MAX);
        return;
    }
    for (const yaml_node *child = node->child; child != NULL && goals != NULL; child = child->next) {
        take_goal(r, child, &goals[about->goal_count++]);
    }
    about->goals = goals;
}

// A number's answer is an expression, a choice's its number.
static void check_answer(lesson_reading *r, const yaml_node *node, hr_lesson_question *q)
{
    int64_t choice = 0;
    hr_err err = {0};
    if (q->question[0] == '\0' || q->answer[0] == '\0') {
        yaml_problem(r->file, node->line, node->column, "a question has a 'question' and an 'answer'");
    } else if (q->choices.count > 0 &&
               (!text_to_int(q->answer, &choice) || choice < 1 || choice > (int64_t)q->choices.count)) {
        yaml_problem(r->file, node->line, node->column,
                     "'answer' needs the number of a choice, 1 to %u, had '%s'", q->choices.count, q->answer);
    } else if (q->choices.count == 0 &&
               lesson_check_expression(q->answer, r->names, r->name_count, &err) != HR_OK) {
        lesson_report(r, node, &err);
    }
    q->choice = (uint32_t)choice;
}

static double take_within(lesson_reading *r, const yaml_node *node)
{
    double share = 0;
    if (node->kind != YAML_SCALAR || !hr_lesson_read_number(node->text, &share) || share < 0 || share > 1) {
        yaml_problem(r->file, node->line, node->column, "'within' needs a share such as 10%%");
    }
    return share;
}

static void take_question(lesson_reading *r, const yaml_node *node, hr_lesson_question *out)
{
    static const char *const keys[] = {"question", "choices", "answer", "within", "because"};
    *out = (hr_lesson_question){.question = "", .answer = "", .because = "", .within = 0.1};
    for (const yaml_node *child = node->child; child != NULL && node->kind == YAML_MAPPING;
         child = child->next) {
        if (strcmp(child->key, "question") == 0) {
            out->question = lesson_take_text(r, child);
            lesson_check_quotes(r, child);
        } else if (strcmp(child->key, "choices") == 0) {
            lesson_take_texts(r, child, &out->choices);
        } else if (strcmp(child->key, "answer") == 0) {
            out->answer = lesson_take_text(r, child);
        } else if (strcmp(child->key, "because") == 0) {
            out->because = lesson_take_text(r, child);
            out->line = child->line;
            lesson_check_lines(r, child);
        } else if (strcmp(child->key, "within") == 0) {
            out->within = take_within(r, child);
        } else {
            lesson_report_unknown(r, child, "a question", keys, sizeof keys / sizeof *keys);
        }
    }
    check_answer(r, node, out);
}

static void take_questions(lesson_reading *r, const yaml_node *node)
{
    hr_lesson_about *about = &r->lesson->about;
    hr_lesson_question *questions = lesson_memory(r, node->count, sizeof *questions);
    if (node->kind != YAML_SEQUENCE || node->count > HR_LESSON_QUESTIONS_MAX) {
        yaml_problem(r->file, node->line, node->column, "'ask' needs a list of at most %d questions",
                     HR_LESSON_QUESTIONS_MAX);
        return;
    }
    for (const yaml_node *child = node->child; child != NULL && questions != NULL; child = child->next) {
        take_question(r, child, &questions[about->question_count++]);
    }
    about->questions = questions;
}

// ---- keys -----------------------------------------------------------------------------------------------------

typedef enum value_kind {
    VALUE_TEXT,
    VALUE_PRESET,
    VALUE_PAIRS,
    VALUE_COUNT,
    VALUE_CONDITIONS,
    VALUE_UNLOCKED,
    VALUE_PAGES,
    VALUE_LESS,
    VALUE_CLAIMS,
    VALUE_RUNS,
    VALUE_GOALS,
    VALUE_QUESTIONS,
} value_kind;

typedef struct lesson_key {
    const char *key;
    value_kind kind;
    size_t offset; // in hr_lesson_about, where one member takes it
    int64_t most;
    bool optional;
} lesson_key;

#define AT(member) offsetof(hr_lesson_about, member)

// clang-format off
static const lesson_key lesson_keys[] = {
    {"title", VALUE_TEXT, AT(title), 0, false},
    {"line", VALUE_TEXT, AT(line), 0, false},
    {"preset", VALUE_PRESET, AT(preset), 0, false},
    {"knobs", VALUE_PAIRS, AT(knobs), 0, true},
    {"steps", VALUE_COUNT, AT(steps), STEPS_MAX, true},
    {"batch", VALUE_COUNT, AT(batch), 1 << 20, true},
    {"par", VALUE_COUNT, AT(par), 16, false},
    {"runs", VALUE_RUNS, 0, 0, true}, // before all that may speak of them
    {"claims", VALUE_CLAIMS, AT(claims), 0, true},
    {"fails", VALUE_CONDITIONS, AT(fails), 0, false},
    {"facts", VALUE_CONDITIONS, AT(facts), 0, true},
    {"unlocked", VALUE_UNLOCKED, AT(unlocked), 0, false},
    {"ask", VALUE_QUESTIONS, 0, 0, true},
    {"goals", VALUE_GOALS, 0, 0, false},
    {"pages", VALUE_PAGES, AT(pages), 0, false},
    {"after", VALUE_PAGES, AT(after), 0, false},
    {"hints", VALUE_PAGES, AT(hints), 0, false},
    {"solution", VALUE_PAIRS, AT(solution), 0, false},
    {"less", VALUE_LESS, AT(less), 0, true},
};
// clang-format on
enum { KEY_COUNT = sizeof lesson_keys / sizeof *lesson_keys };

static void take_key(lesson_reading *r, const lesson_key *row, const yaml_node *node)
{
    void *place = (char *)&r->lesson->about + row->offset;
    switch (row->kind) {
    case VALUE_TEXT:
        *(const char **)place = lesson_take_text(r, node);
        break;
    case VALUE_PRESET:
        *(const char **)place = lesson_take_preset(r, node, lesson_take_text(r, node));
        break;
    case VALUE_PAIRS:
        *(const char **)place = lesson_take_pairs(r, node);
        break;
    case VALUE_COUNT:
        *(uint32_t *)place = lesson_take_count(r, node, row->most);
        break;
    case VALUE_CONDITIONS:
        lesson_take_conditions(r, node, place);
        break;
    case VALUE_UNLOCKED:
        lesson_take_unlocked(r, node, place);
        break;
    case VALUE_PAGES:
        lesson_take_pages(r, node, place);
        break;
    case VALUE_LESS:
        lesson_take_less(r, node, place);
        break;
    case VALUE_CLAIMS:
        lesson_take_claims(r, node, place);
        break;
    case VALUE_RUNS:
        take_runs(r, node);
        break;
    case VALUE_GOALS:
        take_goals(r, node);
        break;
    case VALUE_QUESTIONS:
        take_questions(r, node);
        break;
    }
}

static void report_unknown_keys(lesson_reading *r, const yaml_node *root)
{
    const char *keys[KEY_COUNT];
    for (size_t k = 0; k < KEY_COUNT; k++) {
        keys[k] = lesson_keys[k].key;
    }
    for (const yaml_node *node = root->child; node != NULL; node = node->next) {
        bool known = false;
        for (size_t k = 0; k < KEY_COUNT; k++) {
            known = known || strcmp(keys[k], node->key) == 0;
        }
        if (!known) {
            lesson_report_unknown(r, node, "a lesson", keys, KEY_COUNT);
        }
    }
}

static void check_not_empty(lesson_reading *r, const lesson_key *row, const yaml_node *node)
{
    if (!row->optional && node->kind == YAML_SEQUENCE && node->count == 0) {
        yaml_problem(r->file, node->line, node->column, "'%s' is empty: a lesson needs one of them",
                     row->key);
    }
}

static void take_keys(lesson_reading *r, const yaml_node *root)
{
    for (size_t k = 0; k < KEY_COUNT; k++) {
        const lesson_key *row = &lesson_keys[k];
        const yaml_node *node = yaml_find(root, row->key);
        if (node != NULL) {
            take_key(r, row, node);
            check_not_empty(r, row, node);
        } else if (!row->optional) {
            yaml_problem(r->file, 1, 1, "this lesson does not say its '%s'", row->key);
        }
    }
    report_unknown_keys(r, root);
}

static void check_size(lesson_reading *r, const yaml_node *root, const char *key, size_t most)
{
    const yaml_node *node = yaml_find(root, key);
    if (node != NULL && node->kind == YAML_SCALAR &&
        hr_lesson_columns(node->text, strlen(node->text)) > most) {
        yaml_problem(r->file, node->line, node->column, "'%s' has at most %zu columns", key, most);
    }
}

static void check_hints(lesson_reading *r, const yaml_node *root)
{
    const yaml_node *node = yaml_find(root, "hints");
    if (node != NULL && r->lesson->about.hints.count != HR_LESSON_HINTS) {
        yaml_problem(r->file, node->line, node->column,
                     "'hints' needs %d of them, from a nudge to the answer, had %u", HR_LESSON_HINTS,
                     r->lesson->about.hints.count);
    }
}

static void take_lesson(lesson_reading *r)
{
    const yaml_node *root = yaml_root(r->file);
    if (root == NULL || root->kind != YAML_MAPPING) {
        if (yaml_problem_count(r->file) == 0) {
            yaml_problem(r->file, 1, 1, "a lesson begins with keys, such as 'title:' and 'preset:'");
        }
        return;
    }
    take_keys(r, root);
    check_size(r, root, "title", TITLE_COLUMNS);
    check_size(r, root, "line", LINE_COLUMNS);
    check_hints(r, root);
}

// ---- the lesson -----------------------------------------------------------------------------------------------

static hr_status open_start(hr_lesson *lesson, char **problems, hr_err *err)
{
    HR_TRY(hr_preset_open(lesson->about.preset, false, &lesson->preset, problems, err));
    lesson->start = *hr_preset_knobs(lesson->preset);
    HR_TRY(hr_knobs_set_pairs(&lesson->start, lesson->about.knobs, err));
    return hr_knobs_validate(&lesson->start, err);
}

static hr_status read_lesson(hr_lesson *lesson, const char *path, char **problems, hr_err *err)
{
    lesson_reading r = {.lesson = lesson, .path = path, .names = {"now", "start"}, .name_count = 2};
    HR_TRY(yaml_open(path, &r.file, err));
    take_lesson(&r);
    hr_status status =
        r.no_memory ? HR_FAIL(err, NOMEM, "no host memory for a lesson") : yaml_status(r.file, err);
    if (status == HR_PRESET) {
        hr_err_try(err, "headroom lesson verify %.200s", path);
        if (problems != NULL) {
            *problems = yaml_problems_text(r.file);
        }
    }
    yaml_close(r.file);
    return status == HR_OK ? open_start(lesson, problems, err) : status;
}

hr_status hr_lesson_open(const char *word, hr_lesson **out, char **problems, hr_err *err)
{
    char path[SEARCH_PATH_MAX];
    if (problems != NULL) {
        *problems = NULL;
    }
    HR_TRY(lesson_find(word, path, err));
    hr_lesson *lesson = hr_calloc(1, sizeof *lesson);
    if (lesson == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a lesson");
    }
    lesson_name_of(path, lesson->about.name, sizeof lesson->about.name);
    lesson->about.knobs = "";
    lesson->about.steps = 2;
    hr_status status = read_lesson(lesson, path, problems, err);
    if (status != HR_OK) {
        hr_lesson_close(lesson);
        return status;
    }
    *out = lesson;
    return HR_OK;
}

void hr_lesson_close(hr_lesson *lesson)
{
    if (lesson != NULL) {
        hr_preset_close(lesson->preset);
        arena_deinit(&lesson->memory);
        hr_free(lesson);
    }
}

bool hr_lesson_starts_from(const hr_lesson *lesson, const hr_preset *preset)
{
    return strcmp(hr_preset_path(lesson->preset), hr_preset_path(preset)) == 0;
}

const hr_lesson_about *hr_lesson_tell(const hr_lesson *lesson)
{
    return &lesson->about;
}
