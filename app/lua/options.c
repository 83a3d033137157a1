// SPDX-License-Identifier: Apache-2.0
#include "app/lua/options.h"

#include <stddef.h>
#include <string.h>

// clang-format off
const lua_script_field script_export_options[] = {
    {"columns", "string[]", "of a .csv, in their order; \"memory.peak_in_use_bytes\" is a field of a table. Without it all plain ones"},
    {NULL, NULL, NULL},
};
const lua_script_field script_sweep_options[] = {
    {"steps", "integer", "that each combination is trained; only planned without it"},
    {NULL, NULL, NULL},
};
const lua_script_field script_fit_options[] = {
    {"keep", "string", "what may not change: \"batch,precision\", a group or a key; without it all but the optimizer may"},
    {NULL, NULL, NULL},
};
const lua_script_field script_model_options[] = {
    {"layers", "table[]", "one table a layer, with kind and what that takes (headroom manual headroom-presets.5), or with repeat, index and layers"},
    {"input", "table", "of one sample: {shape = {height, width, channels}}; inputs = {…} where there are several"},
    {"inputs", "table[]", "each with name, type, classes and shape"},
    {"classes", "integer", "of the labels"},
    {"labels", "table", "where classes is too little to say: type, shape, classes"},
    {"loss", "string|table", "such as \"softmax_cross_entropy\""},
    {"losses", "table[]", "where there are several"},
    {"sizes", "table<string, integer>", "what $name stands for in the layers; they are the knobs hr.knobs.model.name"},
    {"defaults", "table<string, table>", "of a kind of layer: what each has that says nothing else"},
    {"name", "string", "of the model"},
    {"like", "string", "the name of a preset whose model it is, in place of layers; sizes beside it"},
    {"widths", "table<string, integer>", "layers that are narrower than the model says, by their names"},
    {NULL, NULL, NULL},
};
const lua_script_field script_on_options[] = {
    {"above", "hr.Size", "of \"alloc\": the smallest request that is told of"},
    {"gradient_norm", "boolean", "of \"step\": its table has the norm of the gradients, which is computed in every step then"},
    {NULL, NULL, NULL},
};
const lua_script_field script_plot_options[] = {
    {"x", "number[]", "of every point"},
    {"y", "table", "a list of numbers or sizes, or up to six of them by their names"},
    {"title", "string", "above it"},
    {"label", "string", "of x"},
    {"log_x", "boolean", "x is drawn by its logarithm"},
    {"log_y", "boolean", "y is, and what is not above 0 is left out"},
    {NULL, NULL, NULL},
};
const lua_script_field script_plan_options[] = {
    {"steps", "integer", "that are planned; 3 without it, behind which nothing changes any more"},
    {NULL, NULL, NULL},
};
const lua_script_field script_replay_options[] = {
    {"allocators", "string[]", "on which it is played; all of them without it"},
    {NULL, NULL, NULL},
};
const lua_script_field script_run_options[] = {
    {"steps", "integer", "training steps to do from here; train.steps without it"},
    {"epochs", "integer", "ends behind as many epochs, from wherever it stands in the one under way, and behind steps at the latest where both are named"},
    {"until_oom", "boolean", "out of memory is how the run may end, and no error"},
    {"fresh", "boolean", "begin anew, from new weights"},
    {NULL, NULL, NULL},
};

const lua_script_field script_weights_options[] = {
    {"values", "boolean", "each has the list values: hr.set_weights takes such a one"},
    {NULL, NULL, NULL},
};

static const struct {
    const char *function;
    const lua_script_field *options;
} lists[] = {
    {"export", script_export_options},
    {"fit", script_fit_options},
    {"model", script_model_options},
    {"on", script_on_options},
    {"plan", script_plan_options},
    {"plot", script_plot_options},
    {"replay", script_replay_options},
    {"run", script_run_options},
    {"sweep", script_sweep_options},
    {"weights", script_weights_options},
};
// clang-format on

const lua_script_field *script_options_of(const char *function)
{
    static const lua_script_field none = {NULL, NULL, NULL};
    for (size_t k = 0; function != NULL && k < sizeof lists / sizeof *lists; k++) {
        if (strcmp(lists[k].function, function) == 0) {
            return lists[k].options;
        }
    }
    return &none;
}
