// SPDX-License-Identifier: Apache-2.0
// Pages about what is written by hand, and about what is read.
#include <stdio.h>
#include <string.h>

#include "headroom/layers.h"
#include "headroom/terms.h"

#include "app/cli/knobs.h"
#include "app/cli/manual.h"
#include "app/cli/roff.h"
#include "app/lua/lua_script.h"

enum { LINE_MAX_TEXT = 512 };

// ---- headroom-presets(5) ----------------------------------------------------------------------------------------

static void print_knob(const hr_knob_row *row)
{
    char range[KNOB_RANGE_MAX];
    roff_item(row->key, row->line);
    roff_more("values", knob_range(row, range));
    roff_more("default", knob_default(row));
    if (row->applies != NULL) {
        roff_more("applies", row->applies);
    }
    roff_more("why", row->explanation);
}

static void print_knobs(void)
{
    const hr_knob_row *rows = hr_knob_rows(NULL);
    char group[KNOB_GROUP_MAX];
    roff_section("knobs");
    roff_paragraph(
        "A knob GROUP.KEY is written as a mapping, `GROUP: {KEY: value}`. The same key turns it on the "
        "command line, `-s GROUP.KEY=value`, and in a recipe, `hr.knobs.GROUP.KEY = value`.");
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        if (knob_begins_group(&rows[k])) {
            knob_group(&rows[k], group);
            roff_subsection(group);
        }
        print_knob(&rows[k]);
    }
}

static void print_constraints(void)
{
    size_t count = 0;
    const hr_constraint *rows = hr_constraints(&count);
    roff_section("combinations that are refused");
    for (size_t k = 0; k < count; k++) {
        char reason[HR_ERR_TEXT_MAX];
        hr_constraint_say(&rows[k], NULL, reason, sizeof reason);
        roff_item(hr_knob_rows(NULL)[rows[k].turn].key, reason);
        roff_more("try", rows[k].hint);
    }
}

static void print_layer(size_t kind, const hr_layer_kind *about)
{
    hr_layer_attribute a;
    char text[LINE_MAX_TEXT];
    if (about->max_inputs == 1) {
        (void)snprintf(text, sizeof text, "One input, `input: NAME`; the layer above without it.");
    } else {
        (void)snprintf(text, sizeof text, "%zu to %zu inputs, `inputs: [NAME, …]`.", about->min_inputs,
                       about->max_inputs);
    }
    roff_item(about->name, text);
    for (size_t k = 0; hr_layer_attribute_at(kind, k, &a); k++) {
        (void)snprintf(text, sizeof text, "%s%s%s", a.values,
                       a.required               ? " (needed)"
                       : a.otherwise[0] != '\0' ? "; default "
                                                : "",
                       a.required ? "" : a.otherwise);
        roff_more(a.name, text);
    }
}

static void print_layers(void)
{
    hr_layer_kind kind;
    roff_section("layers");
    roff_paragraph(
        "Each layer is a mapping with `kind:`, may have a `name:`, and the attributes of its kind. "
        "`{repeat: N, index: i, layers: […]}` writes its layers N times, and {i} in a name is the count. "
        "Where a whole number stands there may also be a "
        "symbolic size, `$width`, or a product with one, `$width*4` or `$width/64`.");
    for (size_t k = 0; hr_layer_kind_at(k, &kind); k++) {
        print_layer(k, &kind);
    }
}

