// SPDX-License-Identifier: Apache-2.0
// A step plan as a message: its arrays as they lie in memory, since both sides are one build, and then judged record by
// record, so that drawing may follow every index.
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/host_mem.h"
#include "program/program.h"
#include "session/planning_wire.h"

typedef struct step_plan_head {
    uint64_t instr_count, tensor_count, layer_count, event_count, build_events, texts_bytes;
    uint64_t limit_bytes, missing_bytes, peak_in_use_bytes;
    double step_seconds;
    uint32_t peak_instr, refused_instr, rounds, fits, basis, unused;
} step_plan_head;

void planning_put_step_plan(wire_out *o, const hr_step_plan *p)
{
    const step_plan_head h = {
        .instr_count = p->instr_count,
        .tensor_count = p->tensor_count,
        .layer_count = p->layer_count,
        .event_count = p->event_count,
        .build_events = p->build_events,
        .texts_bytes = p->texts_bytes,
        .limit_bytes = p->limit_bytes,
        .missing_bytes = p->missing_bytes,
        .peak_in_use_bytes = p->peak_in_use_bytes,
        .step_seconds = p->step_seconds,
        .peak_instr = p->peak_instr,
        .refused_instr = p->refused_instr,
        .rounds = p->rounds,
        .fits = p->fits,
        .basis = p->step_basis,
    };
    wire_put(o, &h, sizeof h);
    wire_put(o, p->instrs, p->instr_count * sizeof *p->instrs);
    wire_put(o, p->tensors, p->tensor_count * sizeof *p->tensors);
    wire_put(o, p->layers, p->layer_count * sizeof *p->layers);
    wire_put(o, p->events, p->event_count * sizeof *p->events);
    wire_put(o, p->texts, p->texts_bytes);
}

// ---- judging --------------------------------------------------------------------------------------------------

static bool is_index(uint32_t id, size_t count)
{
    return id == HR_NO_ID || id < count;
}

static bool is_time(double seconds)
{
    return isnan(seconds) || (seconds >= 0 && isfinite(seconds));
}

// A bool that is neither true nor false must not be looked at as one.
static bool are_flags(const bool *first, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        unsigned char flag;
        memcpy(&flag, first + k, 1);
        if (flag > 1) {
            return false;
        }
    }
    return true;
}

static bool is_instr(const hr_step_plan *p, const hr_step_plan_instr *i, uint32_t event_before)
{
    return are_flags(&i->is_alloc, 1) && are_flags(&i->is_free, 1) && are_flags(&i->again, 1) &&
           i->name < p->texts_bytes && i->line < p->texts_bytes && i->impl < p->texts_bytes &&
           is_index(i->layer, p->layer_count) && is_index(i->tensor, p->tensor_count) &&
           (i->is_alloc || i->is_free) == (i->tensor != HR_NO_ID) && i->phase <= HR_PHASE_COUNT &&
           i->lane < HR_LANE_COUNT && i->event >= event_before && i->event <= p->event_count &&
           is_time(i->seconds);
}

static bool is_tensor(const hr_step_plan *p, const hr_step_plan_tensor *t)
{
    return are_flags(&t->persistent, 1) && are_flags(&t->saved, 1) && t->name < p->texts_bytes &&
           t->dtype < p->texts_bytes && t->shape < p->texts_bytes && t->category <= HR_CATEGORY_COUNT &&
           is_index(t->layer, p->layer_count) && t->owner < p->tensor_count &&
           is_index(t->born, p->instr_count) && is_index(t->died, p->instr_count);
}

static bool is_layer(const hr_step_plan *p, const hr_step_plan_layer *l)
{
    return l->name < p->texts_bytes && l->kind < p->texts_bytes && l->output_shape < p->texts_bytes &&
           is_time(l->seconds) && (isnan(l->sparsity) || (l->sparsity >= 0 && l->sparsity <= 1));
}

static bool is_event(const hr_step_plan *p, const hr_event *e)
{
    return e->version == HR_EVENT_VERSION && e->kind >= HR_EVENT_ALLOC && e->kind <= HR_EVENT_OOM &&
           e->category <= HR_CATEGORY_COUNT && e->phase <= HR_PHASE_COUNT &&
           is_index(e->instr, p->instr_count) && is_index(e->u.memory.tensor, p->tensor_count);
}

static bool are_records(const hr_step_plan *p)
{
    bool good = true;
    for (size_t k = 0; good && k < p->instr_count; k++) {
        good = is_instr(p, &p->instrs[k], k == 0 ? 0 : p->instrs[k - 1].event);
    }
    for (size_t k = 0; good && k < p->tensor_count; k++) {
        good = is_tensor(p, &p->tensors[k]);
    }
    for (size_t k = 0; good && k < p->layer_count; k++) {
        good = is_layer(p, &p->layers[k]);
    }
    for (size_t k = 0; good && k < p->event_count; k++) {
        good = is_event(p, &p->events[k]);
    }
    return good;
}

static bool is_step_plan(const hr_step_plan *p)
{
    return p->texts_bytes > 0 && p->texts[0] == '\0' && p->texts[p->texts_bytes - 1] == '\0' &&
           p->build_events <= p->event_count && is_index(p->peak_instr, p->instr_count) &&
           is_index(p->refused_instr, p->instr_count) && is_time(p->step_seconds) && p->rounds > 0 &&
           are_records(p);
}

// ---- reading --------------------------------------------------------------------------------------------------

static void *get_records(wire_in *in, uint64_t count, size_t record_bytes)
{
    void *records = wire_get_array(in, count < HR_NO_ID ? count : UINT64_MAX, record_bytes);
    if (records != NULL) {
        wire_get(in, records, count * record_bytes);
    }
    return records;
}

bool planning_get_step_plan(wire_in *in, hr_step_plan *p)
{
    step_plan_head h = {0};
    wire_get(in, &h, sizeof h);
    *p = (hr_step_plan){
        .instr_count = h.instr_count,
        .tensor_count = h.tensor_count,
        .layer_count = h.layer_count,
        .event_count = h.event_count,
        .build_events = h.build_events,
        .texts_bytes = h.texts_bytes,
        .fits = h.fits == 1,
        .limit_bytes = h.limit_bytes,
        .missing_bytes = h.missing_bytes,
        .peak_in_use_bytes = h.peak_in_use_bytes,
        .peak_instr = h.peak_instr,
        .refused_instr = h.refused_instr,
        .step_seconds = h.step_seconds,
        .step_basis = h.basis < HR_TIME_BASIS_COUNT ? (hr_time_basis)h.basis : HR_TIME_UNKNOWN,
        .rounds = h.rounds,
    };
    p->instrs = get_records(in, h.instr_count, sizeof *p->instrs);
    p->tensors = get_records(in, h.tensor_count, sizeof *p->tensors);
    p->layers = get_records(in, h.layer_count, sizeof *p->layers);
    p->events = get_records(in, h.event_count, sizeof *p->events);
    p->texts = get_records(in, h.texts_bytes, 1);
    in->bad = in->bad || h.fits > 1 || h.basis >= HR_TIME_BASIS_COUNT || !is_step_plan(p);
    if (in->bad) {
        hr_step_plan_deinit(p);
    }
    return !in->bad;
}
