// SPDX-License-Identifier: Apache-2.0
// Updates against PyTorch's, on a card.
#define TEST_DEVICE "cuda"
#include "numeric/test_update_fixtures.c"
