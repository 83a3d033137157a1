// SPDX-License-Identifier: Apache-2.0
#include "product.h"

#include "headroom/units.h"

#include "base/host_mem.h"
#include "cublaslt.h"

enum {
    ADDRESS_ALIGNMENT = 256,
    WORKSPACE_STEP = 256,
    SUMS_LEAST = 8,
    SHORTEST_SUM = 32,
    TILE = 128,
    DEPTH_OF_A_SUM = 256,
    BATCH_MAX = 65535
};

struct product {
    const cuda_device *device; // whose handle this is; NULL: none yet
    cublasLtHandle_t handle;
    product_shape shape; // with every default filled in
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, y; // as the library sees them: left, right, result
    cublasLtMatmulAlgo_t algo;
    uint64_t workspace_bytes;
};

// The library takes fewer than 2^16 products at a time (openxla/xla, gemm_rewriter.cc): more are rounds of as many each.
static void cut_batch(product_shape *s)
{
    if (s->batch <= BATCH_MAX || s->outer != 1) {
        return;
    }
    int64_t rounds = (s->batch + BATCH_MAX - 1) / BATCH_MAX;
    while (s->batch % rounds != 0) {
        rounds++;
    }
    s->outer = rounds;
    s->batch /= rounds;
    s->outer_a = s->batch * s->batch_a;
    s->outer_b = s->batch * s->batch_b;
    s->outer_y = s->batch * s->batch_y;
}

static product_shape completed(const product_shape *s)
{
    product_shape full = *s;
    full.stride_a = s->stride_a != 0 ? s->stride_a : s->transpose_a ? s->m : s->k;
    full.stride_b = s->stride_b != 0 ? s->stride_b : s->transpose_b ? s->k : s->n;
    full.stride_y = s->stride_y != 0 ? s->stride_y : s->n;
    full.batch = s->batch != 0 ? s->batch : 1;
    full.outer = s->outer != 0 ? s->outer : 1;
    full.alignment = s->alignment != 0 ? s->alignment : ADDRESS_ALIGNMENT;
    cut_batch(&full);
    return full;
}

// ---- workspace ----------------------------------------------------------------------------------------------------

static uint64_t pieces(int64_t whole, int64_t of)
{
    return ((uint64_t)whole + (uint64_t)of - 1) / (uint64_t)of;
}

// How many parts of k may be summed side by side: what leaves no processor idle, and no part shorter than is worth it; eight
// all the same, as far as k has that many of what a kernel takes of it at a time.
static uint64_t parts_of(const cuda_device *device, const product_shape *s)
{
    const uint64_t tiles = pieces(s->m, TILE) * pieces(s->n, TILE) * (uint64_t)s->batch;
    const uint64_t idle = cuda_device_traits(device)->multiprocessors / (tiles == 0 ? 1 : tiles);
    const uint64_t deep = pieces(s->k, DEPTH_OF_A_SUM);
    const uint64_t parts = idle < deep ? idle : deep;
    const uint64_t short_ones = pieces(s->k, SHORTEST_SUM),
                   least = short_ones < SUMS_LEAST ? short_ones : SUMS_LEAST;
    return parts < least ? least : parts;
}

uint64_t product_workspace_bytes(const cuda_device *device, const product_shape *s, uint64_t limit_bytes)
{
    const product_shape full = completed(s);
    const uint64_t generation =
        cuda_device_traits(device)->compute_major >= 9 ? 32 * (uint64_t)HR_MIB : 4 * (uint64_t)HR_MIB;
    uint64_t bytes = 0;
    const bool counted = hr_mul_bytes((uint64_t)full.m, (uint64_t)full.n, &bytes) &&
                         hr_mul_bytes(bytes, (uint64_t)full.batch, &bytes) &&
                         hr_mul_bytes(bytes, sizeof(float) * parts_of(device, &full), &bytes) &&
                         bytes <= generation;
    bytes = counted ? pieces((int64_t)bytes, WORKSPACE_STEP) * WORKSPACE_STEP : generation;
    return bytes < limit_bytes ? bytes : limit_bytes;
}

