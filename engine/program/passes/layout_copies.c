// SPDX-License-Identifier: Apache-2.0
#include "program/layout.h"

typedef struct copies {
    const layout_choice *c;
    uint32_t *copy[LAYOUT_TIMES]; // [tensors before] HR_NO_ID: none yet
    instr_list list;
} copies;

layout_time layout_time_of(const instr *i)
{
    return i->phase < HR_PHASE_BACKWARD ? LAYOUT_EARLY : LAYOUT_LATE;
}

// In eager mode the tape keeps the image itself.
bool layout_shares_copy(const layout_choice *c, uint32_t tensor_id)
{
    const layout_image *image = &c->images[tensor_id];
    return !c->d->eager && image->readers[LAYOUT_LATE][image->blocked] == 0;
}

unsigned layout_copies_of(const layout_choice *c, uint32_t tensor_id)
{
    const layout_image *image = &c->images[tensor_id];
    const unsigned early = image->readers[LAYOUT_EARLY][!image->blocked] > 0;
    const unsigned late = image->readers[LAYOUT_LATE][!image->blocked] > 0;
    return early + late == 2 && layout_shares_copy(c, tensor_id) ? 1 : early + late;
}

// What stands for its image until backward is what is kept; other copies go when their readers have run.
static hr_status make_copy(copies *m, uint32_t id, bool stands, const instr *reader, uint32_t *out,
                           hr_err *err)
{
    draft *d = m->c->d;
    const tensor t = d->tensors.data[id];
    const bool to_blocked = t.layout == HR_LAYOUT_PLAIN;
    op_operand o = tensor_operand(&t);
    o.layout = to_blocked ? HR_LAYOUT_BLOCKED : HR_LAYOUT_PLAIN;
    const char *name = arena_print(&d->names, "%s:%s", t.name, to_blocked ? "blocked" : "plain");
    const hr_category category = stands ? HR_CATEGORY_ACTIVATIONS : HR_CATEGORY_TEMPORARIES;
    HR_TRY(draft_tensor(d, name, &o, category, t.layer, out, err));
    d->tensors.data[*out].saved = stands && t.saved;
    d->tensors.data[id].saved = t.saved && !stands;
    instr *r = draft_instr(d, &m->list, HR_OP_REORDER, (hr_phase)reader->phase, t.layer);
    if (r == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    r->device = reader->device;
    r->attr.peer = HR_NO_ID;
    instr_in(r, id);
    instr_out(r, *out);
    return HR_OK;
}

static hr_status read_copy(copies *m, instr *i, uint32_t k, hr_err *err)
{
    draft *d = m->c->d;
    const uint32_t id = i->in[k];
    const layout_image *image = &m->c->images[id];
    const bool both = image->readers[LAYOUT_EARLY][!image->blocked] > 0 &&
                      image->readers[LAYOUT_LATE][!image->blocked] > 0 && layout_shares_copy(m->c, id);
    uint32_t *copy = &m->copy[both ? LAYOUT_EARLY : layout_time_of(i)][id];
    const bool is_view = op_row_of(i->op)->view;
    if (*copy == HR_NO_ID) {
        HR_TRY(make_copy(m, id, both, i, copy, err));
    }
    i->in[k] = *copy;
    if (is_view) {
        d->tensors.data[i->out[0]].storage = *copy;
        d->tensors.data[*copy].category = HR_CATEGORY_ACTIVATIONS;
    }
    return HR_OK;
}

static hr_status place(copies *m, uint32_t n, hr_err *err)
{
    instr i = m->c->d->instrs.data[n];
    for (uint32_t k = 0; k < i.in_count; k++) {
        const layout_image *image = &m->c->images[i.in[k]];
        if (image->may_block && image->blocked != m->c->blocked[n]) {
            HR_TRY(read_copy(m, &i, k, err));
        }
    }
    instr *placed = vec_push(&m->list);
    if (placed == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    *placed = i;
    return HR_OK;
}

static hr_status lay_images(const layout_choice *c, hr_err *err)
{
    for (uint32_t k = 0; k < c->d->tensors.count; k++) {
        if (c->images[k].may_block && c->images[k].blocked) {
            c->d->tensors.data[k].layout = HR_LAYOUT_BLOCKED;
            HR_TRY(draft_measure(&c->d->tensors.data[k], err));
        }
    }
    return HR_OK;
}

hr_status layout_apply(const layout_choice *c, hr_err *err)
{
    draft *d = c->d;
    const uint32_t tensors = d->tensors.count;
    copies m = {.c = c, .copy = {hr_calloc(tensors, sizeof(uint32_t)), hr_calloc(tensors, sizeof(uint32_t))}};
    hr_status status = m.copy[0] != NULL && m.copy[1] != NULL
                           ? lay_images(c, err)
                           : HR_FAIL(err, NOMEM, "no host memory for the copies of %u images", tensors);
    for (uint32_t k = 0; status == HR_OK && k < tensors; k++) {
        m.copy[LAYOUT_EARLY][k] = m.copy[LAYOUT_LATE][k] = HR_NO_ID;
    }
    for (uint32_t n = 0; status == HR_OK && n < d->instrs.count; n++) {
        status = place(&m, n, err);
    }
    if (status == HR_OK) {
        vec_deinit(&d->instrs);
        d->instrs = m.list;
    } else {
        vec_deinit(&m.list);
    }
    hr_free(m.copy[0]);
    hr_free(m.copy[1]);
    return status;
}
