// SPDX-License-Identifier: Apache-2.0
// The registration table, and the functions that are small enough to stand beside it.
#include "app/lua/api.h"

#include <string.h>

#include "headroom/words.h"

#include "app/lua/lua_script.h"
#include "app/lua/script.h"

enum { API_VERSION = 1 };

static const char hr_type[] = "hr";

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

static int set_preset(lua_State *L)
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

static int expect(lua_State *L)
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

static int note(lua_State *L)
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

static int push_version(lua_State *L)
{
    lua_pushinteger(L, API_VERSION);
    return 1;
}

static int push_args(lua_State *L)
{
    const script *s = script_of(L);
    lua_createtable(L, s->argc, 0);
    for (int k = 0; k < s->argc; k++) {
        lua_pushstring(L, s->argv[k]);
        lua_rawseti(L, -2, k + 1);
    }
    return 1;
}

// ---- the table ------------------------------------------------------------------------------------------------------

#define DEMO "hr.preset \"demo\"\nhr.knobs.device.kind = \"plan\"\n"

// clang-format off
static const script_api_row rows[] = {
    {"api_version", NULL, "integer",
     "version of this table; it grows when a name changes its meaning",
     "assert(hr.api_version == 1)",
     push_version},
    {"args", NULL, "list of texts",
     "the words behind the recipe's name on the command line",
     "local cap = hr.bytes(hr.args[1] or \"64MiB\")",
     push_args},
    {"bytes", "size", "bytes",
     "a size from a number or a text: compares and adds with both, prints for people, has the number in .bytes",
     "local cap = hr.bytes(\"3GiB\")\nassert(cap - \"1GiB\" == hr.bytes(\"2GiB\") and cap > 1024 and cap.bytes == 3 << 30)",
     script_bytes},
    {"expect", "condition, message", "condition",
     "ends the recipe with exit code 1 when the condition is false or nil",
     DEMO "hr.expect(hr.plan().fits, \"the demo fits its card\")",
     expect},
    {"fit", "{keep = \"batch,precision\", knob = value, …}", "table",
     "searches for the fastest knobs that fit, all else as it is but for what may be turned; the names in the table are "
     "those of `headroom fit --json`, and a way's knobs are a list of \"key=value\"",
     DEMO "local found = hr.fit{keep = \"precision,optimizer\", [\"device.card\"] = \"rtx3070-8g\"}\n"
     "assert(found.fastest.peak_in_use_bytes < hr.plan().memory.limit_bytes and #found.points > 10)",
     script_fit},
    {"knobs", NULL, "groups of knobs",
     "every setting of `headroom knobs`, read and turned as hr.knobs.group.key; in a callback from the next step on",
     DEMO "hr.knobs.batch.size = 64\nhr.knobs.device.vram = \"48MiB\"\nassert(hr.knobs.device.vram == hr.bytes(\"48MiB\"))",
     script_push_knobs},
    {"note", "text", "",
     "a line on stderr, or in the log of the workbench",
     "hr.note(\"half way\")",
     note},
    {"on", "event, function", "",
     "calls the function with a table at every \"step\", \"epoch\" or \"oom\" of hr.run; an oom function that turns a knob "
     "and returns true lets the run go on; nil takes the event's functions away",
     DEMO "hr.on(\"step\", function(s) assert(s.step > 0 and s.peak_in_use_bytes > \"1MiB\") end)\nhr.run{steps = 3}",
     script_on},
    {"plan", "{steps = N, knob = value, …}", "result",
     "what a run with these knobs would take, to the byte, without running; result.fits is false when it would not fit",
     DEMO "local result = hr.plan{batch = {size = 256}, [\"device.vram\"] = \"64MiB\"}\nassert(not result.fits and result.oom.cause == \"capacity\")",
     script_plan},
    {"preset", "name_or_path", "name",
     "the model and the knobs to work with; a path counts from the recipe's folder",
     "hr.preset \"mlp\"",
     set_preset},
    {"replay", "trace, {allocators = list of names, knob = value, …}", "table",
     "plays a recorded trace, or a scenario by its name, on each of the allocators (all of them when none is named); the "
     "names in the table are those of `headroom replay --json`",
     "local r = hr.replay(\"growth_boundary\", {allocators = {\"bfc\"}, allocator = {growth = true}})\n"
     "assert(r.allocators[1].failures_total > 0 and r.allocators[1].memory.peak_in_use_bytes < r.trace.peak_requested_bytes)",
     script_replay},
    {"run", "{steps = N, until_oom = boolean, knob = value, …}", "result",
     "trains from new weights; out of memory is an error, with until_oom it is how the run may end",
     DEMO "local result = hr.run{steps = 5}\nassert(result.train.steps == 5)",
     script_run},
    {"stop", "", "",
     "ends the run after the step whose callback calls it",
     DEMO "hr.on(\"step\", function(s) if s.step == 2 then hr.stop() end end)\nassert(hr.run{steps = 100}.train.steps == 2)",
     script_end_run},
};
// clang-format on

