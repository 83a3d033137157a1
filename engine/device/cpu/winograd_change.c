// SPDX-License-Identifier: Apache-2.0
// The changes between images or weights and the sixteen places, sixteen channels at a time.
#include <stddef.h>

#include "gemm_pack.h"
#include "winograd.h"

enum { SIDE = 4, TAPS = 3, EDGE = 2 };

// Of a tile: which image, and its first output.
typedef struct spot {
    int64_t image, h, w;
} spot;

CPU_INLINE spot spot_of(const winograd *w, int64_t tile)
{
    const int64_t across = tile % w->tiles_w, rest = tile / w->tiles_w;
    return (spot){rest / w->tiles_h, rest % w->tiles_h * EDGE, across * EDGE};
}

CPU_INLINE int64_t pixel_at(const cpu_image *v, int64_t image, int64_t h, int64_t w)
{
    return ((image * v->height + h) * v->width + w) * v->channels;
}

CPU_INLINE bool is_inside(const cpu_image *v, int64_t h, int64_t w)
{
    return h >= 0 && w >= 0 && h < v->height && w < v->width;
}

// Column `col` of a matrix of panels with `rows` rows.
CPU_INLINE int64_t panel_at(int64_t col, int64_t rows, int64_t row)
{
    return col / WINOGRAD_PANEL * WINOGRAD_PANEL * rows + row * WINOGRAD_PANEL + col % WINOGRAD_PANEL;
}

// ---- input ------------------------------------------------------------------------------------------------

// Row by row and column by column: d0 - d2, d1 + d2, d2 - d1, d1 - d3.
#define CHANGE_INPUT(to, step, d0, d1, d2, d3)                                                               \
    do {                                                                                                     \
        (to)[0 * (step)] = (d0) - (d2);                                                                      \
        (to)[1 * (step)] = (d1) + (d2);                                                                      \
        (to)[2 * (step)] = (d2) - (d1);                                                                      \
        (to)[3 * (step)] = (d1) - (d3);                                                                      \
    } while (0)

// `offset[k]` of a pixel outside is -1.
CPU_INLINE void input_channels(const float *x, const int64_t *offset, const bool whole, float *to,
                               int64_t place, int64_t count)
{
    for (int64_t c = 0; c < count; c += CPU_LANES) {
        f32x16 down[SIDE * SIDE];
#pragma GCC unroll 4
        for (int s = 0; s < SIDE; s++) {
            f32x16 d[SIDE];
#pragma GCC unroll 4
            for (int r = 0; r < SIDE; r++) {
                const int64_t at = offset[r * SIDE + s];
                d[r] = whole || at >= 0 ? F32X16(x + at + c) : (f32x16){0};
            }
            CHANGE_INPUT(down + s, SIDE, d[0], d[1], d[2], d[3]);
        }
#pragma GCC unroll 4
        for (int r = 0; r < SIDE; r++) {
            const f32x16 *d = down + r * SIDE;
            f32x16 v[SIDE];
            CHANGE_INPUT(v, 1, d[0], d[1], d[2], d[3]);
#pragma GCC unroll 4
            for (int s = 0; s < SIDE; s++) {
                F32X16W(to + (r * SIDE + s) * place + c) = v[s];
            }
        }
    }
}

CPU_HOT void winograd_input(const winograd *w, const float *x, int64_t begin, int64_t end, int64_t c,
                            int64_t c_end, const winograd_room *to)
{
    for (int64_t tile = begin; tile < end; tile++) {
        const spot at = spot_of(w, tile);
        int64_t offset[SIDE * SIDE];
        bool whole = true;
        for (int64_t k = 0; k < (int64_t)SIDE * SIDE; k++) {
            const int64_t h = at.h - w->pad_top + k / SIDE, across = at.w - w->pad_left + k % SIDE;
            const bool inside = is_inside(&w->in, h, across);
            offset[k] = inside ? pixel_at(&w->in, at.image, h, across) + c : -1;
            whole &= inside;
        }
        float *row = to->data + (tile - begin) * to->row;
        if (whole) {
            input_channels(x, offset, true, row, to->place, c_end - c);
        } else {
            input_channels(x, offset, false, row, to->place, c_end - c);
        }
    }
}

// ---- output -----------------------------------------------------------------------------------------------

CPU_INLINE void put(float *y, const f32x16 *sum, const float *bias, const winograd_end *ending)
{
    f32x16 v = *sum;
    if (bias != NULL) {
        v += F32X16(bias);
    }
    if (ending->relu) { // not-a-number stays
        const f32x16 top = (f32x16){0} + ending->ceiling;
        v = (f32x16)((i32x16)v & ~(v < 0.0f));
        v = (f32x16)(((i32x16)top & (v > top)) | ((i32x16)v & ~(v > top)));
    }
    F32X16W(y) = v;
}

