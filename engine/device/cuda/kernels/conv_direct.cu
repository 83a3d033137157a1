// SPDX-License-Identifier: Apache-2.0
// Convolutions as matrix products whose left side is gathered from the image, on ordinary multiply-add units: no
// workspace, every shape. A block makes 128 × 64 of the result 16 products at a time; a thread has 8 × 4, so that 32
// multiply-adds go with 12 floats from shared memory, and holds the next 16 in registers meanwhile.
//
//     forward     rows = pixels of y,  columns = filters,   depth = taps × channels
//     data        rows = pixels of x,  columns = channels,  depth = taps × filters; with strides, pixels are taken by
//                 their remainder, which all have the same taps, so that nothing is multiplied with absent pixels
//     weights     rows = taps × channels,  columns = filters,  depth = pixels of y, in parts when blocks are few
#include "conv_direct_args.h"
#include "kernel.cuh"

namespace
{

constexpr int HIGH = CONV_TILE_ROWS, WIDE = CONV_TILE_COLUMNS, DEEP = CONV_TILE_DEPTH, THREADS = CONV_THREADS;
constexpr int ROWS = 8, COLUMNS = 4, ACROSS = WIDE / COLUMNS;

using four = pack<float, 4>;

// Two of each: one is read while the other is filled.
struct tiles {
    float left[2][DEEP * HIGH];  // [depth][row]
    float right[2][DEEP * WIDE]; // [depth][column]
};

// What a thread brings from memory for one step.
struct cargo {
    float left[ROWS], right[COLUMNS];
};

template <typename T, int n> __device__ __forceinline__ void take(const T *from, float *to)
{
    constexpr int at_once = n < lanes<T>::count ? n : lanes<T>::count;
#pragma unroll
    for (int i = 0; i < n; i += at_once) {
        const pack<T, at_once> v = *reinterpret_cast<const pack<T, at_once> *>(from + i);
#pragma unroll
        for (int k = 0; k < at_once; k++) {
            to[i + k] = widen(v.at[k]);
        }
    }
}

__device__ __forceinline__ void put_four(float *to, const float *from)
{
    four v;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        v.at[k] = from[k];
    }
    *reinterpret_cast<four *>(to) = v;
}

__device__ __forceinline__ void multiply(float (&sum)[ROWS][COLUMNS], const float *left, const float *right)
{
    const int row = threadIdx.x / ACROSS * ROWS, column = threadIdx.x % ACROSS * COLUMNS;
#pragma unroll
    for (int k = 0; k < DEEP; k++) {
        const four low = *reinterpret_cast<const four *>(left + k * HIGH + row);
        const four high = *reinterpret_cast<const four *>(left + k * HIGH + row + 4);
        const four b = *reinterpret_cast<const four *>(right + k * WIDE + column);
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                sum[i][c] += low.at[i] * b.at[c];
                sum[i + 4][c] += high.at[i] * b.at[c];
            }
        }
    }
}

// sum = left · right over `steps` of DEEP; `load(step, cargo)` fetches, `store(cargo, left, right)` puts down.
template <typename Load, typename Store>
__device__ __forceinline__ void product(float (&sum)[ROWS][COLUMNS], tiles &t, int64_t steps, Load load,
                                        Store store)
{
#pragma unroll
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        sum[i / COLUMNS][i % COLUMNS] = 0.0f;
    }
    cargo next;
    if (steps > 0) {
        load(next);
        store(next, t.left[0], t.right[0]);
    }
    __syncthreads();
    for (int64_t step = 0; step < steps; step++) {
        const int now = (int)(step % 2);
        if (step + 1 < steps) {
            load(next);
        }
        multiply(sum, t.left[now], t.right[now]);
        if (step + 1 < steps) {
            store(next, t.left[1 - now], t.right[1 - now]);
        }
        __syncthreads();
    }
}

// A place in the depth of a product: a tap and a channel of its group.
struct place {
    int h, w, c;
};

