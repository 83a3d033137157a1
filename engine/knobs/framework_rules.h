// SPDX-License-Identifier: Apache-2.0
// What the rules of execution.as do not know: the conditions of their rows in constraints.c.
#ifndef KNOBS_FRAMEWORK_RULES_H
#define KNOBS_FRAMEWORK_RULES_H

#include <stdbool.h>

#include "headroom/knobs.h"

bool pytorch_graph(const hr_knobs *knobs);
bool pytorch_two_bytes(const hr_knobs *knobs);
bool pytorch_selects(const hr_knobs *knobs);
bool pytorch_offloads_activations(const hr_knobs *knobs);
bool pytorch_offloads_slots(const hr_knobs *knobs);
bool pytorch_fused_backward(const hr_knobs *knobs);
bool pytorch_averages(const hr_knobs *knobs);
bool pytorch_other_optimizer(const hr_knobs *knobs);
bool tensorflow_graph(const hr_knobs *knobs);
bool tensorflow_two_bytes(const hr_knobs *knobs);
bool tensorflow_checkpoints(const hr_knobs *knobs);
bool tensorflow_accumulates(const hr_knobs *knobs);
bool tensorflow_offloads_activations(const hr_knobs *knobs);
bool tensorflow_offloads_slots(const hr_knobs *knobs);
bool tensorflow_fused_backward(const hr_knobs *knobs);
bool tensorflow_averages(const hr_knobs *knobs);
bool tensorflow_clips(const hr_knobs *knobs);
bool tensorflow_other_optimizer(const hr_knobs *knobs);

#endif
