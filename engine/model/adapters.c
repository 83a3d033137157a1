// SPDX-License-Identifier: Apache-2.0
#include "model/adapters.h"

#include "headroom/event.h"

#include "base/host_mem.h"

// What makes each value; NULL: nothing does.
static const model_node **makers_of(const hr_model *m)
{
    const model_node **maker = hr_calloc(m->value_count + 1, sizeof *maker);
    for (uint32_t n = 0; maker != NULL && n < m->node_count; n++) {
        for (uint32_t k = 0; k < m->nodes[n].out_count; k++) {
            maker[m->nodes[n].out[k]] = &m->nodes[n];
        }
    }
    return maker;
}

static const model_node *maker_of(const model_node *const *maker, const model_node *node, uint32_t operand)
{
    const bool made = operand < node->in_count && !node->in[operand].is_param;
    return made ? maker[node->in[operand].index] : NULL;
}

// A product with a parameter, an adapter or not.
static bool is_product(const hr_model *m, const model_node *node, bool adapter)
{
    return node != NULL && (node->op == HR_OP_DENSE || node->op == HR_OP_CONV2D) && node->in_count >= 2 &&
           node->in[1].is_param && m->params[node->in[1].index].adapter == adapter;
}

// Is the node the sum in which an adapter ends?
static bool read_sum(const hr_model *m, const model_node *const *maker, const model_node *sum,
                     model_adapter *out)
{
    const model_node *base = sum->op == HR_OP_ADD ? maker_of(maker, sum, 0) : NULL;
    const model_node *up = sum->op == HR_OP_ADD ? maker_of(maker, sum, 1) : NULL;
    if (!is_product(m, base, false) || !is_product(m, up, true)) {
        return false;
    }
    const model_node *down = maker_of(maker, up, 0);
    const bool scales = down != NULL && down->op == HR_OP_SCALE;
    *out = (model_adapter){.weights = base->in[1].index,
                           .b = up->in[1].index,
                           .scale = scales ? down->attr.scale : 1,
                           .plain_node = HR_NO_ID};
    down = scales ? maker_of(maker, down, 0) : down;
    out->a = is_product(m, down, true) ? down->in[1].index : HR_NO_ID;
    return out->a != HR_NO_ID;
}

// Layers that share weights share their adapter; one that is no target reads them without.
static bool add_sums(const hr_model *m, const model_node *const *maker, bool *adapted,
                     model_adapter_list *out)
{
    for (uint32_t n = 0; n < m->node_count; n++) {
        model_adapter found;
        if (!read_sum(m, maker, &m->nodes[n], &found)) {
            continue;
        }
        adapted[maker_of(maker, &m->nodes[n], 0) - m->nodes] = true;
        if (model_adapter_of(out, found.weights) != NULL) {
            continue;
        }
        model_adapter *place = vec_push(out);
        if (place == NULL) {
            return false;
        }
        *place = found;
    }
    return true;
}

static void find_plain(const hr_model *m, const bool *adapted, model_adapter *adapter)
{
    for (uint32_t n = 0; n < m->node_count; n++) {
        for (uint32_t k = 0; k < m->nodes[n].in_count; k++) {
            const model_ref *in = &m->nodes[n].in[k];
            if (!adapted[n] && in->is_param && in->index == adapter->weights) {
                adapter->plain_node = n;
            }
        }
    }
}

hr_status model_adapters_of(const hr_model *m, model_adapter_list *out, hr_err *err)
{
    const model_node **maker = makers_of(m);
    bool *adapted = hr_calloc(m->node_count + 1, sizeof *adapted);
    *out = (model_adapter_list){.data = NULL};
    const bool read = maker != NULL && adapted != NULL && add_sums(m, maker, adapted, out);
    for (uint32_t k = 0; read && k < out->count; k++) {
        find_plain(m, adapted, &out->data[k]);
    }
    hr_free(maker);
    hr_free(adapted);
    return read ? HR_OK : HR_FAIL(err, NOMEM, "no host memory for the adapters of model %.64s", m->name);
}

const model_adapter *model_adapter_of(const model_adapter_list *list, uint32_t weights)
{
    for (uint32_t k = 0; k < list->count; k++) {
        if (list->data[k].weights == weights) {
            return &list->data[k];
        }
    }
    return NULL;
}
