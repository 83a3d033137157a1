// SPDX-License-Identifier: Apache-2.0
// Life and limits of a recipe: how much memory and how much time its Lua may take.
#include "app/lua/script.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/lua/api.h"

enum { HOOK_INSTRUCTIONS = 10000 };

const script_limits script_default_limits = {
    .memory_bytes = UINT64_C(256) << 20,
    .lua_ns = UINT64_C(10000000000),
};

// ---- memory -----------------------------------------------------------------------------------------------------

// A lua_Alloc. Lua counts on a block that shrinks staying where it is.
static void *allocate(void *context, void *old, size_t old_bytes, size_t new_bytes)
{
    script *s = context;
    size_t held = old == NULL ? 0 : old_bytes; // without a block, old_bytes is the kind of object
    if (new_bytes == 0) {
        s->lua_bytes -= held;
        free(old);
        return NULL;
    }
    if (new_bytes > held && new_bytes - held > s->limits.memory_bytes - s->lua_bytes) {
        s->refused_memory = true;
        if (s->L != NULL) {
            script_trace_line(s->L, &s->refused_at);
        }
        return NULL;
    }
    void *block = realloc(old, new_bytes);
    if (block == NULL) {
        return new_bytes <= held ? old : NULL;
    }
    s->lua_bytes += new_bytes - held;
    return block;
}

// ---- time -------------------------------------------------------------------------------------------------------

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

static int raise_stop(lua_State *L, const script *s)
{
    lua_pushstring(L, s->stop_text);
    return lua_error(L);
}

static void on_instructions(lua_State *L, lua_Debug *ar);

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
    lua_sethook(s->L, on_instructions, LUA_MASKLINE | LUA_MASKCOUNT, 1);
    script_trace_stack(L, &s->trace);
    script_write_stop(s, why, s->stop_text);
}

static void on_instructions(lua_State *L, lua_Debug *ar)
{
    script *s = script_of(L);
    (void)ar;
    if (s->stop == SCRIPT_GOES_ON) {
        script_stop why = reason_to_stop(s);
        if (why == SCRIPT_GOES_ON) {
            return;
        }
        begin_stop(L, s, why);
    }
    lua_sethook(L, on_instructions, LUA_MASKLINE | LUA_MASKCOUNT, 1);
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

// ---- life -------------------------------------------------------------------------------------------------------

static int open_everything(lua_State *L)
{
    script_open_sandbox(L);
    script_open_bytes(L);
    script_open_knobs(L);
    script_open_api(L);
    return 0;
}

hr_status script_open(script *s, const script_limits *limits, hr_err *err)
{
    s->limits = *limits;
    s->L = lua_newstate(allocate, s);
    if (s->L == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a Lua state");
    }
    *(script **)lua_getextraspace(s->L) = s;
    s->running = s->L;
    script_end_engine(s);
    lua_pushcfunction(s->L, open_everything);
    if (lua_pcall(s->L, 0, 0, 0) != LUA_OK) {
        hr_status status = HR_FAIL(err, NOMEM, "a sandbox for the recipe: %s", lua_tostring(s->L, -1));
        return status;
    }
    lua_sethook(s->L, on_instructions, LUA_MASKCOUNT, HOOK_INSTRUCTIONS);
    return HR_OK;
}

void script_close(script *s)
{
    if (s->L != NULL) {
        lua_close(s->L);
    }
    hr_engine_destroy(s->engine);
    hr_engine_destroy(s->planner);
    hr_report_deinit(&s->report);
    hr_replay_result_deinit(&s->replayed);
    hr_replay_close(s->replay);
    hr_preset_close(s->preset);
    while (s->sources != NULL) {
        script_source *next = s->sources->next;
        free(s->sources->text);
        free(s->sources);
        s->sources = next;
    }
    *s = (script){0};
}

int script_run_source(script *s, const script_source *source)
{
    lua_State *L = s->L;
    script_end_engine(s);
    lua_pushcfunction(L, script_take_trace);
    int status = script_load_source(L, source);
    if (status == LUA_OK) {
        status = lua_pcall(L, 0, 0, -2);
    }
    return status;
}