// ---- descriptors --------------------------------------------------------------------------------------------------

static cudaDataType_t data_type(uint32_t dtype)
{
    static const cudaDataType_t types[HR_DTYPE_COUNT] = {[HR_F32] = CUDA_R_32F,
                                                         [HR_F16] = CUDA_R_16F,
                                                         [HR_BF16] = CUDA_R_16BF,
                                                         [HR_I8] = CUDA_R_8I,
                                                         [HR_I32] = CUDA_R_32I};
    return types[dtype];
}

static bool is_whole(const product_shape *s)
{
    return s->dtype == HR_I8;
}

static cublasComputeType_t compute_type(const product *p)
{
    const bool rounded = p->shape.dtype == HR_F32 && cuda_device_tf32(p->device);
    return is_whole(&p->shape) ? CUBLAS_COMPUTE_32I
           : rounded           ? CUBLAS_COMPUTE_32F_FAST_TF32
                               : CUBLAS_COMPUTE_32F;
}

// Row-major [rows, stride] is column-major of `stride` a column.
static hr_status make_layout(uint32_t dtype, int64_t rows, int64_t columns, int64_t stride,
                             const product_shape *s, int64_t step, cublasLtMatrixLayout_t *out, hr_err *err)
{
    static const char what[] = "a matrix of cuBLASLt";
    const int32_t batch = (int32_t)s->batch;
    HR_TRY(cublaslt_check(
        cublaslt.cublasLtMatrixLayoutCreate(out, data_type(dtype), (uint64_t)columns, (uint64_t)rows, stride),
        err, what));
    if (batch == 1) {
        return HR_OK;
    }
    HR_TRY(cublaslt_check(cublaslt.cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                                    &batch, sizeof batch),
                          err, what));
    return cublaslt_check(cublaslt.cublasLtMatrixLayoutSetAttribute(
                              *out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step),
                          err, what);
}

static hr_status make_layouts(product *p, hr_err *err)
{
    const product_shape *s = &p->shape;
    HR_TRY(make_layout(s->dtype, s->transpose_b ? s->n : s->k, s->transpose_b ? s->k : s->n, s->stride_b, s,
                       s->batch_b, &p->a, err));
    HR_TRY(make_layout(s->dtype, s->transpose_a ? s->k : s->m, s->transpose_a ? s->m : s->k, s->stride_a, s,
                       s->batch_a, &p->b, err));
    return make_layout(s->out_dtype, s->m, s->n, s->stride_y, s, s->batch_y, &p->y, err);
}

static uint32_t epilogue_of_gelu(const product_shape *s)
{
    switch (s->aux) {
    case PRODUCT_AUX_WRITTEN:
        return s->bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case PRODUCT_AUX_READ:
        return CUBLASLT_EPILOGUE_DGELU;
    case PRODUCT_AUX_NONE:
    default:
        return s->bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    }
}

static uint32_t epilogue_of(const product_shape *s)
{
    if (s->sums != PRODUCT_SUMS_NONE) {
        return s->sums == PRODUCT_SUMS_A ? CUBLASLT_EPILOGUE_BGRADB : CUBLASLT_EPILOGUE_BGRADA;
    }
    switch (s->act) {
    case HR_ACT_RELU:
        return s->bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case HR_ACT_GELU:
        return epilogue_of_gelu(s);
    default:
        return s->bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    }
}

static hr_status set_detail(const product *p, cublasLtMatmulDescAttributes_t name, const void *value,
                            size_t bytes, hr_err *err)
{
    return cublaslt_check(cublaslt.cublasLtMatmulDescSetAttribute(p->desc, name, value, bytes), err,
                          "a product of cuBLASLt");
}

static bool has_vector(const product_shape *s)
{
    return s->bias || s->sums != PRODUCT_SUMS_NONE;
}

