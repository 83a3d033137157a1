// SPDX-License-Identifier: Apache-2.0
// One training step, one evaluation batch.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "base/clock.h"
#include "base/text.h"
#include "train/engine_impl.h"
#include "train/schedule.h"

void engine_set_bus_step(hr_engine *e)
{
    e->bus.step = (uint32_t)e->steps;
    if (e->bus.position != NULL) {
        atomic_store_explicit(&e->bus.position->step, e->steps, memory_order_relaxed);
    }
}

static void emit_step(hr_engine *e, hr_event_kind kind, const hr_event_step *body)
{
    hr_event event = {.kind = (uint8_t)kind, .u.step = *body};
    engine_set_bus_step(e);
    trace_emit(&e->bus, &event);
}

static void emit_stages(hr_engine *e)
{
    pipeline_stage_info info[PIPELINE_MAX_STAGES];
    uint32_t count = pipeline_stages(e->data, info);
    for (uint32_t k = 0; k < count; k++) {
        hr_event event = {.kind = HR_EVENT_PIPELINE};
        event.u.stage.host_bytes = info[k].host_bytes;
        event.u.stage.queue_length = info[k].queue_length;
        event.u.stage.queue_capacity = info[k].queue_capacity;
        event.u.stage.busy_ns = info[k].busy_ns;
        event.u.stage.wait_ns = info[k].wait_ns;
        event.u.stage.items = info[k].items;
        event.u.stage.threads = info[k].threads;
        event.u.stage.cores = info[k].cores;
        (void)text_copy(event.u.stage.name, sizeof event.u.stage.name, info[k].name);
        trace_emit(&e->bus, &event);
    }
}

static void emit_decisions(hr_engine *e)
{
    hr_event_tune decided[PIPELINE_MAX_DECISIONS];
    const uint32_t count = pipeline_decisions(e->data, decided);
    for (uint32_t k = 0; k < count; k++) {
        hr_event event = {.kind = HR_EVENT_TUNE, .u.tune = decided[k]};
        trace_emit(&e->bus, &event);
    }
}

void engine_begin_evaluation(hr_engine *e)
{
    e->eval.running = true;
    e->eval.loss_sum = 0;
    e->eval.correct = e->eval.samples = 0;
    e->eval.before = *executor_ledger(e->build->x);
}

bool engine_begin_wanted_evaluation(hr_engine *e)
{
    const bool resident = hr_knob_is(&e->knobs, HR_KNOB_PIPELINE_RESIDENT, "on");
    if (e->build->arithmetic && !resident && pipeline_get_info(e->data)->eval_samples > 0) {
        engine_begin_evaluation(e);
        return true;
    }
    trace_note(&e->bus, HR_EVENT_LOG, 0, "no samples are held out: nothing to evaluate");
    return false;
}

static void end_epoch(hr_engine *e)
{
    trace_note(&e->bus, HR_EVENT_EPOCH, e->position.epoch, "");
    if (pipeline_get_info(e->data)->eval_samples > 0) {
        engine_begin_evaluation(e);
    }
}

static void note_duration(hr_engine *e, uint64_t duration_ns)
{
    e->durations_ns[e->duration_count++ % ENGINE_DURATIONS] = duration_ns;
    e->busy_ns += duration_ns;
}

// With a teacher, what the loss is made of.
static void note_parts(hr_engine *e, const step_io *io)
{
    const double alpha = hr_knob_real(&e->knobs, HR_KNOB_COMPRESS_DISTILL_ALPHA);
    e->losses = (hr_event_losses){.student = (double)NAN, .distill = (double)NAN};
    if (!hr_knob_is(&e->knobs, HR_KNOB_COMPRESS_DISTILL, "none")) {
        e->losses.distill = io->distance / (1 - alpha);
        e->losses.student = alpha > 0 ? io->by_labels / alpha : (double)NAN;
        hr_event event = {.kind = HR_EVENT_LOSSES, .u.losses = e->losses};
        trace_emit(&e->bus, &event);
    }
}

static void note_loss(hr_engine *e, const step_io *io)
{
    e->loss = io->loss;
    if (isnan(e->loss_first)) {
        e->loss_first = io->loss;
    }
    note_parts(e, io);
}

// Without a tape a step makes no update.
static bool makes_updates(const hr_engine *e)
{
    return !hr_knob_is(&e->knobs, HR_KNOB_EXECUTION_TAPE, "none");
}

