// SPDX-License-Identifier: Apache-2.0
#include "model/teacher.h"

#include <stdio.h>
#include <string.h>

#include "headroom/event.h"

#include "model/whole.h"

static const char without[] = "-s compress.distill=none";

// What is copied, and where what it names went; HR_NO_ID: nowhere.
typedef struct copying {
    model_builder *b;
    const hr_model *from;
    bool *needed;    // [nodes] the logits need it
    uint32_t *value; // [values] of the builder
    uint32_t *param; // [params]
    uint32_t *layer; // [layers]
} copying;

static hr_status no_memory(const copying *c, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory for a teacher of %u operations", c->from->node_count);
}

// ---- do they go together? -------------------------------------------------------------------------------------

static uint32_t input_count(const hr_model *m)
{
    uint32_t count = 0;
    while (count < m->slot_count && !m->slots[count].is_label) {
        count++;
    }
    return count;
}

static const char *value_text(const model_value *v, char text[SHAPE_TEXT_MAX])
{
    return sample_shape_text(&v->shape, text);
}

static hr_status check_input(const copying *c, uint32_t k, hr_err *err)
{
    const model_slot *theirs = &c->from->slots[k], *ours = &c->b->model.slots[k];
    const model_value *x = &c->from->values[theirs->value], *y = &c->b->values.data[ours->value];
    char had[SHAPE_TEXT_MAX], needed[SHAPE_TEXT_MAX];
    if (x->dtype != y->dtype || !shape_equal(&x->shape, &y->shape)) {
        return HR_FAIL(err, KNOB,
                       "compress.distill: the teacher %s takes '%s', %s %s of a sample, and the student %s "
                       "gives it '%s', %s %s",
                       c->from->name, x->name, dtype_name(x->dtype), value_text(x, needed), c->b->model.name,
                       y->name, dtype_name(y->dtype), value_text(y, had));
    }
    if (ours->classes > theirs->classes) {
        return HR_FAIL(err, KNOB,
                       "compress.distill: the teacher %s knows ids below %u in '%s', and the student %s has "
                       "them up to %u",
                       c->from->name, theirs->classes, x->name, c->b->model.name, ours->classes - 1);
    }
    return HR_OK;
}

static hr_status check_logits(const copying *c, hr_err *err)
{
    const model_loss *theirs = &c->from->losses[0], *ours = &c->b->losses.data[0];
    const model_value *t = &c->from->values[theirs->prediction], *s = &c->b->values.data[ours->prediction];
    char had[SHAPE_TEXT_MAX], needed[SHAPE_TEXT_MAX];
    if (!theirs->classifies || !ours->classifies) {
        return HR_FAIL(err, KNOB,
                       "compress.distill compares logits of classes, and the first loss of the %s %s is no "
                       "softmax_cross_entropy",
                       ours->classifies ? "teacher" : "student",
                       ours->classifies ? c->from->name : c->b->model.name);
    }
    if (!shape_equal(&t->shape, &s->shape)) {
        return HR_FAIL(err, KNOB,
                       "compress.distill: the teacher %s gives logits %s of a sample, and the student %s "
                       "needs %s",
                       c->from->name, value_text(t, had), c->b->model.name, value_text(s, needed));
    }
    return HR_OK;
}

static hr_status check(const copying *c, hr_err *err)
{
    const uint32_t theirs = input_count(c->from), ours = input_count(&c->b->model);
    if (theirs != ours) {
        return HR_FAIL(err, KNOB,
                       "compress.distill: the teacher %s has %u inputs, and the student %s gives it %u",
                       c->from->name, theirs, c->b->model.name, ours);
    }
    for (uint32_t k = 0; k < ours; k++) {
        HR_TRY(check_input(c, k, err));
    }
    return check_logits(c, err);
}

// ---- copying --------------------------------------------------------------------------------------------------

static void copying_deinit(copying *c)
{
    hr_free(c->needed);
    hr_free(c->value);
    hr_free(c->param);
    hr_free(c->layer);
}