// What an epilogue reads or writes besides. The heuristics look at the addresses' alignment: all have the same.
static hr_status set_places(const product *p, CUdeviceptr vector, CUdeviceptr aux, hr_err *err)
{
    if (has_vector(&p->shape)) {
        HR_TRY(set_detail(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &vector, sizeof vector, err));
    }
    return p->shape.aux == PRODUCT_AUX_NONE
               ? HR_OK
               : set_detail(p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux, err);
}

static hr_status make_desc(product *p, hr_err *err)
{
    const product_shape *s = &p->shape;
    const int32_t turn_a = s->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                  turn_b = s->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    const uint32_t epilogue = epilogue_of(s);
    HR_TRY(cublaslt_check(
        cublaslt.cublasLtMatmulDescCreate(&p->desc, compute_type(p), is_whole(s) ? CUDA_R_32I : CUDA_R_32F),
        err, "a product of cuBLASLt"));
    HR_TRY(set_detail(p, CUBLASLT_MATMUL_DESC_TRANSA, &turn_a, sizeof turn_a, err));
    HR_TRY(set_detail(p, CUBLASLT_MATMUL_DESC_TRANSB, &turn_b, sizeof turn_b, err));
    if (epilogue == CUBLASLT_EPILOGUE_DEFAULT) {
        return HR_OK;
    }
    HR_TRY(set_detail(p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue, err));
    if (s->aux != PRODUCT_AUX_NONE) {
        HR_TRY(set_detail(p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &s->n, sizeof s->n, err));
    }
    return set_places(p, (CUdeviceptr)s->alignment, (CUdeviceptr)s->alignment, err);
}

// ---- the algorithm --------------------------------------------------------------------------------------------------

// The largest power of two that addresses, outer steps and steps are multiples of.
static uint32_t alignment_of(const product_shape *s, uint32_t dtype, int64_t outer, int64_t step)
{
    const uint64_t bytes = dtype_bytes((hr_dtype)dtype);
    uint64_t together = (uint64_t)s->alignment;
    together |= s->outer > 1 ? (uint64_t)outer * bytes : 0;
    together |= s->batch > 1 ? (uint64_t)step * bytes : 0;
    return (uint32_t)(together & (~together + 1));
}

static hr_status set_preference(cublasLtMatmulPreference_t preference,
                                cublasLtMatmulPreferenceAttributes_t name, const void *value, size_t bytes,
                                hr_err *err)
{
    return cublaslt_check(cublaslt.cublasLtMatmulPreferenceSetAttribute(preference, name, value, bytes), err,
                          "what cuBLASLt may take");
}

static hr_status set_preferences(const product *p, cublasLtMatmulPreference_t preference, hr_err *err)
{
    const product_shape *s = &p->shape;
    const uint32_t a = alignment_of(s, s->dtype, s->outer_b, s->batch_b),
                   b = alignment_of(s, s->dtype, s->outer_a, s->batch_a),
                   y = alignment_of(s, s->out_dtype, s->outer_y, s->batch_y);
    // Where k is cut into parts, these are added in float32: the other ways round every part to the type of y.
    const uint32_t reductions = s->out_dtype == HR_F32 || is_whole(s)
                                    ? CUBLASLT_REDUCTION_SCHEME_MASK
                                    : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    HR_TRY(set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &p->workspace_bytes,
                          sizeof p->workspace_bytes, err));
    HR_TRY(set_preference(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
                          sizeof reductions, err));
    HR_TRY(set_preference(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &a, sizeof a, err));
    HR_TRY(set_preference(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &b, sizeof b, err));
    HR_TRY(set_preference(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &y, sizeof y, err));
    return set_preference(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &y, sizeof y, err);
}

