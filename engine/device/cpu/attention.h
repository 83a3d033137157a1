// SPDX-License-Identifier: Apache-2.0
// Private to attention*.c: what streaming attention and its gradient share.
//
// A tile of queries meets one tile of keys after another. Scores lie turned, [key][query], so that the queries of a
// row are lanes: maxima, sums and masks need no work across lanes, and every product reads its operands as they
// lie (gemm_tiles.h). The algorithm is that of Dao et al., "FlashAttention", arXiv:2205.14135, with the gradient
// recomputing each tile from the log-sum-exp of its rows.
#ifndef DEVICE_CPU_ATTENTION_H
#define DEVICE_CPU_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu.h"
#include "draw.h"
#include "gemm_tiles.h"

enum { ATTENTION_QUERIES = 64, ATTENTION_KEYS = 64 }; // of a tile; both multiples of CPU_LANES

typedef struct attention_sizes {
    int64_t samples, heads, queries, keys;
    int64_t width;    // of a row of q, k, v and y: all heads
    int64_t features; // of one head
    int64_t padded;   // features in whole registers of any machine
    float scale;
    bool causal;
    // Where these heads stand, when they are a tile of an operation with more (half_tile_query).
    int64_t first_head, heads_of_sample;
} attention_sizes;

// The dropout of weights.
typedef struct attention_dropout {
    bool drops;
    dropout_draw draw;
    uint64_t first_sample;
} attention_dropout;

attention_dropout attention_dropout_of(const cpu_run *r);
// factor[key][query] of a tile: 0 where a weight is dropped, else what it is multiplied with.
void attention_draw(const attention_dropout *d, const attention_sizes *s, int64_t head, int64_t q,
                    int64_t queries, int64_t k, int64_t keys, float *factor);
// tile[key][query] *= factor[key][query]
void attention_drop(float *tile, const float *factor, int64_t keys);

attention_sizes attention_sizes_of(const op_query *q);
int64_t attention_min(int64_t a, int64_t b);
// Where head number `head` (of samples * heads) begins in a sequence of `length`.
int64_t attention_place(const attention_sizes *s, int64_t head, int64_t length);
// The keys that the queries from q on, `count` of them, see together.
int64_t attention_keys_seen(const attention_sizes *s, int64_t q, int64_t count);
// Query i of a tile at q sees key j of a tile at k where j <= i + shift; ATTENTION_KEYS when it sees them all.
int64_t attention_shift(const attention_sizes *s, int64_t q, int64_t k);

// C[m,n] (+)= A[m,depth] · B[depth,n] between tiles. Element (i,k) of A lies at a[i * a_row + k * a_step]. Rows of B
// are read in whole registers. What no query sees is left out:
typedef enum attention_cut {
    CUT_ROWS,      // rows are keys, columns queries: keys behind the last query of a register are not written
    CUT_DEPTH_END, // rows are queries, depth is keys
    CUT_DEPTH_BEGIN, // rows are keys, depth is queries
} attention_cut;

typedef struct attention_product {
    int64_t m, n, depth;
    const float *a;
    int64_t a_row, a_step;
    const float *b;
    int64_t b_row;
    float *c;
    int64_t c_row;
    bool add;
    attention_cut cut;
    int64_t shift;
} attention_product;

void attention_multiply(const gemm_tiles *tiles, const attention_product *p);

// A tile [count, features] of a sequence (rows of `width`) turned and scaled: [features][ATTENTION_QUERIES], zeros
// behind the last query.
void attention_turn(const attention_sizes *s, float *to, const float *from, int64_t count);
// The same tile as right side of a product: where it lies if its rows are whole registers, else copied to `scratch`
// [count][padded]. *row: its row length.
const float *attention_right(const attention_sizes *s, float *scratch, const float *from, int64_t count,
                             int64_t *row);

#endif