static hr_status copying_init(copying *c, hr_err *err)
{
    const hr_model *m = c->from;
    c->needed = hr_calloc(m->node_count, sizeof *c->needed);
    c->value = hr_calloc(m->value_count, sizeof *c->value);
    c->param = hr_calloc(m->param_count + 1u, sizeof *c->param);
    c->layer = hr_calloc(m->layer_count, sizeof *c->layer);
    if (c->needed == NULL || c->value == NULL || c->param == NULL || c->layer == NULL) {
        return no_memory(c, err);
    }
    memset(c->value, 0xff, m->value_count * sizeof *c->value);
    memset(c->param, 0xff, m->param_count * sizeof *c->param);
    memset(c->layer, 0xff, m->layer_count * sizeof *c->layer);
    for (uint32_t k = 0; k < input_count(m); k++) {
        c->value[m->slots[k].value] = c->b->model.slots[k].value;
    }
    return HR_OK;
}

static bool makes(const model_node *node, const bool *read)
{
    bool any = false;
    for (uint32_t k = 0; k < node->out_count; k++) {
        any = any || read[node->out[k]];
    }
    return any;
}

// From the logits upwards.
static hr_status find_needed(copying *c, hr_err *err)
{
    const hr_model *m = c->from;
    bool *read = hr_calloc(m->value_count, sizeof *read);
    if (read == NULL) {
        return no_memory(c, err);
    }
    read[m->losses[0].prediction] = true;
    for (uint32_t n = m->node_count; n-- > 0;) {
        const model_node *node = &m->nodes[n];
        c->needed[n] = makes(node, read);
        for (uint32_t k = 0; c->needed[n] && k < node->in_count; k++) {
            if (!node->in[k].is_param) {
                read[node->in[k].index] = true;
            }
        }
    }
    hr_free(read);
    return HR_OK;
}

static const char *name_of(const copying *c, const char *name)
{
    return arena_print(&c->b->names, MODEL_TEACHER "%s", name);
}

static hr_status copy_layer(copying *c, uint32_t k, hr_err *err)
{
    const char *name = name_of(c, c->from->layers[k].name);
    const char *kind = arena_print(&c->b->names, "%s", c->from->layers[k].kind);
    model_layer *to = name == NULL || kind == NULL ? NULL : vec_push(&c->b->layers);
    if (to == NULL) {
        return no_memory(c, err);
    }
    *to = (model_layer){.name = name, .kind = kind, .output = HR_NO_ID};
    c->layer[k] = c->b->layers.count - 1;
    return HR_OK;
}

static hr_status copy_param(copying *c, uint32_t k, hr_err *err)
{
    const model_param *from = &c->from->params[k];
    const char *name = name_of(c, from->name);
    uint64_t elements = 0;
    HR_TRY(c->layer[from->layer] == HR_NO_ID ? copy_layer(c, from->layer, err) : HR_OK);
    model_param *to = name == NULL ? NULL : vec_push(&c->b->params);
    if (to == NULL) {
        return no_memory(c, err);
    }
    *to = *from;
    to->name = name;
    to->trainable = false;
    to->layer = c->layer[from->layer];
    (void)shape_elements(&from->shape, &elements);
    c->b->layers.data[to->layer].parameters += elements;
    c->param[k] = c->b->params.count - 1;
    return HR_OK;
}

static hr_status copy_value(copying *c, uint32_t k, hr_err *err)
{
    const model_value *from = &c->from->values[k];
    const char *name = name_of(c, from->name);
    model_value *to = name == NULL ? NULL : vec_push(&c->b->values);
    if (to == NULL) {
        return no_memory(c, err);
    }
    *to = *from;
    to->name = name;
    to->layer = from->layer == HR_NO_ID ? HR_NO_ID : c->layer[from->layer];
    c->value[k] = c->b->values.count - 1;
    return HR_OK;
}

