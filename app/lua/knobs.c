// SPDX-License-Identifier: Apache-2.0
// hr.knobs.<group>.<key>: read and turn knobs. The knob table of the engine is the only list of names.
#include "headroom/knobs.h"

#include <math.h>
#include <string.h>

#include "headroom/units.h"
#include "headroom/words.h"

#include "app/lua/options.h"
#include "app/lua/script.h"

enum { GROUP_MAX = 32 };

static const char knobs_type[] = "hr.knobs";
static const char group_type[] = "hr.knobs.group"; // a userdata that holds the group's name

// ---- names ----------------------------------------------------------------------------------------------------------

static bool is_group(const char *name)
{
    size_t length = strlen(name);
    for (int k = 0; k < HR_KNOB_COUNT; k++) {
        const char *key = hr_knob_rows(NULL)[k].key;
        if (strncmp(key, name, length) == 0 && key[length] == '.') {
            return true;
        }
    }
    return false;
}

// "batch_size": the knob batch.size; NULL: it is none with a dot in place of one of the bars.
static const char *knob_with_bar(const char *name)
{
    char dotted[96];
    (void)snprintf(dotted, sizeof dotted, "%s", name);
    for (char *bar = strchr(dotted, '_'); bar != NULL; bar = strchr(bar + 1, '_')) {
        *bar = '.';
        const hr_knob_row *row = hr_knob_find(dotted, NULL);
        *bar = '_';
        if (row != NULL) {
            return row->key;
        }
    }
    return NULL;
}

// Among the groups, and the options of hr.FUNCTION where one reads them; NULL: none does.
static int raise_unknown_group(lua_State *L, const char *name, const char *function)
{
    enum { OPTIONS_MAX = 16 };
    char groups[HR_KNOB_COUNT][GROUP_MAX];
    const char *words[HR_KNOB_COUNT + OPTIONS_MAX];
    size_t count = 0;
    for (const lua_script_field *f = script_options_of(function); f->name != NULL && count < OPTIONS_MAX;
         f++) {
        words[count++] = f->name;
    }
    for (int k = 0; k < HR_KNOB_COUNT; k++) {
        const char *key = hr_knob_rows(NULL)[k].key;
        (void)snprintf(groups[k], GROUP_MAX, "%.*s", (int)strcspn(key, "."), key);
        words[count++] = groups[k];
    }
    const char *knob = knob_with_bar(name);
    const char *near = knob != NULL ? knob : hr_word_nearest(name, words, count);
    char what[64] = "unknown group of knobs";
    hr_err err = {0};
    if (function != NULL) {
        (void)snprintf(what, sizeof what, "hr.%.16s has no option or group of knobs", function);
    }
    (void)HR_FAIL(&err, KNOB, "%s '%.64s'%s%s%s", what, name, near == NULL ? "" : " — did you mean '",
                  near == NULL ? "" : near, near == NULL ? "" : "'?");
    if (function != NULL) {
        hr_err_try(&err, "hr.%.16s{steps = 10, [\"batch.size\"] = 64}", function);
    }
    return script_raise(L, &err);
}

static const hr_knob_row *find_row(lua_State *L, const char *key)
{
    const char *near = NULL;
    const hr_knob_row *row = hr_knob_find(key, &near);
    if (row == NULL) {
        hr_err err = {0};
        (void)HR_FAIL(&err, KNOB, "unknown knob '%.96s'%s%s%s", key, near == NULL ? "" : " — did you mean '",
                      near == NULL ? "" : near, near == NULL ? "" : "'?");
        (void)script_raise(L, &err);
    }
    return row;
}

static const hr_knob_row *find_in_group(lua_State *L, const char *group, const char *key)
{
    char whole[GROUP_MAX + 96];
    (void)snprintf(whole, sizeof whole, "%s.%.90s", group, key);
    return find_row(L, whole);
}

// ---- values ---------------------------------------------------------------------------------------------------------

static void number_text(lua_State *L, int index, char text[HR_KNOB_TEXT_MAX])
{
    int whole = 0;
    lua_Integer integer = lua_tointegerx(L, index, &whole);
    if (whole) {
        (void)snprintf(text, HR_KNOB_TEXT_MAX, "%lld", (long long)integer);
    } else {
        (void)snprintf(text, HR_KNOB_TEXT_MAX, "%.17g", lua_tonumber(L, index));
    }
}

// The value at `index` as a person would type it.
static void value_text(lua_State *L, int index, const hr_knob_row *row, char text[HR_KNOB_TEXT_MAX])
{
    int64_t bytes = 0;
    size_t length = 0;
    const char *string = "";
    text[0] = '\0';
    if (script_is_bytes(L, index, &bytes)) {
        (void)snprintf(text, HR_KNOB_TEXT_MAX, "%lldB", (long long)bytes);
        return;
    }
    switch (lua_type(L, index)) {
    case LUA_TNIL:
        break;
    case LUA_TBOOLEAN:
        string = lua_toboolean(L, index) ? "on" : "off";
        break;
    case LUA_TNUMBER:
        number_text(L, index, text);
        return;
    case LUA_TSTRING:
        string = lua_tolstring(L, index, &length);
        break;
    default:
        (void)script_error(L, "%s takes a number, a text or a boolean, had a %s", row->key,
                           luaL_typename(L, index));
        return;
    }
    if (length >= HR_KNOB_TEXT_MAX || strlen(string) < length) {
        (void)script_error(L, "%s takes a text of at most %d characters without zeros", row->key,
                           HR_KNOB_TEXT_MAX - 1);
    }
    (void)snprintf(text, HR_KNOB_TEXT_MAX, "%s", string);
}

