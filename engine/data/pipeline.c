// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/host_mem.h"
#include "base/text.h"
#include "data/cache.h"
#include "data/keep.h"
#include "data/stages.h"
#include "data/tuner.h"
#include "knobs/stages.h"

struct pipeline {
    data_source *source;
    data_stage *train; // the last stage of the chain
    data_stage *eval;
    batch_form form;
    data_keep keep;          // what is kept of samples on their way
    const data_keep *lender; // of what stays while the chain is made anew; NULL: nobody
    tuner tuner;             // of the chain
    pipeline_wire wire;
    data_bad *bad;          // of each set; NULL: what cannot be read is an error; owned
    uint64_t replaced;      // samples of what the caller has taken
    hr_err *refusal;        // why pinned memory was not to be had; owned
    data_position position; // of what the caller has taken
    uint32_t rounds;        // of the update under way, which it has taken
    bool broken;            // an item failed: the chain is sought back to `position` before the next one
    bool eval_broken;       // the same of the held-out set, which then begins anew
};

static batch_remainder remainder_of(const hr_knobs *knobs)
{
    return stages_fill_batches(knobs)                           ? BATCH_KEEP
           : hr_knob_is(knobs, HR_KNOB_BATCH_REMAINDER, "drop") ? BATCH_DROP
           : hr_knob_is(knobs, HR_KNOB_BATCH_REMAINDER, "pad")  ? BATCH_PAD
                                                                : BATCH_KEEP;
}

// Puts the stage that was opened on *end there; status is that of opening it.
static hr_status chain(data_stage **end, hr_status status, data_stage *const *opened)
{
    *end = status == HR_OK ? *opened : *end;
    return status;
}

static data_bad *bad_of(const pipeline *p, data_set set)
{
    return p->bad != NULL ? &p->bad[set] : NULL;
}

static hr_status chain_interleave(pipeline *p, const hr_knobs *knobs, hr_err *err)
{
    data_stage *stage;
    const interleave_form form = {.cycle = p->keep.plan.interleave,
                                  .block = (uint32_t)hr_knob_int(knobs, HR_KNOB_PIPELINE_INTERLEAVE_BLOCK)};
    return chain(&p->train, stage_interleave_open(p->train, p->source, &form, &stage, err), &stage);
}

static hr_status chain_repeat(pipeline *p, hr_err *err)
{
    data_stage *stage;
    const uint64_t samples = p->source->info.train_samples;
    return chain(&p->train, stage_repeat_open(p->train, samples, &stage, err), &stage);
}

static hr_status chain_shuffle(pipeline *p, const hr_knobs *knobs, hr_err *err)
{
    data_stage *stage;
    const data_keep_plan *plan = &p->keep.plan;
    const shuffle_form form = {.samples = plan->shuffle,
                               .seed = (uint64_t)hr_knob_int(knobs, HR_KNOB_TRAIN_SEED),
                               .same_order = plan->same_order,
                               .repeated = plan->shuffle_repeats ? p->source->info.train_samples : 0,
                               .pool = p->keep.pool};
    HR_TRY(chain(&p->train, stage_shuffle_open(p->train, &form, &stage, err), &stage));
    data_stage_hold(p->train, plan->pool_bytes);
    return HR_OK;
}

// The stages that pass on numbers of samples, as p->keep.plan has them.
static hr_status chain_numbers(pipeline *p, const hr_knobs *knobs, hr_err *err)
{
    data_stage *stage;
    const data_keep_plan *plan = &p->keep.plan;
    HR_TRY(chain(&p->train, stage_source_open(p->source, DATA_TRAIN, &stage, err), &stage));
    HR_TRY(plan->interleave > 1 ? chain_interleave(p, knobs, err) : HR_OK);
    HR_TRY(plan->shuffle_repeats ? chain_repeat(p, err) : HR_OK);
    HR_TRY(plan->shuffle > 1 ? chain_shuffle(p, knobs, err) : HR_OK);
    return plan->batches_repeat && !plan->shuffle_repeats ? chain_repeat(p, err) : HR_OK;
}

data_form pipeline_train_form(const data_form *source, const pipeline_wire *wire)
{
    data_form form = data_form_narrowed(source, wire->train);
    if (wire->answers.rank > 0) {
        form.slot[form.count++] = wire->answers;
    }
    return form;
}

