// SPDX-License-Identifier: Apache-2.0
#include "device/bound.h"

#include "headroom/event.h"

#include "base/host_mem.h"
#include "device/gradients.h"

static void group_by_owner(bound *b)
{
    uint32_t count = b->p->tensor_count;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t owner = k;
        while (b->p->tensors[owner].storage != owner) {
            owner = b->p->tensors[owner].storage;
        }
        b->owner[k] = owner;
        b->first_share[owner + 1]++;
    }
    for (uint32_t k = 0; k <= count; k++) {
        b->first_share[k + 1] += b->first_share[k];
    }
    for (uint32_t k = count; k-- > 0;) {
        b->shares[--b->first_share[b->owner[k] + 1]] = k;
    }
}

// What training goes on from; inputs are written anew by every step.
static bool is_lasting(const bound *b, uint32_t id)
{
    const tensor *t = &b->p->tensors[b->owner[id]];
    return t->persistent && (t->category == HR_CATEGORY_WEIGHTS || t->category == HR_CATEGORY_STATE ||
                             t->category == HR_CATEGORY_OPTIMIZER);
}

static uint32_t find_first_lasting(const bound *b)
{
    for (uint32_t n = 0; n < b->p->instr_count; n++) {
        const instr *i = &b->p->instrs[n];
        bool writes = op_row_of(i->op)->moves_state;
        for (uint32_t k = 0; k < i->out_count && op_needs_kernel(i->op); k++) {
            writes = writes || is_lasting(b, i->out[k]);
        }
        if (writes) {
            return n;
        }
    }
    return HR_NO_ID;
}

hr_status bound_init(bound *b, const program *p, hr_err *err)
{
    b->p = p;
    b->address = hr_calloc(p->tensor_count, sizeof *b->address);
    b->owner = hr_calloc(p->tensor_count, sizeof *b->owner);
    b->shares = hr_calloc(p->tensor_count, sizeof *b->shares);
    b->first_share = hr_calloc(p->tensor_count + 2u, sizeof *b->first_share);
    if (b->address == NULL || b->owner == NULL || b->shares == NULL || b->first_share == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory to bind %u tensors", p->tensor_count);
    }
    group_by_owner(b);
    b->first_lasting = find_first_lasting(b);
    b->ready_at = gradients_ready_at(p, &b->whole);
    return HR_OK;
}

void bound_deinit(bound *b)
{
    hr_free(b->address);
    hr_free(b->owner);
    hr_free(b->shares);
    hr_free(b->first_share);
    timeline_deinit(&b->lanes);
    timeline_deinit(&b->before_round);
    instr_times_deinit(&b->times);
}

void bound_set_address(bound *b, uint32_t owner, uint64_t address)
{
    for (uint32_t k = b->first_share[owner + 1]; k < b->first_share[owner + 2]; k++) {
        const uint32_t id = b->shares[k];
        b->address[id] = (void *)(uintptr_t)(address == 0 ? 0 : address + program_offset(b->p, id));
    }
}
