// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts (ops/experts.h): choices, their balance, and the ways between tokens and slots. A slot has one token
// at most, so that rows are sent without a sum; sums over choices have the order of the choices.
#include "experts_args.h"
#include "map.cuh"
#include "rows.cuh"

__device__ __forceinline__ int expert_of(int slot, int experts)
{
    return slot < 0 ? -1 - slot : slot % experts;
}

__device__ __forceinline__ float largest_of(const float *logits, int experts)
{
    float most = logits[0];
    for (int e = 1; e < experts; e++) {
        most = fmaxf(most, logits[e]);
    }
    return most;
}

__device__ __forceinline__ float exponentials(const float *logits, int experts, float most)
{
    float sum = 0.0f;
    for (int e = 0; e < experts; e++) {
        sum += expf(logits[e] - most);
    }
    return sum;
}

// ---- choice -------------------------------------------------------------------------------------------------------

// The largest logit behind the one of `before`: smaller, or as large and further on.
__device__ __forceinline__ int next_expert(const float *logits, int experts, int before)
{
    int best = -1;
    for (int e = 0; e < experts; e++) {
        const float z = logits[e];
        const bool behind = before < 0 || z < logits[before] || (z == logits[before] && e > before);
        best = behind && (best < 0 || z > logits[best]) ? e : best;
    }
    return best < 0 ? 0 : best; // logits that are not numbers
}

// A thread a token; slots are still experts.
extern "C" __global__ void route_choose(route_args a)
{
    for (int64_t t = grid_thread(); t < a.tokens; t += grid_width()) {
        const float *logits = a.logits + t * a.experts;
        float *gates = a.gates + t * a.chosen, sum = 0.0f, most = 0.0f;
        int expert = -1;
        for (int k = 0; k < a.chosen; k++) {
            expert = next_expert(logits, a.experts, expert);
            most = k == 0 ? logits[expert] : most;
            const float gate = expf(logits[expert] - most);
            a.slots[t * a.chosen + k] = expert;
            gates[k] = gate;
            sum += gate;
        }
        sum = a.shares ? sum : exponentials(logits, a.experts, most);
        for (int k = 0; k < a.chosen; k++) {
            gates[k] /= sum;
        }
    }
}

// A block a sample; a thread has every blockDim.x-th expert and walks the choices, rank by rank.
extern "C" __global__ void route_place(route_args a)
{
    SHARED int tile[EXPERTS_TILE];
    SHARED int used[EXPERTS_MOST];
    const int mine = (int)threadIdx.x, threads = (int)blockDim.x;
    for (int64_t n = blockIdx.x; n < a.samples; n += gridDim.x) {
        int32_t *slots = a.slots + n * a.length * a.chosen;
        for (int e = mine; e < a.experts; e += threads) {
            used[e] = 0;
        }
        for (int64_t at = 0; at < a.length * a.chosen; at += EXPERTS_TILE) {
            const int64_t left = a.length * a.chosen - at;
            const int count = left < EXPERTS_TILE ? (int)left : EXPERTS_TILE;
            __syncthreads();
            for (int i = mine; i < count; i += threads) {
                const int64_t k = (at + i) / a.length, t = at + i - k * a.length;
                tile[i] = slots[t * a.chosen + k];
            }
            __syncthreads();
            for (int e = mine; e < a.experts; e += threads) {
                for (int i = 0; i < count; i++) {
                    if (tile[i] == e) {
                        const int64_t k = (at + i) / a.length, t = at + i - k * a.length;
                        const int place = used[e]++;
                        slots[t * a.chosen + k] = place < a.capacity ? place * a.experts + e : -1 - e;
                    }
                }
            }
        }
        __syncthreads();
    }
}

