// SPDX-License-Identifier: Apache-2.0
// Tables: rows looked up, and their gradient. The gradient is a sum by entry in the order of the rows, whatever runs
// first: a stable counting sort lists every entry's rows (rank, bases, place), then every row of dy is read once and
// every row of the table written once (pieces of entries with many rows before that).
#include "embedding_args.h"
#include "map.cuh"

// ---- lookup -------------------------------------------------------------------------------------------------------

template <typename Unit, typename Index> __device__ __forceinline__ void lookup_all(const embedding_args &a)
{
    const Unit *table = static_cast<const Unit *>(a.table);
    Unit *out = static_cast<Unit *>(a.out);
    for (int64_t i = grid_thread(); i < a.count; i += grid_width()) {
        const Index row = quotient((Index)i, a.row);
        const int64_t unit = i - (int64_t)row * a.row.by, id = a.ids[row];
        Unit value = {};
        if (id >= 0 && id < a.entries) {
            value = table[id * a.row.by + unit];
        }
        out[i] = value;
    }
}

#define LOOKUP(bytes, Unit)                                                                                  \
    extern "C" __global__ void embedding_##bytes(embedding_args a)                                           \
    {                                                                                                        \
        if (a.count <= INT32_MAX) {                                                                          \
            lookup_all<Unit, uint32_t>(a);                                                                   \
        } else {                                                                                             \
            lookup_all<Unit, uint64_t>(a);                                                                   \
        }                                                                                                    \
    }
typedef pack<uint32_t, 4> sixteen_bytes;
typedef pack<uint32_t, 2> eight_bytes;
LOOKUP(2, uint16_t)
LOOKUP(4, uint32_t)
LOOKUP(8, eight_bytes)
LOOKUP(16, sixteen_bytes)

// ---- sort ---------------------------------------------------------------------------------------------------------

__device__ __forceinline__ bool is_entry(const embedding_bwd_args &a, int32_t id)
{
    return id >= 0 && (int64_t)id < a.entries;
}

// A block ranks the rows of its chunk, as many at a time as it has threads: behind those of its own entry that came
// before. Whoever comes last of an entry counts them all.
extern "C" __global__ void embedding_rank(embedding_bwd_args a)
{
    SHARED int32_t ids[EMBEDDING_ROWS];
    const int mine = (int)threadIdx.x;
    uint32_t *seen = a.seen + (int64_t)blockIdx.x * a.entries;
    const int64_t begin = (int64_t)blockIdx.x * a.chunk;
    const int64_t end = begin + a.chunk < a.rows ? begin + a.chunk : a.rows;
    for (int64_t first = begin; first < end; first += EMBEDDING_ROWS) {
        const int64_t row = first + mine;
        const int32_t id = row < end ? a.ids[row] : -1;
        ids[mine] = id;
        __syncthreads();
        uint32_t before = 0, behind = 0;
#pragma unroll 8
        for (int k = 0; k < EMBEDDING_ROWS; k++) {
            const bool same = ids[k] == id;
            before += same && k < mine;
            behind += same && k > mine;
        }
        const bool counts = is_entry(a, id);
        const uint32_t earlier = counts ? seen[id] : 0;
        __syncthreads();
        if (counts) {
            a.rank[row] = earlier + before;
            if (behind == 0) {
                seen[id] = earlier + before + 1;
            }
        }
        __syncthreads();
    }
}

// A piece is as long as an entry has pieces, at least a run.
__device__ __forceinline__ uint32_t piece_rows(uint32_t count)
{
    uint32_t run = EMBEDDING_RUN;
    while ((uint64_t)run * run < count) {
        run *= 2;
    }
    return run;
}

// A thread an entry: where its rows begin in every chunk, and its share of the list and of the pieces. Which share an entry
// gets is chance and changes no sum.
extern "C" __global__ void embedding_bases(embedding_bwd_args a)
{
    for (int64_t id = grid_thread(); id < a.entries; id += grid_width()) {
        uint32_t count = 0;
        for (uint32_t c = 0; c < a.chunks; c++) {
            uint32_t *seen = a.seen + c * a.entries + id;
            const uint32_t here = *seen;
            *seen = count;
            count += here;
        }
        embedding_entry entry = {0, count, 0, count};
        if (count > 0) {
            entry.begin = atomicAdd(&a.counts->listed, count);
        }
        if (count > EMBEDDING_RUN) {
            entry.run = piece_rows(count);
            const uint32_t pieces = (count + entry.run - 1) / entry.run;
            entry.first_piece = atomicAdd(&a.counts->pieces, pieces);
            for (uint32_t k = 0; k < pieces; k++) {
                const uint32_t from = k * entry.run, left = count - from;
                a.piece[entry.first_piece + k] =
                    embedding_piece{entry.begin + from, left < entry.run ? left : entry.run};
            }
        }
        a.entry[id] = entry;
    }
}

