// SPDX-License-Identifier: Apache-2.0
// The report of the current counter epoch.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/card.h"
#include "headroom/units.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "device/cost.h"
#include "insight/diagnose.h"
#include "insight/implementations.h"
#include "insight/planner.h"
#include "insight/play_limit.h"
#include "knobs/prune.h"
#include "program/deployed.h"
#include "train/failure_heap.h"
#include "train/own_limit.h"
#include "train/wire.h"

static void fill_device(const hr_engine *e, hr_report *r)
{
    (void)text_copy(r->device.kind, sizeof r->device.kind, hr_knob_text(&e->knobs, HR_KNOB_DEVICE_KIND));
    (void)text_copy(r->device.card, sizeof r->device.card, hr_card_of(&e->knobs));
    if (e->build != NULL) {
        r->device.simulated = e->build->device->simulated;
        e->build->device->isa(e->build->context, r->device.isa, sizeof r->device.isa);
        r->device.threads =
            e->build->device->threads != NULL ? e->build->device->threads(e->build->context) : 1;
    }
}

// The driver's view; false where there is no card.
static bool look_outside(const hr_engine *e, device_outside *o)
{
    *o = (device_outside){.known = false};
    if (e->build != NULL && e->build->arithmetic && e->build->device->outside != NULL) {
        e->build->device->outside(e->build->context, o);
    }
    return o->known;
}

static void fill_driver(const hr_engine *e, hr_report *r)
{
    device_outside o;
    if (look_outside(e, &o)) {
        r->driver.outside_bytes = o.context_bytes;
        r->driver.process_bytes = o.process_bytes;
        r->driver.others_bytes = o.others_bytes;
    }
}

// What is said of a build is said of its model, too.
static const hr_model *model_reported(const hr_engine *e)
{
    return e->build != NULL ? e->built : e->model;
}

static double factor_error_of(const hr_engine *e, const char *layer)
{
    const decomposed *found = NULL;
    for (uint32_t k = 0; k < e->decomposed.count && found == NULL; k++) {
        const decomposed *d = &e->decomposed.data[k];
        found = strcmp(d->name, layer) == 0 ? d : NULL;
    }
    return found == NULL ? (double)NAN : decomposed_error(found);
}

static hr_status fill_model(const hr_engine *e, hr_report *r, hr_err *err)
{
    const hr_model *m = model_reported(e);
    r->model.parameters = m->parameters;
    r->model.trainable_parameters = m->trainable_parameters;
    r->model.normalises_batches = model_normalises_batches(m);
    r->model.layers = hr_calloc(m->layer_count, sizeof *r->model.layers);
    if (r->model.layers == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a report over %u layers", m->layer_count);
    }
    r->model.layer_count = m->layer_count;
    for (uint32_t k = 0; k < m->layer_count; k++) {
        hr_report_layer *to = &r->model.layers[k];
        const model_value *output = &m->values[m->layers[k].output];
        const hr_shape shape =
            output->batched ? shape_of(output->shape.rank - 1, &output->shape.dim[1]) : output->shape;
        (void)text_copy(to->name, sizeof to->name, m->layers[k].name);
        (void)text_copy(to->kind, sizeof to->kind, m->layers[k].kind);
        (void)shape_text(&shape, to->output_shape, sizeof to->output_shape);
        to->parameters = m->layers[k].parameters;
        to->factor_error = factor_error_of(e, m->layers[k].name);
    }
    return HR_OK;
}

