// SPDX-License-Identifier: Apache-2.0
#include "problem.h"

#include <stdlib.h>

static number number_of(uint32_t type)
{
    switch (type) {
    case CUDA_R_32F:
        return NUMBER_F32;
    case CUDA_R_16F:
        return NUMBER_F16;
    case CUDA_R_16BF:
        return NUMBER_BF16;
    case CUDA_R_8I:
        return NUMBER_I8;
    case CUDA_R_32I:
        return NUMBER_I32;
    default:
        return NUMBER_NONE;
    }
}

static bool layout_is_sound(const layout_data *l)
{
    const uint64_t along = l->order == CUBLASLT_ORDER_COL ? l->rows : l->columns;
    return l->rows > 0 && l->columns > 0 && l->batch > 0 && l->ld > 0 && (uint64_t)l->ld >= along;
}

static bool layout_is_served(const layout_data *l)
{
    return (l->order == CUBLASLT_ORDER_COL || l->order == CUBLASLT_ORDER_ROW) &&
           l->batch_mode == CUBLASLT_BATCH_MODE_STRIDED && l->batch < 1 << 16 && l->rows <= INT32_MAX &&
           l->columns <= INT32_MAX && number_of(l->type) != NUMBER_NONE;
}

static matrix matrix_of(const layout_data *l, bool turned)
{
    matrix m = {.type = number_of(l->type),
                .row = l->order == CUBLASLT_ORDER_COL ? 1 : l->ld,
                .column = l->order == CUBLASLT_ORDER_COL ? l->ld : 1,
                .batch = l->batch_stride,
                .rows = l->rows,
                .columns = l->columns};
    if (turned) {
        const matrix plain = m;
        m.row = plain.column;
        m.column = plain.row;
        m.rows = plain.columns;
        m.columns = plain.rows;
    }
    return m;
}

uint64_t matrix_extent(const matrix *m, int64_t batch)
{
    return (m->rows - 1) * (uint64_t)m->row + (m->columns - 1) * (uint64_t)m->column +
           (uint64_t)(batch - 1) * (uint64_t)m->batch + 1;
}

// Products of one result must not lie on each other.
static bool results_are_apart(const matrix *d, int64_t batch)
{
    const matrix one = *d;
    return batch == 1 || (uint64_t)(d->batch < 0 ? -d->batch : d->batch) >= matrix_extent(&one, 1) ||
           (d->batch > 0 &&
            (uint64_t)(d->batch * batch) <= (uint64_t)(d->row > d->column ? d->row : d->column));
}

// Whole-number kernels of a regular order: both operands along k ("TN"), strides of fours, sums as they are. Stricter than the
// guide, as PyTorch's _int_mm is: m and k of eights, and more than 16 columns.
static bool whole_is_served(const problem *p)
{
    enum { STRIDE = 4, STEP = 8, COLUMNS = 16 };
    return getenv("CARD_NO_INT8") == NULL && p->b.type == NUMBER_I8 && p->c.type == NUMBER_I32 &&
           p->d.type == NUMBER_I32 && p->a.column == 1 && p->b.row == 1 && p->d.row == 1 && p->batch == 1 &&
           p->epilogue == CUBLASLT_EPILOGUE_DEFAULT && (p->m | p->k) % STEP == 0 && p->n > COLUMNS &&
           (p->a.row | p->b.column | p->c.column | p->d.column) % STRIDE == 0;
}

static bool types_are_served(const problem *p)
{
    if (p->whole || p->a.type == NUMBER_I8 || p->d.type == NUMBER_I32) {
        return p->whole && p->a.type == NUMBER_I8 && whole_is_served(p);
    }
    return p->a.type == p->b.type && p->c.type == p->d.type &&
           (p->d.type == p->a.type || p->d.type == NUMBER_F32);
}

