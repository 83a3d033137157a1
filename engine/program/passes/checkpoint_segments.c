// SPDX-License-Identifier: Apache-2.0
// Values, places and gradients of a draft, once for all segments.
#include "program/checkpoint_segments.h"

#include <string.h>

#include "program/costs.h"

enum { NODES_MOST = 128 };

void segments_destroy(segments *s)
{
    if (s == NULL) {
        return;
    }
    void *all[] = {s->value_of, s->values, s->again,         s->runs,           s->place,
                   s->over,     s->dies,   s->sibling,       s->cost,           s->base,
                   s->before,   s->begin,  s->first_forward, s->first_backward, s->first_value};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        hr_free(all[k]);
    }
    hr_free(s);
}

uint32_t segments_count(const segments *s)
{
    return s->node_count;
}

uint32_t segments_begin(const segments *s, uint32_t node)
{
    return s->begin[node];
}

// ---- places -----------------------------------------------------------------------------------------------------

static uint32_t in_order(const draft *d, const instr *i, uint32_t at)
{
    const bool own = i->layer != HR_NO_ID && i->layer < d->model->own_layers;
    return own && i->layer > at ? i->layer : at;
}

static hr_status find_places(segments *s, hr_err *err)
{
    const draft *d = s->d;
    uint32_t *of_id = hr_calloc(d->next_instr_id + 1u, sizeof *of_id);
    if (of_id == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the places of %u instructions", d->instrs.count);
    }
    uint32_t at = 0;
    for (uint32_t n = 0; n < s->forward_count; n++) {
        at = in_order(d, &d->instrs.data[n], at);
        s->place[n] = at;
        of_id[d->instrs.data[n].id] = at;
    }
    for (uint32_t n = s->forward_count; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        const uint32_t place = i->serves != 0 && i->phase == HR_PHASE_BACKWARD ? of_id[i->serves] : at;
        at = place < at ? place : at;
        s->place[n] = at;
    }
    hr_free(of_id);
    return HR_OK;
}

// ---- values -----------------------------------------------------------------------------------------------------

static void find_values(segments *s, const bool *may_drop, const bool *cheap)
{
    const draft *d = s->d;
    memset(s->value_of, 0xff, d->tensors.count * sizeof *s->value_of);
    for (uint32_t n = 0; n < s->forward_count; n++) {
        const instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; k < i->out_count; k++) {
            const uint32_t owner = draft_owner(d, i->out[k]);
            if (!d->tensors.data[owner].persistent && s->value_of[owner] == HR_NO_ID) {
                s->value_of[owner] = s->value_count;
                s->values[s->value_count++] = (segment_value){.first_place = UINT32_MAX,
                                                              .born = n,
                                                              .read = n,
                                                              .bytes = d->tensors.data[owner].bytes,
                                                              .droppable = true,
                                                              .cheap = true};
            }
            if (s->value_of[owner] != HR_NO_ID) {
                segment_value *v = &s->values[s->value_of[owner]];
                v->droppable = v->droppable && may_drop[i->out[k]];
                v->cheap = v->cheap && cheap[i->out[k]];
            }
        }
    }
}

static void share_values(segments *s)
{
    for (uint32_t t = 0; t < s->d->tensors.count; t++) {
        s->value_of[t] = s->value_of[draft_owner(s->d, t)];
    }
}

static segment_value *value_at(const segments *s, uint32_t tensor_id)
{
    const uint32_t v = s->value_of[tensor_id];
    return v == HR_NO_ID ? NULL : &s->values[v];
}

static void note_tape(const segments *s, const instr *i)
{
    const op_row *row = op_row_of(i->op);
    for (uint32_t k = 0; k < i->in_count; k++) {
        segment_value *v = value_at(s, i->in[k]);
        if (v != NULL && (row->keep_in >> k & 1) != 0) {
            v->on_tape = true;
        }
    }
    for (uint32_t k = 0; k < i->out_count; k++) {
        segment_value *v = value_at(s, i->out[k]);
        if (v != NULL && (row->keep_out >> k & 1) != 0) {
            v->on_tape = true;
        }
    }
}

static void find_readers(segments *s)
{
    const draft *d = s->d;
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        const bool forward = n < s->forward_count;
        const bool behind = i->layer == HR_NO_ID || i->layer >= d->model->own_layers;
        for (uint32_t k = 0; k < i->in_count; k++) {
            segment_value *v = value_at(s, i->in[k]);
            if (v == NULL) {
                continue;
            }
            if (forward) {
                v->read = n;
                v->first_place = s->place[n] < v->first_place ? s->place[n] : v->first_place;
                v->read_place = behind                        ? UINT32_MAX
                                : s->place[n] > v->read_place ? s->place[n]
                                                              : v->read_place;
            } else {
                v->asked = v->asked == 0 ? n : v->asked;
                v->back = n;
            }
        }
        if (forward && d->eager && i->phase == HR_PHASE_FORWARD) {
            note_tape(s, i);
        }
    }
}

