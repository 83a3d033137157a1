// SPDX-License-Identifier: Apache-2.0
#include "device/instr_times.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"

hr_status instr_times_init(instr_times *t, uint32_t instr_count, hr_err *err)
{
    *t = (instr_times){.instr_count = instr_count};
    t->ns = hr_calloc((size_t)instr_count * INSTR_TIMES_STEPS, sizeof *t->ns);
    return t->ns != NULL
               ? HR_OK
               : HR_FAIL(err, NOMEM, "no host memory for the times of %u instructions", instr_count);
}

void instr_times_deinit(instr_times *t)
{
    hr_free(t->ns);
    *t = (instr_times){0};
}

static uint64_t *times_of(const instr_times *t, uint32_t at)
{
    return t->ns + (size_t)at * INSTR_TIMES_STEPS;
}

void instr_times_note(instr_times *t, uint32_t at, uint64_t ns)
{
    times_of(t, at)[t->steps % INSTR_TIMES_STEPS] = ns;
}

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// In ascending order; how many there are.
static uint32_t sorted(const instr_times *t, uint32_t at, uint64_t ns[INSTR_TIMES_STEPS])
{
    if (t->ns == NULL || t->steps < 2) {
        return 0;
    }
    const uint64_t *of = times_of(t, at);
    const bool has_first = t->steps <= INSTR_TIMES_STEPS;
    const uint32_t count = has_first ? (uint32_t)t->steps - 1 : INSTR_TIMES_STEPS;
    memcpy(ns, of + (has_first ? 1 : 0), count * sizeof *ns);
    qsort(ns, count, sizeof *ns, ascending);
    return count;
}

uint64_t instr_times_median_ns(const instr_times *t, uint32_t at)
{
    uint64_t ns[INSTR_TIMES_STEPS];
    const uint32_t count = sorted(t, at, ns);
    return count == 0 ? 0 : ns[count / 2];
}

uint64_t instr_times_least_ns(const instr_times *t, uint32_t at)
{
    uint64_t ns[INSTR_TIMES_STEPS];
    return sorted(t, at, ns) == 0 ? 0 : ns[0];
}
