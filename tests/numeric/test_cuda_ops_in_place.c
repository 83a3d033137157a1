// SPDX-License-Identifier: Apache-2.0
// Results in the place of their inputs, on a card.
#define TEST_DEVICE "cuda"
#include "numeric/test_ops_in_place_cpu.c"