static hr_status fill_deploy(const hr_engine *e, hr_report *r, hr_err *err)
{
    deployed_size size;
    HR_TRY(deployed_size_of(model_reported(e), &e->knobs, &size, err));
    r->deploy.stripped_bytes = size.stripped_bytes;
    r->deploy.deployed_bytes = size.bytes;
    return HR_OK;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double median_seconds(const hr_engine *e)
{
    uint64_t sorted[ENGINE_DURATIONS];
    uint64_t count = e->duration_count < ENGINE_DURATIONS ? e->duration_count : ENGINE_DURATIONS;
    if (count == 0) {
        return (double)NAN;
    }
    memcpy(sorted, e->durations_ns, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_number);
    const uint64_t median = sorted[count / 2];
    return (double)median * 1e-9;
}

// What the device made ready, and what became of capturing steps: nothing before it has been loaded.
static void fill_loaded(const build *b, hr_report *r)
{
    const program *p = b->programs[BUILD_TRAIN];
    device_prepared prepared;
    device_capture capture;
    if (b->x == NULL) {
        return;
    }
    for (uint32_t n = 0; n < p->instr_count; n++) {
        executor_prepared(b->x, b->slots[BUILD_TRAIN], n, &prepared);
        implementations_prepared(p, n, prepared.reason, r);
    }
    executor_captured(b->x, b->slots[BUILD_TRAIN], &capture);
    r->step.capture.wanted = capture.wanted;
    r->step.capture.replays = capture.replays;
    (void)text_copy(r->step.capture.refused, sizeof r->step.capture.refused,
                    capture.refused == NULL ? "" : capture.refused);
}

static void fill_search(const build *b, hr_report *r)
{
    device_search search = {0};
    if (b->device->searched != NULL) {
        b->device->searched(b->context, &search);
    }
    r->step.search = (hr_report_search){.wanted = search.wanted,
                                        .known = search.known,
                                        .measured = search.measured,
                                        .unmeasured = search.unmeasured,
                                        .seconds = (double)search.took_ns * 1e-9};
    (void)text_copy(r->step.search.refused, sizeof r->step.search.refused,
                    search.refused == NULL ? "" : search.refused);
}

// Measured where there is arithmetic; otherwise what the device's cost model says.
static hr_status fill_step(const hr_engine *e, hr_report *r, hr_err *err)
{
    const build *b = e->build;
    const program *p = b->programs[BUILD_TRAIN];
    r->step.instructions = p->instr_count;
    r->step.effective_batch = (uint64_t)p->batch * p->rounds;
    r->step.flops = p->flops;
    r->step.measured = b->arithmetic;
    r->h2d_bytes_per_step = p->h2d_bytes;
    r->resident = p->resident;
    implementations_count(p, r);
    fill_loaded(b, r);
    fill_search(b, r);
    if (b->arithmetic) {
        r->step.seconds = median_seconds(e);
        return HR_OK;
    }
    cost_times times;
    HR_TRY(cost_step_times(b->device, b->context, p, &times, err));
    r->step.seconds = times.seconds;
    r->step.seconds_low = times.low_seconds;
    r->step.seconds_high = times.high_seconds;
    r->step.basis = times.basis;
    return HR_OK;
}

static int by_bytes(const void *a, const void *b)
{
    const hr_report_tensor *x = a;
    const hr_report_tensor *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes < y->bytes ? 1 : -1;
    }
    return strcmp(x->name, y->name);
}

static void describe_tensor(const tensor *t, hr_report_tensor *to)
{
    (void)text_copy(to->name, sizeof to->name, t->name);
    to->category = t->category;
    (void)text_copy(to->dtype, sizeof to->dtype, tensor_type_name(t));
    (void)shape_text(&t->shape, to->shape, sizeof to->shape);
    to->bytes = t->bytes;
}

// What earlier steps left behind is no tensor of this one: a row of its own, so that the table adds up.
static void add_retained(hr_report_memory *m)
{
    uint64_t earlier = m->at_peak.by_category[HR_CATEGORY_RETAINED];
    for (size_t k = 0; k < m->at_peak.tensor_count; k++) {
        const hr_report_tensor *t = &m->at_peak.tensors[k];
        earlier -= t->category == HR_CATEGORY_RETAINED ? t->bytes : 0;
    }
    if (earlier == 0) {
        return;
    }
    hr_report_tensor *row = &m->at_peak.tensors[m->at_peak.tensor_count++];
    *row = (hr_report_tensor){.category = HR_CATEGORY_RETAINED, .bytes = earlier};
    (void)text_copy(row->name, sizeof row->name, "retained by earlier steps");
    (void)text_copy(row->dtype, sizeof row->dtype, dtype_name(HR_U8));
    (void)snprintf(row->shape, sizeof row->shape, "%" PRIu64, earlier);
}

