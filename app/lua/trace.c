// SPDX-License-Identifier: Apache-2.0
// Where in the recipe something happens: the Lua functions on the stack, without the C functions between them.
#include <stdarg.h>
#include <string.h>

#include "headroom/words.h"

#include "app/lua/options.h"
#include "app/lua/script.h"

enum { LEVELS_MAX = 64 };

static void set_place(script_trace *trace, const lua_Debug *ar)
{
    const char *name = ar->source[0] == '@' ? ar->source + 1 : ar->short_src;
    (void)snprintf(trace->source, sizeof trace->source, "%s", name);
    trace->line = ar->currentline;
}

void script_trace_line(lua_State *L, script_trace *trace)
{
    lua_Debug ar;
    *trace = (script_trace){0};
    for (int level = 0; lua_getstack(L, level, &ar); level++) {
        (void)lua_getinfo(L, "Sl", &ar);
        if (ar.currentline > 0) {
            set_place(trace, &ar);
            return;
        }
    }
}

static void describe_frame(const lua_Debug *ar, char frame[SCRIPT_FRAME_MAX])
{
    if (strcmp(ar->what, "main") == 0) {
        (void)snprintf(frame, SCRIPT_FRAME_MAX, "%s:%d: in the main chunk", ar->short_src, ar->currentline);
    } else if (ar->name != NULL) {
        (void)snprintf(frame, SCRIPT_FRAME_MAX, "%s:%d: in function %.60s", ar->short_src, ar->currentline,
                       ar->name);
    } else {
        (void)snprintf(frame, SCRIPT_FRAME_MAX, "%s:%d: in the function of line %d", ar->short_src,
                       ar->currentline, ar->linedefined);
    }
}

// A function that calls itself from one line stands there once.
void script_trace_stack(lua_State *L, script_trace *trace)
{
    lua_Debug ar;
    script_trace_line(L, trace);
    for (int level = 0; level < LEVELS_MAX && lua_getstack(L, level, &ar); level++) {
        (void)lua_getinfo(L, "Sln", &ar);
        unsigned k = trace->frame_count;
        if (ar.currentline > 0 && k < SCRIPT_FRAMES_MAX) {
            describe_frame(&ar, trace->frames[k]);
            trace->frame_count += k == 0 || strcmp(trace->frames[k], trace->frames[k - 1]) != 0;
        }
    }
}

int script_take_trace(lua_State *L)
{
    script *s = script_of(L);
    const void *error = lua_topointer(L, 1);
    if (s->stop == SCRIPT_GOES_ON && (error == NULL || error != s->trace_of)) {
        script_trace_stack(L, &s->trace);
        s->trace_of = error;
    }
    return 1;
}

void script_push_where(lua_State *L)
{
    lua_Debug ar;
    for (int level = 0; lua_getstack(L, level, &ar); level++) {
        (void)lua_getinfo(L, "Sl", &ar);
        if (ar.currentline > 0) {
            lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
            return;
        }
    }
    lua_pushliteral(L, "");
}

int script_raise(lua_State *L, const hr_err *err)
{
    script *s = script_of(L);
    s->raised = *err;
    script_push_where(L);
    lua_pushstring(L, s->raised.sentence);
    lua_concat(L, 2);
    (void)snprintf(s->raised_text, sizeof s->raised_text, "%s", lua_tostring(L, -1));
    return lua_error(L);
}

int script_error(lua_State *L, const char *format, ...)
{
    va_list values;
    script_push_where(L);
    va_start(values, format);
    lua_pushvfstring(L, format, values);
    va_end(values);
    lua_concat(L, 2);
    return lua_error(L);
}

int script_raise_unknown(lua_State *L, const char *format, const char *name, const char *const *names,
                         size_t count)
{
    hr_err err = {0};
    char shown[80];
    luaL_Buffer text;
    const char *near = hr_word_nearest(name, names, count);
    (void)snprintf(shown, sizeof shown, "%.64s", name);
    luaL_buffinit(L, &text);
    lua_pushfstring(L, format, shown);
    luaL_addvalue(&text);
    if (near != NULL) {
        lua_pushfstring(L, " — did you mean '%s'?", near);
        luaL_addvalue(&text);
    }
    luaL_addstring(&text, near != NULL ? " There are " : "; there are ");
    for (size_t k = 0; k < count; k++) {
        luaL_addstring(&text, k > 0 ? ", " : "");
        luaL_addstring(&text, names[k]);
    }
    luaL_pushresult(&text);
    (void)HR_FAIL(&err, LUA, "%s", lua_tostring(L, -1));
    hr_err_try(&err, "'%s'%s", near != NULL ? near : names[0], near != NULL ? "" : ", or another of these");
    return script_raise(L, &err);
}

void script_check_options(lua_State *L, int index, const char *function)
{
    enum { NAMES_MAX = 16 };
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (const lua_script_field *f = script_options_of(function); f->name != NULL && count < NAMES_MAX; f++) {
        names[count++] = f->name;
    }
    lua_pushnil(L);
    while (lua_next(L, index) != 0) {
        size_t k = 0;
        while (lua_type(L, -2) == LUA_TSTRING && k < count && strcmp(names[k], lua_tostring(L, -2)) != 0) {
            k++;
        }
        if (lua_type(L, -2) != LUA_TSTRING || k == count) {
            char what[80];
            (void)snprintf(what, sizeof what, "hr.%s has no option '%%s'", function);
            (void)script_raise_unknown(L, what, luaL_tolstring(L, -2, NULL), names, count);
        }
        lua_pop(L, 1);
    }
}

const char *script_text_option(lua_State *L, int index, const char *name, const char *otherwise)
{
    if (lua_getfield(L, index, name) == LUA_TNIL) {
        return otherwise;
    }
    if (!lua_isstring(L, -1)) {
        (void)script_error(L, "%s needs a text, had a %s", name, luaL_typename(L, -1));
    }
    return lua_tostring(L, -1);
}

void script_strip_place(lua_State *L)
{
    const char *error = luaL_tolstring(L, -1, NULL);
    script_push_where(L);
    const char *where = lua_tostring(L, -1);
    const size_t length = strlen(where);
    lua_pushstring(L, strncmp(error, where, length) == 0 ? error + length : error);
    lua_replace(L, -4);
    lua_pop(L, 2);
}

hr_status script_may_ask(const script *s, hr_err *err)
{
    if (!s->in_step) {
        return HR_OK;
    }
    (void)HR_FAIL(err, LUA,
                  "a before_update function looks on: a step is under way, and nothing can be turned");
    hr_err_try(err, "hr.on(\"step\", …) or hr.on(\"step_begin\", …)");
    return HR_LUA;
}

void script_check_may_ask(lua_State *L)
{
    hr_err err = {0};
    if (script_may_ask(script_of(L), &err) != HR_OK) {
        (void)script_raise(L, &err);
    }
}
