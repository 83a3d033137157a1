// SPDX-License-Identifier: Apache-2.0
// What becomes whole numbers on a card, what is not finite among it.
#define TEST_DEVICE "cuda"
#include "numeric/test_quantize.c"
