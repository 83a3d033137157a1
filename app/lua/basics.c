// SPDX-License-Identifier: Apache-2.0
// The functions of hr that are small: the preset, checks, notes, arguments.
#include <string.h>
#include <time.h>

#include "app/lua/api.h"
#include "app/lua/script.h"

// ---- hr.preset ------------------------------------------------------------------------------------------------------

// By name, as everywhere; by path from below the recipe's folder, unless the person typed the path or opened it.
static hr_status open_preset(script *s, const char *name, hr_preset **preset, hr_knobs *knobs, hr_err *err)
{
    char path[SCRIPT_PATH_MAX];
    char *problems = NULL;
    bool is_path = hr_preset_is_path(name);
    const bool shown = s->shown != NULL && strcmp(s->shown, name) == 0; // the person opened it
    bool typed = is_path && (shown || script_was_typed(s, name));
    if (is_path && !shown) {
        HR_TRY(script_readable_path(s, name, path, err));
        name = path;
    }
    hr_status status = hr_preset_open(name, false, preset, &problems, err);
    hr_preset_problems_free(problems);
    HR_TRY(status);
    *knobs = *hr_preset_knobs(*preset);
    return is_path && !typed ? script_confine_knobs(s, knobs, err) : HR_OK;
}

// What a workbench shows is its training, with the knobs as they are; false: it is another model.
static bool return_to_host(script *s, const hr_preset *preset)
{
    if (s->host == NULL || s->host->engine == NULL) {
        return false;
    }
    if (strcmp(s->home, hr_preset_path(preset)) != 0) {
        script_leave_host(s, hr_preset_name(preset));
        return false;
    }
    if (!script_is_hosted(s)) {
        script_drop_training(s);
        s->training = s->host->engine;
        s->knobs = *hr_engine_knobs(s->training);
    }
    return true;
}

int script_preset(lua_State *L)
{
    script *s = script_of(L);
    hr_err err = {0};
    hr_preset *preset = NULL;
    hr_knobs knobs;
    const char *name = luaL_checkstring(L, 1);
    if (s->engine != NULL) {
        return script_error(L, "hr.preset within a run: the model cannot change between two steps");
    }
    script_begin_engine(s);
    hr_status status = open_preset(s, name, &preset, &knobs, &err);
    script_end_engine(s);
    if (status != HR_OK) {
        hr_preset_close(preset);
        return script_raise(L, &err);
    }
    const bool returns = return_to_host(s, preset);
    if (!returns) {
        script_drop_training(s);
        s->knobs = knobs;
    }
    hr_preset_close(s->preset);
    s->preset = preset;
    s->preset_number++;
    lua_pushstring(L, hr_preset_name(preset));
    return 1;
}

// ---- hr.expect, hr.note, fields -------------------------------------------------------------------------------------

int script_expect(lua_State *L)
{
    script *s = script_of(L);
    hr_err err = {0};
    luaL_checkany(L, 1);
    if (lua_toboolean(L, 1)) {
        lua_settop(L, 1);
        return 1;
    }
    (void)HR_FAIL(&err, CHECK, "%s", luaL_optstring(L, 2, "what was expected is not so"));
    hr_err_try(&err, "print what the condition compares on the line above it");
    if (!s->check_failed) {
        s->check_failed = true;
        (void)snprintf(s->check_text, sizeof s->check_text, "%s", err.sentence);
    }
    return script_raise(L, &err);
}

int script_note(lua_State *L)
{
    script *s = script_of(L);
    size_t length = 0;
    luaL_checkany(L, 1);
    const char *text = luaL_tolstring(L, 1, &length);
    (void)fflush(s->out);
    fputs("note: ", s->notes);
    script_print_text(s->notes, text, length);
    fputc('\n', s->notes);
    return 0;
}

int script_push_version(lua_State *L)
{
    lua_pushinteger(L, SCRIPT_API_VERSION);
    return 1;
}

int script_push_args(lua_State *L)
{
    const script *s = script_of(L);
    lua_createtable(L, s->argc, 0);
    for (int k = 0; k < s->argc; k++) {
        lua_pushstring(L, s->argv[k]);
        lua_rawseti(L, -2, k + 1);
    }
    if (s->shown != NULL) {
        lua_pushstring(L, s->shown);
        lua_setfield(L, -2, "preset");
    }
    return 1;
}

// ---- hr.has, hr.time, hr.rng ------------------------------------------------------------------------------------------

// A name of hr, or the key of a knob.
int script_has(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    lua_settop(L, 1);
    (void)lua_getfield(L, LUA_REGISTRYINDEX, SCRIPT_NAMES_KEY);
    lua_pushvalue(L, 1);
    lua_pushboolean(L, lua_rawget(L, -2) != LUA_TNIL || hr_knob_find(name, NULL) != NULL);
    return 1;
}

uint64_t script_clock_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

int script_time(lua_State *L)
{
    lua_pushnumber(L, (double)(script_clock_ns() - script_of(L)->opened_ns) * 1e-9);
    return 1;
}

// Steele, Lea and Flood, "Fast splittable pseudorandom number generators": the state is a counter.
static uint64_t split_mix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

// Every one of [0, span] is as likely: what lies in the last, incomplete multiple is drawn again.
static uint64_t draw_within(uint64_t *state, uint64_t span)
{
    if (span == UINT64_MAX) {
        return split_mix(state);
    }
    const uint64_t count = span + 1, rest = (UINT64_MAX % count + 1) % count;
    uint64_t drawn = split_mix(state);
    while (drawn > UINT64_MAX - rest) {
        drawn = split_mix(state);
    }
    return drawn % count;
}

// As math.random: () in [0, 1), (n) of 1 to n, (low, high).
static int draw(lua_State *L)
{
    uint64_t *state = lua_touserdata(L, lua_upvalueindex(1));
    const int count = lua_gettop(L);
    if (count == 0) {
        lua_pushnumber(L, (double)(split_mix(state) >> 11) * 0x1p-53);
        return 1;
    }
    const lua_Integer low = count > 1 ? luaL_checkinteger(L, 1) : 1;
    const lua_Integer high = luaL_checkinteger(L, count > 1 ? 2 : 1);
    luaL_argcheck(L, low <= high, count > 1 ? 2 : 1, "the interval is empty");
    const uint64_t drawn = (uint64_t)low + draw_within(state, (uint64_t)high - (uint64_t)low);
    lua_pushinteger(L, (lua_Integer)drawn);
    return 1;
}

int script_rng(lua_State *L)
{
    const lua_Integer seed = luaL_optinteger(L, 1, 1);
    uint64_t *state = lua_newuserdatauv(L, sizeof *state, 0);
    *state = (uint64_t)seed;
    lua_pushcclosure(L, draw, 1);
    return 1;
}
