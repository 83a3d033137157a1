// SPDX-License-Identifier: Apache-2.0
#include "program/costs.h"

enum { FLOPS_PER_BYTE = 20, FLOPS_PER_LINK_BYTE = 1200 };

// flops and bytes_moved are filled in.
static uint64_t cost_of(const target_judge *judge, const program *p, const instr *i)
{
    return judge != NULL && judge->duration_ns != NULL ? judge->duration_ns(judge->context, p, i)
                                                       : i->flops + FLOPS_PER_BYTE * i->bytes_moved;
}

// What a device is asked about: before anything is lowered.
static program seen_as(const draft *d)
{
    return (program){.mode = d->mode,
                     .eager = d->eager,
                     .batch = d->batch,
                     .tensors = d->tensors.data,
                     .instrs = d->instrs.data,
                     .tensor_count = d->tensors.count,
                     .instr_count = d->instrs.count,
                     .persistent_count = d->persistent_count};
}

static hr_status costs_by(const draft *d, const target_judge *judge, uint64_t *cost, hr_err *err)
{
    const program p = seen_as(d);
    draft_uses u;
    HR_TRY(draft_count_uses(d, &u, err));
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        instr i = d->instrs.data[n];
        op_query q;
        draft_query(d, &i, &q);
        i.flops = op_flops(&q);
        i.bytes_moved = op_bytes_moved(&q);
        cost[n] = draft_can_fuse(d, &u, n) ? 0 : cost_of(judge, &p, &i);
    }
    draft_uses_deinit(&u);
    return HR_OK;
}

hr_status draft_costs(const draft *d, uint64_t *cost, hr_err *err)
{
    return costs_by(d, d->target->judge, cost, err);
}

hr_status draft_operations(const draft *d, uint64_t *cost, hr_err *err)
{
    return costs_by(d, NULL, cost, err);
}

uint64_t copy_cost(const hr_target *target, uint64_t bytes)
{
    const target_judge *judge = target->judge;
    const program none = {0};
    const instr copy = {
        .op = HR_OP_OFFLOAD, .lane = HR_LANE_D2H, .workspace = HR_NO_ID, .bytes_moved = bytes};
    const uint64_t alone = judge != NULL && judge->duration_ns != NULL
                               ? judge->duration_ns(judge->context, &none, &copy)
                               : FLOPS_PER_LINK_BYTE * bytes;
    return alone + alone / 8;
}

static uint64_t above(uint64_t cost, uint64_t hidden)
{
    return cost > hidden ? cost - hidden : 0;
}

uint64_t program_cost_again(const hr_target *target, const program *p)
{
    uint64_t again = 0, out = 0, back = 0, forward = 0, backward = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if (i->phase == HR_PHASE_UPDATE) {
            continue;
        }
        if (i->op == HR_OP_OFFLOAD || i->op == HR_OP_FETCH) {
            *(i->op == HR_OP_OFFLOAD ? &out : &back) += copy_cost(target, i->bytes_moved);
        } else if (i->lane == HR_LANE_COMPUTE) {
            const uint64_t cost = cost_of(target->judge, p, i);
            again += i->again ? cost : 0;
            *(i->phase == HR_PHASE_FORWARD ? &forward : &backward) += cost;
        }
    }
    return again + above(out, forward) + above(back, backward) + (out + back) / COPY_PART;
}
