// SPDX-License-Identifier: Apache-2.0
// Adam whose moments are bytes: a block of 256 is decoded, updated in float32 and encoded again.
//
// The code of a ratio is found in two looks instead of a search over 256 values: its exponent and eight bits of its
// mantissa name a cell in which at most one boundary between codes lies, and one comparison tells the side.
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/code8.h"
#include "base/workers.h"
#include "cast.h"
#include "simd.h"
#include "update.h"

enum {
    OCTAVES = 24, // 2^-24 lies below half of the smallest value
    CELL_BITS = 8,
    MANTISSA_BITS = 23,
    FIRST_CELL = (127 - OCTAVES) << CELL_BITS, // of 2^-24
    CELLS = (OCTAVES << CELL_BITS) + 1,
    BLOCK_GRAIN = 32,
};

// Codes of [0, 1], counted from zero's.
typedef struct codec {
    float value[CODE8_VALUES];  // of every code
    float middle[CODE8_VALUES]; // between the values of code k and k + 1 above zero
    uint8_t cell[CELLS];
} codec;

static codec m_codec, v_codec;
static pthread_once_t codecs_once = PTHREAD_ONCE_INIT;

static float cell_begin(uint32_t cell)
{
    const uint32_t bits = (cell + FIRST_CELL) << (MANTISSA_BITS - CELL_BITS);
    float value = 0.0f;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void make_codec(codec *c, code8_kind kind)
{
    const uint32_t zero = kind == CODE8_SIGNED ? CODE8_VALUES / 2 - 1 : 0;
    code8_table(kind, c->value);
    for (uint32_t k = 0; k < CODE8_VALUES; k++) {
        c->middle[k] = zero + k + 1 < CODE8_VALUES ? (c->value[zero + k] + c->value[zero + k + 1]) / 2 : 2.0f;
    }
    for (uint32_t k = 0; k < CELLS; k++) {
        c->cell[k] = (uint8_t)(code8_nearest(c->value, k == 0 ? 0.0 : (double)cell_begin(k)) - zero);
    }
}

static void make_codecs(void)
{
    make_codec(&m_codec, CODE8_SIGNED);
    make_codec(&v_codec, CODE8_UNSIGNED);
}

// Steps above zero of a ratio in [0, 1].
CPU_INLINE uint32_t steps_of(const codec *c, float ratio)
{
    uint32_t bits = 0;
    memcpy(&bits, &ratio, sizeof bits);
    const uint32_t cell = bits >> (MANTISSA_BITS - CELL_BITS);
    const uint32_t steps = c->cell[cell < FIRST_CELL               ? 0
                                   : cell > FIRST_CELL + CELLS - 1 ? CELLS - 1
                                                                   : cell - FIRST_CELL];
    return steps + (ratio > c->middle[steps]);
}

CPU_INLINE uint8_t m_code(float ratio)
{
    enum { ZERO = CODE8_VALUES / 2 - 1 };
    const uint32_t steps = steps_of(&m_codec, fabsf(ratio));
    return (uint8_t)(ratio >= 0.0f ? ZERO + steps : ZERO - (steps < ZERO ? steps : ZERO)); // there is no -1
}

typedef struct job {
    void *w;
    const void *g;
    hr_dtype type; // of w and g
    float *scales;
    uint8_t *m, *v;
    int64_t elements, blocks;
    float rate, kept, keep1, keep2, epsilon;
} job;

typedef struct moments {
    float m[CODE8_BLOCK], v[CODE8_BLOCK];
    float w[CODE8_BLOCK], g[CODE8_BLOCK]; // of two bytes
    float m_largest, v_largest;
} moments;

CPU_INLINE void advance(const job *j, moments *b, float *restrict w, const float *restrict g, int64_t block,
                        int64_t count)
{
    const float m_scale = j->scales[block], v_scale = j->scales[j->blocks + block];
    const uint8_t *m = j->m + block * CODE8_BLOCK, *v = j->v + block * CODE8_BLOCK;
    for (int64_t i = 0; i < count; i++) {
        b->m[i] = m_codec.value[m[i]] * m_scale;
        b->v[i] = v_codec.value[v[i]] * v_scale;
    }
    for (int64_t i = 0; i < count; i++) {
        b->m[i] += (g[i] - b->m[i]) * j->keep1;
        b->v[i] += (g[i] * g[i] - b->v[i]) * j->keep2;
        w[i] = j->kept * w[i] - j->rate * b->m[i] / (sqrtf(b->v[i]) + j->epsilon);
    }
    b->m_largest = b->v_largest = 0.0f;
    for (int64_t i = 0; i < count; i++) {
        b->m_largest = fabsf(b->m[i]) > b->m_largest ? fabsf(b->m[i]) : b->m_largest;
        b->v_largest = b->v[i] > b->v_largest ? b->v[i] : b->v_largest;
    }
}

// A second moment that is not zero stays so: it divides.
CPU_INLINE void encode(const job *j, const moments *b, int64_t block, int64_t count)
{
    uint8_t *m = j->m + block * CODE8_BLOCK, *v = j->v + block * CODE8_BLOCK;
    for (int64_t i = 0; i < count; i++) {
        m[i] = m_code(b->m_largest > 0.0f ? b->m[i] / b->m_largest : 0.0f);
    }
    for (int64_t i = 0; i < count; i++) {
        const uint32_t code = steps_of(&v_codec, b->v_largest > 0.0f ? b->v[i] / b->v_largest : 0.0f);
        v[i] = (uint8_t)(code == 0 && b->v[i] > 0.0f ? 1 : code);
    }
    j->scales[block] = b->m_largest;
    j->scales[j->blocks + block] = b->v_largest;
}

CPU_INLINE void advance_block(const job *j, moments *b, int64_t block, int64_t count)
{
    const int64_t at = block * CODE8_BLOCK;
    if (j->type == HR_F32) {
        advance(j, b, (float *)j->w + at, (const float *)j->g + at, block, count);
        return;
    }
    uint16_t *w = (uint16_t *)j->w + at;
    cast_widen(b->w, w, j->type, count);
    cast_widen(b->g, (const uint16_t *)j->g + at, j->type, count);
    advance(j, b, b->w, b->g, block, count);
    cast_narrow(w, j->type, b->w, count);
}

CPU_HOT static void blocks_range(const job *j, int64_t begin, int64_t end)
{
    moments b;
    for (int64_t block = begin; block < end; block++) {
        const int64_t rest = j->elements - block * CODE8_BLOCK,
                      count = rest < CODE8_BLOCK ? rest : CODE8_BLOCK;
        advance_block(j, &b, block, count);
        encode(j, &b, block, count);
    }
}

static void blocks_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    blocks_range(argument, begin, end);
}

