// SPDX-License-Identifier: Apache-2.0
// Parts of two-byte matrices into rooms of floats and back.
#include <string.h>

#include "base/half.h"
#include "cast.h"
#include "half_matrix.h"
#include "simd.h"

// A part of a row, from memory to the room.
typedef struct piece {
    const half_matrix *m;
    int64_t column, columns;
} piece;

CPU_INLINE int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

CPU_INLINE int64_t max_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

// The bits of base/half.h, `lanes` at a time.
#define WIDEN_LANES(lanes)                                                                                   \
    typedef uint16_t halves_##lanes __attribute__((vector_size(2 * (lanes)), aligned(2), may_alias));        \
    typedef int32_t bits_##lanes __attribute__((vector_size(4 * (lanes))));                                  \
    typedef float floats_##lanes __attribute__((vector_size(4 * (lanes)), aligned(4), may_alias));           \
    CPU_INLINE void widen_##lanes(float *to, const uint16_t *from, const hr_dtype type)                      \
    {                                                                                                        \
        const bits_##lanes half = __builtin_convertvector(*(const halves_##lanes *)from, bits_##lanes);      \
        const bits_##lanes sign = (half & 0x8000) << 16, magnitude = half & 0x7fff;                          \
        const bits_##lanes is_small = magnitude<0x400, is_strange = magnitude> 0x7bff;                       \
        const bits_##lanes normal = (magnitude << 13) + 0x38000000 + (is_strange & 0x38000000);              \
        const bits_##lanes small =                                                                           \
            (bits_##lanes)(__builtin_convertvector(magnitude, floats_##lanes) * 0x1p-24F);                   \
        const bits_##lanes f16 = sign | (small & is_small) | (normal & ~is_small);                           \
        *(floats_##lanes *)to = (floats_##lanes)(type == HR_F16 ? f16 : half << 16);                         \
    }
WIDEN_LANES(16)
WIDEN_LANES(8)
WIDEN_LANES(4)

// What no vector is filled with begins in the vector before it.
CPU_INLINE void widen_run(float *restrict to, const void *data, int64_t at, int64_t count,
                          const hr_dtype type)
{
    const uint16_t *restrict from = (const uint16_t *)data + at;
    if (type == HR_F32) {
        memcpy(to, (const float *)data + at, (size_t)count * sizeof *to);
    } else if (count >= 16) {
        for (int64_t i = 0; i + 16 <= count; i += 16) {
            widen_16(to + i, from + i, type);
        }
        widen_16(to + count - 16, from + count - 16, type);
    } else if (count >= 8) {
        widen_8(to, from, type);
        widen_8(to + count - 8, from + count - 8, type);
    } else if (count >= 4) {
        widen_4(to, from, type);
        widen_4(to + count - 4, from + count - 4, type);
    } else {
        for (int64_t i = 0; i < count; i++) {
            to[i] = type == HR_F16 ? float_of_f16(from[i]) : float_of_bf16(from[i]);
        }
    }
}

CPU_INLINE void zero_run(float *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        to[i] = 0.0F;
    }
}

CPU_INLINE void gather_taps(const piece *p, int64_t row, float *to, const hr_dtype type)
{
    const half_taps *t = &p->m->taps;
    for (int64_t c = p->column, end = p->column + p->columns, count = 0; c < end; c += count) {
        const int64_t tap = c / t->depth, in_tap = c % t->depth;
        const int64_t at =
            t->first + tap / t->across * t->step_a + tap % t->across * t->step_b + row * p->m->row + in_tap;
        count = min_of(t->depth - in_tap, end - c);
        widen_run(to, p->m->data, at, count, type);
        to += count;
    }
}

// The pixel that tap (0, 0) of a row sees.
typedef struct spot {
    int64_t image, h, w;
} spot;

CPU_INLINE spot spot_of(const half_window *v, int64_t row)
{
    const int64_t j = row % v->rows_w, rest = row / v->rows_w;
    return (spot){rest / v->rows_h, v->first_h + v->step_h * (rest % v->rows_h), v->first_w + v->step_w * j};
}

CPU_INLINE int64_t element_at(const half_window *v, const spot *s, int64_t h, int64_t w)
{
    return ((s->image * v->height + h) * v->width + w) * v->channels;
}

// Columns (a, from .. from + count) of one row of the window, where neighbouring taps are neighbours in memory.
CPU_INLINE void gather_line(const piece *p, const spot *s, int64_t a, int64_t from, int64_t count, float *to,
                            const hr_dtype type)
{
    const half_window *v = &p->m->window;
    const int64_t h = s->h + a, depth = p->m->taps.depth;
    if (h < 0 || h >= v->height) {
        zero_run(to, count);
        return;
    }
    const int64_t end = from + count;
    const int64_t first = min_of(max_of(from, -s->w * depth), end);
    const int64_t last = max_of(min_of(end, (v->width - s->w) * depth), first);
    zero_run(to, first - from);
    if (last > first) {
        widen_run(to + (first - from), p->m->data, element_at(v, s, h, s->w) + first, last - first, type);
    }
    zero_run(to + (last - from), end - last);
}

CPU_INLINE void gather_place(const piece *p, const spot *s, int64_t a, int64_t b, int64_t from, int64_t count,
                             float *to, const hr_dtype type)
{
    const half_window *v = &p->m->window;
    const int64_t h = s->h + a, w = s->w + b;
    if (h < 0 || w < 0 || h >= v->height || w >= v->width) {
        zero_run(to, count);
    } else {
        widen_run(to, p->m->data, element_at(v, s, h, w) + from, count, type);
    }
}

CPU_INLINE void gather_pixel(const piece *p, int64_t row, float *to, const hr_dtype type)
{
    const half_window *v = &p->m->window;
    const half_taps *t = &p->m->taps;
    const spot s = spot_of(v, row);
    const bool lines = t->depth == v->channels;
    const int64_t run = lines ? t->across * t->depth : t->depth;
    for (int64_t c = p->column, end = p->column + p->columns, count = 0; c < end; c += count) {
        const int64_t part = c / run, in_part = c % run;
        count = min_of(run - in_part, end - c);
        if (lines) {
            gather_line(p, &s, part, in_part, count, to, type);
        } else {
            gather_place(p, &s, part / t->across, part % t->across, in_part, count, to, type);
        }
        to += count;
    }
}

CPU_INLINE void gather(const piece *p, int64_t row, int64_t rows, float *to, int64_t to_row,
                       const hr_dtype type)
{
    if (p->m->kind == HALF_MATRIX && p->columns == p->m->row && p->columns == to_row) {
        widen_run(to, p->m->data, row * to_row, rows * to_row, type);
        return;
    }
    for (int64_t r = row; r < row + rows; r++, to += to_row) {
        if (p->m->kind == HALF_MATRIX) {
            widen_run(to, p->m->data, r * p->m->row + p->column, p->columns, type);
        } else if (p->m->kind == HALF_TAPS) {
            gather_taps(p, r, to, type);
        } else {
            gather_pixel(p, r, to, type);
        }
    }
}

CPU_HOT static void gather_f32(const piece *p, int64_t row, int64_t rows, float *to, int64_t to_row)
{
    gather(p, row, rows, to, to_row, HR_F32);
}

CPU_HOT static void gather_f16(const piece *p, int64_t row, int64_t rows, float *to, int64_t to_row)
{
    gather(p, row, rows, to, to_row, HR_F16);
}

CPU_HOT static void gather_bf16(const piece *p, int64_t row, int64_t rows, float *to, int64_t to_row)
{
    gather(p, row, rows, to, to_row, HR_BF16);
}

void half_gather(const half_matrix *m, int64_t row, int64_t rows, int64_t column, int64_t columns, float *to,
                 int64_t to_row)
{
    const piece p = {m, column, columns};
    if (m->type == HR_F32) {
        gather_f32(&p, row, rows, to, to_row);
    } else if (m->type == HR_F16) {
        gather_f16(&p, row, rows, to, to_row);
    } else {
        gather_bf16(&p, row, rows, to, to_row);
    }
}

void half_scatter(const half_matrix *m, int64_t row, int64_t rows, int64_t column, int64_t columns,
                  const float *from, int64_t from_row)
{
    for (int64_t r = row; r < row + rows; r++, from += from_row) {
        int64_t at = r * m->row + column;
        if (m->kind == HALF_IMAGE) {
            const spot s = spot_of(&m->window, r);
            at = element_at(&m->window, &s, s.h, s.w) + column;
        }
        char *to = (char *)m->data + at * (int64_t)dtype_bytes(m->type);
        if (m->type == HR_F32) {
            memcpy(to, from, (size_t)columns * sizeof *from);
        } else {
            cast_narrow(to, m->type, from, columns);
        }
    }
}
