// SPDX-License-Identifier: Apache-2.0
// Pass, offload: what waits long is put into host memory and fetched again before it is needed.
//
//   activations   forward    … last use of t      record, wait, offload t → t:host, record      … wait, t dies
//                 backward   record, wait, fetch t:host → t:back, record …     wait, first use of t:back
//   optimizer     update     record, wait, fetch s:host → s:here, record …     wait, adam(…, s:here), offload …
//
// A copy runs on a lane of its own between the record it waits for and the wait that stands for its end; what it
// reads or writes lives until that wait. `prefetch` is how many instructions lie between a copy and the instruction
// that needs it done.
//
// The bytes that come back are the bytes that went: weights are the same bit for bit.
#include <stdlib.h>
#include <string.h>

#include "program/costs.h"
#include "program/link.h"

enum { SMALLEST_BYTES = 4096 }; // below this a copy's start costs more than its memory

// Instructions to be put before (or behind) an instruction of the list, in the order they were asked for.
typedef struct insertion {
    uint32_t at, order;
    bool behind;
    instr i;
} insertion;

typedef struct offload {
    draft *d;
    VEC(insertion) insertions;
    uint32_t prefetch, events;
    uint32_t first_backward; // index behind the last instruction of forward
} offload;

static hr_status out_of_memory(hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory for the program's copies to the host");
}

static instr *insert(offload *o, uint32_t at, bool behind, hr_op op, hr_lane lane)
{
    insertion *added = vec_push(&o->insertions);
    if (added == NULL) {
        return NULL;
    }
    const instr *place = &o->d->instrs.data[at];
    added->at = at;
    added->behind = behind;
    added->order = o->insertions.count;
    added->i = (instr){.id = o->d->next_instr_id++,
                       .op = op,
                       .phase = place->phase,
                       .lane = (uint8_t)lane,
                       .layer = place->layer,
                       .workspace = HR_NO_ID};
    return &added->i;
}

// `op` (record or wait) of `event` on `lane`; `holds` lives until it: HR_NO_ID for none.
static hr_status insert_order(offload *o, uint32_t at, bool behind, hr_op op, hr_lane lane, uint32_t event,
                              uint32_t holds, hr_err *err)
{
    instr *i = insert(o, at, behind, op, lane);
    if (i == NULL) {
        return out_of_memory(err);
    }
    i->attr.slot = (int32_t)event;
    if (holds != HR_NO_ID) {
        instr_in(i, holds);
    }
    return HR_OK;
}

// A copy on `lane` that begins when the compute lane has come to this place; *event says when it is done.
static hr_status insert_copy(offload *o, uint32_t at, bool behind, hr_op op, uint32_t from, uint32_t to,
                             uint32_t *event, hr_err *err)
{
    const hr_lane lane = op == HR_OP_OFFLOAD ? HR_LANE_D2H : HR_LANE_H2D;
    HR_TRY(insert_order(o, at, behind, HR_OP_RECORD, HR_LANE_COMPUTE, o->events, HR_NO_ID, err));
    HR_TRY(insert_order(o, at, behind, HR_OP_WAIT, lane, o->events++, HR_NO_ID, err));
    instr *copy = insert(o, at, behind, op, lane);
    if (copy == NULL) {
        return out_of_memory(err);
    }
    instr_in(copy, from);
    instr_out(copy, to);
    *event = o->events++;
    return insert_order(o, at, behind, HR_OP_RECORD, lane, *event, HR_NO_ID, err);
}

static hr_status like(draft *d, uint32_t id, const char *suffix, bool on_host, uint32_t *out, hr_err *err)
{
    const tensor t = d->tensors.data[id];
    const op_operand operand = tensor_operand(&t);
    HR_TRY(draft_tensor(d, draft_suffixed(d, t.name, suffix), &operand, t.category, t.layer, out, err));
    tensor *copy = &d->tensors.data[*out];
    copy->bytes = t.bytes;
    copy->padding_bytes = t.padding_bytes;
    copy->param = t.param;
    copy->device = on_host ? HR_DEVICE_HOST : 0;
    return HR_OK;
}

// ---- activations ----------------------------------------------------------------------------------------------

typedef struct uses {
    uint32_t last_forward, first_backward; // indices; HR_NO_ID
    uint32_t first_view,
        next_view; // tensors that share the owner's storage, ascending; HR_NO_ID behind the last
} uses;

static void note_use(const draft *d, uses *u, uint32_t id, uint32_t n, bool forward)
{
    uses *of = &u[draft_owner(d, id)];
    if (forward) {
        of->last_forward = n;
    } else if (of->first_backward == HR_NO_ID) {
        of->first_backward = n;
    }
}