void manual_print_presets(void)
{
    static const roff_page pages[] = {
        {"headroom", 1}, {"headroom-config", 1}, {"headroom-knobs", 1}, {NULL, 0}};
    roff_title("headroom-presets", 5, "a model and the knobs of its training, in YAML");
    roff_section("description");
    roff_paragraph(
        "A preset is a mapping in YAML: a model, and groups of knobs. `headroom config init` prints one "
        "to begin with, `headroom config check FILE` judges one, and `headroom knobs --schema` is a JSON "
        "schema for editors.");
    roff_example("title: a small classifier\n"
                 "extends: demo\n"
                 "device: {kind: cpu, vram: 256MiB}\n"
                 "batch: {size: 16}\n"
                 "model:\n"
                 "  input: {shape: [32, 32, 3]}\n"
                 "  classes: 10\n"
                 "  layers:\n"
                 "    - {kind: conv2d, filters: 32, kernel: 3, padding: same, activation: relu}\n"
                 "    - {kind: global_avg_pool}\n"
                 "    - {kind: dense, units: 10}");
    roff_section("keys");
    roff_item("title", "What it is about, in one line; `headroom presets` lists it.");
    roff_item("description", "The same at length, for `headroom presets NAME`.");
    roff_item("extends",
              "Another preset, by name or by a path from this file's folder. Everything of it is taken "
              "that this file does not say itself.");
    roff_item(
        "model",
        "The name of a preset whose model it is, or the model itself: input, layers, labels, `loss` or "
        "`losses`, "
        "and `sizes`, "
        "the symbolic sizes with their values: `{sequence: 1024, depth: 12}`. They are the knobs model.*. "
        "`{like: NAME, sequence: 512}` takes another preset's model with another size; without `like` it is "
        "the model that `extends` brings.");
    roff_item(
        "widths",
        "Layers that have fewer filters or units than the model says: `{conv1: 16, dense: 32}`, by the names "
        "that `headroom plan` shows, those of a repeat written out. Of `extends`, layers that this file "
        "does not name stay as narrow as they are there. `headroom export --strip` writes it of a model "
        "whose "
        "filters were pruned.");
    roff_item(
        "loss, losses",
        "Of the model: `softmax_cross_entropy` of logits and the id of a class (`classes: 10` says how "
        "many), "
        "`mean_squared_error`, `binary_cross_entropy` and `focal` of logits and targets from 0 to 1, `kl` of "
        "logits and the logits that are their targets, with a `temperature`. `losses:` is a list of "
        "mappings, added up: "
        "`{kind: focal, prediction: boxes, labels: hits, gamma: 2, alpha: 0.25, weight: 1}`. prediction is a "
        "layer, or the last; labels one of `labels: [{name: hits, type: float32}]`, or the first. gamma and "
        "alpha are a focal loss's alone; alpha 0 balances nothing.");
    print_layers();
    print_knobs();
    print_constraints();
    roff_see_also(pages);
}

// ---- headroom-lua(3) --------------------------------------------------------------------------------------------

static void print_lua_name(const lua_script_row *row)
{
    char heading[LINE_MAX_TEXT];
    if (row->arguments != NULL) {
        (void)snprintf(heading, sizeof heading, "hr.%s(%s)", row->name, row->arguments);
    } else {
        (void)snprintf(heading, sizeof heading, "hr.%s", row->name);
    }
    roff_subsection(heading);
    roff_paragraph(row->line);
    if (row->result[0] != '\0') {
        roff_more("gives", row->result);
    }
    for (const lua_script_field *f = row->options; f != NULL && f->name != NULL; f++) {
        roff_more(f->name, f->line);
    }
    roff_example(row->example);
}

void manual_print_lua(void)
{
    static const roff_page pages[] = {
        {"headroom", 1}, {"headroom-script", 1}, {"headroom-presets", 5}, {"headroom-terms", 7}, {NULL, 0}};
    lua_script_row row;
    roff_title("headroom-lua", 3, "what recipes in Lua can call");
    roff_section("description");
    roff_paragraph(
        "`headroom script` runs a recipe in Lua 5.4, in a sandbox and a process of its own. It reads files "
        "below its own folder, and those named on the command line; it writes below ./headroom-out. "
        "Everything of headroom is in the table hr. `headroom script -i` takes the same line by line.");
    roff_paragraph("The fields of a result have the names of `headroom run --json`; headroom-terms(7) says "
                   "what each means. "
                   "Sizes are hr.bytes values, and what does not apply is nil; a name that no "
                   "result has is an error.");
    roff_section("names");
    for (size_t k = 0; lua_script_row_at(k, &row); k++) {
        print_lua_name(&row);
    }
    roff_see_also(pages);
}

// ---- headroom-terms(7) ------------------------------------------------------------------------------------------

void manual_print_terms(void)
{
    static const roff_page pages[] = {{"headroom", 1}, {"headroom-terms", 1}, {NULL, 0}};
    size_t count = 0;
    const hr_term *terms = hr_terms(&count);
    roff_title("headroom-terms", 7, "words on screens, in columns and in JSON");
    roff_section("description");
    roff_paragraph("`headroom terms NAME` says the same of one, and finds a term by the name that "
                   "TensorFlow, PyTorch or nvidia-smi has for it.");
    roff_section("terms");
    for (size_t k = 0; k < count; k++) {
        const hr_term *t = &terms[k];
        const struct {
            const char *label, *text;
        } more[] = {{"formula", t->formula},
                    {"unit", t->unit},
                    {"TensorFlow", t->tensorflow},
                    {"PyTorch", t->pytorch},
                    {"nvidia-smi", t->nvidia_smi}};
        roff_item(t->name, t->line);
        for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
            if (more[i].text != NULL && more[i].text[0] != '\0') {
                roff_more(more[i].label, more[i].text);
            }
        }
    }
    roff_see_also(pages);
}
