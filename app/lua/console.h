// SPDX-License-Identifier: Apache-2.0
// A session of Lua that a person types: sandbox, limits and process are those of a recipe, and lines are handed to it one chunk
// at a time. What its process loses when it has to be ended is said, and another takes its place.
//
//     headroom script -i ──spawn──▶ headroom @console PRESET     (headroom/child.h; its setup comes first over the socket)
//        console_request, text ──▶  runs a chunk, or looks for what may stand at a cursor
//        ◀── console_answer, after a completion that is behind it; or script_hang, as a recipe says it (watch.h)
//
// One console at a time: the signals of the program are its own. One thread.
#ifndef APP_LUA_CONSOLE_H
#define APP_LUA_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/status.h"

#include "app/lua/complete.h"

typedef struct lua_console lua_console;

typedef enum lua_console_end {
    LUA_CONSOLE_FINE,
    LUA_CONSOLE_FAILED, // and said why on stderr
    LUA_CONSOLE_MORE,   // the chunk is not whole: nothing was done
    LUA_CONSOLE_LOST,   // its process is another one now, and what was lost was said
    LUA_CONSOLE_OVER,   // a signal ends the console, or there is no process any more
} lua_console_end;

// `preset` is opened first; NULL: none is. Its error ends the console before it began, and was said on stderr: *code.
HR_MUST_CHECK hr_status lua_console_start(const char *preset, lua_console **out, int *code, hr_err *err);
void lua_console_stop(lua_console *c); // NULL is fine

// Runs a chunk of whole lines; values of an expression are printed, also behind '='. `last`: no more lines come, so that one that
// is not whole is an error. While it runs, Ctrl-C ends it and keeps the session; a second one ends its process.
lua_console_end lua_console_run(lua_console *c, const char *text, bool last);
// The same that script_complete does; false: the console does not answer.
bool lua_console_complete(lua_console *c, const char *text, size_t length, size_t cursor,
                          script_completion *out);

unsigned lua_console_line(const lua_console *c); // the number of the next line, from 1
int lua_console_exit_code(const lua_console *c); // of LUA_CONSOLE_OVER, _FAILED and _LOST: as a recipe's
// Between two chunks: readable once the person sent a signal, and which one it was (0: none).
int lua_console_signals(const lua_console *c);
int lua_console_next_signal(lua_console *c);

// The main of the other process, the role "console": argv[0] is the preset, or there is none. Returns its exit code.
int lua_console_serve(int argc, char **argv);

#endif
