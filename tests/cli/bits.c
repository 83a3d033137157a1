// SPDX-License-Identifier: Apache-2.0
#include "bits.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/engine.h"
#include "headroom/preset.h"

#include "covering.h"

enum { STEPS = 3, MAX_PAIRS = 5 };

const char *const bits_models[BITS_MODELS] = {"cifar10_separable_cnn_tiny",
                                              "resnet50_tiny",
                                              "mobilenet_v2_tiny",
                                              "unet_tiny",
                                              "gpt2_124m_tiny",
                                              "bert_base_tiny",
                                              "vit_b16_tiny",
                                              "lstm_lm_medium_tiny"};

// How the peak stands to that of the variant `than`.
typedef enum relation { ANY, LESS, MORE } relation;

typedef struct variant {
    const char *pairs[MAX_PAIRS];
    int than;
    relation peak;
} variant;

static const variant variants[] = {
    {{"execution.mode=eager"}, 0, ANY},
    {{"execution.mode=graph"}, 0, LESS},
    {{"execution.mode=graph", "execution.inplace=off"}, 1, ANY},
    {{"execution.mode=graph", "allocator.kind=static"}, 1, ANY},
    {{"execution.mode=eager", "allocator.growth=on"}, 0, ANY},
    {{"execution.mode=eager", "execution.tape=persistent"}, 0, ANY},
    {{"execution.mode=eager", "execution.retain=predictions"}, 0, MORE},
    {{"execution.mode=eager", "checkpoint.strategy=every:1"}, 0, ANY},
    {{"execution.mode=eager", "checkpoint.strategy=sqrt"}, 0, LESS},
    {{"execution.mode=eager", "checkpoint.strategy=selective"}, 0, ANY},
    {{"execution.mode=graph", "checkpoint.strategy=every:3"}, 1, ANY},
    {{"execution.mode=graph", "checkpoint.strategy=blocks"}, 1, ANY},
    {{"execution.mode=graph", "checkpoint.strategy=selective"}, 1, ANY},
    {{"execution.mode=eager", "offload.activations=on", "offload.prefetch=0"}, 0, LESS},
    {{"execution.mode=graph", "offload.optimizer=on", "offload.prefetch=0"}, 1, LESS},
    {{"execution.mode=graph", "offload.optimizer=on", "offload.activations=on", "checkpoint.strategy=sqrt"},
     1,
     LESS},
    {{"execution.mode=graph", "allocator.kind=static", "checkpoint.strategy=sqrt"}, 3, ANY},
    {{"execution.mode=graph", "optimizer.fused_backward=on"}, 1, ANY},
    {{"execution.mode=eager", "pipeline.device_prefetch=1"}, 0, MORE},
    {{"execution.mode=graph", "pipeline.device_prefetch=3"}, 1, MORE},
    {{"execution.mode=graph", "allocator.kind=static", "pipeline.device_prefetch=2", "offload.activations=on",
      "offload.optimizer=on"},
     3,
     ANY},
};
enum {
    VARIANTS = sizeof variants / sizeof *variants,
    BASES = 4
}; // what others are measured against is always run

typedef struct finding {
    char sha256[HR_SHA256_TEXT_MAX];
    uint64_t peak_bytes;
    bool has_no_rule; // execution.as refuses the model, and nothing was trained
} finding;

static void turn(hr_knobs *knobs, const char *pair)
{
    hr_err err = {0};
    ck_assert_msg(hr_knobs_set_pair(knobs, pair, &err) == HR_OK, "%s", err.sentence);
}

// What execution.as refuses by name; every other model is trained.
static const struct {
    const char *as, *model, *operation;
} without_rule[] = {
    {"pytorch", "lstm_lm_medium_tiny", "lstm"},    {"tensorflow", "lstm_lm_medium_tiny", "lstm"},
    {"tensorflow", "gpt2_124m_tiny", "attention"}, {"tensorflow", "bert_base_tiny", "attention"},
    {"tensorflow", "vit_b16_tiny", "broadcast"},
};

static void refusal_of(const hr_preset *preset, const hr_knobs *knobs, char *sentence, size_t size)
{
    sentence[0] = '\0';
    for (size_t k = 0; k < sizeof without_rule / sizeof *without_rule; k++) {
        if (strcmp(without_rule[k].model, hr_preset_name(preset)) == 0 &&
            hr_knob_is(knobs, HR_KNOB_EXECUTION_AS, without_rule[k].as)) {
            (void)snprintf(sentence, size, "execution.as=%s has no rule for %s ", without_rule[k].as,
                           without_rule[k].operation);
        }
    }
}

static const char out_of_budget[] = "checkpoint.strategy=budget:";