static void find_uses(const draft *d, uses *u)
{
    memset(u, 0xff, d->tensors.count * sizeof *u);
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        const bool forward = i->phase == HR_PHASE_INPUT || i->phase == HR_PHASE_FORWARD;
        for (uint32_t k = 0; k < i->in_count; k++) {
            note_use(d, u, i->in[k], n, forward);
        }
        for (uint32_t k = 0; k < i->out_count; k++) {
            note_use(d, u, i->out[k], n, forward);
        }
    }
}

// Under a budget something may run again for a forward instruction.
static uint32_t end_of_forward(const draft *d)
{
    uint32_t end = 0;
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const bool forward =
            d->instrs.data[n].phase == HR_PHASE_INPUT || d->instrs.data[n].phase == HR_PHASE_FORWARD;
        end = forward ? n + 1 : end;
    }
    return end;
}

static void chain_views(const draft *d, uses *u)
{
    for (uint32_t k = d->tensors.count; k-- > d->persistent_count;) {
        const uint32_t owner = draft_owner(d, k);
        if (owner != k) {
            u[k].next_view = u[owner].first_view;
            u[owner].first_view = k;
        }
    }
}

// What a person still looks at after the step stays where it is.
static bool is_result(const draft *d, uint32_t owner)
{
    for (uint32_t k = 0; k < d->model->loss_count; k++) {
        if (draft_owner(d, d->value_tensor[d->model->losses[k].prediction]) == owner ||
            draft_owner(d, d->value_tensor[d->model->losses[k].value]) == owner) {
            return true;
        }
    }
    return false;
}

static bool is_worth_it(const offload *o, uint32_t owner, const uses *u)
{
    const tensor *t = &o->d->tensors.data[owner];
    const uint32_t back = u->first_backward == HR_NO_ID ? o->d->instrs.count : u->first_backward;
    return t->storage == owner && !t->persistent && t->category == HR_CATEGORY_ACTIVATIONS &&
           t->bytes >= SMALLEST_BYTES && u->last_forward != HR_NO_ID && back >= o->first_backward &&
           back - u->last_forward > 2 * o->prefetch + 2 && !is_result(o->d, owner);
}

// What goes `prefetch` instructions before it is wanted done, out and back.
static link_copy by_prefetch(const offload *o, uint32_t owner, const uses *u)
{
    const uint32_t done = u->last_forward + o->prefetch + 1;
    const uint32_t room = u->first_backward - o->first_backward;
    return (link_copy){.id = owner,
                       .done = done < o->first_backward ? done : o->first_backward,
                       .begin = u->first_backward - (o->prefetch < room ? o->prefetch : room)};
}

// t to the host behind its last use in forward; its bytes are free when the copy is done.
static hr_status send(offload *o, const link_copy *c, const uses *u, uint32_t *host, hr_err *err)
{
    const uint32_t owner = c->id;
    uint32_t event = 0;
    HR_TRY(like(o->d, owner, "host", true, host, err));
    HR_TRY(insert_copy(o, u->last_forward, true, HR_OP_OFFLOAD, owner, *host, &event, err));
    return insert_order(o, c->done - 1, true, HR_OP_WAIT, HR_LANE_COMPUTE, event, owner, err);
}

static hr_status bring_back(offload *o, const link_copy *c, uint32_t host, const uses *u, uint32_t *back,
                            hr_err *err)
{
    const uint32_t owner = c->id;
    uint32_t event = 0;
    HR_TRY(like(o->d, owner, "back", false, back, err));
    o->d->tensors.data[*back].held_until = o->d->tensors.data[owner].held_until;
    HR_TRY(insert_copy(o, c->begin, false, HR_OP_FETCH, host, *back, &event, err));
    return insert_order(o, u->first_backward, false, HR_OP_WAIT, HR_LANE_COMPUTE, event, *back, err);
}

// Every view of `owner` becomes a view of `back` from backward on: replaced[id] is its new id.
static hr_status replace(offload *o, uint32_t owner, uint32_t back, const uses *u, uint32_t *replaced,
                         hr_err *err)
{
    draft *d = o->d;
    for (uint32_t k = u[owner].first_view; k != HR_NO_ID; k = u[k].next_view) {
        HR_TRY(like(d, k, "back", false, &replaced[k], err));
        d->tensors.data[replaced[k]].storage = back;
        instr *view = insert(o, u[owner].first_backward, false, HR_OP_RESHAPE, HR_LANE_COMPUTE);
        if (view == NULL) {
            return out_of_memory(err);
        }
        instr_in(view, back);
        instr_out(view, replaced[k]);
    }
    replaced[owner] = back;
    return HR_OK;
}

static void forget_tape(tensor *t)
{
    t->saved = false;
    t->held_until = 0;
}