extern "C" __global__ void embedding_place(embedding_bwd_args a)
{
    for (int64_t row = grid_thread(); row < a.rows; row += grid_width()) {
        const int32_t id = a.ids[row];
        if (is_entry(a, id)) {
            const uint32_t before = a.seen[row / a.chunk * a.entries + id];
            a.list[a.entry[id].begin + before + a.rank[row]] = (uint32_t)row;
        }
    }
}

// ---- sums ---------------------------------------------------------------------------------------------------------

// Adds vector `column` of rows list[0 .. count); a whole warp calls it, its lanes have other columns. Row numbers are read
// a warp at a time and passed around.
template <typename T, int N>
__device__ __forceinline__ void add_rows(const embedding_bwd_args &a, const uint32_t *list, uint32_t count,
                                         int64_t column, float (&sum)[N])
{
    const int64_t vectors = a.features / N;
    const pack<T, N> *dy = static_cast<const pack<T, N> *>(a.dy);
    const uint32_t lane = threadIdx.x % WARP;
    for (uint32_t first = 0; first < count; first += WARP) {
        const uint32_t mine = first + lane < count ? list[first + lane] : 0;
        const uint32_t here = count - first < WARP ? count - first : WARP;
#pragma unroll 4
        for (uint32_t k = 0; k < here; k++) {
            const int64_t row = (int64_t)__shfl_sync(FULL_WARP, mine, (int)k);
            if (column < vectors) {
                const pack<T, N> values = dy[row * vectors + column];
#pragma unroll
                for (int v = 0; v < N; v++) {
                    sum[v] += widen(values.at[v]);
                }
            }
        }
    }
}

// A warp a piece and a warp's width of vectors.
template <typename T, int N> __device__ __forceinline__ void add_pieces(const embedding_bwd_args &a)
{
    const int64_t vectors = a.features / N, warps = (int64_t)a.counts->pieces * a.tiles.by;
    for (int64_t warp = grid_thread() / WARP; warp < warps; warp += grid_width() / WARP) {
        const int64_t number = (int64_t)quotient((uint64_t)warp, a.tiles);
        const int64_t column = (warp - number * a.tiles.by) * WARP + threadIdx.x % WARP;
        const embedding_piece piece = a.piece[number];
        float sum[N] = {};
        add_rows<T, N>(a, a.list + piece.begin, piece.count, column, sum);
        for (int v = 0; v < N && column < vectors; v++) {
            a.sums[number * a.features + column * N + v] = sum[v];
        }
    }
}

// A warp an entry and a warp's width of vectors: its rows, its pieces, or zeros.
template <typename T, int N> __device__ __forceinline__ void add_entries(const embedding_bwd_args &a)
{
    const int64_t vectors = a.features / N, warps = a.entries * a.tiles.by;
    for (int64_t warp = grid_thread() / WARP; warp < warps; warp += grid_width() / WARP) {
        const int64_t id = (int64_t)quotient((uint64_t)warp, a.tiles);
        const int64_t column = (warp - id * a.tiles.by) * WARP + threadIdx.x % WARP;
        const embedding_entry entry = a.entry[id];
        float sum[N] = {};
        if (entry.count <= EMBEDDING_RUN) {
            add_rows<T, N>(a, a.list + entry.begin, entry.count, column, sum);
        } else if (column < vectors) {
            const uint32_t pieces = (entry.count + entry.run - 1) / entry.run;
            const pack<float, N> *sums = reinterpret_cast<const pack<float, N> *>(a.sums);
#pragma unroll 4
            for (uint32_t k = 0; k < pieces; k++) {
                const pack<float, N> values = sums[(int64_t)(entry.first_piece + k) * vectors + column];
#pragma unroll
                for (int v = 0; v < N; v++) {
                    sum[v] += values.at[v];
                }
            }
        }
        if (column < vectors) {
            pack<T, N> values;
#pragma unroll
            for (int v = 0; v < N; v++) {
                values.at[v] = narrow<T>(sum[v]);
            }
            static_cast<pack<T, N> *>(a.dtable)[id * vectors + column] = values;
        }
    }
}

#define OF_VECTORS(suffix, type, width, n)                                                                   \
    extern "C" __global__ void embedding_pieces_##width##_##suffix(embedding_bwd_args a)                     \
    {                                                                                                        \
        add_pieces<type, n>(a);                                                                              \
    }                                                                                                        \
    extern "C" __global__ void embedding_entries_##width##_##suffix(embedding_bwd_args a)                    \
    {                                                                                                        \
        add_entries<type, n>(a);                                                                             \
    }
#define OF_TYPE(suffix, type)                                                                                \
    OF_VECTORS(suffix, type, wide, lanes<type>::count)                                                       \
    OF_VECTORS(suffix, type, narrow, 1)
FOR_REAL_TYPES(OF_TYPE)