typedef enum use { FOR_NOBODY, FOR_OPAQUE, FOR_OTHERS } use;

static uint32_t owner_of(const program *p, uint32_t id)
{
    while (p->tensors[id].storage != id) {
        id = p->tensors[id].storage;
    }
    return id;
}

// All but the last operand of an opaque layer's gradient, which is dy, may be kept for that alone.
static void note_uses(const program *p, const instr *i, uint8_t *uses)
{
    for (uint32_t k = 0; k < i->in_count && i->op != HR_OP_FREE && i->op != HR_OP_RESHAPE; k++) {
        const bool opaque = i->op == HR_OP_OPAQUE_BWD && k + 1u < i->in_count;
        uint8_t *of = &uses[owner_of(p, i->in[k])];
        *of = opaque && *of != FOR_OTHERS ? FOR_OPAQUE : FOR_OTHERS;
    }
}

// Of what is alive at the peak, what opaque layers alone are thought to keep: by how much less it could be.
static hr_status fill_opaque(const program *p, const bool *live, uint32_t until, hr_report_memory *m,
                             hr_err *err)
{
    bool any = false;
    for (uint32_t n = 0; n < p->instr_count && !any; n++) {
        any = p->instrs[n].op == HR_OP_OPAQUE;
    }
    m->at_peak.opaque_bytes = any ? 0 : HR_NONE;
    uint8_t *later = any ? hr_calloc(2 * (size_t)p->tensor_count, sizeof *later) : NULL;
    uint8_t *earlier = later == NULL ? NULL : later + p->tensor_count;
    if (any && later == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the table of %u tensors", p->tensor_count);
    }
    for (uint32_t n = 0; any && until != HR_NO_ID && n < p->instr_count; n++) {
        if (n > until || p->instrs[n].phase == HR_PHASE_BACKWARD) {
            note_uses(p, &p->instrs[n], n > until ? later : earlier);
        }
    }
    for (uint32_t k = 0; any && k < p->tensor_count; k++) {
        const uint8_t of = later[k] != FOR_NOBODY ? later[k] : earlier[k]; // a tape keeps what was read
        m->at_peak.opaque_bytes += live[k] && of == FOR_OPAQUE ? p->tensors[k].bytes : 0;
    }
    hr_free(later);
    return HR_OK;
}

// The tensors alive once instruction `until` has been executed (HR_NO_ID: only the persistent ones).
static hr_status fill_live_tensors(const program *p, uint32_t until, hr_report_memory *m, hr_err *err)
{
    bool *live = hr_calloc(p->tensor_count, sizeof *live);
    m->at_peak.tensors = hr_calloc(p->tensor_count + 1u, sizeof *m->at_peak.tensors);
    if (live == NULL || m->at_peak.tensors == NULL) {
        hr_free(live);
        return HR_FAIL(err, NOMEM, "no host memory for the table of %u tensors", p->tensor_count);
    }
    for (uint32_t n = 0; until != HR_NO_ID && n <= until && n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if (i->op == HR_OP_ALLOC) {
            live[i->out[0]] = true;
        } else if (i->op == HR_OP_FREE) {
            live[i->in[0]] = false;
        }
    }
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        if (live[k] || (p->tensors[k].persistent && !tensor_on_host(&p->tensors[k]))) {
            describe_tensor(&p->tensors[k], &m->at_peak.tensors[m->at_peak.tensor_count++]);
        }
    }
    add_retained(m);
    qsort(m->at_peak.tensors, m->at_peak.tensor_count, sizeof *m->at_peak.tensors, by_bytes);
    const hr_status status = fill_opaque(p, live, until, m, err);
    hr_free(live);
    return status;
}

