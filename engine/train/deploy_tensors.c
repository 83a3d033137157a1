// SPDX-License-Identifier: Apache-2.0
#include "train/deploy_tensors.h"

#include <math.h>
#include <stdio.h>

#include "base/host_mem.h"
#include "base/text.h"
#include "train/held.h"

static uint64_t count_zeros(const stored_tensor *w, uint64_t elements)
{
    uint64_t zeros = 0;
    for (uint64_t k = 0; k < elements; k++) {
        zeros += fpclassify(store_value(w, k)) == FP_ZERO;
    }
    return zeros;
}

static double largest_error(const stored_tensor *a, const stored_tensor *b)
{
    uint64_t elements = 0;
    double largest = 0;
    (void)shape_elements(&a->shape, &elements);
    for (uint64_t k = 0; k < elements; k++) {
        const double apart = fabs(store_value(a, k) - store_value(b, k));
        largest = apart > largest ? apart : largest;
    }
    return largest;
}

static uint64_t bytes_of_all(const store *s, const char *name)
{
    static const char *const parts[] = {"", ":scale", ":zero"};
    uint64_t sum = 0;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        char whole[160];
        (void)snprintf(whole, sizeof whole, "%s%s", name, parts[k]);
        const stored_tensor *t = store_find(s, whole);
        sum += t == NULL ? 0 : t->bytes;
    }
    return sum;
}

// Whether its numbers are made whole ones by export.
static bool is_taken(const hr_model *m, uint32_t param, hr_quantize mode)
{
    return mode != HR_QUANTIZE_NONE && model_param_quantized(m, param) != MODEL_AS_IT_IS;
}

// The type that a parameter is deployed as; static.
static const char *type_of(const hr_model *m, uint32_t param, hr_dtype dtype, hr_quantize mode)
{
    const held_as held = m->params[param].held;
    return held != HELD_REAL                  ? held_name(held)
           : !is_taken(m, param, mode)        ? dtype_name(dtype)
           : mode == HR_QUANTIZE_INT4_WEIGHTS ? "int4"
                                              : "int8";
}

static hr_status describe_one(const hr_model *m, const deploy_stores *s, uint32_t param, hr_deploy *out,
                              hr_err *err)
{
    const model_param *p = &m->params[param];
    const stored_tensor *w = store_find(s->stripped, p->name);
    const bool held = p->held != HELD_REAL, known = is_taken(m, param, out->quantize) && !out->was_quantized;
    hr_deploy_tensor *t = &out->tensors[out->tensor_count++];
    (void)text_copy(t->name, sizeof t->name, p->name);
    t->type = type_of(m, param, w->dtype, out->quantize);
    (void)shape_elements(held ? &p->shape : &w->shape, &t->elements);
    if (held) {
        HR_TRY(held_zeros(s->stripped, p, &t->zeros, err));
    } else {
        t->zeros = count_zeros(w, t->elements);
    }
    t->bytes = bytes_of_all(s->trained, t->name);
    t->deployed_bytes = bytes_of_all(s->deployed, t->name);
    t->max_error =
        known ? largest_error(store_find(s->left, t->name), store_find(s->back, t->name)) : (double)NAN;
    return HR_OK;
}

hr_status deploy_describe(const hr_model *m, const deploy_stores *s, bool deployed_alone, hr_deploy *out,
                          hr_err *err)
{
    out->tensors = hr_calloc(m->own_params, sizeof *out->tensors);
    if (out->tensors == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a report of %u tensors", m->own_params);
    }
    for (uint32_t k = 0; k < m->own_params; k++) {
        if (!deployed_alone || store_find(s->deployed, m->params[k].name) != NULL) {
            HR_TRY(describe_one(m, s, k, out, err));
        }
    }
    return HR_OK;
}