// Which values are read last at each instruction; forward in the first half of the chain's links, backward in the second.
static void find_deaths(segments *s)
{
    memset(s->dies, 0xff, s->d->instrs.count * sizeof *s->dies);
    for (uint32_t v = 0; v < s->value_count; v++) {
        const uint32_t read = s->values[v].read, back = s->values[v].back;
        s->sibling[v] = s->dies[read];
        s->dies[read] = v;
        if (back != 0) {
            s->sibling[s->value_count + v] = s->dies[back];
            s->dies[back] = v;
        }
    }
}

static uint32_t overwritten(const segments *s, uint32_t n)
{
    const instr *i = &s->d->instrs.data[n];
    const op_row *row = op_row_of(i->op);
    if (row->in_place < 0 || row->in_place >= i->in_count || i->out_count <= row->in_place_out) {
        return HR_NO_ID;
    }
    const segment_value *from = value_at(s, i->in[row->in_place]),
                        *to = value_at(s, i->out[row->in_place_out]);
    const bool fits = from != NULL && to != NULL && from != to && from->read == n && to->born == n;
    return fits && from->bytes == to->bytes ? (uint32_t)(from - s->values) : HR_NO_ID;
}

static hr_status find_costs(segments *s, hr_err *err)
{
    const bool off = hr_knob_is(s->d->knobs, HR_KNOB_EXECUTION_INPLACE, "off");
    for (uint32_t n = 0; n < s->forward_count; n++) {
        s->over[n] = off ? HR_NO_ID : overwritten(s, n);
    }
    return draft_costs(s->d, s->cost, err);
}

// ---- gradients ----------------------------------------------------------------------------------------------------

// Gradients of weights wait for the update, unless that comes at once.
static bool waits(const segments *s, uint32_t owner)
{
    return s->d->tensors.data[owner].category == HR_CATEGORY_GRADIENTS &&
           hr_knob_is(s->d->knobs, HR_KNOB_OPTIMIZER_FUSED_BACKWARD, "off") &&
           hr_knob_int(s->d->knobs, HR_KNOB_BATCH_ACCUMULATE) <= 1;
}

static uint32_t operand(const segments *s, const instr *i, uint32_t k)
{
    return draft_owner(s->d, k < i->in_count ? i->in[k] : i->out[k - i->in_count]);
}

static uint64_t add_births(const segments *s, const instr *i, bool *born)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < i->out_count; k++) {
        const uint32_t owner = draft_owner(s->d, i->out[k]);
        if (!s->d->tensors.data[owner].persistent && !born[owner] && s->value_of[owner] == HR_NO_ID) {
            born[owner] = true;
            sum += s->d->tensors.data[owner].bytes;
        }
    }
    return sum;
}

static void add_up_gradients(segments *s, uint32_t *last, bool *born)
{
    const draft *d = s->d;
    for (uint32_t n = s->forward_count; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; k < (uint32_t)i->in_count + i->out_count; k++) {
            last[operand(s, i, k)] = n;
        }
    }
    uint64_t alive = 0;
    for (uint32_t n = s->forward_count; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        s->before[n] = alive;
        alive += add_births(s, i, born);
        s->base[n] = alive;
        for (uint32_t k = 0; k < (uint32_t)i->in_count + i->out_count; k++) {
            const uint32_t owner = operand(s, i, k);
            if (born[owner] && last[owner] == n && !waits(s, owner)) {
                last[owner] = HR_NO_ID;
                alive -= d->tensors.data[owner].bytes;
            }
        }
    }
}

static hr_status find_base(segments *s, hr_err *err)
{
    uint32_t *last = hr_calloc(s->d->tensors.count, sizeof *last);
    bool *born = hr_calloc(s->d->tensors.count, sizeof *born);
    hr_status status = HR_OK;
    if (last == NULL || born == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory for the gradients of %u tensors", s->d->tensors.count);
    } else {
        add_up_gradients(s, last, born);
    }
    hr_free(last);
    hr_free(born);
    return status;
}

// ---- nodes --------------------------------------------------------------------------------------------------------

