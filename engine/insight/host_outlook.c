// SPDX-License-Identifier: Apache-2.0
#include "insight/host_outlook.h"

#include <math.h>
#include <string.h>

#include "headroom/units.h"

#include "base/text.h"
#include "insight/host_facts.h"

static data_slot slot_of(const hr_model *model, const model_slot *slot)
{
    const model_value *value = &model->values[slot->value];
    data_slot s = {.type = value->dtype == HR_I32  ? DATA_IDS
                           : value->dtype == HR_U8 ? DATA_MASK
                                                   : DATA_FLOAT,
                   .is_label = slot->is_label,
                   .binary = slot->binary,
                   .classes = slot->classes,
                   .rank = value->shape.rank - 1};
    for (uint32_t k = 0; k < s.rank; k++) {
        s.dim[k] = (uint32_t)value->shape.dim[k + 1];
    }
    return s;
}

data_form host_form(const hr_model *model)
{
    data_form form = {.count = model_data_slots(model)};
    for (uint32_t k = 0; k < form.count; k++) {
        form.slot[k] = slot_of(model, &model->slots[k]);
    }
    return form;
}

data_slot host_answers(const hr_model *model)
{
    const uint32_t at = model_data_slots(model);
    return at < model->slot_count ? slot_of(model, &model->slots[at]) : (data_slot){.rank = 0};
}

// How a program has the input of that name; HR_F32 where it has none.
static hr_dtype type_of(const program *p, const char *name)
{
    for (uint32_t k = 0; p != NULL && k < p->persistent_count; k++) {
        const tensor *t = &p->tensors[k];
        if (t->category == HR_CATEGORY_INPUT && strcmp(t->name, name) == 0) {
            return (hr_dtype)t->dtype;
        }
    }
    return HR_F32;
}

void host_types(const program *p, const hr_model *model, data_type types[DATA_MAX_SLOTS])
{
    for (uint32_t k = 0; k < model_data_slots(model); k++) {
        const hr_dtype dtype = type_of(p, model->values[model->slots[k].value].name);
        types[k] = dtype == HR_F16    ? DATA_F16
                   : dtype == HR_BF16 ? DATA_BF16
                   : dtype == HR_F64  ? DATA_F64
                   : dtype == HR_U8   ? DATA_BYTES
                                      : DATA_FLOAT;
    }
}

uint64_t host_offloaded_bytes(const program *p)
{
    uint64_t sum = program_host_bytes(p);
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        sum += tensor_on_host(&p->tensors[k]) ? p->tensors[k].bytes : 0;
    }
    return sum;
}

bool host_is_pinned(const device_ops *device, const hr_knobs *knobs)
{
    return device->pinned != NULL && hr_knob_is(knobs, HR_KNOB_PIPELINE_PINNED, "on");
}

void host_outlook_make(const hr_knobs *knobs, const hr_model *model, const program *train,
                       const program *eval, const device_ops *device, host_outlook *out)
{
    const data_form form = host_form(model);
    pipeline_wire wire = {.pinned = {.take = NULL}, .answers = host_answers(model)};
    data_facts facts;
    hr_err err = {0};
    *out = (host_outlook){
        .offloaded_bytes = host_offloaded_bytes(train), .bytes = HR_NONE, .input.input_seconds = (double)NAN};
    host_types(train, model, wire.train);
    host_types(eval != NULL ? eval : train, model, wire.eval);
    const data_form batches = data_form_narrowed(&form, wire.train);
    out->known = host_facts_for(knobs, &form, &facts, &err) == HR_OK &&
                 data_source_check_form(&facts.source, &batches, &err) == HR_OK;
    if (!out->known) {
        (void)text_copy(out->why, sizeof out->why, err.sentence);
        return;
    }
    out->input = time_plan_make(knobs, &facts, &wire);
    out->pipeline = host_plan_make(knobs, &facts, &wire, host_is_pinned(device, knobs));
    (void)hr_add_bytes(out->offloaded_bytes, out->pipeline.bytes, &out->bytes);
}

uint64_t host_outlook_beyond(const host_outlook *outlook, const hr_knobs *knobs)
{
    const uint64_t limit_bytes = hr_knob_bytes(knobs, HR_KNOB_PIPELINE_RAM_LIMIT, UINT64_MAX);
    return outlook->known && outlook->bytes > limit_bytes ? outlook->bytes - limit_bytes : 0;
}
