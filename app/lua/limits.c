// SPDX-License-Identifier: Apache-2.0
// How long a recipe may go on, and how it is stopped.
#include <signal.h>
#include <time.h>

#include "app/lua/script.h"

enum { HOOK_INSTRUCTIONS = 10000 };

// Of this thread, so that a machine with other work does not stop a recipe.
static uint64_t processor_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

void script_begin_engine(script *s)
{
    s->in_engine = 1;
}

void script_end_engine(script *s)
{
    s->lua_began_ns = processor_ns();
    s->stretch++;
    s->in_engine = 0;
}

uint64_t script_lua_ns(const script *s)
{
    return processor_ns() - s->lua_began_ns;
}

bool script_is_interrupted(const script *s)
{
    return s->interrupted != NULL && *s->interrupted != 0;
}

static script_stop reason_to_stop(const script *s)
{
    if (script_is_interrupted(s)) {
        return SCRIPT_INTERRUPTED;
    }
    return script_lua_ns(s) > s->limits.lua_ns ? SCRIPT_TIME_IS_UP : SCRIPT_GOES_ON;
}

void script_arm_hook(lua_State *L)
{
    lua_sethook(L, script_hook, LUA_MASKCOUNT, HOOK_INSTRUCTIONS);
}

void script_forget_stop(script *s)
{
    s->stop = SCRIPT_GOES_ON;
    s->stop_text[0] = '\0';
    s->running = s->L;
    script_arm_hook(s->L);
}

static int raise_stop(lua_State *L, const script *s)
{
    lua_pushstring(L, s->stop_text);
    return lua_error(L);
}

void script_write_stop(const script *s, script_stop why, char text[SCRIPT_TEXT_MAX])
{
    if (why == SCRIPT_INTERRUPTED) {
        int number = s->interrupted == NULL ? SIGINT : *s->interrupted;
        (void)snprintf(text, SCRIPT_TEXT_MAX, "by %s",
                       number == SIGTERM  ? "SIGTERM"
                       : number == SIGHUP ? "SIGHUP"
                                          : "Ctrl-C");
    } else {
        (void)snprintf(text, SCRIPT_TEXT_MAX, "needed more than %g s of Lua between two calls of the engine",
                       (double)s->limits.lua_ns * 1e-9);
    }
}

// From here on every instruction of every coroutine raises the stop: what pcall catches, the next line raises.
static void begin_stop(lua_State *L, script *s, script_stop why)
{
    s->stop = why;
    lua_sethook(s->L, script_hook, LUA_MASKLINE | LUA_MASKCOUNT, 1);
    script_trace_stack(L, &s->trace);
    script_write_stop(s, why, s->stop_text);
}

void script_hook(lua_State *L, lua_Debug *ar)
{
    script *s = script_of(L);
    (void)ar;
    if (s->stop == SCRIPT_GOES_ON) {
        script_stop why = reason_to_stop(s);
        if (why == SCRIPT_GOES_ON) {
            if ((lua_gethookmask(L) & LUA_MASKLINE) != 0) { // of a coroutine that an earlier stop broke
                script_arm_hook(L);
            }
            return;
        }
        begin_stop(L, s, why);
    }
    lua_sethook(L, script_hook, LUA_MASKLINE | LUA_MASKCOUNT, 1);
    (void)raise_stop(L, s);
}

void script_check_stop(lua_State *L)
{
    script *s = script_of(L);
    if (s->stop == SCRIPT_GOES_ON) {
        script_stop why = reason_to_stop(s);
        if (why == SCRIPT_GOES_ON) {
            return;
        }
        begin_stop(L, s, why);
    }
    (void)raise_stop(L, s);
}
