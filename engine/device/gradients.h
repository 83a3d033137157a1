// SPDX-License-Identifier: Apache-2.0
// Where in a step its gradients are whole, and which they are: unscaled, summed over rounds, not clipped yet.
#ifndef DEVICE_GRADIENTS_H
#define DEVICE_GRADIENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "program/program.h"

// The first instruction that takes a gradient for an update, or the first of phase update where none does; HR_NO_ID: there is
// neither. *whole: all gradients are there before it, as they are not where an update follows each at once
// (optimizer.fused_backward).
uint32_t gradients_ready_at(const program *p, bool *whole);
// The next gradient from instruction *at on, which goes behind it: once for each variable. HR_NO_ID: there are no more.
// *at begins at ready_at.
uint32_t gradients_next(const program *p, uint32_t ready_at, uint32_t *at);

#endif
