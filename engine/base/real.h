// SPDX-License-Identifier: Apache-2.0
// A double as a float, the same on every thread: workers take what is below the smallest normal float for zero
// (base/workers.c), others do not, so that here it is zero on all of them.
#ifndef BASE_REAL_H
#define BASE_REAL_H

#include <float.h>
#include <math.h>

static inline float float_of_double(double value)
{
    return fabs(value) < (double)FLT_MIN ? (signbit(value) ? -0.0f : 0.0f) : (float)value;
}

#endif
