// SPDX-License-Identifier: Apache-2.0
// The tests of whole training steps, on a card.
#define TEST_DEVICE "cuda"
#include "numeric/test_cpu_step.c"
