// SPDX-License-Identifier: Apache-2.0
#include "numeric/step_harness.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/knobs.h"
#include "headroom/preset.h"
#include "headroom/units.h"

#include "base/half.h"
#include "device/executor.h"
#include "model/model.h"
#include "numeric/fixture.h"
#include "program/compile.h"

#define REQUIRE_OK(call)                                                                                     \
    do {                                                                                                     \
        hr_err err_ = {0};                                                                                   \
        hr_err *const err = &err_;                                                                           \
        ck_assert_msg((call) == HR_OK, "%s", err_.sentence);                                                 \
    } while (0)

#define CAPACITY_BYTES HR_GIB

// ---- results --------------------------------------------------------------------------------------------------

static double *add_value(step_result *r, const char *name, uint64_t count)
{
    if (r->count == r->capacity) {
        r->capacity = r->capacity == 0 ? 64 : 2 * r->capacity;
        r->value = realloc(r->value, r->capacity * sizeof *r->value);
        ck_assert_ptr_nonnull(r->value);
    }
    step_value *v = &r->value[r->count++];
    *v = (step_value){.values = calloc(count, sizeof *v->values), .count = count};
    ck_assert_ptr_nonnull(v->values);
    (void)snprintf(v->name, sizeof v->name, "%s", name);
    return v->values;
}

static void add_floats(step_result *r, const char *name, const tensor *t, const void *memory)
{
    uint64_t count = 0;
    ck_assert(shape_elements(&t->shape, &count));
    double *values = add_value(r, name, count);
    for (uint64_t i = 0; i < count; i++) {
        values[i] = t->dtype == HR_F64 ? ((const double *)memory)[i] : (double)((const float *)memory)[i];
    }
}

void step_result_deinit(step_result *r)
{
    for (uint32_t k = 0; k < r->count; k++) {
        free(r->value[k].values);
    }
    free(r->value);
    *r = (step_result){0};
}

const step_value *step_find(const step_result *r, const char *name)
{
    for (uint32_t k = 0; k < r->count; k++) {
        if (strcmp(r->value[k].name, name) == 0) {
            return &r->value[k];
        }
    }
    return NULL;
}

// ---- a device that is watched ---------------------------------------------------------------------------------
// Gradients and logits live only inside the step, so the executor is given a device that looks at the operands of
// an instruction before the real device runs it.

typedef struct spy {
    const device_ops *inner;
    void *context;
    const program *p;
    step_result *out;
} spy;

static void look_at(const spy *s, const char *name, const tensor *t, const void *address)
{
    void *memory = malloc(t->bytes);
    ck_assert_ptr_nonnull(memory);
    REQUIRE_OK(s->inner->copy_out(s->context, (uint64_t)address, memory, t->bytes, err));
    add_floats(s->out, name, t, memory);
    free(memory);
}

static void look(const spy *s, const instr *i, void *const *address)
{
    const tensor *t = s->p->tensors;
    char name[128];
    if (i->op == HR_OP_SOFTMAX_XENT || i->op == HR_OP_SOFTMAX_XENT_STREAM ||
        i->op == HR_OP_SOFTMAX_XENT_GRADIENT || i->op == HR_OP_MSE) {
        look_at(s, "logits", &t[i->in[0]], address[i->in[0]]);
    }
    if (i->op == HR_OP_KL) {
        look_at(s, "teacher_logits", &t[i->in[1]], address[i->in[1]]);
    }
    if (i->phase == HR_PHASE_UPDATE && i->in_count > 1 && t[i->in[0]].category == HR_CATEGORY_WEIGHTS) {
        (void)snprintf(name, sizeof name, "%s:grad", t[i->in[0]].name);
        look_at(s, name, &t[i->in[1]], address[i->in[1]]);
    }
}

static hr_status spy_run(void *context, void *kernels, uint32_t instr_index, void *const *address,
                         step_io *io, hr_err *err)
{
    const spy *s = context;
    look(s, &s->p->instrs[instr_index], address);
    return s->inner->run(s->context, kernels, instr_index, address, io, err);
}

static hr_status spy_load(void *context, const program *p, void **kernels, hr_err *err)
{
    spy *s = context;
    s->p = p;
    return s->inner->load(s->context, p, kernels, err);
}

static void spy_unload(void *context, void *kernels)
{
    const spy *s = context;
    s->inner->unload(s->context, kernels);
}

static hr_status spy_begin_round(void *context, void *kernels, uint32_t round, step_io *io, hr_err *err)
{
    const spy *s = context;
    return s->inner->begin_round == NULL ? HR_OK : s->inner->begin_round(s->context, kernels, round, io, err);
}

static hr_status spy_end_step(void *context, void *kernels, step_io *io, hr_err *err)
{
    const spy *s = context;
    return s->inner->end_step == NULL ? HR_OK : s->inner->end_step(s->context, kernels, io, err);
}