// The peak is reached at an `alloc`; people want to know for whom: the computation that follows it.
static void name_peak(const program *p, uint32_t at, hr_report_memory *m)
{
    m->at_peak.instruction = at;
    m->at_peak.phase = HR_PHASE_BUILD;
    (void)text_copy(m->at_peak.name, sizeof m->at_peak.name, "build");
    if (at == HR_NO_ID) {
        return;
    }
    uint32_t n = at;
    while (n + 1 < p->instr_count && (p->instrs[n].op == HR_OP_ALLOC || p->instrs[n].op == HR_OP_FREE)) {
        n++;
    }
    m->at_peak.phase = (hr_phase)p->instrs[n].phase;
    (void)program_instr_name(p, &p->instrs[n], m->at_peak.name, sizeof m->at_peak.name);
}

static hr_status fill_memory(const hr_engine *e, hr_report *r, hr_err *err)
{
    const program *p = e->build->programs[BUILD_TRAIN];
    const ledger *l = executor_ledger(e->build->x);
    hr_report_memory *m = &r->memory;
    m->limit_bytes = hr_limit_is_none(e->build->limit_bytes) ? HR_NONE : e->build->limit_bytes;
    m->peak_pool_bytes = // of a build that has made no step yet: its own
        l->peak.pool_bytes > e->peak_pool_bytes ? l->peak.pool_bytes : e->peak_pool_bytes;
    m->peak_in_use_bytes = l->peak.in_use_bytes;
    m->peak_requested_bytes = l->peak_requested_bytes;
    m->waste_bytes = l->peak.in_use_bytes - l->peak.requested_bytes;
    m->saved_for_backward_bytes = p->saved_for_backward_bytes;
    m->library_saved_bytes = p->library_saved_bytes;
    m->static_bytes = p->static_bytes;
    m->largest_free_bytes = l->peak.largest_free_bytes;
    m->fragmentation = l->peak.fragmentation;
    m->heap_hash = e->heap_hash;
    memcpy(m->at_peak.by_category, l->peak.by_category, sizeof m->at_peak.by_category);
    name_peak(p, l->peak.instr, m);
    const hr_target *target = &e->build->target;
    const bool theirs = target->ask_pytorch != NULL && hr_knob_is(&e->knobs, HR_KNOB_EXECUTION_AS, "pytorch");
    implementations_workspaces(p, theirs ? NULL : target, l->peak.instr, m); // ours have no say in theirs
    if (e->build->target.very_slow) {
        planner_keep_answers(); // implementations that need less were asked for just now
    }
    return fill_live_tensors(p, l->peak.instr, m, err);
}

static void add_host_stage(hr_report *r, const char *name, uint64_t bytes)
{
    const size_t k = r->host.stage_count++;
    (void)text_copy(r->host.stages[k].name, sizeof r->host.stages[k].name, name);
    r->host.stages[k].peak_bytes = bytes;
    r->host.stages[k].busy_seconds = r->host.stages[k].wait_seconds = (double)NAN;
    (void)hr_add_bytes(r->host.peak_bytes, bytes, &r->host.peak_bytes);
}

static void add_host_stages(const host_outlook *outlook, hr_report *r)
{
    if (outlook->offloaded_bytes > 0) {
        add_host_stage(r, "offload", outlook->offloaded_bytes);
    }
    for (uint32_t k = 0; k < outlook->pipeline.count; k++) {
        add_host_stage(r, outlook->pipeline.stages[k].name, outlook->pipeline.stages[k].bytes);
    }
    (void)text_copy(r->host.unknown, sizeof r->host.unknown, outlook->why);
}

// A run that has no pipeline yet, or never opens one, says what is planned; what was refused, what it would have been.
static void fill_planned_host(const hr_engine *e, hr_report *r)
{
    host_outlook outlook = e->refused_host;
    if (!e->oom.of_host && e->build == NULL) {
        return;
    }
    if (!e->oom.of_host) {
        wire_foresee(e->build, model_reported(e), &e->knobs, &outlook);
        r->host.input_seconds = outlook.input.input_seconds;
        r->host.stall = time_plan_stall(&outlook.input, r->step.seconds);
    }
    add_host_stages(&outlook, r);
}

