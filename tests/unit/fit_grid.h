// SPDX-License-Identifier: Apache-2.0
// Questions for Fit, drawn, of which few dimensions are left to turn; and the plan of every combination of those: what a search is
// held against.
#ifndef TESTS_UNIT_FIT_GRID_H
#define TESTS_UNIT_FIT_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/engine.h"

#include "insight/fit_turns.h"

enum { FIT_GRID_MAX = 4096 };

// Zeroed and with a seed before it is opened, and with a preset where none is to be drawn.
typedef struct fit_grid {
    uint64_t seed;
    const char *preset; // static storage
    hr_planner *planner;
    hr_knobs asked;
    hr_fit_wish wish;
    int count;
    fit_combination combinations[FIT_GRID_MAX];
    hr_whatif plans[FIT_GRID_MAX];
} fit_grid;

uint32_t fit_grid_draw(fit_grid *g, uint32_t below);
// A tiny model on a planned card, as its preset has it but for the batch, which can be split. False: `why` says what failed.
bool fit_grid_open(fit_grid *g, char *why, size_t size);
// Turns some of what is asked about to other values, as far as they are legal together.
void fit_grid_turn_asked(fit_grid *g);
// A wish that leaves `free` of the dimensions to turn, fewer where they make more than `most` combinations, all of which are planned.
void fit_grid_draw_wish(fit_grid *g, int free, int most);
// Plans all combinations of asked and wish anew. False: there are more than `most`.
bool fit_grid_plan(fit_grid *g, int most);
void fit_grid_close(fit_grid *g);

// The fastest with at most that peak, of all that are planned, whether or not they fit; -1: none.
int fit_grid_fastest(const fit_grid *g, uint64_t peak_bytes);
// Of what a search found; infinite: nothing.
double fit_grid_found(const hr_fit_found *found, uint64_t peak_bytes);
// The first combination whose peak allows something faster, by more than this share, than was found; -1: there is none.
int fit_grid_missed(const fit_grid *g, const hr_fit_found *found, double share);

#endif
