// SPDX-License-Identifier: Apache-2.0
#include "insight/calibrate_run.h"

#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "base/half.h"
#include "base/host_mem.h"
#include "device/executor.h"
#include "insight/play.h"
#include "model/model.h"
#include "program/compile.h"

enum { WARM_STEPS = 2, STEPS_MAX = 63, WHOLE_STEPS = 16 };
#define MEMORY_BYTES (UINT64_C(4) << 30) // address space; what a program touches is far less

// A device between the executor and the real one: it takes the time of every instruction, and starts none when the
// time is over.
typedef struct stopwatch {
    const device_ops *device;
    void *context;
    const calibration_time *time;
    uint64_t *ns; // [instr][STEPS_MAX]
    uint32_t step;
    bool sleeps; // no instruction is timed
    bool is_over;
} stopwatch;

static uint64_t now_ns(const stopwatch *w)
{
    return w->time->now_ns(w->time->context);
}

static uint64_t spent_ns(const stopwatch *w)
{
    return w->time->spent_ns == NULL ? now_ns(w) : w->time->spent_ns(w->time->context);
}

static hr_status watch_load(void *context, const program *p, void **kernels, hr_err *err)
{
    const stopwatch *w = context;
    return w->device->load(w->context, p, kernels, err);
}

static void watch_unload(void *context, void *kernels)
{
    const stopwatch *w = context;
    w->device->unload(w->context, kernels);
}

static hr_status watch_run(void *context, void *kernels, uint32_t at, void *const *address, step_io *io,
                           hr_err *err)
{
    stopwatch *w = context;
    if (now_ns(w) >= w->time->until_ns) {
        w->is_over = true;
        return HR_FAIL(err, INTERRUPTED, "the time for measuring is over");
    }
    const uint64_t begin_ns = w->sleeps ? 0 : spent_ns(w);
    const hr_status status = w->device->run(w->context, kernels, at, address, io, err);
    if (w->sleeps) {
        return status;
    }
    const uint64_t took_ns = spent_ns(w) - begin_ns, reading_ns = w->time->reading_ns;
    w->ns[(size_t)at * STEPS_MAX + w->step] = took_ns > reading_ns ? took_ns - reading_ns : 0;
    return status;
}

static const device_ops watched = {
    .name = "watched", .load = watch_load, .unload = watch_unload, .run = watch_run};

typedef struct bench {
    stopwatch watch;
    hr_knobs knobs;
    hr_model *model;
    program *p;
    backing memory;
    allocator *heap;
    executor *x;
    void *slot[MODEL_MAX_SLOTS]; // host batch
    uint32_t program_slot;
} bench;

// ---- building -------------------------------------------------------------------------------------------------

static hr_status turn(bench *b, const calibration_program *what, const char *policy, hr_err *err)
{
    char batch[16];
    (void)snprintf(batch, sizeof batch, "%u", what->batch);
    HR_TRY(hr_knobs_set(&b->knobs, HR_KNOB_BATCH_SIZE, batch, err));
    HR_TRY(hr_knobs_set(&b->knobs, HR_KNOB_PRECISION_POLICY, policy, err));
    HR_TRY(hr_knobs_set(&b->knobs, HR_KNOB_OPTIMIZER_KIND, what->optimizer, err));
    return hr_knobs_set(&b->knobs, HR_KNOB_EXECUTION_MODE, "graph", err);
}

static hr_status compile(bench *b, const calibration_program *what, hr_err *err)
{
    hr_preset *preset = NULL;
    hr_target target;
    HR_TRY(hr_preset_open_text(what->name, what->preset, false, &preset, err));
    hr_status status = model_create(preset, hr_preset_knobs(preset), &b->model, NULL, err);
    hr_preset_close(preset);
    HR_TRY(status);
    b->watch.device->target(b->watch.context, &target);
    return program_compile(b->model, &b->knobs, PROGRAM_TRAIN, what->batch, &target, &b->p, err);
}

// Weights as training begins with them; the rest at what a program says, or zero.
static hr_status fill(bench *b, const tensor *t, hr_err *err)
{
    float *values = hr_calloc(t->bytes, 1);
    if (values == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the values of %s", t->name);
    }
    const bool is_param = t->category == HR_CATEGORY_WEIGHTS || t->category == HR_CATEGORY_STATE;
    if (t->dtype == HR_F32 && t->param != HR_NO_ID && is_param) {
        model_init_param(b->model, t->param, 1, values);
    } else if (t->dtype == HR_F32 && t->param == HR_NO_ID) {
        for (uint64_t k = 0; k < t->bytes / sizeof *values; k++) {
            values[k] = t->initial;
        }
    }
    hr_status status =
        b->watch.device->copy_in(b->watch.context, executor_address(b->x, t->name), values, t->bytes, err);
    hr_free(values);
    return status;
}