static bool epilogue_is_known(uint32_t epilogue)
{
    return epilogue == CUBLASLT_EPILOGUE_DEFAULT || epilogue == CUBLASLT_EPILOGUE_RELU ||
           epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ||
           epilogue == CUBLASLT_EPILOGUE_GELU || epilogue == CUBLASLT_EPILOGUE_GELU_BIAS ||
           epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
           epilogue == CUBLASLT_EPILOGUE_DGELU || epilogue == CUBLASLT_EPILOGUE_BGRADA ||
           epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

// Stricter than the real one may be: sums of operands of one product at a time, epilogues of whole vectors.
static bool epilogue_is_served(const problem *p)
{
    const uint64_t ld_bytes =
        (uint64_t)(p->d.row > p->d.column ? p->d.row : p->d.column) * number_bytes(p->d.type);
    const bool sums = p->epilogue == CUBLASLT_EPILOGUE_BGRADA || p->epilogue == CUBLASLT_EPILOGUE_BGRADB;
    return p->epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
           (epilogue_is_known(p->epilogue) && ld_bytes % 8 == 0 && !(sums && p->batch > 1));
}

bool problem_has_aux(const problem *p)
{
    return p->epilogue == CUBLASLT_EPILOGUE_GELU_AUX || p->epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
           p->epilogue == CUBLASLT_EPILOGUE_DGELU;
}

// "Must be divisible by 8 and be no less than the number of rows in the output matrix" (cublasLt.h); the address counts
// for its alignment.
static bool aux_is_sound(const problem *p)
{
    enum { STEP = 8, ALIGNMENT = 16 };
    const uint64_t bytes = number_bytes(p->aux.type);
    return !problem_has_aux(p) ||
           (p->aux.column % STEP == 0 && p->aux.batch % STEP == 0 && (uint64_t)p->aux.column >= p->d.rows &&
            p->aux.at != NULL && (uintptr_t)p->aux.at % ALIGNMENT == 0 && p->d.row == 1 && bytes > 0);
}

static cublasStatus_t check_shapes(const problem *p)
{
    return p->a.columns == p->b.rows && p->d.rows == p->a.rows && p->d.columns == p->b.columns &&
                   p->c.rows == p->d.rows && p->c.columns == p->d.columns
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_INVALID_VALUE;
}

static cublasStatus_t check_layouts(const desc_data *desc, const layout_data *const layout[4])
{
    for (int k = 0; k < 4; k++) {
        if (!layout_is_sound(layout[k]) || layout[k]->batch != layout[0]->batch) {
            return CUBLAS_STATUS_INVALID_VALUE;
        }
    }
    for (int k = 0; k < 4; k++) {
        if (!layout_is_served(layout[k])) {
            return CUBLAS_STATUS_NOT_SUPPORTED;
        }
    }
    const bool whole = desc->compute == CUBLAS_COMPUTE_32I;
    return (whole || desc->compute == CUBLAS_COMPUTE_32F || desc->compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
            desc->compute == CUBLAS_COMPUTE_32F_FAST_TF32) &&
                   desc->scale_type == (whole ? CUDA_R_32I : CUDA_R_32F) &&
                   desc->pointer_mode == CUBLASLT_POINTER_MODE_HOST && desc->turn_c == CUBLAS_OP_N
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t problem_read(const desc_data *desc, const layout_data *a, const layout_data *b,
                            const layout_data *c, const layout_data *d, problem *out)
{
    const layout_data *const layouts[4] = {a, b, c, d};
    memset(out, 0, sizeof *out);
    const cublasStatus_t status = check_layouts(desc, layouts);
    if (status != CUBLAS_STATUS_SUCCESS) {
        return status;
    }
    out->a = matrix_of(a, desc->turn_a != CUBLAS_OP_N);
    out->b = matrix_of(b, desc->turn_b != CUBLAS_OP_N);
    out->c = matrix_of(c, false);
    out->d = matrix_of(d, false);
    out->m = (int64_t)out->d.rows;
    out->n = (int64_t)out->d.columns;
    out->k = (int64_t)out->a.columns;
    out->batch = d->batch;
    out->tf32 = desc->compute == CUBLAS_COMPUTE_32F_FAST_TF32 && out->a.type == NUMBER_F32;
    out->whole = desc->compute == CUBLAS_COMPUTE_32I;
    out->epilogue = desc->epilogue;
    out->bias = desc->bias;
    out->bias_batch = desc->bias_batch;
    out->aux = out->d;
    out->aux.column = desc->aux_ld;
    out->aux.batch = desc->aux_batch;
    out->aux.at = desc->aux;
    out->bias_type = desc->bias_type < 0 ? out->d.type : number_of((uint32_t)desc->bias_type);
    if (check_shapes(out) != CUBLAS_STATUS_SUCCESS || !results_are_apart(&out->d, out->batch) ||
        !aux_is_sound(out)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    return types_are_served(out) && out->bias_type == out->d.type && epilogue_is_served(out)
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_NOT_SUPPORTED;
}

static uint64_t mix(uint64_t hash, int64_t value)
{
    return (hash ^ (uint64_t)value) * 1099511628211u; // FNV-1a, by words
}

uint64_t problem_hash(const problem *p)
{
    const matrix *const all[4] = {&p->a, &p->b, &p->c, &p->d};
    uint64_t hash = 1469598103934665603u;
    for (int k = 0; k < 4; k++) {
        hash = mix(hash, (int64_t)all[k]->type);
        hash = mix(mix(hash, all[k]->row), all[k]->column);
        hash = mix(mix(hash, all[k]->batch), (int64_t)all[k]->rows);
    }
    hash = mix(mix(mix(hash, p->n), p->k), p->batch);
    hash = mix(mix(hash, p->tf32), (int64_t)p->epilogue);
    return hash ^ hash >> 31;
}

uint64_t problem_bias_count(const problem *p)
{
    const uint64_t one = (uint64_t)(p->epilogue == CUBLASLT_EPILOGUE_BGRADB ? p->n : p->m);
    const bool none = p->epilogue == CUBLASLT_EPILOGUE_DEFAULT || p->epilogue == CUBLASLT_EPILOGUE_RELU ||
                      p->epilogue == CUBLASLT_EPILOGUE_GELU || p->epilogue == CUBLASLT_EPILOGUE_GELU_AUX ||
                      p->epilogue == CUBLASLT_EPILOGUE_DGELU;
    return none ? 0 : one + (uint64_t)(p->batch - 1) * (uint64_t)p->bias_batch;
}