__device__ __forceinline__ void advance(place &p, int by, int channels, int taps_w)
{
    p.c += by;
    while (p.c >= channels) {
        p.c -= channels;
        p.w++;
        if (p.w == taps_w) {
            p.w = 0;
            p.h++;
        }
    }
}

// One axis of the pixels that a block may have as rows, and of the taps that reach them.
struct axis {
    int first, step, count;  // pixels of the result: first, first + step, …
    int tap, tap_step, taps; // of the kernel
    int from, from_step;     // the gathered image's pixel of tap 0: from + i·from_step
    int apart;               // tap t's pixel lies t·apart behind it, in a data gradient before it
};

__device__ __forceinline__ axis axis_forward(int result, int kernel, int stride, int apart, int pad)
{
    return axis{0, 1, result, 0, 1, kernel, -pad, stride, apart};
}

__device__ __forceinline__ int common_divisor(int a, int b)
{
    while (b != 0) {
        const int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// Pixels i with (i + pad) % stride = part: the taps t with t·apart % stride = part reach them, which are one of every
// stride / common divisor.
__device__ __forceinline__ axis axis_data(int result, int kernel, int stride, int apart, int pad, int part)
{
    const int first = ((part - pad) % stride + stride) % stride, common = common_divisor(apart, stride);
    const int step = stride / common;
    int tap = apart == 1 ? part : 0;
    while (tap < kernel && tap * apart % stride != part) {
        tap++;
    }
    return axis{first,
                stride,
                first < result ? (result - first + stride - 1) / stride : 0,
                tap,
                step,
                tap < kernel ? (kernel - tap + step - 1) / step : 0,
                (first + pad - tap * apart) / stride,
                1,
                apart / common};
}

struct pixel {
    int64_t n;
    int h, w; // on the axes
};

__device__ __forceinline__ pixel pixel_of(int64_t row, int count_h, int count_w)
{
    const int64_t line = row / count_w;
    return pixel{line / count_h, (int)(line % count_h), (int)(row % count_w)};
}

__device__ __forceinline__ void next_pixel(pixel &p, int by, int count_h, int count_w)
{
    p.w += by;
    while (p.w >= count_w) {
        p.w -= count_w;
        p.h++;
        if (p.h == count_h) {
            p.h = 0;
            p.n++;
        }
    }
}

__device__ __forceinline__ float activated(float x, int act)
{
    x = act != 0 && x < 0.0f ? 0.0f : x;
    return act == 2 && x > 6.0f ? 6.0f : x;
}

// ---- forward and data gradient ------------------------------------------------------------------------------------

// The image that is gathered (x forward, y for the data gradient) and the one that is made.
struct sides {
    const void *from;
    int from_h, from_w, from_c, from_group;
    int to_h, to_w, to_c, to_group;
};

template <bool DATA> __device__ __forceinline__ sides sides_of(const conv_direct_args &a)
{
    return DATA ? sides{a.y, a.y_h, a.y_w, a.y_c, a.group_f, a.x_h, a.x_w, a.x_c, a.group_c}
                : sides{a.x, a.x_h, a.x_w, a.x_c, a.group_c, a.y_h, a.y_w, a.y_c, a.group_f};
}

// Fetches rows of pixels and their weights, DEEP further at every call.
template <typename T, bool DATA> struct gatherer {
    const conv_direct_args &a;
    const sides &s;
    const axis &h, &w;
    const T *image;       // of this thread's sample, at the group
    int pixel_h, pixel_w; // of tap 0, for this thread's row
    bool inside;
    place left, right; // where this thread reads next
    int64_t deep;      // forward: the same as `right`, counted through
    int group, column; // first column of the block, in its group

    __device__ __forceinline__ bool reaches(const place &p, int &ih, int &iw) const
    {
        ih = DATA ? pixel_h - p.h * h.apart : pixel_h + p.h * h.apart;
        iw = DATA ? pixel_w - p.w * w.apart : pixel_w + p.w * w.apart;
        return inside && p.h < h.taps && ih >= 0 && ih < s.from_h && iw >= 0 && iw < s.from_w;
    }
    __device__ __forceinline__ void fetch_left(float (&to)[ROWS])
    {
        int ih, iw;
        if (s.from_group % ROWS == 0) {
            if (reaches(left, ih, iw)) {
                take<T, ROWS>(image + ((int64_t)ih * s.from_w + iw) * s.from_c + left.c, to);
                return;
            }
#pragma unroll
            for (int k = 0; k < ROWS; k++) {
                to[k] = 0.0f;
            }
            return;
        }
        place p = left;
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const bool there = reaches(p, ih, iw);
            to[k] = there ? widen(image[((int64_t)ih * s.from_w + iw) * s.from_c + p.c]) : 0.0f;
            advance(p, 1, s.from_group, w.taps);
        }
    }
    // Filters lie side by side: this thread has four columns of one depth.
    __device__ __forceinline__ void fetch_right_forward(float (&to)[COLUMNS])
    {
        const int mine = column + threadIdx.x % ACROSS * COLUMNS;
        const int64_t depth = (int64_t)a.kernel_h * a.kernel_w * a.group_c;
        const T *at = static_cast<const T *>(a.w) + deep * a.y_c + group * a.group_f + mine;
        if (a.group_f % COLUMNS == 0 && deep < depth && mine < a.group_f) {
            take<T, COLUMNS>(at, to);
            return;
        }
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            to[k] = deep < depth && mine + k < a.group_f ? widen(at[k]) : 0.0f;
        }
    }
    __device__ __forceinline__ const T *weight_of(const place &p, int channel) const
    {
        const int64_t tap = (int64_t)(h.tap + h.tap_step * p.h) * a.kernel_w + w.tap + w.tap_step * p.w;
        return static_cast<const T *>(a.w) + (tap * a.group_c + channel) * a.y_c + group * a.group_f + p.c;
    }
    // Here the depth lies side by side: this thread has one column and four places of the depth.
    __device__ __forceinline__ void fetch_right_data(float (&to)[COLUMNS])
    {
        const int mine = column + threadIdx.x % WIDE;
        if (a.group_f % COLUMNS == 0 && right.h < h.taps && mine < a.group_c) {
            take<T, COLUMNS>(weight_of(right, mine), to);
            return;
        }
        place p = right;
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            to[k] = p.h < h.taps && mine < a.group_c ? widen(*weight_of(p, mine)) : 0.0f;
            advance(p, 1, a.group_f, w.taps);
        }
    }
    __device__ __forceinline__ void operator()(cargo &c)
    {
        fetch_left(c.left);
        advance(left, DEEP, s.from_group, w.taps);
        if constexpr (DATA) {
            fetch_right_data(c.right);
            advance(right, DEEP, s.from_group, w.taps);
        } else {
            fetch_right_forward(c.right);
            deep += DEEP;
        }
    }
};

