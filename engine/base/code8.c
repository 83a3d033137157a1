// SPDX-License-Identifier: Apache-2.0
#include "base/code8.h"

enum { DECADES = 7 };

// The middles of `cells` equal cells of [0.1, 1], a power of ten smaller for each decade below the last.
static double middle(int decade, int cells, int cell)
{
    double value = 0.1 + 0.9 * ((double)cell + 0.5) / (double)cells;
    for (int k = decade; k < DECADES - 1; k++) {
        value /= 10.0;
    }
    return value;
}

void code8_table(code8_kind kind, float values[CODE8_VALUES])
{
    const int zero = kind == CODE8_SIGNED ? CODE8_VALUES / 2 - 1 : 0;
    int at = 1;
    for (int decade = 0; decade < DECADES; decade++) {
        const int cells = kind == CODE8_SIGNED ? 1 << decade : 2 << decade;
        for (int cell = 0; cell < cells; cell++, at++) {
            values[zero + at] = (float)middle(decade, cells, cell);
            if (kind == CODE8_SIGNED) {
                values[zero - at] = -values[zero + at];
            }
        }
    }
    values[zero] = 0.0f;
    values[CODE8_VALUES - 1] = 1.0f;
}

uint8_t code8_nearest(const float values[CODE8_VALUES], double x)
{
    unsigned low = 0, high = CODE8_VALUES - 1;
    while (low < high) { // the first code that x is not beyond the middle of
        const unsigned at = (low + high) / 2;
        if (x > ((double)values[at] + (double)values[at + 1]) / 2) {
            low = at + 1;
        } else {
            high = at;
        }
    }
    return (uint8_t)low;
}
