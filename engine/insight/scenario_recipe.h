// SPDX-License-Identifier: Apache-2.0
// How a scenario is made: programs compiled for the plan device, and what is done with them in which order. Only the
// scenarios' own files look in here.
//
//   phases: build ─▶ … ─▶ [loop_from] ─▶ steps ─▶ … ─▶ end        from loop_from on, `times` times
#ifndef INSIGHT_SCENARIO_RECIPE_H
#define INSIGHT_SCENARIO_RECIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/scenario.h"
#include "headroom/status.h"

#include "formats/trace.h"

enum { RECIPE_PROGRAMS = 8, RECIPE_PHASES = 12, RECIPE_KNOBS = 6 };

typedef struct recipe_program {
    const char *preset;              // of those that come with headroom; NULL behind the last
    const char *knobs[RECIPE_KNOBS]; // "key=value" over the preset's
    uint32_t batch;                  // samples; 0: batch.size. The input slots are batch.size all the same
    bool evaluates;
} recipe_program;

typedef enum recipe_act {
    RECIPE_END,
    RECIPE_BUILD,  // the program's persistent tensors
    RECIPE_ASSIGN, // the same, each from an initial value that lives until it is copied
    RECIPE_LAZY,   // the same without the optimizer's, which the first update makes
    RECIPE_STEPS,  // `count` steps of the program
    RECIPE_LET_GO, // frees what builds have made, last first; a step ends there
} recipe_act;

typedef struct recipe_phase {
    recipe_act act;
    uint8_t program, stream;
    uint32_t count;
} recipe_phase;

typedef struct recipe {
    recipe_program programs[RECIPE_PROGRAMS];
    recipe_phase phases[RECIPE_PHASES];
    uint32_t loop_from, times; // times 0: once
} recipe;

// Of a row of the table.
const recipe *scenario_recipe(const hr_scenario *scenario);
// The trace of any recipe (scenario.h says what a trace is).
HR_MUST_CHECK hr_status recipe_trace(const recipe *r, trace *t, hr_err *err);

#endif
