// SPDX-License-Identifier: Apache-2.0
// Streaming attention on ordinary multiply-add units: a tile of scores at a time, float32 sums, any head size.
//
// A block has 64 rows (queries; in the keys' gradient, keys) and walks the 64-wide tiles of the other side. A thread
// has 8 rows and 4 columns of every product, so that 32 multiply-adds go with 12 floats from shared memory, 8 of which
// are the same for half a warp. Results have up to OUT features; wider heads are made in windows of OUT, each with its
// own scores. The backward pass has two kernels, one for rows of queries and one for rows of keys: scores are computed
// twice and nobody adds to another's sum, so that the same bits come every time.
#include "attention_own_args.h"
#include "philox.cuh"

namespace
{

constexpr int TILE = ATTENTION_TILE, THREADS = ATTENTION_THREADS;
constexpr int ROWS = 8, COLUMNS = 4, ACROSS = TILE / COLUMNS;
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;

using four = pack<float, 4>;

__device__ __forceinline__ four four_of(float a, float b, float c, float d)
{
    four v;
    v.at[0] = a;
    v.at[1] = b;
    v.at[2] = c;
    v.at[3] = d;
    return v;
}

// ---- tiles in shared memory ---------------------------------------------------------------------------------------

// A turned tile has a feature (or key) per line and rows along it. Groups of four rows are exchanged within a line
// depending on the line, so that neighbouring threads that write down a column meet different banks.
__device__ __forceinline__ int twisted(int line, int group)
{
    return line * TILE + ((group ^ (((line >> 2) & 7) ^ ((line >> 5) & 1))) << 2);
}

// n features of a row, zeros outside [rows, features). `whole`: rows begin at multiples of sixteen bytes.
template <typename T, int n>
__device__ __forceinline__ pack<T, n> read_pack(const T *from, int stride, int row, int feature, int64_t rows,
                                                int features, bool whole)
{
    pack<T, n> v;
    const T *at = from + row * stride + feature;
    if (whole && row < rows && feature < features) {
        return *reinterpret_cast<const pack<T, n> *>(at);
    }
#pragma unroll
    for (int k = 0; k < n; k++) {
        v.at[k] = row < rows && feature + k < features ? at[k] : narrow<T>(0.0f);
    }
    return v;
}

// Up to TILE rows and features of a head into a turned tile: line = feature.
template <typename T>
__device__ __forceinline__ void load_turned(float *tile, const T *from, int stride, int64_t rows,
                                            int features, float scale)
{
    constexpr int n = lanes<T>::count, packs = TILE / n;
    const bool whole = stride % n == 0 && features % n == 0;
#pragma unroll 4
    for (int i = threadIdx.x; i < TILE * packs; i += THREADS) {
        const int part = i % 8 + i / (8 * TILE) * 8, row = i / 8 % TILE;
        const pack<T, n> v = read_pack<T, n>(from, stride, row, part * n, rows, features, whole);
#pragma unroll
        for (int k = 0; k < n; k++) {
            tile[twisted(part * n + k, row >> 2) + (row & 3)] = widen(v.at[k]) * scale;
        }
    }
}

// The same as it lies in memory: line = row.
template <typename T>
__device__ __forceinline__ void load_rows(float *tile, const T *from, int stride, int64_t rows, int features)
{
    constexpr int n = lanes<T>::count, packs = TILE / n;
    const bool whole = stride % n == 0 && features % n == 0;
#pragma unroll 4
    for (int i = threadIdx.x; i < TILE * packs; i += THREADS) {
        const int part = i % packs, row = i / packs;
        const pack<T, n> v = read_pack<T, n>(from, stride, row, part * n, rows, features, whole);
#pragma unroll
        for (int k = 0; k < n; k += 4) {
            *reinterpret_cast<four *>(tile + row * TILE + part * n + k) =
                four_of(widen(v.at[k]), widen(v.at[k + 1]), widen(v.at[k + 2]), widen(v.at[k + 3]));
        }
    }
}

__device__ __forceinline__ int my_column()
{
    return threadIdx.x % ACROSS;
}
__device__ __forceinline__ int my_row()
{
    return threadIdx.x / ACROSS;
}

// This thread's eight rows on a line of a turned tile.
__device__ __forceinline__ void eight_of(const float *tile, int line, float (&to)[ROWS])
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const four v = *reinterpret_cast<const four *>(tile + twisted(line, 2 * my_row() + half));
#pragma unroll
        for (int k = 0; k < 4; k++) {
            to[4 * half + k] = v.at[k];
        }
    }
}

