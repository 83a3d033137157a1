// SPDX-License-Identifier: Apache-2.0
// Independent checker of a compiled program: it simulates the list with one bit per tensor and trusts no pass.
#include <stdbool.h>
#include <string.h>

#include "headroom/event.h"

#include "base/host_mem.h"
#include "program/program.h"

typedef struct checker {
    const program *p;
    bool *live;     // owners that are allocated now
    bool *written;  // tensors that hold a value
    bool *before;   // owners that were allocated when the loop began
    bool *parted;   // owners in which tensors lie side by side
    uint32_t *next; // the tensor before it with the same owner, in those; HR_NO_ID
    uint32_t *last; // of an owner: the last one with it
    bool looping;   // between REPEAT and END
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
    if (t->persistent || tensor_on_host(t) || t->storage != id || c->live[id]) {
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
    const tensor *t = &c->p->tensors[owner];
    if (!t->persistent && !tensor_on_host(t) && !c->live[owner]) {
        return HR_FAIL(err, CHECK, "instruction %u uses %s, which has no storage then", n,
                       c->p->tensors[id].name);
    }
    return HR_OK;
}

// Of two tensors with one owner. What lies beside others there has its own bytes; the owner's are those of all.
static bool lie_apart(const program *p, uint32_t a, uint32_t b)
{
    const uint64_t at = program_offset(p, a), other = program_offset(p, b);
    const uint32_t first = at < other ? a : b;
    const tensor *t = &p->tensors[first];
    return at != other && t->bytes - t->padding_bytes <= (at < other ? other - at : at - other);
}

// Every tensor ends where its owner does, or before, wherever in it it begins. Notes which lie in the same owner.
static hr_status check_places(checker *c, hr_err *err)
{
    const program *p = c->p;
    memset(c->last, 0xff, p->tensor_count * sizeof *c->last);
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        const tensor *t = &p->tensors[k];
        uint32_t owner = 0;
        HR_TRY(owner_of(p, k, &owner, err));
        const uint64_t at = program_offset(p, k), room = p->tensors[owner].bytes;
        c->next[k] = c->last[owner];
        c->last[owner] = k;
        c->parted[owner] |= at != 0;
        if (k != owner && (at > room || t->bytes - t->padding_bytes > room - at)) {
            return HR_FAIL(err, CHECK, "%s ends behind %s, in which it lies", t->name,
                           p->tensors[owner].name);
        }
    }
    return HR_OK;
}

// What lies side by side with others is gone when its own place is written.
static void overwrite(checker *c, const instr *i, uint32_t id)
{
    uint32_t owner = id;
    while (c->p->tensors[owner].storage != owner) {
        owner = c->p->tensors[owner].storage;
    }
    if (!c->parted[owner] || op_row_of(i->op)->view) {
        return;
    }
    for (uint32_t k = c->last[owner]; k != HR_NO_ID; k = c->next[k]) {
        c->written[k] = c->written[k] && lie_apart(c->p, k, id);
    }
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
            bool update = i->in[k] == i->out[o] && ((row->updates >> k & 1) != 0 || row->in_place == 0);
            bool allowed = update || row->view || (o == row->in_place_out && row->in_place == (int)k);
            if (in == out && !allowed && !lie_apart(c->p, i->in[k], i->out[o])) {
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
        overwrite(c, i, i->out[k]);
        c->written[i->out[k]] = true;
    }
    if (i->workspace != HR_NO_ID) {
        HR_TRY(check_alive(c, n, i->workspace, err));
    }
    return check_overlap(c, n, i, err);
}

// What is retained is there and has a value; then no instruction of the program owns it.
static hr_status check_retain(checker *c, uint32_t n, const instr *i, hr_err *err)
{
    uint32_t owner = 0;
    HR_TRY(check_compute(c, n, i, err));
    HR_TRY(owner_of(c->p, i->in[0], &owner, err));
    if (c->p->tensors[owner].category != HR_CATEGORY_RETAINED) {
        return HR_FAIL(err, CHECK, "instruction %u retains %s, whose category is %s", n,
                       c->p->tensors[owner].name, hr_category_name(c->p->tensors[owner].category));
    }
    return check_free(c, n, owner, err);
}

static hr_status check_repeat(checker *c, uint32_t n, const instr *i, hr_err *err)
{
    if (c->looping || i->attr.count < 1) {
        return HR_FAIL(err, CHECK, "instruction %u repeats %d times %s", n, i->attr.count,
                       c->looping ? "inside a loop" : "");
    }
    c->looping = true;
    memcpy(c->before, c->live, c->p->tensor_count * sizeof *c->live);
    return HR_OK;
}

// Every round begins with what the first began with, or the second would allocate or free twice.
static hr_status check_end(checker *c, uint32_t n, hr_err *err)
{
    if (!c->looping) {
        return HR_FAIL(err, CHECK, "instruction %u ends a loop that did not begin", n);
    }
    c->looping = false;
    for (uint32_t k = 0; k < c->p->tensor_count; k++) {
        if (c->live[k] != c->before[k]) {
            return HR_FAIL(err, CHECK, "%s is %s inside the loop that ends at instruction %u",
                           c->p->tensors[k].name, c->live[k] ? "not freed" : "freed but not allocated", n);
        }
    }
    return HR_OK;
}

static hr_status check_one(checker *c, uint32_t n, const instr *i, hr_err *err)
{
    if (i->op == HR_OP_ALLOC) {
        return check_alloc(c, n, i->out[0], err);
    }
    if (i->op == HR_OP_FREE) {
        return check_free(c, n, i->in[0], err);
    }
    if (i->op == HR_OP_RETAIN) {
        return check_retain(c, n, i, err);
    }
    if (i->op == HR_OP_REPEAT) {
        return check_repeat(c, n, i, err);
    }
    return i->op == HR_OP_END ? check_end(c, n, err) : check_compute(c, n, i, err);
}

static hr_status check_all(checker *c, hr_err *err)
{
    const program *p = c->p;
    HR_TRY(check_places(c, err));
    for (uint32_t n = 0; n < p->instr_count; n++) {
        HR_TRY(check_one(c, n, &p->instrs[n], err));
    }
    if (c->looping) {
        return HR_FAIL(err, CHECK, "a loop does not end");
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
    checker c = {.p = p,
                 .live = hr_calloc(p->tensor_count, sizeof *c.live),
                 .written = hr_calloc(p->tensor_count, sizeof *c.written),
                 .before = hr_calloc(p->tensor_count, sizeof *c.before),
                 .parted = hr_calloc(p->tensor_count, sizeof *c.parted),
                 .next = hr_calloc(p->tensor_count, sizeof *c.next),
                 .last = hr_calloc(p->tensor_count, sizeof *c.last)};
    hr_status status = HR_OK;
    if (c.live == NULL || c.written == NULL || c.before == NULL || c.parted == NULL || c.next == NULL ||
        c.last == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory to check %u tensors", p->tensor_count);
    } else {
        status = check_all(&c, err);
    }
    hr_free(c.live);
    hr_free(c.written);
    hr_free(c.before);
    hr_free(c.parted);
    hr_free(c.next);
    hr_free(c.last);
    return status;
}
