// SPDX-License-Identifier: Apache-2.0
// The fastest engine of a convolution or of attention (workspace.search): the first ones that cuDNN's heuristics name are
// timed on the card, once for a kind of card and a version of cuDNN, and lists are in the order of these times from then on,
// with a card and without.
//
// What is timed depends on the graph alone, never on knobs: workspace.limit, execution.deterministic and precision.tf32 choose
// from the list as they do from the heuristics'. So a smaller limit still never gets a larger workspace.
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "base/clock.h"
#include "base/host_mem.h"
#include "base/text.h"
#include "device_impl.h"
#include "graph_impl.h"
#include "outside.h"

enum {
    RUNS = 5,     // that an engine's time is the mean of, behind one that is not counted
    HOPELESS = 2, // times the fastest: then one run is enough
    PATTERN_BYTES = 1 << 20,
};
static const uint64_t workspace_bytes_max = 4 * HR_GIB; // as where workspace.limit is none

// ---- operands -----------------------------------------------------------------------------------------------------

typedef struct operands {
    CUdeviceptr address[GRAPH_TENSORS_MAX];
    uint32_t count;
} operands;

// From its first element to its last: heads of q, k and v lie between one another.
static uint64_t bytes_of(const graph_tensor *t)
{
    uint64_t elements = 1;
    for (uint8_t k = 0; k < t->rank; k++) {
        elements += (uint64_t)((t->dim[k] - 1) * t->stride[k]);
    }
    return elements * (t->dtype == GRAPH_I64 ? sizeof(int64_t) : dtype_bytes((hr_dtype)t->dtype));
}

// No two neighbours are alike, none is large: a card multiplies zeros faster. Doubled on the card.
static hr_status fill(CUdeviceptr address, uint64_t bytes, CUstream stream, hr_err *err)
{
    uint16_t *pattern = hr_calloc(1, PATTERN_BYTES);
    if (pattern == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the operands of a measurement");
    }
    for (uint32_t k = 0; k < PATTERN_BYTES / sizeof *pattern; k++) {
        pattern[k] = (uint16_t)(0x3c00u | (k * UINT32_C(2654435761) >> 23)); // near one in each type
    }
    uint64_t filled = bytes < PATTERN_BYTES ? bytes : PATTERN_BYTES;
    hr_status status = CUDA_CALL(err, cuMemcpyHtoD_v2, address, pattern, filled);
    hr_free(pattern);
    while (status == HR_OK && filled < bytes) {
        const uint64_t more = filled < bytes - filled ? filled : bytes - filled;
        status = CUDA_CALL(err, cuMemcpyDtoDAsync_v2, address + filled, address, more, stream);
        filled += more;
    }
    return status;
}

static hr_status take_operands(const graph_spec *spec, CUstream stream, operands *o, hr_err *err)
{
    for (o->count = 0; o->count < spec->tensor_count; o->count++) {
        const graph_tensor *t = &spec->tensor[o->count];
        if (!t->inside && !t->by_value) {
            HR_TRY(CUDA_CALL(err, cuMemAlloc_v2, &o->address[o->count], bytes_of(t)));
            HR_TRY(fill(o->address[o->count], bytes_of(t), stream, err));
        }
    }
    return HR_OK;
}

static void give_back(CUdeviceptr address)
{
    if (address != 0) {
        (void)cuda_driver.cuMemFree_v2(address);
    }
}

// ---- one engine ---------------------------------------------------------------------------------------------------

typedef struct stopwatch {
    CUstream stream;
    CUevent begin, end;
} stopwatch;

static hr_status open_stopwatch(cuda_device *device, stopwatch *w, hr_err *err)
{
    w->stream = device->lane[HR_LANE_COMPUTE];
    HR_TRY(CUDA_CALL(err, cuEventCreate, &w->begin, CU_EVENT_DEFAULT));
    return CUDA_CALL(err, cuEventCreate, &w->end, CU_EVENT_DEFAULT);
}

static void close_stopwatch(const stopwatch *w)
{
    if (w->begin != NULL) {
        (void)cuda_driver.cuEventDestroy_v2(w->begin);
    }
    if (w->end != NULL) {
        (void)cuda_driver.cuEventDestroy_v2(w->end);
    }
}

