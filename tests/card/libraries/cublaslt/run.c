// SPDX-License-Identifier: Apache-2.0
// How a product is computed: literally, sums in double.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "problem.h"

enum { VECTOR = 8 }; // two-byte numbers of sixteen bytes

static void *room_for(int64_t count)
{
    void *room = calloc((size_t)count, sizeof(double));
    if (room == NULL) {
        (void)fputs("emulated cuBLASLt: no host memory\n", stderr);
        abort();
    }
    return room;
}

// Rows of `count` numbers along k, one after another.
static double *gather(const problem *p, const matrix *m, int64_t item, int64_t count, int64_t step,
                      int64_t step_k)
{
    double *out = room_for(count * p->k);
    for (int64_t i = 0; i < count; i++) {
        for (int64_t k = 0; k < p->k; k++) {
            const double value = number_read(m->type, m->at, item * m->batch + i * step + k * step_k);
            out[i * p->k + k] = p->tf32 ? number_tf32(value) : value;
        }
    }
    return out;
}

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0;
    for (int64_t k = 0; k < count; k++) {
        sum += a[k] * b[k];
    }
    return sum;
}

static double product_sum(const problem *p, const double *a, const double *b)
{
    enum { PARTS = 4 };
    const int64_t step = p->in_place ? (p->k + PARTS - 1) / PARTS : p->k;
    double sum = 0;
    for (int64_t k = 0; k < p->k; k += step) {
        float room = 0;
        sum += dot(a + k, b + k, p->k - k < step ? p->k - k : step);
        if (p->in_place) {
            number_write(p->d.type, &room, 0, sum);
            sum = number_read(p->d.type, &room, 0);
        }
    }
    return sum;
}

// Of float32 the true one's tanh has seventeen bits or so.
static double gelu(const problem *p, double x)
{
    const double t = tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x));
    return 0.5 * x * (1.0 + (p->d.type == NUMBER_F32 ? nearbyint(ldexp(t, 17)) / (1 << 17) : t));
}

static double gelu_gradient(double x)
{
    const double t = tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x));
    const double inner = 0.79788456080286535588 * (1.0 + 3.0 * 0.044715 * x * x);
    return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner;
}

// GELU works on what was summed, and keeps it rounded.
static double smoothed(const problem *p, double value, int64_t item, int64_t i, int64_t j)
{
    const int64_t at = item * p->aux.batch + i * p->aux.row + j * p->aux.column;
    if (p->epilogue == CUBLASLT_EPILOGUE_DGELU) {
        return value * gelu_gradient(number_read(p->aux.type, p->aux.at, at));
    }
    if (problem_has_aux(p)) {
        number_write(p->aux.type, p->aux.at, at, value);
    }
    return gelu(p, value);
}

static double finished(const problem *p, double value, int64_t item, int64_t i, int64_t j)
{
    const uint32_t e = p->epilogue;
    if (e == CUBLASLT_EPILOGUE_BIAS || e == CUBLASLT_EPILOGUE_RELU_BIAS || e == CUBLASLT_EPILOGUE_GELU_BIAS ||
        e == CUBLASLT_EPILOGUE_GELU_AUX_BIAS) {
        value += number_read(p->bias_type, p->bias, item * p->bias_batch + i);
    }
    if (e == CUBLASLT_EPILOGUE_RELU || e == CUBLASLT_EPILOGUE_RELU_BIAS) {
        return value > 0 ? value : 0;
    }
    return problem_has_aux(p) || e == CUBLASLT_EPILOGUE_GELU || e == CUBLASLT_EPILOGUE_GELU_BIAS
               ? smoothed(p, value, item, i, j)
               : value;
}

static void add_up(const problem *p, const double *rows, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double sum = 0;
        for (int64_t k = 0; k < p->k; k++) {
            sum += rows[i * p->k + k];
        }
        number_write(p->bias_type, p->bias, i, sum);
    }
}

// Some kernels of the true one round the product to the type of the result before anything is added to it.
static double product_at(const problem *p, const double *a, const double *b)
{
    float room = 0;
    if (p->whole) {
        return (double)p->alpha * product_sum(p, a, b);
    }
    const double value = (double)p->alpha * (double)(float)product_sum(p, a, b);
    if (p->k % VECTOR == 0) {
        return value;
    }
    number_write(p->d.type, &room, 0, value);
    return number_read(p->d.type, &room, 0);
}

static void multiply(const problem *p, int64_t item)
{
    double *a = gather(p, &p->a, item, p->m, p->a.row, p->a.column);
    double *b = gather(p, &p->b, item, p->n, p->b.column, p->b.row);
    for (int64_t j = 0; j < p->n; j++) {
        for (int64_t i = 0; i < p->m; i++) {
            const int64_t at = item * p->d.batch + i * p->d.row + j * p->d.column;
            double value = product_at(p, a + i * p->k, b + j * p->k);
            if (p->beta != 0.0f) {
                value += (double)p->beta *
                         number_read(p->c.type, p->c.at, item * p->c.batch + i * p->c.row + j * p->c.column);
            }
            number_write(p->d.type, p->d.at, at, finished(p, value, item, i, j));
        }
    }
    if (p->epilogue == CUBLASLT_EPILOGUE_BGRADA) {
        add_up(p, a, p->m);
    } else if (p->epilogue == CUBLASLT_EPILOGUE_BGRADB) {
        add_up(p, b, p->n);
    }
    free(a);
    free(b);
}

static void spoil(const problem *p)
{
    if (p->workspace_bytes > 0) {
        memset(p->workspace, NUMBER_RUBBISH, p->workspace_bytes);
    }
}

// The workspace is rubbish before and after: what else lies in it is lost.
void problem_run(void *argument)
{
    const problem *p = argument;
    spoil(p);
    for (int64_t item = 0; item < p->batch; item++) {
        multiply(p, item);
    }
    spoil(p);
}
