// SPDX-License-Identifier: Apache-2.0
// The functions of hr that are small: the preset, checks, notes, arguments.
#include "app/lua/api.h"
#include "app/lua/script.h"

// ---- hr.preset ------------------------------------------------------------------------------------------------------

// By name, as everywhere; by path from below the recipe's folder, unless the person typed the path.
static hr_status open_preset(script *s, const char *name, hr_preset **preset, hr_knobs *knobs, hr_err *err)
{
    char path[SCRIPT_PATH_MAX];
    char *problems = NULL;
    bool is_path = hr_preset_is_path(name);
    bool typed = is_path && script_was_typed(s, name);
    if (is_path) {
        HR_TRY(script_readable_path(s, name, path, err));
        name = path;
    }
    hr_status status = hr_preset_open(name, false, preset, &problems, err);
    hr_preset_problems_free(problems);
    HR_TRY(status);
    *knobs = *hr_preset_knobs(*preset);
    return is_path && !typed ? script_confine_knobs(s, knobs, err) : HR_OK;
}

int script_preset(lua_State *L)
{
    script *s = script_of(L);
    hr_err err = {0};
    hr_preset *preset = NULL;
    hr_knobs knobs;
    const char *name = luaL_checkstring(L, 1);
    if (s->engine != NULL) {
        return luaL_error(L, "hr.preset within a run: the model cannot change between two steps");
    }
    script_begin_engine(s);
    hr_status status = open_preset(s, name, &preset, &knobs, &err);
    script_end_engine(s);
    if (status != HR_OK) {
        hr_preset_close(preset);
        return script_raise(L, &err);
    }
    hr_preset_close(s->preset);
    s->preset = preset;
    s->knobs = knobs;
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
    return 1;
}
