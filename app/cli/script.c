// SPDX-License-Identifier: Apache-2.0
// script: a recipe in Lua. What follows FILE belongs to the recipe, options included.
#include "app/cli/cli.h"
#include "app/cli/options.h"
#include "app/cli/say.h"
#include "app/lua/lua_script.h"

int cli_script(int argc, char **argv)
{
    cli_args args;
    hr_err err;
    cli_next next = cli_parse(argc < 2 ? argc : 2, argv, 1, &args, &err);
    if (next == CLI_DONE) {
        return 0;
    }
    if (next == CLI_GO_ON && args.word_count == 1) {
        return lua_script_run(args.words[0], argc - 2, argv + 2);
    }
    if (next == CLI_GO_ON) {
        (void)HR_FAIL(&err, USAGE, "script needs a FILE.lua, had none");
        hr_err_try(&err, "headroom script scripts/recipes/largest_batch.lua");
    }
    return say_error(&err, false);
}
