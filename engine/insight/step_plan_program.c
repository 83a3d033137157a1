// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/host_mem.h"
#include "base/text.h"
#include "device/cost.h"
#include "insight/step_plan.h"
#include "ops/prune.h"

static hr_status no_memory(const step_plan_draft *d, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory for the step_plan of %u instructions and %u tensors",
                   d->p->instr_count, d->p->tensor_count);
}

// ---- texts ----------------------------------------------------------------------------------------------------

static bool add_text(step_plan_draft *d, const char *words, uint32_t *at)
{
    const uint32_t number = intern_add(&d->texts, words, strlen(words));
    *at = number == INTERN_NONE ? 0 : d->texts.starts.data[number];
    return number != INTERN_NONE;
}

static bool add_shape(step_plan_draft *d, const hr_shape *shape, uint32_t *at)
{
    char words[128];
    return add_text(d, shape_text(shape, words, sizeof words), at);
}

// ---- instructions ---------------------------------------------------------------------------------------------

static bool tells_time(const play_case *c)
{
    return cost_basis(c->device, c->device_context) != HR_TIME_UNKNOWN;
}

static uint32_t layer_of(const step_plan_draft *d, uint32_t layer)
{
    return layer < d->model->layer_count ? layer : HR_NO_ID;
}

static bool add_line(step_plan_draft *d, FILE *stream, text *scratch, const instr *i, uint32_t *line)
{
    scratch->length = 0;
    program_print_instr(d->p, i, stream);
    if (fflush(stream) != 0 || scratch->failed || scratch->length == 0) {
        return false;
    }
    scratch->data[scratch->length - 1] = '\0'; // the end of the line
    return add_text(d, scratch->data, line);
}

// What it adds to its lane: its own time, and what the lane waits for the host that issues it.
static double seconds_of(const step_plan_draft *d, const instr *i, timeline *t)
{
    const play_case *c = d->c;
    const uint64_t issue_ns =
        c->device->issue_ns == NULL ? 0 : c->device->issue_ns(c->device_context, d->p, i);
    return (double)timeline_add(t, i, c->device->duration_ns(c->device_context, d->p, i), issue_ns) * 1e-9;
}

static void describe_instr(const step_plan_draft *d, const instr *i, timeline *t, hr_step_plan_instr *to)
{
    to->layer = layer_of(d, i->layer);
    to->is_alloc = i->op == HR_OP_ALLOC;
    to->is_free = i->op == HR_OP_FREE;
    to->tensor = to->is_alloc ? i->out[0] : to->is_free ? i->in[0] : HR_NO_ID;
    to->phase = i->phase;
    to->lane = i->lane;
    to->again = i->again;
    to->flops = i->flops;
    to->bytes_moved = i->bytes_moved;
    to->seconds = t != NULL ? seconds_of(d, i, t) : (double)NAN;
}

static bool describe_instrs(step_plan_draft *d, FILE *stream, text *scratch, timeline *t)
{
    char name[128];
    for (uint32_t n = 0; n < d->p->instr_count; n++) {
        const instr *i = &d->p->instrs[n];
        hr_step_plan_instr *to = &d->out->instrs[n];
        describe_instr(d, i, t, to);
        if (!add_text(d, program_instr_name(d->p, i, name, sizeof name), &to->name) ||
            !add_text(d, i->impl == NULL ? "" : i->impl, &to->impl) ||
            !add_line(d, stream, scratch, i, &to->line)) {
            return false;
        }
    }
    return true;
}

static bool list_instrs(step_plan_draft *d)
{
    text scratch = {0};
    FILE *stream = text_stream(&scratch);
    timeline t;
    const bool timed = timeline_init(&t, d->c->device, d->p, NULL) == HR_OK;
    const bool done =
        timed && stream != NULL && describe_instrs(d, stream, &scratch, tells_time(d->c) ? &t : NULL);
    timeline_deinit(&t);
    if (stream != NULL) {
        (void)fclose(stream);
    }
    text_deinit(&scratch);
    return done;
}

// ---- requested bytes ------------------------------------------------------------------------------------------

typedef struct requested {
    uint64_t by_category[HR_CATEGORY_COUNT];
    uint64_t sum;
} requested;

static void request(requested *now, const tensor *t, bool comes)
{
    uint64_t *category = &now->by_category[t->category];
    *category = comes ? *category + t->bytes : *category - t->bytes;
    now->sum = comes ? now->sum + t->bytes : now->sum - t->bytes;
}