// Three steps under these knobs, or the refusal that is expected; `what` names them when it fails.
static finding train_knobs(const hr_preset *preset, const hr_knobs *knobs, const char *what)
{
    hr_err err = {0};
    hr_engine *engine = NULL;
    hr_report report = {0};
    finding f = {.peak_bytes = 0};
    ck_assert_msg(hr_engine_create(preset, knobs, &(hr_engine_options){0}, &engine, &err) == HR_OK, "%s: %s",
                  what, err.sentence);
    hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = STEPS};
    ck_assert_int_eq(hr_engine_command(engine, &run, &err), HR_OK);
    for (bool idle = false; !idle;) {
        hr_engine_advance(engine, &idle);
    }
    char refusal[128];
    refusal_of(preset, knobs, refusal, sizeof refusal);
    const char *said = hr_engine_error(engine)->sentence;
    if (strncmp(said, out_of_budget, sizeof out_of_budget - 1) ==
        0) { // whether a model can keep it is known behind the compiling
        (void)snprintf(refusal, sizeof refusal, "%s", out_of_budget);
    }
    f.has_no_rule = refusal[0] != '\0';
    ck_assert_msg(f.has_no_rule ? strncmp(said, refusal, strlen(refusal)) == 0
                                : hr_engine_steps(engine) == STEPS,
                  "%s, %s: %s", hr_preset_name(preset), what, said);
    ck_assert_int_eq(hr_engine_report(engine, &report, &err), HR_OK);
    snprintf(f.sha256, sizeof f.sha256, "%s", report.train.weights_sha256);
    f.peak_bytes = report.memory.peak_requested_bytes; // what the program asks for, without rounding
    hr_report_deinit(&report);
    hr_engine_destroy(engine);
    return f;
}

static finding train(const hr_preset *preset, const char *const *pairs, const variant *v)
{
    static const char *const base[] = {"device.card=", "device.vram=4GiB",          "threads.count=1",
                                       "batch.size=6", "execution.fuse=off",        "optimizer.kind=adam",
                                       "train.seed=5", "pipeline.device_prefetch=0"};
    hr_knobs knobs = *hr_preset_knobs(preset);
    for (size_t k = 0; k < sizeof base / sizeof *base; k++) {
        turn(&knobs, base[k]);
    }
    for (; *pairs != NULL; pairs++) {
        turn(&knobs, *pairs);
    }
    for (size_t k = 0; k < MAX_PAIRS && v->pairs[k] != NULL; k++) {
        turn(&knobs, v->pairs[k]);
    }
    return train_knobs(preset, &knobs, v->pairs[v->pairs[1] == NULL ? 0 : 1]);
}

