// SPDX-License-Identifier: Apache-2.0
// manual: pages for man(1), generated from the tables of commands, options, knobs, layers, terms and Lua's names.
#include "app/cli/manual.h"

#include <stdio.h>
#include <string.h>

#include "headroom/words.h"

#include "app/cli/cli.h"
#include "app/cli/options.h"
#include "app/cli/say.h"

enum { COMMANDS_MAX = 64 };

static const struct {
    const char *file;
    const char *line;
    void (*print)(void);
} formats[] = {
    {"headroom-presets.5", "how a preset is written: every knob, every kind of layer", manual_print_presets},
    {"headroom-lua.3", "the table hr, as recipes see it", manual_print_lua},
    {"headroom-terms.7", "every word on a screen, in a column or in JSON", manual_print_terms},
};

enum { FORMAT_COUNT = sizeof formats / sizeof *formats };

// "headroom-plan.1"
static const char *file_of(const app_command *c, char name[MANUAL_NAME_MAX])
{
    (void)snprintf(name, MANUAL_NAME_MAX, "headroom%s%s.1", c->name[0] != '\0' ? "-" : "", c->name);
    return name;
}

static void print_list(void)
{
    unsigned count = 0;
    char name[MANUAL_NAME_MAX];
    const app_command *commands = app_commands(&count);
    for (unsigned k = 0; k < count; k++) {
        printf("%-24s ", file_of(&commands[k], name));
        say_paragraph(commands[k].line, 25);
    }
    for (size_t k = 0; k < FORMAT_COUNT; k++) {
        printf("%-24s ", formats[k].file);
        say_paragraph(formats[k].line, 25);
    }
}

void manual_list_pages(void (*see)(const char *file, void *context), void *context)
{
    unsigned count = 0;
    char name[MANUAL_NAME_MAX];
    const app_command *commands = app_commands(&count);
    for (unsigned k = 0; k < count; k++) {
        see(file_of(&commands[k], name), context);
    }
    for (size_t k = 0; k < FORMAT_COUNT; k++) {
        see(formats[k].file, context);
    }
}

static bool print_page(const char *file)
{
    unsigned count = 0;
    char name[MANUAL_NAME_MAX];
    const app_command *commands = app_commands(&count);
    for (unsigned k = 0; k < count; k++) {
        if (strcmp(file_of(&commands[k], name), file) == 0) {
            manual_print_command(&commands[k]);
            return true;
        }
    }
    for (size_t k = 0; k < FORMAT_COUNT; k++) {
        if (strcmp(formats[k].file, file) == 0) {
            formats[k].print();
            return true;
        }
    }
    return false;
}

typedef struct page_names {
    char file[COMMANDS_MAX][MANUAL_NAME_MAX];
    const char *at[COMMANDS_MAX];
    size_t count;
} page_names;

static void keep_name(const char *file, void *context)
{
    page_names *names = context;
    if (names->count < COMMANDS_MAX) {
        names->at[names->count] = names->file[names->count];
        (void)snprintf(names->file[names->count++], MANUAL_NAME_MAX, "%s", file);
    }
}

static hr_status refuse(const char *word, hr_err *err)
{
    page_names names = {.count = 0};
    manual_list_pages(keep_name, &names);
    const char *near = hr_word_nearest(word, names.at, names.count);
    (void)HR_FAIL(err, USAGE, "there is no page '%.64s'%s%s%s", word, near == NULL ? "" : " — did you mean '",
                  near == NULL ? "" : near, near == NULL ? "" : "'?");
    hr_err_try(err, "headroom manual%s%s", near == NULL ? "" : " ", near == NULL ? "" : near);
    return HR_USAGE;
}

int cli_manual(int argc, char **argv)
{
    cli_args args;
    hr_err err;
    cli_next next = cli_parse(argc, argv, 1, &args, &err);
    if (next == CLI_DONE) {
        return 0;
    }
    if (next == CLI_GO_ON && args.words[0] == NULL) {
        print_list();
        return 0;
    }
    if (next == CLI_GO_ON && (print_page(args.words[0]) || refuse(args.words[0], &err) == HR_OK)) {
        return 0;
    }
    return say_error(&err, false);
}