static void push_value(lua_State *L, const hr_knobs *knobs, const hr_knob_row *row)
{
    if (hr_knob_is_switch(row)) {
        lua_pushboolean(L, hr_knob_is(knobs, row->id, "on"));
        return;
    }
    bool number = row->type == HR_KNOB_INT || row->type == HR_KNOB_REAL || row->type == HR_KNOB_BYTES;
    if (number && !hr_knob_is_set(knobs, row->id) && row->preset_default[0] == '\0') {
        lua_pushnil(L);
        return;
    }
    switch (row->type) {
    case HR_KNOB_INT:
        lua_pushinteger(L, hr_knob_int(knobs, row->id));
        break;
    case HR_KNOB_REAL:
        lua_pushnumber(L, hr_knob_real(knobs, row->id));
        break;
    case HR_KNOB_BYTES:
        script_push_bytes(L, (int64_t)hr_knob_bytes(knobs, row->id, 0));
        break;
    case HR_KNOB_CHOICE:
    case HR_KNOB_TEXT:
        lua_pushstring(L, hr_knob_text(knobs, row->id));
        break;
    }
}

// ---- turning --------------------------------------------------------------------------------------------------------

const hr_knobs *script_current_knobs(lua_State *L)
{
    const script *s = script_of(L);
    if (s->preset == NULL) {
        hr_err err = {0};
        (void)HR_FAIL(&err, LUA, "there are no knobs before a preset");
        hr_err_try(&err, "hr.preset \"demo\" above this line");
        (void)script_raise(L, &err);
    }
    return s->engine != NULL ? hr_engine_knobs(s->engine) : &s->knobs;
}

static hr_status set_text(script *s, hr_knobs *knobs, const hr_knob_row *row, char text[HR_KNOB_TEXT_MAX],
                          hr_err *err)
{
    HR_TRY(script_confine_knob(s, row->id, text, err));
    if (knobs != &s->knobs || s->engine == NULL) {
        return hr_knobs_set(knobs, row->id, text, err);
    }
    HR_TRY(script_may_ask(s, err));
    hr_command command = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_KNOB, .knob = row->id};
    memcpy(command.text, text, sizeof command.text);
    HR_TRY(hr_engine_command(s->engine, &command, err));
    return hr_knobs_set(knobs, row->id, text, err);
}

// Sets the knob from the value on top of the stack; in the recipe's own knobs also those of the engine that runs.
static void turn(lua_State *L, hr_knobs *knobs, const hr_knob_row *row)
{
    char text[HR_KNOB_TEXT_MAX];
    hr_err err = {0};
    value_text(L, lua_gettop(L), row, text);
    if (set_text(script_of(L), knobs, row, text, &err) != HR_OK) {
        (void)script_raise(L, &err);
    }
}

// Sets every knob of the group from the table on top of the stack.
static void turn_group(lua_State *L, hr_knobs *knobs, const char *group)
{
    if (!lua_istable(L, -1)) {
        (void)script_error(L, "'%s' is a group of knobs: needed a table such as {key = value}, had a %s",
                           group, luaL_typename(L, -1));
    }
    lua_pushnil(L);
    while (lua_next(L, -2) != 0) {
        if (lua_type(L, -2) != LUA_TSTRING) {
            (void)script_error(L, "'%s' is a group of knobs: its keys are names, had a %s", group,
                               luaL_typename(L, -2));
        }
        turn(L, knobs, find_in_group(L, group, lua_tostring(L, -2)));
        lua_pop(L, 1);
    }
}

// Sets what `key` names, a knob with its dot or a group, from the value on top of the stack.
static void turn_named(lua_State *L, hr_knobs *knobs, const char *key, const char *function)
{
    if (strchr(key, '.') != NULL) {
        turn(L, knobs, find_row(L, key));
    } else if (is_group(key)) {
        turn_group(L, knobs, key);
    } else {
        (void)raise_unknown_group(L, key, function);
    }
}

static bool is_among(const char *word, const lua_script_field *options)
{
    while (options->name != NULL && strcmp(word, options->name) != 0) {
        options++;
    }
    return options->name != NULL;
}