static hr_status move_activation(offload *o, const link_copy *c, const uses *u, uint32_t *replaced,
                                 hr_err *err)
{
    draft *d = o->d;
    const uint32_t owner = c->id;
    uint32_t host = 0, back = 0;
    HR_TRY(send(o, c, &u[owner], &host, err));
    if (u[owner].first_backward != HR_NO_ID) {
        HR_TRY(bring_back(o, c, host, &u[owner], &back, err));
        HR_TRY(replace(o, owner, back, u, replaced, err));
    }
    forget_tape(&d->tensors.data[owner]);
    for (uint32_t k = u[owner].first_view; k != HR_NO_ID; k = u[k].next_view) {
        forget_tape(&d->tensors.data[k]);
    }
    return HR_OK;
}

static void rewire_backward(draft *d, const uint32_t *replaced, uint32_t known, uint32_t first_backward)
{
    for (uint32_t n = first_backward; n < d->instrs.count; n++) {
        instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; k < i->in_count; k++) {
            const uint32_t id = i->in[k];
            i->in[k] = id < known && replaced[id] != HR_NO_ID ? replaced[id] : id;
        }
    }
}

static void mark_saved(const draft *d, bool *saved)
{
    for (uint32_t k = d->persistent_count; k < d->tensors.count; k++) {
        saved[draft_owner(d, k)] |= d->tensors.data[k].saved;
    }
}

// ---- under a budget -------------------------------------------------------------------------------------------

static bool may_leave(const offload *o, uint32_t owner, const uses *u)
{
    const tensor *t = &o->d->tensors.data[owner];
    return t->leaves && t->storage == owner && !t->persistent && u->last_forward != HR_NO_ID &&
           u->first_backward != HR_NO_ID && u->first_backward >= o->first_backward && !is_result(o->d, owner);
}

static uint32_t list_leaving(const offload *o, const uses *u, uint32_t known, link_copy *copies)
{
    uint32_t count = 0;
    for (uint32_t k = o->d->persistent_count; k < known; k++) {
        if (may_leave(o, k, &u[k])) {
            copies[count++] = (link_copy){.id = k,
                                          .behind = u[k].last_forward,
                                          .before = u[k].first_backward,
                                          .cost = copy_cost(o->d->target, o->d->tensors.data[k].bytes)};
        }
    }
    return count;
}

// As the link has room, by what instructions cost.
static hr_status move_leaving(offload *o, const uses *u, uint32_t known, uint32_t *replaced,
                              link_copy *copies, uint64_t *until, hr_err *err)
{
    const uint32_t count = list_leaving(o, u, known, copies), instrs = o->d->instrs.count;
    uint64_t sum = 0;
    HR_TRY(draft_costs(o->d, until, err));
    for (uint32_t n = 0; n <= instrs; n++) {
        const uint64_t cost = until[n];
        until[n] = sum;
        sum += cost;
    }
    (void)link_schedule(copies, count, until, instrs, o->first_backward);
    for (uint32_t k = 0; k < count; k++) {
        HR_TRY(move_activation(o, &copies[k], u, replaced, err));
    }
    return HR_OK;
}

static hr_status move_by_times(offload *o, const uses *u, uint32_t known, uint32_t *replaced, hr_err *err)
{
    link_copy *copies = hr_calloc(known + 1u, sizeof *copies);
    uint64_t *until = hr_calloc(o->d->instrs.count + 1u, sizeof *until);
    const hr_status status = copies == NULL || until == NULL
                                 ? out_of_memory(err)
                                 : move_leaving(o, u, known, replaced, copies, until, err);
    hr_free(copies);
    hr_free(until);
    return status;
}

static hr_status move_waiting(offload *o, const uses *u, uint32_t known, const bool *saved,
                              uint32_t *replaced, hr_err *err)
{
    for (uint32_t k = o->d->persistent_count; k < known; k++) {
        if (saved[k] && is_worth_it(o, k, &u[k])) {
            const link_copy c = by_prefetch(o, k, &u[k]);
            HR_TRY(move_activation(o, &c, u, replaced, err));
        }
    }
    return HR_OK;
}

static hr_status move_activations(offload *o, uses *u, uint32_t *replaced, bool *saved, hr_err *err)
{
    draft *d = o->d;
    const uint32_t known = d->tensors.count;
    memset(replaced, 0xff, known * sizeof *replaced);
    mark_saved(d, saved);
    o->first_backward = end_of_forward(d);
    find_uses(d, u);
    chain_views(d, u);
    HR_TRY(d->sends_all ? move_waiting(o, u, known, saved, replaced, err)
                        : move_by_times(o, u, known, replaced, err));
    rewire_backward(d, replaced, known, o->first_backward);
    return HR_OK;
}

