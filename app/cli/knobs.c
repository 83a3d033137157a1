// SPDX-License-Identifier: Apache-2.0
// knobs: the table for people; knobs_forms.c has it for programs.
#include "app/cli/knobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"
#include "headroom/words.h"

#include "app/cli/cli.h"
#include "app/cli/options.h"
#include "app/cli/say.h"

enum { LINE_COLUMN = 42 };

// ---- one row --------------------------------------------------------------------------------------------------

// ---- for people -----------------------------------------------------------------------------------------------

static bool is_of_group(const hr_knob_row *row, const char *group)
{
    char name[KNOB_GROUP_MAX];
    knob_group(row, name);
    return strcmp(name, group) == 0;
}

// A line for each knob; `only`: of this group. Whether there was one.
static bool print_rows(const char *only)
{
    const hr_knob_row *rows = hr_knob_rows(NULL);
    bool any = false;
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        if (only != NULL && !is_of_group(&rows[k], only)) {
            continue;
        }
        if (knob_begins_group(&rows[k]) && any) {
            putchar('\n');
        }
        printf("%-28s %-12s ", rows[k].key, knob_default(&rows[k]));
        say_paragraph(rows[k].line, LINE_COLUMN);
        any = true;
    }
    return any;
}

static void print_legend(void)
{
    puts("\nkey, default, meaning. `headroom knobs KEY` explains one; -s KEY=VALUE turns it.");
}

static void print_one(const hr_knob_row *row)
{
    char range[KNOB_RANGE_MAX];
    printf("%s\n  ", row->key);
    say_paragraph(row->line, 2);
    fputs("\n  ", stdout);
    say_paragraph(row->explanation, 2);
    printf("\n  %-10s ", "values");
    say_paragraph(knob_range(row, range), 13);
    printf("  %-10s %s\n", "default", knob_default(row));
    if (row->applies != NULL) {
        printf("  %-10s ", "applies");
        say_paragraph(row->applies, 13);
    }
    printf("  %-10s %s\n", "changes", row->hot ? "between two steps" : "between two steps, with a rebuild");
}

static const char *nearest_group(const char *word, char group[KNOB_GROUP_MAX])
{
    static char names[HR_KNOB_COUNT][KNOB_GROUP_MAX];
    const hr_knob_row *rows = hr_knob_rows(NULL);
    const char *groups[HR_KNOB_COUNT];
    size_t count = 0;
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        if (knob_begins_group(&rows[k])) {
            knob_group(&rows[k], names[count]);
            groups[count] = names[count];
            count++;
        }
    }
    const char *near = hr_word_nearest(word, groups, count);
    return near == NULL ? NULL : strcpy(group, near);
}

// A knob's key, or a group's.
static hr_status explain(const char *key, hr_err *err)
{
    char group[KNOB_GROUP_MAX];
    const char *near = NULL;
    const hr_knob_row *row = hr_knob_find(key, &near);
    if (row != NULL) {
        print_one(row);
        return HR_OK;
    }
    if (print_rows(key)) {
        print_legend();
        return HR_OK;
    }
    const char *of_groups = strchr(key, '.') == NULL ? nearest_group(key, group) : NULL;
    near = of_groups != NULL ? of_groups : near;
    hr_status status =
        HR_FAIL(err, KNOB, "there is no knob '%.64s'%s%s%s", key, near == NULL ? "" : " — did you mean '",
                near == NULL ? "" : near, near == NULL ? "" : "'?");
    hr_err_try(err, "headroom knobs%s%s", near == NULL ? "" : " ", near == NULL ? "" : near);
    return status;
}

int cli_knobs(int argc, char **argv)
{
    cli_args args;
    hr_err err;
    hr_status status = HR_OK;
    cli_next next = cli_parse(argc, argv, 1, &args, &err);
    if (next == CLI_DONE) {
        return 0;
    }
    if (next == CLI_WRONG) {
        status = err.status;
    } else if (args.words[0] != NULL) {
        status = explain(args.words[0], &err);
    } else if (cli_given(&args, APP_SCHEMA)) {
        knobs_print_schema();
    } else if (cli_given(&args, APP_MARKDOWN)) {
        knobs_print_markdown();
    } else if (cli_given(&args, APP_JSON)) {
        knobs_print_json();
    } else {
        (void)print_rows(NULL);
        print_legend();
    }
    return status == HR_OK ? 0 : say_error(&err, cli_given(&args, APP_JSON));
}