CPU_INLINE void output_channels(const winograd_room *from, int64_t row, const int64_t *offset, int64_t f,
                                int64_t f_end, const winograd_end *ending, float *y)
{
    for (int64_t k = f; k < f_end; k += CPU_LANES) {
        const float *m = from->data + row * from->row + (k - f);
        const float *bias = ending->bias == NULL ? NULL : ending->bias + k;
        f32x16 sum[EDGE][SIDE];
#pragma GCC unroll 4
        for (int s = 0; s < SIDE; s++) {
            const f32x16 m0 = F32X16(m + s * from->place), m1 = F32X16(m + (SIDE + s) * from->place),
                         m2 = F32X16(m + (2 * SIDE + s) * from->place),
                         m3 = F32X16(m + (3 * SIDE + s) * from->place);
            sum[0][s] = m0 + m1 + m2;
            sum[1][s] = m1 - m2 - m3;
        }
#pragma GCC unroll 2
        for (int r = 0; r < EDGE; r++) {
            const f32x16 left = sum[r][0] + sum[r][1] + sum[r][2], right = sum[r][1] - sum[r][2] - sum[r][3];
            if (offset[EDGE * r] >= 0) {
                put(y + offset[EDGE * r] + k, &left, bias, ending);
            }
            if (offset[EDGE * r + 1] >= 0) {
                put(y + offset[EDGE * r + 1] + k, &right, bias, ending);
            }
        }
    }
}

// Where the outputs of a tile lie; -1 outside.
CPU_INLINE void output_offsets(const winograd *w, int64_t tile, int64_t offset[EDGE * EDGE])
{
    const spot at = spot_of(w, tile);
    for (int64_t k = 0; k < (int64_t)EDGE * EDGE; k++) {
        const int64_t h = at.h + k / EDGE, across = at.w + k % EDGE;
        offset[k] = is_inside(&w->out, h, across) ? pixel_at(&w->out, at.image, h, across) : -1;
    }
}

CPU_HOT void winograd_output(const winograd *w, const winograd_room *from, int64_t begin, int64_t end,
                             int64_t f, int64_t f_end, const winograd_end *ending, float *y)
{
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t offset[EDGE * EDGE];
        output_offsets(w, tile, offset);
        output_channels(from, tile - begin, offset, f, f_end, ending, y);
    }
}

// ---- gradient of the output -------------------------------------------------------------------------------

// d0, d0 + d1, d0 - d1, -d1
#define CHANGE_GRADIENT(to, step, d0, d1)                                                                    \
    do {                                                                                                     \
        (to)[0 * (step)] = (d0);                                                                             \
        (to)[1 * (step)] = (d0) + (d1);                                                                      \
        (to)[2 * (step)] = (d0) - (d1);                                                                      \
        (to)[3 * (step)] = -(d1);                                                                            \
    } while (0)

CPU_HOT void winograd_gradient(const winograd *w, const float *dy, int64_t begin, int64_t end, int64_t f,
                               int64_t f_end, const winograd_room *to)
{
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t offset[EDGE * EDGE];
        output_offsets(w, tile, offset);
        for (int64_t k = f; k < f_end; k += CPU_LANES) {
            float *z = to->data + panel_at(k - f, end - begin, tile - begin);
            f32x16 d[EDGE * EDGE], down[SIDE * EDGE];
#pragma GCC unroll 4
            for (int i = 0; i < EDGE * EDGE; i++) {
                d[i] = offset[i] >= 0 ? F32X16(dy + offset[i] + k) : (f32x16){0};
            }
            CHANGE_GRADIENT(down, EDGE, d[0], d[2]);
            CHANGE_GRADIENT(down + 1, EDGE, d[1], d[3]);
#pragma GCC unroll 4
            for (int r = 0; r < SIDE; r++) {
                f32x16 v[SIDE];
                CHANGE_GRADIENT(v, 1, down[EDGE * r], down[EDGE * r + 1]);
#pragma GCC unroll 4
                for (int s = 0; s < SIDE; s++) {
                    F32X16W(z + (r * SIDE + s) * to->place) = v[s];
                }
            }
        }
    }
}

// ---- weights ----------------------------------------------------------------------------------------------

// g0, (g0 + g1 + g2) / 2, (g0 - g1 + g2) / 2, g2
#define CHANGE_WEIGHTS(to, step, g0, g1, g2)                                                                 \
    do {                                                                                                     \
        (to)[0 * (step)] = (g0);                                                                             \
        (to)[1 * (step)] = 0.5f * ((g0) + (g2) + (g1));                                                      \
        (to)[2 * (step)] = 0.5f * ((g0) + (g2) - (g1));                                                      \
        (to)[3 * (step)] = (g2);                                                                             \
    } while (0)