// This thread's numbers, rows × columns, into a turned tile: line = column.
__device__ __forceinline__ void put_turned(float *tile, const float (&from)[ROWS][COLUMNS])
{
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            *reinterpret_cast<four *>(tile + twisted(my_column() * COLUMNS + c, 2 * my_row() + half)) =
                four_of(from[4 * half][c], from[4 * half + 1][c], from[4 * half + 2][c],
                        from[4 * half + 3][c]);
        }
    }
}

__device__ __forceinline__ void multiply_add(float (&sum)[ROWS][COLUMNS], const float (&a)[ROWS],
                                             const four &b)
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            sum[r][c] += a[r] * b.at[c];
        }
    }
}

// sum += rowsᵀ · columns over the first `depth` lines of two turned tiles; depth is rounded up to eight lines, which
// are zeros beyond.
__device__ __forceinline__ void multiply(float (&sum)[ROWS][COLUMNS], const float *rows, const float *columns,
                                         int depth)
{
    for (int first = 0; first < depth; first += 8) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            float a[ROWS];
            eight_of(rows, first + k, a);
            const four b = *reinterpret_cast<const four *>(columns + twisted(first + k, my_column()));
            multiply_add(sum, a, b);
        }
    }
}

// sum += weightsᵀ · values, values as they lie: TILE features of `depth` lines.
__device__ __forceinline__ void collect(float (&sum)[ROWS][COLUMNS], const float *weights,
                                        const float *values, int depth)
{
    for (int first = 0; first < depth; first += 8) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            float a[ROWS];
            eight_of(weights, first + k, a);
            const four b =
                *reinterpret_cast<const four *>(values + (first + k) * TILE + my_column() * COLUMNS);
            multiply_add(sum, a, b);
        }
    }
}

template <int N> __device__ __forceinline__ void clear(float (&sum)[N][ROWS][COLUMNS])
{
#pragma unroll
    for (int i = 0; i < N * ROWS * COLUMNS; i++) {
        sum[i / (ROWS * COLUMNS)][i / COLUMNS % ROWS][i % COLUMNS] = 0.0f;
    }
}

// ---- what a block works on ----------------------------------------------------------------------------------------

// One tile of rows of one head. Neighbouring blocks share a head, and so its other side in the L2 cache.
struct job {
    int64_t head;                      // of all samples: n·heads + h
    int64_t first_row;                 // of the tile
    int window;                        // of the result's features
    int64_t queries_at, keys_at, y_at; // where the head begins in q, in k and in y
};

__device__ __forceinline__ int64_t tiles_of(int64_t length)
{
    return (length + TILE - 1) / TILE;
}

// `from_the_end`: with a mask the last tiles of queries see the most keys and go first.
__device__ __forceinline__ job job_of(const attention_own_args &a, int64_t item, int64_t tiles,
                                      bool from_the_end)
{
    job j;
    j.window = (int)(item % a.windows);
    const int64_t tile = item / a.windows % tiles;
    j.head = item / a.windows / tiles;
    j.first_row = (from_the_end ? tiles - 1 - tile : tile) * TILE;
    const int64_t n = j.head / a.heads, h = j.head % a.heads;
    j.queries_at = n * a.queries * a.row + h * a.features;
    j.keys_at = n * a.keys * a.row + h * a.features;
    j.y_at = n * a.queries * a.width + h * a.features;
    return j;
}

