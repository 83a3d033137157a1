// SPDX-License-Identifier: Apache-2.0
// Promises of headroom/lesson.h: what a condition says of runs, what is wrong with a lesson's file is said at its place, goals are not
// reached by doing less, and progress is remembered.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headroom/lesson.h"
#include "headroom/terms.h"

#include "base/host_mem.h"

static char folder[] = "/tmp/headroom-lesson-XXXXXX";
static char path[64];

static const char good[] = "title: T\n"
                           "line: about\n"
                           "preset: demo\n"
                           "knobs: device.kind=plan batch.size=256\n"
                           "par: 1\n"
                           "runs:\n"
                           "  half: batch.size=128\n"
                           "fails: [oom.cause = capacity]\n"
                           "unlocked: [batch, execution.mode, device.vram]\n"
                           "goals:\n"
                           "  - {want: it fits, that: memory.peak_in_use_bytes <= 64MiB}\n"
                           "pages: ['Now {half.memory.peak_in_use_bytes}, {% 1/4}, {knobs.batch.size|6}.']\n"
                           "after: [done]\n"
                           "hints: [a, b, c]\n"
                           "solution: batch.size=128 batch.accumulate=2\n";

static void write_lesson(const char *content)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(content, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

// `good` with `from` replaced.
static void write_changed(const char *from, const char *to)
{
    char content[2048];
    const char *at = strstr(good, from);
    ck_assert_ptr_nonnull(at);
    (void)snprintf(content, sizeof content, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    write_lesson(content);
}

static hr_lesson *open_good(void)
{
    hr_lesson *lesson = NULL;
    hr_err err = {0};
    write_lesson(good);
    ck_assert_msg(hr_lesson_open(path, &lesson, NULL, &err) == HR_OK, "%s", err.sentence);
    return lesson;
}

static hr_lesson_table *begin(const hr_lesson *lesson)
{
    hr_lesson_table *table = NULL;
    hr_err err = {0};
    ck_assert_msg(hr_lesson_begin(lesson, &(hr_lesson_watch){.goes_on = NULL}, &table, &err) == HR_OK, "%s",
                  err.sentence);
    return table;
}

// ---- the file -------------------------------------------------------------------------------------------------

static void expect_problem(const char *from, const char *to, const char *said)
{
    hr_lesson *lesson = NULL;
    char *problems = NULL;
    hr_err err = {0};
    write_changed(from, to);
    ck_assert_msg(hr_lesson_open(path, &lesson, &problems, &err) != HR_OK, "%s was taken", to);
    ck_assert_msg(strstr(problems != NULL ? problems : err.sentence, said) != NULL, "%s: %s", to,
                  problems != NULL ? problems : err.sentence);
    hr_preset_problems_free(problems);
}

START_TEST(what_is_wrong_with_a_lesson_is_said_at_its_place)
{
    expect_problem("par: 1\n", "", "does not say its 'par'");
    expect_problem("par: 1", "par: none", "lesson.yaml:5:6: 'par' needs a whole number");
    expect_problem("par: 1", "part: 1", "a lesson has no 'part' — did you mean 'par'?");
    expect_problem("batch.size=128\nfails", "batch.sise=128\nfails", "batch.sise");
    expect_problem("oom.cause = capacity", "oom.cause capacity", "needs one of = != < <= > >=");
    expect_problem("memory.peak_in_use_bytes <= 64MiB", "memory.peak <= 64MiB",
                   "a report has no 'memory.peak'");
    expect_problem("<= 64MiB", "<= 64MiBB", "is no number or size");
    expect_problem("{half.memory.peak_in_use_bytes}", "{quarter.memory.peak_in_use_bytes}", "quarter.memory");
    expect_problem("|6}", "|six}", "a page quotes as {PATH}");
    expect_problem("[a, b, c]", "[a, b]", "'hints' needs 3");
    expect_problem("par: 1\n", "par: 1\nclaims: [1, two]\n", "a claim is named by its number, had 'two'");
    expect_problem("execution.mode,", "execution.mod,", "did you mean 'execution.mode'?");
    expect_problem("preset: demo", "preset: demoo", "demoo");
    expect_problem("after: [done]", "after: []", "'after' is empty");
    expect_problem("pages: ['Now {half.memory.peak_in_use_bytes}, {% 1/4}, {knobs.batch.size|6}.']",
                   "pages: []", "'pages' is empty");
    expect_problem("  half:", "  start:", "'start' is a word of its own");
    expect_problem("  half:", "  memory:", "'memory' is a word of its own");
    expect_problem("  half:", "  events:", "'events' is a word of its own");
    expect_problem("  half:", "  a-b:", "one short word of letters, digits and '_', had 'a-b'");
    expect_problem("[done]",
                   "['123456789 123456789 123456789 123456789 123456789 123456789 123456789 1234567']",
                   "at most 76 columns, had 77");
}
END_TEST

// A ninth question is refused: eight are asked.
START_TEST(more_questions_than_are_asked_are_refused)
{
    static const char one[] = "  - {question: which, choices: [a, b], answer: 1}\n";
    char ask[1024];
    (void)snprintf(ask, sizeof ask, "ask:\n");
    for (int k = 0; k <= HR_LESSON_QUESTIONS_MAX; k++) {
        (void)snprintf(ask + strlen(ask), sizeof ask - strlen(ask), "%s", one);
    }
    (void)snprintf(ask + strlen(ask), sizeof ask - strlen(ask), "goals:\n");
    expect_problem("goals:\n", ask, "at most 8 questions");
}
END_TEST

// However its number is written: "+2" is the second.
START_TEST(a_choice_is_kept_as_its_number)
{
    hr_lesson *lesson = NULL;
    write_changed("goals:\n", "ask:\n  - {question: which, choices: [a, b], answer: '+2'}\ngoals:\n");
    ck_assert_int_eq(hr_lesson_open(path, &lesson, NULL, NULL), HR_OK);
    ck_assert_uint_eq(hr_lesson_tell(lesson)->questions[0].choice, 2);
    hr_lesson_close(lesson);
    expect_problem("goals:\n", "ask:\n  - {question: which, choices: [a, b], answer: 3}\ngoals:\n",
                   "the number of a choice, 1 to 2");
}
END_TEST

static void write_file(const char *leaf, const char *content)
{
    char file[128];
    (void)snprintf(file, sizeof file, "%s/%s", folder, leaf);
    FILE *out = fopen(file, "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_ge(fputs(content, out), 0);
    ck_assert_int_eq(fclose(out), 0);
}

START_TEST(a_lesson_brings_a_preset_in_its_own_folder)
{
    hr_lesson *lesson = NULL;
    hr_err err = {0};
    write_file("own.yaml", "extends: demo\n");
    write_changed("preset: demo", "preset: ./own.yaml");
    ck_assert_msg(hr_lesson_open(path, &lesson, NULL, &err) == HR_OK, "%s", err.sentence);
    hr_preset *preset = NULL;
    ck_assert_int_eq(hr_preset_open(hr_lesson_tell(lesson)->preset, false, &preset, NULL, &err), HR_OK);
    ck_assert(hr_lesson_starts_from(lesson, preset));
    hr_preset_close(preset);
    hr_lesson_close(lesson);
    write_changed("half: batch.size=128", "half: preset=own.yaml batch.size=128");
    ck_assert_msg(hr_lesson_open(path, &lesson, NULL, &err) == HR_OK, "%s", err.sentence);
    hr_lesson_close(lesson);
    expect_problem("preset: demo", "preset: ../own.yaml", "a lesson's preset lies in its own folder");
    expect_problem("preset: demo", "preset: /etc/own.yaml", "a lesson's preset lies in its own folder");
    expect_problem("half: batch", "half: preset=../own.yaml batch",
                   "a lesson's preset lies in its own folder");
}
END_TEST

// "." is the folder of that name.
START_TEST(a_lesson_is_named_after_its_folder)
{
    char before[4096];
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    hr_lesson_close(open_good());
    hr_preset_search_beside(before);
    ck_assert_int_eq(chdir(folder), 0);
    static const char *const words[] = {"./", "./lesson.yaml", "././"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        hr_lesson *lesson = NULL;
        ck_assert_int_eq(hr_lesson_open(words[k], &lesson, NULL, NULL), HR_OK);
        ck_assert_str_eq(hr_lesson_tell(lesson)->name, strrchr(folder, '/') + 1);
        hr_lesson_close(lesson);
    }
    ck_assert_int_eq(chdir(before), 0);
}
END_TEST

START_TEST(a_lesson_is_called_by_its_name_its_number_or_its_end)
{
    static const char *const words[] = {"05-batch-size", "5", "05", "batch-size"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        hr_lesson *lesson = NULL;
        ck_assert_int_eq(hr_lesson_open(words[k], &lesson, NULL, NULL), HR_OK);
        ck_assert_str_eq(hr_lesson_tell(lesson)->name, "05-batch-size");
        hr_lesson_close(lesson);
    }
    hr_err err = {0};
    hr_lesson *lesson = NULL;
    ck_assert_int_eq(hr_lesson_open("batch-sice", &lesson, NULL, &err), HR_USAGE);
    ck_assert_str_eq(err.sentence, "there is no lesson 'batch-sice' — did you mean 'batch-size'?");
    ck_assert_str_eq(err.hint, "headroom lesson batch-size");
}
END_TEST

START_TEST(a_term_names_a_lesson_that_is_there)
{
    size_t count = 0, named = 0;
    const hr_term *terms = hr_terms(&count);
    for (size_t k = 0; k < count; k++) {
        hr_lesson *lesson = NULL;
        if (terms[k].lesson != NULL) {
            ck_assert_msg(hr_lesson_open(terms[k].lesson, &lesson, NULL, NULL) == HR_OK, "%s: %s",
                          terms[k].name, terms[k].lesson);
            ck_assert_str_eq(hr_lesson_tell(lesson)->name, terms[k].lesson);
            hr_lesson_close(lesson);
            named++;
        }
    }
    ck_assert_uint_gt(named, 10);
}
END_TEST

// ---- conditions -----------------------------------------------------------------------------------------------

static bool holds(const hr_lesson_table *table, const char *condition)
{
    bool is = false;
    hr_err err = {0};
    ck_assert_msg(hr_lesson_holds(condition, hr_lesson_table_runs(table), &is, &err) == HR_OK, "%s: %s",
                  condition, err.sentence);
    return is;
}

START_TEST(conditions_say_what_runs_are)
{
    hr_lesson *lesson = open_good();
    hr_lesson_end(begin(lesson)); // what an engine keeps for the next one is kept from here on
    const int64_t live = hr_host_mem_live();
    hr_lesson_table *table = begin(lesson);
    ck_assert(holds(table, "oom.cause = capacity"));
    ck_assert(holds(table, "half.oom.cause = none"));
    ck_assert(!holds(table, "half.oom.cause != none"));
    ck_assert(holds(table, "knobs.batch.size = 2 * half.knobs.batch.size"));
    ck_assert(holds(table, "half.memory.limit_bytes = 64MiB"));
    ck_assert(holds(table, "half.memory.limit_bytes - 4 * 16MiB = 0"));
    ck_assert(holds(table, "half.memory.peak_in_use_bytes / half.memory.limit_bytes > 95%"));
    ck_assert(holds(table, "(1 + 2) * 4 - 6 / 3 = 10"));
    ck_assert(!holds(table, "half.memory.peak_in_use_bytes > half.memory.limit_bytes"));
    ck_assert(holds(table, "half.memory.at_peak.by_category.weights = 2782720 - 748"));
    ck_assert(holds(table, "half.model.layers.count > 3"));
    ck_assert(holds(table, "half.events.steps = 2"));
    ck_assert(holds(table, "half.events.growth_bytes = 0"));
    ck_assert(holds(table, "half.events.allocations > 10"));
    ck_assert(holds(table, "half.events.lost_loss = 0"));
    ck_assert(holds(table, "knobs.batch.accumulate + 0 = 1")); // a default is a number, too
    // what is not known fulfils nothing
    ck_assert(!holds(table, "half.train.loss_last < 1"));
    ck_assert(!holds(table, "half.train.loss_last >= 1"));
    ck_assert(!holds(table, "half.train.loss_last != 1"));
    hr_lesson_end(table);
    ck_assert_int_eq(hr_host_mem_live(), live);
    hr_lesson_close(lesson);
}
END_TEST

// Before the first try the learner's run is the start's, and is not played a second time.
// Paragraphs are broken behind their figures, which stay whole; tables stay as they are.
START_TEST(paragraphs_are_broken_anew)
{
    hr_lesson *lesson = open_good();
    hr_lesson_table *table = begin(lesson);
    char *page = NULL;
    ck_assert_int_eq(
        hr_lesson_fill("Short\nlines are\njoined here, and what is longer than a line is broken, as {64KiB}\n"
                       "and {64KiB} may be.\n\n  a   b\nx   {64KiB|12}y\nend\n",
                       hr_lesson_table_runs(table), &page, NULL),
        HR_OK);
    ck_assert_str_eq(page, "Short lines are joined here, and what is longer than a line is broken, as\n"
                           "64.00 KiB and 64.00 KiB may be.\n\n  a   b\nx   64.00 KiB   y\nend\n");
    hr_lesson_text_free(page);
    ck_assert_int_eq(hr_lesson_fill("one line of {64KiB}", hr_lesson_table_runs(table), &page, NULL), HR_OK);
    ck_assert_str_eq(page, "one line of 64.00 KiB");
    hr_lesson_text_free(page);
    hr_lesson_end(table);
    hr_lesson_close(lesson);
}
END_TEST

START_TEST(the_start_is_played_once)
{
    hr_lesson *lesson = open_good();
    hr_lesson_table *table = begin(lesson);
    const hr_lesson_runs *runs = hr_lesson_table_runs(table);
    hr_knobs knobs;
    ck_assert_ptr_eq(runs->seen[0], runs->seen[1]);
    ck_assert(holds(table, "now.knobs.batch.size = start.knobs.batch.size"));
    ck_assert_int_eq(hr_lesson_knobs(lesson, "batch.size=128", &knobs, NULL), HR_OK);
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(hr_lesson_try(table, &knobs, NULL), HR_OK);
        ck_assert(holds(table, "now.knobs.batch.size * 2 = start.knobs.batch.size"));
    }
    hr_lesson_end(table);
    hr_lesson_close(lesson);
}
END_TEST

START_TEST(pages_quote_the_runs)
{
    hr_lesson *lesson = open_good();
    hr_lesson_table *table = begin(lesson);
    char *page = NULL;
    ck_assert_int_eq(
        hr_lesson_fill(hr_lesson_tell(lesson)->pages.data[0].text, hr_lesson_table_runs(table), &page, NULL),
        HR_OK);
    ck_assert_str_eq(page, "Now 63.97 MiB, 25.0 %, 256   .");
    hr_lesson_text_free(page);
    hr_lesson_end(table);
    hr_lesson_close(lesson);
}
END_TEST

// What fails leaves nothing to free.
START_TEST(a_page_that_memory_is_short_for_is_none)
{
    hr_lesson *lesson = open_good();
    hr_lesson_table *table = begin(lesson);
    unsigned failed = 0;
    for (uint64_t n = 1, seen = n; n <= seen; n++) {
        char *page = NULL;
        hr_err err = {0};
        (void)hr_host_mem_fail_at(n);
        const hr_status status =
            hr_lesson_fill("Two\nlines of {64KiB}\n", hr_lesson_table_runs(table), &page, &err);
        seen = hr_host_mem_fail_at(0);
        ck_assert_msg(status == HR_OK || status == HR_NOMEM, "request %d: %s", (int)n, err.sentence);
        ck_assert_msg((status == HR_OK) == (page != NULL), "request %d", (int)n);
        failed += status == HR_NOMEM;
        hr_lesson_text_free(page);
    }
    ck_assert_uint_gt(failed, 0);
    hr_lesson_end(table);
    hr_lesson_close(lesson);
}
END_TEST

START_TEST(numbers_are_said_in_groups_of_three)
{
    static const struct {
        double number;
        const char *said;
    } rows[] = {{1234567890, "1,234,567,890"},
                {-1000, "-1,000"},
                {99.53, "99.5"},
                {0.75, "0.75"},
                {1e20, "1e+20"},
                {999.4, "999"},
                {999.5, "1,000"},
                {-999.99, "-1,000"}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char said[HR_LESSON_VALUE_TEXT_MAX];
        const hr_lesson_value value = {.kind = HR_LESSON_REAL, .number = rows[k].number};
        ck_assert_str_eq(hr_lesson_say(&value, said), rows[k].said);
    }
    char said[HR_LESSON_VALUE_TEXT_MAX];
    ck_assert_str_eq(hr_lesson_say(&(hr_lesson_value){.kind = HR_LESSON_COUNT, .number = -0.4}, said), "0");
    ck_assert_str_eq(hr_lesson_say(&(hr_lesson_value){.kind = HR_LESSON_COUNT, .number = -0.6}, said), "-1");
}
END_TEST

// ---- judging --------------------------------------------------------------------------------------------------

static bool passes(const hr_lesson *lesson, hr_lesson_table *table, const char *pairs, const char *refused)
{
    hr_knobs knobs;
    hr_lesson_verdict v;
    bool said = refused == NULL;
    ck_assert_int_eq(hr_lesson_knobs(lesson, pairs, &knobs, NULL), HR_OK);
    ck_assert_int_eq(hr_lesson_try(table, &knobs, NULL), HR_OK);
    ck_assert_int_eq(hr_lesson_judge(lesson, hr_lesson_table_runs(table), &v, NULL), HR_OK);
    for (uint32_t k = 0; k < v.count && refused != NULL; k++) {
        said = said || (!v.rows[k].holds && v.rows[k].is_guard && strcmp(v.rows[k].want, refused) == 0);
    }
    ck_assert_msg(said, "%s: %s is not said", pairs, refused);
    return v.passed;
}

START_TEST(doing_less_does_not_pass)
{
    hr_lesson *lesson = open_good();
    hr_lesson_table *table = begin(lesson);
    ck_assert(passes(lesson, table, "batch.size=128 batch.accumulate=2", NULL));
    ck_assert(!passes(lesson, table, "batch.size=128", "an update sees 256 samples"));
    ck_assert(!passes(lesson, table, "batch.size=128 batch.accumulate=2 optimizer.kind=sgd",
                      "optimizer.kind stays adam here"));
    ck_assert(!passes(lesson, table, "", "it does not run out of memory"));
    // a goal that holds does not help a run that ended early
    hr_lesson_verdict v;
    ck_assert(passes(lesson, table, "batch.size=128 batch.accumulate=2", NULL));
    hr_lesson_table_runs(table)->seen[0]->events.done--;
    ck_assert_int_eq(hr_lesson_judge(lesson, hr_lesson_table_runs(table), &v, NULL), HR_OK);
    ck_assert(!v.passed);
    hr_lesson_table_runs(table)->seen[0]->events.done++;
    hr_lesson_table_runs(table)->seen[0]->events.lost_loss = true;
    ck_assert_int_eq(hr_lesson_judge(lesson, hr_lesson_table_runs(table), &v, NULL), HR_OK);
    ck_assert(!v.passed);
    hr_lesson_end(table);
    hr_lesson_close(lesson);
}
END_TEST

// A group does not unlock what is learned from, and a step without gradients is no training.
START_TEST(training_on_less_does_not_pass)
{
    hr_lesson *lesson = NULL;
    write_changed("unlocked: [batch,", "unlocked: [batch, pipeline, execution.tape,");
    ck_assert_int_eq(hr_lesson_open(path, &lesson, NULL, NULL), HR_OK);
    hr_lesson_table *table = begin(lesson);
    static const char *const rows[][2] = {
        {"execution.tape=none batch.size=256", "a step trains"},
        {"batch.size=128 batch.accumulate=2 pipeline.samples=1000", "pipeline.samples stays all here"},
        {"batch.size=128 batch.accumulate=2 pipeline.filter=label:0", "pipeline.filter stays as it is here"},
        {"batch.size=128 batch.accumulate=2 pipeline.resident=on", "pipeline.resident stays off here"}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        ck_assert_msg(!passes(lesson, table, rows[k][0], rows[k][1]), "%s", rows[k][0]);
    }
    ck_assert(passes(lesson, table, "batch.size=128 batch.accumulate=2 pipeline.prefetch=1", NULL));
    hr_lesson_end(table);
    hr_lesson_close(lesson);
    write_changed("unlocked: [batch,", "unlocked: [batch, pipeline.samples,");
    ck_assert_int_eq(hr_lesson_open(path, &lesson, NULL, NULL), HR_OK);
    ck_assert(hr_lesson_unlocks(lesson, HR_KNOB_PIPELINE_SAMPLES));
    hr_lesson_close(lesson);
}
END_TEST

// Said of knobs alone: the cpu would be waited for, and a save would stand where it was pointed to.
START_TEST(what_may_not_be_turned_is_known_before_it_is_played)
{
    hr_lesson *lesson = open_good();
    hr_knobs knobs;
    hr_lesson_verdict v;
    ck_assert_int_eq(hr_lesson_knobs(lesson, "batch.size=1", &knobs, NULL), HR_OK);
    ck_assert(hr_lesson_judge_knobs(lesson, &knobs, &v));
    ck_assert_int_eq(hr_lesson_knobs(lesson, "device.kind=cpu", &knobs, NULL), HR_OK);
    ck_assert(!hr_lesson_judge_knobs(lesson, &knobs, &v));
    ck_assert_uint_eq(v.count, 1);
    ck_assert_str_eq(v.rows[0].want, "device.kind stays plan here");
    hr_lesson_close(lesson);
}
END_TEST

// On a thread of its own a lesson says the same, to the byte, and what was left is waited for.
START_TEST(what_is_played_beside_is_what_is_played)
{
    hr_lesson *lesson = open_good();
    hr_lesson_table *table = begin(lesson), *other = NULL;
    hr_knobs knobs;
    hr_status status;
    hr_err err = {0};
    ck_assert_int_eq(hr_lesson_knobs(lesson, "batch.size=128", &knobs, NULL), HR_OK);
    ck_assert_int_eq(hr_lesson_try(table, &knobs, NULL), HR_OK);
    ck_assert_int_eq(hr_lesson_begin_beside(lesson, &other, &err), HR_OK);
    ck_assert(hr_lesson_is_done(other, true, &status, &err));
    ck_assert_msg(status == HR_OK, "%s", err.sentence);
    ck_assert_int_eq(hr_lesson_try_beside(other, &knobs, NULL), HR_OK);
    while (!hr_lesson_is_done(other, false, &status, &err)) {
        ck_assert_ptr_eq(hr_lesson_table_runs(other)->seen[0], hr_lesson_table_runs(other)->seen[1]);
    }
    ck_assert_int_eq(status, HR_OK);
    for (uint32_t k = 0; k < 3; k++) {
        ck_assert_uint_eq(hr_lesson_table_runs(table)->seen[k]->report.memory.peak_in_use_bytes,
                          hr_lesson_table_runs(other)->seen[k]->report.memory.peak_in_use_bytes);
    }
    ck_assert_int_eq(hr_lesson_try_beside(other, &knobs, NULL), HR_OK);
    hr_lesson_end(other); // while it plays
    hr_lesson_end(table);
    hr_lesson_close(lesson);
}
END_TEST

// What the engine refuses is the play's answer, and what was seen before stays.
START_TEST(what_is_refused_beside_is_said)
{
    hr_lesson *lesson = open_good();
    hr_lesson_table *table = begin(lesson);
    hr_knobs knobs;
    hr_status status;
    hr_err err = {0};
    ck_assert_int_eq(hr_lesson_knobs(lesson, "", &knobs, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pairs(&knobs, "checkpoint.strategy=list:nothing", NULL), HR_OK);
    ck_assert_int_eq(hr_lesson_try_beside(table, &knobs, NULL), HR_OK);
    ck_assert(hr_lesson_is_done(table, true, &status, &err));
    ck_assert_int_ne(status, HR_OK);
    ck_assert_str_ne(err.sentence, "");
    ck_assert_ptr_eq(hr_lesson_table_runs(table)->seen[0], hr_lesson_table_runs(table)->seen[1]);
    ck_assert(hr_lesson_is_done(table, false, &status, &err)); // nothing plays
    ck_assert_int_eq(status, HR_OK);
    hr_lesson_end(table);
    hr_lesson_close(lesson);
}
END_TEST

START_TEST(a_run_of_a_lesson_saves_nothing)
{
    hr_lesson *lesson = open_good();
    hr_lesson_table *table = begin(lesson);
    hr_knobs knobs;
    hr_err err = {0};
    struct stat info;
    char save[80], pairs[160];
    (void)snprintf(save, sizeof save, "%s/run.hrs", folder);
    (void)snprintf(pairs, sizeof pairs, "device.kind=cpu batch.size=8 train.save=%s train.save_every=1",
                   save);
    ck_assert_int_eq(hr_lesson_knobs(lesson, pairs, &knobs, NULL), HR_OK);
    ck_assert_msg(hr_lesson_try(table, &knobs, &err) == HR_OK, "%s", err.sentence);
    ck_assert_int_ne(stat(save, &info), 0);
    hr_lesson_end(table);
    hr_lesson_close(lesson);
}
END_TEST

START_TEST(progress_is_remembered_lesson_by_lesson)
{
    char file[80];
    hr_lesson_progress p;
    (void)snprintf(file, sizeof file, "%s/state/lessons", folder);
    hr_lesson_progress_read(file, "one", &p);
    ck_assert(!p.done && p.hints == 0);
    hr_lesson_progress_write(file, "one", &(hr_lesson_progress){.hints = 2, .runs = 5});
    hr_lesson_progress_write(file, "two", &(hr_lesson_progress){.done = true, .turned = 3});
    hr_lesson_progress_write(file, "one",
                             &(hr_lesson_progress){.done = true, .hints = 2, .runs = 6, .turned = 1});
    hr_lesson_progress_read(file, "one", &p);
    ck_assert(p.done && p.hints == 2 && p.runs == 6 && p.turned == 1);
    hr_lesson_progress_read(file, "two", &p);
    ck_assert(p.done && p.hints == 0 && p.turned == 3);
}
END_TEST

// What cannot be read whole is not written over.
START_TEST(progress_that_cannot_be_read_stays)
{
    char file[80];
    hr_lesson_progress p;
    (void)snprintf(file, sizeof file, "%s/state/kept", folder);
    hr_lesson_progress_write(file, "one", &(hr_lesson_progress){.done = true, .turned = 1});
    (void)hr_host_mem_fail_at(1);
    hr_lesson_progress_write(file, "two", &(hr_lesson_progress){.hints = 1});
    (void)hr_host_mem_fail_at(0);
    hr_lesson_progress_read(file, "one", &p);
    ck_assert(p.done);
    FILE *long_one = fopen(file, "a");
    ck_assert_ptr_nonnull(long_one);
    for (int k = 0; k < 8192; k++) {
        (void)fprintf(long_one, "%d 1 0 0 0\n", k);
    }
    ck_assert_int_eq(fclose(long_one), 0);
    struct stat before, after;
    ck_assert_int_eq(stat(file, &before), 0);
    hr_lesson_progress_write(file, "two", &(hr_lesson_progress){.hints = 1});
    ck_assert_int_eq(stat(file, &after), 0);
    ck_assert_int_eq(after.st_size, before.st_size);
}
END_TEST

// Each request for memory fails once; nothing is lost and nothing crashes.
START_TEST(short_memory_is_a_status)
{
    const int64_t live = hr_host_mem_live();
    write_lesson(good);
    for (uint64_t n = 1, seen = n; n <= seen; n++) {
        hr_lesson *lesson = NULL;
        hr_err err = {0};
        (void)hr_host_mem_fail_at(n);
        const hr_status status = hr_lesson_open(path, &lesson, NULL, &err);
        seen = hr_host_mem_fail_at(0);
        ck_assert_msg(status == HR_OK || status == HR_NOMEM, "request %d: %s", (int)n, err.sentence);
        hr_lesson_close(lesson);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

// ---- the course as it ships -----------------------------------------------------------------------------------

enum { CLAIMS = 34, CLAIMS_PROMISED = 30, QUOTE_WORDS_MAX = 25 };

// Words between the first two '"'; 0: nothing is quoted.
static unsigned quoted_words(const char *text)
{
    const char *at = strchr(text, '"'), *end = at == NULL ? NULL : strchr(at + 1, '"');
    unsigned words = 0;
    for (; end != NULL && ++at < end;) {
        words += at[0] != ' ' && at[0] != '\n' && (at[-1] == ' ' || at[-1] == '\n' || at[-1] == '"');
    }
    return words;
}

static unsigned words_of_quote(const hr_lesson_about *about)
{
    unsigned most = 0;
    for (uint32_t k = 0; k < about->pages.count; k++) {
        const unsigned words = quoted_words(about->pages.data[k].text);
        most = words > most ? words : most;
    }
    for (uint32_t k = 0; k < about->question_count; k++) {
        const unsigned words = quoted_words(about->questions[k].question);
        most = words > most ? words : most;
    }
    return most;
}

// Of the 34 claims of the articles at least 30 are experiments, each with the sentence that it is about, in at most 25 words.
START_TEST(the_course_tries_what_the_articles_claim)
{
    hr_lesson_entry *entries = NULL;
    size_t count = 0;
    unsigned tried = 0;
    bool is_tried[CLAIMS + 1] = {false};
    ck_assert_int_eq(hr_lesson_list(&entries, &count, NULL), HR_OK);
    for (size_t k = 0; k < count; k++) {
        hr_lesson *lesson = NULL;
        ck_assert_int_eq(hr_lesson_open(entries[k].name, &lesson, NULL, NULL), HR_OK);
        const hr_lesson_about *about = hr_lesson_tell(lesson);
        for (uint32_t n = 0; n < about->claims.count; n++) {
            const long claim = strtol(about->claims.data[n].text, NULL, 10);
            ck_assert_msg(claim >= 1 && claim <= CLAIMS, "%s: claim %ld", about->name, claim);
            tried += !is_tried[claim];
            is_tried[claim] = true;
        }
        const unsigned words = words_of_quote(about);
        ck_assert_msg(about->claims.count == 0 || (words >= 3 && words <= QUOTE_WORDS_MAX), "%s: %u words",
                      about->name, words);
        hr_lesson_close(lesson);
    }
    hr_lesson_list_free(entries);
    ck_assert_uint_ge(tried, CLAIMS_PROMISED);
}
END_TEST

static hr_status begin_and_try(const hr_lesson *lesson, hr_err *err)
{
    hr_lesson_table *table = NULL;
    hr_knobs knobs;
    char *page = NULL;
    HR_TRY(hr_lesson_knobs(lesson, "batch.size=128 batch.accumulate=2", &knobs, err));
    HR_TRY(hr_lesson_begin(lesson, &(hr_lesson_watch){.goes_on = NULL}, &table, err));
    hr_status status = hr_lesson_try(table, &knobs, err);
    if (status == HR_OK) {
        status = hr_lesson_fill(hr_lesson_tell(lesson)->pages.data[0].text, hr_lesson_table_runs(table),
                                &page, err);
    }
    hr_lesson_text_free(page);
    hr_lesson_end(table);
    return status;
}

// An engine asks often: the first requests one by one, then ever fewer of them.
START_TEST(short_memory_of_a_run_is_a_status)
{
    hr_lesson *lesson = open_good();
    ck_assert_int_eq(begin_and_try(lesson, NULL), HR_OK); // what an engine keeps is kept from here on
    const int64_t live = hr_host_mem_live();
    for (uint64_t n = 1, seen = n; n <= seen; n += 1 + n / (HEADROOM_SANITIZED ? 4 : 16)) {
        hr_err err = {0};
        (void)hr_host_mem_fail_at(n);
        const hr_status status = begin_and_try(lesson, &err);
        seen = hr_host_mem_fail_at(0);
        ck_assert_msg(status == HR_OK || status == HR_NOMEM, "request %d: %s", (int)n, err.sentence);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    hr_lesson_close(lesson);
}
END_TEST

// Each request of a list and of the file of progress: the first is a status, the second is lost.
START_TEST(short_memory_of_lists_and_progress_loses_nothing_else)
{
    char file[80];
    const int64_t live = hr_host_mem_live();
    (void)snprintf(file, sizeof file, "%s/state/short", folder);
    for (uint64_t n = 1, seen = n; n <= seen; n += 1 + n / 8) {
        hr_lesson_entry *entries = NULL;
        size_t count = 0;
        (void)hr_host_mem_fail_at(n);
        const hr_status status = hr_lesson_list(&entries, &count, NULL);
        seen = hr_host_mem_fail_at(0);
        ck_assert_msg(status == HR_OK || status == HR_NOMEM, "request %d", (int)n);
        if (status == HR_OK) {
            hr_lesson_list_free(entries);
        }
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    hr_lesson_progress_write(file, "one", &(hr_lesson_progress){.done = true});
    for (uint64_t n = 1, seen = n; n <= seen; n++) {
        hr_lesson_progress p;
        (void)hr_host_mem_fail_at(n);
        hr_lesson_progress_write(file, "two", &(hr_lesson_progress){.hints = 1});
        hr_lesson_progress_read(file, "two", &p);
        seen = hr_host_mem_fail_at(0);
        hr_lesson_progress_read(file, "one", &p);
        ck_assert_msg(p.done, "request %d", (int)n);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lesson");
    TCase *tests = tcase_create("lesson");
    if (mkdtemp(folder) == NULL) {
        return EXIT_FAILURE;
    }
    (void)snprintf(path, sizeof path, "%s/lesson.yaml", folder);
    hr_preset_search_beside(".");
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, what_is_wrong_with_a_lesson_is_said_at_its_place);
    tcase_add_test(tests, a_lesson_is_called_by_its_name_its_number_or_its_end);
    tcase_add_test(tests, a_term_names_a_lesson_that_is_there);
    tcase_add_test(tests, conditions_say_what_runs_are);
    tcase_add_test(tests, the_start_is_played_once);
    tcase_add_test(tests, paragraphs_are_broken_anew);
    tcase_add_test(tests, pages_quote_the_runs);
    tcase_add_test(tests, a_page_that_memory_is_short_for_is_none);
    tcase_add_test(tests, doing_less_does_not_pass);
    tcase_add_test(tests, training_on_less_does_not_pass);
    tcase_add_test(tests, what_may_not_be_turned_is_known_before_it_is_played);
    tcase_add_test(tests, what_is_played_beside_is_what_is_played);
    tcase_add_test(tests, what_is_refused_beside_is_said);
    tcase_add_test(tests, the_course_tries_what_the_articles_claim);
    tcase_add_test(tests, a_run_of_a_lesson_saves_nothing);
    tcase_add_test(tests, progress_is_remembered_lesson_by_lesson);
    tcase_add_test(tests, more_questions_than_are_asked_are_refused);
    tcase_add_test(tests, a_choice_is_kept_as_its_number);
    tcase_add_test(tests, numbers_are_said_in_groups_of_three);
    tcase_add_test(tests, progress_that_cannot_be_read_stays);
    tcase_add_test(tests, a_lesson_brings_a_preset_in_its_own_folder);
    tcase_add_test(tests, a_lesson_is_named_after_its_folder);
    tcase_add_test(tests, short_memory_is_a_status);
    tcase_add_test(tests, short_memory_of_a_run_is_a_status);
    tcase_add_test(tests, short_memory_of_lists_and_progress_loses_nothing_else);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    (void)remove(path);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
