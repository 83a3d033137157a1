// SPDX-License-Identifier: Apache-2.0
// Combinations of knobs that are refused up front, each with its reason and the knob to turn.
#include "headroom/knobs.h"

#include "knobs/augment.h"
#include "knobs/checkpoint.h"
#include "knobs/class_filter.h"
#include "knobs/compress_rules.h"
#include "knobs/framework_rules.h"
#include "knobs/logical.h"
#include "knobs/loss_scale.h"
#include "knobs/prune.h"
#include "knobs/stages.h"
#include "knobs/torch_settings.h"

static bool float64_on_cuda(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_PRECISION_POLICY, "float64") &&
           hr_knob_is(knobs, HR_KNOB_DEVICE_KIND, "cuda");
}

static bool float64_on_cpu(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_PRECISION_POLICY, "float64") &&
           hr_knob_is(knobs, HR_KNOB_DEVICE_KIND, "cpu");
}

static bool strange_loss_scale(const hr_knobs *knobs)
{
    loss_scale_choice scale;
    return !loss_scale_of(knobs, &scale);
}

static bool dynamic_without_float16(const hr_knobs *knobs)
{
    loss_scale_choice scale;
    return loss_scale_of(knobs, &scale) && scale.dynamic &&
           !hr_knob_is(knobs, HR_KNOB_PRECISION_POLICY, "mixed_float16") &&
           !hr_knob_is(knobs, HR_KNOB_PRECISION_POLICY, "float16");
}

static bool cuda_of_no_card(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_DEVICE_KIND, "cuda") && !hr_knob_is_set(knobs, HR_KNOB_DEVICE_CARD) &&
           !hr_knob_is_set(knobs, HR_KNOB_DEVICE_VRAM);
}

static bool fraction(const hr_knobs *knobs)
{
    return hr_knob_real(knobs, HR_KNOB_ALLOCATOR_FRACTION) > 0;
}

static bool fraction_and_limit(const hr_knobs *knobs)
{
    return fraction(knobs) && hr_knob_is_set(knobs, HR_KNOB_DEVICE_VRAM);
}

static bool fraction_of_nothing(const hr_knobs *knobs)
{
    return fraction(knobs) && !hr_knob_is_set(knobs, HR_KNOB_DEVICE_CARD);
}

static bool is_static(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_ALLOCATOR_KIND, "static");
}

static bool static_eager(const hr_knobs *knobs)
{
    return is_static(knobs) && !hr_knob_is(knobs, HR_KNOB_EXECUTION_MODE, "graph");
}

static bool is_driver_pool(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_ALLOCATOR_KIND, "async_driver");
}

static bool driver_pool_without_card(const hr_knobs *knobs)
{
    return is_driver_pool(knobs) && !hr_knob_is(knobs, HR_KNOB_DEVICE_KIND, "cuda");
}

static bool driver_pool_in_a_graph(const hr_knobs *knobs)
{
    return is_driver_pool(knobs) && hr_knob_is(knobs, HR_KNOB_EXECUTION_CUDA_GRAPH, "on");
}

static bool strange_stages(const hr_knobs *knobs)
{
    stage_order order;
    return !stage_order_of(knobs, &order);
}

static bool caches_nowhere(const hr_knobs *knobs)
{
    stage_order order;
    return !hr_knob_is(knobs, HR_KNOB_PIPELINE_CACHE, "none") && stage_order_of(knobs, &order) &&
           !order.cache;
}

static bool strange_augment(const hr_knobs *knobs)
{
    augment_list list;
    return !augment_list_of(knobs, &list);
}

static bool augments(const hr_knobs *knobs)
{
    augment_list list;
    return augment_list_of(knobs, &list) && list.count > 0;
}

static bool augments_values(const hr_knobs *knobs)
{
    return augments(knobs) && !hr_knob_is(knobs, HR_KNOB_PIPELINE_ARRAY, "off") &&
           !hr_knob_is(knobs, HR_KNOB_PIPELINE_ARRAY, "uint8");
}

static bool has_copies(const hr_knobs *knobs)
{
    return hr_knob_int(knobs, HR_KNOB_PIPELINE_AUGMENT_COPIES) > 0;
}

static bool copies_of_nothing(const hr_knobs *knobs)
{
    return has_copies(knobs) && !augments(knobs);
}

static bool copies_behind_a_cache(const hr_knobs *knobs)
{
    stage_order order;
    return has_copies(knobs) && !hr_knob_is(knobs, HR_KNOB_PIPELINE_CACHE, "none") &&
           stage_order_of(knobs, &order) && order.cache && !order.cache_before_map;
}

static bool interleaves_nowhere(const hr_knobs *knobs)
{
    stage_order order;
    return hr_knob_int(knobs, HR_KNOB_PIPELINE_INTERLEAVE) > 1 && stage_order_of(knobs, &order) &&
           !order.interleave;
}

