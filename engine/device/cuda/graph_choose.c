// SPDX-License-Identifier: Apache-2.0
// Which engine computes a graph: cuDNN's own order, or that of measured times (graph_search.c), walked until one obeys.
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "base/hash.h"
#include "base/text.h"
#include "graph_impl.h"

enum { KNOBS_MAX = 48 };

// ---- the choice -----------------------------------------------------------------------------------------------

// Memory was planned for what the configuration said.
static hr_status check_workspace(const graph_config *c, cudnnBackendDescriptor_t plan, bool *too_large,
                                 hr_err *err)
{
    int64_t bytes = 0, count = 0;
    HR_TRY(
        graph_get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &bytes, err));
    *too_large = bytes > 0 && (uint64_t)bytes > c->workspace_bytes;
    if (!*too_large) {
        return HR_OK;
    }
    char needed[HR_BYTES_TEXT_MAX], had[HR_BYTES_TEXT_MAX];
    return HR_FAIL(err, DEVICE, "a plan of cuDNN needs %s of workspace, its engine said %s",
                   hr_bytes_human((uint64_t)bytes, needed), hr_bytes_human(c->workspace_bytes, had));
}

// For the handle that will run it, or for the properties of the card. *too_large: of all failures this one.
static hr_status finish_plan(const graph_library *l, const graph_config *c, bool for_handle,
                             cudnnBackendDescriptor_t *out, bool *too_large, hr_err *err)
{
    *too_large = false;
    cudnn_maker m = cudnn_make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    cudnn_set(&m, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c->descriptor);
    if (for_handle) {
        cudnn_set(&m, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &l->handle);
    } else {
        cudnn_set(&m, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &l->device);
    }
    HR_TRY(cudnn_finish(&m, "a plan of cuDNN", out, err));
    const hr_status status = check_workspace(c, *out, too_large, err);
    if (status != HR_OK) {
        cudnn_destroy(*out);
        *out = NULL;
    }
    return status;
}

// That of the handle suits the card best, but may want more workspace than was planned: then that of the properties, which
// a handle of such a card executes as well (cuDNN frontend, "Deviceless Ahead-of-time Compilation"). What the handle refuses for
// another reason is refused with it.
static hr_status make_plan(const graph_library *l, graph_config *c, hr_err *err)
{
    bool too_large = false;
    const hr_status made = finish_plan(l, c, l->handle != NULL, &c->plan, &too_large, err);
    return l->handle != NULL && too_large ? finish_plan(l, c, false, &c->plan, &too_large, err) : made;
}

static void note(graph_list *list, graph_config *c, hr_status status, const hr_err *why)
{
    if (status != HR_NOMEM) {
        c->state = status == HR_OK ? CONFIG_PLANNED : CONFIG_REFUSED;
    }
    if (status != HR_OK) {
        (void)text_copy(list->refusal, sizeof list->refusal, why->sentence);
    }
}

hr_status graph_plan(graph_library *l, graph_list *list, graph_config *c, hr_err *err)
{
    hr_err why;
    const hr_status status = c->plan != NULL ? HR_OK : make_plan(l, c, &why);
    note(list, c, status, &why);
    if (status != HR_OK && err != NULL) {
        *err = why;
    }
    return status;
}

// Heuristics may name what does not become a plan. Ready-made engines are asked, which costs less than a millisecond; a
// compiled one would have to be compiled, and is asked when it is to run. By the properties alone, so that a card that is
// there chooses as a plan does. A plan that may never run is not kept: it holds up to 200 KiB.
static bool becomes_plan(graph_library *l, graph_list *list, graph_config *c)
{
    if (c->state == CONFIG_UNTRIED && !c->compiled) {
        hr_err why;
        cudnnBackendDescriptor_t plan = NULL;
        bool too_large = false;
        note(list, c, finish_plan(l, c, false, &plan, &too_large, &why), &why);
        cudnn_destroy(plan);
    }
    return c->state == CONFIG_PLANNED || (c->state == CONFIG_UNTRIED && c->compiled);
}

static bool obeys_knobs(const graph_library *l, const graph_list *list, const graph_config *c)
{
    return !c->narrow_sums && (list->compiles || !c->compiled) &&
           (l->options.tf32 || !list->float32 || !c->tensor_cores) &&
           (!l->options.deterministic || !c->nondeterministic);
}

static bool find_from(graph_library *l, graph_list *list, uint32_t first, uint64_t limit_bytes,
                      uint32_t *position)
{
    for (uint32_t k = first; k < list->count; k++) {
        graph_config *c = &list->config[k];
        if (c->workspace_bytes <= limit_bytes && obeys_knobs(l, list, c) && becomes_plan(l, list, c)) {
            *position = k;
            return true;
        }
    }
    return false;
}

