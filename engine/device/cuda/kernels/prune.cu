// SPDX-License-Identifier: Apache-2.0
// Pruning by magnitude (ops/prune.h), of many kernels in one launch. In most updates every block zeroes its part. Where a mask is
// made of whole units, the first block of an item does it alone: it finds the score of the last unit that stays by counting, 11, 10 and 10
// bits of the scores at a time. So no workspace is needed and the host decides nothing inside of a captured step.
#include "group.cuh"
#include "prune_args.h"

#define DIGITS_MAX 2048

enum { ACT_NOTHING, ACT_MASK, ACT_MAKE };                       // prune_act
enum { RULE_ELEMENTS, RULE_BLOCKS, RULE_GROUPS, RULE_FILTERS }; // op_prune_rule

__device__ __forceinline__ uint32_t score_of(float x)
{
    return __float_as_uint(x) & 0x7fffffffu;
}

// Neighbours of a unit, `pitch` apart (prune_region).
struct region {
    int64_t first, lines, width, pitch;
};

template <typename T> struct units {
    const prune_args &a;
    const prune_item &item;
    const T *w;
    int64_t rows, across;

    __device__ __forceinline__ units(const prune_args &args, const prune_item &of)
        : a(args), item(of), w(static_cast<const T *>(of.w)), rows(0), across(0)
    {
        if (a.rule == RULE_BLOCKS) {
            rows = item.count / item.side;
            across = (item.side + a.width - 1) / a.width;
        }
    }
    __device__ __forceinline__ int64_t count() const
    {
        return a.rule == RULE_ELEMENTS  ? item.count
               : a.rule == RULE_FILTERS ? item.side
                                        : across * ((rows + a.height - 1) / a.height);
    }
    __device__ __forceinline__ region of(int64_t unit) const
    {
        if (a.rule == RULE_ELEMENTS) {
            return region{unit, 1, 1, 0};
        }
        if (a.rule == RULE_FILTERS) {
            const int64_t pitch = item.side * item.step;
            return region{unit * item.step, item.count / pitch, item.step, pitch};
        }
        const int64_t row = unit / across * a.height, column = unit % across * a.width;
        return region{row * item.side + column, rows - row < a.height ? rows - row : a.height,
                      item.side - column < a.width ? item.side - column : a.width, item.side};
    }
    // prune_window
    __device__ __forceinline__ static void window(int64_t side, int size, int64_t index, int64_t &begin,
                                                  int64_t &end)
    {
        const int64_t missing = (side + size - 1) / size * size - side, first = index * size - missing / 2;
        begin = first < 0 ? 0 : first;
        end = first + size < side ? first + size : side;
    }
    __device__ float block_mean(int64_t unit) const
    {
        int64_t top, bottom, left, right;
        window(rows, a.height, unit / across, top, bottom);
        window(item.side, a.width, unit % across, left, right);
        float sum = 0.0f;
        for (int64_t k = left; k < right; k++) {
            float down = 0.0f;
            for (int64_t i = top; i < bottom; i++) {
                down += fabsf(widen(w[i * item.side + k]));
            }
            sum += down / (float)(bottom - top);
        }
        return sum / (float)(right - left);
    }
    __device__ float filter_sum(int64_t unit) const
    {
        const region r = of(unit);
        float sum = 0.0f;
        for (int64_t n = 0; n < r.lines; n++) {
            for (int64_t i = 0; i < r.width; i++) {
                sum += fabsf(widen(w[r.first + n * r.pitch + i]));
            }
        }
        return sum;
    }
    __device__ __forceinline__ uint32_t score(int64_t unit) const
    {
        return score_of(a.rule == RULE_BLOCKS    ? block_mean(unit)
                        : a.rule == RULE_FILTERS ? filter_sum(unit)
                                                 : widen(w[unit]));
    }
};

// ---- the score of the last unit that stays, found by one block ------------------------------------------------------

struct chosen {
    uint32_t threshold;
    uint32_t unused;
    int64_t kept; // of those that have the bits so far
};

