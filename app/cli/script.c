// SPDX-License-Identifier: Apache-2.0
// script: a recipe in Lua. What follows it belongs to the recipe, options included.
#include <stdio.h>
#include <string.h>

#include "headroom/preset.h"

#include "app/cli/cli.h"
#include "app/cli/options.h"
#include "app/cli/say.h"
#include "app/lua/lua_script.h"

enum { HEAD_LINE_MAX = 256 };

// The recipe's own lines of help, of what its head says behind the licence: line by line, false at its end.
static bool next_line(FILE *recipe, char line[HEAD_LINE_MAX])
{
    while (fgets(line, HEAD_LINE_MAX, recipe) != NULL && strncmp(line, "--", 2) == 0) {
        line[strcspn(line, "\n")] = '\0';
        if (strstr(line, "SPDX-") == NULL) {
            memmove(line, line + 2 + (line[2] == ' '), strlen(line) - (line[2] == ' '));
            return true;
        }
    }
    return false;
}

static void print_head(const char *name, bool first_paragraph)
{
    char path[HR_RECIPE_PATH_MAX], line[HEAD_LINE_MAX], text[4 * HEAD_LINE_MAX] = "";
    FILE *recipe = hr_recipe_find(name, path, NULL) == HR_OK ? fopen(path, "re") : NULL;
    while (recipe != NULL && next_line(recipe, line) && !(first_paragraph && line[0] == '\0')) {
        if (first_paragraph) {
            const size_t used = strlen(text);
            (void)snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? " " : "", line);
        } else {
            puts(line);
        }
    }
    if (first_paragraph) {
        printf("  %-22s ", name);
        say_paragraph(text, 25);
    }
    if (recipe != NULL) {
        (void)fclose(recipe);
    }
}

static void print_recipe(const char *name, void *unused)
{
    (void)unused;
    print_head(name, true);
}

void script_print_recipes(void)
{
    puts("  RECIPE is a FILE.lua, or one of these; `headroom script NAME -h` says more of it:");
    hr_recipe_list(print_recipe, NULL);
}

// Of one of ours, which does not read it itself.
static bool asks_about(int argc, char **argv, const char *path)
{
    return argc == 3 && cli_asks_for_help(argv[2]) && strcmp(path, argv[1]) != 0;
}

int cli_script(int argc, char **argv)
{
    cli_args args;
    hr_err err;
    char path[HR_RECIPE_PATH_MAX];
    cli_next next = cli_parse(argc < 2 ? argc : 2, argv, 1, &args, &err);
    if (next == CLI_DONE) {
        return 0;
    }
    if (next == CLI_GO_ON && args.word_count == 1 && hr_recipe_find(args.words[0], path, &err) == HR_OK) {
        if (asks_about(argc, argv, path)) {
            print_head(args.words[0], false);
            return 0;
        }
        return lua_script_run(path, argc - 2, argv + 2);
    }
    if (next == CLI_GO_ON && args.word_count == 0) {
        (void)HR_FAIL(&err, USAGE, "script needs a RECIPE, had none");
        hr_err_try(&err, "headroom script largest_batch");
    }
    return say_error(&err, false);
}