// After fill_step, whose seconds it asks for.
static void fill_host(const hr_engine *e, hr_report *r)
{
    if (e->data == NULL || e->oom.of_host) {
        fill_planned_host(e, r);
        return;
    }
    const uint64_t offloaded = e->build == NULL ? 0 : host_offloaded_bytes(e->build->programs[BUILD_TRAIN]);
    if (offloaded > 0) {
        add_host_stage(r, "offload", offloaded);
    }
    pipeline_stage_info info[PIPELINE_MAX_STAGES];
    const uint32_t stages = pipeline_stages(e->data, info);
    for (uint32_t k = 0; k < stages; k++) {
        add_host_stage(r, info[k].name, info[k].peak_host_bytes);
        hr_report_stage *stage = &r->host.stages[r->host.stage_count - 1];
        stage->busy_seconds = info[k].items > 0 ? (double)info[k].busy_ns * 1e-9 : (double)NAN;
        stage->wait_seconds = info[k].items > 0 ? (double)info[k].wait_ns * 1e-9 : (double)NAN;
    }
    r->host.measured = true;
    const char *why;
    r->host.bad_samples = pipeline_bad_samples(e->data, &why);
    const char *refused = pipeline_pinning_refused(e->data);
    (void)text_copy(r->host.refused, sizeof r->host.refused, refused == NULL ? "" : refused);
    const bool resident = e->build != NULL && e->build->resident;
    (void)snprintf(r->train.data, sizeof r->train.data, "%s%.50s", resident ? "one batch of " : "",
                   pipeline_get_info(e->data)->label);
}

// Hash and zeros of the weights are computed once per step they are asked for.
static hr_status fill_weights_hash(hr_engine *e, hr_report *r, hr_err *err)
{
    if (!engine_has_weights(e)) {
        return HR_OK;
    }
    if (e->sha_steps != e->steps) {
        store taken = {0};
        hr_status status = store_take(&taken, e->build, err);
        if (status == HR_OK) {
            store_sha256(&taken, e->weights_sha256);
            e->sparsity = store_sparsity(&taken);
            e->sha_steps = e->steps;
        }
        store_deinit(&taken);
        HR_TRY(status);
    }
    memcpy(r->train.weights_sha256, e->weights_sha256, sizeof r->train.weights_sha256);
    r->train.sparsity = e->sparsity;
    r->train.first_masks = prune_first_update(&e->knobs);
    return HR_OK;
}

static void fill_train(const hr_engine *e, hr_report *r)
{
    r->train.steps = e->steps;
    r->train.updates = e->updates;
    r->train.skipped_steps = e->loss_scale > 0 ? e->skipped : HR_NONE;
    r->train.loss_scale = e->loss_scale > 0 ? (double)e->loss_scale : (double)NAN;
    r->train.examples_per_second =
        e->busy_ns > 0 ? (double)e->samples / ((double)e->busy_ns * 1e-9) : (double)NAN;
    r->train.loss_first = e->loss_first;
    r->train.loss_last = e->loss;
    r->train.loss_student = e->losses.student;
    r->train.loss_distill = e->losses.distill;
    r->train.eval_accuracy = e->eval.accuracy;
}

