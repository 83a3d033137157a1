// SPDX-License-Identifier: Apache-2.0
// What is matrix products for cuBLASLt: dense layers and their gradients, matmul, experts, materialised attention, pointwise
// convolutions. Bias, RELU, GELU and the bias' gradient ride on the product where the library has an algorithm for it,
// which only the card can say; where it has none, and for RELU6, kernels of our own stand beside it:
//
//     bias       every row of y becomes it, with what is added, and the product adds to y
//     RELU…      the activation's own kernel, over y
//     GELU       the same, over what the product wrote of it, which is kept; its gradient over y and what was kept
//     db         dy's columns are summed before the product, in what the workspace has room for
//
// The library takes rows of whole sixteen bytes. Of the models in presets these layers have others (their types alike):
//
//     columns    model                                           beside the product
//     10         cifar10_separable_cnn, mlp, resnet18_cifar      bias, db
//     2          unet (its last convolution)                     bias, db
//
// Activations are beside it in no preset, only in a layer of such a width of one's own (tests/program/
// test_product_rows.c).
#include <stdio.h>

#include "base/host_mem.h"
#include "kernels/activation_args.h"
#include "kernels/products_args.h"
#include "products_shape.h"

enum { PACK_BYTES = 16, PARTS_MAX = 64, ROWS_OF_A_PART = 256 };

typedef struct products_state {
    product_use use;
    product *product;
    CUfunction spread, after, sums, sums_end; // NULL: the product does it, or it is not needed
    bool packs;                               // vectors of whole rows of y, or of what is summed
    int64_t parts;                            // of the rows that are summed
} products_state;

static hr_status ask(cuda_device *device, const op_query *q, uint64_t limit, target_answer *out, hr_err *err)
{
    (void)err;
    const product_use u = product_use_of(q);
    out->impl = CUDA_CUBLASLT;
    out->workspace_bytes = product_workspace_bytes(device, &u.shape, limit);
    return HR_OK;
}

// ---- what the library does not fuse -------------------------------------------------------------------------------

static hr_status find(cuda_device *device, const char *what, bool packs, uint32_t dtype, CUfunction *out,
                      hr_err *err)
{
    char name[CUDA_NAME_MAX];
    (void)snprintf(name, sizeof name, "%s%s_%s", what, packs ? "_packs" : "", cuda_suffix(dtype));
    return cuda_function(device, "products", name, out, err);
}

static bool whole_packs(int64_t columns, uint32_t dtype)
{
    return columns * (int64_t)dtype_bytes((hr_dtype)dtype) % PACK_BYTES == 0;
}

static int64_t summed_columns(const product_shape *s)
{
    return s->sums == PRODUCT_SUMS_A ? s->m : s->n;
}

static hr_status sum_apart(cuda_device *device, products_state *st, uint64_t workspace_bytes, hr_err *err)
{
    const product_shape *s = &st->use.shape;
    const int64_t columns = summed_columns(s);
    const uint64_t room = workspace_bytes / (sizeof(float) * (uint64_t)columns);
    const int64_t wanted = s->k / ROWS_OF_A_PART < PARTS_MAX ? s->k / ROWS_OF_A_PART : PARTS_MAX;
    st->parts = (uint64_t)wanted < room ? wanted : (int64_t)room;
    st->packs = whole_packs(columns, s->dtype);
    HR_TRY(find(device, "product_sums", st->packs, s->dtype, &st->sums, err));
    if (st->parts > 1) {
        return find(device, "product_sums_end", false, s->dtype, &st->sums_end, err);
    }
    st->parts = 1;
    return HR_OK;
}

static hr_status act_apart(cuda_device *device, products_state *st, hr_err *err)
{
    const product_use *u = &st->use;
    char name[CUDA_NAME_MAX];
    const char *act = u->six ? "relu6" : u->shape.act == HR_ACT_RELU ? "relu" : "gelu_tanh";
    (void)snprintf(name, sizeof name, "%s%s_%s", act, u->shape.aux == PRODUCT_AUX_READ ? "_bwd" : "",
                   cuda_suffix(u->shape.dtype));
    return cuda_function(device, "activation", name, &st->after, err);
}

