// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "attention.h"
#include "gemm_pack.h"
#include "ops/attention.h"
#include "simd.h"

attention_sizes attention_sizes_of(const op_query *q)
{
    const int64_t *d = q->in[0].shape.dim;
    const int64_t features = d[2] / q->attr.heads;
    return (attention_sizes){.samples = d[0],
                             .heads = q->attr.heads,
                             .queries = d[1],
                             .keys = q->in[1].shape.dim[1],
                             .width = d[2],
                             .features = features,
                             .padded = (features + CPU_LANES - 1) / CPU_LANES * CPU_LANES,
                             .scale = (float)op_attention_scale(&q->attr, features),
                             .causal = (q->attr.flags & OP_FLAG_CAUSAL) != 0,
                             .first_head = q->attr.offset,
                             .heads_of_sample = q->attr.count > 0 ? q->attr.count : q->attr.heads};
}

int64_t attention_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t attention_place(const attention_sizes *s, int64_t head, int64_t length)
{
    return head / s->heads * length * s->width + head % s->heads * s->features;
}

int64_t attention_keys_seen(const attention_sizes *s, int64_t q, int64_t count)
{
    return s->causal ? attention_min(q + count, s->keys) : s->keys;
}

int64_t attention_shift(const attention_sizes *s, int64_t q, int64_t k)
{
    return s->causal ? attention_min(q - k, ATTENTION_KEYS) : ATTENTION_KEYS;
}

// Rows [m, m + rows) of columns [n, n + columns), cut to the depth that they see.
static void multiply_tile(const gemm_tiles *tiles, const attention_product *p, int64_t m, int64_t rows,
                          int64_t n, int64_t columns)
{
    int64_t begin = 0, end = p->depth;
    if (p->cut == CUT_DEPTH_END) {
        end = attention_min(end, p->shift + m + rows);
    } else if (p->cut == CUT_DEPTH_BEGIN && m > p->shift) {
        begin = attention_min(end, m - p->shift);
    }
    const gemm_tile t = {.depth = end - begin,
                         .a = p->a + m * p->a_row + begin * p->a_step,
                         .a_row = p->a_row,
                         .a_step = p->a_step,
                         .b = p->b + begin * p->b_row + n,
                         .b_step = p->b_row,
                         .c = p->c + m * p->c_row + n,
                         .c_row = p->c_row,
                         .add = p->add};
    gemm_tile_run(tiles, &t, rows, columns);
}

void attention_multiply(const gemm_tiles *tiles, const attention_product *p)
{
    const int64_t width = (int64_t)tiles->vectors * tiles->lanes;
    for (int64_t n = 0; n < p->n; n += width) {
        const int64_t columns = attention_min(width, p->n - n);
        const int64_t m_end = p->cut == CUT_ROWS ? attention_min(p->m, p->shift + n + columns) : p->m;
        for (int64_t m = 0; m < m_end; m += tiles->rows) {
            multiply_tile(tiles, p, m, attention_min(tiles->rows, m_end - m), n, columns);
        }
    }
}

CPU_HOT static void scale_by(float *values, float scale, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] *= scale;
    }
}

void attention_turn(const attention_sizes *s, float *to, const float *from, int64_t count)
{
    if (count < ATTENTION_QUERIES) {
        memset(to, 0, (size_t)(s->features * ATTENTION_QUERIES) * sizeof *to);
    }
    gemm_transpose(to, ATTENTION_QUERIES, from, s->width, count, s->features);
    scale_by(to, s->scale, s->features * ATTENTION_QUERIES);
}

const float *attention_right(const attention_sizes *s, float *scratch, const float *from, int64_t count,
                             int64_t *row)
{
    if (s->features == s->padded) {
        *row = s->width;
        return from;
    }
    *row = s->padded;
    memset(scratch, 0, (size_t)(count * s->padded) * sizeof *scratch);
    for (int64_t i = 0; i < count; i++) {
        memcpy(scratch + i * s->padded, from + i * s->width, (size_t)s->features * sizeof *scratch);
    }
    return scratch;
}

// ---- dropout ----------------------------------------------------------------------------------------------

attention_dropout attention_dropout_of(const cpu_run *r)
{
    const op_attr *a = &r->query->attr;
    return a->rate > 0.0
               ? (attention_dropout){true, dropout_begin(a, r->io->seed, r->io->update), r->io->first_sample}
               : (attention_dropout){.drops = false};
}

CPU_HOT static void spread(const uint32_t *words, const dropout_draw *d, int64_t keys, float *factor)
{
    const uint32_t threshold = d->threshold;
    const float scale = (float)d->scale;
    for (int64_t k = 0; k < keys; k++) {
        factor[k * ATTENTION_QUERIES] = words[k] >= threshold ? scale : 0.0f;
    }
}

void attention_draw(const attention_dropout *d, const attention_sizes *s, int64_t head, int64_t q,
                    int64_t queries, int64_t k, int64_t keys, float *factor)
{
    enum { BLOCKS = ATTENTION_KEYS / DROPOUT_BLOCK + 1 }; // a row of keys may begin within a block
    uint32_t words[BLOCKS * DROPOUT_BLOCK];
    const int64_t place = s->first_head + head, row = place % s->heads_of_sample * s->queries;
    const uint64_t sample = d->first_sample + (uint64_t)(place / s->heads_of_sample);
    for (int64_t i = 0; i < queries; i++) {
        const uint64_t first = (uint64_t)((row + q + i) * s->keys + k);
        const int64_t before = (int64_t)(first % DROPOUT_BLOCK);
        draw_words(&d->draw, sample, first / DROPOUT_BLOCK,
                   (before + keys + DROPOUT_BLOCK - 1) / DROPOUT_BLOCK, words);
        spread(words + before, &d->draw, keys, factor + i);
    }
}

CPU_HOT void attention_drop(float *tile, const float *factor, int64_t keys)
{
    for (int64_t i = 0; i < keys * ATTENTION_QUERIES; i++) {
        tile[i] *= factor[i];
    }
}