static hr_status ask_heuristics(product *p, cublasLtMatmulPreference_t preference, hr_err *err)
{
    cublasLtMatmulHeuristicResult_t result = {.state = CUBLAS_STATUS_NOT_SUPPORTED};
    int found = 0;
    HR_TRY(set_preferences(p, preference, err));
    HR_TRY(cublaslt_check(cublaslt.cublasLtMatmulAlgoGetHeuristic(p->handle, p->desc, p->a, p->b, p->y, p->y,
                                                                  preference, 1, &result, &found),
                          err, "an algorithm of cuBLASLt"));
    p->algo = result.algo;
    return cublaslt_check(found < 1 ? CUBLAS_STATUS_NOT_SUPPORTED : result.state, err,
                          "an algorithm of cuBLASLt");
}

static hr_status choose(product *p, hr_err *err)
{
    cublasLtMatmulPreference_t preference = NULL;
    HR_TRY(
        cublaslt_check(cublaslt.cublasLtMatmulPreferenceCreate(&preference), err, "what cuBLASLt may take"));
    const hr_status status = ask_heuristics(p, preference, err);
    (void)cublaslt.cublasLtMatmulPreferenceDestroy(preference);
    return status;
}

// ---- products -------------------------------------------------------------------------------------------------------

static hr_status make_parts(product *p, cuda_device *device, hr_err *err)
{
    HR_TRY(cublaslt_handle_take(device, &p->handle, err));
    p->device = device;
    HR_TRY(make_desc(p, err));
    HR_TRY(make_layouts(p, err));
    return choose(p, err);
}

hr_status product_prepare(cuda_device *device, const product_shape *s, uint64_t workspace_bytes,
                          product **out, hr_err *err)
{
    *out = NULL;
    product *p = hr_calloc(1, sizeof *p);
    if (p == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a matrix product");
    }
    p->shape = completed(s);
    p->workspace_bytes = workspace_bytes;
    const hr_status status = make_parts(p, device, err);
    if (status != HR_OK) {
        product_destroy(p);
        return status;
    }
    *out = p;
    return HR_OK;
}

void product_destroy(product *p)
{
    if (p == NULL) {
        return;
    }
    cublasLtMatrixLayout_t layouts[] = {p->a, p->b, p->y};
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++) {
        if (layouts[k] != NULL) {
            (void)cublaslt.cublasLtMatrixLayoutDestroy(layouts[k]);
        }
    }
    if (p->desc != NULL) {
        (void)cublaslt.cublasLtMatmulDescDestroy(p->desc);
    }
    if (p->device != NULL) {
        cublaslt_handle_leave(p->device);
    }
    hr_free(p);
}

static const void *at(CUdeviceptr base, int64_t item, int64_t step, uint32_t dtype)
{
    return (const void *)(uintptr_t)(base + (CUdeviceptr)(item * step) * dtype_bytes((hr_dtype)dtype));
}

hr_status product_run(const product *p, CUstream stream, const product_places *to, hr_err *err)
{
    const product_shape *s = &p->shape;
    const int32_t whole_alpha = 1, whole_beta = 0;
    const void *alpha = is_whole(s) ? (const void *)&whole_alpha : &s->alpha;
    const void *beta = is_whole(s) ? (const void *)&whole_beta : &s->beta;
    HR_TRY(set_places(p, to->vector, to->aux, err));
    for (int64_t k = 0; k < s->outer; k++) {
        const void *left = at(to->b, k, s->outer_b, s->dtype), *right = at(to->a, k, s->outer_a, s->dtype),
                   *added = at(to->c != 0 ? to->c : to->y, k, s->outer_y, s->out_dtype),
                   *result = at(to->y, k, s->outer_y, s->out_dtype);
        HR_TRY(cublaslt_check(cublaslt.cublasLtMatmul(p->handle, p->desc, alpha, left, p->a, right, p->b,
                                                      beta, added, p->y, (void *)(uintptr_t)result, p->y,
                                                      &p->algo, (void *)(uintptr_t)to->workspace,
                                                      p->workspace_bytes, (cudaStream_t)stream),
                              err, "a product of cuBLASLt"));
    }
    return HR_OK;
}
