// SPDX-License-Identifier: Apache-2.0
// What the first engines that cuDNN names for every convolution of a model take on a real card, the chosen one first: what a
// measured search could win. Engines are taken out of the heuristics' list one after the other, as one that a card refuses is.
// Written as JSON to standard output, a line for each convolution that differs from those before it.
//
// usage: conv_engines PRESET KEY=VALUE...
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "headroom/card.h"
#include "headroom/preset.h"
#include "headroom/units.h"

#include "conv_spec.h"
#include "device_impl.h"
#include "graph_impl.h"
#include "insight/device_choice.h"
#include "model/model.h"
#include "program/compile.h"

enum { SKIPPED = 77, ENGINES = 5, WARM_RUNS = 2, RUNS = 10, SPECS_MAX = 256, FILL_BYTES = 1 << 22 };
static const uint64_t limit_bytes = 4 * HR_GIB; // as where nobody sets workspace.limit

typedef struct bench {
    device_choice on;
    cuda_device *device;
    hr_preset *preset;
    hr_knobs knobs;
    hr_model *model;
    program *p;
    CUevent begin, end;
    op_query seen[SPECS_MAX];
    uint32_t seen_count;
} bench;

static int say(const hr_err *err, int code)
{
    char text[2 * HR_ERR_TEXT_MAX];
    (void)hr_err_format(err, text, sizeof text);
    (void)fputs(text, stderr);
    return code;
}

static hr_status open(bench *b, int argc, char **argv, hr_err *err)
{
    hr_target target;
    HR_TRY(hr_preset_open(argv[1], true, &b->preset, NULL, err));
    b->knobs = *hr_preset_knobs(b->preset);
    for (int k = 2; k < argc; k++) {
        HR_TRY(hr_knobs_set_pair(&b->knobs, argv[k], err));
    }
    HR_TRY(model_create(b->preset, &b->model, NULL, err));
    HR_TRY(device_choice_open(&b->knobs, false, &b->on, err));
    b->device = b->on.context;
    b->on.ops->target(b->on.context, &target);
    HR_TRY(CUDA_CALL(err, cuEventCreate, &b->begin, CU_EVENT_DEFAULT));
    HR_TRY(CUDA_CALL(err, cuEventCreate, &b->end, CU_EVENT_DEFAULT));
    return program_compile(b->model, &b->knobs, PROGRAM_TRAIN,
                           (uint32_t)hr_knob_int(&b->knobs, HR_KNOB_BATCH_SIZE), &target, &b->p, err);
}

static void close(bench *b)
{
    if (b->begin != NULL) {
        (void)cuda_driver.cuEventDestroy_v2(b->begin);
    }
    if (b->end != NULL) {
        (void)cuda_driver.cuEventDestroy_v2(b->end);
    }
    program_destroy(b->p);
    device_choice_close(&b->on);
    model_destroy(b->model);
    hr_preset_close(b->preset);
}

// ---- one engine -----------------------------------------------------------------------------------------------

// No two neighbours are alike, none is large: a matrix of zeros is multiplied faster.
static hr_status fill(CUdeviceptr address, uint64_t bytes, hr_err *err)
{
    static uint16_t values[FILL_BYTES / sizeof(uint16_t)];
    for (uint32_t k = 0; values[0] == 0 && k < sizeof values / sizeof *values; k++) {
        values[k] = (uint16_t)(0x3c00u | (k * UINT32_C(2654435761) >> 23)); // near one in each type
    }
    for (uint64_t at = 0; at < bytes; at += sizeof values) {
        const uint64_t left = bytes - at;
        HR_TRY(CUDA_CALL(err, cuMemcpyHtoD_v2, address + at, values,
                         left < sizeof values ? left : sizeof values));
    }
    return HR_OK;
}

static uint64_t bytes_of(const graph_tensor *t)
{
    uint64_t count = 1;
    for (uint8_t k = 0; k < t->rank; k++) {
        count *= (uint64_t)t->dim[k];
    }
    return count * dtype_bytes((hr_dtype)t->dtype);
}

static hr_status take_operands(const graph_spec *spec, CUdeviceptr *address, hr_err *err)
{
    for (uint32_t k = 0; k < spec->tensor_count; k++) {
        const graph_tensor *t = &spec->tensor[k];
        if (!t->inside && !t->by_value) {
            HR_TRY(CUDA_CALL(err, cuMemAlloc_v2, &address[k], bytes_of(t)));
            HR_TRY(fill(address[k], bytes_of(t), err));
        }
    }
    return HR_OK;
}

static void give_back(CUdeviceptr *address, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        if (address[k] != 0) {
            (void)cuda_driver.cuMemFree_v2(address[k]);
        }
    }
}

