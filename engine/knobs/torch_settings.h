// SPDX-License-Identifier: Apache-2.0
// The settings of allocator.kind caching: PyTorch's configuration string in allocator.conf, and the knobs that say the
// same one by one. A knob that is set wins over the string; both saying different things is refused
// (constraints.c).
#ifndef KNOBS_TORCH_SETTINGS_H
#define KNOBS_TORCH_SETTINGS_H

#include "headroom/knobs.h"

#include "knobs/torch_conf.h"

torch_conf torch_settings_of(const hr_knobs *knobs);
// Does the string say a setting otherwise than a knob beside it?
bool torch_settings_differ(const hr_knobs *knobs);
// What allocator.fraction, or for caching per_process_memory_fraction, asks for; 0: nothing.
double torch_settings_fraction(const hr_knobs *knobs);

#endif