static hr_status refuse(const graph_library *l, const graph_list *list, uint64_t limit_bytes, hr_err *err)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t k = 0; k < list->count; k++) {
        const graph_config *c = &list->config[k];
        if (obeys_knobs(l, list, c) && c->state != CONFIG_REFUSED && c->workspace_bytes < least) {
            least = c->workspace_bytes;
        }
    }
    if (least == UINT64_MAX) {
        return HR_FAIL(err, DEVICE, "cuDNN has no engine for it on %s, of %u that it knows%s%s",
                       l->properties.name, list->count, list->refusal[0] == '\0' ? "" : ": ", list->refusal);
    }
    char needed[HR_BYTES_TEXT_MAX], had[HR_BYTES_TEXT_MAX];
    (void)HR_FAIL(err, DEVICE, "cuDNN needs %s of workspace at least, workspace.limit is %s",
                  hr_bytes_human(least, needed), hr_bytes_human(limit_bytes, had));
    hr_err_try(err, "-s workspace.limit=%s", hr_bytes_exact(least, needed));
    return HR_DEVICE;
}

static hr_status ready(graph_library *l, hr_err *err)
{
    if (!l->ready) {
        if (err != NULL) {
            *err = l->reason;
        }
        return l->reason.status;
    }
    return graph_library_device(l, err);
}

hr_status graph_find(graph_library *l, const graph_spec *spec, uint64_t limit_bytes, graph_list **list,
                     uint32_t *position, hr_err *err)
{
    HR_TRY(ready(l, err));
    HR_TRY(graph_list_of(l, spec, list, err));
    if (find_from(l, *list, 0, limit_bytes, position)) {
        return HR_OK;
    }
    const uint32_t looked_at = (*list)->count;
    HR_TRY(graph_list_fall_back(l, *list, err));
    return find_from(l, *list, looked_at, limit_bytes, position) ? HR_OK : refuse(l, *list, limit_bytes, err);
}

// ---- words ----------------------------------------------------------------------------------------------------

typedef struct knob_value {
    cudnnBackendKnobType_t type;
    int64_t value;
} knob_value;

static bool read_knob(cudnnBackendDescriptor_t knob, knob_value *out)
{
    int64_t count = 0;
    return graph_get(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &count, &out->type,
                     NULL) == HR_OK &&
           graph_get(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &count, &out->value,
                     NULL) == HR_OK;
}

// Those of the configuration that can be read.
static uint32_t read_knobs(const graph_config *c, knob_value out[KNOBS_MAX])
{
    cudnnBackendDescriptor_t knobs[KNOBS_MAX] = {NULL};
    int64_t count = 0;
    uint32_t read = 0;
    hr_status status = HR_OK;
    for (uint32_t k = 0; k < KNOBS_MAX && status == HR_OK; k++) {
        status =
            cudnn_check(cudnn.cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knobs[k]),
                        NULL, "a knob of cuDNN");
    }
    if (status == HR_OK) {
        status = graph_get(c->descriptor, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                           KNOBS_MAX, &count, knobs, NULL);
    }
    for (int64_t k = 0; k < count && k < KNOBS_MAX && status == HR_OK; k++) {
        read += read_knob(knobs[k], &out[read]);
    }
    for (uint32_t k = 0; k < KNOBS_MAX; k++) {
        cudnn_destroy(knobs[k]);
    }
    return read;
}

void graph_config_name(const graph_config *c, char *name, size_t size)
{
    knob_value knobs[KNOBS_MAX];
    const uint32_t count = read_knobs(c, knobs);
    size_t used = (size_t)snprintf(name, size, "eng%lld", (long long)c->engine);
    for (uint32_t k = 0; k < count; k++) {
        char word[32];
        const int length =
            snprintf(word, sizeof word, " k%d=%lld", (int)knobs[k].type, (long long)knobs[k].value);
        if (knobs[k].value != 0 && length > 0 && used + (size_t)length < size) {
            memcpy(name + used, word, (size_t)length + 1);
            used += (size_t)length;
        }
    }
}

uint64_t graph_config_knobs(const graph_config *c)
{
    knob_value knobs[KNOBS_MAX];
    const uint32_t count = read_knobs(c, knobs);
    uint64_t hash = count;
    for (uint32_t k = 0; k < count; k++) {
        hash = hash64_mix(hash64_mix(hash, (uint64_t)knobs[k].type), (uint64_t)knobs[k].value);
    }
    return hash;
}

// Earlier in the list's order, and wanting more than the limit. What would not become a plan was never a choice.
static uint8_t count_passed_over(graph_library *l, graph_list *list, uint32_t position, uint64_t limit_bytes)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < position; k++) {
        graph_config *c = &list->config[k];
        count += c->workspace_bytes > limit_bytes && obeys_knobs(l, list, c) && becomes_plan(l, list, c);
    }
    return count < UINT8_MAX ? (uint8_t)count : UINT8_MAX;
}