__device__ __forceinline__ bool is_seen(const attention_own_args &a, int64_t query, int64_t key)
{
    return key < a.keys && query < a.queries && (!a.causal || key <= query);
}

__device__ __forceinline__ int at_most(int64_t a, int b)
{
    return a < b ? (int)a : b;
}

// Rows of a sequence from a tile's first on: `step` elements from one to the next, `count` of them.
template <typename T> struct side {
    const T *at;
    int step;
    int64_t count;
};

template <typename T>
__device__ __forceinline__ side<T> side_of(const void *base, int64_t place, int step, int64_t count)
{
    return {static_cast<const T *>(base) + place, step, count};
}

// sum = rows · columnsᵀ over all features of the head; both point to the tile's first row. Ends with the block in step.
template <typename T>
__device__ __forceinline__ void score(const attention_own_args &a, float (&sum)[ROWS][COLUMNS],
                                      float *room_rows, float *room_columns, const side<T> &rows,
                                      const side<T> &columns, float scale)
{
#pragma unroll
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        sum[i / COLUMNS][i % COLUMNS] = 0.0f;
    }
    for (int d = 0; d < a.features; d += TILE) {
        load_turned(room_rows, rows.at + d, rows.step, rows.count, a.features - d, scale);
        load_turned(room_columns, columns.at + d, columns.step, columns.count, a.features - d, 1.0f);
        __syncthreads();
        multiply(sum, room_rows, room_columns, at_most(a.features - d, TILE));
        __syncthreads();
    }
}

// sum += weightsᵀ · values for this block's window, where `weights` is put and the first chunk of values is loaded.
template <typename T, int CHUNKS>
__device__ __forceinline__ void gather(const attention_own_args &a, float (&sum)[CHUNKS][ROWS][COLUMNS],
                                       const float *weights, float *room, const side<T> &values,
                                       int first_feature)
{
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
        const int d = first_feature + c * TILE;
        if (c > 0) {
            load_rows(room, values.at + d, values.step, values.count, a.features - d);
        }
        __syncthreads();
        collect(sum[c], weights, room, at_most(values.count, TILE));
        __syncthreads();
    }
}

// This thread's rows and features of a window. `to` is the first row of the tile.
template <typename T, int CHUNKS>
__device__ __forceinline__ void write(const attention_own_args &a, const float (&sum)[CHUNKS][ROWS][COLUMNS],
                                      T *to, int step, int64_t rows, int first_feature)
{
    const bool whole = a.features % COLUMNS == 0;
#pragma unroll
    for (int i = 0; i < CHUNKS * ROWS; i++) {
        const int chunk = i / ROWS, r = i % ROWS, row = my_row() * ROWS + r;
        const int feature = first_feature + chunk * TILE + my_column() * COLUMNS;
        if (row >= rows || feature >= a.features) {
            continue;
        }
        T *at = to + row * step + feature;
        pack<T, COLUMNS> v;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            v.at[c] = narrow<T>(sum[chunk][r][c]);
            if (!whole && feature + c < a.features) {
                at[c] = v.at[c];
            }
        }
        if (whole) {
            *reinterpret_cast<pack<T, COLUMNS> *>(at) = v;
        }
    }
}

// Over the sixteen threads that share rows.
__device__ __forceinline__ float row_max(float x)
{
    for (int k = ACROSS / 2; k > 0; k /= 2) {
        x = fmaxf(x, __shfl_xor_sync(FULL_WARP, x, k));
    }
    return x;
}
__device__ __forceinline__ float row_sum(float x)
{
    for (int k = ACROSS / 2; k > 0; k /= 2) {
        x += __shfl_xor_sync(FULL_WARP, x, k);
    }
    return x;
}

// ---- dropout ------------------------------------------------------------------------------------------------------

// Which weights of a tile are kept: of each query the bits of the one or two blocks of elements that its keys lie in.
struct kept_bits {
    uint16_t word[TILE][2 * PHILOX_WORDS];
};

struct mask_place {
    uint64_t first; // element of the tile's first query and key
    uint64_t sample;
};

