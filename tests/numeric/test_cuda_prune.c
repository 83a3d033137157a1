// SPDX-License-Identifier: Apache-2.0
// Pruning on a card.
#define TEST_DEVICE "cuda"
#include "numeric/test_prune.c"
