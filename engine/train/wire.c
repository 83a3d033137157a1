// SPDX-License-Identifier: Apache-2.0
#include "train/wire.h"

#include <string.h>

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

static data_type data_type_of(hr_dtype dtype)
{
    return dtype == HR_F16 ? DATA_F16 : dtype == HR_BF16 ? DATA_BF16 : DATA_FLOAT;
}

void wire_types(const build *b, const hr_model *model, pipeline_wire *out)
{
    *out = (pipeline_wire){.pinned = {.take = NULL}};
    for (uint32_t k = 0; k < model->slot_count; k++) {
        const char *name = model->values[model->slots[k].value].name;
        out->train[k] = data_type_of(type_of(b->programs[BUILD_TRAIN], name));
        out->eval[k] = data_type_of(type_of(b->programs[BUILD_EVAL], name));
    }
}

bool wire_is_pinned(const build *b)
{
    return b->device->pinned != NULL;
}

static data_slot slot_of(const hr_model *model, const model_slot *slot)
{
    const model_value *value = &model->values[slot->value];
    data_slot s = {.type = value->dtype == HR_I32  ? DATA_IDS
                           : value->dtype == HR_U8 ? DATA_MASK
                                                   : DATA_FLOAT,
                   .is_label = slot->is_label,
                   .classes = slot->classes,
                   .rank = value->shape.rank - 1};
    for (uint32_t k = 0; k < s.rank; k++) {
        s.dim[k] = (uint32_t)value->shape.dim[k + 1];
    }
    return s;
}

data_form wire_form(const hr_model *model)
{
    data_form form = {.count = model->slot_count};
    for (uint32_t k = 0; k < form.count; k++) {
        form.slot[k] = slot_of(model, &model->slots[k]);
    }
    return form;
}

uint64_t wire_pinned_bytes(const build *b, const hr_model *model, const hr_knobs *knobs)
{
    pipeline_wire wire;
    if (!wire_is_pinned(b)) {
        return 0;
    }
    wire_types(b, model, &wire);
    const data_form form = wire_form(model), batches = data_form_narrowed(&form, wire.train);
    return pipeline_pinned_bytes(knobs, &batches);
}
