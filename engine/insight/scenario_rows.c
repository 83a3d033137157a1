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
    {{.name = "growth_boundary",
      .complaint = "tensorflow #6111",
      .line = "GPT-2 at batch 8 fits a pool that was taken at once, and not one that grew",
      .explanation =
          "With growth on, bfc asks for 2 MiB and doubles. No chunk reaches over the boundary of two "
          "regions, so each boundary keeps a rest that is too small for the next large tensor: the "
          "logits of 8 samples are 1.5 GiB in one piece.",
      .look_at = "bfc without growth (allocator.growth=off) serves the same requests from one region",
      .limit_bytes = 12 * HR_GIB},
     {.programs = {{.preset = "gpt2_124m", .knobs = {"batch.size=8"}}},
      .phases = {{RECIPE_BUILD, 0, 0, 0}, {RECIPE_STEPS, 0, 0, 3}}}},

    {{.name = "region_collection",
      .complaint = "jax #788, tensorflow #26218",
      .line = "a small training, and then a network of which one variable is half of the pool",
      .explanation =
          "The first network has grown the pool in regions of up to 290 MiB. All of them are free when "
          "VGG-16 comes for inference, and none is large enough for the 392 MiB of its first dense "
          "layer: nine tenths of the pool are free, in pieces that belong to the driver's ranges. "
          "Giving free regions back and asking again for one large one is what TensorFlow's garbage "
          "collection does; the allocator of JAX has it turned off.",
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
          "MobileNetV2 with recomputation keeps a few activations and makes the others again, among "
          "them those of 147 and 294 MiB. What is kept lies between what is made again, and a request "
          "of 294 MiB fails with 563 MiB free. Without recomputation the same step has hardly a hole.",
      .look_at = "largest_free beside free, and the chunks beside the largest holes; allocator.kind=static "
                 "packs the same step without holes, expandable segments move the boundaries",
      .limit_bytes = 1800 * HR_MIB},
     {.programs = {{.preset = "mobilenet_v2",
                    .knobs = {"batch.size=64", "checkpoint.strategy=sqrt", "execution.mode=graph"}}},
      .phases = {{RECIPE_BUILD, 0, 0, 0}, {RECIPE_STEPS, 0, 0, 3}}}},

    {{.name = "two_copies",
      .complaint = "tensorflow #3373",
      .line = "a variable of more than half the pool, and its initial value beside it",
      .explanation =
          "Every weight is assigned from an initial value that lives until it is copied. The largest "
          "dense layer of VGG-16 has 392 MiB: for one moment of the build there are two of it, and no "
          "later step needs as much.",
      .look_at = "the event of the peak: it lies before the first step. No allocator helps; initial values "
                 "made in place do",
      .limit_bytes = 700 * HR_MIB},
     {.programs = {{.preset = "vgg16", .knobs = {"batch.size=1"}, .evaluates = true}},
      .phases = {{RECIPE_ASSIGN, 0, 0, 0}, {RECIPE_STEPS, 0, 0, 3}}}},

    {{.name = "retained_predictions",
      .complaint = "pytorch #1840",
      .line = "a list of predictions that nobody empties: every step holds as much more",
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
          "bfc and caching keep what they once had from the driver, for the next one who asks within "
          "the process. Other processes see it as used.",
      .look_at = "pool at the end, with in_use at 0: direct gives every range back, async what is above its "
                 "release threshold; the others at the end of the process",
      .limit_bytes = 6 * HR_GIB},
     {.programs = {{.preset = "resnet50", .knobs = {"batch.size=32"}}},
      .phases = {{RECIPE_BUILD, 0, 0, 0}, {RECIPE_STEPS, 0, 0, 2}, {RECIPE_LET_GO, 0, 0, 0}}}},

    {{.name = "small_tensors",
      .complaint = "xla #41761",
      .line = "MobileNetV2 at batch 1: hundreds of tensors far below the driver's 2 MiB",
      .explanation =
          "A range from the driver is whole pieces of 2 MiB. Given one each, the tensors of 98 MiB "
          "take 1.6 GiB. Every other allocator cuts pieces from ranges it already has.",
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
