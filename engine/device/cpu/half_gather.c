// SPDX-License-Identifier: Apache-2.0
// Parts of two-byte matrices into scratch_areas of floats and back.
#include <string.h>

#include "cast.h"
#include "half_matrix.h"

// A part of rows, from memory to the scratch.
typedef struct piece {
    const half_matrix *m;
    cast_widener widen;
    int64_t bytes; // of an element
    int64_t column, columns;
} piece;

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void zero_run(float *to, int64_t count)
{
    if (count > 0) {
        memset(to, 0, (size_t)count * sizeof *to);
    }
}

static void widen_run(const piece *p, float *to, int64_t at, int64_t count)
{
    p->widen(to, (const char *)p->m->data + at * p->bytes, count);
}

static void gather_taps(const piece *p, int64_t row, float *to)
{
    const half_taps *t = &p->m->taps;
    for (int64_t c = p->column, end = p->column + p->columns, count = 0; c < end; c += count) {
        const int64_t tap = c / t->depth, in_tap = c % t->depth;
        const int64_t at =
            t->first + tap / t->across * t->step_a + tap % t->across * t->step_b + row * p->m->row + in_tap;
        count = min_of(t->depth - in_tap, end - c);
        widen_run(p, to, at, count);
        to += count;
    }
}

// The pixel that tap (0, 0) of a row sees.
typedef struct spot {
    int64_t image, h, w;
} spot;

static spot spot_of(const half_window *v, int64_t row)
{
    const int64_t j = row % v->rows_w, rest = row / v->rows_w;
    return (spot){rest / v->rows_h, v->first_h + v->step_h * (rest % v->rows_h), v->first_w + v->step_w * j};
}

static int64_t element_at(const half_window *v, const spot *s, int64_t h, int64_t w)
{
    return ((s->image * v->height + h) * v->width + w) * v->channels;
}

static void gather_place(const piece *p, const spot *s, int64_t a, int64_t b, int64_t from, int64_t count,
                         float *to)
{
    const half_window *v = &p->m->window;
    const int64_t h = s->h + a, w = s->w + b;
    if (h < 0 || w < 0 || h >= v->height || w >= v->width) {
        zero_run(to, count);
    } else {
        widen_run(p, to, element_at(v, s, h, w) + from, count);
    }
}

static void gather_pixel(const piece *p, int64_t row, float *to)
{
    const half_taps *t = &p->m->taps;
    const half_window *v = &p->m->window;
    const spot s = spot_of(v, row);
    for (int64_t c = p->column, end = p->column + p->columns, count = 0; c < end; c += count) {
        const int64_t tap = c / t->depth, in_tap = c % t->depth;
        count = min_of(t->depth - in_tap, end - c);
        gather_place(p, &s, tap / t->across * v->apart_h, tap % t->across * v->apart_w, in_tap, count, to);
        to += count;
    }
}

void half_gather(const half_matrix *m, int64_t row, int64_t rows, int64_t column, int64_t columns, float *to,
                 int64_t to_row)
{
    const piece p = {m, cast_widener_of(m->type), (int64_t)dtype_bytes(m->type), column, columns};
    if (m->kind == HALF_MATRIX && columns == m->row && columns == to_row) {
        widen_run(&p, to, row * to_row, rows * to_row);
        return;
    }
    for (int64_t r = row; r < row + rows; r++, to += to_row) {
        if (m->kind == HALF_MATRIX) {
            widen_run(&p, to, r * m->row + column, columns);
        } else if (m->kind == HALF_TAPS) {
            gather_taps(&p, r, to);
        } else {
            gather_pixel(&p, r, to);
        }
    }
}

void half_gather_rows(const half_matrix *m, int64_t image, int64_t h, int64_t rows, int64_t width, float *to)
{
    const half_window *v = &m->window;
    const piece p = {.m = m, .widen = cast_widener_of(m->type), .bytes = (int64_t)dtype_bytes(m->type)};
    const int64_t begin = v->first_w * v->channels, row = v->width * v->channels;
    const int64_t first = min_of(max_of(-begin, 0), width), last = max_of(min_of(row - begin, width), first);
    for (int64_t r = h; r < h + rows; r++, to += width) {
        const bool inside = r >= 0 && r < v->height && last > first;
        zero_run(to, inside ? first : width);
        if (inside) {
            widen_run(&p, to + first, (image * v->height + r) * row + begin + first, last - first);
            zero_run(to + last, width - last);
        }
    }
}

// ---- back -------------------------------------------------------------------------------------------------

static void put(const half_matrix *m, int64_t at, int64_t count, const float *from)
{
    char *to = (char *)m->data + at * (int64_t)dtype_bytes(m->type);
    if (m->type == HR_F32) {
        memcpy(to, from, (size_t)count * sizeof *from);
    } else {
        cast_narrow(to, m->type, from, count);
    }
}

// Rows that follow one another in memory are moved together before they are rounded.
static void put_close(const half_matrix *m, int64_t row, int64_t rows, float *from, int64_t from_row)
{
    for (int64_t r = 1; r < rows && from_row > m->row; r++) {
        memmove(from + r * m->row, from + r * from_row, (size_t)m->row * sizeof *from);
    }
    put(m, row * m->row, rows * m->row, from);
}

void half_scatter(const half_matrix *m, int64_t row, int64_t rows, int64_t column, int64_t columns,
                  float *from, int64_t from_row)
{
    if (m->kind == HALF_MATRIX && columns == m->row) {
        put_close(m, row, rows, from, from_row);
        return;
    }
    for (int64_t r = row; r < row + rows; r++, from += from_row) {
        int64_t at = r * m->row + column;
        if (m->kind == HALF_IMAGE) {
            const spot s = spot_of(&m->window, r);
            at = element_at(&m->window, &s, s.h, s.w) + column;
        }
        put(m, at, columns, from);
    }
}
