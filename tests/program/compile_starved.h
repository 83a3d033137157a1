// SPDX-License-Identifier: Apache-2.0
// A compilation of which each allocation fails once.
#ifndef TESTS_PROGRAM_COMPILE_STARVED_H
#define TESTS_PROGRAM_COMPILE_STARVED_H

#include <check.h>

#include "base/host_mem.h"
#include "program/compile.h"

// NOMEM as long as there is an allocation to fail, then OK; each time nothing is left behind. What the target remembers is
// forgotten before, and known from the first, whole compilation on.
static inline void compile_starved(const hr_model *model, const hr_knobs *knobs, uint32_t batch,
                                   const hr_target *target)
{
    program *p = NULL;
    target_forget();
    ck_assert_int_eq(program_compile(model, knobs, PROGRAM_TRAIN, batch, target, &p, NULL), HR_OK);
    program_destroy(p);
    const int64_t live = hr_host_mem_live();
    hr_status status = HR_NOMEM;
    for (uint64_t nth = 1; status != HR_OK; nth++) {
        p = NULL;
        hr_host_mem_fail_at(nth);
        status = program_compile(model, knobs, PROGRAM_TRAIN, batch, target, &p, NULL);
        const uint64_t seen = hr_host_mem_fail_at(0);
        ck_assert_int_eq(status, nth <= seen ? HR_NOMEM : HR_OK);
        program_destroy(p);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}

#endif