// Of a layer whose own result the logits do not need, the last one that they do.
static void note_output(const copying *c, const model_node *from, const model_node *to)
{
    model_layer *layer = &c->b->layers.data[to->layer];
    const uint32_t own = c->value[c->from->layers[from->layer].output];
    layer->output = own != HR_NO_ID ? own : to->out[0];
}

static hr_status copy_node(copying *c, const model_node *from, model_node *to, hr_err *err)
{
    *to = *from;
    to->teaches = true;
    HR_TRY(c->layer[from->layer] == HR_NO_ID ? copy_layer(c, from->layer, err) : HR_OK);
    to->layer = c->layer[from->layer];
    for (uint32_t k = 0; k < from->in_count; k++) {
        const model_ref in = from->in[k];
        HR_TRY(in.is_param && c->param[in.index] == HR_NO_ID ? copy_param(c, in.index, err) : HR_OK);
        to->in[k].index = in.is_param ? c->param[in.index] : c->value[in.index];
    }
    for (uint32_t k = 0; k < from->out_count; k++) {
        HR_TRY(copy_value(c, from->out[k], err));
        to->out[k] = c->value[from->out[k]];
    }
    note_output(c, from, to);
    return HR_OK;
}

// In front of the losses.
static hr_status copy_nodes(copying *c, hr_err *err)
{
    model_builder *b = c->b;
    const uint32_t losses = b->losses.count - b->layer_losses.count;
    uint32_t at = b->nodes.count - losses, count = 0;
    for (uint32_t n = 0; n < c->from->node_count; n++) {
        count += c->needed[n];
    }
    if (!vec_reserve(&b->nodes, count)) {
        return no_memory(c, err);
    }
    memmove(&b->nodes.data[at + count], &b->nodes.data[at], losses * sizeof *b->nodes.data);
    b->nodes.count += count;
    for (uint32_t n = 0; n < c->from->node_count; n++) {
        HR_TRY(c->needed[n] ? copy_node(c, &c->from->nodes[n], &b->nodes.data[at++], err) : HR_OK);
    }
    return HR_OK;
}

// ---- the losses -----------------------------------------------------------------------------------------------

// What was written counts alpha of it while training. The nodes of those losses stand last.
static void weigh_own(model_builder *b, double alpha)
{
    const uint32_t count = b->losses.count - b->layer_losses.count;
    for (uint32_t k = 0; k < count; k++) {
        model_loss *loss = &b->losses.data[k];
        loss->weight *= alpha;
        b->nodes.data[b->nodes.count - count + k].attr.scale = loss->weight;
    }
}

// `teacher`: the value that has its logits.
static hr_status add_distance(const copying *c, uint32_t teacher, const hr_knobs *knobs, hr_err *err)
{
    static const node_out out[] = {{"probs_distill", true}, {"loss_distill", false}};
    model_builder *b = c->b;
    const double alpha = hr_knob_real(knobs, HR_KNOB_COMPRESS_DISTILL_ALPHA);
    const uint32_t student = b->losses.data[0].prediction;
    const model_node node = {
        .op = HR_OP_KL,
        .attr = {.scale = 1 - alpha, .epsilon = hr_knob_real(knobs, HR_KNOB_COMPRESS_DISTILL_TEMPERATURE)},
        .teaches = true,
        .in_count = 2,
        .out_count = 2,
        .in = {ref_value(student), ref_value(teacher)}};
    weigh_own(b, alpha);
    b->layer = b->shared.layer = HR_NO_ID;
    b->node = NULL;
    b->broken = false;
    const uint32_t probs = builder_node(b, &node, out);
    model_loss *loss = probs == HR_NO_ID ? NULL : vec_push(&b->losses);
    if (loss == NULL) {
        return no_memory(c, err);
    }
    *loss = (model_loss){
        .value = probs + 1, .prediction = student, .labels = teacher, .weight = 1 - alpha, .teaches = true};
    return HR_OK;
}

