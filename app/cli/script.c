// SPDX-License-Identifier: Apache-2.0
// script: a recipe in Lua. What follows it belongs to the recipe, options included.
#include "headroom/preset.h"

#include "app/cli/cli.h"
#include "app/cli/options.h"
#include "app/cli/say.h"
#include "app/lua/lua_script.h"

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
        return lua_script_run(path, argc - 2, argv + 2);
    }
    if (next == CLI_GO_ON && args.word_count == 0) {
        (void)HR_FAIL(&err, USAGE, "script needs a RECIPE, had none");
        hr_err_try(&err, "headroom script largest_batch");
    }
    return say_error(&err, false);
}