static void spy_abandon_step(void *context, void *kernels)
{
    const spy *s = context;
    if (s->inner->abandon_step != NULL) {
        s->inner->abandon_step(s->context, kernels);
    }
}

static const device_ops spy_ops = {.name = "spy",
                                   .load = spy_load,
                                   .unload = spy_unload,
                                   .run = spy_run,
                                   .begin_round = spy_begin_round,
                                   .end_step = spy_end_step,
                                   .abandon_step = spy_abandon_step};

// ---- one step -------------------------------------------------------------------------------------------------

typedef struct setup {
    hr_preset *preset;
    hr_knobs knobs;
    hr_model *model;
    const device_ops *device;
    void *context;
    hr_target target;
    program *p;
    backing source;
    allocator *heap;
    executor *x;
    uint32_t slot;
} setup;

static void set_number(hr_knobs *knobs, const char *key, double value)
{
    char pair[96];
    (void)snprintf(pair, sizeof pair, "%s=%.17g", key, value);
    REQUIRE_OK(hr_knobs_set_pair(knobs, pair, err));
}

static void set_knobs(setup *s, const json_t *fixture, const char *const *pairs)
{
    const json_t *optimizer = json_object_get(fixture, "optimizer");
    const char *kind = json_string_value(json_object_get(optimizer, "kind"));
    const double rate = json_real_value(json_object_get(optimizer, "learning_rate"));
    s->knobs = *hr_preset_knobs(s->preset);
    REQUIRE_OK(hr_knobs_set_pair(&s->knobs, "pipeline.device_prefetch=0", err));
    REQUIRE_OK(hr_knobs_set(&s->knobs, HR_KNOB_OPTIMIZER_KIND, kind, err));
    set_number(&s->knobs, "optimizer.learning_rate", rate);
    set_number(&s->knobs, "batch.size", (double)json_integer_value(json_object_get(fixture, "batch")));
    for (; *pairs != NULL; pairs++) {
        REQUIRE_OK(hr_knobs_set_pair(&s->knobs, *pairs, err));
    }
    REQUIRE_OK(hr_knobs_validate(&s->knobs, err));
}

static void build(setup *s, const json_t *fixture, const device_ops *device, const char *const *pairs)
{
    char path[128];
    (void)snprintf(path, sizeof path, "presets/models/%s.yaml",
                   json_string_value(json_object_get(fixture, "model")));
    REQUIRE_OK(hr_preset_open(path, false, &s->preset, NULL, err));
    set_knobs(s, fixture, pairs);
    REQUIRE_OK(model_create(s->preset, &s->knobs, &s->model, NULL, err));
    const device_options options = {.threads = (uint32_t)hr_knob_int(&s->knobs, HR_KNOB_THREADS_COUNT)};
    s->device = device;
    REQUIRE_OK(device->open(&options, &s->context, err));
    device->target(s->context, &s->target);
    REQUIRE_OK(program_compile(s->model, &s->knobs, PROGRAM_TRAIN,
                               (uint32_t)hr_knob_int(&s->knobs, HR_KNOB_BATCH_SIZE), &s->target, &s->p, err));
    REQUIRE_OK(program_check(s->p, err));
}

static void allocate(setup *s, spy *watched)
{
    const allocator_config config = {.kind = "bfc", .limit_bytes = CAPACITY_BYTES, .growth = true};
    REQUIRE_OK(s->device->memory(s->context, CAPACITY_BYTES, false, &s->source, err));
    REQUIRE_OK(allocator_create(&config, &s->source, NULL, &s->heap, err));
    REQUIRE_OK(executor_create(&spy_ops, watched, s->heap, NULL, &s->x, err));
    REQUIRE_OK(executor_build(s->x, s->p, err));
    REQUIRE_OK(executor_attach(s->x, s->p, &s->slot, err));
}

static void teardown(setup *s)
{
    executor_destroy(s->x);
    allocator_destroy(s->heap);
    backing_close(&s->source);
    program_destroy(s->p);
    s->device->close(s->context);
    model_destroy(s->model);
    hr_preset_close(s->preset);
}

// Weights and statistics from the seed, slots at zero.
static void initialise(const setup *s, const tensor *t, uint64_t seed)
{
    uint64_t count = 0;
    ck_assert(shape_elements(&t->shape, &count));
    float *values = calloc(count, sizeof *values);
    double *wide = calloc(count, sizeof *wide);
    ck_assert(values != NULL && wide != NULL);
    if (t->category != HR_CATEGORY_OPTIMIZER) {
        model_init_param(s->model, t->param, seed, values);
    }
    for (uint64_t i = 0; i < count; i++) {
        wide[i] = (double)values[i];
    }
    const void *from = t->dtype == HR_F64 ? (const void *)wide : values;
    REQUIRE_OK(s->device->copy_in(s->context, executor_address(s->x, t->name), from, t->bytes, err));
    free(values);
    free(wide);
}

static bool is_state_of_training(const tensor *t)
{
    return t->category != HR_CATEGORY_INPUT;
}

