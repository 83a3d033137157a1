// SPDX-License-Identifier: Apache-2.0
// A way of instructions becomes the step's list.
#include <string.h>

#include "program/checkpoint_again.h"
#include "program/checkpoint_evict.h"

typedef struct replay {
    draft *d;
    draft_again again;
    bool *ran;                 // [instructions]
    bool *gone;                // [tensors]
    uint32_t *first, *sibling; // [tensors] of those that lie in a storage, linked; HR_NO_ID: none
    instr_list list;
} replay;

// Of the tensors there are before any instruction runs again.
static void link_storages(replay *r)
{
    const draft *d = r->d;
    memset(r->first, 0xff, d->tensors.count * sizeof *r->first);
    for (uint32_t t = d->persistent_count; t < d->tensors.count; t++) {
        const uint32_t owner = draft_owner(d, t);
        r->sibling[t] = r->first[owner];
        r->first[owner] = t;
    }
}

static void let_go(replay *r, uint32_t step)
{
    draft *d = r->d;
    const uint32_t owner = draft_owner(d, step & ~(CHECKPOINT_GOES | CHECKPOINT_ENDS));
    for (uint32_t t = r->first[owner]; t != HR_NO_ID; t = r->sibling[t]) {
        r->gone[t] = true;
        r->again.self[t] = HR_NO_ID;
        d->tensors.data[t].dropped |= (step & CHECKPOINT_GOES) != 0;
    }
}

static hr_status run_first(replay *r, uint32_t n, hr_err *err)
{
    instr *i = vec_push(&r->list);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    *i = r->d->instrs.data[n];
    for (uint32_t k = 0; k < i->in_count; k++) {
        i->in[k] = draft_self(r->d, &r->again, i->in[k]);
    }
    r->ran[n] = true;
    return HR_OK;
}

static hr_status run_again(replay *r, uint32_t n, hr_err *err)
{
    const instr i = r->d->instrs.data[n];
    for (uint32_t k = 0; k < i.out_count; k++) {
        r->d->tensors.data[i.out[k]].dropped |= r->gone[i.out[k]];
    }
    HR_TRY(draft_run_again(r->d, n, &r->again, &r->list, err));
    for (uint32_t k = 0; k < i.out_count; k++) {
        r->gone[i.out[k]] = false;
    }
    return HR_OK;
}

static hr_status replay_all(replay *r, const checkpoint_way *way, hr_err *err)
{
    for (uint32_t k = 0; k < way->step_count; k++) {
        const uint32_t step = way->steps[k];
        if ((step & CHECKPOINT_LEAVES) != 0) {
            r->d->tensors.data[draft_owner(r->d, step & ~CHECKPOINT_LEAVES)].leaves = true;
        } else if ((step & (CHECKPOINT_GOES | CHECKPOINT_ENDS)) != 0) {
            let_go(r, step);
        } else {
            HR_TRY(r->ran[step] ? run_again(r, step, err) : run_first(r, step, err));
        }
    }
    return HR_OK;
}

hr_status evictions_replay(draft *d, const checkpoint_way *way, uint32_t *self, hr_err *err)
{
    replay r = {.d = d,
                .ran = hr_calloc(d->instrs.count, sizeof *r.ran),
                .gone = hr_calloc(d->tensors.count, sizeof *r.gone),
                .first = hr_calloc(d->tensors.count, sizeof *r.first),
                .sibling = hr_calloc(d->tensors.count, sizeof *r.sibling)};
    hr_status status;
    if (r.ran == NULL || r.gone == NULL || r.first == NULL || r.sibling == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory to run %u instructions again", d->instrs.count);
    } else {
        link_storages(&r);
        r.again = (draft_again){self, r.gone};
        status = replay_all(&r, way, err);
    }
    hr_free(r.ran);
    hr_free(r.gone);
    hr_free(r.first);
    hr_free(r.sibling);
    vec_deinit(&d->instrs);
    d->instrs = r.list;
    return status;
}