static bool strange_filter(const hr_knobs *knobs)
{
    class_filter filter;
    return hr_knob_is_set(knobs, HR_KNOB_PIPELINE_FILTER) &&
           !class_filter_of(hr_knob_text(knobs, HR_KNOB_PIPELINE_FILTER), &filter);
}

static bool decides_nothing(const hr_knobs *knobs)
{
    stage_order order;
    const bool prefetches = stage_order_of(knobs, &order) && order.prefetch;
    return !hr_knob_is(knobs, HR_KNOB_PIPELINE_AUTOTUNE, "off") &&
           hr_knob_is_set(knobs, HR_KNOB_PIPELINE_MAP_THREADS) &&
           (hr_knob_is_set(knobs, HR_KNOB_PIPELINE_PREFETCH) || !prefetches);
}

static bool resident_and_ahead(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_PIPELINE_RESIDENT, "on") &&
           hr_knob_is_set(knobs, HR_KNOB_PIPELINE_DEVICE_PREFETCH) &&
           hr_knob_int(knobs, HR_KNOB_PIPELINE_DEVICE_PREFETCH) > 0;
}

static bool growth_of_another(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_ALLOCATOR_GROWTH, "on") &&
           !hr_knob_is(knobs, HR_KNOB_ALLOCATOR_KIND, "bfc");
}

// ---- PyTorch's rules: each for its knob, and all of them for the string --------------------------------------

static bool is_caching(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_ALLOCATOR_KIND, "caching");
}

static bool said_twice(const hr_knobs *knobs)
{
    return is_caching(knobs) && torch_settings_differ(knobs);
}

static bool below_a_segment(const hr_knobs *knobs, hr_knob_id id)
{
    const torch_conf c = torch_settings_of(knobs);
    return is_caching(knobs) && hr_knob_is_set(knobs, id) &&
           hr_knob_bytes(knobs, id, 0) < c.large_segment_bytes;
}

static bool splits_segments(const hr_knobs *knobs)
{
    return below_a_segment(knobs, HR_KNOB_ALLOCATOR_MAX_SPLIT);
}

static bool rounds_below_segments(const hr_knobs *knobs)
{
    return below_a_segment(knobs, HR_KNOB_ALLOCATOR_MAX_NON_SPLIT_ROUNDING);
}

static bool rounds_what_is_split(const hr_knobs *knobs)
{
    return is_caching(knobs) && hr_knob_is_set(knobs, HR_KNOB_ALLOCATOR_MAX_NON_SPLIT_ROUNDING) &&
           torch_settings_of(knobs).max_split_bytes == UINT64_MAX;
}

static bool collects(const hr_knobs *knobs)
{
    return is_caching(knobs) && hr_knob_is_set(knobs, HR_KNOB_ALLOCATOR_GC_THRESHOLD);
}

static bool collects_without_fraction(const hr_knobs *knobs)
{
    return collects(knobs) && torch_settings_fraction(knobs) == 0;
}

static bool collects_expandable(const hr_knobs *knobs)
{
    return collects(knobs) && torch_settings_of(knobs).expandable_segments;
}

static bool odd_handles(const hr_knobs *knobs)
{
    static const uint64_t granule_bytes = UINT64_C(2) << 20;
    const torch_conf c = torch_settings_of(knobs);
    return is_caching(knobs) && c.expandable_segments && c.large_segment_bytes % granule_bytes != 0;
}

static bool odd_handles_of_a_knob(const hr_knobs *knobs)
{
    return odd_handles(knobs) && hr_knob_is_set(knobs, HR_KNOB_ALLOCATOR_LARGE_SEGMENT);
}

// What the string breaks, alone or with the knobs beside it.
static bool conf_breaks_a_rule(const hr_knobs *knobs)
{
    const torch_conf c = torch_settings_of(knobs);
    const bool has_fraction = torch_settings_fraction(knobs) > 0;
    const bool has_limit =
        hr_knob_is_set(knobs, HR_KNOB_DEVICE_VRAM) || !hr_knob_is_set(knobs, HR_KNOB_DEVICE_CARD);
    return is_caching(knobs) && hr_knob_is_set(knobs, HR_KNOB_ALLOCATOR_CONF) &&
           (c.max_split_bytes < c.large_segment_bytes ||
            c.max_non_split_rounding_bytes < c.large_segment_bytes || (has_fraction && has_limit) ||
            odd_handles(knobs));
}

static bool saves_to_nowhere(const hr_knobs *knobs)
{
    return hr_knob_int(knobs, HR_KNOB_TRAIN_SAVE_EVERY) > 0 && !hr_knob_is_set(knobs, HR_KNOB_TRAIN_SAVE);
}

