// SPDX-License-Identifier: Apache-2.0
// hr.weights and hr.set_weights: what the weights of the training are like, and other values for one of them.
#include <string.h>

#include "headroom/weight_stats.h"

#include "app/lua/fields.h"
#include "app/lua/script.h"

static const hr_field weight_fields[] = {
    HR_FIELD(hr_weight, name, "name", NAME),
    HR_FIELD(hr_weight, shape, "shape", NAME),
    HR_FIELD(hr_weight, dtype, "dtype", NAME),
    HR_FIELD(hr_weight, elements, "elements", COUNT),
    HR_FIELD(hr_weight, nonfinite, "nonfinite", COUNT),
    HR_FIELD(hr_weight, norm, "norm", REAL),
    HR_FIELD(hr_weight, mean, "mean", REAL),
    HR_FIELD(hr_weight, least, "least", REAL),
    HR_FIELD(hr_weight, most, "most", REAL),
    HR_FIELD(hr_weight, zeros, "zeros", SHARE),
    HR_FIELD_END,
};

static void push_values(lua_State *L, const char *name)
{
    script *s = script_of(L);
    hr_err err = {0};
    script_begin_engine(s);
    hr_weight_values_deinit(&s->values);
    const hr_status status = hr_engine_weight_values(s->training, name, &s->values, &err);
    script_end_engine(s);
    if (status != HR_OK) {
        (void)script_raise(L, &err);
    }
    lua_createtable(L, s->values.count < INT32_MAX ? (int)s->values.count : 0, 0);
    for (uint64_t k = 0; k < s->values.count; k++) {
        lua_pushnumber(L, s->values.values[k]);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    hr_weight_values_deinit(&s->values);
}

static const char *const more[] = {"histogram", "values", NULL};

static void push_weight(lua_State *L, const hr_weight *w, bool values)
{
    lua_createtable(L, 0, 12);
    script_set_fields(L, weight_fields, w, NULL);
    lua_createtable(L, HR_WEIGHT_BINS, 0);
    for (int k = 0; k < HR_WEIGHT_BINS; k++) {
        lua_pushinteger(L, (lua_Integer)w->histogram[k]);
        lua_rawseti(L, -2, k + 1);
    }
    lua_setfield(L, -2, "histogram");
    if (values) {
        push_values(L, w->name);
        lua_setfield(L, -2, "values");
    }
    script_guard_names(L, weight_fields, more);
}

static void check_training(lua_State *L)
{
    hr_err err = {0};
    script_check_may_ask(L);
    if (script_of(L)->training == NULL) {
        (void)HR_FAIL(&err, LUA, "there are no weights before a run");
        hr_err_try(&err, "hr.run{steps = 100} above this line");
        (void)script_raise(L, &err);
    }
}

int script_weights(lua_State *L)
{
    script *s = script_of(L);
    const char *part = luaL_optstring(L, 1, "");
    bool values = false;
    hr_err err = {0};
    if (!lua_isnoneornil(L, 2)) {
        luaL_checktype(L, 2, LUA_TTABLE);
        script_check_options(L, 2, "weights");
        (void)lua_getfield(L, 2, "values");
        values = lua_toboolean(L, -1);
    }
    check_training(L);
    script_begin_engine(s);
    hr_weight_stats_deinit(&s->weights);
    const hr_status status = hr_engine_weight_stats(s->training, &s->weights, &err);
    script_end_engine(s);
    if (status != HR_OK) {
        return script_raise(L, &err);
    }
    lua_newtable(L);
    lua_Integer count = 0;
    for (size_t k = 0; k < s->weights.count; k++) {
        if (strstr(s->weights.weights[k].name, part) != NULL) {
            push_weight(L, &s->weights.weights[k], values);
            lua_rawseti(L, -2, ++count);
        }
    }
    return 1;
}

// ---- hr.set_weights -------------------------------------------------------------------------------------------------

static int raise_weight(lua_State *L, hr_err *err)
{
    if (err->status == HR_STATE) {
        err->status = HR_LUA; // the recipe's mistake
    }
    hr_err_try(err, "for _, w in ipairs(hr.weights()) do print(w.name, w.shape, w.elements) end");
    return script_raise(L, err);
}

// How many elements the weight has.
static uint64_t elements_of(lua_State *L, const char *name)
{
    script *s = script_of(L);
    hr_err err = {0};
    script_begin_engine(s);
    hr_weight_values_deinit(&s->values);
    const hr_status status = hr_engine_weight_values(s->training, name, &s->values, &err);
    const uint64_t count = s->values.count;
    hr_weight_values_deinit(&s->values);
    script_end_engine(s);
    if (status != HR_OK) {
        (void)raise_weight(L, &err);
    }
    return count;
}

// Pushes a block of `count` numbers: those of the list at `index`, which has as many, or the number there again and again.
static const double *push_numbers(lua_State *L, int index, uint64_t count)
{
    const bool list = lua_istable(L, index);
    double *values = lua_newuserdatauv(L, (count + 1) * sizeof *values, 0);
    for (uint64_t k = 0; k < count; k++) {
        int is_number = 0;
        if (list) {
            lua_rawgeti(L, index, (lua_Integer)k + 1);
        } else {
            lua_pushvalue(L, index);
        }
        values[k] = lua_tonumberx(L, -1, &is_number);
        if (!is_number || lua_type(L, -1) != LUA_TNUMBER) {
            (void)script_error(L,
                               "hr.set_weights takes a number, or a list of numbers row by row, had a %s%s",
                               luaL_typename(L, -1), list ? " in it" : "");
        }
        lua_pop(L, 1);
    }
    return values;
}

int script_set_weights(lua_State *L)
{
    script *s = script_of(L);
    const char *name = luaL_checkstring(L, 1);
    hr_err err = {0};
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    check_training(L);
    const uint64_t elements = elements_of(L, name);
    const uint64_t count = lua_istable(L, 2) ? lua_rawlen(L, 2) : elements; // a recipe's word, up to 2^63
    const double *values = count == elements ? push_numbers(L, 2, count) : NULL;
    script_begin_engine(s);
    const hr_status status = hr_engine_set_weight(s->training, name, values, count, &err);
    script_end_engine(s);
    return status == HR_OK ? 0 : raise_weight(L, &err);
}
