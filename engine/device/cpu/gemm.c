// SPDX-License-Identifier: Apache-2.0
#include "gemm.h"

#include <stddef.h>
#include <string.h>

#include "gemm_pack.h"
#include "gemm_thin.h"
#include "gemm_tiles.h"
#include "simd.h"
#include "sums.h"

enum {
    DEPTH_MAX = 256,        // k of one pass: a panel of B stays in the nearest caches
    BLOCK_FLOATS = 65536,   // of A in one pass over B: half of a usual second-level cache
    BAND_FLOATS = 131072,   // of B, copied once and read by all rows of A
    BAND_COLUMNS = 512,     // of C, finished over all of k before the next ones, where B is not copied
    KEPT_FLOATS = 524288,   // of A, copied once for all bands of B
    FETCH_ROWS_MIN = 64,    // of A
    SPLIT_DEPTH_MIN = 512,  // k of one thread
    SERIAL_FLOPS = 1 << 19, // below this the second thread costs more than it brings
    LINE_FLOATS = 16
};

// How one product is cut. Derived from the sizes alone, so that scratch and sums are the same in every call.
typedef struct plan {
    const gemm_tiles *tiles;
    int64_t columns; // of a full tile
    int64_t depth;   // k per pass
    int64_t a_rows;  // m per block
    int64_t band;    // n per band: what is copied of B at once
    bool pack_a, pack_b;
    bool keep_a;      // what is copied of A serves all bands
    bool split_depth; // threads share k instead of m or n; their sums are added afterwards
    bool split_rows;
    uint32_t threads;
    int64_t a_floats, b_floats;       // scratch per thread: packed blocks,
    int64_t sum_floats, b_sum_floats; // and with split_depth its part of C and of the sums of B
} plan;

typedef struct job {
    const gemm *g;
    const plan *p;
    const gemm_operands *o;
    float *scratch;
} job;