static bool files_from_nowhere(const hr_knobs *knobs)
{
    bool wants_files = !hr_knob_is(knobs, HR_KNOB_PIPELINE_SOURCE, "auto") &&
                       !hr_knob_is(knobs, HR_KNOB_PIPELINE_SOURCE, "generated");
    return wants_files && !hr_knob_is_set(knobs, HR_KNOB_PIPELINE_PATH);
}

static bool graph(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_EXECUTION_MODE, "graph");
}

static bool persistent_tape_in_a_graph(const hr_knobs *knobs)
{
    return graph(knobs) && hr_knob_is(knobs, HR_KNOB_EXECUTION_TAPE, "persistent");
}

static bool variables_in_a_graph(const hr_knobs *knobs)
{
    return graph(knobs) && hr_knob_is(knobs, HR_KNOB_EXECUTION_RETAIN, "variables");
}

static bool unknown_checkpoint(const hr_knobs *knobs)
{
    checkpoint_strategy strategy;
    return checkpoint_strategy_of(knobs, &strategy, NULL) != HR_OK;
}

static bool offloaded_from_an_unusual_tape(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_OFFLOAD_ACTIVATIONS, "on") &&
           !hr_knob_is(knobs, HR_KNOB_EXECUTION_TAPE, "once");
}

static bool accumulates(const hr_knobs *knobs)
{
    return hr_knob_int(knobs, HR_KNOB_BATCH_ACCUMULATE) > 1;
}

static bool accumulates_nothing(const hr_knobs *knobs)
{
    return accumulates(knobs) && hr_knob_is(knobs, HR_KNOB_EXECUTION_TAPE, "none");
}

static bool accumulates_part_batches(const hr_knobs *knobs)
{
    return accumulates(knobs) && hr_knob_is(knobs, HR_KNOB_BATCH_REMAINDER, "keep") &&
           !stages_fill_batches(knobs);
}

static bool fused_backward(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_OPTIMIZER_FUSED_BACKWARD, "on");
}

static bool fused_accumulation(const hr_knobs *knobs)
{
    return fused_backward(knobs) && accumulates(knobs);
}

static bool fused_skipping(const hr_knobs *knobs)
{
    loss_scale_choice scale;
    return fused_backward(knobs) && loss_scale_of(knobs, &scale) && scale.dynamic;
}

static bool fused_nothing(const hr_knobs *knobs)
{
    return fused_backward(knobs) && hr_knob_is(knobs, HR_KNOB_EXECUTION_TAPE, "none");
}

static bool fused_clipping(const hr_knobs *knobs)
{
    return fused_backward(knobs) && hr_knob_is_set(knobs, HR_KNOB_OPTIMIZER_CLIP_NORM);
}

static bool schedule_without_end(const hr_knobs *knobs)
{
    return !hr_knob_is(knobs, HR_KNOB_OPTIMIZER_SCHEDULE, "none") &&
           hr_knob_int(knobs, HR_KNOB_OPTIMIZER_SCHEDULE_UPDATES) == 0 &&
           hr_knob_int(knobs, HR_KNOB_TRAIN_STEPS) == 0;
}

static bool retained_in_a_packed_block(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_ALLOCATOR_KIND, "static") &&
           !hr_knob_is(knobs, HR_KNOB_EXECUTION_RETAIN, "none");
}

static bool divided(const hr_knobs *knobs, logical_devices *d)
{
    return logical_devices_of(knobs, d) && d->count > 0;
}

static bool strange_logical_devices(const hr_knobs *knobs)
{
    logical_devices d;
    return !logical_devices_of(knobs, &d);
}

static bool divided_for_another(const hr_knobs *knobs)
{
    logical_devices d;
    return divided(knobs, &d) && !hr_knob_is(knobs, HR_KNOB_ALLOCATOR_KIND, "bfc");
}

static bool divided_and_growing(const hr_knobs *knobs)
{
    logical_devices d;
    return divided(knobs, &d) && hr_knob_is(knobs, HR_KNOB_ALLOCATOR_GROWTH, "on");
}

static bool divided_by_fraction(const hr_knobs *knobs)
{
    logical_devices d;
    return divided(knobs, &d) && hr_knob_real(knobs, HR_KNOB_ALLOCATOR_FRACTION) > 0;
}

static bool fused_rmsprop(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_OPTIMIZER_IMPLEMENTATION, "fused") &&
           hr_knob_is(knobs, HR_KNOB_OPTIMIZER_KIND, "rmsprop");
}

