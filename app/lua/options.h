// SPDX-License-Identifier: Apache-2.0
// What functions of hr take beside knobs: the rows of hr name these lists, and what is read from a table is checked by them.
#ifndef LUA_OPTIONS_H
#define LUA_OPTIONS_H

#include "app/lua/script.h"

// Each ends with a row without a name.
extern const lua_script_field script_export_options[];
extern const lua_script_field script_sweep_options[];
extern const lua_script_field script_fit_options[];
extern const lua_script_field script_model_options[];
extern const lua_script_field script_on_options[];
extern const lua_script_field script_plot_options[];
extern const lua_script_field script_plan_options[];
extern const lua_script_field script_replay_options[];
extern const lua_script_field script_run_options[];
extern const lua_script_field script_weights_options[];

// What hr.FUNCTION takes beside knobs; a list without rows where that is nothing, or `function` NULL.
const lua_script_field *script_options_of(const char *function);

#endif
