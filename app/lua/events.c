// SPDX-License-Identifier: Apache-2.0
#include "app/lua/events.h"

// clang-format off
static const lua_script_field alloc_fields[] = {
    {"step", "integer", "training steps done before it"},
    {"requested_bytes", "hr.Bytes", "bytes that the program asked for"},
    {"allocated_bytes", "hr.Bytes", "bytes of the chunk that it got"},
    {"category", "string", "of the tensor: weights, activations, …"},
    {"phase", "string", "forward, backward, update, build"},
    {"in_use_bytes", "hr.Bytes", "behind it"},
    {"pool_bytes", "hr.Bytes", "behind it"},
    {NULL, NULL, NULL},
};
static const lua_script_field step_number[] = {
    {"step", "integer", "number of the step, from 1 on"},
    {NULL, NULL, NULL},
};
static const lua_script_field before_update_fields[] = {
    {"step", "integer", "number of the step, from 1 on"},
    {"gradient_norm", "number|nil", "root of the sum of the squares of all gradients, unscaled and not clipped yet; computed when it is read, "
     "while the callback runs. nil where nothing is computed, with optimizer.fused_backward, and where steps are captured"},
    {NULL, NULL, NULL},
};
static const lua_script_field epoch_fields[] = {
    {"epoch", "integer", "epochs that have ended"},
    {"step", "integer", "training steps done"},
    {"loss", "number|nil", "of the last step"},
    {"eval_loss", "number|nil", "on what is held out"},
    {"eval_accuracy", "number|nil", "on what is held out"},
    {NULL, NULL, NULL},
};
static const lua_script_field epoch_begin_fields[] = {
    {"step", "integer", "training steps done"},
    {NULL, NULL, NULL},
};
static const lua_script_field evaluation_fields[] = {
    {"step", "integer", "training steps done"},
    {"eval_loss", "number|nil", "on what is held out"},
    {"eval_accuracy", "number|nil", "on what is held out"},
    {"samples", "integer", "that were evaluated"},
    {NULL, NULL, NULL},
};
static const lua_script_field nonfinite_fields[] = {
    {"step", "integer", "number of the step"},
    {"loss", "number", "of the step: may be infinite or not a number"},
    {"skipped", "boolean", "its update did not happen, as a gradient was not finite (precision.loss_scale)"},
    {NULL, NULL, NULL},
};
static const lua_script_field rebuild_fields[] = {
    {"step", "integer", "training steps done"},
    {"instructions", "integer", "of the step program that is new"},
    {NULL, NULL, NULL},
};
static const lua_script_field save_fields[] = {
    {"step", "integer", "training steps done"},
    {"path", "string", "of the file; a long one is cut"},
    {NULL, NULL, NULL},
};
static const lua_script_field scale_fields[] = {
    {"step", "integer", "number of the step"},
    {"skipped_steps", "integer", "steps that updated nothing, because a gradient was not finite"},
    {NULL, NULL, NULL},
};
static const lua_script_field step_fields[] = {
    {"step", "integer", "number of the step, from 1 on"},
    {"loss", "number|nil", "nil where nothing is computed, or when it is not finite"},
    {"samples", "integer", "of the step"},
    {"seconds", "number", "that it took; simulated on the device plan"},
    {"wait_seconds", "number", "of them, waiting for data"},
    {"examples_per_second", "number|nil", "training samples a second"},
    {"peak_in_use_bytes", "hr.Bytes", "largest in use within the step"},
    {"floor_in_use_bytes", "hr.Bytes", "smallest in use within the step"},
    {"gradient_norm", "number|nil", "that of before_update, where the option `gradient_norm` asks for it"},
    {NULL, NULL, NULL},
};
static const lua_script_field train_begin_fields[] = {
    {"step", "integer", "training steps done before"},
    {NULL, NULL, NULL},
};
static const lua_script_field train_end_fields[] = {
    {"step", "integer", "training steps done"},
    {"loss", "number|nil", "of the last step"},
    {NULL, NULL, NULL},
};

const script_event_row script_event_rows[SCRIPT_EVENT_COUNT] = {
    [SCRIPT_EVENT_ALLOC] = {"alloc", "memory was handed out: of each request of at least the option `above`, behind its step",
                            alloc_fields},
    [SCRIPT_EVENT_BEFORE_UPDATE] = {"before_update", "the gradients of a step are there and no weight has changed: to look, not to turn a knob",
                                    before_update_fields},
    [SCRIPT_EVENT_EPOCH] = {"epoch", "an epoch of data has ended, and what is held out was evaluated", epoch_fields},
    [SCRIPT_EVENT_EPOCH_BEGIN] = {"epoch_begin", "before the first step of an epoch", epoch_begin_fields},
    [SCRIPT_EVENT_EVALUATION] = {"evaluation", "what is held out was evaluated, at the end of an epoch or by hr.eval",
                                 evaluation_fields},
    [SCRIPT_EVENT_NONFINITE] = {"nonfinite", "the loss or a gradient of a step was not finite", nonfinite_fields},
    [SCRIPT_EVENT_OOM] = {"oom", "memory ran out; a function that turns a knob and returns true lets the run go on", NULL},
    [SCRIPT_EVENT_REBUILD] = {"rebuild", "the step program is new, as at the beginning and behind a knob that needs it",
                              rebuild_fields},
    [SCRIPT_EVENT_SAVE] = {"save", "a save was written", save_fields},
    [SCRIPT_EVENT_SCALE] = {"scale", "the dynamic loss scale changed, or a step was skipped for it", scale_fields},
    [SCRIPT_EVENT_STEP] = {"step", "a training step has ended", step_fields},
    [SCRIPT_EVENT_STEP_BEGIN] = {"step_begin", "before a training step; a knob turned here holds for it", step_number},
    [SCRIPT_EVENT_TRAIN_BEGIN] = {"train_begin", "a call of hr.run begins", train_begin_fields},
    [SCRIPT_EVENT_TRAIN_END] = {"train_end", "a call of hr.run ends without an error", train_end_fields},
};

const lua_script_field script_now_fields[] = {
    {"learning_rate", "number", "of the next update"},
    {"steps_per_epoch", "integer|nil", "of an epoch of data, from its first sample on; nil where no data is read"},
    {"loss_scale", "number|nil", "of the last step; nil where none is used"},
    {"in_use_bytes", "hr.Bytes|nil", "bytes of the chunks handed out, rounding included"},
    {"pool_bytes", "hr.Bytes|nil", "bytes that the allocator holds from the device, used or not"},
    {"largest_free_bytes", "hr.Bytes|nil", "the largest free piece of the pool"},
    {"fragmentation", "number|nil", "share of the pool's free bytes that are not in the largest piece"},
    {"by_category", "table<string, hr.Bytes>", "requested bytes, for each category"},
    {NULL, NULL, NULL},
};
// clang-format on
