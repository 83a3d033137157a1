// SPDX-License-Identifier: Apache-2.0
// Configurations for tests over the axes of axes.h, and a covering array: every two values of two axes that may go
// together do so in some configuration.
//
// What may not go together is refused by the constraints between the knobs; a configuration is mended by following
// their advice. Made greedily from random candidates, as in Cohen, Dalal, Fredman, Patton: "The AETG system", IEEE
// TSE 23(7), 1997. The same seed gives the same list.
#ifndef TESTS_CLI_COVERING_H
#define TESTS_CLI_COVERING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "axes.h"

typedef struct configuration {
    uint8_t value[AXES_MAX]; // index into the axis' values
} configuration;

size_t covering_axes(const axis **axes); // axes_of_knobs; NULL is fine
// Turns the knobs of `c` on top of *knobs.
void configuration_apply(const configuration *c, hr_knobs *knobs);
// "resnet50_tiny batch.size=5 …", values that are the axis' first left out. Returns text.
const char *configuration_text(const configuration *c, char *text, size_t size);
typedef struct axis_set {
    bool has[AXES_MAX];
} axis_set;

// Follows the constraints' advice, axis by axis but those of `fixed`, until nothing is refused; false
// when the advice would turn a fixed axis or no axis at all.
bool configuration_mend(configuration *c, const axis_set *fixed);

typedef struct covering {
    configuration *list;
    size_t count;
    configuration *illegal; // two values alone that no configuration can have, a model not among them
    size_t illegal_count;
    size_t pairs, illegal_pairs;
} covering;

// Fails the program when memory is short.
covering covering_make(uint64_t seed);
void covering_deinit(covering *c);
// Calls `visit` with each of c->illegal and the knobs that have just these two turned.
void covering_visit_illegal(const covering *c,
                            void (*visit)(const configuration *pair, const hr_knobs *knobs));

#endif