hr_status hr_engine_report(hr_engine *e, hr_report *report, hr_err *err)
{
    hr_report r = {.evaluation.peak_in_use_bytes = HR_NONE,
                   .answers.peak_in_use_bytes = HR_NONE,
                   .driver = {HR_NONE, HR_NONE, HR_NONE},
                   .plan = {.seconds_median = (double)NAN, .seconds_max = (double)NAN},
                   .host = {.input_seconds = (double)NAN, .stall = (double)NAN},
                   .train = {.sparsity = (double)NAN},
                   .step = {.seconds = (double)NAN, .seconds_low = (double)NAN, .seconds_high = (double)NAN},
                   .oom = e->oom};
    r.memory.limit_bytes = // also where nothing could be built under it
        e->oom.of_host         ? e->refused_limit_bytes
        : e->answering != NULL ? e->answers_limit_bytes
                               : e->oom.limit_bytes;
    if (host_answers(model_reported(e)).rank > 0) {
        r.answers.peak_in_use_bytes = e->answers_peak_bytes;
    }
    (void)text_copy(r.preset, sizeof r.preset, e->preset_name);
    fill_device(e, &r);
    fill_driver(e, &r);
    fill_train(e, &r);
    hr_status status = fill_deploy(e, &r, err);
    status = status == HR_OK ? fill_model(e, &r, err) : status;
    if (status == HR_OK && e->build != NULL) {
        r.evaluation.peak_in_use_bytes = e->eval.ever ? e->eval.peak_in_use_bytes : HR_NONE;
        status = fill_step(e, &r, err);
        status = status == HR_OK ? fill_memory(e, &r, err) : status;
        if (status == HR_OK && e->state != HR_ENGINE_RUNNING) {
            status = fill_weights_hash(e, &r, err);
        }
    }
    if (status != HR_OK) {
        hr_report_deinit(&r);
        return status;
    }
    fill_host(e, &r);
    *report = r;
    return HR_OK;
}

// The smallest limit that was tried and holds the full batches; 0: none was found.
static uint64_t limit_that_would_do(const hr_engine *e, const build *b, uint64_t failed_bytes)
{
    const program *full[BUILD_PROGRAMS] = {
        [BUILD_TRAIN] = b->programs[BUILD_TRAIN], [BUILD_EVAL] = b->programs[BUILD_EVAL]};
    uint64_t fits_bytes = 0;
    const play_case c = {.device = b->device,
                         .device_context = b->context,
                         .knobs = &e->knobs,
                         .programs = full,
                         .count = BUILD_PROGRAMS,
                         .steps = PLAY_STEPS,
                         .failed_bytes = failed_bytes};
    return play_smallest_limit(&c, &fits_bytes, NULL) == HR_OK ? fits_bytes : 0;
}

// An expandable pool may hold more than its limit.
static uint64_t left_of(uint64_t limit_bytes, uint64_t bytes)
{
    return bytes < limit_bytes ? limit_bytes - bytes : 0;
}

// Of the batches that are held ahead; the one that is used is none of them.
static uint64_t ahead_bytes_of(const program *p)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        const tensor *t = &p->tensors[k];
        const bool ahead = t->category == HR_CATEGORY_INPUT && strstr(t->name, ":ahead") != NULL;
        bytes += ahead && !tensor_on_host(t) ? t->bytes : 0;
    }
    return bytes;
}

// A step that is laid out in one block needs that block; of another the smallest limit has to be found.
static step_needs needs_of(const hr_engine *e, const build *b, const program *p, const executor_oom *facts)
{
    const uint64_t limit_bytes = facts->stats.limit_bytes;
    step_needs needs = {.asked_bytes = program_peak_bytes(p),
                        .waste_bytes = facts->stats.in_use_bytes - facts->stats.requested_bytes};
    needs.ahead_bytes = ahead_bytes_of(p);
    needs.ahead_key = hr_knob_rows(NULL)[HR_KNOB_PIPELINE_DEVICE_PREFETCH].key;
    if (needs.asked_bytes > limit_bytes) {
        needs.limit_bytes = facts->block ? facts->requested_bytes : limit_that_would_do(e, b, limit_bytes);
        const own_limit own = own_limit_of(&e->knobs, needs.limit_bytes);
        needs.limit_key = own.key;
        needs.without_bytes = own.without_bytes;
    }
    return needs;
}

_Static_assert((int)HR_HOLES_MAX == (int)HEAP_ROOM_HOLES, "a report tells of as many holes as are found");

