// SPDX-License-Identifier: Apache-2.0
#include "train/quantized.h"

#include <math.h>
#include <stdio.h>

#include "base/quantize.h"
#include "program/deployed.h"
#include "train/held.h"

enum { QUANTIZED_NAME_BYTES = 256 };

// ---- names and shapes -----------------------------------------------------------------------------------------

typedef struct quantized_parts {
    deployed_parts of;
    uint64_t rows, columns;
    bool by_row, has_zero;
    char scale_name[QUANTIZED_NAME_BYTES], zero_name[QUANTIZED_NAME_BYTES];
} quantized_parts;

static void parts_of(const hr_model *m, uint32_t param, hr_quantize mode, quantized_parts *out)
{
    const model_param *p = &m->params[param];
    out->rows = (uint64_t)p->shape.dim[0];
    out->columns = (uint64_t)p->shape.dim[1];
    out->by_row = model_param_quantized(m, param) == MODEL_BY_ROW;
    deployed_parts_of(&p->shape, mode, out->by_row, &out->of);
    out->has_zero = out->of.zero.rank > 0;
    (void)snprintf(out->scale_name, sizeof out->scale_name, "%s:scale", p->name);
    (void)snprintf(out->zero_name, sizeof out->zero_name, "%s:zero", p->name);
}

static bool takes(const hr_model *m, uint32_t param, hr_quantize mode)
{
    return mode != HR_QUANTIZE_NONE && model_param_quantized(m, param) != MODEL_AS_IT_IS;
}

static hr_status no_memory(const char *name, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory for %s as whole numbers", name);
}

// ---- there ----------------------------------------------------------------------------------------------------

static hr_status check_finite(const char *name, const float *w, uint64_t count, hr_err *err)
{
    for (uint64_t k = 0; k < count; k++) {
        if (!isfinite(w[k])) {
            return HR_FAIL(err, SAVE, "%s: needed numbers to quantise, had %g at place %llu", name,
                           (double)w[k], (unsigned long long)k);
        }
    }
    return HR_OK;
}

static void make_numbers(const quantized_parts *p, const float *w, void *q, float *scale, int8_t *zero)
{
    if (p->has_zero) {
        (p->by_row ? quantize_int4_rows : quantize_int4)(w, p->rows, p->columns, q, scale, zero);
    } else {
        (p->by_row ? quantize_int8_rows : quantize_int8)(w, p->rows, p->columns, q, scale);
    }
}

static hr_status make_one(const stored_tensor *w, const char *name, const quantized_parts *p, store *to,
                          hr_err *err)
{
    HR_TRY(check_finite(name, w->data, p->rows * p->columns, err));
    // Adding may move the tensors, never their data.
    stored_tensor *added = store_add(to, name, &p->of.q, p->of.q_type, HR_CATEGORY_WEIGHTS);
    void *q = added == NULL ? NULL : added->data;
    added = store_add(to, p->scale_name, &p->of.scale, HR_F32, HR_CATEGORY_WEIGHTS);
    float *scale = added == NULL ? NULL : added->data;
    added = p->has_zero ? store_add(to, p->zero_name, &p->of.zero, HR_I8, HR_CATEGORY_WEIGHTS) : NULL;
    if (q == NULL || scale == NULL || (p->has_zero && added == NULL)) {
        return no_memory(name, err);
    }
    make_numbers(p, w->data, q, scale, added == NULL ? NULL : added->data);
    return HR_OK;
}

// Of another real type it goes by way of float32.
static hr_status make_from(const stored_tensor *from, const char *name, const quantized_parts *p, store *to,
                           hr_err *err)
{
    store wide = {0};
    const stored_tensor *w = from;
    if (from->dtype != HR_F32) {
        w = store_add_as(&wide, from->name, from, HR_F32);
    }
    const hr_status status = w == NULL ? no_memory(name, err) : make_one(w, name, p, to, err);
    store_deinit(&wide);
    return status;
}

hr_status quantized_make(const store *from, const hr_model *m, hr_quantize mode, store *to, hr_err *err)
{
    for (uint32_t k = 0; k < m->own_params; k++) {
        const model_param *p = &m->params[k];
        const stored_tensor *w = store_find(from, p->name);
        if (w != NULL && takes(m, k, mode)) {
            quantized_parts parts;
            parts_of(m, k, mode, &parts);
            HR_TRY(make_from(w, p->name, &parts, to, err));
        } else if (w != NULL && store_add_as(to, p->name, w, w->dtype) == NULL) {
            return no_memory(p->name, err);
        }
        HR_TRY(held_copy_scales(from, p, to, err));
    }
    return HR_OK;
}

// ---- and back -------------------------------------------------------------------------------------------------

static hr_status part_of(const store *s, const char *name, const hr_shape *shape, hr_dtype dtype,
                         const char *path, const void **out, hr_err *err)
{
    char needed[64], had[64] = "nothing";
    const stored_tensor *t = store_find(s, name);
    *out = t == NULL ? NULL : t->data;
    if (t != NULL && t->dtype == dtype && shape_equal(&t->shape, shape)) {
        return HR_OK;
    }
    if (t != NULL) {
        (void)shape_text(&t->shape, had, sizeof had);
    }
    return HR_FAIL(err, SAVE, "%s: %s needs %s %s, had %s %s", path, name, dtype_name(dtype),
                   shape_text(shape, needed, sizeof needed), t == NULL ? "" : dtype_name(t->dtype), had);
}

static void make_real(const quantized_parts *p, const void *q, const float *scale, const int8_t *zero,
                      float *w)
{
    if (p->has_zero) {
        (p->by_row ? dequantize_int4_rows : dequantize_int4)(q, scale, zero, p->rows, p->columns, w);
    } else {
        (p->by_row ? dequantize_int8_rows : dequantize_int8)(q, scale, p->rows, p->columns, w);
    }
}

static hr_status back_one(const store *s, const model_param *param, const quantized_parts *p,
                          const char *path, store *to, hr_err *err)
{
    const void *q = NULL, *scale = NULL, *zero = NULL;
    HR_TRY(part_of(s, param->name, &p->of.q, p->of.q_type, path, &q, err));
    HR_TRY(part_of(s, p->scale_name, &p->of.scale, HR_F32, path, &scale, err));
    HR_TRY(p->has_zero ? part_of(s, p->zero_name, &p->of.zero, HR_I8, path, &zero, err) : HR_OK);
    stored_tensor *w = store_add(to, param->name, &param->shape, HR_F32, HR_CATEGORY_WEIGHTS);
    if (w == NULL) {
        return no_memory(param->name, err);
    }
    make_real(p, q, scale, zero, w->data);
    return HR_OK;
}

hr_status quantized_back(const store *from, const hr_model *m, hr_quantize mode, const char *path, store *to,
                         hr_err *err)
{
    for (uint32_t k = 0; k < m->own_params; k++) {
        const model_param *p = &m->params[k];
        const stored_tensor *t = store_find(from, p->name);
        if (takes(m, k, mode)) {
            quantized_parts parts;
            parts_of(m, k, mode, &parts);
            HR_TRY(back_one(from, p, &parts, path, to, err));
        } else if (t != NULL && store_add_as(to, p->name, t, t->dtype) == NULL) {
            return no_memory(p->name, err);
        }
        HR_TRY(held_copy_scales(from, p, to, err));
    }
    return HR_OK;
}
