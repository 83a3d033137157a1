// SPDX-License-Identifier: Apache-2.0
// lesson: the course. A list, one lesson to be done, all of them verified, or the course as a book.
#include "app/cli/lesson.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/cli/cli.h"
#include "app/cli/interrupt.h"
#include "app/cli/options.h"
#include "app/cli/say.h"
#include "app/cli/state.h"

void lessons_list_names(void (*see)(const char *name, void *context), void *context)
{
    hr_lesson_entry *entries = NULL;
    size_t count = 0;
    if (hr_lesson_list(&entries, &count, NULL) == HR_OK) {
        for (size_t k = 0; k < count; k++) {
            see(entries[k].name, context);
        }
    }
    hr_lesson_list_free(entries);
}

hr_status lesson_open(const char *word, hr_lesson **out, hr_err *err)
{
    char *problems = NULL;
    const hr_status status = hr_lesson_open(word, out, &problems, err);
    if (problems != NULL) {
        say_foreign(stderr, problems, "\n");
        hr_preset_problems_free(problems);
    }
    return status;
}

// ---- the list -------------------------------------------------------------------------------------------------

static hr_lesson_progress progress_of(const hr_lesson_entry *entry, const char *state)
{
    hr_lesson_progress p = {.done = false};
    if (state != NULL) {
        hr_lesson_progress_read(state, entry->name, &p);
    }
    return p;
}

static void print_entry(const hr_lesson_entry *entry, const char *state)
{
    const hr_lesson_progress p = progress_of(entry, state);
    printf("%s %-28s ", p.done ? "done" : p.runs > 0 ? " .. " : "    ", entry->name);
    say_paragraph(entry->title[0] != '\0' ? entry->line : "cannot be read: headroom lesson verify says why",
                  34);
}

static hr_status print_list(hr_err *err)
{
    hr_lesson_entry *entries = NULL;
    size_t count = 0;
    char state[PATH_MAX];
    const bool remembers = state_lessons_path(state, sizeof state);
    HR_TRY(hr_lesson_list(&entries, &count, err));
    for (size_t k = 0; k < count; k++) {
        print_entry(&entries[k], remembers ? state : NULL);
    }
    if (count == 0) {
        hr_lesson_list_free(entries);
        const hr_status status = HR_FAIL(err, READ, "no folder of lessons was found");
        hr_err_try(err, "headroom lesson ./FOLDER");
        return status;
    }
    size_t next = 0;
    while (remembers && next + 1 < count && progress_of(&entries[next], state).done) {
        next++;
    }
    printf("\nheadroom lesson %s is the %s; its number will do.\n", entries[next].name,
           next == 0 ? "first" : "next");
    hr_lesson_list_free(entries);
    return HR_OK;
}

// ---- one, or all ----------------------------------------------------------------------------------------------

typedef hr_status (*lesson_act)(const hr_lesson *lesson, bool *good, hr_err *err);

static hr_status act_on(const char *word, lesson_act act, bool *good, hr_err *err)
{
    hr_lesson *lesson = NULL;
    HR_TRY(lesson_open(word, &lesson, err));
    const hr_status status = act(lesson, good, err);
    hr_lesson_close(lesson);
    return status;
}

// One that cannot be read is said, and the others are gone on with.
static hr_status act_on_all(lesson_act act, bool *good, hr_err *err)
{
    hr_lesson_entry *entries = NULL;
    size_t count = 0;
    hr_status status = hr_lesson_list(&entries, &count, err);
    for (size_t k = 0; k < count && status == HR_OK; k++) {
        bool kept = false;
        hr_err of_one;
        const hr_status done = act_on(entries[k].name, act, &kept, &of_one);
        if (done == HR_INTERRUPTED) {
            status = done;
        } else if (done != HR_OK) {
            (void)say_error(&of_one, false);
        }
        *good = *good && kept;
    }
    hr_lesson_list_free(entries);
    return status;
}

static hr_status print_chapter(const hr_lesson *lesson, bool *good, hr_err *err)
{
    HR_TRY(lesson_print_chapter(lesson, err));
    *good = true;
    return HR_OK;
}

static hr_status print_book(bool *good, hr_err *err)
{
    puts("# The memory of a training step\n\nA course in lessons, each a situation to be changed until it "
         "does what is wanted. "
         "`headroom lesson NAME` does one\nat the terminal; figures are planned by `headroom`, to the "
         "byte.\n");
    return act_on_all(print_chapter, good, err);
}

// ---- doing one, and those behind it ----------------------------------------------------------------------------

static bool name_behind(const char *name, char next[64])
{
    hr_lesson_entry *entries = NULL;
    size_t count = 0;
    bool found = false;
    if (hr_lesson_list(&entries, &count, NULL) == HR_OK) {
        for (size_t k = 0; k + 1 < count; k++) {
            if (strcmp(entries[k].name, name) == 0) {
                (void)snprintf(next, 64, "%s", entries[k + 1].name);
                found = true;
            }
        }
    }
    hr_lesson_list_free(entries);
    return found;
}

static hr_status do_lessons(const char *word, bool *passed, hr_err *err)
{
    char name[PATH_MAX];
    (void)snprintf(name, sizeof name, "%s", word);
    for (bool again = true; again;) {
        hr_lesson *lesson = NULL;
        bool wants_next = false;
        char next[64];
        HR_TRY(lesson_open(name, &lesson, err));
        const hr_status status = lesson_talk(lesson, passed, &wants_next, err);
        again = status == HR_OK && wants_next && name_behind(hr_lesson_tell(lesson)->name, next);
        hr_lesson_close(lesson);
        HR_TRY(status);
        if (again) {
            (void)snprintf(name, sizeof name, "%s", next);
        } else if (wants_next) {
            puts("That was the last one.");
        }
    }
    return HR_OK;
}

static hr_status do_command(const cli_args *args, bool *good, hr_err *err)
{
    const char *word = args->words[0];
    *good = true;
    if (cli_given(args, APP_BOOK) && args->word_count == 0) {
        return print_book(good, err);
    }
    if (word == NULL) {
        return print_list(err);
    }
    if (strcmp(word, "verify") == 0) {
        return args->words[1] == NULL ? act_on_all(lesson_verify, good, err)
                                      : act_on(args->words[1], lesson_verify, good, err);
    }
    if (args->word_count > 1 || cli_given(args, APP_BOOK)) {
        const hr_status status =
            HR_FAIL(err, USAGE, "one lesson is done at a time, and the book has all of them");
        hr_err_try(err, "headroom lesson %.64s", word);
        return status;
    }
    HR_TRY(do_lessons(word, good, err));
    *good = *good || isatty(STDIN_FILENO) != 0;
    return HR_OK;
}

int cli_lesson(int argc, char **argv)
{
    cli_args args;
    hr_err err;
    bool good = false;
    const cli_next next = cli_parse(argc, argv, 2, &args, &err);
    if (next != CLI_GO_ON) {
        return next == CLI_DONE ? 0 : say_error(&err, false);
    }
    const hr_status status = do_command(&args, &good, &err);
    if (status != HR_OK) {
        return status == HR_INTERRUPTED ? interrupt_exit_code() : say_error(&err, false);
    }
    return good ? 0 : hr_status_exit_code(HR_CHECK);
}
