// SPDX-License-Identifier: Apache-2.0
// Fake quantization on a card.
#define TEST_DEVICE "cuda"
#include "numeric/test_fake_quant.c"
