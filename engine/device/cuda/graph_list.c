// SPDX-License-Identifier: Apache-2.0
// What cuDNN says of a graph: its engine configurations, in the heuristics' order, asked for once.
#include <string.h>

#include "base/hash.h"
#include "base/host_mem.h"
#include "graph_impl.h"

enum { NOTES_MAX = 16, LISTS_MAX = 2048 };

// ---- what a graph is ------------------------------------------------------------------------------------------

enum { TENSOR_WORDS = 5 + 2 * GRAPH_RANK_MAX, NODE_WORDS = 9 + GRAPH_OPERANDS_MAX + 8 };

static uint32_t bits_of(float x)
{
    uint32_t bits = 0;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void add_tensor(int64_t *words, uint32_t *count, const graph_tensor *t)
{
    const int64_t head[] = {t->dtype, t->rank, t->inside, t->by_value,
                            bits_of(t->by_value ? t->value : 0.0f)};
    memcpy(words + *count, head, sizeof head);
    memcpy(words + *count + 5, t->dim, t->rank * sizeof *t->dim);
    memcpy(words + *count + 5 + t->rank, t->stride, t->rank * sizeof *t->stride);
    *count += 5u + 2u * t->rank;
}

static void add_node(int64_t *words, uint32_t *count, const graph_node *n)
{
    const int64_t head[] = {
        n->kind,          n->in_count, n->out, n->mode, n->axis, bits_of(n->clip_low), bits_of(n->clip_high),
        bits_of(n->ones), n->spatial};
    memcpy(words + *count, head, sizeof head);
    *count += (uint32_t)(sizeof head / sizeof *head);
    for (uint8_t k = 0; k < n->in_count; k++) {
        words[(*count)++] = n->in[k];
    }
    for (int32_t k = 0; k < n->spatial; k++) {
        words[(*count)++] = n->pad_before[k];
        words[(*count)++] = n->pad_after[k];
        words[(*count)++] = n->stride[k];
        words[(*count)++] = n->dilation[k];
    }
}

static void key_of(const graph_spec *spec, uint64_t key[2])
{
    int64_t words[GRAPH_TENSORS_MAX * TENSOR_WORDS + GRAPH_NODES_MAX * NODE_WORDS + 1];
    uint32_t count = 0;
    for (uint32_t k = 0; k < spec->tensor_count; k++) {
        add_tensor(words, &count, &spec->tensor[k]);
    }
    for (uint32_t k = 0; k < spec->node_count; k++) {
        add_node(words, &count, &spec->node[k]);
    }
    if (spec->as_named) { // keys of the others are kept with their times
        words[count++] = spec->as_named;
    }
    key[0] = key[1] = 0;
    hash128(words, count * sizeof *words, key);
}

static bool has_convolution(const graph_spec *spec)
{
    bool found = false;
    for (uint32_t k = 0; k < spec->node_count; k++) {
        found = found || spec->node[k].kind <= GRAPH_CONV_BWD_WEIGHTS;
    }
    return found;
}

// Are the operands of what it multiplies float32?
static bool multiplies_float32(const graph_spec *spec)
{
    for (uint32_t k = 0; k < spec->node_count; k++) {
        if (spec->node[k].kind <= GRAPH_MATMUL) {
            return spec->tensor[spec->node[k].in[0]].dtype == HR_F32;
        }
    }
    return true;
}

// ---- what cuDNN says ------------------------------------------------------------------------------------------

hr_status graph_get(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t room, int64_t *count, void *values, hr_err *err)
{
    return cudnn_check(cudnn.cudnnBackendGetAttribute(d, name, type, room, count, values), err,
                       "reading an attribute of cuDNN");
}

static hr_status read_notes(cudnnBackendDescriptor_t engine, graph_config *c, hr_err *err)
{
    cudnnBackendNumericalNote_t numerical[NOTES_MAX];
    cudnnBackendBehaviorNote_t behavior[NOTES_MAX];
    int64_t count = 0;
    HR_TRY(graph_get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, NOTES_MAX, &count,
                     numerical, err));
    for (int64_t k = 0; k < count && k < NOTES_MAX; k++) {
        c->nondeterministic = c->nondeterministic || numerical[k] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
        c->tensor_cores = c->tensor_cores || numerical[k] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
                          numerical[k] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
        c->narrow_inputs = c->narrow_inputs || numerical[k] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
        c->narrow_sums = c->narrow_sums || numerical[k] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    }
    HR_TRY(graph_get(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, NOTES_MAX, &count,
                     behavior, err));
    for (int64_t k = 0; k < count && k < NOTES_MAX; k++) {
        c->compiled = c->compiled || behavior[k] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    }
    return HR_OK;
}

