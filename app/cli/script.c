// SPDX-License-Identifier: Apache-2.0
// script: a recipe in Lua. What follows it belongs to the recipe, options included.
#include <limits.h>
#include <string.h>

#include "headroom/preset.h"

#include "app/cli/cli.h"
#include "app/cli/options.h"
#include "app/cli/recipes.h"
#include "app/cli/say.h"
#include "app/cli/state.h"
#include "app/console/console.h"
#include "app/lua/lua_script.h"

// Of one of ours, which does not read it itself.
static bool asks_about(int argc, char **argv, const char *path)
{
    return argc == 3 && cli_asks_for_help(argv[2]) && strcmp(path, argv[1]) != 0;
}

// What is printed in a recipe's place.
static bool print_wanted(const cli_args *args)
{
    if (cli_given(args, APP_STUB)) {
        lua_script_print_stub(stdout);
    } else if (cli_given(args, APP_MARKDOWN)) {
        lua_script_print_reference(stdout);
    }
    return cli_given(args, APP_STUB) || cli_given(args, APP_MARKDOWN);
}

static bool asks_for_console(const char *word)
{
    return strcmp(word, "-i") == 0 || strcmp(word, "--interactive") == 0;
}

// A preset is asked for; a recipe has no lines to come.
static hr_status refuse_recipe(const char *word, hr_err *err)
{
    const size_t length = word == NULL ? 0 : strlen(word);
    if (length < 4 || strcmp(word + length - 4, ".lua") != 0) {
        return HR_OK;
    }
    (void)HR_FAIL(err, USAGE, "script -i takes a PRESET, had the recipe %.200s", word);
    hr_err_try(err, "headroom script %.200s", word);
    return HR_USAGE;
}

static int talk(int argc, char **argv)
{
    cli_args args;
    hr_err err;
    char history[PATH_MAX];
    const cli_next next = cli_parse(argc, argv, 1, &args, &err);
    if (next != CLI_GO_ON) {
        return next == CLI_DONE ? 0 : say_error(&err, false);
    }
    if (refuse_recipe(args.words[0], &err) != HR_OK) {
        return say_error(&err, false);
    }
    if (!state_console_path(history, sizeof history)) {
        history[0] = '\0';
    }
    return console_main(args.words[0], history);
}

int cli_script(int argc, char **argv)
{
    if (argc > 1 && asks_for_console(argv[1])) {
        return talk(argc, argv);
    }
    cli_args args;
    hr_err err;
    char path[HR_RECIPE_PATH_MAX];
    cli_next next = cli_parse(argc < 2 ? argc : 2, argv, 1, &args, &err);
    if (next == CLI_DONE) {
        return 0;
    }
    if (next == CLI_GO_ON && print_wanted(&args)) {
        return 0;
    }
    if (next == CLI_GO_ON && args.word_count == 1 && hr_recipe_find(args.words[0], path, &err) == HR_OK) {
        if (asks_about(argc, argv, path)) {
            recipes_print_head(args.words[0]);
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