void bits_check(const char *model, const char *const *pairs, int first, int nth)
{
    hr_preset *preset = NULL;
    hr_err err = {0};
    finding found[VARIANTS];
    ck_assert_msg(hr_preset_open(model, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    for (int k = 0; k < VARIANTS; k++) {
        if (k >= BASES && k % nth != first % nth) {
            continue;
        }
        const variant *v = &variants[k];
        const char *what = v->pairs[v->pairs[1] == NULL ? 0 : 1];
        found[k] = train(preset, pairs, v);
        ck_assert_msg(strcmp(found[k].sha256, found[0].sha256) == 0, "%s: other weights with %s", model,
                      what);
        const uint64_t than = found[v->than].peak_bytes;
        ck_assert_msg((v->peak != LESS || found[k].peak_bytes < than) &&
                          (v->peak != MORE || found[k].peak_bytes > than),
                      "%s: a peak of %" PRIu64 " with %s, %" PRIu64 " without", model, found[k].peak_bytes,
                      what, than);
    }
    hr_preset_close(preset);
}

void bits_check_blocks(const char *model, const char *const *pairs)
{
    static const char *const frameworks[] = {"execution.as=headroom", "execution.as=pytorch"};
    static const char *const policies[] = {"precision.policy=float32", "precision.policy=mixed_bfloat16"};
    hr_preset *preset = NULL;
    hr_err err = {0};
    ck_assert_msg(hr_preset_open(model, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    for (int k = 0; k < 4; k++) {
        variant v = {
            {"execution.mode=eager", frameworks[k / 2], policies[k % 2], "checkpoint.strategy=none"}, 0, ANY};
        const finding plain = train(preset, pairs, &v);
        v.pairs[3] = "checkpoint.strategy=blocks";
        const finding blocks = train(preset, pairs, &v);
        ck_assert_msg(strcmp(plain.sha256, blocks.sha256) == 0, "%s, %s, %s: other weights in blocks", model,
                      frameworks[k / 2], policies[k % 2]);
        ck_assert_uint_lt(blocks.peak_bytes, plain.peak_bytes);
    }
    hr_preset_close(preset);
}

// ---- knob by knob ---------------------------------------------------------------------------------------------

static const struct {
    hr_knob_id id;
    const char *why;
} arithmetic[] = {
    {HR_KNOB_BATCH_SIZE, "other samples"},
    {HR_KNOB_BATCH_ACCUMULATE, "gradients are summed in another order"},
    {HR_KNOB_BATCH_REMAINDER, "other samples at an epoch's end"},
    {HR_KNOB_PRECISION_POLICY, "another number type"},
    {HR_KNOB_PRECISION_LOSS_SCALE, "gradients are multiplied and divided"},
    {HR_KNOB_EXECUTION_FUSE, "other kernels"},
    {HR_KNOB_EXECUTION_TAPE, "none takes no step; persistent is one of the ways above"},
    {HR_KNOB_COMPRESS_PRUNE, "weights become zero"},
    {HR_KNOB_COMPRESS_PRUNE_STRUCTURE, "other weights become zero"},
    {HR_KNOB_COMPRESS_QUANTIZE, "qat rounds what products read"},
    {HR_KNOB_OPTIMIZER_KIND, "another rule"},
    {HR_KNOB_OPTIMIZER_LEARNING_RATE, "another rule"},
    {HR_KNOB_OPTIMIZER_FORM, "another rule"},
    {HR_KNOB_OPTIMIZER_BETA1, "another rule"},
    {HR_KNOB_OPTIMIZER_BETA2, "another rule"},
    {HR_KNOB_OPTIMIZER_EPSILON, "another rule"},
    {HR_KNOB_OPTIMIZER_WEIGHT_DECAY, "another rule"},
    {HR_KNOB_OPTIMIZER_CLIP_NORM, "another rule"},
    {HR_KNOB_OPTIMIZER_SCHEDULE, "another rule"},
    {HR_KNOB_OPTIMIZER_SCHEDULE_UPDATES, "another rule"},
    {HR_KNOB_OPTIMIZER_SCHEDULE_FACTOR, "another rule"},
    {HR_KNOB_OPTIMIZER_WARMUP, "another rule"},
    {HR_KNOB_WORKSPACE_LIMIT, "other kernels"},
    {HR_KNOB_THREADS_COUNT, "sums are cut into other ranges"},
    {HR_KNOB_PIPELINE_STAGES, "another order of samples, in front of a cache or behind repeat"},
    {HR_KNOB_PIPELINE_SAMPLES, "other samples"},
    {HR_KNOB_PIPELINE_AUGMENT, "other images"},
    {HR_KNOB_PIPELINE_AUGMENT_COPIES, "other images"},
    {HR_KNOB_PIPELINE_SHUFFLE, "another order of samples"},
    {HR_KNOB_PIPELINE_RESIDENT, "every step takes the first batch"},
    {HR_KNOB_TRAIN_SEED, "other weights and another order"},
};

static bool does_arithmetic(hr_knob_id id)
{
    bool found = id == HR_KNOB_COUNT || hr_knob_shapes_model(id); // another model
    for (size_t k = 0; k < sizeof arithmetic / sizeof *arithmetic; k++) {
        found |= arithmetic[k].id == id;
    }
    return found;
}

// The axes that may not be turned for the sake of another one.
static axis_set fixed_axes(const axis *axes, size_t count)
{
    axis_set fixed = {0};
    for (size_t a = 0; a < count; a++) {
        fixed.has[a] = does_arithmetic(axes[a].id);
    }
    return fixed;
}

static hr_knobs knobs_of(const hr_preset *preset, const configuration *c)
{
    hr_knobs knobs = *hr_preset_knobs(preset);
    turn(&knobs, "device.kind=cpu");
    turn(&knobs, "device.card=");
    turn(&knobs, "device.vram=4GiB");
    configuration_apply(c, &knobs);
    return knobs;
}

void bits_check_knobs(const char *model)
{
    const axis *axes = NULL;
    const size_t count = covering_axes(&axes);
    const axis_set fixed = fixed_axes(axes, count);
    const configuration nothing = {{0}};
    hr_preset *preset = NULL;
    hr_err err = {0};
    size_t turned = 0;
    ck_assert_msg(hr_preset_open(model, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    hr_knobs knobs = knobs_of(preset, &nothing);
    const finding plain = train_knobs(preset, &knobs, "nothing turned");
    for (size_t a = 0; a < count; a++) {
        for (size_t v = 1; !fixed.has[a] && v < axis_value_count(&axes[a]); v++) {
            char text[1024];
            axis_set kept = fixed;
            configuration c = nothing;
            kept.has[a] = true;
            c.value[a] = (uint8_t)v;
            if (!configuration_mend(&c, &kept)) {
                continue; // not without arithmetic
            }
            knobs = knobs_of(preset, &c);
            const finding f = train_knobs(preset, &knobs, configuration_text(&c, text, sizeof text));
            if (f.has_no_rule) {
                continue;
            }
            ck_assert_msg(strcmp(f.sha256, plain.sha256) == 0, "%s: other weights with %s", model,
                          configuration_text(&c, text, sizeof text));
            turned++;
        }
    }
    ck_assert_uint_gt(turned, 20);
    hr_preset_close(preset);
}
