// SPDX-License-Identifier: Apache-2.0
#include "device/gradients.h"

#include "headroom/event.h"

static bool is_gradient(const program *p, uint32_t id)
{
    const hr_category c = p->tensors[id].category;
    return c == HR_CATEGORY_GRADIENTS || c == HR_CATEGORY_ACCUMULATORS;
}

static bool is_update(const program *p, const instr *i)
{
    return i->phase == HR_PHASE_UPDATE && i->in_count > 1 && (op_row_of(i->op)->updates & 1) != 0 &&
           p->tensors[i->in[0]].category == HR_CATEGORY_WEIGHTS && is_gradient(p, i->in[1]);
}

static bool takes_gradient(const program *p, const instr *i)
{
    return i->op == HR_OP_SQUARE_SUM || i->op == HR_OP_CLIP || is_update(p, i);
}

uint32_t gradients_ready_at(const program *p, bool *whole)
{
    uint32_t first = HR_NO_ID, update = HR_NO_ID;
    *whole = true;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        *whole = *whole && !(first != HR_NO_ID && i->phase == HR_PHASE_BACKWARD);
        first = first == HR_NO_ID && takes_gradient(p, i) ? n : first;
        update = update == HR_NO_ID && i->phase == HR_PHASE_UPDATE ? n : update;
    }
    *whole = *whole && first != HR_NO_ID;
    return first != HR_NO_ID ? first : update;
}

// Squares are summed before each is clipped, and what an update takes then is clipped.
uint32_t gradients_next(const program *p, uint32_t ready_at, uint32_t *at)
{
    const bool clips = ready_at < p->instr_count && p->instrs[ready_at].op == HR_OP_SQUARE_SUM;
    for (; *at < p->instr_count; ++*at) {
        const instr *i = &p->instrs[*at];
        if (clips ? i->op == HR_OP_SQUARE_SUM : is_update(p, i)) {
            const uint32_t id = i->in[clips ? 0 : 1];
            ++*at;
            return id;
        }
    }
    return HR_NO_ID;
}
