// SPDX-License-Identifier: Apache-2.0
// hr.fit: the search of headroom/fit.h, with the names of "headroom.fit/1".
#include "headroom/fit.h"

#include <stdlib.h>

#include "app/lua/fields.h"
#include "app/lua/script.h"

static void read_keep(lua_State *L, hr_fit_wish *wish)
{
    hr_err err = {0};
    *wish = (hr_fit_wish){.permission = HR_PERMIT_OPTIMIZER};
    const char *keep = script_text_option(L, 1, "keep", NULL);
    if (keep != NULL && hr_fit_keep(wish, keep, &err) != HR_OK) {
        hr_err_try(&err, "hr.fit{keep = \"batch,precision\"}");
        (void)script_raise(L, &err);
    }
    lua_pop(L, 1);
}

// A search ends early where the recipe is to end.
static bool goes_on(void *context)
{
    return !script_is_interrupted(context);
}

static void search(lua_State *L, const hr_knobs *knobs, const hr_fit_wish *wish, hr_fit_found *found)
{
    script *s = script_of(L);
    hr_err err = {0};
    hr_planner *planner = NULL;
    script_begin_engine(s);
    hr_status status = hr_planner_open(s->preset, &planner, &err);
    status = status == HR_OK ? hr_planner_fit(planner, knobs, wish, goes_on, s, found, &err) : status;
    hr_planner_close(planner);
    script_end_engine(s);
    if (status != HR_OK) {
        (void)script_raise(L, &err);
    }
    script_check_stop(L);
}

static void set_way(lua_State *L, const char *name, const hr_fit_way *w)
{
    if (w != NULL) {
        lua_newtable(L);
        script_set_fields(L, hr_fit_way_fields(), w, NULL);
        script_guard_fields(L, hr_fit_way_fields());
        lua_setfield(L, -2, name);
    }
}

static const char *const ways[] = {"fastest", "fastest_same", NULL};

int script_fit(lua_State *L)
{
    hr_knobs knobs;
    hr_fit_wish wish;
    script_read_options(L, "fit", &knobs);
    read_keep(L, &wish);
    hr_fit_found *found = lua_newuserdatauv(L, sizeof *found, 0); // given back by Lua, whatever is raised
    search(L, &knobs, &wish, found);
    lua_newtable(L);
    script_set_fields(L, hr_fit_fields(), found, NULL);
    set_way(L, "fastest", hr_fit_fastest(found, true));
    set_way(L, "fastest_same", hr_fit_fastest(found, false));
    script_guard_names(L, hr_fit_fields(), ways);
    return 1;
}
