// SPDX-License-Identifier: Apache-2.0
// The registration table of hr.
#include "app/lua/api.h"
#include "app/lua/options.h"
#include "app/lua/script.h"

// clang-format off
#define DEMO "hr.preset \"demo\"\nhr.knobs.device.kind = \"plan\"\n"

static const script_api_row rows[] = {
    {"api_version", NULL, NULL, "integer",
     "version of this table; it grows when a name changes its meaning", NULL,
     "assert(hr.api_version == 1)",
     script_push_version},
    {"apply", "fix", "fix: table|string[]", "",
     "turns the knobs of a fix of result.oom.fixes, of a way of hr.fit, or of a list of \"key=value\"", NULL,
     DEMO "local result = hr.plan{[\"batch.size\"] = 256}\nhr.knobs.batch.size = 256\n"
     "hr.apply(result.oom.fixes[1])\nassert(hr.plan().fits)",
     script_apply},
    {"args", NULL, NULL, "string[]|{preset: string?}",
     "the words behind the recipe's name; in the workbench `preset` of it is what is on the screen", NULL,
     "local cap = hr.bytes(hr.args[1] or \"64MiB\")",
     script_push_args},
    {"bytes", "size", "size: hr.Size", "hr.Bytes",
     "a size from a number or a text: compares and adds with both, prints for people, has the number in .bytes", NULL,
     "local cap = hr.bytes(\"3GiB\")\n"
     "assert(cap - \"1GiB\" == hr.bytes(\"2GiB\") and cap > 1024 and cap.bytes == 3 << 30)",
     script_bytes},
    {"compare", "a, b", "a: hr.Result, b: hr.Result", "table[]",
     "where two results differ: a list of rows with name, a, b and change, which prints as a table", NULL,
     DEMO "local rows = hr.compare(hr.plan(), hr.plan{batch = {size = 64}})\nprint(rows)\n"
     "assert(rows[1].name and rows[1].a ~= rows[1].b)",
     script_compare},
    {"eval", "", "", "table",
     "evaluates the samples that are held out with the weights at hand: eval_loss, eval_accuracy, samples", NULL,
     "hr.preset \"demo\"\nhr.knobs.batch.size = 100\nhr.run{steps = 1}\nassert(hr.eval().samples > 0)",
     script_eval},
    {"expect", "condition, message", "condition: any, message?: string", "any",
     "ends the recipe with exit code 1 when the condition is false or nil; gives the condition", NULL,
     DEMO "hr.expect(hr.plan().fits, \"the demo fits its card\")",
     script_expect},
    {"explain", "[trace,] {steps = N, knob = value, …}", "trace?: string|table, options?: table", "table",
     "why the preset, or a recorded trace or a scenario, runs out of memory: the names are those of `oom` in `headroom "
     "explain --json`, with fits, which is true where they are nil; hr.plan and hr.run take the knobs of a fix, the cheapest first", NULL,
     DEMO "local why = hr.explain{[\"device.vram\"] = \"50MiB\"}\n"
     "assert(why.cause == \"capacity\" and why.needed_bytes > \"50MiB\")\n"
     "local knobs = why.fixes[1].knobs\nknobs[\"device.vram\"] = \"50MiB\"\nassert(hr.plan(knobs).fits)\n"
     "assert(hr.explain(\"growth_boundary\").cause == \"fragmentation\")",
     script_explain},
    {"export", "path, value, {columns = list of names}", "path: string, value: any, options?: hr.export.Options", "string",
     "writes a list of tables as .csv, any value as .json, a plot as .svg, a text as .txt or .md, below ./headroom-out, where "
     "a file of that name gives way, and gives the path", script_export_options,
     DEMO "hr.export(\"sizes.csv\", hr.sweep{[\"batch.size\"] = {32, 64}})\nhr.export(\"plan.json\", hr.plan())",
     script_export},
    {"fit", "{keep = \"batch,precision\", knob = value, …}", "options?: hr.fit.Options", "table",
     "searches for the fastest knobs that fit, all else as it is but for what may be turned; the names in the table are "
     "those of `headroom fit --json`, and a way's knobs are a list of \"key=value\"", script_fit_options,
     DEMO "local found = hr.fit{keep = \"precision,optimizer\", [\"device.card\"] = \"rtx3070-8g\"}\n"
     "assert(found.fastest.peak_in_use_bytes < hr.plan().memory.limit_bytes and #found.points > 10)",
     script_fit},
    {"has", "name", "name: string", "boolean",
     "whether there is such a name of hr, or such a knob: no error where there is none", NULL,
     "assert(hr.has(\"plan\") and hr.has(\"batch.size\") and not hr.has(\"planet\"))",
     script_has},
    {"knobs", NULL, NULL, "hr.Knobs",
     "every setting of `headroom knobs`, read and turned as hr.knobs.group.key, in a callback from the next step on; "
     "pairs(hr.knobs) and pairs(hr.knobs.batch) go through them", NULL,
     DEMO "hr.knobs.batch.size = 64\nhr.knobs.device.vram = \"48MiB\"\n"
     "assert(hr.knobs.device.vram == hr.bytes(\"48MiB\"))",
     script_push_knobs},
    {"load", "path", "path: string", "",
     "the next run, or this one from its next step on, goes on from a save: train.resume is the knob", NULL,
     "hr.preset \"demo\"\nhr.knobs.batch.size = 8\nhr.run{steps = 2}\nhr.save(\"second.safetensors\")\n"
     "hr.run{steps = 1}\nhr.load(\"second.safetensors\")\nassert(hr.run{steps = 1}.train.steps == 3)",
     script_load},
    {"model", "{layers = list, …}", "model?: hr.model.Options", "table",
     "the model at hand as a table, in the words of a preset, with figures: a list of its layers, repeats written out, with name, kind, "
     "output_shape, parameters, parameter_bytes (float32) and output_bytes (of one sample); prints as these. With a table the "
     "recipe's model is that one from here on; knobs stay, but for the sizes", script_model_options,
     "hr.model{\n  input = {shape = {32, 32, 3}}, classes = 10, loss = \"softmax_cross_entropy\",\n"
     "  layers = {\n    {kind = \"conv2d\", filters = 16, kernel = 3, activation = \"relu\"},\n"
     "    {[\"repeat\"] = 2, layers = {{kind = \"conv2d\", filters = 32, kernel = 3}}},\n"
     "    {kind = \"flatten\"}, {name = \"head\", kind = \"dense\", units = 10},\n  },\n}\n"
     "local before = hr.plan().memory.peak_in_use_bytes\nlocal m = hr.model()\nm.layers[1].filters = 8\n"
     "assert(hr.model(m).figures[1].output_shape:find(\"x8$\") and hr.plan().memory.peak_in_use_bytes < before)",
     script_model},
    {"note", "text", "text: any", "",
     "a line on stderr, or in the log of the workbench", NULL,
     "hr.note(\"half way\")",
     script_note},
    {"on", "event, function, options", "event: hr.EventName, fn: function|nil, options?: hr.on.Options", "hr.Handler",
     "calls the function with a table at every such event of the training (the events are below); what it gives takes the "
     "function away again with h:off(), and nil in the function's place takes all of the event's away", script_on_options,
     DEMO "local h = hr.on(\"step\", function(s) assert(s.step > 0 and s.peak_in_use_bytes > \"1MiB\") end)\n"
     "hr.run{steps = 3}\nh:off()",
     script_on},
    {"plan", "{steps = N, knob = value, …}", "options?: hr.plan.Options", "hr.Result",
     "what a run with these knobs would take, to the byte, without running; result.fits is false when it would not fit",
     script_plan_options,
     DEMO "local result = hr.plan{batch = {size = 256}, [\"device.vram\"] = \"64MiB\"}\n"
     "assert(not result.fits and result.oom.cause == \"capacity\")",
     script_plan},
    {"plot", "{x = list, y = list or lists by name, title = text}", "options: hr.plot.Options", "table",
     "draws lines over x: prints as letters of 78 columns, has .text and .svg; sizes and numbers alike", script_plot_options,
     "local plot = hr.plot{x = {1, 2, 4}, y = {peak = {hr.bytes(\"1MiB\"), hr.bytes(\"2MiB\"), hr.bytes(\"4MiB\")}}}\n"
     "print(plot)\nhr.export(\"peak.svg\", plot)",
     script_plot},
    {"preset", "name_or_path", "name_or_path: string", "string",
     "the model and the knobs to work with, and gives its name; a path counts from the recipe's folder", NULL,
     "hr.preset \"mlp\"",
     script_preset},
    {"replay", "trace, {allocators = list of names, knob = value, …}", "trace: string, options?: hr.replay.Options",
     "table",
     "plays a recorded trace, or a scenario by its name, on each of the allocators; the names in the table are those of "
     "`headroom replay --json`", script_replay_options,
     DEMO "local r = hr.replay(\"growth_boundary\", {allocators = {\"bfc\"}, allocator = {growth = true}})\n"
     "assert(r.allocators[1].failures_total > 0)\n"
     "assert(r.allocators[1].memory.peak_in_use_bytes < r.trace.peak_requested_bytes)",
     script_replay},
    {"rng", "seed", "seed?: integer", "fun(low?: integer, high?: integer): number",
     "a generator of random numbers of its own: r() in [0, 1), r(n) of 1 to n, r(low, high); of one seed the same "
     "everywhere", NULL,
     "local a, b = hr.rng(7), hr.rng(7)\nassert(a() == b() and a(6) == b(6) and a(10, 20) >= 10)",
     script_rng},
    {"run", "{steps = N, epochs = N, until_oom = boolean, fresh = boolean, knob = value, …}", "options?: hr.run.Options", "hr.Result",
     "trains, and goes on with the weights of the run before, from new ones at first; steps and losses of the result are those "
     "of the whole training. Out of memory is an error, with until_oom it is how the run may end", script_run_options,
     DEMO "hr.run{steps = 5}\nhr.knobs.batch.size = 64\nassert(hr.run{steps = 5}.train.steps == 10)\n"
     "assert(hr.run{steps = 5, fresh = true}.train.steps == 5)",
     script_run},
    {"save", "path", "path: string", "string",
     "writes the training, weights and all, to a file below ./headroom-out, and gives its path", NULL,
     "hr.preset \"demo\"\nhr.knobs.batch.size = 8\nhr.run{steps = 1}\nhr.save(\"first.safetensors\")",
     script_save},
    {"set_weights", "name, values", "name: string, values: number|number[]", "",
     "the elements of one weight become these numbers, row by row, or all of them this one number, from the next step on; what the "
     "optimizer keeps beside it stays. On devices that compute", NULL,
     "hr.preset \"demo\"\nhr.knobs.batch.size = 8\nhr.run{steps = 1}\nlocal w = hr.weights(\"dense_1/bias\", {values = true})[1]\n"
     "for k, value in ipairs(w.values) do w.values[k] = value / 2 end\nhr.set_weights(w.name, w.values)\n"
     "assert(hr.weights(w.name)[1].norm == w.norm / 2)",
     script_set_weights},
    {"stop", "", "", "",
     "ends the run after the step whose callback calls it", NULL,
     DEMO "hr.on(\"step\", function(s) if s.step == 2 then hr.stop() end end)\n"
     "assert(hr.run{steps = 100}.train.steps == 2)",
     script_end_run},
    {"sweep", "{knob = list of values, …}, {steps = N}", "axes: table<string, any[]>, options?: hr.sweep.Options", "table[]",
     "plans every combination, and trains each that fits where steps are given, from new weights, while the recipe's own "
     "training waits: a list of rows with the knobs, fits, peak_in_use_bytes, seconds, cause; of a run run_peak_in_use_bytes, "
     "run_seconds, loss_last, examples_per_second; the whole results as plan and run; or error, where the combination is "
     "refused. A row that does not fit has no peak: plan.oom.needed_bytes is what it needs", script_sweep_options,
     DEMO "local rows = hr.sweep{[\"batch.size\"] = {64, 128, 256}, [\"execution.mode\"] = {\"eager\", \"graph\"}}\n"
     "assert(#rows == 6 and rows[1][\"batch.size\"] == 64 and rows[1].fits and not rows[6].fits)",
     script_sweep},
    {"time", "", "", "number",
     "seconds since the recipe began", NULL,
     "local began = hr.time()\nhr.note((\"took %.3f s\"):format(hr.time() - began))",
     script_time},
    {"weights", "part_of_a_name, {values = boolean}", "part?: string, options?: hr.weights.Options", "table[]",
     "the weights of the training, or those whose names have the part in them: name, shape, elements, norm, mean, least, most, "
     "zeros, nonfinite, and a histogram of 16 equal parts from least to most; with values their elements, row by row", script_weights_options,
     "hr.preset \"demo\"\nhr.knobs.batch.size = 8\nhr.run{steps = 1}\n"
     "for _, w in ipairs(hr.weights(\"bias\")) do print(w.name, w.elements, w.norm) end",
     script_weights},
    {"with", "{knob = value, …}, function", "knobs: table, fn: fun(): ...", "any",
     "calls the function with these knobs and gives what it gives; afterwards, also after an error, all knobs are as before", NULL,
     DEMO "local peak = hr.with({[\"batch.size\"] = 32}, function() return hr.plan().memory.peak_in_use_bytes end)\n"
     "assert(hr.knobs.batch.size == 128 and peak < hr.plan().memory.peak_in_use_bytes)",
     script_with},
};
// clang-format on

const script_api_row *script_api_rows(size_t *count)
{
    *count = sizeof rows / sizeof *rows;
    return rows;
}
