// SPDX-License-Identifier: Apache-2.0
// hr.weights: what the weights of the training are like.
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

static void push_weight(lua_State *L, const hr_weight *w)
{
    lua_createtable(L, 0, 12);
    script_set_fields(L, weight_fields, w, NULL);
    lua_createtable(L, HR_WEIGHT_BINS, 0);
    for (int k = 0; k < HR_WEIGHT_BINS; k++) {
        lua_pushinteger(L, (lua_Integer)w->histogram[k]);
        lua_rawseti(L, -2, k + 1);
    }
    lua_setfield(L, -2, "histogram");
}

int script_weights(lua_State *L)
{
    script *s = script_of(L);
    const char *part = luaL_optstring(L, 1, "");
    hr_err err = {0};
    script_check_may_ask(L);
    if (s->training == NULL) {
        (void)HR_FAIL(&err, LUA, "there are no weights before a run");
        hr_err_try(&err, "hr.run{steps = 100} above this line");
        return script_raise(L, &err);
    }
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
            push_weight(L, &s->weights.weights[k]);
            lua_rawseti(L, -2, ++count);
        }
    }
    return 1;
}