template <bool DATA> struct putter {
    __device__ __forceinline__ void operator()(const cargo &c, float *left, float *right) const
    {
        const int row = threadIdx.x % HIGH, deep = threadIdx.x / HIGH * ROWS;
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            left[(deep + k) * HIGH + row] = c.left[k];
        }
        if constexpr (!DATA) {
            put_four(right + threadIdx.x / ACROSS * WIDE + threadIdx.x % ACROSS * COLUMNS, c.right);
        } else {
#pragma unroll
            for (int k = 0; k < COLUMNS; k++) {
                right[(threadIdx.x / WIDE * COLUMNS + k) * WIDE + threadIdx.x % WIDE] = c.right[k];
            }
        }
    }
};

template <typename T, bool DATA>
__device__ __forceinline__ void write_pixels(const conv_direct_args &a, const sides &s, const axis &h,
                                             const axis &w, const float (&sum)[ROWS][COLUMNS],
                                             int64_t first_row, int group, int first_column)
{
    const int column = first_column + threadIdx.x % ACROSS * COLUMNS;
    const int64_t row = first_row + threadIdx.x / ACROSS * ROWS, rows = a.samples * h.count * w.count;
    const bool whole = s.to_c % COLUMNS == 0 && s.to_group % COLUMNS == 0;
    if (row >= rows || column >= s.to_group) {
        return;
    }
    float bias[COLUMNS];
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        bias[c] = a.bias != nullptr && column + c < s.to_group
                      ? widen(static_cast<const T *>(a.bias)[group * s.to_group + column + c])
                      : 0.0f;
    }
    pixel p = pixel_of(row, h.count, w.count);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (row + r >= rows) {
            return;
        }
        const int64_t line = p.n * s.to_h + h.first + (int64_t)h.step * p.h;
        const int64_t at =
            (line * s.to_w + w.first + (int64_t)w.step * p.w) * s.to_c + group * s.to_group + column;
        pack<T, COLUMNS> v;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            v.at[c] = narrow<T>(activated(sum[r][c] + bias[c], a.act));
            if (!whole && column + c < s.to_group) {
                static_cast<T *>(a.out)[at + c] = v.at[c];
            }
        }
        if (whole) {
            *reinterpret_cast<pack<T, COLUMNS> *>(static_cast<T *>(a.out) + at) = v;
        }
        next_pixel(p, 1, h.count, w.count);
    }
}