template <typename T>
__device__ void choose_digit(const units<T> &all, int shift, int bits, uint32_t *count, chosen *c)
{
    const int64_t units_here = all.count();
    const uint32_t prefix = c->threshold;
    for (int k = threadIdx.x; k < DIGITS_MAX; k += blockDim.x) {
        count[k] = 0;
    }
    __syncthreads();
    for (int64_t k = threadIdx.x; k < units_here; k += blockDim.x) {
        const uint64_t own = all.score(k);
        if (own >> (shift + bits) == (uint64_t)prefix >> (shift + bits)) {
            atomicAdd(&count[(uint32_t)own >> shift & ((1u << bits) - 1)], 1u);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t digit = (1u << bits) - 1;
        for (; digit > 0 && (int64_t)count[digit] < c->kept; digit--) {
            c->kept -= count[digit];
        }
        c->threshold = prefix | digit << shift;
    }
    __syncthreads();
}

template <typename T> __device__ void mask_units(const prune_args &a, const prune_item &item)
{
    SHARED uint32_t count[DIGITS_MAX];
    SHARED chosen c;
    const units<T> all(a, item);
    if (threadIdx.x == 0) {
        c.threshold = 0;
        c.kept = item.scalars->kept;
    }
    __syncthreads();
    choose_digit(all, 20, 11, count, &c);
    choose_digit(all, 10, 10, count, &c);
    choose_digit(all, 0, 10, count, &c);
    T *mask = static_cast<T *>(item.mask), *w = static_cast<T *>(item.w);
    for (int64_t k = threadIdx.x; k < all.count(); k += blockDim.x) {
        const region r = all.of(k);
        const T stays = narrow<T>(all.score(k) >= c.threshold ? 1.0f : 0.0f);
        for (int64_t n = 0; n < r.lines; n++) {
            for (int64_t i = 0; i < r.width; i++) {
                mask[r.first + n * r.pitch + i] = stays;
            }
        }
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < item.count; i += blockDim.x) {
        if (widen(mask[i]) == 0.0f) {
            w[i] = narrow<T>(0.0f);
        }
    }
}

// ---- runs, a thread each --------------------------------------------------------------------------------------------

// Of equal ones the first comes first.
template <typename T>
__device__ __forceinline__ bool stays(const T *w, int64_t step, int64_t size, int64_t place, int stay)
{
    const uint32_t own = score_of(widen(w[place * step]));
    int before = 0;
    for (int64_t k = 0; k < size; k++) {
        const uint32_t other = score_of(widen(w[k * step]));
        before += other > own || (other == own && k < place);
    }
    return before < stay;
}

template <typename T> __device__ void mask_groups(const prune_args &a, const group_place &here)
{
    const prune_item &item = a.item[here.item];
    const int64_t per_side = (item.side + a.width - 1) / a.width, lines = item.count / item.side;
    for (int64_t run = here.thread; run < lines * per_side; run += here.width) {
        const int64_t line = run / per_side, begin = run % per_side * a.width;
        const int64_t left = item.side - begin, size = left < a.width ? left : a.width;
        const int64_t at = line / item.step * item.side * item.step + begin * item.step + line % item.step;
        T *w = static_cast<T *>(item.w) + at, *mask = static_cast<T *>(item.mask) + at;
        for (int64_t k = 0; k < size; k++) {
            mask[k * item.step] = narrow<T>(stays(w, item.step, size, k, a.width - a.height) ? 1.0f : 0.0f);
        }
        for (int64_t k = 0; k < size; k++) {
            if (widen(mask[k * item.step]) == 0.0f) {
                w[k * item.step] = narrow<T>(0.0f);
            }
        }
    }
}

// ---- what is masked -------------------------------------------------------------------------------------------------

template <typename T, int N> __device__ __forceinline__ void zero_at(const prune_item &item, int64_t at)
{
    typedef pack<T, N> piece;
    piece w = *reinterpret_cast<const piece *>(static_cast<const T *>(item.w) + at);
    const piece mask = *reinterpret_cast<const piece *>(static_cast<const T *>(item.mask) + at);
#pragma unroll
    for (int i = 0; i < N; i++) {
        w.at[i] = widen(mask.at[i]) == 0.0f ? narrow<T>(0.0f) : w.at[i];
    }
    *reinterpret_cast<piece *>(static_cast<T *>(item.w) + at) = w;
}

template <typename T> __device__ void zero_masked(const group_place &here, const prune_item &item)
{
    constexpr int n = lanes<T>::count;
    const int64_t packs = item.count / n;
    for (int64_t i = here.thread; i < packs; i += here.width) {
        zero_at<T, n>(item, i * n);
    }
    for (int64_t i = packs * n + here.thread; i < item.count; i += here.width) {
        zero_at<T, 1>(item, i);
    }
}

template <typename T> __device__ void prune_all(const prune_args &a)
{
    const group_place here(a.blocks);
    const prune_item &item = a.item[here.item];
    const int act = item.scalars->act;
    if ((a.finite != nullptr && *a.finite == 0) || act == ACT_NOTHING) {
        return;
    }
    if (act == ACT_MASK) {
        zero_masked<T>(here, item);
    } else if (a.rule == RULE_GROUPS) {
        mask_groups<T>(a, here);
    } else if (here.thread < blockDim.x) { // the first block of the item, all of it
        mask_units<T>(a, item);
    }
}

#define PRUNE(suffix, type)                                                                                  \
    extern "C" __global__ void prune_##suffix(prune_args a)                                                  \
    {                                                                                                        \
        prune_all<type>(a);                                                                                  \
    }
FOR_REAL_TYPES(PRUNE)

// ---- what follows a kernel ------------------------------------------------------------------------------------------

template <typename T> __device__ __forceinline__ void prune_channels(const prune_channels_args &a)
{
    T *w = static_cast<T *>(a.w);
    const T *mask = static_cast<const T *>(a.mask);
    for (int64_t i = grid_thread(); i < a.count; i += grid_width()) {
        const int64_t from = i % a.last % a.pitch - a.offset;
        if (from >= 0 && from < a.filters * a.each && widen(mask[from / a.each * a.step]) == 0.0f) {
            w[i] = narrow<T>(0.0f);
        }
    }
}

#define PRUNE_CHANNELS(suffix, type)                                                                         \
    extern "C" __global__ void prune_channels_##suffix(prune_channels_args a)                                \
    {                                                                                                        \
        prune_channels<type>(a);                                                                             \
    }
FOR_REAL_TYPES(PRUNE_CHANNELS)
