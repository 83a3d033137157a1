// SPDX-License-Identifier: Apache-2.0
// What hr.plot draws, and its two pictures.
#ifndef APP_LUA_PLOT_H
#define APP_LUA_PLOT_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { PLOT_SERIES_MAX = 6, PLOT_POINTS_MAX = 100000, PLOT_TEXT_MAX = 64 };

typedef struct plot_series {
    char name[PLOT_TEXT_MAX];
    const double *y; // of every x; NaN where there is none
} plot_series;

typedef struct plot {
    char title[PLOT_TEXT_MAX], x_label[PLOT_TEXT_MAX];
    plot_series series[PLOT_SERIES_MAX];
    size_t series_count, point_count;
    const double *x;
    bool log_x, log_y, y_is_bytes;
    double x_least, x_most, y_least, y_most; // in the scale that is drawn: logarithms with log_x, log_y
} plot;

// Where a point is in that scale; not finite: nowhere.
static inline double plot_x(const plot *p, size_t point)
{
    return p->log_x ? log10(p->x[point]) : p->x[point];
}

static inline double plot_y(const plot *p, size_t series, size_t point)
{
    const double y = p->series[series].y[point];
    return p->log_y ? log10(y) : y;
}

void plot_write_text(const plot *p, FILE *to); // 78 columns
void plot_write_svg(const plot *p, FILE *to);

#endif
