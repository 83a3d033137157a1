// SPDX-License-Identifier: Apache-2.0
// What every model promises, and how bad ones are refused: shared by the tests of models.
#ifndef TESTS_PROGRAM_MODEL_CHECKS_H
#define TESTS_PROGRAM_MODEL_CHECKS_H

#include "headroom/event.h"

#include "base/host_mem.h"
#include "program/model_from_text.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static inline uint64_t layer_parameters(const hr_model *m, const char *name)
{
    for (uint32_t i = 0; i < m->layer_count; i++) {
        if (strcmp(m->layers[i].name, name) == 0) {
            return m->layers[i].parameters;
        }
    }
    ck_abort_msg("no layer '%s'", name);
}

static inline const model_value *value_of(const hr_model *m, const char *name)
{
    for (uint32_t i = 0; i < m->value_count; i++) {
        if (strcmp(m->values[i].name, name) == 0) {
            return &m->values[i];
        }
    }
    ck_abort_msg("no value '%s'", name);
}

static inline const model_param *param_of(const hr_model *m, const char *name)
{
    for (uint32_t i = 0; i < m->param_count; i++) {
        if (strcmp(m->params[i].name, name) == 0) {
            return &m->params[i];
        }
    }
    ck_abort_msg("no parameter '%s'", name);
}

static inline void assert_shape(const hr_shape *shape, const char *expected)
{
    char shown[128];
    ck_assert_str_eq(shape_text(shape, shown, sizeof shown), expected);
}

static inline void assert_value(const hr_model *m, const char *name, const char *expected)
{
    assert_shape(&value_of(m, name)->shape, expected);
}

// ---- consistency: what every model promises -------------------------------------------------------------------

static inline int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static inline void assert_names_unique(const hr_model *m)
{
    const char **names = calloc(m->value_count + m->param_count, sizeof *names);
    for (uint32_t i = 0; i < m->value_count; i++) {
        names[i] = m->values[i].name;
    }
    for (uint32_t i = 0; i < m->param_count; i++) {
        names[m->value_count + i] = m->params[i].name;
    }
    qsort(names, m->value_count + m->param_count, sizeof *names, by_name);
    for (uint32_t i = 1; i < m->value_count + m->param_count; i++) {
        ck_assert_str_ne(names[i - 1], names[i]);
    }
    free(names);
}

static inline void assert_params(const hr_model *m)
{
    uint64_t total = 0, trainable = 0, by_layer = 0;
    for (uint32_t i = 0; i < m->param_count; i++) {
        const model_param *p = &m->params[i];
        uint64_t elements;
        ck_assert(shape_elements(&p->shape, &elements));
        ck_assert_uint_lt(p->layer, m->layer_count);
        ck_assert(i == 0 || p->layer >= m->params[i - 1].layer);
        const bool own = i < m->own_params;
        ck_assert_int_eq(own, p->layer < m->own_layers);
        ck_assert_int_eq(p->trainable, own && p->category == HR_CATEGORY_WEIGHTS);
        ck_assert(p->category == HR_CATEGORY_WEIGHTS || p->category == HR_CATEGORY_STATE);
        total += own ? elements : 0;
        trainable += p->trainable ? elements : 0;
    }
    for (uint32_t i = 0; i < m->layer_count; i++) {
        by_layer += i < m->own_layers ? m->layers[i].parameters : 0;
        ck_assert_uint_lt(m->layers[i].output, m->value_count);
    }
    ck_assert_uint_eq(m->parameters, total);
    ck_assert_uint_eq(by_layer, total);
    ck_assert_uint_eq(m->trainable_parameters, trainable);
}

// Every input was made before; every value is made once; shapes are what the operation's row says.
static inline void assert_nodes(const hr_model *m)
{
    bool *made = calloc(m->value_count, sizeof *made);
    for (uint32_t k = 0; k < m->slot_count; k++) {
        made[m->slots[k].value] = true;
    }
    for (uint32_t i = 0; i < m->node_count; i++) {
        const model_node *n = &m->nodes[i];
        const op_row *row = op_row_of(n->op);
        ck_assert_uint_ge(n->in_count, row->min_in);
        ck_assert_uint_le(n->in_count, row->max_in);
        ck_assert_uint_ge(n->out_count, row->min_out);
        ck_assert_uint_le(n->out_count, row->max_out);
        ck_assert_int_eq(n->attr.act, HR_ACT_NONE);
        for (uint32_t k = 0; k < n->in_count; k++) {
            ck_assert_uint_lt(n->in[k].index, n->in[k].is_param ? m->param_count : m->value_count);
            ck_assert(n->in[k].is_param || made[n->in[k].index]);
        }
        for (uint32_t k = 0; k < n->out_count; k++) {
            ck_assert_uint_lt(n->out[k], m->value_count);
            ck_assert(!made[n->out[k]]);
            made[n->out[k]] = true;
        }
    }
    for (uint32_t i = 0; i < m->value_count; i++) {
        uint64_t elements;
        ck_assert(made[i]);
        ck_assert(shape_elements(&m->values[i].shape, &elements));
    }
    for (uint32_t i = 0; i < m->slot_count; i++) {
        ck_assert_int_eq(m->values[m->slots[i].value].shape.dim[0], 1);
    }
    for (uint32_t i = 0; i < m->layer_count; i++) {
        const model_value *output = &m->values[m->layers[i].output];
        ck_assert(!output->batched || output->shape.dim[0] == 1);
    }
    free(made);
}