static hr_status time_runs(const stopwatch *w, graph *g, const operands *o, CUdeviceptr workspace, int runs,
                           uint64_t *ns, hr_err *err)
{
    float ms = 0;
    HR_TRY(CUDA_CALL(err, cuEventRecord, w->begin, w->stream));
    for (int k = 0; k < runs; k++) {
        HR_TRY(graph_run_locked(g, w->stream, o->address, workspace, err));
    }
    HR_TRY(CUDA_CALL(err, cuEventRecord, w->end, w->stream));
    HR_TRY(CUDA_CALL(err, cuStreamSynchronize, w->stream));
    HR_TRY(CUDA_CALL(err, cuEventElapsedTime_v2, &ms, w->begin, w->end));
    *ns = (uint64_t)((double)ms * 1e6 / runs) + 1; // never 0, which is "not measured"
    return HR_OK;
}

static hr_status time_graph(const stopwatch *w, graph *g, const operands *o, CUdeviceptr workspace,
                            uint64_t best_ns, uint64_t *ns, hr_err *err)
{
    HR_TRY(graph_run_locked(g, w->stream, o->address, workspace, err)); // libraries load kernels at first use
    HR_TRY(time_runs(w, g, o, workspace, 1, ns, err));
    return *ns / HOPELESS > best_ns ? HR_OK : time_runs(w, g, o, workspace, RUNS, ns, err);
}

// Its plan is not kept: few of those that are timed will run.
static hr_status time_config(graph_library *l, const graph_spec *spec, graph_list *list, uint32_t position,
                             const stopwatch *w, const operands *o, uint64_t best_ns, uint64_t *ns,
                             hr_err *err)
{
    graph_config *c = &list->config[position];
    CUdeviceptr workspace = 0;
    graph *g = NULL;
    if (c->workspace_bytes > 0) {
        HR_TRY(CUDA_CALL(err, cuMemAlloc_v2, &workspace, c->workspace_bytes));
    }
    hr_status status = graph_of_config(l, spec, list, position, &g, err);
    if (status == HR_OK) {
        status = time_graph(w, g, o, workspace, best_ns, ns, err);
        (void)cuda_driver.cuStreamSynchronize(w->stream);
        graph_drop(g);
    }
    cudnn_destroy(c->plan);
    c->plan = NULL;
    give_back(workspace);
    return status;
}

// ---- one graph ----------------------------------------------------------------------------------------------------

static bool is_timed(const graph_list *list, const graph_config *c)
{
    return (list->compiles || !c->compiled) && !c->narrow_sums && c->workspace_bytes <= workspace_bytes_max;
}

// An engine that this card refuses, or has no memory for now, has no time and stays behind those that have one.
static hr_status time_list(graph_library *l, const graph_spec *spec, graph_list *list, const stopwatch *w,
                           const operands *o, engine_row *row, hr_err *err)
{
    uint64_t best_ns = UINT64_MAX;
    for (uint32_t k = 0; k < list->count && row->count < ENGINE_TIMES_MAX; k++) {
        const graph_config *c = &list->config[k];
        uint64_t ns = 0;
        if (!is_timed(list, c)) {
            continue;
        }
        const hr_status status = time_config(l, spec, list, k, w, o, best_ns, &ns, err);
        if (status == HR_NOMEM || status == HR_DEVICE_LOST) {
            return status;
        }
        row->partial = row->partial || status == HR_OOM;
        if (status == HR_OK) {
            row->time[row->count++] =
                (engine_time){.engine = c->engine, .knobs = graph_config_knobs(c), .took_ns = ns};
            best_ns = ns < best_ns ? ns : best_ns;
        }
    }
    return row->count > 0 ? HR_OK : HR_DEVICE;
}

static hr_status measure(graph_library *l, const graph_spec *spec, graph_list *list, engine_row *row,
                         hr_err *err)
{
    stopwatch w = {0};
    operands o = {0};
    HR_TRY(cuda_enter(l->search.card, err));
    (void)HR_FAIL(err, DEVICE, "cuDNN names no engine that can be timed");
    hr_status status = open_stopwatch(l->search.card, &w, err);
    if (status == HR_OK) {
        status = take_operands(spec, w.stream, &o, err);
    }
    if (status == HR_OK) {
        status = time_list(l, spec, list, &w, &o, row, err);
    }
    (void)cuda_driver.cuStreamSynchronize(w.stream);
    for (uint32_t k = 0; k < GRAPH_TENSORS_MAX; k++) {
        give_back(o.address[k]);
    }
    close_stopwatch(&w);
    return cuda_noted(l->search.card, status);
}