static void describe_oom(hr_engine *e, const build *b, const program *p, const executor_oom *facts,
                         bool in_a_step)
{
    hr_report_oom *o = &e->oom;
    *o = (hr_report_oom){.instruction = facts->instr,
                         .requested_bytes = facts->requested_bytes,
                         .free_bytes = left_of(facts->stats.limit_bytes, facts->stats.in_use_bytes),
                         .largest_free_bytes = facts->stats.largest_free_bytes,
                         .in_use_bytes = facts->stats.in_use_bytes,
                         .pool_bytes = facts->stats.pool_bytes,
                         .limit_bytes = facts->stats.limit_bytes};
    uint64_t ungrown = left_of(facts->stats.limit_bytes, facts->stats.pool_bytes);
    o->largest_free_bytes = ungrown > o->largest_free_bytes ? ungrown : o->largest_free_bytes;
    memcpy(o->by_category, facts->by_category, sizeof o->by_category);
    (void)text_copy(o->tensor, sizeof o->tensor,
                    facts->block ? "the whole step" : p->tensors[facts->tensor].name);
    (void)text_copy(o->instruction_name, sizeof o->instruction_name, "build");
    if (facts->instr != HR_NO_ID) {
        (void)program_instr_name(p, &p->instrs[facts->instr], o->instruction_name,
                                 sizeof o->instruction_name);
    }
    o->hole_count = facts->room.hole_count;
    memcpy(o->hole_bytes, facts->room.holes, sizeof o->hole_bytes);
    const step_needs needs = needs_of(e, b, p, facts);
    device_outside card;
    if (in_a_step && needs.asked_bytes <= o->limit_bytes && o->by_category[HR_CATEGORY_RETAINED] == 0 &&
        look_outside(e, &card)) {
        diagnose_outside(card.context_bytes, card.others_bytes, o);
        return;
    }
    if (facts->block) {
        diagnose_block(&needs, o);
        return;
    }
    bool named = facts->in_the_way != HR_NO_ID && facts->in_the_way < p->tensor_count;
    diagnose_oom(&needs, &facts->room, named ? p->tensors[facts->in_the_way].name : NULL, o);
    diagnose_lines(&(oom_evidence){0}, &facts->room, o);
    diagnose_categories(o);
}

hr_status engine_oom(hr_engine *e, const build *b, const program *p, const executor_oom *facts,
                     bool in_a_step, hr_err *err)
{
    describe_oom(e, b, p, facts, in_a_step);
    failure_heap_describe(e, p, facts);
    failure_heap_show(e, p, in_a_step, &e->oom);
    engine_find_remedy(e, b, &e->oom);
    (void)HR_FAIL(err, OOM, "%s", e->oom.sentence);
    engine_say_remedies(&e->oom, err);
    return HR_OOM;
}

// Compiled for the purpose: what does not fit can be read too.
static hr_status compile_listed(const hr_engine *e, const hr_knobs *knobs, build **out, hr_err *err)
{
    build_request request = {.knobs = knobs, .plan_only = true};
    HR_TRY(model_shelf_take(e->models, knobs, &request.model, err));
    const hr_status status = build_prepare(&request, out, err);
    model_shelf_give_back(e->models, request.model);
    return status;
}

hr_status hr_engine_listing(hr_engine *e, FILE *out, hr_err *err)
{
    build *b = NULL;
    if (e->build != NULL && e->build->arithmetic && e->build->x != NULL) { // what runs, not what was to
        program_print(e->build->programs[BUILD_TRAIN], out);
        return HR_OK;
    }
    HR_TRY(compile_listed(e, &e->knobs, &b, err));
    program_print(b->programs[BUILD_TRAIN], out);
    build_destroy(b);
    return HR_OK;
}

hr_status hr_engine_listing_diff(hr_engine *e, const char *pair, FILE *out, hr_err *err)
{
    build *before = NULL;
    build *after = NULL;
    hr_knobs changed = e->knobs;
    HR_TRY(hr_knobs_set_pair(&changed, pair, err));
    HR_TRY(hr_knobs_validate(&changed, err));
    hr_status status = compile_listed(e, &e->knobs, &before, err);
    if (status == HR_OK) {
        status = compile_listed(e, &changed, &after, err);
    }
    if (status == HR_OK) {
        status = program_print_diff(before->programs[BUILD_TRAIN], after->programs[BUILD_TRAIN], out, err);
    }
    build_destroy(before);
    build_destroy(after);
    return status;
}