// blockIdx.x: columns of a group fastest, then groups, parts of the pixels, rows: neighbours share what they gather.
template <typename T, bool DATA> __device__ __forceinline__ void pixels(const conv_direct_args &a)
{
    SHARED tiles t;
    const sides s = sides_of<DATA>(a);
    const int column_tiles = (s.to_group + WIDE - 1) / WIDE, parts = DATA ? a.stride_h * a.stride_w : 1;
    int64_t item = blockIdx.x;
    const int column = (int)(item % column_tiles) * WIDE;
    item /= column_tiles;
    const int group = (int)(item % a.groups);
    item /= a.groups;
    const int part = (int)(item % parts);
    const int64_t first_row = item / parts * HIGH;
    const axis h = DATA ? axis_data(a.x_h, a.kernel_h, a.stride_h, a.apart_h, a.pad_top, part / a.stride_w)
                        : axis_forward(a.y_h, a.kernel_h, a.stride_h, a.apart_h, a.pad_top);
    const axis w = DATA ? axis_data(a.x_w, a.kernel_w, a.stride_w, a.apart_w, a.pad_left, part % a.stride_w)
                        : axis_forward(a.y_w, a.kernel_w, a.stride_w, a.apart_w, a.pad_left);
    const int64_t rows = a.samples * h.count * w.count;
    if (first_row >= rows) {
        return;
    }
    const int64_t row = first_row + threadIdx.x % HIGH, depth = (int64_t)h.taps * w.taps * s.from_group;
    const pixel p = pixel_of(row < rows ? row : 0, h.count, w.count);
    gatherer<T, DATA> load = {a,
                              s,
                              h,
                              w,
                              static_cast<const T *>(s.from) + p.n * s.from_h * s.from_w * s.from_c +
                                  group * s.from_group,
                              h.from + p.h * h.from_step,
                              w.from + p.w * w.from_step,
                              row < rows,
                              {0, 0, 0},
                              {0, 0, 0},
                              (int64_t)threadIdx.x / ACROSS,
                              group,
                              column};
    advance(load.left, threadIdx.x / HIGH * ROWS, s.from_group, w.taps);
    advance(load.right, threadIdx.x / WIDE * COLUMNS, s.from_group, w.taps);
    float sum[ROWS][COLUMNS];
    product(sum, t, (depth + DEEP - 1) / DEEP, load, putter<DATA>());
    write_pixels<T, DATA>(a, s, h, w, sum, first_row, group, column);
}

// ---- weight gradient ----------------------------------------------------------------------------------------------