static hr_status read_config(graph_config *c, hr_err *err)
{
    int64_t bytes = 0, count = 0;
    HR_TRY(graph_get(c->descriptor, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &bytes,
                     err));
    c->workspace_bytes = (uint64_t)(bytes < 0 ? 0 : bytes);
    cudnn_maker engine = cudnn_make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    hr_status status = cudnn_check(engine.status, err, "an engine of cuDNN");
    if (status == HR_OK) {
        status = graph_get(c->descriptor, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                           &count, &engine.descriptor, err);
    }
    if (status == HR_OK) {
        status = graph_get(engine.descriptor, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count,
                           &c->engine, err);
    }
    if (status == HR_OK) {
        status = read_notes(engine.descriptor, c, err);
    }
    cudnn_destroy(engine.descriptor);
    return status;
}

static bool make_room(graph_list *list, int64_t more)
{
    graph_config *room = hr_realloc(list->config, list->count + (size_t)more, sizeof *room);
    if (room != NULL) {
        list->config = room;
        memset(room + list->count, 0, (size_t)more * sizeof *room);
    }
    return room != NULL;
}

// Takes the heuristics' results behind those that the list has; none where it fails. The first count is how many there
// may be. A configuration that cannot be read is left out.
static hr_status take_results(cudnnBackendDescriptor_t heuristics, graph_list *list, hr_err *err)
{
    int64_t room = 0, count = 0;
    HR_TRY(graph_get(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &room, NULL,
                     err));
    if (room <= 0) {
        return HR_OK;
    }
    cudnnBackendDescriptor_t *found = hr_calloc((size_t)room, sizeof(cudnnBackendDescriptor_t));
    if (found == NULL || !make_room(list, room)) {
        hr_free(found);
        return HR_FAIL(err, NOMEM, "no host memory for cuDNN's engines");
    }
    const uint32_t before = list->count;
    hr_status status = HR_OK;
    for (int64_t k = 0; k < room && status == HR_OK; k++) {
        status =
            cudnn_check(cudnn.cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &found[k]),
                        err, "a configuration of cuDNN");
    }
    if (status == HR_OK) {
        status = graph_get(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, room,
                           &count, found, err);
    }
    for (int64_t k = 0; k < room; k++) {
        graph_config c = {.descriptor = found[k]};
        const hr_status read = status == HR_OK && k < count ? read_config(&c, NULL) : HR_DEVICE;
        if (read == HR_OK) {
            list->config[list->count++] = c;
        } else {
            cudnn_destroy(found[k]);
        }
        if (read == HR_NOMEM) {
            status = HR_FAIL(err, NOMEM, "no host memory for cuDNN's engines");
        }
    }
    while (status != HR_OK && list->count > before) {
        cudnn_destroy(list->config[--list->count].descriptor);
    }
    hr_free(found);
    return status;
}

