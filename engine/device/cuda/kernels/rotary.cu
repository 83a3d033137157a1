// SPDX-License-Identifier: Apache-2.0
// Rotary positions: a thread per pair, which is read once and written once.
#include "map.cuh"
#include "rotary_args.h"

// The part of a turn at this place: whole turns are taken off before digits are lost.
__device__ __forceinline__ float part_of_turn(const rotary_args &a, int pair, float place)
{
    const float turns = place * a.turns[pair];
    const float lost = fmaf(place, a.turns[pair], -turns) + place * a.rest[pair];
    return (turns - rintf(turns)) + lost;
}

template <typename T, typename Index> __device__ __forceinline__ void turn_all(const rotary_args &a)
{
    const T *x = static_cast<const T *>(a.x);
    T *out = static_cast<T *>(a.out);
    const int64_t half = a.half.by;
    for (int64_t i = grid_thread(); i < a.pairs; i += grid_width()) {
        const Index head = quotient((Index)i, a.half), row = quotient(head, a.heads);
        const int pair = (int)(i - (int64_t)head * half);
        const int64_t place = (int64_t)row - (int64_t)quotient(row, a.length) * a.length.by;
        const int64_t at = (int64_t)head * 2 * half + pair;
        const float angle = 6.28318531f * part_of_turn(a, pair, (float)place);
        const float sine = a.direction * sinf(angle), cosine = cosf(angle);
        const float low = widen(x[at]), high = widen(x[at + half]);
        out[at] = narrow<T>(low * cosine - high * sine);
        out[at + half] = narrow<T>(high * cosine + low * sine);
    }
}

#define ROTARY(suffix, type)                                                                                 \
    extern "C" __global__ void rotary_##suffix(rotary_args a)                                                \
    {                                                                                                        \
        if (a.pairs <= INT32_MAX) {                                                                          \
            turn_all<type, uint32_t>(a);                                                                     \
        } else {                                                                                             \
            turn_all<type, uint64_t>(a);                                                                     \
        }                                                                                                    \
    }
FOR_REAL_TYPES(ROTARY)
