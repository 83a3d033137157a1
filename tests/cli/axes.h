// SPDX-License-Identifier: Apache-2.0
// What configurations of tests are made of: the tiny models, and one axis for each knob of the table. A choice has its
// words; a number its default, the ends of its range and something between. What the table cannot say (the words of a text,
// numbers that would make a test long) and what is left out stand in two lists, each row with its reason, so that a new
// knob is an axis at once, or a test says that it is not.
#ifndef TESTS_CLI_AXES_H
#define TESTS_CLI_AXES_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/knobs.h"

enum { AXES_MAX = 128, AXIS_VALUES_MAX = 48, AXIS_TEXT_MAX = 48 };

typedef struct axis {
    hr_knob_id id;                           // HR_KNOB_COUNT: the model
    const char *key;                         // "model", or the knob's
    const char *values[AXIS_VALUES_MAX + 1]; // the default first; NULL-terminated
    char text[AXIS_VALUES_MAX][AXIS_TEXT_MAX];
} axis;

// Whether values are axes that take all of a data set into memory; set before axes_of_knobs.
extern bool axes_have_whole_sets;
bool axis_takes_whole_sets(hr_knob_id id);

// axes[0] is the model. Fails the program when a list names what is not there.
size_t axes_of_knobs(const axis **axes);
size_t axis_value_count(const axis *a);

typedef struct axis_left_out {
    hr_knob_id id;
    const char *value; // NULL: the whole knob
    const char *why;
} axis_left_out;

const axis_left_out *axes_left_out(size_t *count);
// Is the knob no axis, and is that meant?
bool axis_is_left_out(hr_knob_id id);

#endif