// Bytes that are read behind each layer.
static void find_crossing(const segments *s, int64_t *crossing, uint32_t layers)
{
    for (uint32_t v = 0; v < s->value_count; v++) {
        const segment_value *x = &s->values[v];
        const uint32_t read = x->read_place < layers ? x->read_place : layers;
        if (read > s->place[x->born]) {
            crossing[s->place[x->born]] += (int64_t)x->bytes;
            crossing[read] -= (int64_t)x->bytes;
        }
    }
    for (uint32_t l = 1; l < layers; l++) {
        crossing[l] += crossing[l - 1];
    }
}

// Of many layers in a row that behind which the fewest bytes cross.
static hr_status find_nodes(segments *s, hr_err *err)
{
    const uint32_t layers = s->d->model->own_layers;
    const uint32_t group = (layers + NODES_MOST - 1) / NODES_MOST;
    int64_t *crossing = hr_calloc(layers + 1u, sizeof *crossing);
    if (crossing == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the places between %u layers", layers);
    }
    find_crossing(s, crossing, layers);
    s->begin[0] = 0;
    for (uint32_t l = 0; l + group < layers; l += group) {
        uint32_t best = l;
        for (uint32_t k = l; k < l + group; k++) {
            best = crossing[k] < crossing[best] ? k : best;
        }
        s->begin[++s->node_count] = best + 1;
    }
    s->begin[++s->node_count] = layers;
    hr_free(crossing);
    return HR_OK;
}

static void find_pieces(segments *s)
{
    const uint32_t count = s->d->instrs.count;
    uint32_t forward = 0, backward = count, v = 0;
    for (uint32_t k = 0; k <= s->node_count; k++) {
        while (forward < s->forward_count && (k == s->node_count || s->place[forward] < s->begin[k])) {
            forward++;
        }
        while (v < s->value_count && s->values[v].born < forward) {
            v++;
        }
        while (backward > s->forward_count && s->place[backward - 1] < s->begin[k]) {
            backward--;
        }
        s->first_forward[k] = k == 0 ? 0 : forward;
        s->first_value[k] = k == 0 ? 0 : v;
        s->first_backward[k] = k == 0 ? count : backward;
    }
}

static hr_status fill(segments *s, const bool *may_drop, const bool *cheap, hr_err *err)
{
    HR_TRY(find_places(s, err));
    find_values(s, may_drop, cheap);
    share_values(s);
    find_readers(s);
    find_deaths(s);
    HR_TRY(find_costs(s, err));
    HR_TRY(find_base(s, err));
    HR_TRY(find_nodes(s, err));
    find_pieces(s);
    return HR_OK;
}

static bool make_room(segments *s)
{
    const uint32_t instrs = s->d->instrs.count + 1u, tensors = s->d->tensors.count + 1u;
    s->value_of = hr_calloc(tensors, sizeof *s->value_of);
    s->values = hr_calloc(tensors, sizeof *s->values);
    s->again = hr_calloc(tensors, sizeof *s->again);
    s->sibling = hr_calloc(2u * tensors, sizeof *s->sibling);
    s->runs = hr_calloc(instrs, sizeof *s->runs);
    s->place = hr_calloc(instrs, sizeof *s->place);
    s->over = hr_calloc(instrs, sizeof *s->over);
    s->dies = hr_calloc(instrs, sizeof *s->dies);
    s->cost = hr_calloc(instrs, sizeof *s->cost);
    s->base = hr_calloc(instrs, sizeof *s->base);
    s->before = hr_calloc(instrs, sizeof *s->before);
    s->begin = hr_calloc(NODES_MOST + 2, sizeof *s->begin);
    s->first_forward = hr_calloc(NODES_MOST + 2, sizeof *s->first_forward);
    s->first_backward = hr_calloc(NODES_MOST + 2, sizeof *s->first_backward);
    s->first_value = hr_calloc(NODES_MOST + 2, sizeof *s->first_value);
    return s->value_of != NULL && s->values != NULL && s->again != NULL && s->sibling != NULL &&
           s->runs != NULL && s->place != NULL && s->over != NULL && s->dies != NULL && s->cost != NULL &&
           s->base != NULL && s->before != NULL && s->begin != NULL && s->first_forward != NULL &&
           s->first_backward != NULL && s->first_value != NULL;
}

hr_status segments_create(const draft *d, uint32_t forward_count, const bool *may_drop, const bool *cheap,
                          segments **out, hr_err *err)
{
    segments *s = hr_calloc(1, sizeof *s);
    *out = NULL;
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the segments of %u instructions", d->instrs.count);
    }
    s->d = d;
    s->forward_count = forward_count;
    const hr_status status =
        make_room(s)
            ? fill(s, may_drop, cheap, err)
            : HR_FAIL(err, NOMEM, "no host memory for the segments of %u instructions", d->instrs.count);
    if (status != HR_OK) {
        segments_destroy(s);
        return status;
    }
    *out = s;
    return HR_OK;
}
