// SPDX-License-Identifier: Apache-2.0
#include "half_product.h"

#include "base/host_mem.h"
#include "half_matrix.h"

struct half_product {
    onednn_product *library; // NULL: ours
    half_multiply own;
    uint64_t own_bytes;
};

static half_matrix plain(hr_dtype type, int64_t row, int64_t close)
{
    return (half_matrix){.kind = HALF_MATRIX, .type = type, .row = row != 0 ? row : close};
}

static half_multiply own_of(const product_shape *s, hr_dtype type)
{
    return (half_multiply){.m = s->m,
                           .n = s->n,
                           .k = s->k,
                           .a = plain(type, s->a.row, s->a_transposed ? s->m : s->k),
                           .b = plain(type, s->b.row, s->b_transposed ? s->k : s->n),
                           .c = plain(s->wide ? HR_F32 : type, s->c.row, s->n),
                           .a_turned = s->a_transposed,
                           .b_turned = s->b_transposed,
                           .bias_type = type,
                           .scale = s->scale,
                           .relu = s->relu,
                           .ceiling = s->ceiling,
                           .outer = s->outer,
                           .inner = s->inner,
                           .a_at = s->a,
                           .b_at = s->b,
                           .c_at = s->c};
}

// What the library has no kernel for at all is ours; what it has one for that is too large is an error.
static hr_status choose_library(const cpu_device *device, const product_shape *shape, uint64_t limit_bytes,
                                onednn_product **out, hr_err *err)
{
    onednn_product *any = NULL;
    if (onednn_product_choose(device->library, shape, UINT64_MAX, &any, NULL) == HR_DEVICE) {
        return HR_OK;
    }
    onednn_product_destroy(any);
    return onednn_product_choose(device->library, shape, limit_bytes, out, err);
}

hr_status half_product_choose(const cpu_device *device, const product_shape *shape, hr_dtype type,
                              uint64_t limit_bytes, half_product **out, hr_err *err)
{
    *out = NULL;
    half_product *p = hr_calloc(1, sizeof *p);
    if (p == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a product of %s matrices", dtype_name(type));
    }
    hr_status status = HR_OK;
    if (type == HR_BF16 && device->bf16) {
        status = choose_library(device, shape, limit_bytes, &p->library, err);
    }
    if (p->library == NULL && status == HR_OK) {
        p->own = own_of(shape, type);
        p->own_bytes = half_multiply_bytes(device, &p->own);
    }
    if (status != HR_OK) {
        half_product_destroy(p);
        return status;
    }
    *out = p;
    return HR_OK;
}

void half_product_destroy(half_product *p)
{
    if (p != NULL) {
        onednn_product_destroy(p->library);
        hr_free(p);
    }
}

uint64_t half_product_scratch_bytes(const half_product *p)
{
    return p->library != NULL ? onednn_product_scratch_bytes(p->library) : p->own_bytes;
}

const char *half_product_impl(const half_product *p)
{
    return p->library != NULL ? target_impl_name(CPU_LIBRARY, onednn_product_name(p->library))
                              : target_impl_name("own", "tiles");
}

hr_status half_product_prepare(half_product *p, hr_err *err)
{
    return p->library != NULL ? onednn_product_prepare(p->library, err) : HR_OK;
}

hr_status half_product_run(const cpu_device *device, half_product *p, void *a, void *b, void *bias, void *c,
                           void *scratch, hr_err *err)
{
    if (p->library != NULL) {
        return onednn_product_run(p->library, a, b, bias, c, scratch, err);
    }
    half_multiply own = p->own;
    own.a.data = a;
    own.b.data = b;
    own.c.data = c;
    own.bias = bias;
    half_multiply_run(device, &own, scratch);
    return HR_OK;
}

// ---- a recurrent layer's two -------------------------------------------------------------------------------

static void forget(const half_pair *made)
{
    half_product_destroy(made->step);
    half_product_destroy(made->weights);
}

void half_pair_release(void *state)
{
    forget(state);
    hr_free(state);
}

static hr_status choose(const cpu_device *device, const half_pair_shape *s, uint64_t limit_bytes,
                        half_pair *out, hr_err *err)
{
    const uint64_t left = limit_bytes > s->rooms_bytes ? limit_bytes - s->rooms_bytes : 0;
    *out = (half_pair){NULL, NULL};
    HR_TRY(half_product_choose(device, &s->step, s->type, left, &out->step, err));
    return s->weights.m == 0 ? HR_OK
                             : half_product_choose(device, &s->weights, s->type, left, &out->weights, err);
}

bool half_pair_fits(const cpu_device *device, const half_pair_shape *shape)
{
    half_pair made;
    const bool found = choose(device, shape, UINT64_MAX, &made, NULL) != HR_DEVICE;
    forget(&made);
    return found;
}

hr_status half_pair_ask(const cpu_device *device, const half_pair_shape *shape, uint64_t limit_bytes,
                        target_answer *out, hr_err *err)
{
    half_pair made;
    const hr_status status = choose(device, shape, limit_bytes, &made, err);
    if (status == HR_OK) {
        const uint64_t step = half_product_scratch_bytes(made.step);
        const uint64_t weights = made.weights == NULL ? 0 : half_product_scratch_bytes(made.weights);
        out->workspace_bytes = shape->rooms_bytes + (step > weights ? step : weights);
        out->impl = half_product_impl(made.step);
    }
    forget(&made);
    return status;
}

hr_status half_pair_prepare(const cpu_device *device, const half_pair_shape *shape, uint64_t limit_bytes,
                            void **state, hr_err *err)
{
    half_pair *made = hr_calloc(1, sizeof *made);
    if (made == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the products of a recurrent layer");
    }
    hr_status status = choose(device, shape, limit_bytes, made, err);
    if (status == HR_OK) {
        status = half_product_prepare(made->step, err);
    }
    if (status == HR_OK && made->weights != NULL) {
        status = half_product_prepare(made->weights, err);
    }
    if (status != HR_OK) {
        half_pair_release(made);
        return status;
    }
    *state = made;
    return HR_OK;
}
