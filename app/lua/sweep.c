// SPDX-License-Identifier: Apache-2.0
// hr.sweep: every combination of some knobs' values, planned, and trained where steps are asked for.
#include <string.h>

#include "app/lua/json.h"
#include "app/lua/script.h"

enum { AXES_MAX = 8, COMBINATIONS_MAX = 10000 };

// Stack of what follows: 1 axes, 2 options, 3 list of rows, 4 list of the axes' keys in order, 5 the rows' metatable.

// How many values the axis has whose name is on top of the stack.
static lua_Integer check_axis(lua_State *L)
{
    lua_pushvalue(L, -1);
    if (lua_rawget(L, 1) != LUA_TTABLE || lua_rawlen(L, -1) == 0) {
        (void)script_error(
            L, "hr.sweep takes knobs with lists of values, such as {[\"batch.size\"] = {32, 64}}");
    }
    script_check_axis(L, lua_tostring(L, -2)); // a mistyped one is no row of the answer
    const size_t values = lua_rawlen(L, -1);
    lua_pop(L, 1);
    return values > COMBINATIONS_MAX ? COMBINATIONS_MAX + 1 : (lua_Integer)values;
}

// The keys of the axes in alphabetical order, as a list; how many combinations there are.
static lua_Integer push_keys(lua_State *L)
{
    const lua_Integer count = script_push_keys(L, 1, "hr.sweep");
    lua_Integer combinations = 1;
    if (count == 0 || count > AXES_MAX) {
        (void)script_error(L, "hr.sweep takes 1 to %d knobs with lists of values, had %I", AXES_MAX,
                           (LUAI_UACINT)count);
    }
    for (lua_Integer k = 1; k <= count; k++) {
        lua_rawgeti(L, 4, k);
        combinations *= check_axis(L);
        if (combinations > COMBINATIONS_MAX) {
            (void)script_error(L, "hr.sweep takes at most %d combinations", COMBINATIONS_MAX);
        }
        lua_pop(L, 1);
    }
    return combinations;
}

// Pushes a table with combination n, the last key's value changing fastest: key → value, as overrides and as a row have it.
static void push_combination(lua_State *L, lua_Integer n)
{
    lua_newtable(L);
    for (lua_Integer k = (lua_Integer)lua_rawlen(L, 4); k >= 1; k--) {
        lua_rawgeti(L, 4, k);
        lua_pushvalue(L, -1);
        lua_rawget(L, 1);
        const lua_Integer count = lua_istable(L, -1) ? (lua_Integer)lua_rawlen(L, -1) : 0;
        if (count == 0) { // a callback of the row before has changed the axes
            (void)script_error(L, "hr.sweep: the values of %s are gone", lua_tostring(L, -2));
        }
        if (lua_rawgeti(L, -1, n % count + 1) == LUA_TNIL) {
            (void)script_error(L, "hr.sweep: the values of %s have a hole", lua_tostring(L, -3));
        }
        n /= count;
        lua_remove(L, -2);
        lua_rawset(L, -3);
    }
}

// The result on top of the stack as field `name` of the row, or the error as `error`.
static void keep_answer(lua_State *L, int row, bool fine, const char *name)
{
    if (!fine) {
        script_check_stop(L);
        script_strip_place(L);
    }
    lua_setfield(L, row, fine ? name : "error");
}

// Stack: …, row, overrides.
static bool plan_row(lua_State *L, int row)
{
    lua_pushcfunction(L, script_plan);
    lua_pushvalue(L, row + 1);
    const bool fine = lua_pcall(L, 1, 1, 0) == LUA_OK;
    keep_answer(L, row, fine, "plan");
    return fine;
}

static void set_from(lua_State *L, int row, const char *name, const char *object, const char *field)
{
    lua_pushstring(L, object);
    lua_rawget(L, -2);
    if (lua_istable(L, -1)) {
        lua_pushstring(L, field);
        lua_rawget(L, -2);
        lua_setfield(L, row, name);
    }
    lua_pop(L, 1);
}

// The figures that a table of a sweep is about, beside the whole results.
static void set_figures(lua_State *L, int row, bool run)
{
    (void)lua_getfield(L, row, run ? "run" : "plan");
    if (lua_istable(L, -1)) {
        if (!run) {
            (void)lua_getfield(L, -1, "fits");
            lua_setfield(L, row, "fits");
        }
        set_from(L, row, run ? "run_peak_in_use_bytes" : "peak_in_use_bytes", "memory", "peak_in_use_bytes");
        set_from(L, row, run ? "run_seconds" : "seconds", "step", "seconds");
        set_from(L, row, run ? "loss_last" : "cause", run ? "train" : "oom", run ? "loss_last" : "cause");
        if (run) {
            set_from(L, row, "examples_per_second", "train", "examples_per_second");
        }
    }
    lua_pop(L, 1);
}

