// SPDX-License-Identifier: Apache-2.0
#include "device/first_step.h"

#include "base/host_mem.h"

static void announce(const first_step *s, const tensor *t)
{
    if (s->bus != NULL) {
        s->bus->instr = HR_NO_ID;
        s->bus->phase = HR_PHASE_BUILD;
        s->bus->category = (uint8_t)t->category;
    }
}

static void give_back(const first_step *s, uint32_t id)
{
    announce(s, &s->p->tensors[id]);
    allocator_free(s->heap, s->address[id]);
    s->address[id] = 0;
}

static hr_status play(const first_step *s, const instr *i, hr_err *err)
{
    if (i->op == HR_OP_FREE) {
        give_back(s, i->in[0]);
    }
    if (i->op != HR_OP_ALLOC) {
        return HR_OK;
    }
    const uint32_t id = i->out[0];
    announce(s, &s->p->tensors[id]);
    return allocator_alloc(s->heap, s->p->tensors[id].bytes, id, &s->address[id], err);
}

static void leave(first_step *s)
{
    for (uint32_t k = 0; k < s->p->tensor_count; k++) {
        if (s->address[k] != 0) {
            give_back(s, k);
        }
    }
    allocator_synchronise(s->heap); // as every step ends
    hr_free(s->address);
    *s = (first_step){0};
}

hr_status first_step_begin(const program *p, allocator *heap, trace_bus *bus, first_step *out, hr_err *err)
{
    *out = (first_step){0};
    if (!p->late || allocator_plans(heap)) {
        return HR_OK;
    }
    uint64_t *address = hr_calloc((size_t)p->tensor_count + 1, sizeof *address);
    if (address == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the addresses of %u tensors", p->tensor_count);
    }
    *out = (first_step){.p = p, .heap = heap, .bus = bus, .address = address};
    return HR_OK;
}

// A heap without room is left as it was found.
hr_status first_step_until(first_step *s, uint32_t instr_index, hr_err *err)
{
    for (; s->p != NULL && s->at < s->p->instr_count && s->at < instr_index; s->at++) {
        hr_err reason = {0};
        const hr_status status = play(s, &s->p->instrs[s->at], &reason);
        if (status != HR_OK) {
            leave(s);
            if (status != HR_OOM && err != NULL) {
                *err = reason;
            }
            return status == HR_OOM ? HR_OK : status;
        }
    }
    return HR_OK;
}

hr_status first_step_end(first_step *s, bool go_on, hr_err *err)
{
    const hr_status status = go_on && s->p != NULL ? first_step_until(s, s->p->instr_count, err) : HR_OK;
    if (s->p != NULL) {
        leave(s);
    }
    return status;
}