// Once: what stays of each step will fill the limit soon.
static void warn_near_full(hr_engine *e, uint64_t limit_bytes)
{
    near_full_warning w;
    char line[HR_EVENT_TEXT_MAX], rise[HR_BYTES_TEXT_MAX];
    const uint64_t limit = hr_limit_is_none(limit_bytes) ? HR_NONE : limit_bytes;
    if (near_full_step(&e->near, executor_step_floor_bytes(e->build->x),
                       executor_step_peak_bytes(e->build->x), limit, &w)) {
        (void)snprintf(line, sizeof line, "leak, +%s a step: at this rate full in %" PRIu64 " step%s",
                       hr_bytes_human(w.rise_bytes, rise), w.steps + 1, w.steps == 0 ? "" : "s");
        trace_note(&e->bus, HR_EVENT_LOG, 1, line);
    }
}

// Everything that counts a finished step, and its event.
static void finish_step(hr_engine *e, const step_io *io, uint64_t samples, uint64_t duration_ns,
                        uint64_t wait_ns)
{
    heap_counters stats = allocator_get_stats(e->build->heap);
    e->steps++;
    e->updates += makes_updates(e) && !io->nonfinite;
    e->samples += samples;
    e->peak_pool_bytes =
        stats.peak_pool_bytes > e->peak_pool_bytes ? stats.peak_pool_bytes : e->peak_pool_bytes;
    note_duration(e, duration_ns);
    emit_step(e, HR_EVENT_STEP,
              &(hr_event_step){.loss = e->build->arithmetic ? e->loss : (double)NAN,
                               .accuracy = (double)NAN,
                               .duration_ns = duration_ns,
                               .wait_ns = wait_ns,
                               .samples = samples,
                               .peak_in_use_bytes = executor_step_peak_bytes(e->build->x),
                               .floor_in_use_bytes = executor_step_floor_bytes(e->build->x)});
    warn_near_full(e, stats.limit_bytes);
}

// A plan repeats itself once the heap does: the remaining steps would change nothing.
static void skip_repetition(hr_engine *e)
{
    uint64_t hash = e->build->heap->ops->hash(e->build->heap);
    if (e->plan_only && e->duration_count > 1 && hash == e->heap_hash && e->target_steps != UINT64_MAX) {
        e->updates += makes_updates(e) ? e->target_steps - e->steps : 0;
        e->steps = e->target_steps;
    }
    e->heap_hash = hash;
}

// The batch of a step that broke off before it changed anything is the next one's again; contents of device memory are
// not to be trusted after one that did, or whose device is gone.
static void note_broken(hr_engine *e, hr_status status, data_position before)
{
    if (executor_step_lasts(e->build->x) || status == HR_DEVICE_LOST) {
        e->lost_step = true;
    } else {
        e->position = before;
        e->needs_seek = true;
    }
}

// A step that runs out of memory although the dry run fitted (a leak) is described like one that never fitted.
static hr_status run_step(hr_engine *e, build_program which, step_io *io, data_position before, hr_err *err)
{
    hr_status status = executor_step(e->build->x, e->build->slots[which], io, err);
    if (status != HR_OK && e->build->arithmetic) {
        note_broken(e, status, before);
    }
    return status == HR_OOM
               ? engine_oom(e, e->build, e->build->programs[which], executor_last_oom(e->build->x), true, err)
               : status;
}

static hr_status play_step(hr_engine *e, hr_err *err)
{
    step_io io = {.goes_on = e->goes_on,
                  .goes_on_context = e->goes_on_context,
                  .before_update = e->before_update,
                  .before_update_context = e->before_update_context};
    HR_TRY(run_step(e, BUILD_TRAIN, &io, e->position, err));
    const program *p = e->build->programs[BUILD_TRAIN];
    finish_step(e, &io, (uint64_t)p->batch * p->rounds, executor_simulated_ns(e->build->x), 0);
    skip_repetition(e);
    return HR_OK;
}

static hr_status save_when_due(hr_engine *e, hr_err *err)
{
    uint64_t every = (uint64_t)hr_knob_int(&e->knobs, HR_KNOB_TRAIN_SAVE_EVERY);
    const char *path = hr_knob_text(&e->knobs, HR_KNOB_TRAIN_SAVE);
    return every > 0 && path[0] != '\0' && e->steps % every == 0 ? engine_save(e, path, err) : HR_OK;
}

// The program among [first, last] for a batch of `count` samples.
static hr_status program_for(const hr_engine *e, uint32_t count, build_program first, build_program last,
                             build_program *which, hr_err *err)
{
    for (build_program k = first; k <= last; k++) {
        if (e->build->programs[k] != NULL && e->build->programs[k]->batch == count) {
            *which = k;
            return HR_OK;
        }
    }
    return HR_FAIL(err, STATE, "no program for a batch of %u samples was compiled", count);
}

// Where the rounds of an accumulated step get their batches.
typedef struct round_feed {
    hr_engine *e;
    uint64_t samples; // of the rounds so far
    uint64_t wait_ns;
} round_feed;

