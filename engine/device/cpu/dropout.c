// SPDX-License-Identifier: Apache-2.0
// Dropout: the words of ops/dropout.h for 1024 elements at a time, and what they decide. A result may lie over its operand.
#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "draw.h"
#include "simd.h"

enum { PIECE = 1024, GRAIN_PIECES = 8, GRAIN = 16384 };

typedef struct job {
    const void *x;
    void *y;
    hr_dtype type; // of both
    uint8_t *mask; // NULL: not asked for; DROPOUT_BWD_MASK: read
    uint64_t first_sample;
    int64_t per_sample, pieces; // elements, and pieces of PIECE elements of a sample
    dropout_draw draw;
} job;

typedef uint32_t u32x16 __attribute__((vector_size(64), aligned(4), may_alias));

// ---- drawing ----------------------------------------------------------------------------------------------

// One round of Philox4x32 (base/philox.c) on x0..x3 with the round's key.
#define ROUND(round)                                                                                         \
    do {                                                                                                     \
        const uint64_t p0 = (uint64_t)UINT32_C(0xD2511F53) * x0;                                             \
        const uint64_t p1 = (uint64_t)UINT32_C(0xCD9E8D57) * x2;                                             \
        x0 = (uint32_t)(p1 >> 32) ^ x1 ^ (k0 + (round)*UINT32_C(0x9E3779B9));                                \
        x1 = (uint32_t)p1;                                                                                   \
        x2 = (uint32_t)(p0 >> 32) ^ x3 ^ (k1 + (round)*UINT32_C(0xBB67AE85));                                \
        x3 = (uint32_t)p0;                                                                                   \
    } while (0)

// Sixteen calls and no carry: the first is a multiple of sixteen.
CPU_INLINE void draw_block(const dropout_draw *d, uint64_t block, uint64_t sample, uint32_t *word)
{
    const uint64_t first = block * DROPOUT_LANES;
    const uint32_t k0 = d->key.word[0], k1 = d->key.word[1];
    const uint32_t low = (uint32_t)first, high = (uint32_t)(first >> 32);
    const uint32_t sample_low = (uint32_t)sample, sample_high = (uint32_t)(sample >> 32);
    for (uint32_t c = 0; c < DROPOUT_LANES; c++) {
        uint32_t x0 = low + c, x1 = high, x2 = sample_low, x3 = sample_high;
        ROUND(0);
        ROUND(1);
        ROUND(2);
        ROUND(3);
        ROUND(4);
        ROUND(5);
        ROUND(6);
        ROUND(7);
        ROUND(8);
        ROUND(9);
        word[c] = x0;
        word[DROPOUT_LANES + c] = x1;
        word[2 * DROPOUT_LANES + c] = x2;
        word[3 * DROPOUT_LANES + c] = x3;
    }
}

CPU_HOT void draw_words(const dropout_draw *d, uint64_t sample, uint64_t first_block, int64_t blocks,
                        uint32_t *word)
{
    for (int64_t b = 0; b < blocks; b++) {
        draw_block(d, first_block + (uint64_t)b, sample, word + b * DROPOUT_BLOCK);
    }
}

// ---- deciding ---------------------------------------------------------------------------------------------

CPU_HOT static void apply(const uint32_t *words, const dropout_draw *d, const float *x, float *y,
                          uint8_t *mask, int64_t count)
{
    const uint32_t threshold = d->threshold;
    const float scale = (float)d->scale;
    for (int64_t i = 0; i < count; i += DROPOUT_LANES) {
        const uint32_t *word = words + i;
        const int64_t lanes = count - i < DROPOUT_LANES ? count - i : DROPOUT_LANES;
        for (int64_t k = 0; lanes < DROPOUT_LANES && k < lanes; k++) {
            y[i + k] = word[k] >= threshold ? x[i + k] * scale : 0.0f;
        }
        if (lanes == DROPOUT_LANES) {
            const u32x16 kept = (u32x16)(*(const u32x16 *)word >= threshold);
            F32X16W(y + i) = (f32x16)((u32x16)(F32X16(x + i) * scale) & kept);
        }
        for (int64_t k = 0; mask != NULL && k < lanes; k++) {
            mask[i + k] = word[k] >= threshold;
        }
    }
}

// Elements [at, at + count) of x become those of y.
static void drop_piece(const job *j, const uint32_t *words, int64_t at, int64_t count)
{
    uint8_t *mask = j->mask == NULL ? NULL : j->mask + at;
    if (j->type == HR_F32) {
        apply(words, &j->draw, (const float *)j->x + at, (float *)j->y + at, mask, count);
        return;
    }
    float scratch[PIECE];
    cast_widen(scratch, (const uint16_t *)j->x + at, j->type, count);
    apply(words, &j->draw, scratch, scratch, mask, count);
    cast_narrow((uint16_t *)j->y + at, j->type, scratch, count);
}

