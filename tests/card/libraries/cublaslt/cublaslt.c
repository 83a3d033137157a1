// SPDX-License-Identifier: Apache-2.0
// The emulated libcublasLt.so.13 of the tests: products of float32, two-byte and int8 matrices, with the checks of the real
// one and one more: a product runs with an algorithm that the heuristics gave for exactly it.
#include <stddef.h>
#include <stdlib.h>

#include "driver_calls.h"
#include "problem.h"

#define EXPORT __attribute__((visibility("default")))

struct cublasLtContext {
    int open;
};

EXPORT size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

EXPORT const char *cublasLtGetStatusName(cublasStatus_t status)
{
    switch ((int)status) {
    case CUBLAS_STATUS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    default:
        return "CUBLAS_STATUS_INTERNAL_ERROR";
    }
}

EXPORT const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return cublasLtGetStatusName(status);
}

EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    if (driver_calls_get() == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    *handle = calloc(1, sizeof **handle);
    return *handle != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

EXPORT cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

// ---- attributes -----------------------------------------------------------------------------------------------------

typedef struct attribute {
    int name;
    size_t offset, bytes;
} attribute;

#define FIELD(name, type, field)                                                                             \
    {                                                                                                        \
        name, offsetof(type, field), sizeof((type){0}.field)                                                 \
    }

static cublasStatus_t set(void *data, const attribute *rows, size_t count, int name, const void *value,
                          size_t bytes)
{
    for (size_t k = 0; data != NULL && value != NULL && k < count; k++) {
        if (rows[k].name == name && rows[k].bytes == bytes) {
            memcpy((char *)data + rows[k].offset, value, bytes);
            return CUBLAS_STATUS_SUCCESS;
        }
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                                 uint64_t rows, uint64_t columns, int64_t ld)
{
    const layout_data data = {.type = (uint32_t)type, .rows = rows, .columns = columns, .ld = ld, .batch = 1};
    *layout = calloc(1, sizeof **layout);
    if (*layout == NULL) {
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    memcpy(*layout, &data, sizeof data);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                       cublasLtMatrixLayoutAttribute_t name,
                                                       const void *value, size_t bytes)
{
    static const attribute rows[] = {
        FIELD(CUBLASLT_MATRIX_LAYOUT_TYPE, layout_data, type),
        FIELD(CUBLASLT_MATRIX_LAYOUT_ORDER, layout_data, order),
        FIELD(CUBLASLT_MATRIX_LAYOUT_ROWS, layout_data, rows),
        FIELD(CUBLASLT_MATRIX_LAYOUT_COLS, layout_data, columns),
        FIELD(CUBLASLT_MATRIX_LAYOUT_LD, layout_data, ld),
        FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, layout_data, batch),
        FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, layout_data, batch_mode),
        FIELD(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, layout_data, batch_stride),
    };
    return set(layout, rows, sizeof rows / sizeof *rows, (int)name, value, bytes);
}

EXPORT cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                               cudaDataType_t scale)
{
    const desc_data data = {.compute = (int32_t)compute,
                            .scale_type = (int32_t)scale,
                            .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
                            .bias_type = -1};
    *desc = calloc(1, sizeof **desc);
    if (*desc == NULL) {
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    memcpy(*desc, &data, sizeof data);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    free(desc);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                                     cublasLtMatmulDescAttributes_t name, const void *value,
                                                     size_t bytes)
{
    static const attribute rows[] = {
        FIELD(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, desc_data, compute),
        FIELD(CUBLASLT_MATMUL_DESC_SCALE_TYPE, desc_data, scale_type),
        FIELD(CUBLASLT_MATMUL_DESC_POINTER_MODE, desc_data, pointer_mode),
        FIELD(CUBLASLT_MATMUL_DESC_TRANSA, desc_data, turn_a),
        FIELD(CUBLASLT_MATMUL_DESC_TRANSB, desc_data, turn_b),
        FIELD(CUBLASLT_MATMUL_DESC_TRANSC, desc_data, turn_c),
        FIELD(CUBLASLT_MATMUL_DESC_FILL_MODE, desc_data, fill),
        FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE, desc_data, epilogue),
        FIELD(CUBLASLT_MATMUL_DESC_BIAS_POINTER, desc_data, bias),
        FIELD(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, desc_data, bias_batch),
        FIELD(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, desc_data, bias_type),
        FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, desc_data, aux),
        FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, desc_data, aux_ld),
        FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, desc_data, aux_batch),
        FIELD(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, desc_data, sm_count),
    };
    return set(desc, rows, sizeof rows / sizeof *rows, (int)name, value, bytes);
}

EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    enum { WHOLE = 256 };
    const preference_data data = {.reductions = CUBLASLT_REDUCTION_SCHEME_MASK,
                                  .align_a = WHOLE,
                                  .align_b = WHOLE,
                                  .align_c = WHOLE,
                                  .align_d = WHOLE,
                                  .impl_mask = UINT64_MAX};
    *preference = calloc(1, sizeof **preference);
    if (*preference == NULL) {
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    memcpy(*preference, &data, sizeof data);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                           cublasLtMatmulPreferenceAttributes_t name,
                                                           const void *value, size_t bytes)
{
    static const attribute rows[] = {
        FIELD(CUBLASLT_MATMUL_PREF_SEARCH_MODE, preference_data, search),
        FIELD(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, preference_data, max_workspace),
        FIELD(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, preference_data, reductions),
        FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, preference_data, align_a),
        FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, preference_data, align_b),
        FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, preference_data, align_c),
        FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, preference_data, align_d),
        FIELD(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, preference_data, max_waves),
        FIELD(CUBLASLT_MATMUL_PREF_IMPL_MASK, preference_data, impl_mask),
    };
    return set(preference, rows, sizeof rows / sizeof *rows, (int)name, value, bytes);
}

// ---- heuristics -----------------------------------------------------------------------------------------------------

enum { SPLITS = 8, ALGORITHMS = 3, IN_PLACE = 1, VECTOR_BYTES = 16 };

// How large an alignment an algorithm takes for granted: that of its vectors when the claim allows it.
static uint32_t trusted(uint32_t claimed, number type)
{
    const uint32_t least = (uint32_t)number_bytes(type);
    return claimed >= VECTOR_BYTES ? VECTOR_BYTES : claimed > least ? claimed : least;
}

static uint64_t workspace_of(const problem *p, uint32_t id, uint32_t *reduction)
{
    const uint64_t sums = (uint64_t)p->m * (uint64_t)p->n * (uint64_t)p->batch * sizeof(float);
    *reduction = id == 0          ? (uint32_t)CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
                 : id == IN_PLACE ? (uint32_t)CUBLASLT_REDUCTION_SCHEME_INPLACE
                                  : (uint32_t)CUBLASLT_REDUCTION_SCHEME_NONE;
    return id == 0 ? SPLITS * sums : id == IN_PLACE ? sums / 2 + problem_hash(p) % 61 : 0;
}

// Are the claims true of what can be known without the addresses?
static bool claims_hold(const problem *p, const preference_data *preference)
{
    const struct {
        const matrix *m;
        uint32_t claimed;
    } all[] = {{&p->a, preference->align_a},
               {&p->b, preference->align_b},
               {&p->c, preference->align_c},
               {&p->d, preference->align_d}};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        if (all[k].claimed < number_bytes(all[k].m->type) || (all[k].claimed & (all[k].claimed - 1)) != 0) {
            return false;
        }
    }
    return true;
}

EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                                     cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                     cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                     cublasLtMatmulPreference_t preference, int requested,
                                                     cublasLtMatmulHeuristicResult_t results[], int *returned)
{
    problem p;
    const preference_data *wanted = (const void *)preference;
    *returned = 0;
    if (handle == NULL || requested < 1 || wanted == NULL) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    const cublasStatus_t status = problem_read((const void *)desc, (const void *)a, (const void *)b,
                                               (const void *)c, (const void *)d, &p);
    if (status != CUBLAS_STATUS_SUCCESS || !claims_hold(&p, wanted)) {
        return status != CUBLAS_STATUS_SUCCESS ? status : CUBLAS_STATUS_INVALID_VALUE;
    }
    if (p.whole && wanted->max_workspace > 0) { // as PyTorch found it (CUDABlas.cpp, int8_gemm)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    for (uint32_t id = 0; id < ALGORITHMS && *returned < requested; id++) {
        uint32_t reduction = 0;
        const uint64_t bytes = workspace_of(&p, id, &reduction);
        if (bytes > wanted->max_workspace || (reduction != 0 && (reduction & wanted->reductions) == 0)) {
            continue;
        }
        const algo_data algo = {.problem = problem_hash(&p),
                                .workspace_bytes = bytes,
                                .id = id,
                                .align_a = trusted(wanted->align_a, p.a.type),
                                .align_b = trusted(wanted->align_b, p.b.type),
                                .align_c = trusted(wanted->align_c, p.c.type),
                                .align_d = trusted(wanted->align_d, p.d.type)};
        cublasLtMatmulHeuristicResult_t *result = &results[(*returned)++];
        *result = (cublasLtMatmulHeuristicResult_t){
            .workspaceSize = bytes, .state = CUBLAS_STATUS_SUCCESS, .wavesCount = 1.0f};
        memcpy(&result->algo, &algo, sizeof algo);
    }
    return *returned > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

// ---- products -------------------------------------------------------------------------------------------------------

static bool lies(const void *at, uint64_t bytes, uint64_t alignment)
{
    return (uintptr_t)at % alignment == 0 && driver_calls_get()->holds((CUdeviceptr)(uintptr_t)at, bytes);
}

static bool matrix_lies(const matrix *m, int64_t batch, uint64_t alignment)
{
    return lies(m->at, matrix_extent(m, batch) * number_bytes(m->type), alignment);
}

static bool operands_lie(const problem *p, const algo_data *algo)
{
    const uint64_t bias_bytes = problem_bias_count(p) * number_bytes(p->bias_type);
    return matrix_lies(&p->a, p->batch, algo->align_a) && matrix_lies(&p->b, p->batch, algo->align_b) &&
           matrix_lies(&p->c, p->batch, algo->align_c) && matrix_lies(&p->d, p->batch, algo->align_d) &&
           (bias_bytes == 0 || lies(p->bias, bias_bytes, number_bytes(p->bias_type))) &&
           (!problem_has_aux(p) || matrix_lies(&p->aux, p->batch, VECTOR_BYTES)) &&
           (p->workspace_bytes == 0 || lies(p->workspace, p->workspace_bytes, VECTOR_BYTES));
}

// Of the scale's type.
static float factor_of(const problem *p, const void *at)
{
    float real = 0;
    int32_t whole = 0;
    memcpy(&real, at, sizeof real);
    memcpy(&whole, at, sizeof whole);
    return p->whole ? (float)whole : real;
}

EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                                     const void *a, cublasLtMatrixLayout_t layout_a, const void *b,
                                     cublasLtMatrixLayout_t layout_b, const void *beta, const void *c,
                                     cublasLtMatrixLayout_t layout_c, void *d,
                                     cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t *algo,
                                     void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    problem p;
    algo_data chosen;
    const int fault = driver_calls_fault("cublasLtMatmul");
    if (fault != 0) {
        return (cublasStatus_t)fault;
    }
    if (handle == NULL || algo == NULL || alpha == NULL || beta == NULL) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    const cublasStatus_t status =
        problem_read((const void *)desc, (const void *)layout_a, (const void *)layout_b,
                     (const void *)layout_c, (const void *)layout_d, &p);
    memcpy(&chosen, algo, sizeof chosen);
    if (status != CUBLAS_STATUS_SUCCESS || chosen.problem != problem_hash(&p) ||
        workspace_bytes < chosen.workspace_bytes) {
        return status != CUBLAS_STATUS_SUCCESS ? status : CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(&p.a.at, &a, sizeof a);
    memcpy(&p.b.at, &b, sizeof b);
    memcpy(&p.c.at, &c, sizeof c);
    p.d.at = d;
    p.alpha = factor_of(&p, alpha);
    p.beta = factor_of(&p, beta);
    p.in_place = chosen.id == IN_PLACE;
    p.workspace = workspace;
    p.workspace_bytes = chosen.workspace_bytes;
    if (!operands_lie(&p, &chosen)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    return driver_calls_get()->enqueue((CUstream)stream, problem_run, &p, sizeof p) == CUDA_SUCCESS
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_EXECUTION_FAILED;
}
