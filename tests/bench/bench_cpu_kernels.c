// SPDX-License-Identifier: Apache-2.0
// Where a training step, or a batch of an evaluation, on the cpu device spends its time: every instruction of a preset's program, its
// milliseconds (median and best of the steps) and its best against the least it could take, the larger of its
// FLOPs over the machine's largest product rate and its bytes over the largest copy rate. Asserts nothing.
//
// usage: bench_cpu_kernels PRESET STEPS GFLOPS GBYTES [evaluate] [key=value]...
//        GFLOPS, GBYTES: what bench_ceiling prints
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "headroom/knobs.h"
#include "headroom/preset.h"

#include "device/executor.h"
#include "model/model.h"
#include "program/compile.h"

enum { MAX_STEPS = 200, WARM_STEPS = 3 };

typedef struct setup {
    hr_preset *preset;
    hr_knobs knobs;
    hr_model *model;
    void *context;
    program *p;
    backing source;
    allocator *heap;
    executor *x;
    uint32_t slot;
} setup;

// The executor is given a device that takes the time of every instruction of the real one.
static struct {
    uint64_t *ns; // [instr][step]
    uint32_t step;
    bool one_thread;
} watch;

static program_mode mode = PROGRAM_TRAIN;

static void must(hr_status status, const hr_err *err)
{
    if (status != HR_OK) {
        (void)fprintf(stderr, "bench_cpu_kernels: %s\n", err->sentence);
        exit(1);
    }
}

