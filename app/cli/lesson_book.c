// SPDX-License-Identifier: Apache-2.0
// A lesson as a chapter: its text, its question, how it starts, what solves it, and what is behind it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/cli/lesson.h"
#include "app/cli/lesson_show.h"
#include "app/tui/shell/tui.h"

static bool is_table_line(const char *line)
{
    return strncmp(line, "  ", 2) == 0;
}

// What stands further in, tables and commands, is fenced: Markdown would make a paragraph of it.
static void print_page(const char *page)
{
    bool fenced = false;
    for (const char *at = page; *at != '\0';) {
        const size_t bytes = strcspn(at, "\n");
        const char *next = at + bytes + (at[bytes] == '\n');
        const bool blank = bytes == 0;
        const bool inside = is_table_line(at) || (blank && fenced && is_table_line(next));
        if (inside != fenced) {
            puts("```");
            fenced = inside;
        }
        printf("%.*s\n", (int)bytes, at);
        at = next;
    }
    puts(fenced ? "```\n" : "");
}

static hr_status print_filled(const char *page, const hr_lesson_runs *runs, hr_err *err)
{
    char *filled = NULL;
    HR_TRY(hr_lesson_fill(page, runs, &filled, err));
    print_page(filled);
    hr_lesson_text_free(filled);
    return HR_OK;
}

static hr_status print_pages(const hr_lesson_texts *pages, const hr_lesson_runs *runs, hr_err *err)
{
    for (uint32_t k = 0; k < pages->count; k++) {
        HR_TRY(print_filled(pages->data[k].text, runs, err));
    }
    return HR_OK;
}

// The workbench where the lesson begins, by the driver of its scripts: planned, whatever the lesson's device is.
static hr_status print_picture(const hr_lesson *lesson, hr_err *err)
{
    hr_knobs knobs;
    hr_preset *preset = NULL;
    char *picture = NULL;
    HR_TRY(hr_lesson_knobs(lesson, "", &knobs, err));
    HR_TRY(hr_knobs_set_pair(&knobs, "device.kind=plan", err));
    HR_TRY(hr_preset_open(hr_lesson_tell(lesson)->preset, false, &preset, NULL, err));
    const hr_status status = tui_picture(preset, &knobs, "wait steps 2\n", &picture, err);
    hr_preset_close(preset);
    HR_TRY(status);
    printf("```text\n%s```\n\n", picture);
    free(picture);
    return HR_OK;
}

static hr_status print_questions(const hr_lesson_about *about, const hr_lesson_runs *runs, hr_err *err)
{
    for (uint32_t k = 0; k < about->question_count; k++) {
        const hr_lesson_question *q = &about->questions[k];
        char *question = NULL;
        HR_TRY(hr_lesson_fill(q->question, runs, &question, err));
        printf("> **Before you see it:** %s\n", question);
        hr_lesson_text_free(question);
        for (uint32_t i = 0; i < q->choices.count; i++) {
            printf(">\n> %u. %s\n", i + 1, q->choices.data[i].text);
        }
        putchar('\n');
    }
    return HR_OK;
}

static void print_start(const hr_lesson_about *about)
{
    printf("```sh\nheadroom lesson %s\n```\n\nIt starts from `%s`%s%s%s. Wanted:\n\n", about->name,
           about->preset, about->knobs[0] == '\0' ? "" : " with `", about->knobs,
           about->knobs[0] == '\0' ? "" : "`");
    for (uint32_t k = 0; k < about->goal_count; k++) {
        printf("- %s\n", about->goals[k].want);
    }
    fputs("\nMay be turned:", stdout);
    for (uint32_t k = 0; k < about->unlocked.count; k++) {
        printf("%s `%s`", k > 0 ? "," : "", about->unlocked.data[k].text);
    }
    puts(".\n");
}

static hr_status print_answers(const hr_lesson_about *about, const hr_lesson_runs *runs, hr_err *err)
{
    for (uint32_t k = 0; k < about->question_count; k++) {
        const hr_lesson_question *q = &about->questions[k];
        hr_lesson_value value = {.kind = HR_LESSON_UNKNOWN};
        char said[HR_LESSON_VALUE_TEXT_MAX], *question = NULL;
        if (q->choice == 0) {
            HR_TRY(hr_lesson_evaluate(q->answer, runs, &value, err));
        }
        HR_TRY(hr_lesson_fill(q->question, runs, &question, err));
        printf("> %s\n\n**%s**\n\n", question,
               q->choice > 0 ? q->choices.data[q->choice - 1].text : hr_lesson_say(&value, said));
        hr_lesson_text_free(question);
        HR_TRY(print_filled(q->because, runs, err));
    }
    return HR_OK;
}

static hr_status print_solved(const hr_lesson *lesson, hr_lesson_table *table, hr_err *err)
{
    const hr_lesson_about *about = hr_lesson_tell(lesson);
    hr_knobs knobs;
    HR_TRY(hr_lesson_knobs(lesson, about->solution, &knobs, err));
    printf("### What solves it\n\n`%s`\n\n", about->solution);
    HR_TRY(print_answers(about, hr_lesson_table_runs(table), err)); // of the start, as they are asked
    HR_TRY(hr_lesson_try(table, &knobs, err));
    return print_pages(&about->after, hr_lesson_table_runs(table), err);
}

hr_status lesson_print_chapter(const hr_lesson *lesson, hr_err *err)
{
    const hr_lesson_about *about = hr_lesson_tell(lesson);
    hr_lesson_table *table = NULL;
    HR_TRY(hr_lesson_begin(lesson, &lesson_until_signal, &table, err));
    printf("## %.*s. %s\n\n", (int)strspn(about->name, "0123456789"), about->name, about->title);
    hr_status status = print_pages(&about->pages, hr_lesson_table_runs(table), err);
    status = status == HR_OK ? print_questions(about, hr_lesson_table_runs(table), err) : status;
    if (status == HR_OK) {
        print_start(about);
        status = print_picture(lesson, err);
    }
    if (status == HR_OK) {
        status = print_solved(lesson, table, err);
    }
    hr_lesson_end(table);
    return status;
}
