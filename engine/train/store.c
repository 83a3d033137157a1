// SPDX-License-Identifier: Apache-2.0
#include "train/store.h"

#include <inttypes.h>
#include <string.h>

#include "base/half.h"
#include "base/hash.h"
#include "base/host_mem.h"

void store_deinit(store *s)
{
    for (uint32_t k = 0; k < s->tensors.count; k++) {
        hr_free(s->tensors.data[k].name);
        hr_free(s->tensors.data[k].data);
    }
    vec_deinit(&s->tensors);
}

const stored_tensor *store_find(const store *s, const char *name)
{
    for (uint32_t k = 0; k < s->tensors.count; k++) {
        if (strcmp(s->tensors.data[k].name, name) == 0) {
            return &s->tensors.data[k];
        }
    }
    return NULL;
}

stored_tensor *store_add(store *s, const char *name, const hr_shape *shape, hr_dtype dtype,
                         hr_category category)
{
    op_operand o = {.shape = *shape, .dtype = dtype, .layout = HR_LAYOUT_PLAIN};
    uint64_t bytes = 0;
    uint64_t padding = 0;
    if (!operand_bytes(&o, &bytes, &padding)) {
        return NULL;
    }
    stored_tensor made = {.name = hr_strdup(name),
                          .shape = *shape,
                          .dtype = dtype,
                          .category = category,
                          .bytes = bytes,
                          .data = hr_calloc(bytes, 1)};
    stored_tensor *place = made.name != NULL && made.data != NULL ? vec_push(&s->tensors) : NULL;
    if (place == NULL) {
        hr_free(made.name);
        hr_free(made.data);
        return NULL;
    }
    *place = made;
    return place;
}

static bool is_kept(const tensor *t)
{
    return t->category == HR_CATEGORY_WEIGHTS || t->category == HR_CATEGORY_STATE ||
           t->category == HR_CATEGORY_OPTIMIZER;
}

hr_status store_take(store *s, const build *b, hr_err *err)
{
    const program *p = b->programs[BUILD_TRAIN];
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        const tensor *t = &p->tensors[k];
        if (!is_kept(t)) {
            continue;
        }
        stored_tensor *copy = store_add(s, t->name, &t->shape, t->dtype, t->category);
        if (copy == NULL) {
            return HR_FAIL(err, NOMEM, "no host memory for a copy of %s, needed %" PRIu64 " B", t->name,
                           t->bytes);
        }
        HR_TRY(
            b->device->copy_out(b->context, executor_address(b->x, t->name), copy->data, copy->bytes, err));
    }
    return HR_OK;
}

static double value_at(const void *from, hr_dtype type, uint64_t k)
{
    switch (type) {
    case HR_F64:
        return ((const double *)from)[k];
    case HR_F16:
        return (double)float_of_f16(((const uint16_t *)from)[k]);
    case HR_BF16:
        return (double)float_of_bf16(((const uint16_t *)from)[k]);
    case HR_I32:
        return ((const int32_t *)from)[k];
    case HR_U8:
        return ((const uint8_t *)from)[k];
    case HR_F32:
    case HR_DTYPE_COUNT:
        break;
    }
    return (double)((const float *)from)[k];
}

static void put_at(void *to, hr_dtype type, uint64_t k, double value)
{
    switch (type) {
    case HR_F64:
        ((double *)to)[k] = value;
        return;
    case HR_F16:
        ((uint16_t *)to)[k] = f16_of_float((float)value);
        return;
    case HR_BF16:
        ((uint16_t *)to)[k] = bf16_of_float((float)value);
        return;
    case HR_I32:
        ((int32_t *)to)[k] = (int32_t)value;
        return;
    case HR_U8:
        ((uint8_t *)to)[k] = (uint8_t)value;
        return;
    case HR_F32:
    case HR_DTYPE_COUNT:
        break;
    }
    ((float *)to)[k] = (float)value;
}

static void convert(void *to, hr_dtype to_type, const void *from, hr_dtype from_type, uint64_t elements)
{
    for (uint64_t k = 0; k < elements; k++) {
        put_at(to, to_type, k, value_at(from, from_type, k));
    }
}

// The initial values of tensor t, as float32: a parameter's own, else what its tensor says.
static hr_status initial_values(const hr_model *model, const tensor *t, uint64_t seed, uint64_t elements,
                                float **out, hr_err *err)
{
    *out = hr_calloc(elements, sizeof **out);
    if (*out == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the initial values of %s", t->name);
    }
    if (t->category != HR_CATEGORY_OPTIMIZER && t->param != HR_NO_ID) {
        model_init_param(model, t->param, seed, *out);
        return HR_OK;
    }
    for (uint64_t k = 0; k < elements; k++) {
        (*out)[k] = t->initial;
    }
    return HR_OK;
}

static hr_status fill_one(const store *s, build *b, const hr_model *model, uint64_t seed, const tensor *t,
                          hr_err *err)
{
    const stored_tensor *kept = store_find(s, t->name);
    bool usable = kept != NULL && shape_equal(&kept->shape, &t->shape);
    uint64_t elements = 0;
    (void)shape_elements(&t->shape, &elements);
    float *initial = NULL;
    if (!usable) {
        HR_TRY(initial_values(model, t, seed, elements, &initial, err));
    }
    const void *from = usable ? kept->data : initial;
    hr_dtype from_type = usable ? kept->dtype : HR_F32;
    uint64_t address = executor_address(b->x, t->name);
    hr_status status = HR_OK;
    if (from_type == t->dtype) {
        status = b->device->copy_in(b->context, address, from, t->bytes, err);
    } else {
        void *converted = hr_calloc(t->bytes, 1);
        if (converted == NULL) {
            status = HR_FAIL(err, NOMEM, "no host memory to convert %s", t->name);
        } else {
            convert(converted, t->dtype, from, from_type, elements);
            status = b->device->copy_in(b->context, address, converted, t->bytes, err);
        }
        hr_free(converted);
    }
    hr_free(initial);
    return status;
}

hr_status store_fill(const store *s, build *b, const hr_model *model, uint64_t seed, hr_err *err)
{
    const program *p = b->programs[BUILD_TRAIN];
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        if (is_kept(&p->tensors[k])) {
            HR_TRY(fill_one(s, b, model, seed, &p->tensors[k], err));
        }
    }
    return HR_OK;
}

void store_sha256(const store *s, char out[HR_SHA256_TEXT_MAX])
{
    sha256 hash;
    sha256_init(&hash);
    for (uint32_t k = 0; k < s->tensors.count; k++) {
        if (s->tensors.data[k].category == HR_CATEGORY_WEIGHTS) {
            sha256_add(&hash, s->tensors.data[k].data, s->tensors.data[k].bytes);
        }
    }
    sha256_text(&hash, out);
}
