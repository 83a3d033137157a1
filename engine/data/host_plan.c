// SPDX-License-Identifier: Apache-2.0
#include "data/host_plan.h"

#include "headroom/units.h"

#include "data/keep.h"
#include "data/stages.h"

// ---- facts ----------------------------------------------------------------------------------------------------

data_facts data_facts_of(const data_source *open)
{
    data_facts facts = {.source = *open};
    for (int set = 0; set < DATA_SET_COUNT; set++) {
        facts.raw_bytes[set] = data_source_set_bytes(open, (data_set)set);
    }
    return facts;
}

hr_status data_facts_read(const hr_knobs *knobs, const data_form *model, data_facts *out, hr_err *err)
{
    data_source *source;
    HR_TRY(data_source_open(knobs, model, &source, err));
    *out = data_facts_of(source);
    data_source_close(source);
    return HR_OK;
}

hr_status data_facts_make_array(const hr_knobs *knobs, data_facts *facts, hr_err *err)
{
    const data_source files = facts->source;
    if (data_source_array_bytes(knobs) > 0) {
        HR_TRY(source_array_describe(&files, data_source_array_bytes(knobs), data_source_is_stacked(knobs),
                                     &facts->source, err));
        *facts = data_facts_of(&facts->source);
    }
    return HR_OK;
}

// ---- amounts --------------------------------------------------------------------------------------------------

// Both stay UINT64_MAX once they were.
static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product = 0;
    (void)hr_mul_bytes(a, b, &product);
    return product;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t sum = 0;
    (void)hr_add_bytes(a, b, &sum);
    return sum;
}

static uint64_t count_of(const hr_knobs *knobs, hr_knob_id id)
{
    return (uint64_t)hr_knob_int(knobs, id);
}

// ---- stages ---------------------------------------------------------------------------------------------------

typedef struct host_case {
    const hr_knobs *knobs;
    const data_source *source;
    data_form train, eval; // of batches
    data_keep_plan keep;
    data_slot answers; // of a teacher, of each training sample; rank 0: none
    bool pinned;
} host_case;

static uint64_t batch_of(const host_case *c)
{
    return count_of(c->knobs, HR_KNOB_BATCH_SIZE);
}

static uint64_t eval_scratch_bytes(const host_case *c)
{
    const data_map map = {.source = c->source, .to = c->eval};
    return data_map_scratch_bytes(&map);
}

static uint64_t train_scratch_bytes(const host_case *c)
{
    const data_map map = {
        .source = c->source, .to = c->train, .has_made = c->keep.cache_made, .augment = c->keep.augment};
    return data_map_scratch_bytes(&map);
}

// The batches of training that exist at once: those made ready, and the step's.
static uint64_t batches_bytes(const host_case *c)
{
    return times((uint64_t)c->keep.tuned.prefetch + 1, times(batch_of(c), data_form_bytes(&c->train)));
}

static uint64_t source_bytes(const host_case *c)
{
    return plus(c->source->held_bytes, c->source->opening_bytes);
}

static uint64_t slices_bytes(const host_case *c)
{
    return c->keep.slices_bytes;
}

static uint64_t cache_bytes(const host_case *c)
{
    return c->keep.cache_bytes;
}

static uint64_t copies_bytes(const host_case *c)
{
    return c->keep.copies_bytes;
}

static uint64_t interleave_bytes(const host_case *c)
{
    return (uint64_t)c->keep.interleave * INTERLEAVE_FILE_BYTES;
}

static uint64_t shuffle_bytes(const host_case *c)
{
    const uint64_t number = data_number_bytes(c->keep.has_pool, c->keep.shuffle_repeats);
    return c->keep.shuffle > 1 ? plus(c->keep.pool_bytes, c->keep.shuffle * number) : 0;
}

static uint64_t map_bytes(const host_case *c)
{
    return times(c->keep.tuned.threads, train_scratch_bytes(c));
}