// Its logits come with the batch: the model has nothing else of it.
static hr_status add_answers(copying *c, const hr_knobs *knobs, hr_err *err)
{
    model_builder *b = c->b;
    if (b->model.slot_count == MODEL_MAX_SLOTS) {
        return HR_FAIL(
            err, KNOB,
            "compress.distill_cache: the teacher's answers are an input of the step, and the student "
            "%s has %d inputs and labels, which is the most",
            b->model.name, MODEL_MAX_SLOTS);
    }
    model_value *logits = vec_push(&b->values);
    if (logits == NULL) {
        return no_memory(c, err);
    }
    *logits = b->values.data[b->losses.data[0].prediction];
    logits->name = MODEL_TEACHER "logits";
    logits->layer = HR_NO_ID;
    const uint32_t value = b->values.count - 1;
    b->model.slots[b->model.slot_count++] = (model_slot){.value = value, .is_label = true, .answers = true};
    return add_distance(c, value, knobs, err);
}

static hr_status add_forward(copying *c, const hr_knobs *knobs, hr_err *err)
{
    HR_TRY(copying_init(c, err));
    HR_TRY(find_needed(c, err));
    HR_TRY(copy_nodes(c, err));
    return add_distance(c, c->value[c->from->losses[0].prediction], knobs, err);
}

// ---- from the knob to the model -------------------------------------------------------------------------------

static hr_status keep_weights(model_builder *b, const hr_preset *teacher, hr_err *err)
{
    const char *path = hr_knob_text(hr_preset_knobs(teacher), HR_KNOB_TRAIN_RESUME);
    b->model.teacher_weights = path[0] == '\0' ? NULL : arena_print(&b->names, "%s", path);
    return path[0] != '\0' && b->model.teacher_weights == NULL
               ? HR_FAIL(err, NOMEM, "no host memory for the name of the teacher's save")
               : HR_OK;
}

static bool would_teach(model_builder *b, const char *name)
{
    hr_preset *preset = NULL;
    model_builder *whole = NULL;
    hr_err ignored;
    if (hr_preset_open(name, false, &preset, NULL, &ignored) != HR_OK) {
        return false;
    }
    bool fits = model_read_whole(preset, hr_preset_knobs(preset), &whole, NULL, &ignored) == HR_OK;
    if (fits) {
        model_publish(whole);
        fits = check(&(copying){.b = b, .from = &whole->model}, &ignored) == HR_OK;
        model_destroy(&whole->model);
    }
    hr_preset_close(preset);
    return fits;
}

// "-s compress.distill=mlp, or demo": models that can be opened by name. False where none would do, or host memory is short.
static bool find_teachers(model_builder *b, char *names, size_t size)
{
    hr_preset_entry *entries = NULL;
    size_t count = 0, used = 0;
    if (hr_preset_list("models", &entries, &count, NULL) != HR_OK) {
        return false;
    }
    for (size_t k = 0; k < count && used + sizeof entries->name < size; k++) {
        if (strcmp(entries[k].name, b->model.name) != 0 && would_teach(b, entries[k].name)) {
            used += (size_t)snprintf(names + used, size - used, "%s%s",
                                     used == 0 ? "-s compress.distill=" : ", or ", entries[k].name);
        }
    }
    hr_preset_list_free(entries);
    return used > 0;
}

// How a teacher has to be, and who is so: presets are opened for it, and nobody reads it where there is no err.
static void advise_teacher(model_builder *b, hr_err *err)
{
    char names[HR_ERR_TEXT_MAX / 2], in[SHAPE_TEXT_MAX], out[SHAPE_TEXT_MAX];
    if (err == NULL) {
        return;
    }
    if (b->model.slot_count == 0 || !b->losses.data[0].classifies) {
        hr_err_try(err, "%s, or another teacher", without);
        return;
    }
    const bool any = find_teachers(b, names, sizeof names);
    const model_value *x = &b->values.data[b->model.slots[0].value];
    hr_err_try(err, "%s%s (a teacher takes %s %s and gives logits %s)", any ? names : without,
               any ? "" : ": no preset of a model would do", dtype_name(x->dtype), value_text(x, in),
               value_text(&b->values.data[b->losses.data[0].prediction], out));
}

