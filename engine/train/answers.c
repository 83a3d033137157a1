// SPDX-License-Identifier: Apache-2.0
// The answers of a teacher to all training samples (compress.distill_cache): the model with its teacher in the step goes forward
// over them once, in file order, in a build of its own, and the logits that the distance from the teacher reads are copied out.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "data/map.h"
#include "train/engine_impl.h"
#include "train/wire.h"

// ---- a device that is watched ---------------------------------------------------------------------------------

typedef struct watch {
    const device_ops *inner;
    void *context;
    const program *p;
    float *to; // where the answers to the batch go
    uint64_t bytes;
} watch;

static hr_status watch_load(void *context, const program *p, void **kernels, hr_err *err)
{
    watch *w = context;
    w->p = p;
    return w->inner->load(w->context, p, kernels, err);
}

static void watch_unload(void *context, void *kernels)
{
    const watch *w = context;
    w->inner->unload(w->context, kernels);
}

static hr_status watch_run(void *context, void *kernels, uint32_t n, void *const *address, step_io *io,
                           hr_err *err)
{
    const watch *w = context;
    const instr *i = &w->p->instrs[n];
    if (i->op == HR_OP_KL) {
        const tensor *t = &w->p->tensors[i->in[1]];
        if (t->dtype != HR_F32 || t->bytes < w->bytes) {
            return HR_FAIL(err, CHECK, "the teacher's answers need float32, had %s", dtype_name(t->dtype));
        }
        HR_TRY(w->inner->copy_out(w->context, (uint64_t)(uintptr_t)address[i->in[1]], w->to, w->bytes, err));
    }
    return w->inner->run(w->context, kernels, n, address, io, err);
}

static hr_status watch_end_step(void *context, void *kernels, step_io *io, hr_err *err)
{
    const watch *w = context;
    return w->inner->end_step == NULL ? HR_OK : w->inner->end_step(w->context, kernels, io, err);
}

static void watch_abandon_step(void *context, void *kernels)
{
    const watch *w = context;
    if (w->inner->abandon_step != NULL) {
        w->inner->abandon_step(w->context, kernels);
    }
}

static const device_ops watch_ops = {.name = "answers",
                                     .load = watch_load,
                                     .unload = watch_unload,
                                     .run = watch_run,
                                     .end_step = watch_end_step,
                                     .abandon_step = watch_abandon_step};

// ---- the pass -------------------------------------------------------------------------------------------------

typedef struct pass {
    hr_engine *e;
    hr_knobs knobs;
    const hr_model *model;
    build *b;
    watch watch;
    uint32_t batch, slot;
    data_source *source;
    data_bad bad;
    data_form form;
    data_room room;
    uint8_t *scratch;
    uint64_t samples, values; // of an answer
    float *answers;
    float *last; // of a batch
} pass;

// The same kernels, forward alone, and nothing that only training needs.
static hr_status set_knobs(pass *p, hr_err *err)
{
    static const char *const pairs[] = {
        "compress.distill_cache=off", "execution.tape=none",      "execution.mode=graph",
        "execution.retain=none",      "execution.cuda_graph=off", "optimizer.kind=sgd",
        "optimizer.ema=none",         "optimizer.clip_norm=none", "optimizer.fused_backward=off",
        "offload.activations=off",    "offload.optimizer=off",    "checkpoint.strategy=none",
        "batch.accumulate=1",         "precision.health=off",     "allocator.kind=direct",
        "pipeline.device_prefetch=0", "pipeline.resident=off",
    };
    p->knobs = p->e->knobs;
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        HR_TRY(hr_knobs_set_pair(&p->knobs, pairs[k], err));
    }
    return HR_OK;
}

static hr_status take_heap(build *b, const hr_knobs *knobs, watch *w, hr_err *err)
{
    const allocator_config config = play_allocator_config(knobs, b->limit_bytes);
    *w = (watch){.inner = b->device, .context = b->context};
    HR_TRY(b->device->memory(b->context, play_backing_bytes(&config), false, &b->source, err));
    HR_TRY(allocator_create(&config, &b->source, NULL, &b->heap, err));
    HR_TRY(executor_create(&watch_ops, w, b->heap, NULL, &b->x, err));
    HR_TRY(executor_build(b->x, b->programs[BUILD_TRAIN], err));
    return executor_attach(b->x, b->programs[BUILD_TRAIN], &b->slots[BUILD_TRAIN], err);
}

static hr_status open_model(pass *p, hr_err *err)
{
    const store none = {.tensors = {.data = NULL}};
    HR_TRY(set_knobs(p, err));
    HR_TRY(model_shelf_take(p->e->models, &p->knobs, &p->model, err));
    HR_TRY(engine_load_teacher(p->e, p->model, err));
    const build_request request = {.model = p->model, .knobs = &p->knobs};
    HR_TRY(build_prepare(&request, &p->b, err));
    HR_TRY(take_heap(p->b, &p->knobs, &p->watch, err));
    engine_tell_teacher(p->e, p->model);
    return store_fill(&none, &p->e->teacher, p->b, p->model,
                      (uint64_t)hr_knob_int(&p->knobs, HR_KNOB_TRAIN_SEED), err);
}