// The product alone; what the library was to fuse is done beside it.
static hr_status do_apart(cuda_device *device, products_state *st, uint64_t workspace_bytes, hr_err *err)
{
    const product_shape *s = &st->use.shape;
    product_shape alone = *s;
    alone.bias = false;
    alone.act = HR_ACT_NONE;
    alone.aux = PRODUCT_AUX_NONE;
    alone.sums = PRODUCT_SUMS_NONE;
    alone.beta = s->bias ? 1.0f : s->beta;
    HR_TRY(product_prepare(device, &alone, workspace_bytes, &st->product, err));
    if (s->bias) {
        st->packs = whole_packs(s->n, s->dtype);
        HR_TRY(find(device, "product_bias", st->packs, s->dtype, &st->spread, err));
    }
    if (s->act != HR_ACT_NONE) {
        HR_TRY(act_apart(device, st, err));
    }
    return s->sums == PRODUCT_SUMS_NONE ? HR_OK : sum_apart(device, st, workspace_bytes, err);
}

static bool fuses_nothing(const product_shape *s)
{
    return !s->bias && s->act == HR_ACT_NONE && s->sums == PRODUCT_SUMS_NONE;
}

static hr_status make(cuda_device *device, products_state *st, uint64_t workspace_bytes, hr_err *err)
{
    const product_shape *s = &st->use.shape;
    if (st->use.six) {
        HR_TRY(act_apart(device, st, err));
    }
    const hr_status status = product_prepare(device, s, workspace_bytes, &st->product, err);
    if (status != HR_DEVICE || fuses_nothing(s)) {
        return status;
    }
    return do_apart(device, st, workspace_bytes, err);
}

static void release(cuda_device *device, void *state)
{
    (void)device;
    products_state *st = state;
    if (st != NULL) {
        product_destroy(st->product);
        hr_free(st);
    }
}

static hr_status prepare(cuda_device *device, const program *p, const instr *i, const op_query *q,
                         uint64_t workspace_bytes, void **state, hr_err *err)
{
    (void)p, (void)i;
    *state = NULL;
    products_state *st = hr_calloc(1, sizeof *st);
    if (st == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for %s", op_name((hr_op)q->op));
    }
    st->use = product_use_of(q);
    const hr_status status = make(device, st, workspace_bytes, err);
    if (status != HR_OK) {
        release(device, st);
        return status;
    }
    *state = st;
    return HR_OK;
}

// ---- running --------------------------------------------------------------------------------------------------------

static hr_status run_sums(const cuda_run *r, const products_state *st, hr_err *err)
{
    const product_shape *s = &st->use.shape;
    const int64_t columns = summed_columns(s),
                  band = 32 * (st->packs ? PACK_BYTES / (int64_t)dtype_bytes((hr_dtype)s->dtype) : 1);
    const column_sums_args a = {
        .x = (const void *)(uintptr_t)r->in[s->sums == PRODUCT_SUMS_A ? st->use.a : st->use.b],
        .parts = (float *)(uintptr_t)r->workspace,
        .sums = (void *)(uintptr_t)r->out[st->use.vector],
        .rows = s->k,
        .columns = columns,
        .part_count = st->parts,
        .wide = s->out_dtype != s->dtype};
    const cuda_grid grid = {.blocks_x = (uint32_t)((columns + band - 1) / band),
                            .blocks_y = (uint32_t)st->parts,
                            .blocks_z = 1,
                            .threads = PRODUCTS_THREADS};
    HR_TRY(cuda_launch(r, st->sums, grid, &a, sizeof a, err));
    return st->sums_end == NULL
               ? HR_OK
               : cuda_launch(r, st->sums_end,
                             cuda_grid_over(r->device, (uint64_t)columns, 1, PRODUCTS_THREADS), &a, sizeof a,
                             err);
}

static hr_status run_spread(const cuda_run *r, const products_state *st, const product_places *at,
                            hr_err *err)
{
    const product_shape *s = &st->use.shape;
    const products_args a = {.y = (void *)(uintptr_t)at->y,
                             .bias = (const void *)(uintptr_t)at->vector,
                             .added = (const void *)(uintptr_t)at->c,
                             .count = s->m * s->n,
                             .columns = s->n};
    const uint32_t per_thread = st->packs ? PACK_BYTES / (uint32_t)dtype_bytes((hr_dtype)s->dtype) : 1;
    return cuda_launch(r, st->spread,
                       cuda_grid_over(r->device, (uint64_t)a.count, per_thread, PRODUCTS_THREADS), &a,
                       sizeof a, err);
}