static hr_status open_train_chain(pipeline *p, const hr_knobs *knobs, hr_err *err)
{
    data_stage *stage;
    const data_buffers buffers = {.form = pipeline_train_form(&p->source->form, &p->wire),
                                  .pinned = p->wire.pinned,
                                  .refusal = p->refusal};
    HR_TRY(data_source_check_form(p->source, &buffers.form, err));
    const data_map map = {
        .source = p->source, .to = buffers.form, .answers = p->wire.answered, .bad = bad_of(p, DATA_TRAIN)};
    HR_TRY(data_keep_open(knobs, &map, p->lender, data_threads(knobs, &p->source->form), &p->keep, err));
    HR_TRY(chain_numbers(p, knobs, err));
    p->form.pool = p->keep.pool;
    p->form.threads = p->keep.plan.tuned.threads;
    hr_status status = stage_batch_open(p->train, &p->keep.map, DATA_TRAIN, &p->form, &buffers, &stage, err);
    HR_TRY(chain(&p->train, status, &stage));
    data_stage *batch = p->train;
    const uint32_t prefetch = p->keep.plan.tuned.prefetch;
    if (prefetch > 0) {
        status = stage_prefetch_open(p->train, prefetch, p->form.batch, &buffers, &stage, err);
        HR_TRY(chain(&p->train, status, &stage));
    }
    const uint64_t sample_bytes = data_form_bytes(&buffers.form);
    tuner_begin(&p->tuner, &p->keep.plan.tuned, p->form.batch * sample_bytes, sample_bytes, batch,
                prefetch > 0 ? p->train : NULL);
    return HR_OK;
}

static hr_status open_eval_chain(pipeline *p, hr_err *err)
{
    data_stage *stage;
    hr_status status = stage_source_open(p->source, DATA_EVAL, &stage, err);
    HR_TRY(chain(&p->eval, status, &stage));
    const batch_form form = {
        .batch = p->form.batch, .rounds = 1, .remainder = BATCH_KEEP, .threads = 1, .at_once = true};
    const data_buffers buffers = {.form = data_form_narrowed(&p->source->form, p->wire.eval)};
    const data_map map = {.source = p->source, .to = buffers.form, .bad = bad_of(p, DATA_EVAL)};
    status = stage_batch_open(p->eval, &map, DATA_EVAL, &form, &buffers, &stage, err);
    return chain(&p->eval, status, &stage);
}

// Samples that one update takes.
static uint64_t update_samples(const pipeline *p)
{
    return (uint64_t)p->form.batch * p->form.rounds;
}

static hr_status check_epoch(const pipeline *p, hr_err *err)
{
    const pipeline_info *info = &p->source->info;
    if (p->form.remainder != BATCH_DROP || info->train_samples >= update_samples(p)) {
        return HR_OK;
    }
    if (p->form.rounds > 1) {
        hr_status status =
            HR_FAIL(err, DATA, "%s: needed %" PRIu64 " samples for %u batches of %u, had %" PRIu64,
                    info->label, update_samples(p), p->form.rounds, p->form.batch, info->train_samples);
        hr_err_try(err, "-s batch.remainder=pad, or -s batch.accumulate=1");
        return status;
    }
    hr_status status = HR_FAIL(err, DATA, "%s: needed %u samples for a batch, had %" PRIu64, info->label,
                               p->form.batch, info->train_samples);
    hr_err_try(err, "-s batch.remainder=keep, or -s batch.size=%" PRIu64, info->train_samples);
    return status;
}

static hr_status take_bad(pipeline *p, hr_err *err)
{
    if (!p->source->skips_bad) {
        return HR_OK;
    }
    p->bad = hr_calloc(DATA_SET_COUNT, sizeof *p->bad);
    if (p->bad == NULL) {
        return HR_FAIL(err, NOMEM, "pipeline: needed %zu bytes, had less", DATA_SET_COUNT * sizeof *p->bad);
    }
    for (int set = 0; set < DATA_SET_COUNT; set++) {
        data_bad_init(&p->bad[set]);
    }
    return HR_OK;
}