// The training that the recipe has waits meanwhile, and its save is neither written nor gone on from. Stack: …, row, overrides.
static void run_row(lua_State *L, int row, uint64_t steps)
{
    script *s = script_of(L);
    hr_engine *waiting = s->training;
    const bool epoch_begins = s->epoch_begins;
    const hr_knob_value save = s->knobs.value[HR_KNOB_TRAIN_SAVE];
    const hr_knob_value resume = s->knobs.value[HR_KNOB_TRAIN_RESUME];
    s->knobs.value[HR_KNOB_TRAIN_SAVE] = s->knobs.value[HR_KNOB_TRAIN_RESUME] = (hr_knob_value){0};
    lua_pushinteger(L, (lua_Integer)steps);
    lua_setfield(L, row + 1, "steps");
    s->training = NULL;
    lua_pushcfunction(L, script_run);
    lua_pushvalue(L, row + 1);
    const bool fine = lua_pcall(L, 1, 1, 0) == LUA_OK;
    script_drop_training(s);
    s->training = waiting;
    s->epoch_begins = epoch_begins;
    s->knobs.value[HR_KNOB_TRAIN_SAVE] = save;
    s->knobs.value[HR_KNOB_TRAIN_RESUME] = resume;
    keep_answer(L, row, fine, "run");
}

// ---- names of a row ---------------------------------------------------------------------------------------------------

static const char *const figures[] = {"fits",
                                      "peak_in_use_bytes",
                                      "seconds",
                                      "cause",
                                      "run_peak_in_use_bytes",
                                      "run_seconds",
                                      "loss_last",
                                      "examples_per_second",
                                      "error",
                                      "plan",
                                      "run"};

enum { FIGURE_COUNT = sizeof figures / sizeof *figures };

// __index of a row: what it does not have this time is nil, what no row has is a mistake. Upvalue: the axes' keys.
static int get_missing(lua_State *L)
{
    const char *names[AXES_MAX + FIGURE_COUNT];
    size_t count = 0;
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : NULL;
    const lua_Integer axes = (lua_Integer)lua_rawlen(L, lua_upvalueindex(1));
    for (lua_Integer k = 1; k <= axes; k++) {
        lua_rawgeti(L, lua_upvalueindex(1), k);
        names[count++] = lua_tostring(L, -1); // kept by the list
    }
    for (size_t k = 0; k < FIGURE_COUNT; k++) {
        names[count++] = figures[k];
    }
    for (size_t k = 0; name != NULL && k < count; k++) {
        if (strcmp(names[k], name) == 0) {
            name = NULL;
        }
    }
    if (name != NULL) {
        return script_raise_unknown(L, "a row of hr.sweep has no field '%s'", name, names, count);
    }
    lua_pushnil(L);
    return 1;
}

static void push_row_type(lua_State *L)
{
    lua_createtable(L, 0, 2);
    lua_pushvalue(L, 4);
    lua_pushcclosure(L, get_missing, 1);
    lua_setfield(L, -2, "__index");
    lua_pushliteral(L, "hr.sweep.row");
    lua_setfield(L, -2, "__metatable");
}

static void add_row(lua_State *L, lua_Integer n, uint64_t steps)
{
    push_combination(L, n);
    push_combination(L, n);
    const int row = lua_gettop(L) - 1;
    const bool planned = plan_row(L, row);
    set_figures(L, row, false);
    (void)lua_getfield(L, row, "fits");
    const bool fits = lua_toboolean(L, -1);
    lua_pop(L, 1);
    if (planned && fits && steps > 0) {
        run_row(L, row, steps);
        set_figures(L, row, true);
    }
    lua_settop(L, row);
    lua_pushvalue(L, 5);
    lua_setmetatable(L, row);
    lua_rawseti(L, 3, n + 1);
}

int script_sweep(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    if (lua_isnoneornil(L, 2)) {
        lua_settop(L, 1);
        lua_newtable(L);
    }
    lua_settop(L, 2);
    script_check_options(L, 2, "sweep");
    const uint64_t steps = script_steps_option(L, 2, 0);
    if (steps > 0 && script_of(L)->engine != NULL) {
        return script_error(L, "hr.sweep with steps within a callback of hr.run: one run at a time");
    }
    lua_newtable(L);
    const lua_Integer combinations = push_keys(L);
    push_row_type(L);
    for (lua_Integer n = 0; n < combinations; n++) {
        add_row(L, n, steps);
    }
    lua_settop(L, 3);
    return 1;
}
