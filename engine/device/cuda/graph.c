// SPDX-License-Identifier: Apache-2.0
// cuDNN on behalf of one device, and graphs that run.
#include "graph.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/host_mem.h"
#include "gates.h"
#include "graph_impl.h"

enum { BY_TEXT = 1 }; // how a card that is there is asked about: answers are kept that were given otherwise

// ---- the library ----------------------------------------------------------------------------------------------

static void explain(graph_library *l, const cuda_properties *properties)
{
    if (cudnn_need(&l->reason) != HR_OK) {
        l->reason.status = HR_DEVICE;
        return;
    }
    l->ready = l->options.card || properties != NULL;
    if (!l->ready) {
        (void)HR_FAIL(&l->reason, DEVICE,
                      "cuDNN plans for a card whose device properties it has, device.card names none");
        hr_err_try(&l->reason, "-s device.card=h200-141g");
    }
}

hr_status graph_library_open(const graph_options *options, graph_library **out, hr_err *err)
{
    graph_library *l = hr_calloc(1, sizeof *l);
    *out = l;
    if (l == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for cuDNN's answers");
    }
    pthread_mutex_init(&l->lock, NULL);
    l->options = *options;
    if (options->properties != NULL) {
        l->properties = *options->properties;
    }
    l->options.properties = NULL;
    l->options.properties_path = NULL;
    if (options->card) {
        (void)snprintf(l->properties.name, sizeof l->properties.name, "this card");
    }
    explain(l, options->properties);
    const hr_status status = graph_search_open(l, options, err);
    if (status != HR_OK) {
        graph_library_close(l);
        *out = NULL;
    }
    return status;
}

void graph_library_close(graph_library *l)
{
    if (l == NULL) {
        return;
    }
    for (uint32_t k = 0; k < l->list_count; k++) {
        graph_list_destroy(l->lists[k]);
    }
    hr_free(l->lists);
    graph_search_close(l);
    cudnn_destroy(l->device);
    if (l->handle != NULL) {
        (void)cudnn.cudnnDestroy(l->handle);
    }
    pthread_mutex_destroy(&l->lock);
    hr_free(l);
}

void graph_enter(graph_library *l, last_words *w)
{
    pthread_mutex_lock(&l->lock);
    cudnn_begin(w, !l->options.card);
}

void graph_leave(graph_library *l, const last_words *w)
{
    last_words_end(w);
    pthread_mutex_unlock(&l->lock);
}

bool graph_library_is_ready(const graph_library *l)
{
    return l->ready;
}

uint64_t graph_library_key(const graph_library *l)
{
    const uint64_t version = l->ready ? cudnn.cudnnGetVersion() : 0;
    uint32_t gates = 0;
    (void)cudnn_gates(&gates);
    uint64_t key = hash64_mix(l->properties.hash, version);
    key = hash64_mix(key, cudnn_shows_compiled());
    key = hash64_mix(key, l->options.card ? BY_TEXT : 0);
    key = hash64_mix(key, gates); // what was answered before one of them stood is asked again
    key = l->search.wanted ? hash64_mix(key, l->search.times.hash + 1) : key;
    return hash64_mix(key, (uint64_t)l->options.tf32 * 2 + l->options.deterministic);
}