// The chains over a source that is open.
static hr_status open_chains(pipeline *p, const hr_knobs *knobs, const pipeline_wire *wire, hr_err *err)
{
    p->refusal = hr_calloc(1, sizeof *p->refusal);
    if (p->refusal == NULL) {
        return HR_FAIL(err, NOMEM, "pipeline: needed %zu bytes, had less", sizeof *p->refusal);
    }
    HR_TRY(take_bad(p, err));
    p->wire = *wire;
    p->form = (batch_form){.batch = (uint32_t)hr_knob_int(knobs, HR_KNOB_BATCH_SIZE),
                           .rounds = (uint32_t)hr_knob_int(knobs, HR_KNOB_BATCH_ACCUMULATE),
                           .remainder = remainder_of(knobs),
                           .is_filled = stages_fill_batches(knobs)};
    HR_TRY(check_epoch(p, err));
    HR_TRY(open_train_chain(p, knobs, err));
    return open_eval_chain(p, err);
}

static void close_chains(pipeline *p)
{
    data_stage_close(p->train);
    data_stage_close(p->eval);
    data_keep_close(&p->keep);
    for (int set = 0; p->bad != NULL && set < DATA_SET_COUNT; set++) {
        data_bad_deinit(&p->bad[set]);
    }
    hr_free(p->bad);
    hr_free(p->refusal);
}

static void close_wire(pipeline *p)
{
    if (p->wire.pinned.close != NULL) {
        p->wire.pinned.close(p->wire.pinned.context);
    }
}

static void close_all(pipeline *p)
{
    close_chains(p);
    data_source_close(p->source);
    hr_free(p);
}

static hr_status open_all(pipeline *p, const hr_knobs *knobs, const data_form *model,
                          const pipeline_wire *wire, hr_err *err)
{
    HR_TRY(data_source_open(knobs, model, &p->source, err));
    HR_TRY(p->source->ops->load != NULL ? p->source->ops->load(p->source, data_threads(knobs, model), err)
                                        : HR_OK);
    return open_chains(p, knobs, wire, err);
}

hr_status pipeline_open(const hr_knobs *knobs, const data_form *model, const pipeline_wire *wire,
                        pipeline **out, hr_err *err)
{
    *out = NULL;
    pipeline *p = hr_calloc(1, sizeof *p);
    if (p == NULL) {
        return HR_FAIL(err, NOMEM, "pipeline: needed %zu bytes, had less", sizeof *p);
    }
    hr_status status = open_all(p, knobs, model, wire, err);
    if (status != HR_OK) {
        close_all(p);
        return status;
    }
    *out = p;
    return HR_OK;
}

hr_status pipeline_rechain(pipeline *p, const hr_knobs *knobs, const pipeline_wire *wire, hr_err *err)
{
    pipeline fresh = {.source = p->source, .lender = &p->keep, .replaced = p->replaced};
    hr_status status = open_chains(&fresh, knobs, wire, err);
    if (status != HR_OK) {
        close_chains(&fresh);
        return status;
    }
    data_keep_take_over(&fresh.keep, &p->keep);
    fresh.lender = NULL;
    close_chains(p);
    close_wire(p);
    *p = fresh;
    return HR_OK;
}

void pipeline_close(pipeline *p)
{
    if (p != NULL) {
        const pinned_memory pinned = p->wire.pinned;
        close_all(p);
        if (pinned.close != NULL) {
            pinned.close(pinned.context);
        }
    }
}

bool pipeline_has_wire(const pipeline *p, const pipeline_wire *wire, bool pinned)
{
    return memcmp(p->wire.train, wire->train, sizeof wire->train) == 0 &&
           memcmp(p->wire.eval, wire->eval, sizeof wire->eval) == 0 && p->wire.answered == wire->answered &&
           (p->wire.pinned.take != NULL) == pinned;
}

const char *pipeline_pinning_refused(const pipeline *p)
{
    return p->refusal->status == HR_OK ? NULL : p->refusal->sentence;
}

uint64_t pipeline_bad_samples(const pipeline *p, const char **why)
{
    *why = NULL;
    for (int set = 0; p->bad != NULL && *why == NULL && set < DATA_SET_COUNT; set++) {
        data_bad *bad = &p->bad[set];
        pthread_mutex_lock(&bad->lock);
        *why = bad->first.status != HR_OK ? bad->first.sentence : NULL; // stays as it is
        pthread_mutex_unlock(&bad->lock);
    }
    return p->replaced + p->source->left_out;
}

const pipeline_info *pipeline_get_info(const pipeline *p)
{
    return &p->source->info;
}

// ---- batches --------------------------------------------------------------------------------------------------

static hr_status next_of_chain(pipeline *p, data_item *out, hr_err *err)
{
    if (p->broken) {
        HR_TRY(p->train->ops->seek(p->train, p->position, err));
        p->broken = false;
    }
    hr_status status = p->train->ops->next(p->train, out, err);
    p->broken = status != HR_OK;
    return status;
}