__device__ __forceinline__ mask_place mask_place_of(const attention_own_args &a, const job &j, int64_t query,
                                                    int64_t key)
{
    const int64_t n = j.head / a.heads, h = j.head % a.heads;
    return {(uint64_t)((h * a.queries + query) * a.keys + key), a.scalars->first_sample + (uint64_t)n};
}

// Sixteen threads make the calls of a block, and ballots gather what they decide. Ends with the block in step.
__device__ __forceinline__ void draw(const attention_own_args &a, const mask_place &m, kept_bits *to)
{
    const int blocks = a.keys % DRAW_BLOCK == 0 ? 1 : 2, lane = threadIdx.x % DRAW_LANES;
    for (int i = threadIdx.x; i < TILE * blocks * DRAW_LANES; i += THREADS) {
        const int row = i / DRAW_LANES / blocks, block = i / DRAW_LANES % blocks;
        const uint64_t element = m.first + (uint64_t)row * (uint64_t)a.keys;
        const uint64_t call = (element / DRAW_BLOCK + (uint64_t)block) * DRAW_LANES + (uint64_t)lane;
        const philox_words words = philox(a.scalars->key[0], a.scalars->key[1], call, m.sample);
#pragma unroll
        for (int w = 0; w < PHILOX_WORDS; w++) {
            const uint32_t kept = __ballot_sync(FULL_WARP, words.word[w] >= a.threshold);
            if (lane == 0) {
                to->word[row][block * PHILOX_WORDS + w] = (uint16_t)(kept >> (threadIdx.x % WARP));
            }
        }
    }
    __syncthreads();
}

__device__ __forceinline__ bool is_kept(const attention_own_args &a, const mask_place &m,
                                        const kept_bits *bits, int query, int key)
{
    const int at = (int)((m.first + (uint64_t)query * (uint64_t)a.keys) % DRAW_BLOCK) + key;
    return (bits->word[query][at / DRAW_LANES] >> at % DRAW_LANES & 1) != 0;
}

// Bit r * COLUMNS + c of this thread's numbers, whose rows are queries, or keys.
template <bool ROWS_ARE_KEYS>
__device__ __forceinline__ uint32_t my_kept(const attention_own_args &a, const job &j, int64_t query,
                                            int64_t key, float *room)
{
    static_assert(ROWS * COLUMNS == 32, "one word has the bits of a thread");
    kept_bits *bits = reinterpret_cast<kept_bits *>(room);
    const mask_place m = mask_place_of(a, j, query, key);
    draw(a, m, bits);
    uint32_t kept = 0;
#pragma unroll
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const int row = my_row() * ROWS + i / COLUMNS, column = my_column() * COLUMNS + i % COLUMNS;
        const bool keeps =
            ROWS_ARE_KEYS ? is_kept(a, m, bits, column, row) : is_kept(a, m, bits, row, column);
        kept |= (keeps ? 1u : 0u) << i;
    }
    return kept;
}

__device__ __forceinline__ float factor_of(const attention_own_args &a, uint32_t kept, int r, int c)
{
    return (kept >> (r * COLUMNS + c) & 1u) != 0 ? a.kept_scale : 0.0f;
}

__device__ __forceinline__ void drop(const attention_own_args &a, uint32_t kept, float (&s)[ROWS][COLUMNS])
{
#pragma unroll
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        s[i / COLUMNS][i % COLUMNS] *= factor_of(a, kept, i / COLUMNS, i % COLUMNS);
    }
}

// Weights as values are multiplied with them.
template <bool DROPS>
__device__ __forceinline__ void put_dropped(const attention_own_args &a, float *tile,
                                            const float (&p)[ROWS][COLUMNS], uint32_t kept)
{
    if constexpr (DROPS) {
        float dropped[ROWS][COLUMNS];
#pragma unroll
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            const int r = i / COLUMNS, c = i % COLUMNS;
            dropped[r][c] = p[r][c] * factor_of(a, kept, r, c);
        }
        put_turned(tile, dropped);
    } else {
        put_turned(tile, p);
    }
}

