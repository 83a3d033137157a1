// SPDX-License-Identifier: Apache-2.0
// A training under mixed_float16 whose gradients overflow, on a card.
#define TEST_DEVICE "cuda"
#include "numeric/test_loss_scale.c"