// The numbers of a batch, of the samples that fill up the last one, and the batch where no later stage has it.
static uint64_t batch_bytes(const host_case *c)
{
    const bool pads = hr_knob_is(c->knobs, HR_KNOB_BATCH_REMAINDER, "pad") && !c->keep.batches_repeat;
    const uint64_t update = times(batch_of(c), count_of(c->knobs, HR_KNOB_BATCH_ACCUMULATE));
    const uint64_t numbers = times(batch_of(c), data_number_bytes(c->keep.has_pool, c->keep.batches_repeat));
    const uint64_t first = pads ? times(update, sizeof(uint32_t)) : 0;
    const uint64_t own = c->keep.tuned.prefetch == 0 && !c->pinned ? batches_bytes(c) : 0;
    return plus(plus(numbers, first), own);
}

static uint64_t prefetch_bytes(const host_case *c)
{
    return c->pinned ? 0 : batches_bytes(c);
}

static uint64_t evaluate_bytes(const host_case *c)
{
    const uint64_t each = sizeof(uint32_t) + data_form_bytes(&c->eval);
    return plus(eval_scratch_bytes(c), times(batch_of(c), each));
}

static uint64_t answers_bytes(const host_case *c)
{
    return times(c->source->info.train_samples, data_slot_bytes(&c->answers));
}

static uint64_t nothing(const host_case *c)
{
    (void)c;
    return 0;
}

static bool always(const host_case *c)
{
    (void)c;
    return true;
}

static bool slices(const host_case *c)
{
    return c->keep.has_slices;
}

static bool caches(const host_case *c)
{
    return c->keep.has_cache;
}

static bool copies(const host_case *c)
{
    return c->keep.copies > 0;
}

static bool interleaves(const host_case *c)
{
    return c->keep.interleave > 1;
}

static bool repeats_before_shuffle(const host_case *c)
{
    return c->keep.shuffle_repeats;
}

static bool shuffles(const host_case *c)
{
    return shuffle_bytes(c) > 0;
}

static bool repeats_behind_shuffle(const host_case *c)
{
    return c->keep.batches_repeat && !c->keep.shuffle_repeats;
}

static bool maps(const host_case *c)
{
    return map_bytes(c) > 0;
}

static bool prefetches(const host_case *c)
{
    return c->keep.tuned.prefetch > 0;
}

static bool pins(const host_case *c)
{
    return c->pinned;
}

static bool is_taught(const host_case *c)
{
    return c->answers.rank > 0;
}

static const struct {
    const char *name;
    bool (*is_there)(const host_case *c);
    uint64_t (*bytes)(const host_case *c);
} rows[] = {
    {"source", always, source_bytes},
    {"interleave", interleaves, interleave_bytes},
    {"slices", slices, slices_bytes},
    {"cache", caches, cache_bytes},
    {"copies", copies, copies_bytes},
    {"repeat", repeats_before_shuffle, nothing},
    {"shuffle", shuffles, shuffle_bytes},
    {"repeat", repeats_behind_shuffle, nothing},
    {"map", maps, map_bytes},
    {"batch", always, batch_bytes},
    {"prefetch", prefetches, prefetch_bytes},
    {"pinned", pins, batches_bytes},
    {"evaluate", always, evaluate_bytes},
    {"answers", is_taught, answers_bytes},
};
enum { ROWS = sizeof rows / sizeof *rows };
_Static_assert((int)ROWS <= (int)PIPELINE_MAX_STAGES, "every stage has a place");

host_plan host_plan_make(const hr_knobs *knobs, const data_facts *facts, const pipeline_wire *wire,
                         bool pinned)
{
    const data_form *form = &facts->source.form;
    host_case c = {.knobs = knobs,
                   .source = &facts->source,
                   .train = pipeline_train_form(form, wire),
                   .answers = wire->answers,
                   .eval = data_form_narrowed(form, wire->eval),
                   .pinned = pinned};
    host_plan plan = {.count = 0};
    c.keep = data_keep_plan_of(knobs, c.source, facts->raw_bytes[DATA_TRAIN], &c.train);
    for (size_t k = 0; k < ROWS; k++) {
        if (rows[k].is_there(&c)) {
            const host_stage stage = {rows[k].name, rows[k].bytes(&c)};
            plan.stages[plan.count++] = stage;
            plan.bytes = plus(plan.bytes, stage.bytes);
        }
    }
    return plan;
}