// What the scripts put into a slot: floats from the seed, ids and masks from the same floats, one label a sample from
// a count. The caller frees it.
static void *slot_values(const setup *s, uint32_t k, uint64_t seed)
{
    const model_slot *slot = &s->model->slots[k];
    const model_value *value = &s->model->values[slot->value];
    const bool is_class = slot->is_label && slot->classes > 0 && value->shape.rank == 1;
    uint64_t count = 0;
    char purpose[32] = "test/images";
    ck_assert(shape_elements(&value->shape, &count));
    count *= s->p->batch;
    float *shares = calloc(count, sizeof *shares);
    int32_t *ids = calloc(count, sizeof *ids);
    uint8_t *marks = calloc(count, sizeof *marks);
    ck_assert(shares != NULL && ids != NULL && marks != NULL);
    if (k > 0) {
        (void)snprintf(purpose, sizeof purpose, "test/slot%u", k);
    }
    fixture_uniform(seed, purpose, shares, count);
    for (uint64_t i = 0; i < count && slot->classes > 0; i++) {
        const double share = (double)shares[i] * slot->classes;
        ids[i] = is_class ? (int32_t)((3 * i + seed) % slot->classes) : (int32_t)share;
        marks[i] = (uint8_t)ids[i];
    }
    void *const forms[] = {shares, ids, marks};
    const int wanted = value->dtype == HR_I32 ? 1 : value->dtype == HR_U8 ? 2 : 0;
    for (int form = 0; form < 3; form++) {
        if (form != wanted) {
            free(forms[form]);
        }
    }
    return forms[wanted];
}

// As the pipeline has them: in the type of the tensor that INPUT writes. The caller frees what comes back instead.
static void *as_tensor(const setup *s, uint32_t k, void *values)
{
    const tensor *t = NULL;
    for (uint32_t n = 0; n < s->p->instr_count; n++) {
        const instr *i = &s->p->instrs[n];
        t = i->op == HR_OP_INPUT && i->attr.slot == (int32_t)k ? &s->p->tensors[i->out[0]] : t;
    }
    if (t == NULL || (t->dtype != HR_F16 && t->dtype != HR_BF16 && t->dtype != HR_F64)) {
        return values;
    }
    const uint64_t count = t->bytes / dtype_bytes((hr_dtype)t->dtype);
    const float *from = values;
    if (t->dtype == HR_F64) {
        double *wide = calloc(count, sizeof *wide);
        ck_assert_ptr_nonnull(wide);
        for (uint64_t v = 0; v < count; v++) {
            wide[v] = (double)from[v];
        }
        free(values);
        return wide;
    }
    uint16_t *halves = calloc(count, sizeof *halves);
    ck_assert_ptr_nonnull(halves);
    for (uint64_t v = 0; v < count; v++) {
        halves[v] = t->dtype == HR_F16 ? f16_of_float(from[v]) : bf16_of_float(from[v]);
    }
    free(values);
    return halves;
}

static void run(const setup *s, uint64_t seed, const json_t *fixture, step_result *out)
{
    const json_t *optimizer = json_object_get(fixture, "optimizer");
    step_io io = {.seed = seed,
                  .update = 1,
                  .learning_rate = json_real_value(json_object_get(optimizer, "learning_rate"))};
    void *slots[STEP_MAX_SLOTS] = {NULL};
    for (uint32_t k = 0; k < s->model->slot_count; k++) {
        io.slot[k] = slots[k] = as_tensor(s, k, slot_values(s, k, seed));
    }
    REQUIRE_OK(executor_step(s->x, s->slot, &io, err));
    add_value(out, "loss", 1)[0] = io.loss;
    for (uint32_t k = 0; k < s->model->slot_count; k++) {
        free(slots[k]);
    }
}

static void read_back(const setup *s, const tensor *t, step_result *out)
{
    void *memory = malloc(t->bytes);
    ck_assert_ptr_nonnull(memory);
    REQUIRE_OK(s->device->copy_out(s->context, executor_address(s->x, t->name), memory, t->bytes, err));
    add_floats(out, t->name, t, memory);
    free(memory);
}

step_result step_run(const json_t *fixture, const device_ops *device, const char *const *knobs)
{
    setup s = {0};
    step_result out = {0};
    const uint64_t seed = (uint64_t)json_integer_value(json_object_get(fixture, "seed"));
    build(&s, fixture, device, knobs);
    spy watched = {.inner = device, .context = s.context, .out = &out};
    allocate(&s, &watched);
    for (uint32_t k = 0; k < s.p->persistent_count; k++) {
        if (is_state_of_training(&s.p->tensors[k])) {
            initialise(&s, &s.p->tensors[k], seed);
        }
    }
    run(&s, seed, fixture, &out);
    for (uint32_t k = 0; k < s.p->persistent_count; k++) {
        if (is_state_of_training(&s.p->tensors[k])) {
            read_back(&s, &s.p->tensors[k], &out);
        }
    }
    teardown(&s);
    return out;
}
