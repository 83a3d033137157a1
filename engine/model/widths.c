// SPDX-License-Identifier: Apache-2.0
#include "model/widths.h"

#include <string.h>

#include "headroom/event.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "knobs/preset_model.h"
#include "model/words.h"

void widths_apply(model_builder *b, const layer_kind *kind, layer_spec *spec)
{
    const attr_id attr = layer_kind_width(kind);
    const char *name = b->layers.data[b->layer].name;
    for (uint32_t k = b->widths.count; attr != ATTR_NONE && !b->broken && k-- > 0;) {
        const preset_widths *section = &b->widths.sections[k];
        const yaml_node *node = yaml_find(section->node, name);
        int64_t width = 0;
        if (node == NULL || !text_to_int(node->text, &width)) {
            continue;
        }
        if (width < 1 || width > spec->value[attr].integer) {
            yaml_problem(section->file, node->line, node->column,
                         "the width of layer '%s' must be from 1 to its %lld %s, had %lld", name,
                         (long long)spec->value[attr].integer, attr_row_of(attr)->name, (long long)width);
            b->problems++;
            b->broken = true;
        } else {
            spec->value[attr].integer = width;
            b->widths.here = b->widths.last = (model_width){node, section};
        }
        return;
    }
}

model_width widths_left(const model_builder *b, const layer_kind *kind, const char *layer)
{
    const model_width here = b->widths.here;
    const bool own = here.node != NULL && strcmp(here.node->key, layer) == 0;
    return own || layer_kind_width(kind) == ATTR_NONE ? here : (model_width){.node = NULL};
}

void widths_follow(model_builder *b, model_width from)
{
    if (b->widths.here.node == NULL) {
        b->widths.here = from;
    }
}

// ---- names ----------------------------------------------------------------------------------------------------

static void report_unknown(model_builder *b, const preset_widths *section, const yaml_node *node)
{
    char had[HAD_MAX], near[WORDS_MAX] = "";
    const char **words = hr_calloc(b->layers.count + 1, sizeof *words);
    if (words == NULL) {
        builder_nomem(b);
        return;
    }
    for (uint32_t k = 0; k < b->layers.count; k++) {
        words[k] = b->layers.data[k].name;
    }
    yaml_problem(section->file, node->key_line, node->key_column, "the model has no layer %s%s",
                 had_word(node->key, had), did_you_mean(node->key, words, b->layers.count, near));
    b->problems++;
    hr_free(words);
}

static void check_name(model_builder *b, const name_table *names, const preset_widths *section,
                       const yaml_node *node)
{
    const uint32_t layer = name_table_find(names, node->key);
    if (layer >= b->layers.count) { // an input has no index of a layer
        report_unknown(b, section, node);
        return;
    }
    const layer_kind_id kind = layer_kind_find(b->layers.data[layer].kind);
    if (kind != LAYER_KIND_COUNT && layer_kind_width(layer_kind_at(kind)) == ATTR_NONE) {
        yaml_problem(section->file, node->key_line, node->key_column,
                     "layer '%s' (%s) has no filters or units of its own: it is as wide as what it reads",
                     node->key, b->layers.data[layer].kind);
        b->problems++;
    }
}

void widths_refuse_unknown(model_builder *b, const name_table *names)
{
    for (uint32_t k = 0; k < b->widths.count && b->problems == 0; k++) {
        const preset_widths *section = &b->widths.sections[k];
        for (const yaml_node *node = section->node->child; node != NULL && !b->nomem; node = node->next) {
            check_name(b, names, section, node);
        }
    }
}

// ---- files ----------------------------------------------------------------------------------------------------

yaml_file *widths_blamed(const model_builder *b)
{
    for (uint32_t k = 0; k < b->widths.count && yaml_problem_count(b->file) == 0; k++) {
        if (yaml_problem_count(b->widths.sections[k].file) > 0) {
            return b->widths.sections[k].file;
        }
    }
    return b->file;
}

void widths_forget_problems(const model_builder *b)
{
    for (uint32_t k = 0; k < b->widths.count; k++) {
        yaml_problems_forget(b->widths.sections[k].file);
    }
}
