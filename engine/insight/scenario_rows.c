// SPDX-License-Identifier: Apache-2.0
// The scenarios, one row each: what is said of it, and how it is made. Complaints are numbered as their projects number
// them; what each row claims is checked by tests/unit/test_scenarios.c.
#include <stddef.h>
#include <string.h>

#include "headroom/units.h"

#include "base/text.h"
#include "insight/scenario_recipe.h"

typedef struct scenario_row {
    hr_scenario about;
    recipe recipe;
} scenario_row;

#define MANY_STEPS 12

static const scenario_row rows[] = {
    {{.name = "pinned_holes",
      .complaint = "pytorch #35901",
      .line = "large blocks of a trial validation, pinned by the small state of the training",
      .explanation =
          "A validation of 512 images runs first and leaves blocks of up to 2.3 GiB in the cache. The "
          "first update of the training makes Adam's moments, 27 MiB in small pieces, and finds room for "
          "them in those blocks. From then on a large block is neither free nor can it go back: the next "
          "validation is refused with 14 % of the card in use.",
      .look_at =
          "who pins the largest holes. allocator.max_split keeps large blocks whole, "
          "allocator.expandable_segments has no blocks to pin, and state that is made before the first "
          "large block does no harm",
      .limit_bytes = 5 * HR_GIB},
     {.programs = {{.preset = "mobilenet_v2", .knobs = {"batch.size=512"}, .batch = 32},
                   {.preset = "mobilenet_v2", .knobs = {"batch.size=512"}, .evaluates = true}},
      .phases =
          {{RECIPE_LAZY, 0, 0, 0}, {RECIPE_STEPS, 1, 0, 1}, {RECIPE_STEPS, 0, 0, 2}, {RECIPE_STEPS, 1, 0, 1}},
      .loop_from = 2,
      .times = 2}},

    {{.name = "alternating_shapes",
      .complaint = "pytorch #31353",
      .line = "batches of 20, 27, 31, 32: the blocks of smaller ones stay and fit no larger one",
      .explanation =
          "Every batch wants blocks a little larger than the last one left. The cache keeps both, so "
          "that on a roomy card ResNet-50 takes 7.3 GiB for 3.9 GiB of tensors. Largest first, the same "
          "batches take 4.1 GiB: the smaller ones are cut from blocks that are there already.",
      .look_at = "pool beside in_use. Run the largest shape first, or set allocator.expandable_segments; bfc "
                 "has one region and does not care",
      .limit_bytes = 8 * HR_GIB},
     {.programs = {{.preset = "resnet50", .knobs = {"batch.size=32"}, .batch = 20},
                   {.preset = "resnet50", .knobs = {"batch.size=32"}, .batch = 27},
                   {.preset = "resnet50", .knobs = {"batch.size=32"}, .batch = 31},
                   {.preset = "resnet50", .knobs = {"batch.size=32"}, .batch = 32}},
      .phases = {{RECIPE_BUILD, 0, 0, 0},
                 {RECIPE_STEPS, 0, 0, 1},
                 {RECIPE_STEPS, 1, 0, 1},
                 {RECIPE_STEPS, 2, 0, 1},
                 {RECIPE_STEPS, 3, 0, 1}},
      .loop_from = 1,
      .times = 3}},

    {{.name = "near_full",
      .complaint = "pytorch #193195",
      .line = "the same batches on a card that just holds them: no failure, five flushes",
      .explanation =
          "The driver has nothing left when a larger shape comes. The allocator then gives its whole "
          "cache back and asks again, which succeeds. Nobody sees an error, but five times in twelve steps "
          "the device is waited for and the driver asked for hundreds of segments anew.",
      .look_at = "num_alloc_retries, not failures. With 8 GiB, or with expandable segments, there are none",
      .limit_bytes = 4210 * HR_MIB},
     {.programs = {{.preset = "resnet50", .knobs = {"batch.size=32"}, .batch = 20},
                   {.preset = "resnet50", .knobs = {"batch.size=32"}, .batch = 27},
                   {.preset = "resnet50", .knobs = {"batch.size=32"}, .batch = 31},
                   {.preset = "resnet50", .knobs = {"batch.size=32"}, .batch = 32}},
      .phases = {{RECIPE_BUILD, 0, 0, 0},
                 {RECIPE_STEPS, 0, 0, 1},
                 {RECIPE_STEPS, 1, 0, 1},
                 {RECIPE_STEPS, 2, 0, 1},
                 {RECIPE_STEPS, 3, 0, 1}},
      .loop_from = 1,
      .times = 3}},

    {{.name = "train_and_evaluate",
      .complaint = "pytorch #31252",
      .line = "training at batch 32, evaluation at 512: out of memory with half a card in use",
      .explanation =
          "Training wants many blocks, evaluation few that are sixteen times as large. What one phase "
          "leaves in the cache is of no use to the other, and a segment of which a piece is in use "
          "cannot go back. 1.5 GiB are refused with 2.4 of 5 GiB in use.",
      .look_at =
          "in_use at the failure. allocator.max_split or allocator.expandable_segments serve it, so does "
          "a smaller batch for the evaluation",
      .limit_bytes = 5 * HR_GIB},
     {.programs = {{.preset = "resnet50", .knobs = {"batch.size=512"}, .batch = 32},
                   {.preset = "resnet50", .knobs = {"batch.size=512"}, .evaluates = true}},
      .phases = {{RECIPE_BUILD, 0, 0, 0}, {RECIPE_STEPS, 0, 0, 2}, {RECIPE_STEPS, 1, 0, 2}},
      .loop_from = 1,
      .times = 3}},

    {{.name = "two_streams",
      .complaint = "rmm #1245",
      .line = "every other step on a second stream: memory freed on one is not the other's",
      .explanation =
          "A block that was freed on one stream may still be read by what that stream has not done yet, "
          "so the cache gives it to the same stream only. Two streams that take turns hold two caches: "
          "8.1 GiB instead of 4.1. On 5 GiB each turn gives the other's cache back.",
      .look_at = "free bytes by stream, and num_alloc_retries. One stream; or allocator.kind=async, where a "
                 "synchronisation makes what is free everybody's",
      .limit_bytes = 5 * HR_GIB},
     {.programs = {{.preset = "resnet50", .knobs = {"batch.size=32"}}},
      .phases = {{RECIPE_BUILD, 0, 0, 0}, {RECIPE_STEPS, 0, 0, 1}, {RECIPE_STEPS, 0, 1, 1}},
      .loop_from = 1,
      .times = 3}},

    {{.name = "growth_boundary",
      .complaint = "tensorflow #6111",
      .line = "GPT-2 at batch 8 fits a pool that was taken at once, and not one that grew",
      .explanation =
          "With growth on, bfc asks for 2 MiB and doubles. No chunk reaches over the boundary of two "
          "regions, so each boundary keeps a rest that is too small for the next large tensor: the "
          "logits of 8 samples are 1.5 GiB in one piece.",
      .look_at =
          "bfc fails here, played with growth on; -s allocator.growth=off serves the same requests from "
          "one region",
      .setting = "allocator.growth=on",
      .limit_bytes = 12 * HR_GIB},
     {.programs = {{.preset = "gpt2_124m", .knobs = {"batch.size=8"}}},
      .phases = {{RECIPE_BUILD, 0, 0, 0}, {RECIPE_STEPS, 0, 0, 3}}}},

    {{.name = "region_collection",
      .complaint = "jax #788, tensorflow #26218",
      .line = "a small training, then a network of which one variable is half of the pool",
      .explanation =
          "The first network has grown the pool in regions of up to 290 MiB. All of them are free when "
          "VGG-16 comes for inference, and none is large enough for the 392 MiB of its first dense "
          "layer: nine tenths of the pool are free, in pieces that belong to the driver's ranges. Giving "
          "free regions back and asking again for one large one is what TensorFlow's garbage collection "
          "does; the allocator of JAX has it turned off.",
      .look_at = "allocator.garbage_collection=on serves it, and each time gives regions back to the driver, "
                 "which takes time; without growth there is one region and nothing to collect",
      .limit_bytes = 800 * HR_MIB},
     {.programs = {{.preset = "resnet18_cifar", .knobs = {"batch.size=64"}},
                   {.preset = "vgg16", .knobs = {"batch.size=4"}, .evaluates = true}},
      .phases = {{RECIPE_BUILD, 0, 0, 0},
                 {RECIPE_STEPS, 0, 0, 2},
                 {RECIPE_LET_GO, 0, 0, 0},
                 {RECIPE_BUILD, 1, 0, 0},
                 {RECIPE_STEPS, 1, 0, 2},
                 {RECIPE_LET_GO, 0, 0, 0}},
      .times = 3}},

    {{.name = "largest_hole",
      .complaint = "tensorflow #22586",
      .line = "out of memory with a third of the pool free: no hole is large enough",
      .explanation =
          "MobileNetV2 with recomputation keeps a few activations and makes the others again, among them "
          "those of 147 and 294 MiB. What is kept lies between what is made again, and a request of 294 "
          "MiB fails with 563 MiB free. Without recomputation the same step has hardly a hole.",
      .look_at = "largest_free beside free, and the chunks beside the largest holes; allocator.kind=static "
                 "packs the same step without holes, expandable segments move the boundaries",
      .limit_bytes = 1800 * HR_MIB},
     {.programs = {{.preset = "mobilenet_v2",
                    .knobs = {"batch.size=64", "checkpoint.strategy=sqrt", "execution.mode=graph"}}},
      .phases = {{RECIPE_BUILD, 0, 0, 0}, {RECIPE_STEPS, 0, 0, 3}}}},

    {{.name = "whole_chunks",
      .complaint = "TensorFlow's split rule",
      .line = "a chunk below twice the request goes out whole: a quarter of the pool is waste",
      .explanation =
          "bfc splits a free chunk when it has at least twice the bytes asked for, or 128 MiB to spare. "
          "With growth its regions double, and the 85 MiB of the LSTM's logits get 128 and 171 MiB.",
      .look_at =
          "waste, which is in_use minus requested, of bfc with growth. With -s allocator.growth=off there "
          "is one region and nothing to hand out whole",
      .setting = "allocator.growth=on",
      .limit_bytes = 600 * HR_MIB},
     {.programs = {{.preset = "lstm_lm_medium", .knobs = {"batch.size=64"}}},
      .phases = {{RECIPE_BUILD, 0, 0, 0}, {RECIPE_STEPS, 0, 0, 3}}}},

    {{.name = "two_copies",
      .complaint = "tensorflow #3373",
      .line = "a variable of more than half the pool, and its initial value beside it",
      .explanation =
          "Every weight is assigned from an initial value that lives until it is copied. The largest "
          "dense layer of VGG-16 has 392 MiB: for one moment of the build there are two of it, and no "
          "later step needs as much.",
      .look_at =
          "the event of the peak: it lies before the first step. No allocator helps; initial values made "
          "in place do",
      .limit_bytes = 700 * HR_MIB},
     {.programs = {{.preset = "vgg16", .knobs = {"batch.size=1"}, .evaluates = true}},
      .phases = {{RECIPE_ASSIGN, 0, 0, 0}, {RECIPE_STEPS, 0, 0, 3}}}},

    {{.name = "retained_predictions",
      .complaint = "pytorch #1840",
      .line = "a list of predictions that is never emptied: every step holds as much more",
      .explanation =
          "The predictions of each step are kept, 196 MiB of GPT-2's 50,257 classes. What lives at the "
          "end of a step rises by the same bytes every time, and a larger pool only fails later. "
          "Fragmentation looks different: it does not rise from step to step while the shapes stay.",
      .look_at =
          "in_use at the ends of steps. No allocator helps; keep a number (item()) in the list's place",
      .limit_bytes = 4 * HR_GIB},
     {.programs = {{.preset = "gpt2_124m", .knobs = {"batch.size=1", "execution.retain=predictions"}}},
      .phases = {{RECIPE_BUILD, 0, 0, 0}, {RECIPE_STEPS, 0, 0, MANY_STEPS}}}},

    {{.name = "pool_stays",
      .complaint = "tensorflow #36465, jax #3077",
      .line = "the training is over, everything is freed, and the card is still full",
      .explanation =
          "bfc and caching keep what they once had from the driver, for the next one who asks within the "
          "process. Other processes see it as used.",
      .look_at = "pool at the end, with in_use at 0: direct gives every range back, async what is above its "
                 "release threshold; the others at the end of the process",
      .limit_bytes = 6 * HR_GIB},
     {.programs = {{.preset = "resnet50", .knobs = {"batch.size=32"}}},
      .phases = {{RECIPE_BUILD, 0, 0, 0}, {RECIPE_STEPS, 0, 0, 2}, {RECIPE_LET_GO, 0, 0, 0}}}},

    {{.name = "small_tensors",
      .complaint = "xla #41761",
      .line = "MobileNetV2 at batch 1: hundreds of tensors far below the driver's 2 MiB",
      .explanation =
          "A range from the driver is whole pieces of 2 MiB. Given one each, the tensors of 98 MiB take "
          "1.6 GiB. Every other allocator cuts pieces from ranges it already has.",
      .look_at = "waste, and the peak of direct beside those of the others",
      .limit_bytes = 256 * HR_MIB},
     {.programs = {{.preset = "mobilenet_v2", .knobs = {"batch.size=1"}}},
      .phases = {{RECIPE_BUILD, 0, 0, 0}, {RECIPE_STEPS, 0, 0, 2}}}},
};

enum { ROWS = sizeof rows / sizeof *rows };

const hr_scenario *hr_scenario_row(size_t index)
{
    return index < ROWS ? &rows[index].about : NULL;
}

const hr_scenario *hr_scenario_find(const char *name, const char **suggestion)
{
    const char *names[ROWS];
    const hr_scenario *found = NULL;
    for (size_t k = 0; k < ROWS; k++) {
        names[k] = rows[k].about.name;
        found = strcmp(name, names[k]) == 0 ? &rows[k].about : found;
    }
    if (suggestion != NULL) {
        *suggestion = found == NULL ? text_nearest(name, names, ROWS) : NULL;
    }
    return found;
}

const recipe *scenario_recipe(const hr_scenario *scenario)
{
    return &((const scenario_row *)(const void *)scenario)->recipe;
}
