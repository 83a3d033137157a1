// SPDX-License-Identifier: Apache-2.0
// Independent checker of a compiled program: it simulates the list with one bit per tensor and trusts no pass.
#include <stdbool.h>

#include "headroom/event.h"

#include "base/host_mem.h"
#include "program/program.h"

typedef struct checker {
    const program *p;
    bool *live;    // owners that are allocated now
    bool *written; // tensors that hold a value
} checker;

static hr_status owner_of(const program *p, uint32_t id, uint32_t *owner, hr_err *err)
{
    for (uint32_t hops = 0; hops <= p->tensor_count; hops++) {
        if (id >= p->tensor_count) {
            return HR_FAIL(err, CHECK, "storage %u is no tensor", id);
        }
        if (p->tensors[id].storage == id) {
            *owner = id;
            return HR_OK;
        }
        id = p->tensors[id].storage;
    }
    return HR_FAIL(err, CHECK, "storage of tensor %s runs in a circle", p->tensors[id].name);
}

static hr_status check_alloc(checker *c, uint32_t n, uint32_t id, hr_err *err)
{
    const tensor *t = &c->p->tensors[id];
    if (t->persistent || t->storage != id || c->live[id]) {
        return HR_FAIL(err, CHECK, "instruction %u allocates %s, which is %s", n, t->name,
                       t->persistent ? "persistent" : "already allocated or shares storage");
    }
    c->live[id] = true;
    return HR_OK;
}

static hr_status check_free(checker *c, uint32_t n, uint32_t id, hr_err *err)
{
    if (c->p->tensors[id].persistent || !c->live[id]) {
        return HR_FAIL(err, CHECK, "instruction %u frees %s, which is not allocated", n,
                       c->p->tensors[id].name);
    }
    c->live[id] = false;
    return HR_OK;
}

static hr_status check_alive(const checker *c, uint32_t n, uint32_t id, hr_err *err)
{
    uint32_t owner = 0;
    HR_TRY(owner_of(c->p, id, &owner, err));
    if (!c->p->tensors[owner].persistent && !c->live[owner]) {
        return HR_FAIL(err, CHECK, "instruction %u uses %s, which has no storage then", n,
                       c->p->tensors[id].name);
    }
    return HR_OK;
}

// A result may lie on an input's bytes only where the row says so.
static hr_status check_overlap(const checker *c, uint32_t n, const instr *i, hr_err *err)
{
    const op_row *row = op_row_of(i->op);
    for (uint32_t o = 0; o < i->out_count; o++) {
        uint32_t out = 0;
        HR_TRY(owner_of(c->p, i->out[o], &out, err));
        for (uint32_t k = 0; k < i->in_count; k++) {
            uint32_t in = 0;
            HR_TRY(owner_of(c->p, i->in[k], &in, err));
            bool update = i->in[k] == i->out[o] && row->in_place == 0;
            bool allowed = update || row->view || (o == 0 && row->in_place == (int)k);
            if (in == out && !allowed) {
                return HR_FAIL(err, CHECK, "instruction %u writes %s over its operand %s", n,
                               c->p->tensors[i->out[o]].name, c->p->tensors[i->in[k]].name);
            }
        }
    }
    return HR_OK;
}

static hr_status check_compute(checker *c, uint32_t n, const instr *i, hr_err *err)
{
    const op_row *row = op_row_of(i->op);
    if (i->in_count < row->min_in || i->in_count > row->max_in || i->out_count < row->min_out ||
        i->out_count > row->max_out) {
        return HR_FAIL(err, CHECK, "instruction %u (%s) has %u operands and %u results", n, row->name,
                       i->in_count, i->out_count);
    }
    for (uint32_t k = 0; k < i->in_count; k++) {
        HR_TRY(check_alive(c, n, i->in[k], err));
        if (!c->written[i->in[k]] && !c->p->tensors[i->in[k]].persistent) {
            return HR_FAIL(err, CHECK, "instruction %u reads %s before it is written", n,
                           c->p->tensors[i->in[k]].name);
        }
    }
    for (uint32_t k = 0; k < i->out_count; k++) {
        HR_TRY(check_alive(c, n, i->out[k], err));
        c->written[i->out[k]] = true;
    }
    if (i->workspace != HR_NO_ID) {
        HR_TRY(check_alive(c, n, i->workspace, err));
    }
    return check_overlap(c, n, i, err);
}

static hr_status check_all(checker *c, hr_err *err)
{
    const program *p = c->p;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if (i->op == HR_OP_ALLOC) {
            HR_TRY(check_alloc(c, n, i->out[0], err));
        } else if (i->op == HR_OP_FREE) {
            HR_TRY(check_free(c, n, i->in[0], err));
        } else {
            HR_TRY(check_compute(c, n, i, err));
        }
    }
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        if (c->live[k]) {
            return HR_FAIL(err, CHECK, "%s is never freed", p->tensors[k].name);
        }
        if (p->tensors[k].persistent != (k < p->persistent_count)) {
            return HR_FAIL(err, CHECK, "%s stands among the wrong tensors", p->tensors[k].name);
        }
    }
    return HR_OK;
}

hr_status program_check(const program *p, hr_err *err)
{
    checker c = {p, hr_calloc(p->tensor_count, sizeof *c.live),
                 hr_calloc(p->tensor_count, sizeof *c.written)};
    hr_status status = HR_OK;
    if (c.live == NULL || c.written == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory to check %u tensors", p->tensor_count);
    } else {
        status = check_all(&c, err);
    }
    hr_free(c.live);
    hr_free(c.written);
    return status;
}
