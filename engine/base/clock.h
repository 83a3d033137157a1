// SPDX-License-Identifier: Apache-2.0
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_now_ns(void); // monotonic

#endif