enum { ROW_COUNT = sizeof rows / sizeof *rows };

const script_api_row *script_api_rows(size_t *count)
{
    *count = ROW_COUNT;
    return rows;
}

bool lua_script_row_at(size_t index, lua_script_row *row)
{
    if (index >= ROW_COUNT) {
        return false;
    }
    const script_api_row *r = &rows[index];
    *row = (lua_script_row){r->name, r->arguments, r->result, r->line, r->example};
    return true;
}

// ---- hr itself ------------------------------------------------------------------------------------------------------

static int raise_unknown_name(lua_State *L, const char *name)
{
    const char *names[ROW_COUNT];
    hr_err err = {0};
    for (size_t k = 0; k < ROW_COUNT; k++) {
        names[k] = rows[k].name;
    }
    const char *near = hr_word_nearest(name, names, ROW_COUNT);
    (void)HR_FAIL(&err, LUA, "hr has no '%.64s'%s%s%s", name, near == NULL ? "" : " — did you mean '",
                  near == NULL ? "" : near, near == NULL ? "" : "'?");
    hr_err_try(&err, "hr.%s", near == NULL ? "plan{steps = 3}, hr.run{steps = 10}" : near);
    return script_raise(L, &err);
}

// hr is an object, not a table: nothing in it can be replaced, not even by rawset. Its values are the upvalue.
static int get_name(lua_State *L)
{
    const char *name = luaL_checkstring(L, 2);
    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    return lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL ? 1 : raise_unknown_name(L, name);
}

static int refuse_write(lua_State *L)
{
    return luaL_error(L,
                      "hr is read-only: '%s' cannot be set; knobs are turned as hr.knobs.group.key = value",
                      luaL_tolstring(L, 2, NULL));
}

static int hr_to_text(lua_State *L)
{
    lua_pushfstring(L, "hr (version %d)", API_VERSION);
    return 1;
}

static void push_values(lua_State *L)
{
    lua_newtable(L);
    for (size_t k = 0; k < ROW_COUNT; k++) {
        if (rows[k].arguments != NULL) {
            lua_pushcfunction(L, rows[k].function);
        } else {
            (void)rows[k].function(L);
        }
        lua_setfield(L, -2, rows[k].name);
    }
}

void script_open_api(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"__newindex", refuse_write}, {"__tostring", hr_to_text}, {NULL, NULL}};
    (void)lua_newuserdatauv(L, 0, 0);
    (void)luaL_newmetatable(L, hr_type);
    luaL_setfuncs(L, methods, 0);
    push_values(L);
    lua_pushcclosure(L, get_name, 1);
    lua_setfield(L, -2, "__index");
    lua_pushstring(L, hr_type);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_setglobal(L, "hr");
}