extern "C" __global__ void route_bwd(route_args a)
{
    for (int64_t t = grid_thread(); t < a.tokens; t += grid_width()) {
        const float *logits = a.logits + t * a.experts, *dgates = a.dgates + t * a.chosen;
        float *d = a.dlogits + t * a.experts, gate[EXPERTS_CHOICES], sum = 0.0f, along = 0.0f;
        const float most = largest_of(logits, a.experts);
        for (int k = 0; k < a.chosen; k++) {
            gate[k] = expf(logits[expert_of(a.slots[t * a.chosen + k], a.experts)] - most);
            sum += gate[k];
        }
        sum = a.shares ? sum : exponentials(logits, a.experts, most);
        for (int k = 0; k < a.chosen; k++) {
            along += gate[k] / sum * dgates[k];
        }
        for (int e = 0; e < a.experts; e++) {
            d[e] = a.shares ? 0.0f : -expf(logits[e] - most) / sum * along;
        }
        for (int k = 0; k < a.chosen; k++) {
            d[expert_of(a.slots[t * a.chosen + k], a.experts)] = gate[k] / sum * (dgates[k] - along);
        }
    }
}

// ---- balance ------------------------------------------------------------------------------------------------------

// How many choices of sample n each expert is.
__device__ __forceinline__ void count_choices(const route_args &a, int64_t n, int *count)
{
    const int32_t *slots = a.slots + n * a.length * a.chosen;
    __syncthreads();
    for (int e = (int)threadIdx.x; e < a.experts; e += (int)blockDim.x) {
        count[e] = 0;
    }
    __syncthreads();
    for (int64_t k = threadIdx.x; k < a.length * a.chosen; k += blockDim.x) {
        atomicAdd(&count[expert_of(slots[k], a.experts)], 1);
    }
    __syncthreads();
}

// A block a sample.
extern "C" __global__ void balance_parts(route_args a)
{
    SHARED int count[EXPERTS_MOST];
    SHARED double room[WARP];
    for (int64_t n = blockIdx.x; n < a.samples; n += gridDim.x) {
        double total = 0.0;
        count_choices(a, n, count);
        for (int64_t t = threadIdx.x; t < a.length; t += blockDim.x) {
            const float *logits = a.logits + (n * a.length + t) * a.experts;
            const float most = largest_of(logits, a.experts);
            float sum = 0.0f, chosen = 0.0f;
            for (int e = 0; e < a.experts; e++) {
                const float p = expf(logits[e] - most);
                sum += p;
                chosen += p * (float)count[e];
            }
            total += (double)(chosen / sum);
        }
        total = block_total(total, room);
        if (threadIdx.x == 0) {
            a.partial[n] = total;
        }
    }
}

extern "C" __global__ void balance_finish(route_args a)
{
    double total = 0.0;
    for (int64_t n = 0; grid_thread() == 0 && n < a.samples; n++) {
        total += a.partial[n];
    }
    if (grid_thread() == 0) {
        *a.loss = (float)(a.factor * total);
    }
}

extern "C" __global__ void balance_bwd(route_args a)
{
    SHARED int count[EXPERTS_MOST];
    const float share = a.scale != nullptr ? a.share * *a.scale : a.share;
    for (int64_t n = blockIdx.x; n < a.samples; n += gridDim.x) {
        count_choices(a, n, count);
        for (int64_t t = threadIdx.x; t < a.length; t += blockDim.x) {
            const int64_t at = (n * a.length + t) * a.experts;
            const float *logits = a.logits + at;
            const float most = largest_of(logits, a.experts);
            float sum = 0.0f, along = 0.0f;
            for (int e = 0; e < a.experts; e++) {
                const float p = expf(logits[e] - most);
                sum += p;
                along += p * (float)count[e];
            }
            for (int e = 0; e < a.experts; e++) {
                a.dlogits[at + e] = share * (expf(logits[e] - most) / sum) * ((float)count[e] - along / sum);
            }
        }
    }
}

// ---- there and back -----------------------------------------------------------------------------------------------

// The row of the slot that this choice of all has; -1: none.
template <typename Index> __device__ __forceinline__ int64_t slot_row(const way_args &a, Index choice)
{
    const int slot = a.slots[choice];
    const Index token = quotient(choice, a.chosen);
    return slot < 0 ? -1 : (int64_t)quotient(token, a.length) * a.room + slot;
}

