// SPDX-License-Identifier: Apache-2.0
// `headroom script FILE.lua [args…]`: runs one recipe in its sandbox, in a process of its own.
#ifndef APP_LUA_LUA_SCRIPT_H
#define APP_LUA_LUA_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "headroom/guest.h"

// argv[0..argc) are the words that follow FILE; the recipe reads them as hr.args[1..argc]. What the recipe prints
// goes to stdout; notes and errors go to stderr. While it runs, Ctrl-C (SIGTERM, SIGHUP) finishes the step under way and
// ends the recipe; Lua that does not stop is killed, and so is the rest at a second Ctrl-C.
//
// Returns the exit code: 0; 1 hr.expect failed or a run ended out of memory; 3 any other error of the recipe;
// 4 the device, and 5 FILE or another file, could not be used; 128 and the signal's number when it was interrupted.
int lua_script_run(const char *file, int argc, char **argv);

// The main of that process, the role "recipe" (headroom/child.h): argv[0] is FILE. Returns its exit code.
int lua_script_serve(int argc, char **argv);

// A recipe beside the training of a workbench, in its worker (decision 67).
extern const hr_guest_ops lua_script_guest;

// A name with its type, as LuaLS writes it, and what it is: of an options table, of an event. A list ends with a row
// without a name.
typedef struct lua_script_field {
    const char *name, *type, *line;
} lua_script_field;

// One name of the table hr, as a manual shows it. Borrowed, static.
typedef struct lua_script_row {
    const char *name;      // "plan": hr.plan
    const char *arguments; // as a person writes them; NULL: a field, not a function
    const char *result;    // type of what it returns, or of the field; "" for nothing
    const char *line;
    const char *example;             // whole lines of Lua
    const lua_script_field *options; // of its table; NULL: it takes none
} lua_script_row;

bool lua_script_row_at(size_t index, lua_script_row *row); // false behind the last

// The reference as Markdown, and the stub that the Lua language server reads (scripts/recipes/library/hr.lua).
void lua_script_print_reference(FILE *to);
void lua_script_print_stub(FILE *to);

#endif