void script_apply_overrides(lua_State *L, int index, const char *function, hr_knobs *knobs)
{
    const lua_script_field *options = script_options_of(function);
    lua_pushvalue(L, index);
    lua_pushnil(L);
    while (lua_next(L, -2) != 0) {
        if (lua_type(L, -2) != LUA_TSTRING) {
            (void)script_error(L, "options have names, such as {steps = 10}, had a %s", luaL_typename(L, -2));
        }
        if (!is_among(lua_tostring(L, -2), options)) {
            turn_named(L, knobs, lua_tostring(L, -2), function);
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

void script_check_axis(lua_State *L, const char *key)
{
    const hr_knob_row *row = find_row(L, key);
    const lua_Integer count = row->type == HR_KNOB_CHOICE ? (lua_Integer)lua_rawlen(L, -1) : 0;
    for (lua_Integer k = 1; k <= count; k++) {
        char text[HR_KNOB_TEXT_MAX];
        hr_knobs alone;
        hr_err err = {0};
        lua_rawgeti(L, -1, k);
        value_text(L, lua_gettop(L), row, text);
        hr_knobs_init(&alone);
        if (hr_knobs_set(&alone, row->id, text, &err) != HR_OK) {
            (void)script_raise(L, &err);
        }
        lua_pop(L, 1);
    }
}

// ---- hr.knobs -------------------------------------------------------------------------------------------------------

static int get_knob(lua_State *L)
{
    const char *group = luaL_checkudata(L, 1, group_type);
    const hr_knob_row *row = find_in_group(L, group, luaL_checkstring(L, 2));
    push_value(L, script_current_knobs(L), row);
    return 1;
}

static int set_knob(lua_State *L)
{
    const char *group = luaL_checkudata(L, 1, group_type);
    const hr_knob_row *row = find_in_group(L, group, luaL_checkstring(L, 2));
    (void)script_current_knobs(L);
    lua_settop(L, 3);
    turn(L, &script_of(L)->knobs, row);
    return 0;
}

static int get_group(lua_State *L)
{
    const char *name = luaL_checkstring(L, 2);
    if (strchr(name, '.') != NULL) {
        push_value(L, script_current_knobs(L), find_row(L, name));
        return 1;
    }
    if (!is_group(name)) {
        return raise_unknown_group(L, name, NULL);
    }
    char *kept = lua_newuserdatauv(L, GROUP_MAX, 0);
    (void)snprintf(kept, GROUP_MAX, "%s", name);
    luaL_setmetatable(L, group_type);
    return 1;
}

// The recipe's own, and those of the engine that runs: all that the table on top of the stack names, or none.
static void turn_whole_group(lua_State *L, const char *group)
{
    script *s = script_of(L);
    hr_knobs own = s->knobs;
    hr_err err = {0};
    turn_group(L, &own, group);
    if (s->engine != NULL) {
        hr_knobs all = *hr_engine_knobs(s->engine);
        turn_group(L, &all, group);
        if (script_may_ask(s, &err) != HR_OK || script_turn_engine(s->engine, &all, &err) != HR_OK) {
            (void)script_raise(L, &err);
        }
    }
    s->knobs = own;
}

static int set_group(lua_State *L)
{
    const char *name = luaL_checkstring(L, 2);
    (void)script_current_knobs(L);
    lua_settop(L, 3);
    if (is_group(name)) {
        turn_whole_group(L, name);
    } else {
        turn_named(L, &script_of(L)->knobs, name, NULL);
    }
    return 0;
}

// ---- pairs ----------------------------------------------------------------------------------------------------------

// The knob behind `key` in the table's order, of hr.knobs or of a group: its name and its value.
static int next_knob(lua_State *L)
{
    const char *group = luaL_testudata(L, 1, group_type);
    const size_t length = group == NULL ? 0 : strlen(group);
    int id = 0;
    if (!lua_isnoneornil(L, 2)) {
        const char *key = luaL_checkstring(L, 2);
        id = (int)(group == NULL ? find_row(L, key) : find_in_group(L, group, key))->id + 1;
    }
    for (; id < HR_KNOB_COUNT; id++) {
        const hr_knob_row *row = &hr_knob_rows(NULL)[id];
        if (group == NULL || (strncmp(row->key, group, length) == 0 && row->key[length] == '.')) {
            lua_pushstring(L, row->key + (group == NULL ? 0 : length + 1));
            push_value(L, script_current_knobs(L), row);
            return 2;
        }
    }
    lua_pushnil(L);
    return 1;
}

static int pairs_of_knobs(lua_State *L)
{
    lua_pushcfunction(L, next_knob);
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    return 3;
}

static int group_to_text(lua_State *L)
{
    const char *group = luaL_testudata(L, 1, group_type);
    lua_pushfstring(L, "hr.knobs%s%s", group == NULL ? "" : ".", group == NULL ? "" : group);
    return 1;
}

static void open_type(lua_State *L, const char *type, lua_CFunction get, lua_CFunction set)
{
    const luaL_Reg methods[] = {{"__index", get},
                                {"__newindex", set},
                                {"__tostring", group_to_text},
                                {"__pairs", pairs_of_knobs},
                                {NULL, NULL}};
    (void)luaL_newmetatable(L, type);
    luaL_setfuncs(L, methods, 0);
    lua_pushstring(L, type);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}

void script_open_knobs(lua_State *L)
{
    open_type(L, knobs_type, get_group, set_group);
    open_type(L, group_type, get_knob, set_knob);
}

int script_push_knobs(lua_State *L)
{
    (void)lua_newuserdatauv(L, 0, 0);
    luaL_setmetatable(L, knobs_type);
    return 1;
}
