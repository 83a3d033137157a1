// SPDX-License-Identifier: Apache-2.0
#include "model/compressor.h"

#include <stdio.h>
#include <string.h>

#include "headroom/event.h"

// ---- what the techniques are made of ---------------------------------------------------------------------------------

const char *compress_param_name(const compressor *c, uint32_t param, const char *word,
                                char text[COMPRESS_NAME_MAX])
{
    static const char last[] = "weights";
    const char *name = strrchr(c->b->params.data[param].name, '/') + 1;
    const size_t length = strlen(name), least = sizeof last - 1;
    const bool ends = length >= least && strcmp(name + length - least, last) == 0;
    (void)snprintf(text, COMPRESS_NAME_MAX, "%.*s%s", (int)(ends ? length - least : length), name, word);
    return text;
}

const char *compress_value_name(const compressor *c, uint32_t value, const char *word,
                                char text[COMPRESS_NAME_MAX])
{
    const char *name = strrchr(c->b->values.data[value].name, '/') + 1;
    (void)snprintf(text, COMPRESS_NAME_MAX, "%s_%s", name, word);
    return text;
}

uint32_t compress_param(compressor *c, uint32_t like, const char *word, const model_param *param)
{
    char name[COMPRESS_NAME_MAX];
    const uint32_t layer = c->b->layer;
    c->b->layer = c->b->params.data[like].layer;
    const uint32_t made = builder_param(c->b, compress_param_name(c, like, word, name), param);
    c->b->layer = layer;
    return made;
}

uint32_t compress_node(compressor *c, const model_node *node, uint32_t like, const char *word)
{
    char name[COMPRESS_NAME_MAX];
    model_node complete = *node;
    complete.out_count = 1;
    const bool batched = c->b->values.data[like].batched;
    return builder_node(c->b, &complete, &(node_out){compress_value_name(c, like, word, name), batched});
}

void compress_keep(compressor *c, const model_node *node)
{
    model_node *added = vec_push(&c->b->nodes);
    if (added == NULL) {
        builder_nomem(c->b);
        return;
    }
    *added = *node;
}

bool compress_is_product(const model_node *node)
{
    const bool dense = node->op == HR_OP_DENSE && (node->attr.flags & OP_FLAG_TRANSPOSE) == 0;
    return (dense || (node->op == HR_OP_CONV2D && node->attr.groups == 1)) && node->in[1].is_param;
}

// ---- the order of parameters -----------------------------------------------------------------------------------------

static bool is_gone(const compressor *c, uint32_t param)
{
    return param < c->read_params && c->gone[param];
}

// Where each parameter goes: layer by layer, those of one layer as they came; HR_NO_ID: nowhere. `next` is of the layers.
static uint32_t place_params(const compressor *c, uint32_t *place, uint32_t *next)
{
    const model_builder *b = c->b;
    uint32_t sum = 0;
    for (uint32_t k = 0; k < b->params.count; k++) {
        next[b->params.data[k].layer] += !is_gone(c, k);
    }
    for (uint32_t layer = 0; layer < b->layers.count; layer++) {
        const uint32_t first = sum;
        sum += next[layer];
        next[layer] = first;
    }
    for (uint32_t k = 0; k < b->params.count; k++) {
        place[k] = is_gone(c, k) ? HR_NO_ID : next[b->params.data[k].layer]++;
    }
    return sum;
}

static bool sort_params(compressor *c, uint32_t *place)
{
    model_builder *b = c->b;
    uint32_t *next = hr_calloc(b->layers.count + 1, sizeof *next);
    model_param *sorted = hr_calloc(b->params.count + 1, sizeof *sorted);
    if (next == NULL || sorted == NULL) {
        hr_free(next);
        hr_free(sorted);
        return false;
    }
    const uint32_t kept = place_params(c, place, next);
    for (uint32_t k = 0; k < b->params.count; k++) {
        if (place[k] != HR_NO_ID) {
            sorted[place[k]] = b->params.data[k];
        }
    }
    memcpy(b->params.data, sorted, kept * sizeof *sorted);
    b->params.count = kept;
    hr_free(next);
    hr_free(sorted);
    return true;
}

static void count_params(model_builder *b)
{
    b->model.parameters = b->model.trainable_parameters = 0;
    for (uint32_t k = 0; k < b->layers.count; k++) {
        b->layers.data[k].parameters = 0;
    }
    for (uint32_t k = 0; k < b->params.count; k++) {
        const model_param *p = &b->params.data[k];
        uint64_t elements = 0;
        (void)shape_elements(&p->shape, &elements);
        b->layers.data[p->layer].parameters += elements;
        b->model.parameters += elements;
        b->model.trainable_parameters += p->trainable ? elements : 0;
    }
}

static void order_params(compressor *c)
{
    model_builder *b = c->b;
    uint32_t *place = hr_calloc(b->params.count + 1, sizeof *place);
    if (place == NULL || !sort_params(c, place)) {
        builder_nomem(b);
        hr_free(place);
        return;
    }
    for (uint32_t n = 0; n < b->nodes.count; n++) {
        model_node *node = &b->nodes.data[n];
        for (uint32_t k = 0; k < node->in_count; k++) {
            node->in[k].index = node->in[k].is_param ? place[node->in[k].index] : node->in[k].index;
        }
    }
    hr_free(place);
    count_params(b);
}

// ---- the walk --------------------------------------------------------------------------------------------------------

bool compressor_begin(compressor *c)
{
    c->read_params = c->b->params.count;
    c->made = hr_calloc(c->read_params + 1, sizeof *c->made);
    c->gone = hr_calloc(c->read_params + 1, sizeof *c->gone);
    c->touched = hr_calloc(c->b->layers.count + 1, sizeof *c->touched);
    if (c->made == NULL || c->gone == NULL || c->touched == NULL) {
        return false;
    }
    memset(c->made, 0xff, (c->read_params + 1) * sizeof *c->made);
    c->b->broken = false;
    c->b->shared.layer = HR_NO_ID;
    return true;
}

void compressor_rewrite(compressor *c, void (*change)(compressor *, const model_node *))
{
    model_builder *b = c->b;
    model_node *read = b->nodes.data;
    const uint32_t count = b->nodes.count;
    b->nodes.data = NULL;
    b->nodes.count = b->nodes.capacity = 0;
    for (uint32_t n = 0; n < count && !b->broken; n++) {
        b->layer = read[n].layer;
        change(c, &read[n]);
    }
    hr_free(read);
    if (!b->broken) {
        order_params(c);
    }
}

void compressor_end(compressor *c)
{
    hr_free(c->made);
    hr_free(c->gone);
    hr_free(c->touched);
}
