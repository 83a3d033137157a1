// SPDX-License-Identifier: Apache-2.0
// Where the steps of a record end: where it marks them, else at the troughs of what lives.
#ifndef INSIGHT_EVIDENCE_STEPS_H
#define INSIGHT_EVIDENCE_STEPS_H

#include "formats/trace.h"

typedef struct evidence_steps {
    uint32_t *ends; // events, ascending
    uint32_t count;
    bool marked;
    uint64_t
        last_peak_bytes; // most that lives in the last whole one and behind it; HR_NONE: there are not two
} evidence_steps;

// Of the device's events before `end`. NOMEM; the caller deinits it in every case.
HR_MUST_CHECK hr_status evidence_find_steps(const trace *t, uint32_t device, uint32_t end,
                                            evidence_steps *out, hr_err *err);
void evidence_steps_deinit(evidence_steps *s);

#endif
