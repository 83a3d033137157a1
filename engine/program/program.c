// SPDX-License-Identifier: Apache-2.0
#include "program/program.h"

#include <stdio.h>
#include <string.h>

#include "headroom/event.h"

#include "program/draft.h"

static op_operand operand_at(const program *p, uint32_t id)
{
    const tensor *t = &p->tensors[id];
    return (op_operand){.shape = t->shape, .dtype = t->dtype, .layout = t->layout};
}

void program_query(const program *p, const instr *i, op_query *out)
{
    *out = (op_query){.op = i->op, .attr = i->attr, .in_count = i->in_count, .out_count = i->out_count};
    for (uint32_t k = 0; k < i->in_count; k++) {
        out->in[k] = operand_at(p, i->in[k]);
    }
    for (uint32_t k = 0; k < i->out_count; k++) {
        out->out[k] = operand_at(p, i->out[k]);
    }
}

const char *program_instr_name(const program *p, const instr *i, char *text, size_t size)
{
    const char *layer = i->layer < p->layer_count ? p->layer_names[i->layer] : "step";
    static const char *const fused[HR_ACT_COUNT] = {
        [HR_ACT_NONE] = "", [HR_ACT_RELU] = "+relu", [HR_ACT_RELU6] = "+relu6", [HR_ACT_GELU] = "+gelu"};
    (void)snprintf(
        text, size, "%s/%s%s", layer, op_name(i->op),
        fused[i->phase == HR_PHASE_FORWARD || i->op == HR_OP_BATCH_NORM_BWD || i->op == HR_OP_DENSE_BWD_DATA
                  ? i->attr.act
                  : HR_ACT_NONE]);
    return text;
}

uint64_t program_offset(const program *p, uint32_t tensor_id)
{
    uint64_t offset = p->tensors[tensor_id].offset;
    while (p->tensors[tensor_id].storage != tensor_id) {
        tensor_id = p->tensors[tensor_id].storage;
        offset += p->tensors[tensor_id].offset;
    }
    return offset;
}

static uint64_t before(const program *p, uint32_t workspace, const uint32_t *ids, uint8_t count,
                       uint64_t bytes)
{
    for (uint8_t k = 0; k < count; k++) {
        const tensor *t = &p->tensors[ids[k]];
        bytes = ids[k] != workspace && t->storage == workspace && t->offset < bytes ? t->offset : bytes;
    }
    return bytes;
}

uint64_t program_scratch_bytes(const program *p, const instr *i)
{
    if (i->workspace == HR_NO_ID) {
        return 0;
    }
    const uint64_t bytes = before(p, i->workspace, i->in, i->in_count, p->tensors[i->workspace].bytes);
    return before(p, i->workspace, i->out, i->out_count, bytes);
}

uint64_t program_live_after(const program *p, const instr *i, uint64_t live_bytes)
{
    live_bytes += i->op == HR_OP_ALLOC ? p->tensors[i->out[0]].bytes : 0;
    return live_bytes - (i->op == HR_OP_FREE ? p->tensors[i->in[0]].bytes : 0);
}

void program_note_prepared(program *p, uint32_t n, const char *impl)
{
    instr *i = (instr *)(uintptr_t)&p->instrs[n]; // the program's own
    const char *planned = i->planned == NULL ? i->impl : i->planned;
    i->planned = planned != NULL && strcmp(planned, impl) != 0 ? planned : NULL;
    i->impl = impl;
}

// A round leaves behind only what it retains, so the last one stands on all that the others left.
uint64_t program_peak_bytes(const program *p)
{
    uint64_t live = 0;
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        live += tensor_on_host(&p->tensors[k]) ? 0 : p->tensors[k].bytes;
    }
    uint64_t peak = live;
    uint64_t round_begin = live;
    uint64_t round_peak = live;
    uint64_t other_rounds = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        live = program_live_after(p, i, live);
        round_peak = live > round_peak ? live : round_peak;
        if (i->op == HR_OP_REPEAT) {
            other_rounds = (uint64_t)i->attr.count - 1;
            round_begin = round_peak = live;
        } else if (i->op == HR_OP_END) {
            uint64_t left_behind = other_rounds * (live - round_begin);
            round_peak += left_behind;
            live += left_behind;
        }
        peak = round_peak > peak ? round_peak : peak;
    }
    return peak;
}