// One thread is timed by its own processor time, which other programs do not lengthen.
static uint64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(watch.one_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static hr_status timed_run(void *context, void *kernels, uint32_t at, void *const *address, step_io *io,
                           hr_err *err)
{
    const uint64_t begin = now_ns();
    const hr_status status = device_cpu.run(context, kernels, at, address, io, err);
    watch.ns[at * MAX_STEPS + watch.step] = now_ns() - begin;
    return status;
}

static void build(setup *s, char **arguments, int count)
{
    hr_err err = {0};
    must(hr_preset_open(arguments[0], false, &s->preset, NULL, &err), &err);
    s->knobs = *hr_preset_knobs(s->preset);
    for (int k = 4; k < count; k++) {
        if (strcmp(arguments[k], "evaluate") == 0) {
            mode = PROGRAM_EVALUATE;
        } else {
            must(hr_knobs_set_pair(&s->knobs, arguments[k], &err), &err);
        }
    }
    must(hr_knobs_validate(&s->knobs, &err), &err);
    must(model_create(s->preset, hr_preset_knobs(s->preset), &s->model, NULL, &err), &err);
    const device_options options = {.threads = (uint32_t)hr_knob_int(&s->knobs, HR_KNOB_THREADS_COUNT)};
    watch.one_thread = options.threads == 1;
    must(device_cpu.open(&options, &s->context, &err), &err);
    hr_target target;
    device_cpu.target(s->context, &target);
    const uint32_t batch = (uint32_t)hr_knob_int(&s->knobs, HR_KNOB_BATCH_SIZE);
    must(program_compile(s->model, &s->knobs, mode, batch, &target, &s->p, &err), &err);
}

static void allocate(setup *s, const device_ops *timed)
{
    hr_err err = {0};
    const uint64_t capacity = UINT64_C(4) << 30;
    const allocator_config config = {.kind = "bfc", .limit_bytes = capacity, .growth = true};
    must(device_cpu.memory(s->context, capacity, false, &s->source, &err), &err);
    must(allocator_create(&config, &s->source, NULL, &s->heap, &err), &err);
    must(executor_create(timed, s->context, s->heap, NULL, &s->x, &err), &err);
    must(executor_build(s->x, s->p, &err), &err);
    for (uint32_t k = 0; k < s->p->persistent_count; k++) {
        const tensor *t = &s->p->tensors[k];
        float *values = calloc(1, t->bytes);
        if (values == NULL) {
            exit(1);
        }
        if (t->param != HR_NO_ID && t->category != HR_CATEGORY_OPTIMIZER &&
            t->category != HR_CATEGORY_INPUT) {
            model_init_param(s->model, t->param, 1, values);
        }
        must(device_cpu.copy_in(s->context, executor_address(s->x, t->name), values, t->bytes, &err), &err);
        free(values);
    }
    must(executor_attach(s->x, s->p, &s->slot, &err), &err);
}

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double median_ms(uint64_t *ns, uint32_t count)
{
    qsort(ns, count, sizeof *ns, ascending);
    return (double)ns[count / 2] * 1e-6;
}

static void print(const setup *s, uint32_t steps, double gflops, double gbytes, uint64_t *total_ns)
{
    double sum = 0.0, best_sum = 0.0, floor_sum = 0.0;
    (void)printf("%-42s %9s %9s %9s %6s %9s %9s\n", "instruction", "ms", "best", "floor", "ratio", "GFLOP/s",
                 "GB/s");
    for (uint32_t n = 0; n < s->p->instr_count; n++) {
        const instr *i = &s->p->instrs[n];
        if (!op_needs_kernel(i->op)) {
            continue;
        }
        char name[128];
        const double ms = median_ms(&watch.ns[n * MAX_STEPS], steps);
        const double by_flops = (double)i->flops / gflops * 1e-6,
                     by_bytes = (double)i->bytes_moved / gbytes * 1e-6;
        const double least = by_flops > by_bytes ? by_flops : by_bytes;
        const double best = (double)watch.ns[n * MAX_STEPS] * 1e-6; // sorted by now
        sum += ms;
        best_sum += best;
        floor_sum += least;
        (void)printf("%-42s %9.4f %9.4f %9.4f %6.2f %9.1f %9.1f\n",
                     program_instr_name(s->p, i, name, sizeof name), ms, best, least, best / least,
                     (double)i->flops / best * 1e-6, (double)i->bytes_moved / best * 1e-6);
    }
    (void)printf("%-42s %9.4f %9.4f %9.4f %6.2f\n", "sum", sum, best_sum, floor_sum, best_sum / floor_sum);
    (void)printf("%-42s %9.4f\n", "step", median_ms(total_ns, steps));
}

// Values below one, ids and masks below the number of classes.
static void *batch_of(const setup *s, const model_slot *slot)
{
    const model_value *v = &s->model->values[slot->value];
    uint64_t elements = 0;
    (void)shape_elements(&v->shape, &elements);
    elements *= s->p->batch;
    void *values = calloc(elements, sizeof(float));
    if (values == NULL) {
        exit(1);
    }
    for (uint64_t i = 0; i < elements; i++) {
        const uint32_t drawn = (uint32_t)(i * UINT64_C(2654435761));
        if (v->dtype == HR_F32) {
            ((float *)values)[i] = (float)(drawn % 1024) / 1024.0f;
        } else if (v->dtype == HR_I32) {
            ((int32_t *)values)[i] = (int32_t)(drawn % slot->classes);
        } else {
            ((uint8_t *)values)[i] = (uint8_t)(drawn % slot->classes);
        }
    }
    return values;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        (void)fprintf(stderr,
                      "usage: bench_cpu_kernels PRESET STEPS GFLOPS GBYTES [evaluate] [key=value]...\n");
        return 2;
    }
    const uint32_t wanted = (uint32_t)strtoul(argv[2], NULL, 10);
    const uint32_t steps = wanted == 0 ? 1 : wanted < MAX_STEPS ? wanted : MAX_STEPS;
    setup s = {0};
    device_ops timed = device_cpu;
    timed.run = timed_run;
    build(&s, argv + 1, argc - 1);
    watch.ns = calloc((size_t)s.p->instr_count * MAX_STEPS, sizeof *watch.ns);
    uint64_t total_ns[MAX_STEPS] = {0};
    void *slot[MODEL_MAX_SLOTS] = {0};
    for (uint32_t k = 0; k < s.model->slot_count; k++) {
        slot[k] = batch_of(&s, &s.model->slots[k]);
    }
    if (watch.ns == NULL) {
        return 1;
    }
    allocate(&s, &timed);
    for (uint32_t n = 0; n < WARM_STEPS + steps; n++) {
        hr_err err = {0};
        step_io io = {.learning_rate = 1e-4, .update = n + 1};
        memcpy(io.slot, slot, sizeof slot);
        watch.step = n < WARM_STEPS ? 0 : n - WARM_STEPS;
        const uint64_t begin = now_ns();
        must(executor_step(s.x, s.slot, &io, &err), &err);
        total_ns[watch.step] = now_ns() - begin;
    }
    print(&s, steps, strtod(argv[3], NULL), strtod(argv[4], NULL), total_ns);
    return 0;
}