// What it took of the card beside the allocator's memory is the context's: kernels, and cuDNN's handle.
static hr_status measure_and_count(graph_library *l, const graph_spec *spec, graph_list *list,
                                   const engine_row **out, hr_err *err)
{
    graph_search *s = &l->search;
    engine_row row = {.key = {list->key[0], list->key[1]}};
    hr_err why = {.status = HR_OK};
    const uint64_t before_bytes = cuda_free_bytes(), begun_ns = clock_now_ns();
    const hr_status status = measure(l, spec, list, &row, &why);
    cuda_count_context(s->card, before_bytes);
    s->took_ns += clock_now_ns() - begun_ns;
    if (status == HR_NOMEM || status == HR_DEVICE_LOST) {
        if (err != NULL) {
            *err = why;
        }
        return status;
    }
    if (status != HR_OK) {
        s->unmeasured++;
        (void)text_copy(s->refusal, sizeof s->refusal, why.sentence);
        return HR_OK;
    }
    HR_TRY(engine_times_add(&s->times, &row, err));
    s->measured++;
    s->unsaved = s->unsaved || !row.partial;
    if (row.partial) {
        (void)text_copy(s->refusal, sizeof s->refusal, why.sentence);
    }
    *out = engine_times_find(&s->times, list->key);
    return HR_OK;
}

// ---- order --------------------------------------------------------------------------------------------------------

static uint64_t rank_of(const engine_row *row, const graph_config *c)
{
    const uint64_t ns = engine_row_ns(row, c->engine, graph_config_knobs(c));
    return ns == 0 ? UINT64_MAX : ns;
}

// Stable: those without a time stay as they are, behind the others.
static hr_status sort(graph_list *list, const engine_row *row, hr_err *err)
{
    uint64_t *rank = hr_calloc(list->count + 1u, sizeof *rank);
    if (rank == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the order of cuDNN's engines");
    }
    for (uint32_t k = 0; k < list->count; k++) {
        const graph_config c = list->config[k];
        const uint64_t of = rank_of(row, &c);
        uint32_t at = k;
        for (; at > 0 && rank[at - 1] > of; at--) {
            rank[at] = rank[at - 1];
            list->config[at] = list->config[at - 1];
        }
        rank[at] = of;
        list->config[at] = c;
    }
    hr_free(rank);
    return HR_OK;
}

hr_status graph_search_order(graph_library *l, const graph_spec *spec, graph_list *list, hr_err *err)
{
    const engine_row *row = engine_times_find(&l->search.times, list->key);
    bool any = false;
    for (uint32_t k = 0; k < list->count; k++) {
        any = any || is_timed(list, &list->config[k]);
    }
    if (row == NULL && !any) {
        return HR_OK; // no run will ever have times of it: the heuristics' order is the run's
    }
    if (row == NULL && l->search.card != NULL) {
        HR_TRY(measure_and_count(l, spec, list, &row, err));
    } else if (row == NULL) {
        l->search.unmeasured++; // a run on the card will measure it
    }
    return row == NULL ? HR_OK : sort(list, row, err);
}

// ---- the library's ------------------------------------------------------------------------------------------------

hr_status graph_search_open(graph_library *l, const graph_options *options, hr_err *err)
{
    graph_search *s = &l->search;
    if (!options->search || !l->ready) {
        return HR_OK;
    }
    engine_times_of of = {.compute_major = options->traits->compute_major,
                          .compute_minor = options->traits->compute_minor,
                          .multiprocessors = options->traits->multiprocessors,
                          .cudnn = cudnn.cudnnGetVersion()};
    (void)text_copy(of.title, sizeof of.title, options->title);
    s->wanted = true;
    s->card = options->search_on;
    engine_times_init(&s->times, &of);
    return engine_times_read(&s->times, options->properties_path == NULL ? "" : options->properties_path,
                             err);
}

void graph_search_close(graph_library *l)
{
    graph_library_keep(l);
    engine_times_deinit(&l->search.times);
}

bool graph_library_outdated(const graph_library *l)
{
    return l->search.wanted && engine_times_changed(&l->search.times);
}

void graph_library_keep(graph_library *l)
{
    graph_search *s = &l->search;
    hr_err why;
    pthread_mutex_lock(&l->lock);
    if (s->unsaved && engine_times_write(&s->times, &why) != HR_OK) {
        (void)text_copy(s->refusal, sizeof s->refusal, why.sentence);
    }
    s->unsaved = false;
    pthread_mutex_unlock(&l->lock);
}

void graph_library_searched(graph_library *l, device_search *out)
{
    const graph_search *s = &l->search;
    pthread_mutex_lock(&l->lock);
    *out = (device_search){.wanted = s->wanted,
                           .known = s->times.rows.count,
                           .measured = s->measured,
                           .unmeasured = s->unmeasured,
                           .took_ns = s->took_ns,
                           .refused = s->refusal[0] == '\0' ? NULL : s->refusal};
    pthread_mutex_unlock(&l->lock);
}
