// SPDX-License-Identifier: Apache-2.0
// Dropout's masks on a card: those of every other device.
#define TEST_DEVICE "cuda"
#define TEST_TYPE   HR_F32
#include "numeric/test_dropout.c"
