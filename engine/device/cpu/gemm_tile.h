// SPDX-License-Identifier: Apache-2.0
// The inner tile of the matrix product for one instruction set. Included once per set by gemm_tiles.c, with
//   T(name)    name of this variant          T_TARGET  function attribute
//   T_LANES    floats per register           T_ROWS    rows of C in a full tile
//   T_VECTORS  registers per row of C in a full tile
// A full tile keeps T_ROWS * T_VECTORS sums in registers.

typedef float T(vector) __attribute__((vector_size(4 * T_LANES), aligned(4), may_alias));
typedef int32_t T(mask) __attribute__((vector_size(4 * T_LANES)));

#ifndef T_EACH
#define T_EACH                                                                                               \
    _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++)                                                  \
        _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++)
#endif

CPU_INLINE T_TARGET void T(multiply)(const gemm_tile *t, T(vector) sum[T_ROWS][T_VECTORS], const int rows,
                                     const int vectors, const bool fetches)
{
    const float *a = t->a, *b = t->b, *fetch = t->fetch;
    const int64_t a_row = t->a_row, a_step = t->a_step, b_step = t->b_step;
    for (int64_t k = 0; k < t->depth; k++) {
        T(vector) right[T_VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            right[v] = *(const T(vector) *)(b + v * T_LANES);
        }
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            float left = a[i * a_row];
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) {
                sum[i][v] += left * right[v];
            }
        }
        if (fetches) {
#pragma GCC unroll 2
            for (int at = 0; at < vectors * T_LANES; at += T_LINE_FLOATS) {
                __builtin_prefetch(fetch + at, 0, 2);
            }
            fetch += b_step;
        }
        a += a_step;
        b += b_step;
    }
}

CPU_INLINE T_TARGET void T(tile)(const gemm_tile *t, const int rows, const int vectors)
{
    T(vector) sum[T_ROWS][T_VECTORS];
    T_EACH
    {
        sum[i][v] = (T(vector)){0};
    }
    T_EACH
    { // C arrives while the products run, even if only to be written over
        __builtin_prefetch(t->c + i * t->c_row + v * T_LANES, 1);
    }
    if (t->fetch != NULL) {
        T(multiply)(t, sum, rows, vectors, true);
    } else {
        T(multiply)(t, sum, rows, vectors, false);
    }
    float *const c = t->c;
    const int64_t c_row = t->c_row;
    if (t->add) {
        T_EACH
        {
            sum[i][v] += *(const T(vector) *)(c + i * c_row + v * T_LANES);
        }
    }
    if (t->scale != 0.0f) {
        const float scale = t->scale;
        T_EACH
        {
            sum[i][v] *= scale;
        }
    }
    if (t->bias != NULL) {
        T_EACH
        {
            sum[i][v] += *(const T(vector) *)(t->bias + v * T_LANES);
        }
    }
    if (t->relu) { // not-a-number stays
        T_EACH
        {
            sum[i][v] = (T(vector))((T(mask))sum[i][v] & ~(sum[i][v] < 0.0f));
        }
    }
    T_EACH
    {
        *(T(vector) *)(c + i * c_row + v * T_LANES) = sum[i][v];
    }
}
