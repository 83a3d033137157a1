// SPDX-License-Identifier: Apache-2.0
// The proof of a remedy: what is to be tried after an out-of-memory is planned under its knobs, on the device and, where
// pipeline.ram_limit is set, on the host, before it is named (docs/decisions/0031). Engine's thread only.
#ifndef TRAIN_REMEDY_PROOF_H
#define TRAIN_REMEDY_PROOF_H

#include "train/engine_impl.h"

enum { REMEDY_PAIRS = 3 };

typedef struct remedy_proof {
    const hr_engine *e;
    const build *refused;      // what does not fit
    int64_t instrs_left;       // to compile
    int64_t ways_left;         // of the ways under budgets; who asks for a budget by himself looks at it
    uint64_t most_limit_bytes; // of the device: a fix that raises it beyond is none; UINT64_MAX: it may
} remedy_proof;

// Of a refused build, with as many instructions to compile as half a second is enough for, and as many of ways.
remedy_proof remedy_proof_of(const hr_engine *e, const build *refused);

// The engine's knobs turned by the pairs "key=value" (NULL where there is none), and in `fix` those of them that change
// something; false when none does, or they are refused.
bool remedy_apply(const hr_engine *e, const char *const pairs[REMEDY_PAIRS], hr_knobs *knobs,
                  hr_report_fix *fix);
// Would a step fit with these? Then the rest of `fix` is filled.
bool remedy_fits(remedy_proof *p, const hr_knobs *knobs, hr_report_fix *fix);
// Would the host hold it? Plans nothing of the device: for what the programs of the refused build do not depend on.
bool remedy_fits_host(const remedy_proof *p, const hr_knobs *knobs);

// remedy_host.c: fills the fixes of an out-of-memory of the host, e->refused_host.
void remedy_search_host(const hr_engine *e, const build *refused, hr_report_oom *oom);

#endif
