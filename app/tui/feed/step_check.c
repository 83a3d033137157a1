// SPDX-License-Identifier: Apache-2.0
// A step plan comes from another process and is not trusted: afterwards every index is one, or HR_NO_ID, every text ends,
// and no number of bytes is larger than can be added up.
#include <math.h>

#include "app/tui/feed/step_read.h"

static uint32_t within(uint32_t index, size_t count)
{
    return index < count ? index : HR_NO_ID;
}

// No card has an exbibyte, and a handful of them can be added up.
static void tame(uint64_t *bytes)
{
    const uint64_t most = UINT64_C(1) << 60;
    *bytes = *bytes < most ? *bytes : most;
}

static void check_counts(hr_step_plan *p)
{
    p->instr_count = p->instrs == NULL ? 0 : p->instr_count < HR_NO_ID ? p->instr_count : HR_NO_ID - 1;
    p->tensor_count = p->tensors == NULL ? 0 : p->tensor_count < HR_NO_ID ? p->tensor_count : HR_NO_ID - 1;
    p->layer_count = p->layers == NULL ? 0 : p->layer_count < HR_NO_ID ? p->layer_count : HR_NO_ID - 1;
    p->event_count = p->events == NULL ? 0 : p->event_count;
    p->build_events = p->build_events < p->event_count ? p->build_events : p->event_count;
    p->texts_bytes = p->texts == NULL ? 0 : p->texts_bytes;
    if (p->texts_bytes > 0) {
        p->texts[p->texts_bytes - 1] = '\0';
    }
    tame(&p->limit_bytes);
    tame(&p->missing_bytes);
    tame(&p->peak_in_use_bytes);
    p->peak_instr = within(p->peak_instr, p->instr_count);
    p->refused_instr = p->fits ? HR_NO_ID : within(p->refused_instr, p->instr_count);
}

static void check_tensors(hr_step_plan *p)
{
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        hr_step_plan_tensor *t = &p->tensors[k];
        t->category = t->category <= HR_CATEGORY_COUNT ? t->category : HR_CATEGORY_COUNT;
        t->layer = within(t->layer, p->layer_count);
        t->owner = t->owner < p->tensor_count ? t->owner : k;
        t->born = within(t->born, p->instr_count);
        t->died = within(t->died, p->instr_count);
        tame(&t->bytes);
        tame(&t->allocated_bytes);
    }
}

static void check_layers(hr_step_plan *p)
{
    for (size_t k = 0; k < p->layer_count; k++) {
        hr_step_plan_layer *layer = &p->layers[k];
        layer->sparsity = layer->sparsity >= 0 && layer->sparsity <= 1 ? layer->sparsity : (double)NAN;
        tame(&layer->width);
        uint64_t *const bytes[] = {&layer->parameters, &layer->parameter_bytes, &layer->activation_bytes,
                                   &layer->saved_bytes, &layer->flops};
        for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
            const bool may_be_none = bytes[i] != &layer->activation_bytes;
            if (!may_be_none || *bytes[i] != HR_NONE) {
                tame(bytes[i]);
            }
        }
    }
}

static void check_instrs(hr_step_plan *p)
{
    for (size_t i = 0; i < p->instr_count; i++) {
        hr_step_plan_instr *instr = &p->instrs[i];
        instr->layer = within(instr->layer, p->layer_count);
        instr->tensor = within(instr->tensor, p->tensor_count);
        instr->is_alloc = instr->is_alloc && instr->tensor != HR_NO_ID;
        instr->is_free = instr->is_free && instr->tensor != HR_NO_ID && !instr->is_alloc;
        instr->phase = instr->phase < HR_PHASE_COUNT ? instr->phase : HR_PHASE_COUNT;
        uint64_t *const bytes[] = {&instr->in_use_bytes, &instr->pool_bytes, &instr->requested_bytes,
                                   &instr->bytes_moved, &instr->flops};
        for (size_t k = 0; k < sizeof bytes / sizeof *bytes; k++) {
            tame(bytes[k]);
        }
        for (size_t k = 0; k < HR_CATEGORY_COUNT; k++) {
            tame(&instr->by_category[k]);
        }
        instr->event = instr->event <= p->event_count ? instr->event : (uint32_t)p->event_count;
    }
}

void step_check(hr_step_plan *p)
{
    check_counts(p);
    check_tensors(p);
    check_layers(p);
    check_instrs(p);
    for (size_t e = 0; e < p->event_count; e++) {
        hr_event *event = &p->events[e];
        event->category = event->category <= HR_CATEGORY_COUNT ? event->category : HR_CATEGORY_COUNT;
        event->instr = within(event->instr, p->instr_count);
        if (event->kind >= HR_EVENT_ALLOC && event->kind <= HR_EVENT_OOM) {
            event->u.memory.tensor = within(event->u.memory.tensor, p->tensor_count);
        }
    }
}
