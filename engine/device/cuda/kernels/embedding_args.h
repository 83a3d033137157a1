// SPDX-License-Identifier: Apache-2.0
// What the kernels of embedding.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_EMBEDDING_ARGS_H
#define KERNELS_EMBEDDING_ARGS_H

#include "divisor.h"

typedef struct embedding_args {
    const int32_t *ids;
    const void *table;
    void *out;
    int64_t count; // units of out
    divisor row;   // units of an entry
    int64_t entries;
} embedding_args;

enum {
    EMBEDDING_ROWS = 256, // that embedding_rank ranks at a time: its threads
    EMBEDDING_THREADS = 256,
    EMBEDDING_RUN = 32, // rows that one warp adds; entries with more of them are added in pieces
    EMBEDDING_MOST_CHUNKS = 32
};

// Entries whose rows are added in pieces, and how many rows, list places and pieces have been given out.
typedef struct embedding_counts {
    uint32_t listed, pieces;
} embedding_counts;

typedef struct embedding_piece {
    uint32_t begin, count; // of the list
} embedding_piece;

// An entry's share of the list, and its first piece where it has any.
typedef struct embedding_entry {
    uint32_t begin, count, first_piece, run; // run: rows of a piece
} embedding_entry;

typedef struct embedding_bwd_args {
    const int32_t *ids;
    const void *dy;
    void *dtable;
    int64_t rows, entries, features;
    int64_t chunk; // rows of a chunk: a block ranks one
    uint32_t chunks;
    uint32_t unused; // no byte of an argument is undefined
    divisor tiles;   // of a warp's vectors in an entry
    // workspace
    embedding_counts *counts; // zero before the first kernel, as is `seen`
    uint32_t *seen;           // [chunks, entries] rows of an entry in a chunk; then in all chunks before
    uint32_t *rank;           // [rows] of a row among its entry's in its chunk
    uint32_t *list;           // [rows] row numbers, entry by entry, each in order
    embedding_entry *entry;   // [entries]
    embedding_piece *piece;
    float *sums; // [pieces, features]
} embedding_bwd_args;

#endif
