// SPDX-License-Identifier: Apache-2.0
// What a layer's mapping says beside name, kind and inputs; and what `defaults:` says for all layers of a kind:
//
//   defaults:
//     conv2d: {bias: false, init: he_normal_fan_out}
#include <string.h>

#include "headroom/event.h"

#include "model/attr_read.h"
#include "model/reader.h"
#include "model/widths.h"
#include "model/words.h"

bool read_is_common_key(const char *key)
{
    static const char *const keys[] = {"name", "kind", "input", "inputs", "share"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        if (strcmp(key, keys[k]) == 0) {
            return true;
        }
    }
    return false;
}

// Its place in the kind's list, where ATTR_NONE stands if it is none of the kind's.
static uint32_t find_attr(const layer_kind *kind, const char *key)
{
    uint32_t k = 0;
    while (kind->attrs[k] != ATTR_NONE && strcmp(attr_row_of(kind->attrs[k])->name, key) != 0) {
        k++;
    }
    return k;
}

static void report_unknown_attr(model_builder *b, const layer_kind *kind, const yaml_node *node)
{
    const char *words[LAYER_MAX_ATTRS + 4] = {"name", "kind", "share",
                                              kind->max_inputs == 1 ? "input" : "inputs"};
    size_t count = 4;
    for (const uint8_t *id = kind->attrs; *id != ATTR_NONE; id++) {
        words[count++] = attr_row_of(*id)->name;
    }
    char had[HAD_MAX], near[WORDS_MAX];
    builder_problem_at(b, node->key_line, node->key_column, "has no attribute %s%s", had_word(node->key, had),
                       did_you_mean(node->key, words, count, near));
}

_Static_assert(LAYER_MAX_ATTRS < 32, "a bit for each attribute of a kind");

// Takes every attribute of the mapping that is one of the kind's; returns which, bit k that at place k of its list.
static uint32_t take_attrs(model_builder *b, const layer_kind *kind, const yaml_node *node,
                           attr_value *values)
{
    uint32_t written = 0;
    for (const yaml_node *child = node->child; child; child = child->next) {
        if (read_is_common_key(child->key)) {
            continue;
        }
        const uint32_t k = find_attr(kind, child->key);
        if (kind->attrs[k] != ATTR_NONE) {
            attr_read(b, attr_row_of(kind->attrs[k]), child, &values[kind->attrs[k]]);
            written |= UINT32_C(1) << k;
        } else if (b->problems < MODEL_MAX_PROBLEMS) {
            report_unknown_attr(b, kind, child);
        }
    }
    return written;
}

void read_attrs(model_reader *r, layer_kind_id id, const yaml_node *node, layer_spec *spec)
{
    const layer_kind *kind = layer_kind_at(id);
    const layer_defaults *defaults = &r->defaults[id];
    for (uint32_t k = 0; kind->attrs[k] != ATTR_NONE; k++) {
        const uint8_t attr = kind->attrs[k];
        const bool given = (defaults->written >> k & 1) != 0;
        spec->value[attr] = given ? defaults->value[attr] : attr_default(attr_row_of(attr));
    }
    const uint32_t written = defaults->written | take_attrs(r->b, kind, node, spec->value);
    r->b->broken = r->b->broken || defaults->broken;
    for (uint32_t k = 0; kind->attrs[k] != ATTR_NONE; k++) {
        const attr_row *row = attr_row_of(kind->attrs[k]);
        if (row->required && !(written >> k & 1) && !(r->b->broken && is_misspelt(node, row->name))) {
            builder_problem(r->b, "needs %s", row->name);
        }
    }
    widths_apply(r->b, kind, spec);
}

void read_defaults(model_reader *r, const yaml_node *defaults)
{
    model_builder *b = r->b;
    const char *words[LAYER_KIND_COUNT];
    for (layer_kind_id id = 0; id < LAYER_KIND_COUNT; id++) {
        words[id] = layer_kind_at(id)->name;
    }
    if (defaults->kind != YAML_MAPPING) {
        builder_problem_at(b, defaults->line, defaults->column,
                           "defaults is a mapping of kinds such as {conv2d: {bias: false}}");
        return;
    }
    reader_refuse_other_keys(b, defaults, "defaults", words, LAYER_KIND_COUNT);
    for (const yaml_node *node = defaults->child; node; node = node->next) {
        const layer_kind_id id = layer_kind_find(node->key);
        if (node->kind != YAML_MAPPING) {
            builder_problem_at(b, node->line, node->column, "defaults of %s must be a mapping of attributes",
                               node->key);
        } else if (id != LAYER_KIND_COUNT) {
            const uint32_t problems = b->problems;
            r->defaults[id].written = take_attrs(b, layer_kind_at(id), node, r->defaults[id].value);
            r->defaults[id].broken = b->problems > problems;
        }
    }
}