// ---- forward ------------------------------------------------------------------------------------------------------

// Scores (in powers of two) become weights against the largest so far, and what was summed before is brought to it.
template <int CHUNKS>
__device__ __forceinline__ void weigh(const attention_own_args &a, const job &j, int64_t first_key,
                                      float (&s)[ROWS][COLUMNS], float (&largest)[ROWS], float (&sum)[ROWS],
                                      float (&y)[CHUNKS][ROWS][COLUMNS])
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int64_t query = j.first_row + my_row() * ROWS + r;
        float most = largest[r], total = 0.0f;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            const int64_t key = first_key + my_column() * COLUMNS + c;
            s[r][c] = key < a.keys && (!a.causal || key <= query) ? s[r][c] : -INFINITY;
            most = fmaxf(most, s[r][c]);
        }
        most = row_max(most);
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            s[r][c] = exp2f(s[r][c] - most);
            total += s[r][c];
        }
        const float factor = exp2f(largest[r] - most);
        largest[r] = most;
        sum[r] = sum[r] * factor + row_sum(total);
#pragma unroll
        for (int i = 0; i < CHUNKS * COLUMNS; i++) {
            y[i / COLUMNS][r][i % COLUMNS] *= factor;
        }
    }
}

template <int CHUNKS>
__device__ __forceinline__ void finish(const attention_own_args &a, const job &j,
                                       const float (&largest)[ROWS], const float (&sum)[ROWS],
                                       float (&y)[CHUNKS][ROWS][COLUMNS])
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int64_t query = j.first_row + my_row() * ROWS + r;
        const float inverse = 1.0f / sum[r];
#pragma unroll
        for (int i = 0; i < CHUNKS * COLUMNS; i++) {
            y[i / COLUMNS][r][i % COLUMNS] *= inverse;
        }
        if (my_column() == 0 && j.window == 0 && query < a.queries) {
            a.lse[j.head * a.queries + query] = LN_2 * (largest[r] + log2f(sum[r]));
        }
    }
}

template <typename T, int CHUNKS, bool DROPS>
__device__ __forceinline__ void forward(const attention_own_args &a)
{
    SHARED four room[3 * TILE * TILE / 4];
    float *const queries = room[0].at, *const keys = queries + TILE * TILE,
                 *const values = keys + TILE * TILE;
    const int64_t tiles = tiles_of(a.queries), items = a.samples * a.heads * tiles * a.windows;
    for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
        const job j = job_of(a, item, tiles, a.causal != 0);
        const int first_feature = j.window * CHUNKS * TILE;
        const side<T> q = side_of<T>(a.q, j.queries_at + j.first_row * a.row, a.row, a.queries - j.first_row);
        const int64_t end = a.causal && j.first_row + TILE < a.keys ? j.first_row + TILE : a.keys;
        float y[CHUNKS][ROWS][COLUMNS], s[ROWS][COLUMNS], largest[ROWS], sum[ROWS];
        clear(y);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            largest[r] = -INFINITY;
            sum[r] = 0.0f;
        }
        for (int64_t key = 0; key < end; key += TILE) {
            const int64_t there = j.keys_at + key * a.row;
            const side<T> k = side_of<T>(a.k, there, a.row, a.keys - key),
                          v = side_of<T>(a.v, there, a.row, a.keys - key);
            load_rows(values, v.at + first_feature, v.step, v.count, a.features - first_feature);
            score(a, s, queries, keys, q, k, a.scale * LOG2_E);
            weigh(a, j, key, s, largest, sum, y);
            if constexpr (DROPS) {
                drop(a, my_kept<false>(a, j, j.first_row, key, queries), s);
            }
            put_turned(keys, s);
            gather(a, y, keys, values, v, first_feature);
        }
        finish(a, j, largest, sum, y);
        write(a, y, static_cast<T *>(a.out) + j.y_at + j.first_row * a.width, a.width, q.count,
              first_feature);
    }
}

