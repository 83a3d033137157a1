// SPDX-License-Identifier: Apache-2.0
// hr.plot: lines over x, as an object with .text (what print shows) and .svg.
#include "app/lua/plot.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/json.h"
#include "headroom/words.h"

#include "app/lua/script.h"

static const char plot_type[] = "hr.plot";

// A text without control characters, cut before a character where it is too long; what is no UTF-8 is '?'.
static void copy_text(char to[PLOT_TEXT_MAX], const char *from)
{
    size_t length = 0;
    for (const char *end = from + strlen(from); from < end;) {
        char form[HR_JSON_CHAR_MAX];
        const char *at = from;
        const size_t control = hr_control_bytes(at, ""), bytes = hr_json_char(&from, end, form);
        const bool stray = bytes == HR_JSON_CHAR_MAX && control == 0; // the form is an escape
        const size_t taken = control > 0 || stray ? 1 : (size_t)(from - at);
        if (length + taken >= PLOT_TEXT_MAX) {
            break;
        }
        memcpy(to + length, control > 0 ? " " : stray ? "?" : at, taken);
        length += taken;
    }
    to[length] = '\0';
}

static void text_option(lua_State *L, const char *name, char to[PLOT_TEXT_MAX])
{
    copy_text(to, script_text_option(L, 1, name, ""));
    lua_pop(L, 1);
}

// Numbers of the list on top of the stack, which stays; what is none there is NaN. They belong to Lua: their block is pushed.
static const double *push_numbers(lua_State *L, size_t count, bool *bytes)
{
    const int list = lua_gettop(L);
    double *numbers = lua_newuserdatauv(L, (count + 1) * sizeof *numbers, 0);
    for (size_t k = 0; k < count; k++) {
        int64_t size = 0;
        lua_rawgeti(L, list, (lua_Integer)k + 1);
        const bool is_size = script_is_bytes(L, lua_gettop(L), &size);
        numbers[k] = is_size ? (double)size : lua_isnumber(L, -1) ? lua_tonumber(L, -1) : (double)NAN;
        *bytes = *bytes || is_size;
        lua_pop(L, 1);
    }
    return numbers;
}

static void read_x(lua_State *L, plot *p)
{
    bool bytes = false;
    if (lua_getfield(L, 1, "x") != LUA_TTABLE || lua_rawlen(L, -1) == 0 ||
        lua_rawlen(L, -1) > PLOT_POINTS_MAX) {
        (void)script_error(L, "hr.plot takes x = a list of 1 to %d numbers", PLOT_POINTS_MAX);
    }
    p->point_count = lua_rawlen(L, -1);
    p->x = push_numbers(L, p->point_count, &bytes);
}

static void add_series(lua_State *L, plot *p, const char *name)
{
    if (!lua_istable(L, -1) || p->series_count == PLOT_SERIES_MAX) {
        (void)script_error(L, "hr.plot takes y = a list of numbers, or at most %d of them by their names",
                           PLOT_SERIES_MAX);
    }
    plot_series *s = &p->series[p->series_count++];
    copy_text(s->name, name);
    s->y = push_numbers(L, p->point_count, &p->y_is_bytes);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const plot_series *)a)->name, ((const plot_series *)b)->name);
}

// Stack: …, y. What is pushed stays there until the plot is drawn.
static void read_y(lua_State *L, plot *p)
{
    if (lua_getfield(L, 1, "y") != LUA_TTABLE) {
        (void)script_error(L, "hr.plot takes y = a list of numbers, or lists by their names");
    }
    const int y = lua_gettop(L);
    lua_newtable(L); // keeps the blocks
    const int blocks = y + 1;
    if (lua_rawlen(L, y) > 0) {
        lua_pushvalue(L, y);
        add_series(L, p, "");
        return;
    }
    lua_pushnil(L);
    while (lua_next(L, y) != 0) {
        add_series(L, p, lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?");
        lua_rawseti(L, blocks, (lua_Integer)p->series_count);
        lua_pop(L, 1);
    }
    qsort(p->series, p->series_count, sizeof *p->series, by_name);
}

static void find_extremes(plot *p)
{
    p->x_least = p->y_least = HUGE_VAL;
    p->x_most = p->y_most = -HUGE_VAL;
    for (size_t s = 0; s < p->series_count; s++) {
        for (size_t k = 0; k < p->point_count; k++) {
            const double x = plot_x(p, k), y = plot_y(p, s, k);
            if (isfinite(x) && isfinite(y)) {
                p->x_least = fmin(p->x_least, x);
                p->x_most = fmax(p->x_most, x);
                p->y_least = fmin(p->y_least, y);
                p->y_most = fmax(p->y_most, y);
            }
        }
    }
}

// As field `name` of the table on top of the stack. The stream is closed before Lua can raise.
static void set_picture(lua_State *L, const char *name, const plot *p, void (*write)(const plot *p, FILE *to))
{
    script *s = script_of(L);
    size_t length = 0;
    free(s->picture);
    s->picture = NULL;
    FILE *to = open_memstream(&s->picture, &length);
    if (to != NULL) {
        write(p, to);
    }
    if (to == NULL || fclose(to) != 0 || s->picture == NULL) {
        hr_err err = {0};
        (void)HR_FAIL(&err, NOMEM, "no host memory for a picture");
        (void)script_raise(L, &err);
        return;
    }
    lua_pushlstring(L, s->picture, length);
    lua_setfield(L, -2, name);
}

static int plot_to_text(lua_State *L)
{
    (void)lua_getfield(L, 1, "text");
    return 1;
}

bool script_is_plot(lua_State *L, int index)
{
    if (!lua_istable(L, index) || !lua_getmetatable(L, index)) {
        return false;
    }
    (void)luaL_getmetatable(L, plot_type);
    const bool is = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is;
}

// A workbench shows it at once.
static void show(lua_State *L)
{
    const script *s = script_of(L);
    if (s->host != NULL) {
        size_t length = 0;
        (void)lua_getfield(L, -1, "text");
        const char *text = lua_tolstring(L, -1, &length);
        s->host->say(s->host->context, HR_GUEST_PLOT, text, length);
        lua_pop(L, 1);
    }
}

int script_plot(lua_State *L)
{
    plot p = {.series_count = 0};
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    script_check_options(L, 1, "plot");
    text_option(L, "title", p.title);
    text_option(L, "label", p.x_label);
    (void)lua_getfield(L, 1, "log_x");
    p.log_x = lua_toboolean(L, -1);
    (void)lua_getfield(L, 1, "log_y");
    p.log_y = lua_toboolean(L, -1);
    lua_pop(L, 2);
    read_x(L, &p);
    read_y(L, &p);
    find_extremes(&p);
    if (p.series_count == 0 || p.x_least > p.x_most) {
        return script_error(L, "hr.plot has no point to draw: no x and y are both finite numbers");
    }
    if (!isfinite(p.x_most - p.x_least) || !isfinite(p.y_most - p.y_least)) {
        return script_error(L, "hr.plot draws at most %g from the least to the most", DBL_MAX);
    }
    lua_newtable(L);
    set_picture(L, "text", &p, plot_write_text);
    set_picture(L, "svg", &p, plot_write_svg);
    if (luaL_newmetatable(L, plot_type)) {
        lua_pushcfunction(L, plot_to_text);
        lua_setfield(L, -2, "__tostring");
        lua_pushstring(L, plot_type);
        lua_setfield(L, -2, "__metatable");
    }
    lua_setmetatable(L, -2);
    show(L);
    return 1;
}
