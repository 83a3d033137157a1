// SPDX-License-Identifier: Apache-2.0
// What comes of a preset's model, layer by layer, without a program.
#include "headroom/model.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "model/model.h"

static void describe(const hr_model *m, const model_layer *from, hr_model_layer *to)
{
    const model_value *output = &m->values[from->output];
    const hr_shape shape =
        output->batched ? shape_of(output->shape.rank - 1, &output->shape.dim[1]) : output->shape;
    uint64_t elements = 0;
    (void)text_copy(to->name, sizeof to->name, from->name);
    (void)text_copy(to->kind, sizeof to->kind, from->kind);
    (void)shape_text(&shape, to->output_shape, sizeof to->output_shape);
    (void)shape_elements(&output->shape, &elements);
    to->parameters = from->parameters;
    to->parameter_bytes = from->parameters * dtype_bytes(HR_F32);
    to->output_bytes = elements * dtype_bytes(output->dtype);
}

hr_status hr_model_list_layers(const hr_preset *preset, const hr_knobs *knobs, hr_model_layers *out,
                               hr_err *err)
{
    hr_model *m = NULL;
    *out = (hr_model_layers){NULL, 0};
    HR_TRY(model_create(preset, knobs, &m, NULL, err));
    out->layers = hr_calloc(m->own_layers + 1, sizeof *out->layers);
    for (uint32_t k = 0; out->layers != NULL && k < m->own_layers; k++) {
        describe(m, &m->layers[k], &out->layers[out->count++]);
    }
    model_destroy(m);
    return out->layers != NULL ? HR_OK : HR_FAIL(err, NOMEM, "no host memory for the model's layers");
}

void hr_model_layers_deinit(hr_model_layers *layers)
{
    hr_free(layers->layers);
    *layers = (hr_model_layers){NULL, 0};
}
