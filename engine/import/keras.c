// SPDX-License-Identifier: Apache-2.0
// A model of Keras as a preset: what `model.to_json()` says, or the config.json of a .keras archive.
#include "keras.h"

#include <string.h>

#include "base/host_mem.h"

// Those that have the shape of the first output: one label is all there is.
static uint32_t alike_outputs(const keras_walk *w, uint32_t *outputs, uint32_t count, model_text *t)
{
    const keras_shape first = w->lines.data[outputs[0]].shape;
    uint32_t kept = 0;
    for (uint32_t k = 0; k < count; k++) {
        if (keras_same_shape(&w->lines.data[outputs[k]].shape, &first)) {
            outputs[kept++] = outputs[k];
        }
    }
    if (kept < count) {
        model_note(
            t,
            "Outputs of another shape than the first (%u) have no loss, and what only they need is left out.",
            count - kept);
    }
    return kept;
}

static hr_status write_model(importer *m, const keras_graph *g, text *knobs)
{
    config *c = &m->c;
    uint32_t *outputs = hr_calloc(g->outputs.count, sizeof *outputs);
    keras_walk w = {.path = c->path, .t = &m->t, .row_of = keras_row_of, .loss = keras_loss(c->root, &m->t)};
    hr_status status = outputs == NULL ? HR_FAIL(c->err, NOMEM, "%.200s: no memory to read it", c->path)
                                       : keras_walk_model(&w, g, outputs, c->err);
    if (status == HR_OK) {
        keras_write(&w, outputs, alike_outputs(&w, outputs, g->outputs.count, &m->t));
        keras_knobs(c->root, g, &m->t, knobs);
    }
    hr_free(outputs);
    keras_walk_deinit(&w);
    return status;
}

hr_status import_keras(importer *m, text *knobs)
{
    keras_graph g = {0};
    const char *of = json_string_value(json_object_get(m->c.root, "class_name"));
    if (!keras_is_model(of)) {
        const hr_status status = HR_FAIL(
            m->c.err, PRESET,
            "%.200s: class_name needs Sequential or Functional, had '%.60s': a model of a class of its own "
            "says no layers in its file",
            m->c.path, of);
        hr_err_try(m->c.err,
                   "a Functional model around its call, as keras.Model(inputs, model.call(inputs))");
        return status;
    }
    m->architecture = of;
    hr_status status = keras_graph_read(m->c.path, m->c.root, &g, m->c.err);
    status = status == HR_OK ? write_model(m, &g, knobs) : status;
    keras_graph_deinit(&g);
    return status;
}
