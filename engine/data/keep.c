// SPDX-License-Identifier: Apache-2.0
#include "data/keep.h"

#include <limits.h>
#include <string.h>

#include "headroom/units.h"

#include "base/file.h"
#include "base/host_mem.h"
#include "data/copies.h"
#include "data/stage.h"
#include "knobs/stages.h"

enum { PAST_CACHES_BYTES = 32 << 20 }; // a batch from which on writing around the caches is faster

// A buffer of what is repeated may hold a sample more than once.
static uint32_t shuffle_of(const hr_knobs *knobs, const stage_order *order, uint64_t samples)
{
    const uint64_t wanted = order->shuffle ? (uint64_t)hr_knob_int(knobs, HR_KNOB_PIPELINE_SHUFFLE) : 0;
    return (uint32_t)(wanted < samples || order->shuffle_repeats ? wanted : samples);
}

static uint32_t interleave_of(const hr_knobs *knobs, const stage_order *order, uint32_t files)
{
    const uint64_t wanted = order->interleave ? (uint64_t)hr_knob_int(knobs, HR_KNOB_PIPELINE_INTERLEAVE) : 0;
    return (uint32_t)(wanted < files ? wanted : files);
}

static bool is_in_file(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_PIPELINE_CACHE, "file");
}

static data_cache_plan cache_plan_of(const data_source *source, uint64_t raw_bytes, const data_form *batches,
                                     bool made, bool in_file)
{
    const uint64_t samples = data_source_samples(source, DATA_TRAIN);
    uint64_t made_bytes;
    (void)hr_mul_bytes(samples, data_form_packed_bytes(batches), &made_bytes);
    return (data_cache_plan){.name = "cache",
                             .instead = in_file ? "-s pipeline.cache=none" : "-s pipeline.cache=file",
                             .samples = samples,
                             .bytes = made ? made_bytes : raw_bytes,
                             .is_uneven = !made && source->ops->size != NULL,
                             .source = source,
                             .in_file = in_file};
}

// What is held beside batches and what they are made with.
static uint64_t others_bytes(const hr_knobs *knobs, const data_map *map, const data_keep_plan *plan)
{
    const data_source *source = map->source;
    const uint64_t batch = (uint64_t)hr_knob_int(knobs, HR_KNOB_BATCH_SIZE);
    const uint64_t first = (uint64_t)hr_knob_int(knobs, HR_KNOB_BATCH_ACCUMULATE) * sizeof(uint32_t);
    const uint64_t numbers = batch * (first + data_number_bytes(true, plan->batches_repeat));
    uint64_t held_out = 0; // a batch of them, at its widest, and what it is made with
    (void)hr_mul_bytes(batch, data_form_bytes(&source->form) + sizeof(uint32_t), &held_out);
    const uint64_t parts[] = {source->held_bytes,
                              source->opening_bytes,
                              plan->slices_bytes,
                              plan->cache_bytes,
                              plan->copies_bytes,
                              plan->pool_bytes,
                              (uint64_t)plan->shuffle * data_number_bytes(true, plan->shuffle_repeats),
                              numbers,
                              held_out,
                              data_map_scratch_bytes(map)};
    uint64_t bytes = 0;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        (void)hr_add_bytes(bytes, parts[k], &bytes);
    }
    return bytes;
}

data_keep_plan data_keep_plan_of(const hr_knobs *knobs, const data_source *source, uint64_t raw_bytes,
                                 const data_form *batches)
{
    data_keep_plan plan = {0};
    stage_order order;
    if (!stage_order_of(knobs, &order)) {
        return plan;
    }
    const data_map map = {.source = source, .to = *batches};
    plan.interleave = interleave_of(knobs, &order, source->parts);
    plan.shuffle = shuffle_of(knobs, &order, data_source_samples(source, DATA_TRAIN));
    plan.has_cache = order.cache && !hr_knob_is(knobs, HR_KNOB_PIPELINE_CACHE, "none");
    plan.cache_made = plan.has_cache && !order.cache_before_map;
    plan.same_order = plan.has_cache && !order.cache_before_shuffle;
    plan.batches_repeat = order.batches_repeat;
    plan.shuffle_repeats = order.shuffle_repeats;
    plan.has_pool = plan.shuffle > 1 && hr_knob_is(knobs, HR_KNOB_PIPELINE_SHUFFLE_OF, "elements");
    plan.pool = (data_pool_form){.places = plan.shuffle,
                                 .mapped = plan.has_pool && !order.shuffle_before_map,
                                 .mixes_epochs = order.shuffle_repeats};
    plan.pool_bytes = plan.has_pool ? data_pool_bytes(&map, &plan.pool) : 0;
    plan.augment = source->ops->decode != NULL ? data_augment_of(knobs) : (data_augment){.list = {0}};
    plan.copies =
        plan.augment.list.count > 0 ? (uint32_t)hr_knob_int(knobs, HR_KNOB_PIPELINE_AUGMENT_COPIES) : 0;
    plan.copies_bytes = plan.copies > 0 ? data_copies_host_bytes(source, plan.copies) : 0;
    plan.has_slices = order.slices;
    if (plan.has_slices) {
        const data_cache_plan slices = cache_plan_of(source, raw_bytes, batches, false, false);
        plan.slices_bytes = data_cache_host_bytes(&slices);
    }
    if (plan.has_cache) {
        const data_cache_plan cache =
            cache_plan_of(source, raw_bytes, batches, plan.cache_made, is_in_file(knobs));
        plan.cache_bytes = data_cache_host_bytes(&cache);
        plan.cache_file_bytes = data_cache_file_bytes(&cache);
    }
    const data_map made = {
        .source = source, .to = *batches, .has_made = plan.cache_made, .augment = plan.augment};
    plan.tuned = data_tuned_of(knobs, &made, order.prefetch, others_bytes(knobs, &made, &plan));
    return plan;
}