static const hr_constraint constraints[] = {
    {prune_is_strange,
     "compress.prune is none, constant:S or polynomial:S0:S1:BEGIN:END, as polynomial:0.5:0.8:0:1000: had "
     "{compress.prune}",
     HR_KNOB_COMPRESS_PRUNE, "-s compress.prune=constant:0.5"},
    {constant_is_strange,
     "compress.prune=constant needs constant:S, S a share as 0.5, and behind it at most "
     ":BEGIN:END:FREQUENCY, whole updates: had {compress.prune}",
     HR_KNOB_COMPRESS_PRUNE, "-s compress.prune=constant:0.5"},
    {polynomial_is_strange,
     "compress.prune=polynomial needs polynomial:S0:S1:BEGIN:END, two shares and two updates (0.5:0.8:0:1000 "
     "goes from half of the weights to 0.8 of them over 1000 updates), and behind it at most "
     ":FREQUENCY:POWER: "
     "had {compress.prune}",
     HR_KNOB_COMPRESS_PRUNE, "-s compress.prune=polynomial:0.5:0.8:0:1000"},
    {constant_takes_all,
     "compress.prune takes a share of the weights away: needed S of constant:S from 0 to below 1, had "
     "{compress.prune}",
     HR_KNOB_COMPRESS_PRUNE, "-s compress.prune=constant:0.5"},
    {polynomial_takes_all,
     "compress.prune takes a share of the weights away: needed S0 and S1 of polynomial:S0:S1:BEGIN:END from "
     "0 to below 1, had {compress.prune}",
     HR_KNOB_COMPRESS_PRUNE, "-s compress.prune=polynomial:0.5:0.8:0:1000"},
    {constant_ends_first,
     "compress.prune goes from update BEGIN, 0 or more, to update END: needed constant:S:BEGIN:END with END "
     "-1 (no end) or not before BEGIN, had {compress.prune}",
     HR_KNOB_COMPRESS_PRUNE, "-s compress.prune=constant:0.5:0:-1"},
    {polynomial_ends_first,
     "compress.prune goes from update BEGIN, 0 or more, to update END: needed polynomial:S0:S1:BEGIN:END "
     "with END not before BEGIN, had {compress.prune}",
     HR_KNOB_COMPRESS_PRUNE, "-s compress.prune=polynomial:0.5:0.8:0:1000"},
    {constant_has_no_turn,
     "compress.prune makes its masks anew every FREQUENCY updates: needed at least 1 in "
     "constant:S:BEGIN:END:FREQUENCY, had {compress.prune}",
     HR_KNOB_COMPRESS_PRUNE, "-s compress.prune=constant:0.5:0:-1:100"},
    {polynomial_has_no_turn,
     "compress.prune makes its masks anew every FREQUENCY updates: needed at least 1 in "
     "polynomial:S0:S1:BEGIN:END:FREQUENCY, had {compress.prune}",
     HR_KNOB_COMPRESS_PRUNE, "-s compress.prune=polynomial:0.5:0.8:0:1000:100"},
    {prune_has_no_power,
     "compress.prune polynomial raises what is left of its way to POWER: needed more than 0, had "
     "{compress.prune}",
     HR_KNOB_COMPRESS_PRUNE, "-s compress.prune=polynomial:0.5:0.8:0:1000:100:3"},
    {pytorch_prunes,
     "compress.prune holds what tfmot does, and torch.nn.utils.prune keeps other tensors: needed "
     "execution.as headroom or tensorflow, had {execution.as}",
     HR_KNOB_COMPRESS_PRUNE, "-s compress.prune=none"},
    {prune_structure_is_strange,
     "compress.prune_structure is element, block:ROWSxCOLUMNS, N:M or filter, had {compress.prune_structure}",
     HR_KNOB_COMPRESS_PRUNE_STRUCTURE, "-s compress.prune_structure=element"},
    {prune_groups_are_whole,
     "compress.prune_structure N:M makes N of M weights zero: needed N below M, had "
     "{compress.prune_structure}",
     HR_KNOB_COMPRESS_PRUNE_STRUCTURE, "-s compress.prune_structure=2:4"},
    {float64_on_cpu,
     "precision.policy=float64 needs device.kind reference or plan, had cpu: oneDNN computes in float32",
     HR_KNOB_DEVICE_KIND, "-s device.kind=reference"},
    {float64_on_cuda,
     "precision.policy=float64 needs device.kind reference or plan, had cuda: its kernels compute in float32 "
     "and "
     "two-byte types",
     HR_KNOB_DEVICE_KIND, "-s device.kind=reference"},
    {strange_loss_scale,
     "precision.loss_scale is dynamic, none or a factor from 1 to 1e30, had {precision.loss_scale}",
     HR_KNOB_PRECISION_LOSS_SCALE, "-s precision.loss_scale=none"},
    {dynamic_without_float16,
     "precision.loss_scale=dynamic needs precision.policy mixed_float16 or float16: the other types have "
     "float32's "
     "range and overflow no sooner",
     HR_KNOB_PRECISION_LOSS_SCALE, "-s precision.loss_scale=none"},
    {fraction_and_limit,
     "allocator.fraction is a share of the card, but device.vram already says the limit: needed one, had "
     "both",
     HR_KNOB_ALLOCATOR_FRACTION, "-s allocator.fraction=none"},
    {fraction_of_nothing, "allocator.fraction is a share of a card's memory: needed device.card, had none",
     HR_KNOB_DEVICE_CARD, "-s device.card=rtx3070-8g"},
    {strange_logical_devices,
     "device.logical is none, or sizes of at least 256 B such as 2GiB,4GiB: had {device.logical}",
     HR_KNOB_DEVICE_LOGICAL, "-s device.logical=none"},
    {divided_for_another,
     "device.logical divides the card as TensorFlow does: needed allocator.kind=bfc, had {allocator.kind}",
     HR_KNOB_DEVICE_LOGICAL, "-s device.logical=none"},
    {divided_and_growing,
     "device.logical gives every logical device its size at once, and TensorFlow refuses growth beside it: "
     "needed "
     "allocator.growth=off, had on",
     HR_KNOB_ALLOCATOR_GROWTH, "-s allocator.growth=off"},
    {divided_by_fraction,
     "allocator.fraction is a share of the card, but device.logical already says the limit: needed one, had "
     "both",
     HR_KNOB_ALLOCATOR_FRACTION, "-s allocator.fraction=none"},
    {static_eager,
     "allocator.kind=static plans a step whose whole graph is known: needed execution.mode graph, had eager",
     HR_KNOB_EXECUTION_MODE, "-s execution.mode=graph"},
    {driver_pool_without_card,
     "allocator.kind=async_driver is the pool of a card's own driver: needed device.kind=cuda, had "
     "{device.kind}: others and a replay have allocator.kind=async",
     HR_KNOB_ALLOCATOR_KIND, "-s allocator.kind=async"},
    {driver_pool_in_a_graph,
     "execution.cuda_graph replays addresses, and allocator.kind=async_driver may give others in every step: "
     "needed one, had both",
     HR_KNOB_EXECUTION_CUDA_GRAPH, "-s execution.cuda_graph=off"},
    {growth_of_another,
     "allocator.growth takes regions that double, which bfc alone has: needed allocator.growth off or "
     "allocator.kind bfc, had on and {allocator.kind}",
     HR_KNOB_ALLOCATOR_GROWTH, "-s allocator.growth=off"},
    {said_twice,
     "allocator.conf says a setting otherwise than its knob: needed one of the two, or the same in both, had "
     "two values",
     HR_KNOB_ALLOCATOR_CONF, "-s allocator.conf="},
    {splits_segments,
     "allocator.max_split must be at least allocator.large_segment, as PyTorch has it: needed more or none, "
     "had less",
     HR_KNOB_ALLOCATOR_MAX_SPLIT, "-s allocator.max_split=none"},
    {rounds_below_segments,
     "allocator.max_non_split_rounding must be at least allocator.large_segment, as PyTorch has it: needed "
     "more or "
     "none, had less",
     HR_KNOB_ALLOCATOR_MAX_NON_SPLIT_ROUNDING, "-s allocator.max_non_split_rounding=none"},
    {rounds_what_is_split,
     "allocator.max_non_split_rounding concerns blocks that are not split: needed allocator.max_split, had "
     "none",
     HR_KNOB_ALLOCATOR_MAX_NON_SPLIT_ROUNDING, "-s allocator.max_non_split_rounding=none"},
    {collects_without_fraction,
     "allocator.gc_threshold collects only below a limit that is a fraction of the card, as PyTorch does: "
     "needed "
     "allocator.fraction, had none",
     HR_KNOB_ALLOCATOR_GC_THRESHOLD, "-s allocator.gc_threshold=none"},
    {collects_expandable,
     "allocator.gc_threshold gives whole segments back, and expandable ones are never collected: needed "
     "allocator.expandable_segments off, had on",
     HR_KNOB_ALLOCATOR_GC_THRESHOLD, "-s allocator.gc_threshold=none"},
    {odd_handles_of_a_knob,
     "allocator.large_segment is the size of a handle when segments are expandable: needed a multiple of 2 "
     "MiB, had {allocator.large_segment}",
     HR_KNOB_ALLOCATOR_LARGE_SEGMENT, "-s allocator.large_segment=20MiB"},
    {conf_breaks_a_rule,
     "allocator.conf breaks a rule together with the knobs beside it: max_split_size_mb and "
     "max_non_split_rounding_mb are at least large_segment_size_mb, a fraction wants device.card and no "
     "device.vram, and expandable segments want a "
     "large_segment_size_mb that is a multiple of 2",
     HR_KNOB_ALLOCATOR_CONF, "-s allocator.conf="},
    {cuda_of_no_card,
     "device.kind=cuda plans and runs for a card, and none is named: name a card in device.card, or say its "
     "memory in "
     "device.vram",
     HR_KNOB_DEVICE_CARD, "-s device.card=rtx3070-8g"},
    {saves_to_nowhere, "train.save_every needs a file to save to in train.save, had none", HR_KNOB_TRAIN_SAVE,
     "-s train.save=weights.safetensors"},
    {unknown_checkpoint,
     "checkpoint.strategy must be none, every:K, sqrt, blocks, selective, list:LAYER,LAYER or "
     "budget:SIZE, had {checkpoint.strategy}",
     HR_KNOB_CHECKPOINT_STRATEGY, "-s checkpoint.strategy=sqrt"},
    {offloaded_from_an_unusual_tape,
     "offload.activations takes what the tape keeps until the gradients are taken: needed "
     "execution.tape=once, had {execution.tape}",
     HR_KNOB_EXECUTION_TAPE, "-s execution.tape=once"},
    {retained_in_a_packed_block,
     "execution.retain never frees, and allocator.kind=static packs a step that repeats: needed "
     "execution.retain=none, had {execution.retain}",
     HR_KNOB_EXECUTION_RETAIN, "-s execution.retain=none"},
    {files_from_nowhere,
     "every pipeline.source but auto and generated needs its files in pipeline.path, had none",
     HR_KNOB_PIPELINE_SOURCE, "-s pipeline.source=generated"},
    {strange_stages,
     "pipeline.stages must name map and behind it batch, each stage once: slices or interleave first, cache "
     "and shuffle before batch, repeat behind cache, prefetch behind batch: had {pipeline.stages}",
     HR_KNOB_PIPELINE_STAGES, "-s pipeline.stages=cache,shuffle,map,batch,prefetch"},
    {caches_nowhere,
     "pipeline.cache keeps samples where cache stands in pipeline.stages: needed that stage, had none",
     HR_KNOB_PIPELINE_CACHE, "-s pipeline.cache=none"},
    {strange_augment,
     "pipeline.augment is none, or some of flip, crop:PIXELS (1 to 1000), colour:STRENGTH (0.001 to 1), "
     "rotate:DEGREES (1 to 180) and erase, each once: had {pipeline.augment}",
     HR_KNOB_PIPELINE_AUGMENT, "-s pipeline.augment=flip,crop:4"},
    {augments_values,
     "pipeline.augment changes the bytes of images, and pipeline.array float32 or float64 holds values: "
     "needed off or uint8, had {pipeline.array}",
     HR_KNOB_PIPELINE_ARRAY, "-s pipeline.array=uint8"},
    {copies_of_nothing,
     "pipeline.augment_copies holds what pipeline.augment makes: needed a list of operations there, had none",
     HR_KNOB_PIPELINE_AUGMENT_COPIES, "-s pipeline.augment_copies=0"},
    {copies_behind_a_cache,
     "pipeline.augment_copies gives each epoch another variant, and a cache behind map keeps the first "
     "epoch's: needed one, had both",
     HR_KNOB_PIPELINE_AUGMENT_COPIES, "-s pipeline.augment_copies=0"},
    {interleaves_nowhere,
     "pipeline.interleave reads files in turn where interleave stands in pipeline.stages: needed that stage, "
     "had none",
     HR_KNOB_PIPELINE_INTERLEAVE, "-s pipeline.interleave=1"},
    {strange_filter, "pipeline.filter must be label: and classes with commas between, had {pipeline.filter}",
     HR_KNOB_PIPELINE_FILTER, "-s pipeline.filter=label:0,1"},
    {decides_nothing,
     "pipeline.autotune decides what is auto: needed pipeline.map_threads=auto, or pipeline.prefetch=auto "
     "with that "
     "stage, had neither",
     HR_KNOB_PIPELINE_AUTOTUNE, "-s pipeline.autotune=off"},
    {resident_and_ahead,
     "pipeline.resident copies one batch and no later one, and pipeline.device_prefetch copies later ones "
     "ahead: "
     "needed one, had both",
     HR_KNOB_PIPELINE_DEVICE_PREFETCH, "-s pipeline.device_prefetch=auto"},
    {persistent_tape_in_a_graph,
     "execution.tape=persistent keeps what eager execution records, and a graph has no tape: needed "
     "execution.mode=eager, had graph",
     HR_KNOB_EXECUTION_TAPE, "-s execution.tape=once"},
    {variables_in_a_graph,
     "execution.retain=variables makes a layer in every step, which a graph allows in its first only: needed "
     "execution.mode=eager, had graph",
     HR_KNOB_EXECUTION_RETAIN, "-s execution.retain=none"},
    {accumulates_nothing,
     "batch.accumulate adds gradients up, and execution.tape=none takes none: needed once or persistent, had "
     "none",
     HR_KNOB_EXECUTION_TAPE, "-s execution.tape=once"},
    {accumulates_part_batches,
     "batch.accumulate adds up full batches only: needed batch.remainder drop or pad, had keep",
     HR_KNOB_BATCH_REMAINDER, "-s batch.remainder=drop"},
    {fused_accumulation,
     "optimizer.fused_backward updates with the first gradient there is: needed batch.accumulate=1, which "
     "has no sum to wait for, had {batch.accumulate}",
     HR_KNOB_OPTIMIZER_FUSED_BACKWARD, "-s optimizer.fused_backward=off"},
    {fused_skipping,
     "optimizer.fused_backward updates before all gradients are known, and a dynamic loss scale skips the "
     "whole "
     "update when one of them is not finite: needed precision.loss_scale none or a number, had dynamic",
     HR_KNOB_OPTIMIZER_FUSED_BACKWARD, "-s optimizer.fused_backward=off"},
    {fused_nothing,
     "optimizer.fused_backward updates behind gradients, and execution.tape=none takes none: needed once or "
     "persistent, had none",
     HR_KNOB_OPTIMIZER_FUSED_BACKWARD, "-s optimizer.fused_backward=off"},
    {fused_clipping,
     "optimizer.fused_backward updates before all gradients are known, and optimizer.clip_norm needs the "
     "norm of all of them: needed none, had {optimizer.clip_norm}",
     HR_KNOB_OPTIMIZER_FUSED_BACKWARD, "-s optimizer.fused_backward=off"},
    {schedule_without_end,
     "optimizer.schedule needs its length in optimizer.schedule_updates or train.steps, had neither",
     HR_KNOB_OPTIMIZER_SCHEDULE_UPDATES, "-s optimizer.schedule_updates=1000"},
    {pytorch_graph,
     "execution.as=pytorch has the rules of PyTorch's eager mode: needed execution.mode=eager, had graph",
     HR_KNOB_EXECUTION_MODE, "-s execution.mode=eager"},
    {pytorch_two_bytes,
     "execution.as=pytorch has rules for autocast to bfloat16: needed precision.policy float32, float64 or "
     "mixed_bfloat16, had {precision.policy}",
     HR_KNOB_PRECISION_POLICY, "-s precision.policy=mixed_bfloat16"},
    {pytorch_selects,
     "execution.as=pytorch runs whole segments again, as torch.utils.checkpoint does: needed "
     "checkpoint.strategy none, "
     "blocks, sqrt, every or list, had {checkpoint.strategy}",
     HR_KNOB_CHECKPOINT_STRATEGY, "-s checkpoint.strategy=blocks"},
    {quantized_as_a_framework,
     "compress.quantize has kernels of our own, and execution.as those of a framework: needed "
     "compress.quantize=none",
     HR_KNOB_COMPRESS_QUANTIZE, "-s compress.quantize=none"},
    {pytorch_offloads_activations,
     "execution.as=pytorch keeps on the device what autograd saves: needed offload.activations=off, had on",
     HR_KNOB_OFFLOAD_ACTIVATIONS, "-s offload.activations=off"},
    {pytorch_offloads_slots,
     "execution.as=pytorch keeps the optimizer's state on the device: needed offload.optimizer=off, had on",
     HR_KNOB_OFFLOAD_OPTIMIZER, "-s offload.optimizer=off"},
    {pytorch_fused_backward,
     "execution.as=pytorch updates behind backward: needed optimizer.fused_backward=off, had on",
     HR_KNOB_OPTIMIZER_FUSED_BACKWARD, "-s optimizer.fused_backward=off"},
    {pytorch_averages,
     "execution.as=pytorch has no rules for averaged weights: needed optimizer.ema none, had {optimizer.ema}",
     HR_KNOB_OPTIMIZER_EMA, "-s optimizer.ema=none"},
    {pytorch_other_optimizer,
     "execution.as=pytorch has rules for optimizer.kind sgd, momentum, rmsprop, adam and adamw: needed one "
     "of them, had {optimizer.kind}",
     HR_KNOB_OPTIMIZER_KIND, "-s optimizer.kind=adamw"},
    {tensorflow_graph,
     "execution.as=tensorflow has the rules of TensorFlow's eager mode: needed execution.mode=eager, had "
     "graph",
     HR_KNOB_EXECUTION_MODE, "-s execution.mode=eager"},
    {tensorflow_two_bytes,
     "execution.as=tensorflow has no rules for types of two bytes: needed precision.policy float32 or "
     "float64, had {precision.policy}",
     HR_KNOB_PRECISION_POLICY, "-s precision.policy=float32"},
    {tensorflow_checkpoints,
     "execution.as=tensorflow has no rules for recomputation: needed checkpoint.strategy=none, had "
     "{checkpoint.strategy}",
     HR_KNOB_CHECKPOINT_STRATEGY, "-s checkpoint.strategy=none"},
    {tensorflow_accumulates,
     "execution.as=tensorflow has no rules for gradients of several rounds: needed batch.accumulate=1, had "
     "{batch.accumulate}",
     HR_KNOB_BATCH_ACCUMULATE, "-s batch.accumulate=1"},
    {tensorflow_offloads_activations,
     "execution.as=tensorflow keeps on the device what the tape records: needed offload.activations=off, had "
     "on",
     HR_KNOB_OFFLOAD_ACTIVATIONS, "-s offload.activations=off"},
    {tensorflow_offloads_slots,
     "execution.as=tensorflow keeps the optimizer's variables on the device: needed offload.optimizer=off, "
     "had on",
     HR_KNOB_OFFLOAD_OPTIMIZER, "-s offload.optimizer=off"},
    {tensorflow_fused_backward,
     "execution.as=tensorflow updates behind backward: needed optimizer.fused_backward=off, had on",
     HR_KNOB_OPTIMIZER_FUSED_BACKWARD, "-s optimizer.fused_backward=off"},
    {tensorflow_averages,
     "execution.as=tensorflow has no rules for averaged weights: needed optimizer.ema none, had "
     "{optimizer.ema}",
     HR_KNOB_OPTIMIZER_EMA, "-s optimizer.ema=none"},
    {tensorflow_clips,
     "execution.as=tensorflow has no rules for clipped gradients: needed optimizer.clip_norm none, had "
     "{optimizer.clip_norm}",
     HR_KNOB_OPTIMIZER_CLIP_NORM, "-s optimizer.clip_norm=none"},
    {tensorflow_other_optimizer,
     "execution.as=tensorflow has rules for optimizer.kind sgd, momentum, rmsprop, adam, adamw and lion: "
     "needed one of them, had {optimizer.kind}",
     HR_KNOB_OPTIMIZER_KIND, "-s optimizer.kind=adamw"},
    {fused_rmsprop,
     "optimizer.implementation=fused is there for optimizer.kind sgd, momentum, adam and adamw: needed one "
     "of them, had "
     "rmsprop",
     HR_KNOB_OPTIMIZER_IMPLEMENTATION, "-s optimizer.implementation=foreach"},
    {strange_lora_targets,
     "compress.lora_targets is auto, qv, qkv, attention, dense, conv, all or list:LAYER,LAYER: had "
     "{compress.lora_targets}",
     HR_KNOB_COMPRESS_LORA_TARGETS, "-s compress.lora_targets=auto"},
    {held_and_quantized,
     "compress.lora_base={compress.lora_base} holds weights as whole numbers that compress.quantize would "
     "make "
     "of real ones: needed one, had both",
     HR_KNOB_COMPRESS_QUANTIZE, "-s compress.quantize=none"},
    {strange_low_rank,
     "compress.low_rank is none, a rank from 1 to 65536 or ratio:X with X above 0 and below 1: had "
     "{compress.low_rank}",
     HR_KNOB_COMPRESS_LOW_RANK, "-s compress.low_rank=ratio:0.5"},
    {adapts_factors,
     "compress.lora freezes the weights that compress.low_rank would replace: needed one, had both",
     HR_KNOB_COMPRESS_LOW_RANK, "-s compress.low_rank=none"},
    {adapts_as_another,
     "execution.as has no rules for adapters, whose factor PEFT multiplies elsewhere: compress.lora needed "
     "execution.as=headroom, had {execution.as}",
     HR_KNOB_EXECUTION_AS, "-s execution.as=headroom"},
    {empty_teacher, "compress.distill is a preset's name or file, self or none: had nothing",
     HR_KNOB_COMPRESS_DISTILL, "-s compress.distill=none"},
    {distils_by_rules,
     "compress.distill has a teacher in the step, and how long a framework's step holds what that makes is "
     "not written down: "
     "needed execution.as=headroom, had {execution.as}",
     HR_KNOB_EXECUTION_AS, "-s execution.as=headroom"},
    {caches_answers_to_changing_images,
     "compress.distill_cache has one answer of the teacher for each sample, and pipeline.augment makes "
     "another image of it in every "
     "epoch: needed one, had both",
     HR_KNOB_COMPRESS_DISTILL_CACHE, "-s compress.distill_cache=off"},
    {caches_wide_answers_for_another_type,
     "compress.distill_cache keeps float32 logits: needed precision.policy float32, mixed_float16 or "
     "mixed_bfloat16, had "
     "{precision.policy}",
     HR_KNOB_COMPRESS_DISTILL_CACHE, "-s compress.distill_cache=off"},
    {prune_meets_adapters,
     "compress.prune zeroes weights that train, and compress.lora freezes them; what its factors add, A·B, "
     "has no "
     "zeros: needed one, had both",
     HR_KNOB_COMPRESS_PRUNE, "-s compress.prune=none"},
};

const hr_constraint *hr_constraints(size_t *count)
{
    *count = sizeof constraints / sizeof *constraints;
    return constraints;
}