static int64_t round_up(int64_t value, int64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t at_least_one(int64_t count)
{
    return count < 1 ? 1 : count;
}

static uint32_t threads_of(const gemm *g)
{
    return g->workers == NULL || 2 * g->m * g->n * g->k < SERIAL_FLOPS ? 1 : workers_count(g->workers);
}

// A row of A far from the next one (a power of two above all) falls on few cache sets; copying pays as soon
// as each element is used often enough.
static bool packs_a(const gemm *g)
{
    return g->n >= 256 || (g->n >= 48 && g->a_row % (g->a_transposed ? 512 : 256) == 0);
}

static bool packs_b(const gemm *g, const plan *p)
{
    return !g->b_packed && (g->b_transposed || (g->m > 2 * p->tiles->rows && g->n > 4 * p->columns));
}

// The most that workers_for gives one thread of `items`, where `shared`.
static int64_t share_of(const plan *p, int64_t items, int64_t grain, bool shared)
{
    const int64_t blocks = (items + grain - 1) / grain;
    return shared ? min_of(items, (blocks + p->threads - 1) / p->threads * grain) : items;
}

// A band is as many panels of B as BAND_FLOATS hold at that depth. A is copied anew for every band, or once where all
// of a thread's rows over all of its depth are few.
static void plan_bands(const gemm *g, plan *p)
{
    const int64_t rows = p->tiles->rows, panel = p->columns * p->depth;
    const int64_t own_m = share_of(p, g->m, rows, p->split_rows && !p->split_depth);
    const int64_t own_n = share_of(p, g->n, p->columns, !p->split_rows && !p->split_depth);
    const int64_t own_k = share_of(p, g->k, rows, p->split_depth);
    const int64_t panels = min_of((own_n + p->columns - 1) / p->columns, at_least_one(BAND_FLOATS / panel));
    p->a_rows = min_of(own_m, round_up(BLOCK_FLOATS / p->depth, rows));
    p->band = p->pack_b          ? panels * p->columns
              : g->b_packed      ? p->columns
              : own_k > p->depth ? BAND_COLUMNS
                                 : own_n;
    p->keep_a = p->pack_a && own_n > p->band && round_up(own_m, rows) * own_k <= KEPT_FLOATS;
    p->a_floats = p->keep_a   ? round_up(own_m, rows) * own_k
                  : p->pack_a ? round_up(p->a_rows, rows) * p->depth
                              : 0;
    // One panel at least: the last columns of B are always copied, padded with zeros.
    p->b_floats = (p->pack_b ? panels : 1) * panel;
}

static plan plan_of(const gemm *g)
{
    plan p = {.tiles = gemm_tiles_here(), .threads = threads_of(g)};
    p.columns = (int64_t)p.tiles->vectors * p.tiles->lanes;
    p.split_depth =
        p.threads > 1 && g->k >= SPLIT_DEPTH_MIN * (int64_t)p.threads && g->k >= 4 * g->m && g->k >= 4 * g->n;
    p.split_rows = g->m >= g->n;
    int64_t own_depth = p.split_depth ? (g->k + p.threads - 1) / p.threads : g->k;
    int64_t passes = (own_depth + DEPTH_MAX - 1) / DEPTH_MAX;
    p.depth = (own_depth + passes - 1) / passes;
    p.pack_a = packs_a(g);
    p.pack_b = packs_b(g, &p);
    plan_bands(g, &p);
    p.sum_floats = p.split_depth ? round_up(g->m * g->n, LINE_FLOATS) : 0;
    p.b_sum_floats = p.split_depth && g->sum_b ? round_up(g->n, LINE_FLOATS) : 0;
    p.a_floats = round_up(p.a_floats, LINE_FLOATS);
    p.b_floats = round_up(p.b_floats, LINE_FLOATS);
    return p;
}

uint64_t gemm_scratch_bytes(const gemm *packed)
{
    const gemm full = gemm_with_rows(packed), *g = &full;
    if (gemm_is_thin(g)) {
        return gemm_thin_scratch_bytes(g);
    }
    plan p = plan_of(g);
    return (uint64_t)(p.a_floats + p.b_floats + p.sum_floats + p.b_sum_floats) * p.threads * sizeof(float);
}

typedef struct block {
    int64_t m, m_end, n, n_end, k, k_end;
} block;

// Lines of B that the next block will copy, asked for while the products of this one run.
typedef struct prefetch {
    const float *row;
    int64_t row_floats, lines, line, left; // lines of a row, the next one, all that are left
    int64_t per_tile;
} prefetch;

// A block of A against a band of B.
typedef struct pass {
    block at;
    bool first, last; // of the passes over k
    float *c;
    int64_t c_row;
    const float *a; // the block's copy
    float *scratch_a, *scratch_b;
    prefetch ahead;
} pass;

// `tiles` is how many tiles will share the work.
static prefetch prefetch_of(const job *j, int64_t n, int64_t n_end, int64_t k, int64_t k_end, int64_t tiles)
{
    const gemm *g = j->g;
    const int64_t columns = n_end - n, depth = k_end - k;
    prefetch f = {
        .row = j->o->b + k * g->b_row + n, .row_floats = g->b_row, .lines = round_up(columns, LINE_FLOATS)};
    int64_t rows = depth;
    if (g->b_transposed) {
        f = (prefetch){
            .row = j->o->b + n * g->b_row + k, .row_floats = g->b_row, .lines = round_up(depth, LINE_FLOATS)};
        rows = columns;
    }
    f.lines /= LINE_FLOATS;
    f.left = f.lines * rows;
    f.per_tile = (f.left + tiles - 1) / tiles;
    return f;
}

CPU_INLINE void prefetch_some(prefetch *f)
{
    for (int64_t count = min_of(f->per_tile, f->left); count > 0; count--) {
        __builtin_prefetch(f->row + f->line * LINE_FLOATS, 0, 2);
        f->left--;
        if (++f->line == f->lines) {
            f->line = 0;
            f->row += f->row_floats;
        }
    }
}

// One panel of B against every tile row of a block of A. `t` carries b and the flags already.
static void run_panel(const job *j, pass *s, gemm_tile t, int64_t n, int64_t columns)
{
    const gemm *g = j->g;
    const gemm_tiles *tiles = j->p->tiles;
    t.a_row = j->p->pack_a || g->a_transposed ? 1 : g->a_row;
    t.a_step = j->p->pack_a ? tiles->rows : g->a_transposed ? g->a_row : 1;
    for (int64_t m = s->at.m; m < s->at.m_end; m += tiles->rows) {
        const int64_t rows = min_of(tiles->rows, s->at.m_end - m);
        t.a = j->p->pack_a ? s->a + (m - s->at.m) * t.depth : j->o->a + m * t.a_row + s->at.k * t.a_step;
        t.c = s->c + m * t.c_row + n;
        t.fetch = j->g->b_packed && m == s->at.m ? t.b + t.depth * t.b_step
                                                 : NULL; // its panels lie one behind the other
        prefetch_some(&s->ahead);
        gemm_tile_run(tiles, &t, rows, columns);
    }
}

// The rows of the block against the band's panels; one that was not copied for all rows, and is ragged, is copied here.
static void run_panels(const job *j, pass *s)
{
    const gemm *g = j->g;
    const plan *p = j->p;
    const block *w = &s->at;
    const int64_t depth = w->k_end - w->k;
    for (int64_t n = w->n; n < w->n_end; n += p->columns) {
        const int64_t columns = min_of(p->columns, w->n_end - n);
        const bool ragged = !p->pack_b && !g->b_packed && columns % p->tiles->lanes != 0;
        gemm_tile t = {
            .depth = depth, .c_row = s->c_row, .add = !s->first || g->add, .relu = s->last && g->relu};
        t.scale = s->last ? g->scale : 0.0f;
        t.bias = s->last && j->o->bias != NULL ? j->o->bias + n : NULL;
        t.b = p->pack_b     ? s->scratch_b + (n - w->n) * depth
              : ragged      ? s->scratch_b
              : g->b_packed ? j->o->b + n * g->k + w->k * p->columns
                            : j->o->b + w->k * g->b_row + n;
        t.b_step = p->pack_b || ragged || g->b_packed ? p->columns : g->b_row;
        if (ragged) {
            gemm_pack_b(g, p->columns, j->o->b, n, n + columns, w->k, depth, s->scratch_b);
        }
        run_panel(j, s, t, n, columns);
    }
}

// What will be copied of B behind this pass: the next depth of the band, or the next band. Nothing where no copies are
// made, or too few products run meanwhile to hide the wait.
static prefetch what_follows(const job *j, const block *band, const block *w)
{
    const plan *p = j->p;
    const int64_t rows = band->m_end - band->m, k_next = band->k_end < w->k_end ? band->k_end : w->k;
    const int64_t n = band->k_end < w->k_end ? band->n : band->n_end, n_end = min_of(n + p->band, w->n_end);
    const int64_t tiles = ((band->n_end - band->n + p->columns - 1) / p->columns) *
                          ((rows + p->tiles->rows - 1) / p->tiles->rows);
    if (!p->pack_b || rows < FETCH_ROWS_MIN || n >= n_end) {
        return (prefetch){0};
    }
    return prefetch_of(j, n, n_end, k_next, min_of(k_next + p->depth, w->k_end), tiles);
}

// Where the block that begins at row m and the pass's depth lies among what is copied of A.
static float *copy_of(const job *j, const pass *s, const block *w, int64_t m)
{
    const plan *p = j->p;
    return p->keep_a ? s->scratch_a + (s->at.k - w->k) * round_up(w->m_end - w->m, p->tiles->rows) +
                           (m - w->m) * (s->at.k_end - s->at.k)
                     : s->scratch_a;
}

// The band's columns at depth [s->at.k, s->at.k_end), over all rows of w.
static void run_pass(const job *j, pass *s, const block *w, bool first_band)
{
    const plan *p = j->p;
    const int64_t depth = s->at.k_end - s->at.k;
    if (p->pack_b) {
        gemm_pack_b(j->g, p->columns, j->o->b, s->at.n, s->at.n_end, s->at.k, depth, s->scratch_b);
    }
    s->ahead = what_follows(j, &(block){w->m, w->m_end, s->at.n, s->at.n_end, s->at.k, s->at.k_end}, w);
    for (int64_t m = w->m; m < w->m_end; m += p->a_rows) {
        s->at.m = m;
        s->at.m_end = min_of(m + p->a_rows, w->m_end);
        float *copy = copy_of(j, s, w, m);
        if (p->pack_a && (!p->keep_a || first_band)) {
            gemm_pack_a(j->g, p->tiles->rows, j->o->a, m, s->at.m_end - m, s->at.k, depth, copy);
        }
        s->a = copy;
        run_panels(j, s);
    }
}

// The block `w` of C, whole in k or not, into `c`. A band of columns is finished over all of k
// before the next one, so that its sums stay in the caches. `epilogue`: scale, bias and activation belong
// to the last pass and C is the real one; else it is a part with rows of n.
static void run_block(const job *j, const block *w, bool epilogue, float *c, float *b_sums, float *scratch)
{
    const gemm *g = j->g;
    const plan *p = j->p;
    pass s = {.c = c,
              .c_row = epilogue ? g->c_row : g->n,
              .scratch_a = scratch,
              .scratch_b = scratch + p->a_floats};
    for (int64_t n = w->n; n < w->n_end; n += p->band) {
        s.at.n = n;
        s.at.n_end = min_of(n + p->band, w->n_end);
        for (int64_t k = w->k; k < w->k_end; k += p->depth) {
            s.at.k = k;
            s.at.k_end = min_of(k + p->depth, w->k_end);
            s.first = k == w->k;
            s.last = epilogue && s.at.k_end == w->k_end;
            run_pass(j, &s, w, n == w->n);
            if (b_sums != NULL) { // while these rows of B are near
                sums_add_rows(b_sums + n, j->o->b + k * g->b_row + n, g->b_row, s.at.k_end - k,
                              s.at.n_end - n);
            }
        }
    }
}

static float *scratch_of(const job *j, uint32_t worker)
{
    const plan *p = j->p;
    return j->scratch + (p->a_floats + p->b_floats) * (int64_t)worker;
}

// With rows split, every worker sees all of B; the first one sums it.
static void run_range(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const gemm *g = j->g;
    block w = {0, g->m, 0, g->n, 0, g->k};
    float *b_sums = g->sum_b ? j->o->b_sums : NULL;
    if (j->p->split_rows) {
        w.m = begin;
        w.m_end = end;
        b_sums = worker == 0 ? b_sums : NULL;
    } else {
        w.n = begin;
        w.n_end = end;
    }
    if (b_sums != NULL) {
        memset(b_sums + w.n, 0, (size_t)(w.n_end - w.n) * sizeof *b_sums);
    }
    run_block(j, &w, true, j->o->c, b_sums, scratch_of(j, worker));
}

// What threads that share k hand over lies behind the packing scratch of all of them: a part of C, a part of B's
// sums.
static float *part_of(const job *j, uint32_t worker)
{
    const plan *p = j->p;
    return j->scratch + (p->a_floats + p->b_floats) * (int64_t)p->threads +
           (p->sum_floats + p->b_sum_floats) * (int64_t)worker;
}

static void run_depth(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    block w = {0, j->g->m, 0, j->g->n, begin, end};
    float *c = part_of(j, worker), *b_sums = j->g->sum_b ? c + j->p->sum_floats : NULL;
    if (b_sums != NULL) {
        memset(b_sums, 0, (size_t)j->g->n * sizeof *b_sums);
    }
    run_block(j, &w, false, c, b_sums, scratch_of(j, worker));
}

CPU_HOT static void add_to(float *to, const float *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        to[i] += from[i];
    }
}