// A round leaves behind what it retains, and the others do as the first did.
static void repeat(requested *now, const requested *begin, uint64_t other_rounds)
{
    for (int k = 0; k < HR_CATEGORY_COUNT; k++) {
        now->by_category[k] += other_rounds * (now->by_category[k] - begin->by_category[k]);
    }
    now->sum += other_rounds * (now->sum - begin->sum);
}

static void count_requested(const step_plan_draft *d)
{
    const program *p = d->p;
    requested now = {.sum = 0}, begin = now;
    uint64_t other_rounds = 0;
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        if (!tensor_on_host(&p->tensors[k])) {
            request(&now, &p->tensors[k], true);
        }
    }
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        hr_step_plan_instr *to = &d->out->instrs[n];
        if (to->is_alloc || to->is_free) {
            request(&now, &p->tensors[to->tensor], to->is_alloc);
        }
        to->requested_bytes = now.sum;
        memcpy(to->by_category, now.by_category, sizeof to->by_category);
        if (i->op == HR_OP_REPEAT) {
            begin = now;
            other_rounds = (uint64_t)i->attr.count - 1;
        } else if (i->op == HR_OP_END) {
            repeat(&now, &begin, other_rounds);
        }
    }
}

// ---- tensors --------------------------------------------------------------------------------------------------

static uint32_t owner_of(const program *p, uint32_t id)
{
    while (p->tensors[id].storage != id) {
        id = p->tensors[id].storage;
    }
    return id;
}

static bool list_tensors(step_plan_draft *d)
{
    for (uint32_t k = 0; k < d->p->tensor_count; k++) {
        const tensor *t = &d->p->tensors[k];
        hr_step_plan_tensor *to = &d->out->tensors[k];
        to->category = (uint8_t)t->category;
        to->persistent = t->persistent;
        to->saved = t->saved;
        to->layer = layer_of(d, t->layer);
        to->owner = owner_of(d->p, k);
        to->born = to->died = HR_NO_ID;
        to->bytes = t->bytes;
        if (!add_text(d, t->name, &to->name) || !add_text(d, tensor_type_name(t), &to->dtype) ||
            !add_shape(d, &t->shape, &to->shape)) {
            return false;
        }
    }
    for (uint32_t n = 0; n < d->p->instr_count; n++) {
        const hr_step_plan_instr *i = &d->out->instrs[n];
        if (i->is_alloc) {
            d->out->tensors[i->tensor].born = n;
        } else if (i->is_free) {
            d->out->tensors[i->tensor].died = n;
        }
    }
    return true;
}

// ---- layers ---------------------------------------------------------------------------------------------------

// Predictions that are retained are activations until then.
static bool is_activation(const tensor *t)
{
    return t->category == HR_CATEGORY_ACTIVATIONS || t->category == HR_CATEGORY_RETAINED;
}

static void add_activations(const step_plan_draft *d, const instr *i, hr_step_plan_layer *to)
{
    if (i->phase != HR_PHASE_FORWARD || i->again || op_row_of(i->op)->control) {
        return;
    }
    for (uint32_t k = 0; k < i->out_count; k++) {
        const tensor *t = &d->p->tensors[i->out[k]];
        if (t->storage == i->out[k] && !t->persistent && is_activation(t)) {
            to->activation_bytes += t->bytes;
        }
    }
}

static void add_instrs(const step_plan_draft *d)
{
    uint64_t rounds = 1;
    for (uint32_t n = 0; n < d->p->instr_count; n++) {
        const instr *i = &d->p->instrs[n];
        const uint32_t layer = d->out->instrs[n].layer;
        rounds = i->op == HR_OP_REPEAT ? (uint64_t)i->attr.count : i->op == HR_OP_END ? 1 : rounds;
        if (layer != HR_NO_ID) {
            hr_step_plan_layer *to = &d->out->layers[layer];
            to->flops += rounds * i->flops;
            to->seconds += (double)rounds * d->out->instrs[n].seconds;
            add_activations(d, i, to);
        }
    }
}