static void draw_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    uint32_t words[PIECE];
    (void)worker;
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t sample = piece / j->pieces, first = piece % j->pieces * PIECE;
        const int64_t left = j->per_sample - first, at = sample * j->per_sample + first;
        draw_words(&j->draw, j->first_sample + (uint64_t)sample, (uint64_t)(first / DROPOUT_BLOCK),
                   PIECE / DROPOUT_BLOCK, words);
        drop_piece(j, words, at, left < PIECE ? left : PIECE);
    }
}

// Forward and backward: of a gradient there is one output, and no mask is asked for.
static void run_draw(const cpu_run *r)
{
    const int64_t samples = r->query->out[0].shape.dim[0];
    const int64_t per_sample = cpu_elements_of(&r->query->out[0]) / samples;
    const job j = {.x = r->in[0],
                   .y = r->out[0],
                   .type = (hr_dtype)r->query->out[0].dtype,
                   .mask = r->query->out_count > 1 ? r->out[1] : NULL,
                   .first_sample = r->io->first_sample,
                   .per_sample = per_sample,
                   .pieces = (per_sample + PIECE - 1) / PIECE,
                   .draw = dropout_begin(&r->query->attr, r->io->seed, r->io->update)};
    workers_for(r->device->workers, samples * j.pieces, GRAIN_PIECES, draw_body, &j);
}

// ---- a kept mask ------------------------------------------------------------------------------------------

CPU_HOT static void masked_range(float *dx, const float *dy, const uint8_t *mask, float scale, int64_t begin,
                                 int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        dx[i] = dy[i] * (mask[i] != 0 ? scale : 0.0f);
    }
}

static void masked_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    masked_range(j->y, j->x, j->mask, (float)j->draw.scale, begin, end);
}

static void run_dropout_bwd_mask(const cpu_run *r)
{
    const job j = {.mask = r->in[0],
                   .x = r->in[1],
                   .y = r->out[0],
                   .draw = {.scale = 1.0 / (1.0 - r->query->attr.rate)}};
    workers_for(r->device->workers, cpu_elements_of(&r->query->out[0]), GRAIN, masked_body, &j);
}

// ---- of whole samples -----------------------------------------------------------------------------------------

typedef struct path_job {
    const void *x;
    void *y;
    hr_dtype type; // of both
    const float *factors;
    int64_t per_sample, pieces; // elements, and pieces of PIECE elements of a sample
} path_job;

CPU_HOT static void scale_range(float *y, const float *x, float factor, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        y[i] = x[i] * factor;
    }
}

static void path_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const path_job *j = argument;
    float scratch[PIECE];
    (void)worker;
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t sample = piece / j->pieces, first = piece % j->pieces * PIECE;
        const int64_t left = j->per_sample - first, at = sample * j->per_sample + first;
        const int64_t count = left < PIECE ? left : PIECE;
        if (j->type == HR_F32) {
            scale_range((float *)j->y + at, (const float *)j->x + at, j->factors[sample], count);
            continue;
        }
        cast_widen(scratch, (const uint16_t *)j->x + at, j->type, count);
        scale_range(scratch, scratch, j->factors[sample], count);
        cast_narrow((uint16_t *)j->y + at, j->type, scratch, count);
    }
}

static void multiply_samples(const cpu_run *r, const void *x, const float *factors)
{
    const op_operand *y = &r->query->out[0];
    const int64_t samples = y->shape.dim[0], per_sample = cpu_elements_of(y) / samples;
    const path_job j = {.x = x,
                        .y = r->out[0],
                        .type = (hr_dtype)y->dtype,
                        .factors = factors,
                        .per_sample = per_sample,
                        .pieces = (per_sample + PIECE - 1) / PIECE};
    workers_for(r->device->workers, samples * j.pieces, GRAIN / PIECE, path_body, &j);
}

static void run_drop_path(const cpu_run *r)
{
    const dropout_draw d = dropout_begin(&r->query->attr, r->io->seed, r->io->update);
    float *factors = r->out[1];
    for (int64_t n = 0; n < r->query->out[1].shape.dim[0]; n++) {
        factors[n] = (float)dropout_factor(&d, r->io->first_sample + (uint64_t)n);
    }
    multiply_samples(r, r->in[0], factors);
}

static void run_drop_path_bwd(const cpu_run *r)
{
    multiply_samples(r, r->in[1], r->in[0]);
}

const cpu_impl cpu_drop_path = {.name = "philox", .types = CPU_ANY_TYPE, .run = run_drop_path};
const cpu_impl cpu_drop_path_bwd = {.name = "loops", .types = CPU_ANY_TYPE, .run = run_drop_path_bwd};
const cpu_impl cpu_dropout = {.name = "philox", .types = CPU_ANY_TYPE, .run = run_draw};
const cpu_impl cpu_dropout_bwd = {.name = "philox", .types = CPU_ANY_TYPE, .run = run_draw};
const cpu_impl cpu_dropout_bwd_mask = {.name = "loops", .run = run_dropout_bwd_mask};
