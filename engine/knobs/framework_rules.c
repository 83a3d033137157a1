// SPDX-License-Identifier: Apache-2.0
#include "knobs/framework_rules.h"

#include "knobs/checkpoint.h"

// ---- execution.as=pytorch: what its rules do not know yet ---------------------------------------------------

static bool pytorch(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_EXECUTION_AS, "pytorch");
}

bool pytorch_graph(const hr_knobs *knobs)
{
    return pytorch(knobs) && hr_knob_is(knobs, HR_KNOB_EXECUTION_MODE, "graph");
}

bool pytorch_two_bytes(const hr_knobs *knobs)
{
    return pytorch(knobs) && !hr_knob_is(knobs, HR_KNOB_PRECISION_POLICY, "float32") &&
           !hr_knob_is(knobs, HR_KNOB_PRECISION_POLICY, "float64") &&
           !hr_knob_is(knobs, HR_KNOB_PRECISION_POLICY, "mixed_bfloat16");
}

bool pytorch_selects(const hr_knobs *knobs)
{
    return pytorch(knobs) &&
           (hr_knob_is(knobs, HR_KNOB_CHECKPOINT_STRATEGY, "selective") || checkpoint_is_budget(knobs));
}

bool pytorch_offloads_activations(const hr_knobs *knobs)
{
    return pytorch(knobs) && hr_knob_is(knobs, HR_KNOB_OFFLOAD_ACTIVATIONS, "on");
}

bool pytorch_offloads_slots(const hr_knobs *knobs)
{
    return pytorch(knobs) && hr_knob_is(knobs, HR_KNOB_OFFLOAD_OPTIMIZER, "on");
}

bool pytorch_fused_backward(const hr_knobs *knobs)
{
    return pytorch(knobs) && hr_knob_is(knobs, HR_KNOB_OPTIMIZER_FUSED_BACKWARD, "on");
}

bool pytorch_averages(const hr_knobs *knobs)
{
    return pytorch(knobs) && hr_knob_is_set(knobs, HR_KNOB_OPTIMIZER_EMA);
}

// torch.optim's that are also ours.
static bool pytorch_optimizes(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_OPTIMIZER_KIND, "sgd") ||
           hr_knob_is(knobs, HR_KNOB_OPTIMIZER_KIND, "momentum") ||
           hr_knob_is(knobs, HR_KNOB_OPTIMIZER_KIND, "rmsprop") ||
           hr_knob_is(knobs, HR_KNOB_OPTIMIZER_KIND, "adam") ||
           hr_knob_is(knobs, HR_KNOB_OPTIMIZER_KIND, "adamw");
}

bool pytorch_other_optimizer(const hr_knobs *knobs)
{
    return pytorch(knobs) && !pytorch_optimizes(knobs);
}

// ---- execution.as=tensorflow ------------------------------------------------------------------------------------

static bool tensorflow(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_EXECUTION_AS, "tensorflow");
}

bool tensorflow_graph(const hr_knobs *knobs)
{
    return tensorflow(knobs) && hr_knob_is(knobs, HR_KNOB_EXECUTION_MODE, "graph");
}

bool tensorflow_two_bytes(const hr_knobs *knobs)
{
    return tensorflow(knobs) && !hr_knob_is(knobs, HR_KNOB_PRECISION_POLICY, "float32") &&
           !hr_knob_is(knobs, HR_KNOB_PRECISION_POLICY, "float64");
}

bool tensorflow_checkpoints(const hr_knobs *knobs)
{
    return tensorflow(knobs) && !hr_knob_is(knobs, HR_KNOB_CHECKPOINT_STRATEGY, "none");
}

bool tensorflow_accumulates(const hr_knobs *knobs)
{
    return tensorflow(knobs) && hr_knob_int(knobs, HR_KNOB_BATCH_ACCUMULATE) > 1;
}

bool tensorflow_offloads_activations(const hr_knobs *knobs)
{
    return tensorflow(knobs) && hr_knob_is(knobs, HR_KNOB_OFFLOAD_ACTIVATIONS, "on");
}

bool tensorflow_offloads_slots(const hr_knobs *knobs)
{
    return tensorflow(knobs) && hr_knob_is(knobs, HR_KNOB_OFFLOAD_OPTIMIZER, "on");
}

bool tensorflow_fused_backward(const hr_knobs *knobs)
{
    return tensorflow(knobs) && hr_knob_is(knobs, HR_KNOB_OPTIMIZER_FUSED_BACKWARD, "on");
}

bool tensorflow_averages(const hr_knobs *knobs)
{
    return tensorflow(knobs) && hr_knob_is_set(knobs, HR_KNOB_OPTIMIZER_EMA);
}

bool tensorflow_clips(const hr_knobs *knobs)
{
    return tensorflow(knobs) && hr_knob_is_set(knobs, HR_KNOB_OPTIMIZER_CLIP_NORM);
}

bool tensorflow_other_optimizer(const hr_knobs *knobs)
{
    return tensorflow(knobs) && !pytorch_optimizes(knobs) &&
           !hr_knob_is(knobs, HR_KNOB_OPTIMIZER_KIND, "lion");
}