// Sixteen weights of each tap, the taps `tap` floats apart (backwards when below 0).
CPU_INLINE void change_weights(const float *g, int64_t tap, float *to, int64_t place)
{
    f32x16 down[SIDE * TAPS];
#pragma GCC unroll 3
    for (int s = 0; s < TAPS; s++) {
        const f32x16 g0 = F32X16(g + s * tap), g1 = F32X16(g + (TAPS + s) * tap),
                     g2 = F32X16(g + (2 * TAPS + s) * tap);
        CHANGE_WEIGHTS(down + s, TAPS, g0, g1, g2);
    }
#pragma GCC unroll 4
    for (int r = 0; r < SIDE; r++) {
        const f32x16 *d = down + r * TAPS;
        f32x16 u[SIDE];
        CHANGE_WEIGHTS(u, 1, d[0], d[1], d[2]);
#pragma GCC unroll 4
        for (int s = 0; s < SIDE; s++) {
            F32X16W(to + (r * SIDE + s) * place) = u[s];
        }
    }
}

CPU_HOT static void weights_as_they_lie(const winograd *w, const float *weights, int64_t begin, int64_t end,
                                        int64_t f, int64_t f_end, const winograd_room *to)
{
    const int64_t rows = w->in.channels, columns = w->out.channels;
    for (int64_t c = begin; c < end; c++) {
        for (int64_t k = f; k < f_end; k += CPU_LANES) {
            change_weights(weights + c * columns + k, rows * columns, to->data + panel_at(k - f, rows, c),
                           to->place);
        }
    }
}

// Squares of 16 x 16 are changed as they lie and then turned.
CPU_HOT static void weights_turned(const winograd *w, const float *weights, int64_t begin, int64_t end,
                                   int64_t f, int64_t f_end, const winograd_room *to)
{
    enum { SQUARE = CPU_LANES * CPU_LANES };
    const int64_t rows = w->in.channels, tap = rows * w->out.channels;
    const float *last = weights + (TAPS * TAPS - 1) * tap;
    float square[WINOGRAD_PLACES * SQUARE];
    for (int64_t c = begin; c < end; c += CPU_LANES) {
        for (int64_t k = f; k < f_end; k += CPU_LANES) {
            for (int64_t i = 0; i < CPU_LANES; i++) {
                change_weights(last + (k + i) * rows + c, -tap, square + i * CPU_LANES, SQUARE);
            }
            for (int64_t place = 0; place < WINOGRAD_PLACES; place++) {
                gemm_transpose(to->data + place * to->place + panel_at(k - f, rows, c), WINOGRAD_PANEL,
                               square + place * SQUARE, CPU_LANES, CPU_LANES, CPU_LANES);
            }
        }
    }
}

void winograd_weights(const winograd *w, const float *weights, int64_t begin, int64_t end, int64_t f,
                      int64_t f_end, const winograd_room *to)
{
    if (w->turned) {
        weights_turned(w, weights, begin, end, f, f_end, to);
    } else {
        weights_as_they_lie(w, weights, begin, end, f, f_end, to);
    }
}

// u0 + (u1 + u2) / 2, (u1 - u2) / 2, (u1 + u2) / 2 + u3
#define CHANGE_BACK(to, step, u0, u1, u2, u3)                                                                \
    do {                                                                                                     \
        (to)[0 * (step)] = (u0) + 0.5f * ((u1) + (u2));                                                      \
        (to)[1 * (step)] = 0.5f * ((u1) - (u2));                                                             \
        (to)[2 * (step)] = 0.5f * ((u1) + (u2)) + (u3);                                                      \
    } while (0)

CPU_HOT void winograd_weights_back(const winograd *w, const winograd_room *from, int64_t c, int64_t c_end,
                                   int64_t f, int64_t f_end, float *dw)
{
    const int64_t columns = w->out.channels, tap = w->in.channels * columns;
    for (int64_t row = c; row < c_end; row++) {
        for (int64_t k = f; k < f_end; k += CPU_LANES) {
            const float *u = from->data + (row - c) * from->row + (k - f);
            f32x16 down[TAPS * SIDE];
#pragma GCC unroll 4
            for (int s = 0; s < SIDE; s++) {
                const f32x16 u0 = F32X16(u + s * from->place), u1 = F32X16(u + (SIDE + s) * from->place),
                             u2 = F32X16(u + (2 * SIDE + s) * from->place),
                             u3 = F32X16(u + (3 * SIDE + s) * from->place);
                CHANGE_BACK(down + s, SIDE, u0, u1, u2, u3);
            }
#pragma GCC unroll 3
            for (int r = 0; r < TAPS; r++) {
                const f32x16 *d = down + r * SIDE;
                f32x16 g[TAPS];
                CHANGE_BACK(g, 1, d[0], d[1], d[2], d[3]);
#pragma GCC unroll 3
                for (int s = 0; s < TAPS; s++) {
                    F32X16W(dw + (r * TAPS + s) * tap + row * columns + k) = g[s];
                }
            }
        }
    }
}