static hr_status open_source(pass *p, hr_err *err)
{
    const data_form form = host_form(p->model);
    pipeline_wire wire;
    wire_types(p->b, p->model, &wire);
    HR_TRY(data_source_open(&p->knobs, &form, &p->source, err));
    if (p->source->ops->load != NULL) {
        HR_TRY(p->source->ops->load(p->source, 1, err));
    }
    p->form = pipeline_train_form(&p->source->form, &wire);
    return data_source_check_form(p->source, &p->form, err);
}

static hr_status take_room(pass *p, hr_err *err)
{
    const data_slot answer = host_answers(p->e->model);
    const data_map map = {.source = p->source, .to = p->form};
    uint64_t all = 0;
    p->batch = (uint32_t)hr_knob_int(&p->knobs, HR_KNOB_BATCH_SIZE);
    p->samples = p->source->info.train_samples;
    p->values = data_slot_values(&answer);
    const bool countable = hr_mul_bytes(p->samples, p->values, &all);
    p->answers = countable ? hr_calloc(all, sizeof *p->answers) : NULL;
    p->last = hr_calloc(p->batch * p->values, sizeof *p->last);
    p->scratch = hr_calloc(data_map_scratch_bytes(&map) + 1, 1);
    if (p->answers == NULL || p->last == NULL || p->scratch == NULL) {
        return HR_FAIL(err, NOMEM,
                       "no host memory for the teacher's answers to %" PRIu64 " samples, %" PRIu64 " B each",
                       p->samples, p->values * sizeof *p->answers);
    }
    p->watch.to = p->last;
    p->watch.bytes = p->batch * p->values * sizeof *p->last;
    return data_room_take(&p->form, p->batch, &(pinned_memory){.take = NULL}, &p->room, err);
}

// One batch from sample `first` on; behind the last one it is filled up with that.
static hr_status answer(pass *p, uint64_t first, hr_err *err)
{
    const data_map map = {.source = p->source, .to = p->form, .bad = p->source->skips_bad ? &p->bad : NULL};
    const uint64_t left = p->samples - first, count = left < p->batch ? left : p->batch;
    step_io io = {.seed = (uint64_t)hr_knob_int(&p->knobs, HR_KNOB_TRAIN_SEED), .update = 1};
    for (uint32_t k = 0; k < p->batch; k++) {
        const data_ask ask = {.set = DATA_TRAIN, .sample = (uint32_t)(first + (k < count ? k : count - 1))};
        const data_room at = data_room_at(&p->form, &p->room, k);
        HR_TRY(data_map_write(&map, &ask, p->scratch, &at, err));
    }
    for (uint32_t k = 0; k < p->form.count; k++) {
        io.slot[k] = p->room.slot[k];
    }
    HR_TRY(executor_step(p->b->x, p->b->slots[BUILD_TRAIN], &io, err));
    memcpy(p->answers + first * p->values, p->last, count * p->values * sizeof *p->last);
    return HR_OK;
}

static hr_status answer_all(pass *p, hr_err *err)
{
    char line[HR_EVENT_TEXT_MAX];
    HR_TRY(open_model(p, err));
    HR_TRY(open_source(p, err));
    HR_TRY(take_room(p, err));
    (void)snprintf(line, sizeof line, "the teacher answers %" PRIu64 " samples before the first step",
                   p->samples);
    trace_note(&p->e->bus, HR_EVENT_LOG, 1, line);
    for (uint64_t first = 0; first < p->samples; first += p->batch) {
        HR_TRY(answer(p, first, err));
    }
    return HR_OK;
}

hr_status engine_make_answers(hr_engine *e, float **out, hr_err *err)
{
    pass p = {.e = e};
    data_bad_init(&p.bad);
    const hr_status status = answer_all(&p, err);
    *out = status == HR_OK ? p.answers : NULL;
    if (status != HR_OK) {
        hr_free(p.answers);
    }
    hr_free(p.last);
    hr_free(p.scratch);
    data_room_give_back(&p.room);
    data_source_close(p.source);
    build_destroy(p.b);
    model_shelf_give_back(e->models, p.model);
    store_deinit(&e->teacher);
    data_bad_deinit(&p.bad);
    return status;
}

void engine_tell_teacher(hr_engine *e, const hr_model *model)
{
    if (model->own_params < model->param_count && e->teacher.tensors.count == 0) {
        trace_note(&e->bus, HR_EVENT_LOG, 1, "the teacher has seeded values: no distill_weights");
    }
}