static hr_status offload_activations(offload *o, hr_err *err)
{
    const uint32_t count = o->d->tensors.count;
    uses *u = hr_calloc(count, sizeof *u);
    uint32_t *replaced = hr_calloc(count, sizeof *replaced);
    bool *saved = hr_calloc(count, sizeof *saved);
    const hr_status status = u == NULL || replaced == NULL || saved == NULL
                                 ? out_of_memory(err)
                                 : move_activations(o, u, replaced, saved, err);
    hr_free(u);
    hr_free(replaced);
    hr_free(saved);
    return status;
}

// ---- optimizer state ------------------------------------------------------------------------------------------

static hr_status visit(offload *o, uint32_t n, uint32_t first, uint32_t slot, uint32_t *here, hr_err *err)
{
    uint32_t event = 0;
    const uint32_t begin = n - (o->prefetch < n - first ? o->prefetch : n - first);
    const uint32_t last = o->d->instrs.count - 1;
    const uint32_t done = n + o->prefetch < last ? n + o->prefetch : last;
    HR_TRY(like(o->d, slot, "here", false, here, err));
    HR_TRY(insert_copy(o, begin, false, HR_OP_FETCH, slot, *here, &event, err));
    HR_TRY(insert_order(o, n, false, HR_OP_WAIT, HR_LANE_COMPUTE, event, *here, err));
    HR_TRY(insert_copy(o, n, true, HR_OP_OFFLOAD, *here, slot, &event, err));
    return insert_order(o, done, true, HR_OP_WAIT, HR_LANE_COMPUTE, event, *here, err);
}

static void put_in_place(instr *i, uint32_t slot, uint32_t here)
{
    for (uint32_t k = 0; k < i->in_count; k++) {
        i->in[k] = i->in[k] == slot ? here : i->in[k];
    }
    for (uint32_t k = 0; k < i->out_count; k++) {
        i->out[k] = i->out[k] == slot ? here : i->out[k];
    }
}

// Every slot that lives on the host comes for its update and goes again; not before the rounds of an accumulated step
// are over.
static hr_status offload_optimizer(offload *o, hr_err *err)
{
    draft *d = o->d;
    uint32_t first = o->first_backward;
    for (uint32_t n = o->first_backward; n < d->instrs.count; n++) {
        const instr before = d->instrs.data[n];
        first = before.op == HR_OP_END ? n + 1 : first;
        for (uint32_t k = 0; k < before.in_count; k++) {
            uint32_t here = 0;
            if (d->tensors.data[before.in[k]].persistent && tensor_on_host(&d->tensors.data[before.in[k]])) {
                HR_TRY(visit(o, n, first, before.in[k], &here, err));
                put_in_place(&d->instrs.data[n], before.in[k], here);
            }
        }
    }
    return HR_OK;
}

// ---- the list -------------------------------------------------------------------------------------------------

static int by_place(const void *a, const void *b)
{
    const insertion *x = a, *y = b;
    const uint64_t at_x = 2 * (uint64_t)x->at + x->behind, at_y = 2 * (uint64_t)y->at + y->behind;
    if (at_x != at_y) {
        return at_x < at_y ? -1 : 1;
    }
    return x->order < y->order ? -1 : 1;
}

static hr_status merge(offload *o, hr_err *err)
{
    instr_list list = {NULL, 0, 0};
    const insertion *next = o->insertions.data, *end = next + o->insertions.count;
    if (!vec_reserve(&list, o->d->instrs.count + o->insertions.count)) {
        return out_of_memory(err);
    }
    qsort(o->insertions.data, o->insertions.count, sizeof *o->insertions.data, by_place);
    for (uint32_t n = 0; n < o->d->instrs.count; n++) {
        for (bool placed = false; !placed || (next < end && next->at == n);) {
            const bool inserted = next < end && next->at == n && (placed || !next->behind);
            instr *to = vec_push(&list);
            if (to == NULL) {
                vec_deinit(&list);
                return out_of_memory(err);
            }
            *to = inserted ? (next++)->i : o->d->instrs.data[n];
            placed |= !inserted;
        }
    }
    vec_deinit(&o->d->instrs);
    o->d->instrs = list;
    return HR_OK;
}

static hr_status insert_all(offload *o, hr_err *err)
{
    o->first_backward = end_of_forward(o->d);
    if (hr_knob_is(o->d->knobs, HR_KNOB_OFFLOAD_ACTIVATIONS, "on")) {
        HR_TRY(offload_activations(o, err));
    }
    if (hr_knob_is(o->d->knobs, HR_KNOB_OFFLOAD_OPTIMIZER, "on")) {
        HR_TRY(offload_optimizer(o, err));
    }
    return o->insertions.count == 0 ? HR_OK : merge(o, err);
}

hr_status pass_offload(draft *d, hr_err *err)
{
    offload o = {.d = d, .prefetch = (uint32_t)hr_knob_int(d->knobs, HR_KNOB_OFFLOAD_PREFETCH)};
    const hr_status status = insert_all(&o, err);
    vec_deinit(&o.insertions);
    return status;
}