hr_status graph_choose(cuda_device *device, const graph_spec *spec, uint64_t limit_bytes, graph_choice *out,
                       hr_err *err)
{
    graph_library *l = cuda_device_graphs(device);
    graph_list *list = NULL;
    uint32_t position = 0;
    *out = (graph_choice){0};
    last_words last;
    graph_enter(l, &last);
    const hr_status status = graph_find(l, spec, limit_bytes, &list, &position, err);
    if (status == HR_OK) {
        const graph_config *c = &list->config[position];
        *out = (graph_choice){.workspace_bytes = c->workspace_bytes,
                              .position = position,
                              .behind = count_passed_over(l, list, position, limit_bytes),
                              .deterministic = !c->nondeterministic};
        graph_config_name(c, out->name, sizeof out->name);
    }
    graph_leave(l, &last);
    return status;
}

// ---- as PyTorch chooses -----------------------------------------------------------------------------------------

static bool obeys_pytorch(const graph_library *l, const graph_list *list, const graph_config *c, bool tf32)
{
    return !c->narrow_inputs && (tf32 || !list->float32 || !c->tensor_cores) &&
           (!l->options.deterministic || !c->nondeterministic);
}

// Of the plan for the card; false: it becomes none. What cuDNN needs a driver for to plan it is believed where there is none.
static bool plan_bytes(const graph_library *l, const graph_config *c, uint64_t *bytes)
{
    int64_t said = 0, count = 0;
    cudnnBackendDescriptor_t plan = NULL;
    cudnn_maker m = cudnn_make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    cudnn_set(&m, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c->descriptor);
    cudnn_set(&m, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &l->device);
    *bytes = c->workspace_bytes;
    if (cudnn_finish(&m, "a plan of cuDNN", &plan, NULL) != HR_OK) {
        return !l->options.card && CUDNN_STATUS_CATEGORY((int)m.status) == CUDNN_STATUS_EXECUTION_FAILED;
    }
    const hr_status status =
        graph_get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &said, NULL);
    cudnn_destroy(plan);
    *bytes = said > 0 ? (uint64_t)said : 0;
    return status == HR_OK;
}

static uint64_t memory_bytes(const graph_library *l)
{
    return l->properties.memory_bytes > 0 ? l->properties.memory_bytes : UINT64_MAX;
}

static bool find_named(const graph_library *l, const graph_list *list, uint32_t first, bool tf32,
                       uint64_t limit_bytes, graph_choice *out)
{
    for (uint32_t k = first; k < list->count; k++) {
        const graph_config *c = &list->config[k];
        uint64_t bytes = 0;
        if (obeys_pytorch(l, list, c, tf32) && plan_bytes(l, c, &bytes) && bytes <= limit_bytes) {
            *out = (graph_choice){
                .workspace_bytes = bytes, .position = k, .deterministic = !c->nondeterministic};
            graph_config_name(c, out->name, sizeof out->name);
            return true;
        }
    }
    return false;
}

// Unless there is none at all, it is the limit that refuses.
static hr_status refuse_named(const graph_library *l, const graph_list *list, bool tf32, uint64_t limit_bytes,
                              graph_choice *out, hr_err *err)
{
    uint64_t least = UINT64_MAX, bytes = 0;
    for (uint32_t k = 0; k < list->count; k++) {
        const graph_config *c = &list->config[k];
        const bool works = obeys_pytorch(l, list, c, tf32) && plan_bytes(l, c, &bytes);
        least = works && bytes <= memory_bytes(l) && bytes < least ? bytes : least;
    }
    if (least == UINT64_MAX) {
        *out = (graph_choice){.none = true};
        return HR_OK;
    }
    char needed[HR_BYTES_TEXT_MAX], had[HR_BYTES_TEXT_MAX];
    (void)HR_FAIL(err, DEVICE,
                  "a convolution of PyTorch's needs %s of cuDNN's workspace at least, workspace.limit is %s",
                  hr_bytes_human(least, needed), hr_bytes_human(limit_bytes, had));
    hr_err_try(err, "-s workspace.limit=%s", hr_bytes_exact(least, needed));
    return HR_DEVICE;
}

static hr_status choose_named(graph_library *l, const graph_spec *spec, bool tf32, uint64_t limit_bytes,
                              graph_choice *out, hr_err *err)
{
    graph_list *list = NULL;
    HR_TRY(ready(l, err));
    HR_TRY(graph_list_of(l, spec, &list, err));
    limit_bytes =
        limit_bytes < memory_bytes(l) ? limit_bytes : memory_bytes(l); // PyTorch takes the next one then
    if (find_named(l, list, 0, tf32, limit_bytes, out)) {
        return HR_OK;
    }
    const uint32_t looked_at = list->count;
    HR_TRY(graph_list_fall_back(l, list, err));
    if (find_named(l, list, looked_at, tf32, limit_bytes, out)) {
        return HR_OK;
    }
    return refuse_named(l, list, tf32, limit_bytes, out, err);
}

hr_status graph_choose_named(cuda_device *device, const graph_spec *spec, bool tf32, uint64_t limit_bytes,
                             graph_choice *out, hr_err *err)
{
    graph_library *l = cuda_device_graphs(device);
    *out = (graph_choice){0};
    last_words last;
    graph_enter(l, &last);
    const hr_status status = choose_named(l, spec, tf32, limit_bytes, out, err);
    graph_leave(l, &last);
    return status;
}