static void advance(pipeline *p, data_item *out)
{
    const uint64_t samples = p->source->info.train_samples;
    out->first_sample = p->position.epoch * samples + p->position.samples;
    p->position.samples += out->count;
    if (p->form.is_filled) {
        p->rounds = (p->rounds + 1) % p->form.rounds;
    } else if (p->position.samples > samples) { // the rest of a padded batch was there before
        p->position.samples = samples;
    }
}

// The chain itself tells of no end where it repeats.
static bool takes_end(pipeline *p)
{
    const uint64_t samples = p->source->info.train_samples;
    const bool ends = p->form.is_filled && p->rounds == 0 && p->position.samples >= samples;
    if (ends) {
        p->position.epoch += p->position.samples / samples;
        p->position.samples %= samples;
    }
    return ends;
}

hr_status pipeline_next(pipeline *p, data_item *out, uint64_t *wait_ns, hr_err *err)
{
    *out = (data_item){.end = takes_end(p)};
    *wait_ns = 0;
    if (out->end) {
        return HR_OK;
    }
    tuner_before(&p->tuner);
    uint64_t began_ns = clock_now_ns();
    hr_status status = next_of_chain(p, out, err);
    *wait_ns = clock_now_ns() - began_ns;
    HR_TRY(status);
    tuner_after(&p->tuner, *wait_ns);
    if (out->end) {
        p->position = (data_position){.epoch = p->position.epoch + 1};
        return HR_OK;
    }
    p->replaced += out->bad;
    advance(p, out);
    return HR_OK;
}

static hr_status begin_eval(pipeline *p, hr_err *err)
{
    HR_TRY(p->eval->ops->seek(p->eval, (data_position){0}, err));
    p->eval_broken = false;
    return HR_OK;
}

hr_status pipeline_next_eval(pipeline *p, uint32_t batch, data_item *out, hr_err *err)
{
    if (p->eval_broken) {
        HR_TRY(begin_eval(p, err));
    }
    stage_batch_resize(p->eval, batch);
    hr_status status = p->eval->ops->next(p->eval, out, err);
    p->eval_broken = status != HR_OK;
    p->replaced += status == HR_OK ? out->bad : 0;
    return status;
}

data_position pipeline_position(const pipeline *p)
{
    return p->position;
}

bool pipeline_fills_batches(const pipeline *p)
{
    return p->form.is_filled;
}

uint64_t pipeline_epoch_updates(const pipeline *p)
{
    const uint64_t samples = p->source->info.train_samples, update = update_samples(p);
    return samples / update + (p->form.remainder != BATCH_DROP && samples % update > 0);
}

bool pipeline_epoch_is_over(const pipeline *p, data_position position)
{
    const uint64_t samples = p->source->info.train_samples;
    const uint64_t left = position.samples < samples ? samples - position.samples : 0;
    return left == 0 || (left < update_samples(p) && p->form.remainder == BATCH_DROP);
}

// A shuffle of what is repeated draws all samples before the position again: of a save that says anything, not for hours.
#define REPLAYED_MOST (UINT64_C(1) << 36)

static hr_status check_position(const pipeline *p, data_position position, hr_err *err)
{
    const uint64_t samples = p->source->info.train_samples;
    if (position.samples > samples && !p->form.is_filled) {
        const hr_status status =
            HR_FAIL(err, DATA, "%s: needed a position of at most %" PRIu64 " samples, had %" PRIu64,
                    p->source->info.label, samples, position.samples);
        hr_err_try(err,
                   "the data that was trained on, and repeat where it stood in pipeline.stages, such as -s "
                   "pipeline.stages=cache,shuffle,repeat,map,batch,prefetch");
        return status;
    }
    if (p->keep.plan.shuffle_repeats &&
        (position.epoch > REPLAYED_MOST / samples || position.samples > REPLAYED_MOST)) {
        const hr_status status =
            HR_FAIL(err, DATA,
                    "%s: needed a position of at most %" PRIu64 " samples behind repeat, had epoch %" PRIu64
                    " and %" PRIu64 " samples",
                    p->source->info.label, REPLAYED_MOST, position.epoch, position.samples);
        hr_err_try(err, "-s pipeline.stages=cache,shuffle,repeat,map,batch,prefetch");
        return status;
    }
    return HR_OK;
}