static uint32_t operand_owner(const program *p, const instr *i, uint32_t k)
{
    uint32_t id = k < i->in_count ? i->in[k] : i->out[k - i->in_count];
    while (p->tensors[id].storage != id) {
        id = p->tensors[id].storage;
    }
    return id;
}

// May the result lie where that operand is? In another step it does.
static bool may_lie_there(const program *p, const instr *i)
{
    const op_row *row = op_row_of(i->op);
    if (row->in_place < 0 || row->in_place >= i->in_count || row->in_place_out >= i->out_count) {
        return false;
    }
    const uint32_t from = operand_owner(p, i, (uint32_t)row->in_place),
                   to = operand_owner(p, i, i->in_count + (uint32_t)row->in_place_out);
    return from != to && !p->tensors[from].persistent && !p->tensors[to].persistent &&
           p->tensors[from].bytes == p->tensors[to].bytes;
}

// Of operands that come and go; gradients are counted elsewhere.
static uint64_t working_bytes(const program *p, const instr *i)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < (uint32_t)i->in_count + i->out_count; k++) {
        const uint32_t owner = operand_owner(p, i, k);
        const tensor *t = &p->tensors[owner];
        bool counts = !t->persistent && !tensor_on_host(t) && t->category != HR_CATEGORY_GRADIENTS;
        for (uint32_t before = 0; before < k && counts; before++) {
            counts = operand_owner(p, i, before) != owner;
        }
        sum += counts ? t->bytes : 0;
    }
    const uint64_t twice =
        may_lie_there(p, i) ? p->tensors[operand_owner(p, i, (uint32_t)op_row_of(i->op)->in_place)].bytes : 0;
    return sum > twice ? sum - twice : 0;
}

uint64_t program_floor_bytes(const program *p, const instr **which)
{
    uint64_t stays = 0, most = 0;
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        stays += tensor_on_host(&p->tensors[k]) ? 0 : p->tensors[k].bytes;
    }
    *which = NULL;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        const uint32_t id = i->op == HR_OP_ALLOC ? i->out[0] : i->op == HR_OP_FREE ? i->in[0] : HR_NO_ID;
        if (id != HR_NO_ID) {
            const bool waits = p->tensors[id].category == HR_CATEGORY_GRADIENTS;
            stays = waits ? program_live_after(p, i, stays) : stays;
        } else if (!op_row_of(i->op)->control && stays + working_bytes(p, i) > most) {
            most = stays + working_bytes(p, i);
            *which = i;
        }
    }
    return most;
}

enum { HOST_ALIGNMENT_BYTES = 64 };

uint64_t program_host_room(const tensor *t)
{
    return (t->bytes + HOST_ALIGNMENT_BYTES - 1) / HOST_ALIGNMENT_BYTES * HOST_ALIGNMENT_BYTES;
}

uint64_t program_host_bytes(const program *p)
{
    uint64_t sum = 0;
    for (uint32_t k = p->persistent_count; k < p->tensor_count; k++) {
        sum += tensor_on_host(&p->tensors[k]) ? program_host_room(&p->tensors[k]) : 0;
    }
    return sum;
}

void program_destroy(program *p)
{
    if (p == NULL) {
        return;
    }
    program_owner *o = p->owner;
    instr_list instrs = {.data = NULL};
    VEC(tensor) tensors = {.data = NULL};
    memcpy(&instrs.data, &p->instrs, sizeof instrs.data);
    memcpy(&tensors.data, &p->tensors, sizeof tensors.data);
    vec_deinit(&instrs);
    vec_deinit(&tensors);
    arena_deinit(&o->names);
    hr_free(o);
}