// ---- backward -----------------------------------------------------------------------------------------------------

// delta of this block's queries: Σ dy·y, one row per warp. Windows of one tile write the same numbers.
template <typename T> __device__ __forceinline__ void row_products(const attention_own_args &a, const job &j)
{
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    for (int64_t row = j.first_row + warp; row < j.first_row + TILE && row < a.queries;
         row += THREADS / WARP) {
        const T *y = static_cast<const T *>(a.y) + j.y_at + row * a.width;
        const T *dy = static_cast<const T *>(a.dy) + j.y_at + row * a.width;
        float sum = 0.0f;
        for (int d = lane; d < a.features; d += WARP) {
            sum += widen(y[d]) * widen(dy[d]);
        }
        sum = warp_sum(sum);
        if (lane == 0) {
            a.delta[j.head * a.queries + row] = sum;
        }
    }
    __syncthreads();
}

template <typename T, int CHUNKS, bool DROPS>
__device__ __forceinline__ void backward_queries(const attention_own_args &a)
{
    SHARED four room[3 * TILE * TILE / 4];
    float *const rows = room[0].at, *const columns = rows + TILE * TILE,
                 *const values = columns + TILE * TILE;
    const int64_t tiles = tiles_of(a.queries), items = a.samples * a.heads * tiles * a.windows;
    for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
        const job j = job_of(a, item, tiles, a.causal != 0);
        const int first_feature = j.window * CHUNKS * TILE;
        const int64_t row_count = a.queries - j.first_row, here = j.queries_at + j.first_row * a.row;
        const side<T> q = side_of<T>(a.q, here, a.row, row_count),
                      dy = side_of<T>(a.dy, j.y_at + j.first_row * a.width, a.width, row_count);
        const int64_t end = a.causal && j.first_row + TILE < a.keys ? j.first_row + TILE : a.keys;
        row_products<T>(a, j);
        float lse[ROWS], delta[ROWS], dq[CHUNKS][ROWS][COLUMNS], s[ROWS][COLUMNS], dp[ROWS][COLUMNS];
        clear(dq);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int64_t query = j.first_row + my_row() * ROWS + r, at = j.head * a.queries + query;
            lse[r] = query < a.queries ? a.lse[at] * LOG2_E : 0.0f;
            delta[r] = query < a.queries ? a.delta[at] : 0.0f;
        }
        for (int64_t key = 0; key < end; key += TILE) {
            const int64_t there = j.keys_at + key * a.row;
            const side<T> k = side_of<T>(a.k, there, a.row, a.keys - key),
                          v = side_of<T>(a.v, there, a.row, a.keys - key);
            score(a, s, rows, columns, q, k, a.scale * LOG2_E);
            load_rows(values, k.at + first_feature, k.step, k.count, a.features - first_feature);
            score(a, dp, rows, columns, dy, v, 1.0f);
            if constexpr (DROPS) {
                drop(a, my_kept<false>(a, j, j.first_row, key, columns), dp);
            }
#pragma unroll
            for (int i = 0; i < ROWS * COLUMNS; i++) {
                const int r = i / COLUMNS, c = i % COLUMNS;
                const bool seen =
                    is_seen(a, j.first_row + my_row() * ROWS + r, key + my_column() * COLUMNS + c);
                s[r][c] = seen ? exp2f(s[r][c] - lse[r]) * (dp[r][c] - delta[r]) * a.scale : 0.0f;
            }
            put_turned(rows, s);
            gather(a, dq, rows, values, k, first_feature);
        }
        write(a, dq, static_cast<T *>(a.out) + here, a.row, row_count, first_feature);
    }
}