static void finish_depth(const job *j, uint32_t ranges)
{
    const gemm *g = j->g;
    const float scale = g->scale == 0.0f ? 1.0f : g->scale;
    float *sum = part_of(j, 0);
    for (uint32_t r = 1; r < ranges; r++) {
        add_to(sum, part_of(j, r), j->p->sum_floats + j->p->b_sum_floats);
    }
    for (int64_t i = 0; i < g->m; i++) {
        for (int64_t n = 0; n < g->n; n++) {
            float value = scale * sum[i * g->n + n] + (j->o->bias != NULL ? j->o->bias[n] : 0.0f);
            j->o->c[i * g->c_row + n] = g->relu && value < 0.0f ? 0.0f : value;
        }
    }
    if (g->sum_b) {
        memcpy(j->o->b_sums, sum + j->p->sum_floats, (size_t)g->n * sizeof *sum);
    }
}

void gemm_run(const gemm *packed, const gemm_operands *o, float *scratch)
{
    const gemm full = gemm_with_rows(packed), *g = &full;
    if (gemm_is_thin(g)) {
        gemm_thin_run(g, o, scratch);
        return;
    }
    const plan p = plan_of(g);
    const job j = {g, &p, o, scratch};
    if (p.threads == 1) {
        run_range(&j, 0, p.split_rows ? g->m : g->n, 0);
    } else if (p.split_depth) {
        workers_for(g->workers, g->k, p.tiles->rows, run_depth, &j);
        finish_depth(&j, workers_for_ranges(g->workers, g->k, p.tiles->rows));
    } else if (p.split_rows) {
        workers_for(g->workers, g->m, p.tiles->rows, run_range, &j);
    } else {
        workers_for(g->workers, g->n, p.columns, run_range, &j);
    }
}

// ---- a B for many runs ------------------------------------------------------------------------------------------

typedef struct packing {
    const gemm *g;
    const float *b;
    float *to;
    int64_t columns;
} packing;

static int64_t panel_columns(void)
{
    const gemm_tiles *tiles = gemm_tiles_here();
    return (int64_t)tiles->vectors * tiles->lanes;
}

uint64_t gemm_packed_bytes(const gemm *g)
{
    return (uint64_t)(round_up(g->n, panel_columns()) * g->k) * sizeof(float);
}

static void pack_range(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const packing *p = argument;
    (void)worker;
    gemm_pack_b(p->g, p->columns, p->b, begin, end, 0, p->g->k, p->to + begin * p->g->k);
}

void gemm_pack_right(const gemm *packed, const float *b, float *to)
{
    const gemm full = gemm_with_rows(packed);
    const packing p = {&full, b, to, panel_columns()};
    workers_for(full.workers, full.n, p.columns, pack_range, &p);
}

const char *gemm_isa(void)
{
    return gemm_tiles_here()->name;
}
