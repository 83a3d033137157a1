// SPDX-License-Identifier: Apache-2.0
// An axis of FRONTIER, logarithmic where its ends are far apart.
#ifndef TUI_SCREENS_FIT_AXIS_H
#define TUI_SCREENS_FIT_AXIS_H

#include <math.h>
#include <stdbool.h>

typedef struct fit_axis {
    double low, high;
    bool is_log;
} fit_axis;

#define FIT_AXIS_EMPTY                                                                                       \
    (fit_axis)                                                                                               \
    {                                                                                                        \
        .low = (double)INFINITY, .high = -(double)INFINITY                                                   \
    }

void fit_axis_take(fit_axis *t, double value);
// Once all values are taken: chooses the scale, and leaves room beside the outermost ones, in shares of what lies between
// them.
void fit_axis_settle(fit_axis *t, bool may_be_log, double below, double above);
// How far along the axis, 0 … 1; what lies beyond an end is at it.
double fit_axis_share(const fit_axis *t, double value);

#endif