// Fetches eight rows (taps and channels) and four filters of one pixel of y, DEEP pixels further at every call.
template <typename T> struct weight_gatherer {
    const conv_direct_args &a;
    place first;   // tap and channel of this thread's first row
    int row_count; // of its rows that are there, at most ROWS
    int group, column;
    int64_t at, end; // pixel of y, and where this part ends
    pixel p;         // the same

    __device__ __forceinline__ bool reaches(const place &k, int &ih, int &iw) const
    {
        ih = p.h * a.stride_h - a.pad_top + k.h * a.apart_h;
        iw = p.w * a.stride_w - a.pad_left + k.w * a.apart_w;
        return at < end && ih >= 0 && ih < a.x_h && iw >= 0 && iw < a.x_w;
    }
    __device__ __forceinline__ void fetch_left(float (&to)[ROWS]) const
    {
        const T *image = static_cast<const T *>(a.x) + p.n * a.x_h * a.x_w * a.x_c + group * a.group_c;
        int ih, iw;
        if (a.group_c % ROWS == 0 && row_count == ROWS && reaches(first, ih, iw)) {
            take<T, ROWS>(image + ((int64_t)ih * a.x_w + iw) * a.x_c + first.c, to);
            return;
        }
        place k = first;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const bool there = i < row_count && reaches(k, ih, iw);
            to[i] = there ? widen(image[((int64_t)ih * a.x_w + iw) * a.x_c + k.c]) : 0.0f;
            advance(k, 1, a.group_c, a.kernel_w);
        }
    }
    __device__ __forceinline__ void fetch_right(float (&to)[COLUMNS]) const
    {
        const int mine = column + threadIdx.x % ACROSS * COLUMNS;
        const T *from = static_cast<const T *>(a.y) + at * a.y_c + group * a.group_f + mine;
        if (a.group_f % COLUMNS == 0 && at < end && mine < a.group_f) {
            take<T, COLUMNS>(from, to);
            return;
        }
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            to[k] = at < end && mine + k < a.group_f ? widen(from[k]) : 0.0f;
        }
    }
    __device__ __forceinline__ void operator()(cargo &c)
    {
        fetch_left(c.left);
        fetch_right(c.right);
        at += DEEP;
        next_pixel(p, DEEP, a.y_h, a.y_w);
    }
};

struct weight_putter {
    __device__ __forceinline__ void operator()(const cargo &c, float *left, float *right) const
    {
        const int deep = threadIdx.x / ACROSS, across = threadIdx.x % ACROSS;
        put_four(left + deep * HIGH + across * ROWS, c.left);
        put_four(left + deep * HIGH + across * ROWS + 4, c.left + 4);
        put_four(right + deep * WIDE + across * COLUMNS, c.right);
    }
};

// blockIdx.x: columns of a group fastest, then groups, rows, parts of the pixels.
template <typename T> __device__ __forceinline__ void weights(const conv_direct_args &a)
{
    SHARED tiles t;
    const int column_tiles = (a.group_f + WIDE - 1) / WIDE;
    const int64_t rows = (int64_t)a.kernel_h * a.kernel_w * a.group_c, row_tiles = (rows + HIGH - 1) / HIGH;
    int64_t item = blockIdx.x;
    const int column = (int)(item % column_tiles) * WIDE;
    item /= column_tiles;
    const int group = (int)(item % a.groups);
    item /= a.groups;
    const int64_t first_row = item % row_tiles * HIGH, split = item / row_tiles;
    const int64_t depth = a.samples * a.y_h * a.y_w;
    const int64_t each = ((depth + a.splits - 1) / a.splits + DEEP - 1) / DEEP * DEEP;
    const int64_t begin = split * each, end = begin + each < depth ? begin + each : depth;
    const int64_t mine = first_row + threadIdx.x % ACROSS * ROWS, here = begin + threadIdx.x / ACROSS;
    const int64_t left = rows - mine;
    const int tap = (int)(mine < rows ? mine / a.group_c : 0);
    weight_gatherer<T> load = {
        a,
        {tap / a.kernel_w, tap % a.kernel_w, (int)(mine < rows ? mine % a.group_c : 0)},
        left > ROWS ? ROWS
        : left < 0  ? 0
                    : (int)left,
        group,
        column,
        here,
        end,
        pixel_of(here < depth ? here : 0, a.y_h, a.y_w)};
    float sum[ROWS][COLUMNS];
    product(sum, t, begin < end ? (end - begin + DEEP - 1) / DEEP : 0, load, weight_putter());
#pragma unroll
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const int64_t row = first_row + threadIdx.x / ACROSS * ROWS + i / COLUMNS;
        const int c = column + threadIdx.x % ACROSS * COLUMNS + i % COLUMNS;
        if (row < rows && c < a.group_f) {
            const int64_t at = row * a.y_c + group * a.group_f + c;
            if (a.partial != nullptr) {
                a.partial[split * rows * a.y_c + at] = sum[i / COLUMNS][i % COLUMNS];
            } else {
                static_cast<T *>(a.out)[at] = narrow<T>(sum[i / COLUMNS][i % COLUMNS]);
            }
        }
    }
}