void graph_library_words(const graph_library *l, char *text, size_t size)
{
    const size_t version = l->ready ? cudnn.cudnnGetVersion() : 0;
    if (version == 0) {
        (void)snprintf(text, size, "no cuDNN");
    } else {
        (void)snprintf(text, size, "cuDNN %zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
    }
}

static hr_status device_from_text(const graph_library *l, cudnnBackendDescriptor_t *out, hr_err *err)
{
    cudnn_maker m = cudnn_make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    cudnn_set(&m, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
              (int64_t)strlen(l->properties.text) + 1, l->properties.text);
    return cudnn_finish(&m, "cuDNN and the device properties of a card", out, err);
}

static hr_status device_from_card(const graph_library *l, cudnnBackendDescriptor_t *out, hr_err *err)
{
    cudnn_maker m = cudnn_make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    cudnn_set(&m, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &l->options.ordinal);
    return cudnn_finish(&m, "cuDNN and the device properties of this card", out, err);
}

// How much memory the text says; 0 where it cannot be read.
static hr_status read_memory(graph_library *l, hr_err *err)
{
    cuda_properties read;
    const hr_status status =
        cuda_properties_parse(l->properties.text, strlen(l->properties.text), "cuDNN", &read, err);
    l->properties.memory_bytes = status == HR_OK ? read.memory_bytes : 0;
    return status == HR_NOMEM ? status : HR_OK;
}

// What is there is asked about as what is not: by the text of its properties. Asked about a card by its number, cuDNN 9.19
// names other engines, and of the same ones other workspaces (an H100: 1,917,591 bytes where its properties say 295,107;
// none where they say 131), which no plan made elsewhere could know.
static hr_status read_card(graph_library *l, hr_err *err)
{
    int64_t count = 0;
    cudnnBackendDescriptor_t card = NULL;
    char *text = l->properties.text;
    HR_TRY(device_from_card(l, &card, err));
    memset(text, 0, sizeof l->properties.text);
    const hr_status status = cudnn_check(
        cudnn.cudnnBackendGetAttribute(card, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                       sizeof l->properties.text - 1, &count, text),
        err, "the device properties of this card");
    cudnn_destroy(card);
    if (status != HR_OK) {
        text[0] = '\0';
    }
    return status == HR_OK ? read_memory(l, err) : status;
}

hr_status graph_library_device(graph_library *l, hr_err *err)
{
    if (l->device != NULL) {
        return HR_OK;
    }
    if (l->properties.text[0] == '\0') {
        HR_TRY(read_card(l, err));
    }
    return device_from_text(l, &l->device, err);
}

hr_status graph_library_property_text(graph_library *l, char text[CUDA_PROPERTIES_MAX], hr_err *err)
{
    memset(text, 0, CUDA_PROPERTIES_MAX);
    if (!l->ready || !l->options.card) {
        return HR_FAIL(err, DEVICE, "device properties needed a card and cuDNN, had %s",
                       l->ready ? "no card" : "no cuDNN");
    }
    last_words last;
    graph_enter(l, &last);
    const hr_status status = graph_library_device(l, err);
    if (status == HR_OK) {
        memcpy(text, l->properties.text, CUDA_PROPERTIES_MAX);
    }
    graph_leave(l, &last);
    return status;
}

hr_status graph_library_properties(graph_library *l, cuda_properties *out, hr_err *err)
{
    char text[CUDA_PROPERTIES_MAX];
    HR_TRY(graph_library_property_text(l, text, err));
    return cuda_properties_parse(text, strlen(text), "cuDNN", out, err);
}

// ---- graphs that run ------------------------------------------------------------------------------------------

struct graph {
    graph_library *library;
    graph_list *list;
    cudnnBackendDescriptor_t plan; // the list's
    cudnnBackendDescriptor_t pack; // of the addresses below; NULL before the first run
    char name[GRAPH_NAME_MAX];
    uint32_t count; // of tensors that lie in memory or are values
    uint8_t tensor[GRAPH_TENSORS_MAX];
    int64_t id[GRAPH_TENSORS_MAX];
    bool by_value[GRAPH_TENSORS_MAX];
    float value[GRAPH_TENSORS_MAX];
    void *address[GRAPH_TENSORS_MAX], *workspace;
};

static void describe(graph *g, const graph_spec *spec)
{
    for (uint32_t k = 0; k < spec->tensor_count; k++) {
        if (!spec->tensor[k].inside) {
            g->tensor[g->count] = (uint8_t)k;
            g->id[g->count] = (int64_t)k + 1;
            g->by_value[g->count] = spec->tensor[k].by_value;
            g->value[g->count] = spec->tensor[k].value;
            g->count++;
        }
    }
}

static hr_status need_handle(graph_library *l, hr_err *err)
{
    return l->handle != NULL ? HR_OK : cudnn_check(cudnn.cudnnCreate(&l->handle), err, "a handle of cuDNN");
}

static graph *graph_new(graph_library *l, const graph_spec *spec)
{
    graph *g = hr_calloc(1, sizeof *g);
    if (g != NULL) {
        g->library = l;
        describe(g, spec);
    }
    return g;
}

static void use_plan(graph *g, graph_list *list, uint32_t position)
{
    g->plan = list->config[position].plan;
    g->list = list;
    graph_config_name(&list->config[position], g->name, sizeof g->name);
    list->users++;
}

// l->lock is held. An engine that does not become a plan on this card is passed over, here and from now on; when none
// does, the reason is the last one's.
static hr_status take_plan(graph_library *l, graph *g, const graph_spec *spec, uint64_t limit_bytes,
                           hr_err *err)
{
    uint32_t position = 0;
    graph_list *list = NULL;
    HR_TRY(need_handle(l, err));
    HR_TRY(graph_find(l, spec, limit_bytes, &list, &position, err));
    hr_status status = graph_plan(l, list, &list->config[position], err);
    while (status == HR_DEVICE && graph_find(l, spec, limit_bytes, &list, &position, NULL) == HR_OK) {
        status = graph_plan(l, list, &list->config[position], err);
    }
    if (status == HR_OK) {
        use_plan(g, list, position);
    }
    return status;
}

hr_status graph_prepare(cuda_device *device, const graph_spec *spec, uint64_t limit_bytes, graph **out,
                        hr_err *err)
{
    *out = NULL;
    if (cuda_device_plans(device)) {
        return HR_FAIL(err, DEVICE, "device 'cuda' was opened for plans: it prepares nothing");
    }
    graph_library *l = cuda_device_graphs(device);
    graph *g = graph_new(l, spec);
    if (g == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a cuDNN graph");
    }
    last_words last;
    graph_enter(l, &last);
    const hr_status status = take_plan(l, g, spec, limit_bytes, err);
    graph_leave(l, &last);
    if (status != HR_OK) {
        graph_destroy(g);
        return status;
    }
    *out = g;
    return HR_OK;
}

const char *graph_name(const graph *g)
{
    return g->name;
}

void graph_drop(graph *g)
{
    cudnn_destroy(g->pack);
    if (g->list != NULL) {
        g->list->users--;
    }
    hr_free(g);
}

void graph_destroy(graph *g)
{
    if (g == NULL) {
        return;
    }
    graph_library *l = g->library;
    pthread_mutex_lock(&l->lock);
    graph_drop(g);
    pthread_mutex_unlock(&l->lock);
}

hr_status graph_of_config(graph_library *l, const graph_spec *spec, graph_list *list, uint32_t position,
                          graph **out, hr_err *err)
{
    *out = NULL;
    HR_TRY(need_handle(l, err));
    HR_TRY(graph_plan(l, list, &list->config[position], err));
    *out = graph_new(l, spec);
    if (*out == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a cuDNN graph");
    }
    use_plan(*out, list, position);
    return HR_OK;
}

// A finalized pack is read-only: other addresses are another pack.
static hr_status bind(graph *g, hr_err *err)
{
    cudnn_destroy(g->pack);
    g->pack = NULL;
    cudnn_maker m = cudnn_make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    cudnn_set(&m, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, g->count, g->id);
    cudnn_set(&m, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, g->count, g->address);
    cudnn_set(&m, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &g->workspace);
    return cudnn_finish(&m, "the operands of a cuDNN graph", &g->pack, err);
}

static hr_status rebind(graph *g, const CUdeviceptr *address, CUdeviceptr workspace, hr_err *err)
{
    bool same = g->pack != NULL && g->workspace == (void *)workspace;
    g->workspace = (void *)workspace;
    for (uint32_t k = 0; k < g->count; k++) {
        void *wanted = g->by_value[k] ? (void *)&g->value[k] : (void *)address[g->tensor[k]];
        same = same && g->address[k] == wanted;
        g->address[k] = wanted;
    }
    return same ? HR_OK : bind(g, err);
}

// l->lock is held: planners ask for plans of the same handle on threads of their own.
static hr_status execute(graph_library *l, graph *g, CUstream stream, hr_err *err)
{
    if (!l->bound || l->stream != stream) {
        HR_TRY(cudnn_check(cudnn.cudnnSetStream(l->handle, stream), err, "a stream for cuDNN"));
        l->stream = stream;
        l->bound = true;
    }
    return cudnn_check(cudnn.cudnnBackendExecute(l->handle, g->plan, g->pack), err, "a cuDNN graph");
}

hr_status graph_run_locked(graph *g, CUstream stream, const CUdeviceptr *address, CUdeviceptr workspace,
                           hr_err *err)
{
    HR_TRY(rebind(g, address, workspace, err));
    return execute(g->library, g, stream, err);
}

hr_status graph_run(graph *g, CUstream stream, const CUdeviceptr *address, CUdeviceptr workspace, hr_err *err)
{
    pthread_mutex_lock(&g->library->lock);
    const hr_status status = graph_run_locked(g, stream, address, workspace, err);
    pthread_mutex_unlock(&g->library->lock);
    return status;
}