hr_status pipeline_seek(pipeline *p, data_position position, hr_err *err)
{
    HR_TRY(check_position(p, position, err));
    p->broken = true;
    HR_TRY(p->train->ops->seek(p->train, position, err));
    p->position = position;
    p->rounds = 0;
    p->broken = false;
    tuner_interrupt(&p->tuner);
    return begin_eval(p, err);
}

// ---- what it costs --------------------------------------------------------------------------------------------

static void add_times(const stage_times *times, uint32_t cores, pipeline_stage_info *out)
{
    const stage_spent spent = stage_times_now(times);
    out->busy_ns += spent.busy_ns;
    out->wait_ns += spent.wait_ns;
    out->items = spent.items;
    const uint32_t threads = atomic_load(&times->threads);
    out->threads = threads > out->threads ? threads : out->threads;
    out->cores = cores;
}

static void stage_facts(const data_stage *s, const char *name, uint32_t cores, pipeline_stage_info *out)
{
    *out = (pipeline_stage_info){.host_bytes = atomic_load(&s->held_bytes),
                                 .peak_host_bytes = atomic_load(&s->peak_held_bytes)};
    (void)text_copy(out->name, sizeof out->name, name);
    if (s->in_flight_bytes == 0) { // making has no row of its own
        add_times(&s->making, cores, out);
    }
    add_times(&s->times, cores, out);
    if (s->ops->queue != NULL) {
        s->ops->queue(s, &out->queue_length, &out->queue_capacity);
    }
}

// What is taken when the chain is opened, as a stage of its own.
static void fixed_facts(const char *name, uint64_t bytes, pipeline_stage_info *out)
{
    *out = (pipeline_stage_info){.host_bytes = bytes, .peak_host_bytes = bytes};
    (void)text_copy(out->name, sizeof out->name, name);
}

// Buffers of batches live as long as their chain.
static void pinned_facts(const pipeline *p, pipeline_stage_info *out)
{
    uint64_t bytes = 0;
    for (const data_stage *s = p->train; s != NULL; s = s->before) {
        bytes += atomic_load(&s->pinned_bytes);
    }
    fixed_facts("pinned", bytes, out);
}

uint32_t pipeline_stages(const pipeline *p, pipeline_stage_info *out)
{
    uint32_t count = 0;
    for (const data_stage *s = p->train; s != NULL; s = s->before) {
        count += s->in_flight_bytes > 0 ? 2 : 1;
    }
    count += (p->keep.plan.slices_bytes > 0 ? 1u : 0u) + (p->keep.plan.cache_bytes > 0 ? 1u : 0u) +
             (p->keep.plan.copies > 0 ? 1u : 0u);
    uint32_t place = count;
    for (const data_stage *s = p->train; s != NULL; s = s->before) {
        const data_stage *source = p->keep.plan.interleave > 1 ? s->before : s;
        const bool is_first = source != NULL && source->before == NULL; // numbers come from here
        if (is_first && p->keep.plan.copies > 0) {
            fixed_facts("copies", p->keep.plan.copies_bytes, &out[--place]);
        }
        if (is_first && p->keep.plan.cache_bytes > 0) {
            fixed_facts("cache", p->keep.plan.cache_bytes, &out[--place]);
        }
        if (is_first && p->keep.plan.slices_bytes > 0) {
            fixed_facts("slices", p->keep.plan.slices_bytes, &out[--place]);
        }
        stage_facts(s, s->ops->name, p->tuner.limits.cores, &out[--place]);
        if (s->in_flight_bytes > 0) {
            fixed_facts("map", s->in_flight_bytes, &out[--place]);
            add_times(&s->making, p->tuner.limits.cores, &out[place]);
        }
    }
    if (p->wire.pinned.take != NULL) {
        pinned_facts(p, &out[count++]);
    }
    stage_facts(p->eval, "evaluate", p->tuner.limits.cores, &out[count]);
    out[count].host_bytes += p->eval->in_flight_bytes;
    out[count++].peak_host_bytes += p->eval->in_flight_bytes;
    if (p->wire.answers.rank > 0) {
        fixed_facts("answers", p->source->info.train_samples * data_slot_bytes(&p->wire.answers),
                    &out[count++]);
    }
    return count;
}

uint32_t pipeline_decisions(pipeline *p, hr_event_tune out[PIPELINE_MAX_DECISIONS])
{
    return tuner_take(&p->tuner, out);
}
