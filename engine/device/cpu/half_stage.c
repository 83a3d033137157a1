// SPDX-License-Identifier: Apache-2.0
#include "half_stage.h"

#include <string.h>

enum { STAGE_FLOATS = 1 << 16 };

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t at_least_one(int64_t count)
{
    return count < 1 ? 1 : count;
}

// ---- bands ------------------------------------------------------------------------------------------------

bool half_is_staged(const half_multiply *p)
{
    const half_taps *t = &p->a.taps;
    const half_window *v = &p->a.window;
    const int64_t places = p->a_turned ? p->m : p->k;
    return p->a.kind == HALF_IMAGE && v->apart_h == 1 && v->apart_w == 1 && t->depth == v->channels &&
           places > t->depth;
}

static void set_rows(const half_window *v, half_stage *s, int64_t images, int64_t rows)
{
    s->images = images;
    s->rows = rows;
    s->height = (rows - 1) * v->step_h + s->lines;
    s->pixels = images * rows * v->rows_w;
    s->floats = images * s->height * s->width;
}

half_stage half_stage_of(const half_multiply *p, int64_t pixels)
{
    const half_window *v = &p->a.window;
    const half_taps *t = &p->a.taps;
    const int64_t image = v->rows_h * v->rows_w;
    half_stage s = {.all = (p->a_turned ? p->k : p->m) / image, .line = t->across * t->depth};
    s.lines = (p->a_turned ? p->m : p->k) / s.line;
    s.width = ((v->rows_w - 1) * v->step_w + t->across) * t->depth;
    set_rows(v, &s, min_of(at_least_one(pixels / image), s.all),
             min_of(at_least_one(pixels / v->rows_w), v->rows_h));
    while (s.floats > STAGE_FLOATS && (s.images > 1 || s.rows > 1)) {
        const bool several = s.images > 1;
        set_rows(v, &s, several ? (s.images + 1) / 2 : 1, several ? s.rows : (s.rows + 1) / 2);
    }
    if (s.rows < v->rows_h) {
        set_rows(v, &s, 1, s.rows);
    }
    s.down = (v->rows_h + s.rows - 1) / s.rows;
    s.bands = s.down > 1 ? s.all * s.down : (s.all + s.images - 1) / s.images;
    return s;
}

half_band_at half_band_on(const half_multiply *p, const half_stage *s, int64_t band)
{
    const half_window *v = &p->a.window;
    half_band_at b = {.image = band / s->down * s->images, .row = band % s->down * s->rows};
    b.images = min_of(s->images, s->all - b.image);
    b.rows = min_of(s->rows, v->rows_h - b.row);
    b.pixel = (b.image * v->rows_h + b.row) * v->rows_w;
    b.pixels = b.images * b.rows * v->rows_w;
    return b;
}

static void stage_band(const half_tile *t, const half_stage *s, const half_band_at *b)
{
    const half_window *v = &t->a.window;
    const int64_t rows = (b->rows - 1) * v->step_h + s->lines;
    for (int64_t image = 0; image < b->images; image++) {
        half_gather_rows(&t->a, b->image + image, v->first_h + b->row * v->step_h, rows, s->width,
                         t->scratch_a + image * s->height * s->width);
    }
}

// What pixel (row, 0) of an image of the band sees in row `line` of its window.
static const float *seen(const half_tile *t, const half_stage *s, int64_t image, int64_t row, int64_t line)
{
    return t->scratch_a + (image * s->height + row * t->a.window.step_h + line) * s->width;
}

// ---- rows of C are pixels ---------------------------------------------------------------------------------

// All pixels of the band against one panel: `from` floats into row `line` of the window.
static void run_pixels(const half_job *j, const half_tile *t, const half_band_at *b, gemm_tile g,
                       int64_t line, int64_t from, int64_t columns)
{
    const half_stage *s = &j->u->stage;
    const half_window *v = &t->a.window;
    const int64_t most = j->u->tiles->rows;
    float *c = g.c;
    g.a_row = v->step_w * t->a.taps.depth;
    g.a_step = 1;
    for (int64_t at = 0; at < b->images * b->rows; at++) {
        const float *a = seen(t, s, at / b->rows, at % b->rows, line) + from;
        for (int64_t w = 0; w < v->rows_w; w += most) {
            g.a = a + w * g.a_row;
            g.c = c + (at * v->rows_w + w) * g.c_row;
            gemm_tile_run(j->u->tiles, &g, min_of(most, v->rows_w - w), columns);
        }
    }
}

void half_sum_band(const half_job *j, const half_tile *t, int64_t band)
{
    const half_shares *u = j->u;
    const half_stage *s = &u->stage;
    const half_band_at b = half_band_on(j->p, s, band);
    stage_band(t, s, &b);
    for (int64_t k = 0, depth = 0; k < j->p->k; k += depth) {
        const int64_t from = k % s->line;
        depth = min_of(u->depth, s->line - from);
        gemm_tile g = {.depth = depth, .add = k > 0, .c_row = u->c_row};
        if (k + depth == j->p->k) {
            half_end_pass(j, t, &g);
        }
        for (int64_t n = 0; n < t->columns; n += u->panel) {
            const int64_t columns = min_of(u->panel, t->columns - n);
            gemm_tile here = g;
            half_load_panel(j, t, t->n + n, columns, k, &here);
            here.c = t->scratch_c + n;
            here.bias = g.bias == NULL ? NULL : g.bias + n;
            run_pixels(j, t, &b, here, k / s->line, from, half_whole_columns(j, columns));
        }
    }
}

// ---- rows of C are places of the window -------------------------------------------------------------------

// Rows [m, m + rows) of C, which lie in one row of the window, against one panel of the band's pixels.
static void run_places(const half_job *j, const half_tile *t, const half_band_at *b, gemm_tile g, int64_t m,
                       int64_t rows, int64_t columns)
{
    const half_stage *s = &j->u->stage;
    const half_window *v = &t->a.window;
    g.depth = v->rows_w;
    g.a_row = 1;
    g.a_step = v->step_w * t->a.taps.depth;
    g.c += (m - t->m) * g.c_row;
    for (int64_t at = 0; at < b->images * b->rows; at++) {
        g.a = seen(t, s, at / b->rows, at % b->rows, m / s->line) + m % s->line;
        gemm_tile_run(j->u->tiles, &g, rows, columns);
        g.b += v->rows_w * g.b_step;
    }
}

static void add_band(const half_job *j, const half_tile *t, const half_band_at *b)
{
    const half_shares *u = j->u;
    const gemm_tile g = {.depth = b->pixels, .add = true, .c_row = u->c_row};
    for (int64_t n = 0; n < t->columns; n += u->panel) {
        const int64_t columns = min_of(u->panel, t->columns - n);
        gemm_tile here = g;
        half_load_panel(j, t, t->n + n, columns, b->pixel, &here);
        here.c = t->scratch_c + n;
        for (int64_t m = t->m, rows = 0; m < t->m + t->rows; m += rows) {
            rows = min_of(u->tiles->rows, min_of(t->m + t->rows - m, u->stage.line - m % u->stage.line));
            run_places(j, t, b, here, m, rows, half_whole_columns(j, columns));
        }
    }
}

void half_sum_bands(const half_job *j, const half_tile *t, int64_t begin, int64_t end)
{
    memset(t->scratch_c, 0, (size_t)j->u->c_floats * sizeof *t->scratch_c);
    for (int64_t band = begin; band < end; band++) {
        const half_band_at b = half_band_on(j->p, &j->u->stage, band);
        stage_band(t, &j->u->stage, &b);
        add_band(j, t, &b);
    }
}
