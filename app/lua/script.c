// SPDX-License-Identifier: Apache-2.0
// Life and limits of a recipe: how much memory and how much time its Lua may take.
#include "app/lua/script.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/lua/api.h"

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

// ---- life -------------------------------------------------------------------------------------------------------

static int open_everything(lua_State *L)
{
    script_open_sandbox(L);
    script_open_bytes(L);
    script_open_knobs(L);
    script_open_callbacks(L);
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
    s->opened_ns = script_clock_ns();
    script_end_engine(s);
    lua_pushcfunction(s->L, open_everything);
    if (lua_pcall(s->L, 0, 0, 0) != LUA_OK) {
        hr_status status = HR_FAIL(err, NOMEM, "a sandbox for the recipe: %s", lua_tostring(s->L, -1));
        return status;
    }
    script_arm_hook(s->L);
    return HR_OK;
}

void script_close(script *s)
{
    if (s->L != NULL) {
        lua_close(s->L);
    }
    script_leave_host(s, NULL);
    hr_engine_destroy(s->training);
    free(s->events);
    free(s->picture);
    script_forget_shown(s);
    hr_engine_destroy(s->planner);
    hr_report_deinit(&s->report);
    hr_weight_stats_deinit(&s->weights);
    hr_weight_values_deinit(&s->values);
    hr_model_layers_deinit(&s->layers);
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