// The activation, or its gradient, of what the product has written.
static hr_status run_after(const cuda_run *r, const products_state *st, const product_places *at, hr_err *err)
{
    const product_shape *s = &st->use.shape;
    const bool gradient = s->aux == PRODUCT_AUX_READ;
    const activation_args a = {.x = (const void *)(uintptr_t)(gradient ? at->aux : at->y),
                               .dy = gradient ? (const void *)(uintptr_t)at->y : NULL,
                               .out = (void *)(uintptr_t)r->out[0],
                               .count = s->m * s->n};
    const uint32_t per_thread = PACK_BYTES / (uint32_t)dtype_bytes((hr_dtype)s->dtype);
    return cuda_launch(r, st->after,
                       cuda_grid_over(r->device, (uint64_t)a.count, per_thread, PRODUCTS_THREADS), &a,
                       sizeof a, err);
}

static product_places places_of(const cuda_run *r, const products_state *st)
{
    const product_use *u = &st->use;
    const product_shape *s = &u->shape;
    product_places at = {.a = r->in[u->a], .b = r->in[u->b], .y = r->out[0], .workspace = r->workspace};
    if (u->vector >= 0) {
        at.vector = s->sums != PRODUCT_SUMS_NONE ? r->out[u->vector] : r->in[u->vector];
    }
    at.c = u->added < 0 ? 0 : r->in[u->added];
    if (u->aux >= 0) {
        at.aux = s->aux == PRODUCT_AUX_WRITTEN ? r->out[u->aux] : r->in[u->aux];
    }
    if (st->after != NULL && s->aux == PRODUCT_AUX_WRITTEN) {
        at.y = at.aux;
    }
    return at;
}

static hr_status run(const cuda_run *r, hr_err *err)
{
    const products_state *st = r->state;
    product_places at = places_of(r, st);
    if (st->sums != NULL) {
        HR_TRY(run_sums(r, st, err));
    }
    if (st->spread != NULL) {
        HR_TRY(run_spread(r, st, &at, err));
        at.c = 0;
    }
    HR_TRY(product_run(st->product, r->stream, &at, err));
    return st->after == NULL ? HR_OK : run_after(r, st, &at, err);
}

// ---- rows -------------------------------------------------------------------------------------------------------------

// cuDNN has RELU6 in the convolution itself.
static bool fits_convolution(const cuda_device *device, const op_query *q)
{
    return product_is_pointwise(q) && q->attr.act != HR_ACT_RELU6 && cuda_one_type(device, q);
}

// Gradients of weights may be float32 beside two-byte operands, and so both.
static bool fits_weights(const cuda_device *device, const op_query *q)
{
    op_query narrow = *q;
    const bool both = q->out_count < 2 || q->out[0].dtype == q->out[1].dtype;
    for (uint32_t k = 0; k < q->out_count && q->out[0].dtype == HR_F32; k++) {
        narrow.out[k].dtype = q->in[0].dtype;
    }
    return both && cuda_one_type(device, &narrow);
}

#define PRODUCT(operation, suits)                                                                            \
    {                                                                                                        \
        .op = HR_OP_##operation, .types = CUDA_REAL, .name = CUDA_CUBLASLT, .fits = (suits), .ask = ask,     \
        .prepare = prepare, .release = release, .run = run                                                   \
    }

static const cuda_impl impls[] = {
    PRODUCT(DENSE, cuda_one_type),
    PRODUCT(DENSE_BWD_DATA, cuda_one_type),
    PRODUCT(DENSE_BWD_WEIGHTS, fits_weights),
    PRODUCT(MATMUL, cuda_one_type),
    PRODUCT(MATMUL_BWD_A, cuda_one_type),
    PRODUCT(MATMUL_BWD_B, cuda_one_type),
    PRODUCT(EXPERT_DENSE, cuda_one_type),
    PRODUCT(EXPERT_DENSE_BWD_DATA, cuda_one_type),
    PRODUCT(EXPERT_DENSE_BWD_WEIGHTS, cuda_one_type),
    PRODUCT(ATTENTION_SCORES, cuda_one_type),
    PRODUCT(ATTENTION_SCORES_BWD_Q, cuda_one_type),
    PRODUCT(ATTENTION_SCORES_BWD_K, cuda_one_type),
    PRODUCT(ATTENTION_VALUES, cuda_one_type),
    PRODUCT(ATTENTION_VALUES_BWD_P, cuda_one_type),
    PRODUCT(ATTENTION_VALUES_BWD_V, cuda_one_type),
    PRODUCT(CONV2D, fits_convolution),
    PRODUCT(CONV2D_BWD_DATA, fits_convolution),
    PRODUCT(CONV2D_BWD_WEIGHTS, fits_convolution),
};

const cuda_impl *product_dense_row(void)
{
    return &impls[0];
}

const cuda_family cuda_family_products = CUDA_FAMILY(impls);
