// SPDX-License-Identifier: Apache-2.0
// Consecutive calls of one kernel that touch nothing of each other's become one launch: the updates of all variables, the
// casts of a layer's. They are held back until a call comes that cannot join them, or the stream is waited for.
#include "kernels/group_args.h"
#include "step.h"

_Static_assert((int)CUDA_GROUP_MAX == (int)GROUP_ITEMS, "a group is what one launch takes");

typedef struct range {
    CUdeviceptr begin, end;
} range;

static range range_of(CUdeviceptr address, const op_operand *t)
{
    return (range){address, address + cuda_bytes(t)};
}

static bool meet(range a, range b)
{
    return a.begin < b.end && b.begin < a.end;
}

// Is anything that `a` reads or writes written by `b`?
static bool disturbs(const cuda_run *a, const cuda_run *b)
{
    for (uint32_t n = 0; n < b->query->out_count; n++) {
        const range written = range_of(b->out[n], &b->query->out[n]);
        for (uint32_t k = 0; k < a->query->in_count; k++) {
            if (meet(written, range_of(a->in[k], &a->query->in[k]))) {
                return true;
            }
        }
        for (uint32_t k = 0; k < a->query->out_count; k++) {
            if (meet(written, range_of(a->out[k], &a->query->out[k]))) {
                return true;
            }
        }
    }
    return false;
}

static bool joins(const cuda_group *g, const cuda_impl *impl, const cuda_run *r)
{
    const cuda_run *first = &g->runs[0];
    if (g->count == CUDA_GROUP_MAX || g->impl != impl || first->function != r->function ||
        first->stream != r->stream || (impl->joins != NULL && !impl->joins(first, r))) {
        return false;
    }
    for (uint32_t k = 0; k < g->count; k++) {
        if (disturbs(&g->runs[k], r) || disturbs(r, &g->runs[k])) {
            return false;
        }
    }
    return true;
}

hr_status cuda_group_add(cuda_group *g, const cuda_impl *impl, const cuda_run *r, hr_err *err)
{
    if (g->count > 0 && !joins(g, impl, r)) {
        HR_TRY(cuda_group_launch(g, err));
    }
    g->impl = impl;
    g->runs[g->count++] = *r;
    return HR_OK;
}

hr_status cuda_group_launch(cuda_group *g, hr_err *err)
{
    const uint32_t count = g->count;
    if (count == 0) {
        return HR_OK;
    }
    cuda_loaded *l = g->runs[0].device->under_way;
    g->count = 0;
    HR_TRY(cuda_mark_begin(l, g->runs, count, err));
    HR_TRY(g->impl->run_group(g->runs, count, err));
    return cuda_mark_end(l, g->runs, err);
}