static hr_status allocate(bench *b, hr_err *err)
{
    const allocator_config config = {.kind = "bfc", .limit_bytes = MEMORY_BYTES, .growth = true};
    HR_TRY(b->watch.device->memory(b->watch.context, MEMORY_BYTES, false, &b->memory, err));
    HR_TRY(allocator_create(&config, &b->memory, NULL, &b->heap, err));
    HR_TRY(executor_create(&watched, &b->watch, b->heap, NULL, &b->x, err));
    HR_TRY(executor_build(b->x, b->p, err));
    for (uint32_t k = 0; k < b->p->persistent_count; k++) {
        HR_TRY(fill(b, &b->p->tensors[k], err));
    }
    return executor_attach(b->x, b->p, &b->program_slot, err);
}

// Of the tensor that INPUT writes: the host's batch has it too.
static hr_dtype type_of_slot(const bench *b, uint32_t k, hr_dtype of_model)
{
    for (uint32_t n = 0; n < b->p->instr_count; n++) {
        const instr *i = &b->p->instrs[n];
        if (i->op == HR_OP_INPUT && i->attr.slot == (int32_t)k) {
            return b->p->tensors[i->out[0]].dtype;
        }
    }
    return of_model;
}

// A batch that no kernel has an easy time with: no two neighbours are alike.
static hr_status make_batch(bench *b, hr_err *err)
{
    for (uint32_t k = 0; k < b->model->slot_count; k++) {
        const model_value *value = &b->model->values[b->model->slots[k].value];
        const uint32_t classes = b->model->slots[k].classes > 0 ? b->model->slots[k].classes : 1;
        const hr_dtype dtype = type_of_slot(b, k, value->dtype);
        uint64_t count = 0, bytes = 0;
        (void)shape_elements(&value->shape, &count);
        if (!hr_mul_bytes(count, b->p->batch, &count) || !hr_mul_bytes(count, sizeof(float), &bytes)) {
            return HR_FAIL(err, MODEL, "%s: the batch has more bytes than can be counted", value->name);
        }
        b->slot[k] = hr_calloc(bytes, 1);
        if (b->slot[k] == NULL) {
            return HR_FAIL(err, NOMEM, "no host memory for a batch of %u samples", b->p->batch);
        }
        for (uint64_t i = 0; i < count; i++) {
            const uint32_t draw = (uint32_t)i * UINT32_C(2654435761) >> 8;
            const float real = (float)draw * 0x1p-24f;
            if (dtype == HR_I32) {
                ((int32_t *)b->slot[k])[i] = (int32_t)(draw % classes);
            } else if (dtype == HR_U8) {
                ((uint8_t *)b->slot[k])[i] = (uint8_t)(draw % classes);
            } else if (dtype == HR_F16 || dtype == HR_BF16) {
                ((uint16_t *)b->slot[k])[i] = dtype == HR_F16 ? f16_of_float(real) : bf16_of_float(real);
            } else {
                ((float *)b->slot[k])[i] = real;
            }
        }
    }
    return HR_OK;
}

// ---- measuring ------------------------------------------------------------------------------------------------

// False when no further step is wanted.
static bool goes_on(const bench *b, uint32_t done)
{
    const calibration_time *time = b->watch.time;
    return done < STEPS_MAX &&
           (done < CALIBRATION_STEPS_LEAST || time->now_ns(time->context) < time->share_until_ns);
}

static double seconds_of(uint64_t ns)
{
    return (double)(ns > 0 ? ns : 1) * 1e-9;
}

static hr_status run_one(bench *b, uint64_t update, hr_err *err)
{
    step_io io = {.learning_rate = 1e-4, .update = update, .seed = 1};
    for (uint32_t k = 0; k < b->model->slot_count; k++) {
        io.slot[k] = b->slot[k];
    }
    return executor_step(b->x, b->program_slot, &io, err);
}

