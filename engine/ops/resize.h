// SPDX-License-Identifier: Apache-2.0
// Which places of an image a place of a resized one lies between (RESIZE, bilinear), in whole numbers, so that every device
// and both directions agree to the last place. Place o of y lies at (o * step + start) / per places of x, and not before
// the first: with half pixels at (o + 1/2) * in / out - 1/2, with corners that lie on one another at o * (in - 1) / (out - 1).
#ifndef OPS_RESIZE_H
#define OPS_RESIZE_H

#include "ops/op.h"

// One side of both images.
typedef struct resize_axis {
    int64_t step, start, per;
    int64_t out, last; // places of y; the last place of x
} resize_axis;

// Between places `at` and `next` of x, `part` / per of the way.
typedef struct resize_tap {
    int64_t at, next, part;
} resize_tap;

static inline resize_axis resize_axis_of(const op_attr *attr, int64_t in, int64_t out)
{
    const bool corners = (attr->flags & OP_FLAG_CORNERS) != 0, one = out == 1;
    return corners ? (resize_axis){one ? 0 : in - 1, 0, one ? 1 : out - 1, out, in - 1}
                   : (resize_axis){2 * in, in - out, 2 * out, out, in - 1};
}

static inline resize_tap resize_tap_of(const resize_axis *a, int64_t o)
{
    const int64_t way = o * a->step + a->start, on = way < 0 ? 0 : way, at = on / a->per;
    return (resize_tap){at, at < a->last ? at + 1 : at, on - at * a->per};
}

// The first place of y at or behind place `at` of x; `out` when there is none. What place i of x is part of are those
// from that of i - 1 up to that of i + 1.
static inline int64_t resize_first(const resize_axis *a, int64_t at)
{
    const int64_t way = at * a->per - a->start;
    if (at <= 0 || way <= 0) {
        return 0;
    }
    const int64_t first = a->step == 0 ? a->out : (way + a->step - 1) / a->step;
    return first < a->out ? first : a->out;
}

// The share of place i of x in place o of y, in `per` parts.
static inline int64_t resize_share(const resize_axis *a, int64_t o, int64_t i)
{
    const resize_tap t = resize_tap_of(a, o);
    return (t.at == i ? a->per - t.part : 0) + (t.next == i ? t.part : 0);
}

#endif