// ---- sums ---------------------------------------------------------------------------------------------------------

// blockIdx.x: CONV_SUM_COLUMNS columns fastest, then parts of the rows. Eight threads share a column.
template <typename T> __device__ __forceinline__ void columns(const conv_columns_args &a)
{
    constexpr int SHARE = THREADS / CONV_SUM_COLUMNS;
    SHARED float room[THREADS];
    const int blocks = (a.columns + CONV_SUM_COLUMNS - 1) / CONV_SUM_COLUMNS;
    const int column = (int)(blockIdx.x % blocks) * CONV_SUM_COLUMNS + threadIdx.x % CONV_SUM_COLUMNS;
    const int64_t split = blockIdx.x / blocks, each = (a.rows + a.splits - 1) / a.splits;
    const int64_t begin = split * each, end = begin + each < a.rows ? begin + each : a.rows;
    float sum = 0.0f;
    for (int64_t row = begin + threadIdx.x / CONV_SUM_COLUMNS; column < a.columns && row < end;
         row += SHARE) {
        sum += widen(static_cast<const T *>(a.x)[row * a.columns + column]);
    }
    room[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x >= CONV_SUM_COLUMNS || column >= a.columns) {
        return;
    }
    for (int k = 1; k < SHARE; k++) {
        sum += room[k * CONV_SUM_COLUMNS + threadIdx.x];
    }
    if (a.partial != nullptr) {
        a.partial[split * a.columns + column] = sum;
    } else {
        static_cast<T *>(a.out)[column] = narrow<T>(sum);
    }
}

template <typename T> __device__ __forceinline__ void sum_up(const conv_sum_args &a)
{
    for (int64_t i = grid_thread(); i < a.count; i += grid_width()) {
        float sum = 0.0f;
        for (int split = 0; split < a.splits; split++) {
            sum += a.partial[split * a.count + i];
        }
        static_cast<T *>(a.out)[i] = narrow<T>(sum);
    }
}

} // namespace

#define CONV_DIRECT(suffix, type)                                                                            \
    extern "C" __global__ void __launch_bounds__(CONV_THREADS, 2) conv_forward_##suffix(conv_direct_args a)  \
    {                                                                                                        \
        pixels<type, false>(a);                                                                              \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(CONV_THREADS, 2) conv_data_##suffix(conv_direct_args a)     \
    {                                                                                                        \
        pixels<type, true>(a);                                                                               \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(CONV_THREADS, 2) conv_weights_##suffix(conv_direct_args a)  \
    {                                                                                                        \
        weights<type>(a);                                                                                    \
    }                                                                                                        \
    extern "C" __global__ void conv_columns_##suffix(conv_columns_args a)                                    \
    {                                                                                                        \
        columns<type>(a);                                                                                    \
    }                                                                                                        \
    extern "C" __global__ void conv_sum_##suffix(conv_sum_args a)                                            \
    {                                                                                                        \
        sum_up<type>(a);                                                                                     \
    }
FOR_REAL_TYPES(CONV_DIRECT)