static inline const model_slot *slot_of(const hr_model *m, uint32_t value)
{
    for (uint32_t k = 0; k < m->slot_count; k++) {
        if (m->slots[k].value == value) {
            return &m->slots[k];
        }
    }
    ck_abort_msg("value %u is no slot", value);
}

static inline const model_node *giver_of(const hr_model *m, uint32_t value)
{
    for (uint32_t n = 0; n < m->node_count; n++) {
        for (uint32_t k = 0; k < m->nodes[n].out_count; k++) {
            if (m->nodes[n].out[k] == value) {
                return &m->nodes[n];
            }
        }
    }
    ck_abort_msg("value %u is given by no node", value);
}

// Losses that were written come first; their nodes stand last, judge what a layer gives, and find labels that go with it;
// inputs come before labels. A layer's own has no labels. Behind them all stands the distance from a teacher.
static inline void assert_losses(const hr_model *m)
{
    const uint32_t taught = m->losses[m->loss_count - 1].evaluated == 0, count = m->loss_count - taught;
    ck_assert_uint_ge(m->loss_count, 1);
    for (uint32_t k = 0; k < m->slot_count; k++) {
        ck_assert(k == 0 || m->slots[k].is_label >= m->slots[k - 1].is_label);
    }
    uint32_t written = 0;
    while (written < count && m->losses[written].labels != HR_NO_ID) {
        written++;
    }
    for (uint32_t k = written; k < count; k++) {
        const model_node *n = giver_of(m, m->losses[k].value);
        ck_assert_uint_eq(m->losses[k].labels, HR_NO_ID);
        ck_assert_uint_ne(n->layer, HR_NO_ID);
        ck_assert_uint_eq(n->in[0].index, m->losses[k].prediction);
        ck_assert(!m->losses[k].classifies);
    }
    for (uint32_t k = 0; k < written; k++) {
        const model_loss *loss = &m->losses[k];
        const model_node *n = &m->nodes[m->node_count - taught - written + k];
        const model_slot *slot = slot_of(m, loss->labels);
        const hr_shape *judged = &m->values[loss->prediction].shape;
        ck_assert_uint_eq(n->out[n->out_count - 1], loss->value);
        ck_assert_uint_eq(n->in[0].index, loss->prediction);
        ck_assert_uint_eq(n->in[1].index, loss->labels);
        ck_assert(slot->is_label);
        ck_assert_int_eq(loss->classifies, n->op == HR_OP_SOFTMAX_XENT);
        ck_assert_int_eq(m->values[loss->labels].dtype == HR_F32, !loss->classifies);
        ck_assert(!loss->classifies || judged->dim[judged->rank - 1] == (int64_t)slot->classes);
    }
    ck_assert(taught == 0 || m->nodes[m->node_count - 1].op == HR_OP_KL);
}

static inline void assert_consistent(const hr_model *m)
{
    assert_names_unique(m);
    assert_params(m);
    assert_nodes(m);
    assert_losses(m);
}

typedef struct bad_model {
    const char *preset;
    unsigned line;        // of the first problem
    unsigned problems;    // in all
    const char *parts[3]; // of the first problem's sentence
} bad_model;

// Problems begin with the file's name.
static inline unsigned count_problems(const char *problems)
{
    unsigned count = 0;
    for (const char *at = problems; (at = strstr(at, ".yaml:")) != NULL; at++) {
        count++;
    }
    return count;
}

static inline void assert_refused(const bad_model *bad)
{
    hr_preset *preset = preset_from_text(bad->preset);
    hr_model *model = NULL;
    char *problems = NULL;
    hr_err err = {0};
    ck_assert_int_eq(model_create(preset, hr_preset_knobs(preset), &model, &problems, &err), HR_MODEL);
    ck_assert_ptr_null(model);
    ck_assert_ptr_nonnull(problems);
    char place[32];
    snprintf(place, sizeof place, ".yaml:%u:", bad->line);
    const char *first = strstr(problems, ".yaml:");
    ck_assert_msg(first && strncmp(first, place, strlen(place)) == 0, "not at line %u:\n%s", bad->line,
                  problems);
    for (size_t k = 0; k < COUNT(bad->parts) && bad->parts[k]; k++) {
        ck_assert_msg(strstr(err.sentence, bad->parts[k]), "no \"%s\" in \"%s\"", bad->parts[k],
                      err.sentence);
    }
    ck_assert_msg(count_problems(problems) == bad->problems, "%u problems expected:\n%s", bad->problems,
                  problems);
    hr_preset_problems_free(problems);
    hr_preset_close(preset);
}

static inline void fail_every_allocation(const char *preset_text, hr_status without_fault)
{
    hr_status status = HR_NOMEM;
    for (uint64_t nth = 1; nth < 100000; nth++) {
        hr_preset *preset = preset_from_text(preset_text);
        hr_model *model = NULL;
        char *problems = NULL;
        const int64_t live = hr_host_mem_live();
        hr_host_mem_fail_at(nth);
        status = model_create(preset, hr_preset_knobs(preset), &model, &problems, NULL);
        const uint64_t seen = hr_host_mem_fail_at(0);
        ck_assert(status == without_fault || status == HR_NOMEM);
        ck_assert_int_eq(status == HR_OK, model != NULL);
        model_destroy(model);
        hr_preset_problems_free(problems);
        if (without_fault == HR_OK) {
            ck_assert_int_eq(hr_host_mem_live(), live);
        }
        hr_preset_close(preset);
        if (seen < nth) {
            break;
        }
    }
    ck_assert_int_eq(status, without_fault);
}

#endif