static hr_status add_model(model_builder *b, const hr_model *teacher, const hr_knobs *knobs, hr_err *err)
{
    copying c = {.b = b, .from = teacher};
    const bool cached = hr_knob_is(knobs, HR_KNOB_COMPRESS_DISTILL_CACHE, "on");
    hr_status status = check(&c, err);
    if (status == HR_KNOB) {
        advise_teacher(b, err);
        return status;
    }
    status = cached ? add_answers(&c, knobs, err) : add_forward(&c, knobs, err);
    copying_deinit(&c);
    return status;
}

static hr_status add_whole(model_builder *b, model_builder *whole, const hr_knobs *knobs, hr_err *err)
{
    model_publish(whole);
    const hr_status status = add_model(b, &whole->model, knobs, err);
    model_destroy(&whole->model);
    return status;
}

// As a sentence of this knob.
static hr_status cannot_open(const char *word, const hr_err *reason, hr_err *err)
{
    if (reason->status == HR_NOMEM) {
        return HR_FAIL(err, NOMEM, "%s", reason->sentence);
    }
    const hr_status status = HR_FAIL(err, KNOB, "compress.distill=%s: %s", word, reason->sentence);
    hr_err_try(err, "%s", reason->hint[0] != '\0' ? reason->hint : without);
    return status;
}

static hr_status add_of_preset(model_builder *b, const hr_preset *teacher, const hr_knobs *knobs, hr_err *err)
{
    const hr_knobs *own = hr_preset_knobs(teacher);
    const char *word = hr_knob_text(knobs, HR_KNOB_COMPRESS_DISTILL);
    model_builder *whole = NULL;
    hr_err reason = {0};
    if (!hr_knob_is(own, HR_KNOB_COMPRESS_DISTILL, "none")) {
        const hr_status status =
            HR_FAIL(err, KNOB, "compress.distill=%s: that preset learns from a teacher itself, %s", word,
                    hr_knob_text(own, HR_KNOB_COMPRESS_DISTILL));
        hr_err_try(err, "-s compress.distill=%s", hr_knob_text(own, HR_KNOB_COMPRESS_DISTILL));
        return status;
    }
    if (model_read_whole(teacher, own, &whole, NULL, &reason) != HR_OK) {
        return cannot_open(word, &reason, err);
    }
    const hr_status status = add_whole(b, whole, knobs, err);
    return status == HR_OK ? keep_weights(b, teacher, err) : status;
}

// The model in hand, in the sizes that it has here, as it is without adapters and factors.
static hr_status add_self(model_builder *b, const hr_preset *preset, const hr_knobs *knobs, hr_err *err)
{
    model_builder *whole = NULL;
    hr_knobs plain = *knobs;
    HR_TRY(hr_knobs_set(&plain, HR_KNOB_COMPRESS_LORA, "none", err));
    HR_TRY(hr_knobs_set(&plain, HR_KNOB_COMPRESS_LOW_RANK, "none", err));
    HR_TRY(model_read_whole(preset, &plain, &whole, NULL, err));
    return add_whole(b, whole, knobs, err);
}

hr_status teacher_add(model_builder *b, const hr_preset *preset, const hr_knobs *knobs, hr_err *err)
{
    hr_preset *teacher = NULL;
    hr_err reason = {0};
    const char *word = hr_knob_text(knobs, HR_KNOB_COMPRESS_DISTILL);
    if (word[0] == '\0' || strcmp(word, "none") == 0) {
        return HR_OK;
    }
    if (strcmp(word, "self") == 0) {
        return add_self(b, preset, knobs, err);
    }
    if (hr_preset_open(word, hr_preset_trusts(preset), &teacher, NULL, &reason) != HR_OK) {
        return cannot_open(word, &reason, err);
    }
    const hr_status status = add_of_preset(b, teacher, knobs, err);
    hr_preset_close(teacher);
    return status;
}
