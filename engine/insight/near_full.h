// SPDX-License-Identifier: Apache-2.0
// An out-of-memory that is to come: what lives behind a step rises from step to step, and the limit is near. A step that is
// built fits (its dry run said so), so that only what stays can end it.
//
//     bytes ─────────────────────────── limit
//            ╱╲    ╱╲    ╱╲ ◀ peak        │ left / rise = steps
//           ╱  ╲__╱  ╲__╱  ╲__ ◀ floor ──▶│
#ifndef INSIGHT_NEAR_FULL_H
#define INSIGHT_NEAR_FULL_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LEAK_STEPS = 3,       // of each of them something is left, beside the first: then it is a leak
    NEAR_FULL_STEPS = 100 // nearer than that it is told
};

// Starts zeroed, and anew where another program runs.
typedef struct near_full {
    uint64_t floor_bytes[LEAK_STEPS + 1]; // ring of the latest steps
    uint64_t steps;                       // seen
    bool told;
} near_full;

typedef struct near_full_warning {
    uint64_t rise_bytes; // a step
    uint64_t steps;      // that there is room for
} near_full_warning;

// Of a step that ended: what lived at its lowest, its peak, and the limit (HR_NONE: there is none). True once: to be told. As a leak
// is judged in a record (insight/evidence.c), each of the latest steps has to have left more than the one before it.
bool near_full_step(near_full *n, uint64_t floor_bytes, uint64_t peak_bytes, uint64_t limit_bytes,
                    near_full_warning *out);

#endif