static hr_status prepare(const cpu_device *device, const program *p, const instr *i, const op_query *q,
                         void **state, hr_err *err)
{
    (void)device, (void)p, (void)i, (void)q, (void)err;
    *state = NULL;
    (void)pthread_once(&codecs_once, make_codecs);
    return HR_OK;
}

static void run(const cpu_run *r)
{
    const op_attr *a = &r->query->attr;
    const adam_step step = update_adam_step(r);
    const job j = {.w = r->in[0],
                   .g = r->in[1],
                   .type = (hr_dtype)r->query->in[0].dtype,
                   .m = r->in[2],
                   .v = r->in[3],
                   .scales = r->in[4],
                   .elements = cpu_elements_of(&r->query->in[0]),
                   .blocks = cpu_elements_of(&r->query->in[4]) / 2,
                   .rate = (float)step.rate,
                   .kept = update_kept(r),
                   .keep1 = (float)(1.0 - a->beta1),
                   .keep2 = (float)(1.0 - a->beta2),
                   .epsilon = (float)step.epsilon};
    if (!update_is_skipped(r)) {
        workers_for(r->device->workers, j.blocks, BLOCK_GRAIN, blocks_body, &j);
    }
}

const cpu_impl cpu_adam8bit = {
    .name = "blocks of 256", .types = CPU_ANY_TYPE, .prepare = prepare, .run = run};
