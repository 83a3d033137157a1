// SPDX-License-Identifier: Apache-2.0
#include "gemm_thin.h"

#include <stddef.h>
#include <string.h>

#include "gemm_pack.h"
#include "gemm_tiles.h"

enum { DEPTH_MAX = 256, N_GRAIN = 64 };

typedef struct job {
    const gemm *g;
    const gemm_operands *o;
    const gemm_tiles *tiles;
    int64_t width;   // m in whole registers
    float *a_turned; // [k][width], zeros behind m
} job;

static int64_t width_of(const gemm *g, const gemm_tiles *tiles)
{
    return (g->m + tiles->lanes - 1) / tiles->lanes * tiles->lanes;
}

bool gemm_is_thin(const gemm *g)
{
    const gemm_tiles *tiles = gemm_tiles_here();
    return g->b_transposed && !g->b_packed && !g->a_transposed &&
           g->m <= (int64_t)tiles->lanes * tiles->vectors && g->n >= 4 * g->m && g->n >= N_GRAIN;
}

uint64_t gemm_thin_scratch_bytes(const gemm *g)
{
    return (uint64_t)(g->k * width_of(g, gemm_tiles_here())) * sizeof(float);
}

// Columns [n, n + count) of C from a tile of its transpose.
static void put(const job *j, const float *tile, int64_t n, int64_t count)
{
    const gemm *g = j->g;
    gemm_transpose(j->o->c + n, g->c_row, tile, GEMM_MAX_COLUMNS, count, g->m);
    for (int64_t i = 0; i < g->m && (j->o->bias != NULL || g->relu); i++) {
        float *c = j->o->c + i * g->c_row + n;
        for (int64_t r = 0; r < count; r++) {
            const float value = c[r] + (j->o->bias != NULL ? j->o->bias[n + r] : 0.0f);
            c[r] = g->relu && value < 0.0f ? 0.0f : value;
        }
    }
}

static void run_columns(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const gemm *g = j->g;
    float tile[GEMM_MAX_ROWS * GEMM_MAX_COLUMNS];
    (void)worker;
    for (int64_t n = begin; n < end; n += j->tiles->rows) {
        const int64_t rows = end - n < j->tiles->rows ? end - n : j->tiles->rows;
        for (int64_t k = 0; k < g->k; k += DEPTH_MAX) {
            const gemm_tile t = {.depth = g->k - k < DEPTH_MAX ? g->k - k : DEPTH_MAX,
                                 .a = j->o->b + n * g->b_row + k,
                                 .a_row = g->b_row,
                                 .a_step = 1,
                                 .b = j->a_turned + k * j->width,
                                 .b_step = j->width,
                                 .c = tile,
                                 .c_row = GEMM_MAX_COLUMNS,
                                 .add = k > 0,
                                 .scale = k + DEPTH_MAX < g->k ? 0.0f : g->scale};
            j->tiles->run[rows][j->width / j->tiles->lanes](&t);
        }
        put(j, tile, n, rows);
    }
}

void gemm_thin_run(const gemm *g, const gemm_operands *o, float *scratch)
{
    const gemm_tiles *tiles = gemm_tiles_here();
    const job j = {g, o, tiles, width_of(g, tiles), scratch};
    memset(scratch, 0, gemm_thin_scratch_bytes(g));
    gemm_transpose(scratch, j.width, o->a, g->a_row, g->m, g->k);
    if (g->workers == NULL) {
        run_columns(&j, 0, g->n, 0);
    } else {
        workers_for(g->workers, g->n, N_GRAIN, run_columns, &j);
    }
}
