// SPDX-License-Identifier: Apache-2.0
#include "model/attr_read.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/sizes.h"
#include "model/words.h"

attr_value attr_default(const attr_row *row)
{
    const int32_t whole = (int32_t)row->fallback;
    switch (row->type) {
    case ATTR_TYPE_INT:
    case ATTR_TYPE_CHOICE:
        return (attr_value){.integer = whole};
    case ATTR_TYPE_PAIR:
        return (attr_value){.pair = {whole, whole}};
    case ATTR_TYPE_REAL:
        return (attr_value){.real = row->fallback};
    case ATTR_TYPE_PADDING:
    case ATTR_TYPE_EDGES:
    case ATTR_TYPE_SHAPE:
        break;
    }
    return (attr_value){0};
}

static bool int_of(model_builder *b, const attr_row *row, const yaml_node *node, int64_t *out)
{
    int64_t value;
    char why[SIZE_WHY_MAX];
    const bool whole = size_is_symbolic(node)
                           ? size_value(b, node, &value, why)
                           : node->kind == YAML_SCALAR && !node->quoted && text_to_int(node->text, &value);
    if (!whole || value < (int64_t)row->min || value > (int64_t)row->max) {
        return false;
    }
    *out = value;
    return true;
}

// "'$depth'", and behind it what is wrong with it or what it stands for.
static const char *had_number(model_builder *b, const yaml_node *node, char out[HAD_MAX + SIZE_WHY_MAX])
{
    char had[HAD_MAX], why[SIZE_WHY_MAX];
    int64_t value;
    if (!size_is_symbolic(node)) {
        return had_node(node, out);
    }
    const bool stands = size_value(b, node, &value, why);
    if (stands) {
        (void)snprintf(why, sizeof why, "it stands for %lld", (long long)value);
    }
    (void)snprintf(out, HAD_MAX + SIZE_WHY_MAX, "%s (%s)", had_node(node, had), why);
    return out;
}

// "units must be a whole number from 1 to 16777216, had 'x'"
static void refuse(model_builder *b, const attr_row *row, const yaml_node *node, const char *form)
{
    char had[HAD_MAX + SIZE_WHY_MAX];
    const yaml_node *wrong = node;
    int64_t value;
    for (const yaml_node *one = node->kind == YAML_SEQUENCE ? node->child : NULL; one; one = one->next) {
        if (size_is_symbolic(one) && !int_of(b, row, one, &value)) {
            wrong = one;
            break;
        }
    }
    builder_problem_at(b, wrong->line, wrong->column, "%s must be %s from %.10g to %.10g, had %s", row->name,
                       form, row->min, row->max, had_number(b, wrong, had));
}

static void read_int(model_builder *b, const attr_row *row, const yaml_node *node, attr_value *out)
{
    if (!int_of(b, row, node, &out->integer)) {
        refuse(b, row, node, "a whole number");
    }
}

static void read_real(model_builder *b, const attr_row *row, const yaml_node *node, attr_value *out)
{
    double value;
    if (node->kind == YAML_SCALAR && !node->quoted && text_to_real(node->text, &value) && value >= row->min &&
        value <= row->max) {
        out->real = value;
        return;
    }
    refuse(b, row, node, "a number");
}

static void read_pair(model_builder *b, const attr_row *row, const yaml_node *node, attr_value *out)
{
    int64_t h, w;
    const bool list = node->kind == YAML_SEQUENCE && node->count == 2;
    const yaml_node *first = list ? node->child : node;
    const yaml_node *second = list ? first->next : node;
    if (!int_of(b, row, first, &h) || !int_of(b, row, second, &w)) {
        refuse(b, row, node, "N or [height, width] with whole numbers");
        return;
    }
    out->pair = (attr_pair){(int32_t)h, (int32_t)w};
}

static void read_choice(model_builder *b, const attr_row *row, const yaml_node *node, attr_value *out)
{
    const char *word = node->kind == YAML_SCALAR ? node->text : NULL;
    size_t count = 0;
    for (; row->choices[count]; count++) {
        if (word && strcmp(row->choices[count], word) == 0) {
            out->integer = (int64_t)count;
            return;
        }
    }
    char had[HAD_MAX], list[WORDS_MAX], near[WORDS_MAX];
    builder_problem_at(b, node->line, node->column, "%s must be one of %s, had %s%s", row->name,
                       word_list(row->choices, count, list), had_node(node, had),
                       did_you_mean(word, row->choices, count, near));
}

static void read_padding(model_builder *b, const attr_row *row, const yaml_node *node, attr_value *out)
{
    int64_t amount = 0;
    const bool same = node->kind == YAML_SCALAR && strcmp(node->text, "same") == 0;
    const bool valid = node->kind == YAML_SCALAR && strcmp(node->text, "valid") == 0;
    const bool causal =
        row->choices[0] != NULL && node->kind == YAML_SCALAR && strcmp(node->text, "causal") == 0;
    if (!same && !valid && !causal && !int_of(b, row, node, &amount)) {
        refuse(b, row, node,
               row->choices[0] != NULL ? "same, valid, causal or a whole number"
                                       : "same, valid or a whole number");
        return;
    }
    out->padding = (attr_padding){.same = same, .causal = causal, .amount = (int32_t)amount};
}

static void read_edges(model_builder *b, const attr_row *row, const yaml_node *node, attr_value *out)
{
    int64_t side[4];
    uint32_t count = 0;
    const bool list = node->kind == YAML_SEQUENCE && (node->count == 2 || node->count == 4);
    bool good = list || node->kind == YAML_SCALAR;
    for (const yaml_node *one = list ? node->child : node; good && count < (list ? node->count : 1);
         one = one->next) {
        good = int_of(b, row, one, &side[count++]);
    }
    if (!good) {
        refuse(b, row, node, "N, [height, width] or [top, bottom, left, right] with whole numbers");
        return;
    }
    const bool four = count == 4;
    const int64_t width = count == 2 ? side[1] : side[0];
    out->edges = (attr_edges){.top = (int32_t)side[0],
                              .bottom = (int32_t)side[four ? 1 : 0],
                              .left = (int32_t)(four ? side[2] : width),
                              .right = (int32_t)(four ? side[3] : width)};
}

static void read_shape(model_builder *b, const attr_row *row, const yaml_node *node, attr_value *out)
{
    hr_shape shape = {0};
    bool good = node->kind == YAML_SEQUENCE && node->count >= 1 && node->count < OP_MAX_RANK;
    for (const yaml_node *side = good ? node->child : NULL; good && side; side = side->next) {
        good = int_of(b, row, side, &shape.dim[shape.rank++]);
    }
    if (!good) {
        refuse(b, row, node, "a list of one to four whole numbers");
        return;
    }
    out->shape = shape;
}

void attr_read(model_builder *b, const attr_row *row, const yaml_node *node, attr_value *out)
{
    static void (*const readers[])(model_builder *, const attr_row *, const yaml_node *, attr_value *) = {
        [ATTR_TYPE_INT] = read_int,       [ATTR_TYPE_PAIR] = read_pair,       [ATTR_TYPE_REAL] = read_real,
        [ATTR_TYPE_CHOICE] = read_choice, [ATTR_TYPE_PADDING] = read_padding, [ATTR_TYPE_EDGES] = read_edges,
        [ATTR_TYPE_SHAPE] = read_shape,
    };
    readers[row->type](b, row, node, out);
}