// What is saved counts with the layer that owns the bytes, each storage once: their sum over the layers, and what
// belongs to none, is the program's saved_for_backward_bytes.
static bool add_tensors(const step_plan_draft *d)
{
    const program *p = d->p;
    bool *counted = hr_calloc(p->tensor_count, sizeof *counted);
    if (counted == NULL) {
        return false;
    }
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        const tensor *t = &p->tensors[k];
        const uint32_t owner = owner_of(p, k);
        const uint32_t at = layer_of(d, p->tensors[owner].layer);
        if (at == HR_NO_ID) {
            continue;
        }
        if (t->saved && !counted[owner] && is_activation(t)) {
            counted[owner] = true;
            d->out->layers[at].saved_bytes += p->tensors[owner].bytes;
        }
        if (t->persistent && t->param != HR_NO_ID &&
            (t->category == HR_CATEGORY_WEIGHTS || t->category == HR_CATEGORY_STATE)) {
            d->out->layers[at].parameter_bytes += t->bytes;
        }
    }
    hr_free(counted);
    return true;
}

static uint32_t larger(uint32_t a, int64_t b)
{
    return b > a ? (uint32_t)b : a;
}

static void add_rank(const model_param *p, hr_step_plan_layer *to)
{
    const int64_t last = p->shape.dim[p->shape.rank - 1];
    const int64_t other = p->shape.rank > 1 ? p->shape.dim[p->shape.rank - 2] : 0;
    if (p->factor == MODEL_FACTOR_U) {
        to->rank_in = larger(to->rank_in, last);
    } else if (p->factor == MODEL_FACTOR_V) {
        to->rank_out = larger(to->rank_out, other);
    } else if (p->adapter && p->init != MODEL_INIT_ZEROS) { // B begins with zeros
        to->rank_in = larger(to->rank_in, last);
        to->rank_out = to->rank_in;
    }
}

// Width and ranks, of the parameters; what masks reach, of the instructions that make them.
static void add_compression(const step_plan_draft *d)
{
    const hr_model *m = d->model;
    for (uint32_t k = 0; k < m->param_count; k++) {
        const model_param *p = &m->params[k];
        if (p->layer < m->layer_count && p->category == HR_CATEGORY_WEIGHTS && p->shape.rank > 1) {
            const uint64_t last = (uint64_t)p->shape.dim[p->shape.rank - 1];
            hr_step_plan_layer *to = &d->out->layers[p->layer];
            to->width = last > to->width && !p->adapter && p->factor != MODEL_FACTOR_U ? last : to->width;
            add_rank(p, to);
        }
    }
    for (uint32_t n = 0; n < d->p->instr_count; n++) {
        const instr *i = &d->p->instrs[n];
        const uint32_t layer = d->out->instrs[n].layer;
        if (i->op == HR_OP_PRUNE && i->attr.slot == 1 && layer != HR_NO_ID) {
            const bool groups = i->attr.rule == PRUNE_GROUPS;
            d->out->layers[layer].sparsity =
                groups ? (double)i->attr.kernel_h / i->attr.kernel_w : i->attr.momentum;
        }
    }
}

static bool list_layers(step_plan_draft *d)
{
    for (uint32_t k = 0; k < d->model->layer_count; k++) {
        const model_layer *from = &d->model->layers[k];
        hr_step_plan_layer *to = &d->out->layers[k];
        const model_value *output = &d->model->values[from->output];
        const hr_shape shape =
            output->batched ? shape_of(output->shape.rank - 1, &output->shape.dim[1]) : output->shape;
        to->parameters = from->parameters;
        to->sparsity = (double)NAN;
        if (!add_text(d, from->name, &to->name) || !add_text(d, from->kind, &to->kind) ||
            !add_shape(d, &shape, &to->output_shape)) {
            return false;
        }
    }
    add_instrs(d);
    add_compression(d);
    return add_tensors(d);
}

hr_status step_plan_describe(step_plan_draft *d, hr_err *err)
{
    hr_step_plan *out = d->out;
    uint32_t empty;
    out->instr_count = d->p->instr_count;
    out->tensor_count = d->p->tensor_count;
    out->layer_count = d->model->layer_count;
    out->rounds = d->p->rounds;
    out->instrs = hr_calloc(out->instr_count, sizeof *out->instrs);
    out->tensors = hr_calloc(out->tensor_count, sizeof *out->tensors);
    out->layers = hr_calloc(out->layer_count, sizeof *out->layers);
    if (out->instrs == NULL || out->tensors == NULL || out->layers == NULL || !add_text(d, "", &empty) ||
        !list_instrs(d) || !list_tensors(d) || !list_layers(d)) {
        return no_memory(d, err);
    }
    count_requested(d);
    return HR_OK;
}