static hr_status time_graph(const bench *b, graph *g, const CUdeviceptr *address, CUdeviceptr workspace,
                            double *ns, hr_err *err)
{
    CUstream stream = b->device->lane[HR_LANE_COMPUTE];
    float ms = 0;
    for (int k = 0; k < WARM_RUNS + RUNS; k++) {
        if (k == WARM_RUNS) {
            HR_TRY(CUDA_CALL(err, cuEventRecord, b->begin, stream));
        }
        HR_TRY(graph_run(g, stream, address, workspace, err));
    }
    HR_TRY(CUDA_CALL(err, cuEventRecord, b->end, stream));
    HR_TRY(CUDA_CALL(err, cuStreamSynchronize, stream));
    HR_TRY(CUDA_CALL(err, cuEventElapsedTime_v2, &ms, b->begin, b->end));
    *ns = (double)ms * 1e6 / RUNS;
    return HR_OK;
}

static hr_status run_engine(const bench *b, const graph_spec *spec, const graph_choice *choice,
                            const CUdeviceptr *address, double *ns, hr_err *err)
{
    graph *g = NULL;
    CUdeviceptr workspace = 0;
    if (choice->workspace_bytes > 0) {
        HR_TRY(CUDA_CALL(err, cuMemAlloc_v2, &workspace, choice->workspace_bytes));
    }
    hr_status status = graph_prepare(b->device, spec, choice->workspace_bytes, &g, err);
    status = status == HR_OK ? time_graph(b, g, address, workspace, ns, err) : status;
    graph_destroy(g);
    give_back(&workspace, 1);
    return status;
}

// As if the card had refused it.
static hr_status take_out(const bench *b, const graph_spec *spec, uint32_t position, hr_err *err)
{
    graph_library *l = cuda_device_graphs(b->device);
    graph_list *list = NULL;
    last_words last;
    graph_enter(l, &last);
    const hr_status status = graph_list_of(l, spec, &list, err);
    if (status == HR_OK) {
        list->config[position].state = CONFIG_REFUSED;
    }
    graph_leave(l, &last);
    return status;
}

// ---- one convolution ------------------------------------------------------------------------------------------

static bool is_new(bench *b, const op_query *q)
{
    for (uint32_t k = 0; k < b->seen_count; k++) {
        if (memcmp(&b->seen[k], q, sizeof *q) == 0) {
            return false;
        }
    }
    if (b->seen_count < SPECS_MAX) {
        b->seen[b->seen_count++] = *q;
    }
    return true;
}

static void print_operands(const char *name, const op_operand *operands, uint32_t count)
{
    char shape[64];
    (void)printf(", \"%s\": [", name);
    for (uint32_t k = 0; k < count; k++) {
        (void)printf("%s\"%s %s\"", k == 0 ? "" : ", ", dtype_name((hr_dtype)operands[k].dtype),
                     shape_text(&operands[k].shape, shape, sizeof shape));
    }
    (void)printf("]");
}

static hr_status measure(bench *b, const instr *i, const op_query *q, hr_err *err)
{
    char name[192];
    CUdeviceptr address[GRAPH_TENSORS_MAX] = {0};
    graph_spec spec;
    uint8_t result = 0;
    hr_err ignored;
    conv_spec(q, &spec, &result);
    hr_status status = take_operands(&spec, address, err);
    (void)printf("{\"name\": \"%s\"", program_instr_name(b->p, i, name, sizeof name));
    print_operands("operands", q->in, q->in_count);
    print_operands("results", q->out, q->out_count);
    (void)printf(", \"engines\": [");
    for (int n = 0; n < ENGINES && status == HR_OK; n++) {
        graph_choice choice;
        double ns = 0;
        if (graph_choose(b->device, &spec, limit_bytes, &choice, &ignored) != HR_OK) {
            break; // there are no more
        }
        status = run_engine(b, &spec, &choice, address, &ns, err);
        (void)printf("%s{\"name\": \"%s\", \"position\": %u, \"workspace_bytes\": %" PRIu64
                     ", \"took_ns\": %.0f}",
                     n == 0 ? "" : ", ", choice.name, choice.position, choice.workspace_bytes, ns);
        status = status == HR_OK || status == HR_DEVICE ? take_out(b, &spec, choice.position, err) : status;
    }
    (void)printf("]}\n");
    (void)fflush(stdout);
    give_back(address, GRAPH_TENSORS_MAX);
    return status;
}

static hr_status measure_all(bench *b, hr_err *err)
{
    for (uint32_t n = 0; n < b->p->instr_count; n++) {
        const instr *i = &b->p->instrs[n];
        op_query q;
        if (i->impl == NULL || strncmp(i->impl, CUDA_CUDNN, strlen(CUDA_CUDNN)) != 0 ||
            strncmp(op_name(i->op), "conv2d", 6) != 0) {
            continue;
        }
        program_query(b->p, i, &q);
        if (is_new(b, &q)) {
            HR_TRY(measure(b, i, &q, err));
        }
    }
    return HR_OK;
}

int main(int argc, char **argv)
{
    static bench b;
    hr_err err = {0};
    if (argc < 2) {
        (void)fputs("usage: conv_engines PRESET KEY=VALUE...\n", stderr);
        return 2;
    }
    hr_status status = open(&b, argc, argv, &err);
    status = status == HR_OK ? measure_all(&b, &err) : status;
    close(&b);
    return status == HR_OK ? 0 : say(&err, status == HR_DEPENDENCY ? SKIPPED : 1);
}
