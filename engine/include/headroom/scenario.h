// SPDX-License-Identifier: Apache-2.0
// Traces of our own: typical out-of-memory situations, made anew by compiling real models and writing down
// what their steps allocate. Each stands for a complaint in the field and carries a claim that a test proves by
// replaying it. Nothing is shipped as data; the same scenario is the same trace on every machine.
#ifndef HEADROOM_SCENARIO_H
#define HEADROOM_SCENARIO_H

#include <stddef.h>
#include <stdint.h>

typedef struct hr_scenario {
    const char *name;        // "alternating_shapes", as `headroom replay` takes it in a file's place
    const char *complaint;   // "pytorch #31252"
    const char *line;        // what happens, in one line
    const char *explanation; // why, in a paragraph
    const char *look_at;     // what to look at, and which allocator or knob helps
    uint64_t limit_bytes;    // of the pool on which it shows
    const char *setting;     // with which it shows, "allocator.growth=on", unless the knob is set; NULL: none
} hr_scenario;

const hr_scenario *hr_scenario_row(size_t index); // NULL behind the last
// NULL when unknown; *suggestion (may be NULL) is then the nearest name or NULL.
const hr_scenario *hr_scenario_find(const char *name, const char **suggestion);

#endif
