// SPDX-License-Identifier: Apache-2.0
// hr.explain: the `oom` of `headroom explain --json`, of the preset or of a trace, with fixes whose knobs can be handed to
// hr.plan, hr.run or hr.explain again; the whole report is its field `report`.
#include <math.h>
#include <string.h>

#include "headroom/replay.h"

#include "app/lua/fields.h"
#include "app/lua/script.h"

enum { EXPLAIN_STEPS = 12 }; // as many as the command plays

// ---- beside the report ----------------------------------------------------------------------------------------------

// {["batch.size"] = "64", …}
static void push_knobs(lua_State *L, const char *pairs)
{
    lua_newtable(L);
    while (*pairs != '\0') {
        const size_t length = strcspn(pairs, " "), key = strcspn(pairs, "=");
        (void)lua_pushlstring(L, pairs, key);
        (void)lua_pushlstring(L, pairs + key + 1, length - key - 1);
        lua_rawset(L, -3);
        pairs += length + (pairs[length] == ' ');
    }
}

static void push_fix(lua_State *L, const hr_report_fix *fix)
{
    lua_newtable(L);
    push_knobs(L, fix->knobs);
    lua_setfield(L, -2, "knobs");
    lua_pushstring(L, fix->cost);
    lua_setfield(L, -2, "cost");
    script_push_bytes_or_nil(L, fix->peak_bytes);
    lua_setfield(L, -2, "peak_bytes");
    script_push_bytes_or_nil(L, fix->host_bytes);
    lua_setfield(L, -2, "host_bytes");
    if (isfinite(fix->seconds)) {
        lua_pushnumber(L, fix->seconds);
        lua_setfield(L, -2, "seconds");
        lua_pushstring(L, hr_time_basis_name(fix->basis));
        lua_setfield(L, -2, "seconds_basis");
    }
}

// The out-of-memory's fields, all of them nil where there was none; the report's table is on top of the stack, and goes into it.
static void push_verdict(lua_State *L, const hr_report_oom *oom)
{
    const bool any = oom->cause != HR_OOM_NONE;
    lua_newtable(L);
    if (any) {
        script_set_fields(L, hr_oom_fields(), oom, NULL);
    }
    lua_newtable(L);
    for (uint32_t k = 0; any && k < oom->fix_count; k++) {
        push_fix(L, &oom->fixes[k]);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    lua_setfield(L, -2, "fixes");
    lua_pushboolean(L, !hr_oom_cause_refuses(oom->cause));
    lua_setfield(L, -2, "fits");
    lua_insert(L, -2);
    lua_setfield(L, -2, "report");
    script_guard_fields(L, hr_oom_fields());
}

// ---- of the preset --------------------------------------------------------------------------------------------------

// The report on top of the stack becomes one that says what cost time, too.
static void explain_plan(lua_State *L)
{
    script *s = script_of(L);
    hr_err err = {0};
    lua_pop(L, 1);
    script_begin_engine(s);
    hr_report_deinit(&s->report);
    const hr_status status = hr_engine_explain(s->planner, &s->report, &err);
    script_end_engine(s);
    if (status != HR_OK) {
        s->report = (hr_report){0};
        (void)script_raise(L, &err);
    }
    script_push_report(L, &s->report);
}

// Options at 1: the plan of as many steps as the command's, if they name no others.
static int explain_preset(lua_State *L)
{
    lua_newtable(L);
    lua_pushinteger(L, EXPLAIN_STEPS);
    lua_setfield(L, -2, "steps");
    lua_pushnil(L);
    while (lua_next(L, 1) != 0) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
    lua_replace(L, 1);
    (void)script_plan(L);
    explain_plan(L);
    push_verdict(L, &script_of(L)->report.oom);
    return 1;
}

// ---- of a trace -----------------------------------------------------------------------------------------------------

// Of whose memory it was, unless the options at 2 say another; a knob that no replay listens to is an error at the recipe's line.
static void read_knobs(lua_State *L, const hr_replay *replay, hr_knobs *knobs)
{
    hr_knobs usual;
    hr_replay_knobs_init(knobs);
    if (strcmp(hr_replay_get_about(replay)->format, "pytorch_snapshot") == 0 &&
        hr_knobs_set(knobs, HR_KNOB_ALLOCATOR_KIND, "caching", NULL) != HR_OK) {
        (void)script_error(L, "hr.explain: no allocator is called caching");
    }
    usual = *knobs;
    script_apply_overrides(L, 2, NULL, knobs);
    script_check_replay_knobs(L, knobs, &usual);
}

static int explain_trace(lua_State *L, const char *name)
{
    script *s = script_of(L);
    hr_err err = {0};
    hr_knobs knobs;
    script_open_trace(L, name);
    read_knobs(L, s->replay, &knobs);
    script_begin_engine(s);
    hr_report_deinit(&s->report);
    const hr_status status = hr_replay_explain(s->replay, &knobs, name, &s->report, &err);
    script_end_engine(s);
    if (status != HR_OK) {
        s->report = (hr_report){0};
        return script_raise(L, &err);
    }
    script_check_stop(L);
    script_push_report(L, &s->report);
    push_verdict(L, &s->report.oom);
    return 1;
}

int script_explain(lua_State *L)
{
    if (lua_type(L, 1) == LUA_TSTRING) {
        if (lua_isnoneornil(L, 2)) {
            lua_settop(L, 1);
            lua_newtable(L);
        }
        luaL_checktype(L, 2, LUA_TTABLE);
        lua_settop(L, 2);
        return explain_trace(L, lua_tostring(L, 1));
    }
    if (lua_isnone(L, 1)) {
        lua_newtable(L);
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    return explain_preset(L);
}