static hr_status ask_heuristics(const graph_library *l, graph_list *list, cudnnBackendHeurMode_t mode,
                                hr_err *err)
{
    cudnnBackendDescriptor_t operations = graph_of_parts(&list->parts);
    cudnnBackendDescriptor_t heuristics = NULL;
    cudnn_maker m = cudnn_make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    cudnn_set(&m, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operations);
    cudnn_set(&m, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    cudnn_set(&m, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &l->device);
    HR_TRY(cudnn_finish(&m, "cuDNN's heuristics", &heuristics, err));
    const hr_status status = take_results(heuristics, list, err);
    cudnn_destroy(heuristics);
    return status;
}

// Behind the first question all of cuDNN is open.
static hr_status look_at_parts(graph_library *l, hr_err *err)
{
    if (!l->looked_at) {
        l->looked_at = true;
        l->ready = cudnn_check_parts(&l->reason) == HR_OK;
    }
    if (!l->ready && err != NULL) {
        *err = l->reason;
    }
    return l->ready ? HR_OK : l->reason.status;
}

// That cuDNN names no engine is no error.
static hr_status add_configs(graph_library *l, graph_list *list, cudnnBackendHeurMode_t mode, hr_err *err)
{
    hr_err why;
    const hr_status status = ask_heuristics(l, list, mode, &why);
    if (status == HR_OK || status == HR_DEVICE) {
        return look_at_parts(l, err);
    }
    if (err != NULL) {
        *err = why;
    }
    return status;
}

hr_status graph_list_fall_back(graph_library *l, graph_list *list, hr_err *err)
{
    if (!list->fell_back) {
        HR_TRY(add_configs(l, list, CUDNN_HEUR_MODE_FALLBACK, err));
        list->fell_back = true;
    }
    return HR_OK;
}

// ---- lists ----------------------------------------------------------------------------------------------------

void graph_list_destroy(graph_list *list)
{
    if (list == NULL) {
        return;
    }
    for (uint32_t k = 0; k < list->count; k++) {
        cudnn_destroy(list->config[k].plan);
        cudnn_destroy(list->config[k].descriptor);
    }
    hr_free(list->config);
    graph_parts_destroy(&list->parts);
    hr_free(list);
}

static hr_status make_list(graph_library *l, const graph_spec *spec, graph_list **out, hr_err *err)
{
    graph_list *list = hr_calloc(1, sizeof *list);
    if (list == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a cuDNN graph");
    }
    list->compiles = !has_convolution(spec);
    list->float32 = multiplies_float32(spec);
    key_of(spec, list->key);
    hr_status status = graph_build(spec, &list->parts, err);
    if (status == HR_OK) {
        status = add_configs(l, list, CUDNN_HEUR_MODE_A, err);
    }
    if (status == HR_OK && l->search.wanted && !spec->as_named) {
        status = graph_search_order(l, spec, list, err);
    }
    if (status != HR_OK) {
        graph_list_destroy(list);
        return status;
    }
    *out = list;
    return HR_OK;
}

// Lists that no plan is made of go when there are many.
static void forget_unused(graph_library *l)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < l->list_count; k++) {
        if (l->lists[k]->users > 0) {
            l->lists[kept++] = l->lists[k];
        } else {
            graph_list_destroy(l->lists[k]);
        }
    }
    l->list_count = kept;
}

static hr_status remember(graph_library *l, graph_list *list, hr_err *err)
{
    if (l->list_count >= LISTS_MAX) {
        forget_unused(l);
    }
    if (l->list_count == l->list_capacity) {
        const uint32_t capacity = l->list_capacity == 0 ? 64 : 2 * l->list_capacity;
        graph_list **grown = hr_realloc(l->lists, capacity, sizeof(graph_list *));
        if (grown == NULL) {
            graph_list_destroy(list);
            return HR_FAIL(err, NOMEM, "no host memory for a cuDNN graph");
        }
        l->lists = grown;
        l->list_capacity = capacity;
    }
    l->lists[l->list_count++] = list;
    return HR_OK;
}

hr_status graph_list_of(graph_library *l, const graph_spec *spec, graph_list **out, hr_err *err)
{
    uint64_t key[2];
    key_of(spec, key);
    for (uint32_t k = 0; k < l->list_count; k++) {
        if (l->lists[k]->key[0] == key[0] && l->lists[k]->key[1] == key[1]) {
            *out = l->lists[k];
            return HR_OK;
        }
    }
    HR_TRY(make_list(l, spec, out, err));
    return remember(l, *out, err);
}