template <typename T, int CHUNKS, bool DROPS>
__device__ __forceinline__ void backward_keys(const attention_own_args &a)
{
    SHARED four room[3 * TILE * TILE / 4];
    float *const rows = room[0].at, *const columns = rows + TILE * TILE,
                 *const values = columns + TILE * TILE;
    const int64_t tiles = tiles_of(a.keys), items = a.samples * a.heads * tiles * a.windows;
    for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
        const job j = job_of(a, item, tiles, false);
        const int first_feature = j.window * CHUNKS * TILE;
        const int64_t row_count = a.keys - j.first_row, here = j.keys_at + j.first_row * a.row;
        const side<T> k = side_of<T>(a.k, here, a.row, row_count),
                      v = side_of<T>(a.v, here, a.row, row_count);
        float dk[CHUNKS][ROWS][COLUMNS], dv[CHUNKS][ROWS][COLUMNS], p[ROWS][COLUMNS], dp[ROWS][COLUMNS];
        clear(dk);
        clear(dv);
        for (int64_t query = a.causal ? j.first_row : 0; query < a.queries; query += TILE) {
            const int64_t count = a.queries - query;
            const side<T> q = side_of<T>(a.q, j.queries_at + query * a.row, a.row, count),
                          dy = side_of<T>(a.dy, j.y_at + query * a.width, a.width, count);
            const int64_t at = j.head * a.queries + query + my_column() * COLUMNS;
            load_rows(values, dy.at + first_feature, dy.step, count, a.features - first_feature);
            score(a, p, rows, columns, k, q, a.scale * LOG2_E);
#pragma unroll
            for (int i = 0; i < ROWS * COLUMNS; i++) {
                const int r = i / COLUMNS, c = i % COLUMNS;
                const bool seen =
                    is_seen(a, query + my_column() * COLUMNS + c, j.first_row + my_row() * ROWS + r);
                p[r][c] = seen ? exp2f(p[r][c] - a.lse[at + c] * LOG2_E) : 0.0f;
            }
            const uint32_t kept = DROPS ? my_kept<true>(a, j, query, j.first_row, columns) : 0;
            put_dropped<DROPS>(a, rows, p, kept);
            gather(a, dv, rows, values, dy, first_feature);
            load_rows(values, q.at + first_feature, q.step, count, a.features - first_feature);
            score(a, dp, rows, columns, v, dy, 1.0f);
            if constexpr (DROPS) {
                drop(a, kept, dp);
            }
#pragma unroll
            for (int i = 0; i < ROWS * COLUMNS; i++) {
                const int r = i / COLUMNS, c = i % COLUMNS;
                const bool inside = my_column() * COLUMNS + c < count;
                p[r][c] *= inside ? (dp[r][c] - a.delta[at + c]) * a.scale : 0.0f;
            }
            put_turned(rows, p);
            gather(a, dk, rows, values, q, first_feature);
        }
        write(a, dk, static_cast<T *>(a.dk) + here, a.row, row_count, first_feature);
        write(a, dv, static_cast<T *>(a.dv) + here, a.row, row_count, first_feature);
    }
}

} // namespace

// A result of 64 features a block, and of 128; those that drop have 64.
#define KERNEL(name, blocks, function, ...)                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS, blocks) name(attention_own_args a)                 \
    {                                                                                                        \
        function<__VA_ARGS__>(a);                                                                            \
    }
#define ATTENTION(suffix, type)                                                                              \
    KERNEL(attention_64_##suffix, 3, forward, type, 1, false)                                                \
    KERNEL(attention_128_##suffix, 2, forward, type, 2, false)                                               \
    KERNEL(attention_drop_##suffix, 2, forward, type, 1, true)                                               \
    KERNEL(attention_bwd_64_##suffix, 3, backward_queries, type, 1, false)                                   \
    KERNEL(attention_bwd_128_##suffix, 2, backward_queries, type, 2, false)                                  \
    KERNEL(attention_bwd_drop_##suffix, 2, backward_queries, type, 1, true)                                  \
    KERNEL(attention_bwd_keys_64_##suffix, 3, backward_keys, type, 1, false)                                 \
    KERNEL(attention_bwd_keys_128_##suffix, 2, backward_keys, type, 2, false)                                \
    KERNEL(attention_bwd_keys_drop_##suffix, 2, backward_keys, type, 1, true)
FOR_REAL_TYPES(ATTENTION)
