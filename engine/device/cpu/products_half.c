// SPDX-License-Identifier: Apache-2.0
// Products of two-byte matrices: dense layers and 1x1 convolutions of stride 1 over plain images.
#include "cpu.h"
#include "half_product.h"

// Operands of the instruction that are A and B; the result is always output 0.
typedef struct product_places {
    product_shape shape;
    uint8_t a, b;
    bool sums_b; // into output 1
} product_places;

static int64_t last_of(const op_operand *t)
{
    return t->shape.dim[t->shape.rank - 1];
}

static product_places places_of(const op_query *q)
{
    const bool turned = (q->attr.flags & OP_FLAG_TRANSPOSE) != 0; // weights are stored [O, I]
    if (q->op == HR_OP_DENSE || q->op == HR_OP_CONV2D) {
        const int64_t k = last_of(&q->in[0]);
        return (product_places){.shape = {.m = cpu_elements_of(&q->in[0]) / k,
                                          .n = last_of(&q->out[0]),
                                          .k = k,
                                          .b_transposed = turned,
                                          .bias = q->in_count > 2,
                                          .relu = q->attr.act != HR_ACT_NONE,
                                          .ceiling = cpu_ceiling(q->attr.act)},
                                .b = 1};
    }
    if (q->op == HR_OP_DENSE_BWD_DATA || q->op == HR_OP_CONV2D_BWD_DATA) {
        const int64_t k = last_of(&q->in[0]);
        return (product_places){.shape = {.m = cpu_elements_of(&q->in[0]) / k,
                                          .n = last_of(&q->out[0]),
                                          .k = k,
                                          .b_transposed = !turned},
                                .b = 1};
    }
    const int64_t c = last_of(&q->in[0]), f = last_of(&q->in[1]), rows = cpu_elements_of(&q->in[0]) / c;
    product_places p = {
        .shape = {.m = c, .n = f, .k = rows, .a_transposed = true}, .b = 1, .sums_b = q->out_count > 1};
    if (turned) { // dw[O, I] = dyᵀ · x
        p.shape.m = f;
        p.shape.n = c;
        p.a = 1;
        p.b = 0;
    }
    return p;
}

static bool is_pointwise(const op_query *q)
{
    const op_attr *a = &q->attr;
    return a->kernel_h == 1 && a->kernel_w == 1 && a->stride_h == 1 && a->stride_w == 1 && a->groups == 1 &&
           a->pad_top == 0 && a->pad_left == 0 && a->pad_bottom == 0 && a->pad_right == 0;
}

static bool is_plain(const op_query *q)
{
    return q->in[0].layout == HR_LAYOUT_PLAIN && q->in[1].layout == HR_LAYOUT_PLAIN &&
           q->out[0].layout == HR_LAYOUT_PLAIN;
}

static hr_dtype type_of(const op_query *q)
{
    return (hr_dtype)q->in[0].dtype;
}

static hr_status choose(const cpu_device *device, const op_query *q, uint64_t limit, half_product **out,
                        hr_err *err)
{
    const product_places p = places_of(q);
    return half_product_choose(device, &p.shape, type_of(q), limit, out, err);
}

static bool fits(const cpu_device *device, const op_query *q)
{
    const bool dense =
        q->op == HR_OP_DENSE || q->op == HR_OP_DENSE_BWD_DATA || q->op == HR_OP_DENSE_BWD_WEIGHTS;
    if ((!dense && !is_pointwise(q)) || !is_plain(q)) {
        return false;
    }
    half_product *product = NULL;
    const bool found = choose(device, q, UINT64_MAX, &product, NULL) != HR_DEVICE;
    half_product_destroy(product);
    return found;
}

// Bias gradients are summed in float32, before the product, in the same scratch.
static uint64_t sums_bytes(const cpu_device *device, const op_query *q)
{
    return q->out_count > 1 ? cpu_half_sums_bytes(device, last_of(&q->in[1])) : 0;
}

static hr_status ask(const cpu_device *device, const op_query *q, uint64_t limit, target_answer *out,
                     hr_err *err)
{
    const uint64_t sums = sums_bytes(device, q);
    half_product *product = NULL;
    HR_TRY(choose(device, q, limit, &product, err));
    const uint64_t scratch = half_product_scratch_bytes(product);
    out->workspace_bytes = scratch > sums ? scratch : sums;
    out->impl = half_product_impl(product);
    half_product_destroy(product);
    return HR_OK;
}

static hr_status prepare(const cpu_device *device, const program *p, const instr *i, const op_query *q,
                         void **state, hr_err *err)
{
    half_product *product = NULL;
    HR_TRY(choose(device, q, cpu_temporary_bytes(p, i), &product, err));
    const hr_status status = half_product_prepare(product, err);
    if (status != HR_OK) {
        half_product_destroy(product);
        return status;
    }
    *state = product;
    return HR_OK;
}

static void release(void *state)
{
    half_product_destroy(state);
}

static hr_status run(const cpu_run *r, hr_err *err)
{
    const product_places p = places_of(r->query);
    if (p.sums_b) {
        const op_operand *dy = &r->query->in[1];
        cpu_half_sums(r->device, dy, r->in[1], &r->query->out[1], r->out[1], r->workspace);
    }
    return half_product_run(r->device, r->state, r->in[p.a], r->in[p.b], p.shape.bias ? r->in[2] : NULL,
                            r->out[0], r->workspace, err);
}

const cpu_impl cpu_product_half = {.name = CPU_LIBRARY,
                                   .types = CPU_HALF,
                                   .fits = fits,
                                   .ask = ask,
                                   .prepare = prepare,
                                   .release = release,
                                   .call = run};