// A unit of every choice's row, into slots that are zeros.
template <typename Unit, typename Index> __device__ __forceinline__ void send_all(const way_args &a)
{
    const Unit *from = static_cast<const Unit *>(a.from);
    Unit *to = static_cast<Unit *>(a.to);
    for (int64_t i = grid_thread(); i < a.count; i += grid_width()) {
        const Index choice = quotient((Index)i, a.row);
        const int64_t unit = i - (int64_t)choice * a.row.by, row = slot_row(a, choice);
        if (row >= 0) {
            to[row * a.row.by + unit] = from[(int64_t)quotient(choice, a.chosen) * a.row.by + unit];
        }
    }
}

#define SEND(bytes, Unit)                                                                                    \
    extern "C" __global__ void dispatch_##bytes(way_args a)                                                  \
    {                                                                                                        \
        if (a.count <= INT32_MAX) {                                                                          \
            send_all<Unit, uint32_t>(a);                                                                     \
        } else {                                                                                             \
            send_all<Unit, uint64_t>(a);                                                                     \
        }                                                                                                    \
    }
typedef pack<uint32_t, 4> sixteen_bytes;
typedef pack<uint32_t, 2> eight_bytes;
SEND(2, uint16_t)
SEND(4, uint32_t)
SEND(8, eight_bytes)
SEND(16, sixteen_bytes)

// A vector of every token: the sum over its choices.
template <typename T, int V, typename Index> __device__ __forceinline__ void collect_all(const way_args &a)
{
    const T *from = static_cast<const T *>(a.from);
    T *to = static_cast<T *>(a.to);
    for (int64_t i = grid_thread(); i < a.count; i += grid_width()) {
        const Index token = quotient((Index)i, a.row);
        const int64_t at = (i - (int64_t)token * a.row.by) * V;
        float sum[V] = {};
        for (int64_t k = 0; k < a.chosen.by; k++) {
            const Index choice = (Index)(token * a.chosen.by + k);
            const int64_t row = slot_row(a, choice);
            if (row >= 0) {
                const float gate = a.gates != nullptr ? a.gates[choice] : 1.0f;
                float v[V];
                load_pack<T, V>(from + row * a.features + at, v);
#pragma unroll
                for (int lane = 0; lane < V; lane++) {
                    sum[lane] += gate * v[lane];
                }
            }
        }
        store_pack<T, V>(to + (int64_t)token * a.features + at, sum);
    }
}

// A warp a choice: what its slot gets, into slots that are zeros, and its gate's gradient.
template <typename T, int V> __device__ __forceinline__ void give_back(const way_args &a)
{
    const T *y = static_cast<const T *>(a.from), *dz = static_cast<const T *>(a.dz);
    T *dy = static_cast<T *>(a.to);
    const warp_team team;
    for (int64_t choice = team.first_row(); choice < a.count; choice += team.row_step()) {
        const int64_t row = slot_row(a, (uint64_t)choice);
        const T *z = dz + choice / a.chosen.by * a.features;
        const float gate = a.gates[choice];
        float sum = 0.0f;
        walk<V, 0>(team, row < 0 ? 0 : a.features, [&](int, int64_t i) {
            float v[V], g[V];
            load_pack<T, V>(y + row * a.features + i, v);
            load_pack<T, V>(z + i, g);
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                sum += v[lane] * g[lane];
                g[lane] *= gate;
            }
            store_pack<T, V>(dy + row * a.features + i, g);
        });
        sum = team.sum(sum);
        if (team.rank() == 0) {
            a.dgates[choice] = sum;
        }
    }
}

#define WAYS(suffix, type, width, n)                                                                         \
    extern "C" __global__ void gather_##width##_##suffix(way_args a)                                         \
    {                                                                                                        \
        if (a.count <= INT32_MAX) {                                                                          \
            collect_all<type, n, uint32_t>(a);                                                               \
        } else {                                                                                             \
            collect_all<type, n, uint64_t>(a);                                                               \
        }                                                                                                    \
    }                                                                                                        \
    extern "C" __global__ void gather_bwd_##width##_##suffix(way_args a)                                     \
    {                                                                                                        \
        give_back<type, n>(a);                                                                               \
    }
#define OF_TYPE(suffix, type)                                                                                \
    WAYS(suffix, type, wide, lanes<type>::count)                                                             \
    WAYS(suffix, type, narrow, 1)
FOR_REAL_TYPES(OF_TYPE)
