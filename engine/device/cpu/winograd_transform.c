// SPDX-License-Identifier: Apache-2.0
// The changes between images or weights and the sixteen places, sixteen channels at a time. What lies in two bytes is
// widened on its way into registers; results are rounded a few channels of a tile at a time.
#include <stddef.h>

#include "cast.h"
#include "gemm_pack.h"
#include "widen.h"
#include "winograd.h"

enum { SIDE = 4, TAPS = 3, EDGE = 2, SLICE = 256 };

CPU_INLINE void load(f32x16 *to, const void *base, int64_t at, const hr_dtype type)
{
    if (type == HR_F32) {
        *to = F32X16((const float *)base + at);
    } else {
        widen_16((float *)to, (const uint16_t *)base + at, type);
    }
}

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
CPU_INLINE void input_channels(const void *x, const int64_t *offset, const bool whole, float *to,
                               int64_t place, int64_t count, const hr_dtype type)
{
    for (int64_t c = 0; c < count; c += CPU_LANES) {
        f32x16 down[SIDE * SIDE];
#pragma GCC unroll 4
        for (int s = 0; s < SIDE; s++) {
            f32x16 d[SIDE];
#pragma GCC unroll 4
            for (int r = 0; r < SIDE; r++) {
                const int64_t at = offset[r * SIDE + s];
                d[r] = (f32x16){0};
                if (whole || at >= 0) {
                    load(&d[r], x, at + c, type);
                }
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

CPU_INLINE void input_tiles(const winograd *w, const void *x, int64_t begin, int64_t end, int64_t c,
                            int64_t c_end, const winograd_scratch *to, const hr_dtype type)
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
            input_channels(x, offset, true, row, to->place, c_end - c, type);
        } else {
            input_channels(x, offset, false, row, to->place, c_end - c, type);
        }
    }
}

CPU_HOT static void input_f32(const winograd *w, const void *x, int64_t begin, int64_t end, int64_t c,
                              int64_t c_end, const winograd_scratch *to)
{
    input_tiles(w, x, begin, end, c, c_end, to, HR_F32);
}

CPU_HOT static void input_f16(const winograd *w, const void *x, int64_t begin, int64_t end, int64_t c,
                              int64_t c_end, const winograd_scratch *to)
{
    input_tiles(w, x, begin, end, c, c_end, to, HR_F16);
}

CPU_HOT static void input_bf16(const winograd *w, const void *x, int64_t begin, int64_t end, int64_t c,
                               int64_t c_end, const winograd_scratch *to)
{
    input_tiles(w, x, begin, end, c, c_end, to, HR_BF16);
}

void winograd_input(const winograd *w, const void *x, int64_t begin, int64_t end, int64_t c, int64_t c_end,
                    const winograd_scratch *to)
{
    if (w->type == HR_F32) {
        input_f32(w, x, begin, end, c, c_end, to);
    } else if (w->type == HR_F16) {
        input_f16(w, x, begin, end, c, c_end, to);
    } else {
        input_bf16(w, x, begin, end, c, c_end, to);
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

// Channels [f, f + count); `offset` says where f lies.
CPU_INLINE void output_channels(const winograd_scratch *from, int64_t at, const int64_t *offset, int64_t f,
                                int64_t count, const winograd_end *ending, float *y)
{
    for (int64_t k = 0; k < count; k += CPU_LANES) {
        const float *m = from->data + at + k;
        const float *bias = ending->bias == NULL ? NULL : ending->bias + f + k;
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

// Where channel f of the outputs of a tile lies; -1 outside.
CPU_INLINE void output_offsets(const winograd *w, int64_t tile, int64_t f, int64_t offset[EDGE * EDGE])
{
    const spot at = spot_of(w, tile);
    for (int64_t k = 0; k < (int64_t)EDGE * EDGE; k++) {
        const int64_t h = at.h + k / EDGE, across = at.w + k % EDGE;
        offset[k] = is_inside(&w->out, h, across) ? pixel_at(&w->out, at.image, h, across) + f : -1;
    }
}

CPU_HOT static void output_f32(const winograd *w, const winograd_scratch *from, int64_t begin, int64_t end,
                               int64_t f, int64_t f_end, const winograd_end *ending, float *y)
{
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t offset[EDGE * EDGE];
        output_offsets(w, tile, f, offset);
        output_channels(from, (tile - begin) * from->row, offset, f, f_end - f, ending, y);
    }
}

// A slice of one tile's channels, rounded from a scratch of its own.
CPU_HOT static void output_slice(const winograd_scratch *from, int64_t at, const int64_t *offset, int64_t f,
                                 int64_t count, const winograd_end *ending, float *scratch)
{
    int64_t place[EDGE * EDGE];
    for (int64_t i = 0; i < (int64_t)EDGE * EDGE; i++) {
        place[i] = offset[i] >= 0 ? i * count : -1;
    }
    output_channels(from, at, place, f, count, ending, scratch);
}

static void output_half(const winograd *w, const winograd_scratch *from, int64_t begin, int64_t end,
                        int64_t f, int64_t f_end, const winograd_end *ending, uint16_t *y)
{
    float scratch[EDGE * EDGE * SLICE];
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t offset[EDGE * EDGE];
        output_offsets(w, tile, f, offset);
        for (int64_t first = 0; first < f_end - f; first += SLICE) {
            const int64_t count = f_end - f - first < SLICE ? f_end - f - first : SLICE;
            output_slice(from, (tile - begin) * from->row + first, offset, f + first, count, ending, scratch);
            for (int64_t i = 0; i < (int64_t)EDGE * EDGE; i++) {
                if (offset[i] >= 0) {
                    cast_narrow(y + offset[i] + first, w->type, scratch + i * count, count);
                }
            }
        }
    }
}

void winograd_output(const winograd *w, const winograd_scratch *from, int64_t begin, int64_t end, int64_t f,
                     int64_t f_end, const winograd_end *ending, void *y)
{
    if (w->type == HR_F32) {
        output_f32(w, from, begin, end, f, f_end, ending, y);
    } else {
        output_half(w, from, begin, end, f, f_end, ending, y);
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

CPU_INLINE void gradient_tiles(const winograd *w, const void *dy, int64_t begin, int64_t end, int64_t f,
                               int64_t f_end, const winograd_scratch *to, const hr_dtype type)
{
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t offset[EDGE * EDGE];
        output_offsets(w, tile, 0, offset);
        for (int64_t k = f; k < f_end; k += CPU_LANES) {
            float *z = to->data + panel_at(k - f, end - begin, tile - begin);
            f32x16 d[EDGE * EDGE], down[SIDE * EDGE];
#pragma GCC unroll 4
            for (int i = 0; i < EDGE * EDGE; i++) {
                d[i] = (f32x16){0};
                if (offset[i] >= 0) {
                    load(&d[i], dy, offset[i] + k, type);
                }
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

CPU_HOT static void gradient_f32(const winograd *w, const void *dy, int64_t begin, int64_t end, int64_t f,
                                 int64_t f_end, const winograd_scratch *to)
{
    gradient_tiles(w, dy, begin, end, f, f_end, to, HR_F32);
}

CPU_HOT static void gradient_f16(const winograd *w, const void *dy, int64_t begin, int64_t end, int64_t f,
                                 int64_t f_end, const winograd_scratch *to)
{
    gradient_tiles(w, dy, begin, end, f, f_end, to, HR_F16);
}

CPU_HOT static void gradient_bf16(const winograd *w, const void *dy, int64_t begin, int64_t end, int64_t f,
                                  int64_t f_end, const winograd_scratch *to)
{
    gradient_tiles(w, dy, begin, end, f, f_end, to, HR_BF16);
}

void winograd_gradient(const winograd *w, const void *dy, int64_t begin, int64_t end, int64_t f,
                       int64_t f_end, const winograd_scratch *to)
{
    if (w->type == HR_F32) {
        gradient_f32(w, dy, begin, end, f, f_end, to);
    } else if (w->type == HR_F16) {
        gradient_f16(w, dy, begin, end, f, f_end, to);
    } else {
        gradient_bf16(w, dy, begin, end, f, f_end, to);
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
CPU_INLINE void change_weights(const void *weights, int64_t at, int64_t tap, float *to, int64_t place,
                               const hr_dtype type)
{
    f32x16 down[SIDE * TAPS];
#pragma GCC unroll 3
    for (int s = 0; s < TAPS; s++) {
        f32x16 g[TAPS];
#pragma GCC unroll 3
        for (int r = 0; r < TAPS; r++) {
            load(&g[r], weights, at + (r * TAPS + s) * tap, type);
        }
        CHANGE_WEIGHTS(down + s, TAPS, g[0], g[1], g[2]);
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

CPU_INLINE void weights_as_they_lie(const winograd *w, const void *weights, int64_t begin, int64_t end,
                                    int64_t f, int64_t f_end, const winograd_scratch *to, const hr_dtype type)
{
    const int64_t rows = w->in.channels, columns = w->out.channels;
    for (int64_t c = begin; c < end; c++) {
        for (int64_t k = f; k < f_end; k += CPU_LANES) {
            change_weights(weights, c * columns + k, rows * columns, to->data + panel_at(k - f, rows, c),
                           to->place, type);
        }
    }
}

// Squares of 16 x 16 are changed as they lie and then turned.
CPU_INLINE void weights_turned(const winograd *w, const void *weights, int64_t begin, int64_t end, int64_t f,
                               int64_t f_end, const winograd_scratch *to, const hr_dtype type)
{
    enum { SQUARE = CPU_LANES * CPU_LANES };
    const int64_t rows = w->in.channels, tap = rows * w->out.channels;
    const int64_t last = (TAPS * TAPS - 1) * tap;
    float square[WINOGRAD_PLACES * SQUARE];
    for (int64_t c = begin; c < end; c += CPU_LANES) {
        for (int64_t k = f; k < f_end; k += CPU_LANES) {
            for (int64_t i = 0; i < CPU_LANES; i++) {
                change_weights(weights, last + (k + i) * rows + c, -tap, square + i * CPU_LANES, SQUARE,
                               type);
            }
            for (int64_t place = 0; place < WINOGRAD_PLACES; place++) {
                gemm_transpose(to->data + place * to->place + panel_at(k - f, rows, c), WINOGRAD_PANEL,
                               square + place * SQUARE, CPU_LANES, CPU_LANES, CPU_LANES);
            }
        }
    }
}

CPU_INLINE void all_weights(const winograd *w, const void *weights, int64_t begin, int64_t end, int64_t f,
                            int64_t f_end, const winograd_scratch *to, const hr_dtype type)
{
    if (w->turned) {
        weights_turned(w, weights, begin, end, f, f_end, to, type);
    } else {
        weights_as_they_lie(w, weights, begin, end, f, f_end, to, type);
    }
}

CPU_HOT static void weights_f32(const winograd *w, const void *weights, int64_t begin, int64_t end, int64_t f,
                                int64_t f_end, const winograd_scratch *to)
{
    all_weights(w, weights, begin, end, f, f_end, to, HR_F32);
}

CPU_HOT static void weights_f16(const winograd *w, const void *weights, int64_t begin, int64_t end, int64_t f,
                                int64_t f_end, const winograd_scratch *to)
{
    all_weights(w, weights, begin, end, f, f_end, to, HR_F16);
}

CPU_HOT static void weights_bf16(const winograd *w, const void *weights, int64_t begin, int64_t end,
                                 int64_t f, int64_t f_end, const winograd_scratch *to)
{
    all_weights(w, weights, begin, end, f, f_end, to, HR_BF16);
}

void winograd_weights(const winograd *w, const void *weights, int64_t begin, int64_t end, int64_t f,
                      int64_t f_end, const winograd_scratch *to)
{
    if (w->type == HR_F32) {
        weights_f32(w, weights, begin, end, f, f_end, to);
    } else if (w->type == HR_F16) {
        weights_f16(w, weights, begin, end, f, f_end, to);
    } else {
        weights_bf16(w, weights, begin, end, f, f_end, to);
    }
}

// u0 + (u1 + u2) / 2, (u1 - u2) / 2, (u1 + u2) / 2 + u3
#define CHANGE_BACK(to, step, u0, u1, u2, u3)                                                                \
    do {                                                                                                     \
        (to)[0 * (step)] = (u0) + 0.5f * ((u1) + (u2));                                                      \
        (to)[1 * (step)] = 0.5f * ((u1) - (u2));                                                             \
        (to)[2 * (step)] = 0.5f * ((u1) + (u2)) + (u3);                                                      \
    } while (0)

// `count` filters of one channel: taps `tap` floats apart.
CPU_HOT static void back_row(const winograd_scratch *from, const float *u, int64_t count, int64_t tap,
                             float *dw)
{
    for (int64_t k = 0; k < count; k += CPU_LANES) {
        f32x16 down[TAPS * SIDE];
#pragma GCC unroll 4
        for (int s = 0; s < SIDE; s++) {
            const f32x16 u0 = F32X16(u + k + s * from->place), u1 = F32X16(u + k + (SIDE + s) * from->place),
                         u2 = F32X16(u + k + (2 * SIDE + s) * from->place),
                         u3 = F32X16(u + k + (3 * SIDE + s) * from->place);
            CHANGE_BACK(down + s, SIDE, u0, u1, u2, u3);
        }
#pragma GCC unroll 3
        for (int r = 0; r < TAPS; r++) {
            const f32x16 *d = down + r * SIDE;
            f32x16 g[TAPS];
            CHANGE_BACK(g, 1, d[0], d[1], d[2], d[3]);
#pragma GCC unroll 3
            for (int s = 0; s < TAPS; s++) {
                F32X16W(dw + (r * TAPS + s) * tap + k) = g[s];
            }
        }
    }
}

static void back_row_half(const winograd *w, const winograd_scratch *from, const float *u, int64_t count,
                          int64_t tap, uint16_t *dw)
{
    float scratch[TAPS * TAPS * SLICE];
    for (int64_t first = 0; first < count; first += SLICE) {
        const int64_t part = count - first < SLICE ? count - first : SLICE;
        back_row(from, u + first, part, part, scratch);
        for (int64_t k = 0; k < (int64_t)TAPS * TAPS; k++) {
            cast_narrow(dw + k * tap + first, w->type, scratch + k * part, part);
        }
    }
}

void winograd_weights_back(const winograd *w, const winograd_scratch *from, int64_t c, int64_t c_end,
                           int64_t f, int64_t f_end, void *dw)
{
    const int64_t columns = w->out.channels, tap = w->in.channels * columns;
    for (int64_t row = c; row < c_end; row++) {
        const float *u = from->data + (row - c) * from->row;
        const int64_t at = row * columns + f;
        if (w->type == HR_F32) {
            back_row(from, u, f_end - f, tap, (float *)dw + at);
        } else {
            back_row_half(w, from, u, f_end - f, tap, (uint16_t *)dw + at);
        }
    }
}