static hr_status run_steps(bench *b, uint32_t *done, hr_err *err)
{
    *done = 0;
    for (uint32_t n = 0; goes_on(b, *done); n++) {
        b->watch.step = *done;
        const hr_status status = run_one(b, n + 1, err);
        if (status != HR_OK) {
            return b->watch.is_over ? HR_OK : status;
        }
        *done += n >= WARM_STEPS;
    }
    return HR_OK;
}

// A step takes what its instructions take, and the rest: allocations, and the way from line to line. So some small ones run
// without a stopwatch on every instruction; *fastest_seconds is that of them, or 0 where none ran.
static hr_status run_whole_steps(bench *b, uint32_t count, double *fastest_seconds, hr_err *err)
{
    b->watch.sleeps = true;
    for (uint32_t n = 0; n < count; n++) {
        const uint64_t begin_ns = spent_ns(&b->watch);
        const hr_status status = run_one(b, STEPS_MAX + n, err);
        const double seconds = seconds_of(spent_ns(&b->watch) - begin_ns);
        if (status != HR_OK) {
            return b->watch.is_over ? HR_OK : status;
        }
        *fastest_seconds = *fastest_seconds == 0 || seconds < *fastest_seconds ? seconds : *fastest_seconds;
    }
    return HR_OK;
}

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static hr_status take_quartiles(bench *b, calibration_samples *samples, calibration_outcome *out, hr_err *err)
{
    out->sample_begin = samples->count;
    for (uint32_t n = 0; n < b->p->instr_count; n++) {
        const instr *i = &b->p->instrs[n];
        uint64_t *ns = &b->watch.ns[(size_t)n * STEPS_MAX];
        const cost_family family = cost_family_of(i);
        if (family == COST_NOTHING) {
            continue;
        }
        rate_sample *s = vec_push(samples);
        if (s == NULL) {
            return HR_FAIL(err, NOMEM, "no host memory for %u measurements", samples->count);
        }
        qsort(ns, out->steps, sizeof *ns, ascending);
        *s = (rate_sample){.seconds = seconds_of(ns[out->steps / 4]),
                           .flops = (double)i->flops,
                           .bytes = (double)i->bytes_moved,
                           .family = family,
                           .width = rates_width_of(b->p, i),
                           .kinds = rates_kinds_of(b->p, i)};
        out->sample_count++;
        out->seconds += s->seconds;
        out->fastest_seconds += seconds_of(ns[0]);
    }
    return HR_OK;
}

static hr_status run(bench *b, calibration_samples *samples, calibration_outcome *out, hr_err *err)
{
    b->watch.ns = hr_calloc((size_t)b->p->instr_count * STEPS_MAX, sizeof *b->watch.ns);
    if (b->watch.ns == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the times of %u instructions", b->p->instr_count);
    }
    HR_TRY(allocate(b, err));
    HR_TRY(make_batch(b, err));
    HR_TRY(run_steps(b, &out->steps, err));
    if (out->steps < CALIBRATION_STEPS_LEAST) {
        return HR_OK;
    }
    double whole_seconds = 0;
    HR_TRY(run_whole_steps(b, out->steps < WHOLE_STEPS ? 0 : WHOLE_STEPS, &whole_seconds, err));
    HR_TRY(take_quartiles(b, samples, out, err));
    out->lines = b->p->instr_count;
    out->besides_seconds = whole_seconds > 0 ? whole_seconds - out->fastest_seconds : 0;
    return HR_OK;
}

static void deinit(bench *b)
{
    executor_destroy(b->x);
    allocator_destroy(b->heap);
    if (b->memory.close != NULL) {
        backing_close(&b->memory);
    }
    program_destroy(b->p);
    model_destroy(b->model);
    hr_free(b->watch.ns);
    for (uint32_t k = 0; k < MODEL_MAX_SLOTS; k++) {
        hr_free(b->slot[k]);
    }
}

hr_status calibration_run(const device_ops *device, void *context, const calibration_program *what,
                          const char *policy, const hr_knobs *knobs, const calibration_time *time,
                          calibration_samples *samples, calibration_outcome *out, hr_err *err)
{
    bench b = {.watch = {.device = device, .context = context, .time = time}, .knobs = *knobs};
    *out = (calibration_outcome){.batch = what->batch};
    hr_status status = turn(&b, what, policy, err);
    status = status == HR_OK ? compile(&b, what, err) : status;
    status = status == HR_OK ? run(&b, samples, out, err) : status;
    deinit(&b);
    return status;
}
