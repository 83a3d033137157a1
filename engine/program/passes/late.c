// SPDX-License-Identifier: Apache-2.0
// Pass late (execution.as=pytorch), behind all others: which persistent tensors the build leaves to the first step, and where in
// it they are made (device/first_step.h). Workspaces of cuBLAS with the first product of their phase, optimizer slots as the first
// update begins; what no instruction asks for is made as the step ends.
#include <string.h>

#include "ops/pytorch.h"
#include "program/draft.h"

typedef bool (*asks_for)(const instr *i);

static bool multiplies_forward(const instr *i)
{
    return i->phase == HR_PHASE_FORWARD && pytorch_multiplies(i->op);
}

static bool multiplies_backward(const instr *i)
{
    return i->phase == HR_PHASE_BACKWARD && pytorch_multiplies(i->op);
}

static bool adds_bias(const instr *i)
{
    return i->phase == HR_PHASE_FORWARD && i->op == HR_OP_DENSE && i->in_count > 2;
}

static bool updates(const instr *i)
{
    return i->phase == HR_PHASE_UPDATE;
}

static uint32_t first_of(const draft *d, asks_for asks)
{
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        if (asks(&d->instrs.data[n])) {
            return n;
        }
    }
    return d->instrs.count;
}

hr_status pass_late(draft *d, hr_err *err)
{
    static const struct {
        const char *name; // NULL: of every optimizer slot
        asks_for asks;
    } makers[] = {{DRAFT_CUBLAS_FORWARD, multiplies_forward},
                  {DRAFT_CUBLASLT, adds_bias},
                  {DRAFT_CUBLAS_BACKWARD, multiplies_backward},
                  {NULL, updates}};
    (void)err;
    for (size_t m = 0; d->pytorch && m < sizeof makers / sizeof *makers; m++) {
        const uint32_t at = first_of(d, makers[m].asks);
        for (uint32_t k = 0; k < d->persistent_count; k++) {
            tensor *t = &d->tensors.data[k];
            const bool slot = t->category == HR_CATEGORY_OPTIMIZER;
            const bool named = t->category == HR_CATEGORY_TEMPORARIES && makers[m].name != NULL &&
                               strcmp(t->name, makers[m].name) == 0;
            t->made_at = named || (slot && makers[m].name == NULL) ? at : t->made_at;
        }
    }
    return HR_OK;
}
