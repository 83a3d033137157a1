// SPDX-License-Identifier: Apache-2.0
#include "app/tui/screens/fit/axis.h"

static const double log_from = 8; // times between the ends

static double on_scale(const fit_axis *t, double value)
{
    return t->is_log ? log(value) : value;
}

static double off_scale(const fit_axis *t, double place)
{
    return t->is_log ? exp(place) : place;
}

void fit_axis_take(fit_axis *t, double value)
{
    t->low = fmin(t->low, value);
    t->high = fmax(t->high, value);
}

void fit_axis_settle(fit_axis *t, bool may_be_log, double below, double above)
{
    t->is_log = may_be_log && t->low > 0 && t->high > log_from * t->low;
    const double low = on_scale(t, t->low), high = on_scale(t, t->high), wide = high - low;
    if (wide > 0) {
        t->low = off_scale(t, low - below * wide);
        t->high = off_scale(t, high + above * wide);
    } else { // one value, in the middle
        t->low /= 2;
        t->high = t->high > 0 ? 3 * t->high / 2 : 1;
    }
}

double fit_axis_share(const fit_axis *t, double value)
{
    const double low = on_scale(t, t->low), wide = on_scale(t, t->high) - low;
    return fmin(1, fmax(0, (on_scale(t, fmax(value, t->low)) - low) / wide));
}