static hr_status open_cache(const hr_knobs *knobs, uint64_t raw_bytes, const data_keep *from, data_keep *k,
                            hr_err *err)
{
    char folder[PATH_MAX];
    data_cache_plan plan =
        cache_plan_of(k->map.source, raw_bytes, &k->map.to, k->plan.cache_made, is_in_file(knobs));
    plan.folder = hr_knob_text(knobs, HR_KNOB_PIPELINE_CACHE_PATH);
    if (plan.in_file && plan.folder[0] == '\0') {
        if (!hr_file_xdg("XDG_CACHE_HOME", ".cache", "samples", folder, sizeof folder) ||
            !hr_file_make_folders(folder)) {
            const hr_status status =
                HR_FAIL(err, WRITE, "the cache's file: needed a folder in XDG_CACHE_HOME or HOME, had none");
            hr_err_try(err, "-s pipeline.cache_path=FOLDER");
            return status;
        }
        *strrchr(folder, '/') = '\0';
        plan.folder = folder;
    }
    const data_cache *kept =
        from != NULL && !k->plan.cache_made && !from->plan.cache_made ? from->cache : NULL;
    k->cache_is_lent = kept != NULL && data_cache_is_of(kept, &plan);
    if (k->cache_is_lent) {
        k->cache = from->cache;
        return HR_OK;
    }
    return data_cache_open(&plan, &k->cache, err);
}

// Copies every training sample, as from_tensor_slices copies the arrays it is given.
static hr_status fill_slices(data_keep *k, uint8_t *room, hr_err *err)
{
    const data_source *source = k->map.source;
    const uint64_t samples = data_source_samples(source, DATA_TRAIN);
    for (uint64_t n = 0; n < samples; n++) {
        data_raw raw;
        hr_err failure = {0};
        hr_status status = data_source_fetch(source, DATA_TRAIN, (uint32_t)n, room, &raw, &failure);
        if (status == HR_OK) {
            status = data_cache_keep(k->slices, (uint32_t)n, &raw, &failure);
        } else if (status == HR_DATA && k->map.bad != NULL) {
            data_bad_note(k->map.bad, &failure);
            continue;
        }
        if (status != HR_OK) {
            if (err != NULL) {
                *err = failure;
            }
            return status;
        }
    }
    return HR_OK;
}

static hr_status open_slices(uint64_t raw_bytes, const data_keep *from, data_keep *k, hr_err *err)
{
    data_cache_plan plan = cache_plan_of(k->map.source, raw_bytes, &k->map.to, false, false);
    plan.name = "slices";
    plan.instead = "-s pipeline.stages=shuffle,map,batch,prefetch";
    k->slices_are_lent = from != NULL && from->slices != NULL && data_cache_is_of(from->slices, &plan);
    if (k->slices_are_lent) {
        k->slices = k->map.slices = from->slices;
        return HR_OK;
    }
    HR_TRY(data_cache_open(&plan, &k->slices, err));
    uint8_t *room = hr_calloc(k->map.source->room_bytes, 1);
    if (room == NULL) {
        return HR_FAIL(err, NOMEM, "slices: needed %u bytes, had less", k->map.source->room_bytes);
    }
    const hr_status status = fill_slices(k, room, err);
    hr_free(room);
    k->map.slices = k->slices;
    return status;
}

hr_status data_keep_open(const hr_knobs *knobs, const data_map *map, const data_keep *from, uint32_t threads,
                         data_keep *out, hr_err *err)
{
    const data_source *source = map->source;
    const data_form *batches = &map->to;
    *out = (data_keep){.map = *map};
    const uint64_t raw_bytes = data_source_set_bytes(source, DATA_TRAIN);
    out->plan = data_keep_plan_of(knobs, source, raw_bytes, batches);
    out->map.has_made = out->map.augment_once = out->plan.cache_made;
    out->map.augment = out->plan.augment;
    // What a cache takes of it is read again at once.
    out->map.past_caches =
        !out->plan.cache_made &&
        (uint64_t)hr_knob_int(knobs, HR_KNOB_BATCH_SIZE) * data_form_bytes(batches) >= PAST_CACHES_BYTES;
    HR_TRY(out->plan.has_slices ? open_slices(raw_bytes, from, out, err) : HR_OK);
    if (out->plan.has_cache) {
        HR_TRY(open_cache(knobs, raw_bytes, from, out, err));
        *(out->plan.cache_made ? &out->map.made : &out->map.raw) = out->cache;
    }
    if (out->plan.copies > 0) {
        HR_TRY(data_copies_open(&out->map, out->plan.copies, threads, &out->copies, err));
        out->map.copies = out->copies;
        out->map.copy_count = out->plan.copies;
    }
    return out->plan.has_pool ? data_pool_open(&out->map, &out->plan.pool, &out->pool, err) : HR_OK;
}

void data_keep_take_over(data_keep *k, data_keep *from)
{
    from->cache = k->cache_is_lent ? NULL : from->cache;
    from->slices = k->slices_are_lent ? NULL : from->slices;
    k->cache_is_lent = k->slices_are_lent = false;
}

void data_keep_close(data_keep *k)
{
    data_pool_close(k->pool);
    data_cache_close(k->copies);
    data_cache_close(k->cache_is_lent ? NULL : k->cache);
    data_cache_close(k->slices_are_lent ? NULL : k->slices);
    *k = (data_keep){.pool = NULL};
}
