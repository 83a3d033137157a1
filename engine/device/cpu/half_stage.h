// SPDX-License-Identifier: Apache-2.0
// Private to half_multiply.c and half_stage.c: how a product is cut, and the images of convolutions on their stage.
//
// A convolution's rows share most of what they see. A band, whole images or some rows of one, is widened once, with
// zeros where windows look beyond the image; the inner tiles of the product read the windows where they lie on this
// stage: a row of the window is one line of floats, and the next pixel's begins a step behind it.
#ifndef DEVICE_CPU_HALF_STAGE_H
#define DEVICE_CPU_HALF_STAGE_H

#include "gemm_tiles.h"
#include "half_matrix.h"

typedef struct half_stage {
    int64_t images, rows;   // of a band: whole images, or rows (of pixels of the result) of one
    int64_t all, bands;     // images and bands in all
    int64_t down;           // bands of an image; 1 where bands are whole images
    int64_t line, lines;    // floats of a row of the window, rows of it
    int64_t width, height;  // of an image on the stage, of a whole band: floats, rows
    int64_t pixels, floats; // of a whole band
} half_stage;

typedef struct half_band_at {
    int64_t image, images, row, rows;
    int64_t pixel, pixels; // rows of the matrix
} half_band_at;

// Rooms in floats, of one worker.
typedef struct half_shares {
    const gemm_tiles *tiles;
    int64_t panel;                // columns of a full inner tile
    int64_t rows, columns, depth; // of a tile of C; of a pass over k
    int64_t down, across, batch;  // how many tiles; how many products
    int64_t a_row, b_row, c_row;  // of the scratch_areas; b_row: of a B whose rows are n, before it is turned
    int64_t a_floats, b_floats, turned_floats, c_floats, bias_floats, own_floats;
    uint32_t threads;
    bool close_b;     // all columns of B are in the tile: rows are widened as they follow one another
    bool by_depth;    // threads share k; their sums are added in their order
    bool staged;      // A is the windows of an image:
    half_stage stage; // in bands of C's rows, or of k where A is turned
} half_shares;

typedef struct half_job {
    const half_multiply *p;
    const half_shares *u;
    float *scratch_areas;
} half_job;

// A tile of one of the products, with the scratch_areas of its worker.
typedef struct half_tile {
    half_matrix a, b, c;
    int64_t m, rows, n, columns;
    float *scratch_a, *scratch_b, *turned, *scratch_c, *bias;
} half_tile;

// Is A to be staged: windows of several neighbouring pixels, with all channels?
bool half_is_staged(const half_multiply *p);
// Bands of at most so many pixels, where a row of them is no more already.
half_stage half_stage_of(const half_multiply *p, int64_t pixels);
half_band_at half_band_on(const half_multiply *p, const half_stage *s, int64_t band);

// The columns [n, n + columns) of B at depth [k, k + g->depth), where `g` will read them. Panels come in their order.
void half_load_panel(const half_job *j, const half_tile *t, int64_t n, int64_t columns, int64_t k,
                     gemm_tile *g);
// What follows the last pass over k: bias, scale, activation.
void half_end_pass(const half_job *j, const half_tile *t, gemm_tile *g);
// Columns that an inner tile writes: whole registers, as the scratch of C has them.
int64_t half_whole_columns(const half_job *j, int64_t columns);

// The sum of the tile into its scratch: over all of k, the tile's rows being band `band`;
void half_sum_band(const half_job *j, const half_tile *t, int64_t band);
// or over the bands [begin, end) of k.
void half_sum_bands(const half_job *j, const half_tile *t, int64_t begin, int64_t end);

#endif
