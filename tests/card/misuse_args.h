// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_CARD_MISUSE_ARGS_H
#define TESTS_CARD_MISUSE_ARGS_H

#include <stdint.h>

typedef struct misuse_args {
    float *out;
    int64_t count;
} misuse_args;

#endif