static hr_status next_round(void *context, step_io *io, hr_err *err)
{
    round_feed *rounds = context;
    fed_batch batch;
    HR_TRY(engine_next_batch(rounds->e, &batch, io, &rounds->wait_ns, err));
    if (batch.end) {
        return HR_FAIL(err, STATE, "the epoch ended inside an update, after %llu samples of it",
                       (unsigned long long)rounds->samples);
    }
    rounds->samples += batch.samples;
    return HR_OK;
}

hr_status engine_train_step(hr_engine *e, hr_err *err)
{
    if (!e->build->arithmetic) {
        return play_step(e, err);
    }
    uint64_t begin_ns = clock_now_ns();
    const data_position before = e->position;
    fed_batch batch;
    round_feed rounds = {.e = e};
    build_program which = BUILD_TRAIN;
    step_io io = {.seed = (uint64_t)hr_knob_int(&e->knobs, HR_KNOB_TRAIN_SEED),
                  .learning_rate = schedule_learning_rate(&e->knobs, e->updates + 1),
                  .update = e->updates + 1,
                  .pruned_from = e->pruned_from,
                  .next_round = next_round,
                  .context = &rounds,
                  .goes_on = e->goes_on,
                  .goes_on_context = e->goes_on_context,
                  .before_update = e->before_update,
                  .before_update_context = e->before_update_context};
    if (e->needs_seek) {
        HR_TRY(engine_seek_data(e, err));
    }
    HR_TRY(engine_next_batch(e, &batch, &io, &rounds.wait_ns, err));
    if (batch.end) {
        end_epoch(e);
        return HR_OK;
    }
    HR_TRY(program_for(e, batch.samples, BUILD_TRAIN, BUILD_TRAIN_PARTIAL, &which, err));
    io.loss_weight = 1.0 / e->build->programs[which]->rounds;
    rounds.samples = batch.samples;
    HR_TRY(run_step(e, which, &io, before, err));
    note_loss(e, &io);
    finish_step(e, &io, rounds.samples, clock_now_ns() - begin_ns, rounds.wait_ns);
    engine_tell_scaling(e, &io);
    emit_stages(e);
    emit_decisions(e);
    e->heap_hash = e->build->heap->ops->hash(e->build->heap);
    return save_when_due(e, err);
}

// The share of the labels that are met: a sample has one, or one for each of its places. NaN where the loss judges
// values, which are not right or wrong.
static double accuracy_of(const hr_model *m, const evaluation *v)
{
    uint64_t labels = 0; // of a sample
    (void)shape_elements(&m->values[m->losses[0].labels].shape, &labels);
    const bool classifies = m->losses[0].classifies && v->samples > 0;
    return classifies ? (double)v->correct / ((double)v->samples * (double)labels) : (double)NAN;
}

static void end_evaluation(hr_engine *e)
{
    evaluation *v = &e->eval;
    v->running = false;
    v->ever = true;
    v->loss = v->samples > 0 ? v->loss_sum / (double)v->samples : (double)NAN;
    v->accuracy = accuracy_of(e->model, v);
    executor_restore_peak(e->build->x, &v->before);
    allocator_clear_peaks(e->build->heap);
    emit_step(
        e, HR_EVENT_EVAL,
        &(hr_event_step){
            .loss = v->loss, .accuracy = v->accuracy, .samples = v->samples, .count = (uint32_t)v->count++});
}

static void note_evaluating(hr_engine *e, bool evaluates)
{
    if (e->bus.position != NULL) {
        atomic_store_explicit(&e->bus.position->evaluates, evaluates, memory_order_relaxed);
    }
}

hr_status engine_evaluate_batch(hr_engine *e, hr_err *err)
{
    data_item item;
    build_program which = BUILD_EVAL;
    uint32_t batch = (uint32_t)hr_knob_int(&e->knobs, HR_KNOB_BATCH_SIZE);
    HR_TRY(pipeline_next_eval(e->data, batch, &item, err));
    if (item.end) {
        end_evaluation(e);
        return HR_OK;
    }
    HR_TRY(program_for(e, item.count, BUILD_EVAL, BUILD_EVAL_PARTIAL, &which, err));
    step_io io = {0};
    for (uint32_t k = 0; k < STEP_MAX_SLOTS; k++) {
        io.slot[k] = item.room.slot[k];
    }
    note_evaluating(e, true);
    hr_status status = executor_step(e->build->x, e->build->slots[which], &io, err);
    note_evaluating(e, false);
    HR_TRY(status);
    uint64_t peak = executor_step_peak_bytes(e->build->x);
    e->eval.loss_sum += io.loss * item.count;
    e->eval.correct += (uint64_t)io.correct;
    e->eval.samples += item.count;
    e->eval.peak_in_use_bytes = peak > e->eval.peak_in_use_bytes ? peak : e->eval.peak_in_use_bytes;
    return HR_OK;
}
