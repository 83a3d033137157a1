// SPDX-License-Identifier: Apache-2.0
// What fits: plans of combinations of the knobs that trade memory for time, as the planner finds them. Points of an
// older question stay until the first of a newer one comes.
#ifndef TUI_FEED_FIT_H
#define TUI_FEED_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/planning.h"

enum { FIT_POINTS_MAX = HR_FIT_POINTS_MAX };

typedef struct fit_points {
    uint64_t question;                        // number of the newest; 0: none was asked
    hr_knobs asked;                           // its knobs
    hr_fit_permission permission, asked_with; // what may change of what is learned; of the newest question
    bool asks;                                // more of its answers are to come
    hr_knobs knobs;                           // that the points differ from
    size_t count;
    hr_fit_point point[FIT_POINTS_MAX]; // as they came; the first are the knobs themselves
    bool
        best[FIT_POINTS_MAX]; // fits, and no other point that fits needs less of one and no more of the other
    uint16_t
        order[FIT_POINTS_MAX];   // the best, then what fits, fastest first; then what misses, the least first
    bool learns[FIT_POINTS_MAX]; // changes what is learned
    char refused[HR_ERR_TEXT_MAX]; // why nothing can be planned; ""
    uint64_t version;
} fit_points;

// The points of these knobs were asked for under that number.
void fit_begin(fit_points *fit, const hr_knobs *knobs, uint64_t question);
bool fit_take(fit_points *fit, const hr_answer *answer); // of HR_QUESTION_FIT; false: it is of an older one
void fit_forget(fit_points *fit);                        // another model
// The knobs of a point. False, with *err: they cannot be set.
bool fit_knobs(const fit_points *fit, size_t point, hr_knobs *knobs, hr_err *err);
// What a point changes about what is learned (hr_fit_change); "": nothing.
const char *fit_change(const fit_points *fit, size_t point, char text[HR_FIT_CHANGE_MAX]);

size_t fit_best_count(const fit_points *fit);
double fit_seconds(const hr_fit_point *p); // NaN: the device cannot tell
// Step time as a multiple of the knobs' own; NaN.
double fit_slowdown(const fit_points *fit, const hr_fit_point *p);

#endif
