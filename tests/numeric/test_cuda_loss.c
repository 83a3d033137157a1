// SPDX-License-Identifier: Apache-2.0
// Streaming cross-entropy, on a card.
#define TEST_DEVICE "cuda"
#include "numeric/test_cpu_loss.c"
