// SPDX-License-Identifier: Apache-2.0
// Tables: lookup, and a gradient that adds every entry's rows in their order (kernels/embedding.cu). Its scratch: a count
// of every entry in every chunk of rows, the list of rows, and float32 sums of the pieces of entries with many rows.
#include <stdio.h>

#include "cuda_device.h"
#include "kernels/embedding_args.h"

enum { PACK_BYTES = 16, WARP_THREADS = 32, ALIGNMENT = 256 };

static int64_t quotient_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

// ---- lookup ---------------------------------------------------------------------------------------------------

static int64_t row_bytes(const op_query *q)
{
    return q->in[1].shape.dim[1] * (int64_t)dtype_bytes((hr_dtype)q->in[1].dtype);
}

static int64_t unit_of(const op_query *q)
{
    int64_t unit = PACK_BYTES;
    while (row_bytes(q) % unit != 0) {
        unit /= 2;
    }
    return unit;
}

static void lookup_name(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "embedding_%d", (int)unit_of(q));
}

static hr_status run_lookup(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const int64_t units = row_bytes(q) / unit_of(q);
    const embedding_args a = {.ids = (const int32_t *)r->in[0],
                              .table = (const void *)r->in[1],
                              .out = (void *)r->out[0],
                              .count = (int64_t)cuda_elements(&q->in[0]) * units,
                              .row = divisor_of(units),
                              .entries = q->in[1].shape.dim[0]};
    return cuda_launch(r, r->function, cuda_grid_over(r->device, (uint64_t)a.count, 1, EMBEDDING_THREADS), &a,
                       sizeof a, err);
}

// ---- gradient -------------------------------------------------------------------------------------------------

// Rows and entries are numbered in 32 bits.
static bool numbers_fit(const cuda_device *device, const op_query *q)
{
    return cuda_one_type(device, q) && cuda_elements(&q->in[0]) <= INT32_MAX &&
           q->out[0].shape.dim[0] <= INT32_MAX;
}

// Takes `bytes` of the workspace behind *used; the address of the first.
static uint64_t take(uint64_t *used, uint64_t base, int64_t bytes)
{
    const uint64_t at = base + *used;
    *used += ((uint64_t)bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

// The arguments with a workspace at `base`; its bytes, and those of them that begin as zeros.
static embedding_bwd_args lay_out(const op_query *q, uint64_t base, uint64_t *bytes, uint64_t *zero_bytes)
{
    embedding_bwd_args a = {.rows = (int64_t)cuda_elements(&q->in[0]),
                            .entries = q->out[0].shape.dim[0],
                            .features = q->out[0].shape.dim[1]};
    const int64_t chunks = quotient_up(a.rows, EMBEDDING_ROWS);
    const int64_t most = chunks < EMBEDDING_MOST_CHUNKS ? chunks : EMBEDDING_MOST_CHUNKS;
    const int64_t pieces = a.rows / EMBEDDING_RUN + a.rows / (EMBEDDING_RUN + 1);
    a.chunk = quotient_up(chunks, most) * EMBEDDING_ROWS;
    a.chunks = (uint32_t)quotient_up(a.rows, a.chunk);
    *bytes = 0;
    a.counts = (embedding_counts *)take(bytes, base, sizeof *a.counts);
    a.seen = (uint32_t *)take(bytes, base, a.chunks * a.entries * (int64_t)sizeof *a.seen);
    *zero_bytes = *bytes;
    a.rank = (uint32_t *)take(bytes, base, a.rows * (int64_t)sizeof *a.rank);
    a.list = (uint32_t *)take(bytes, base, a.rows * (int64_t)sizeof *a.list);
    a.entry = (embedding_entry *)take(bytes, base, a.entries * (int64_t)sizeof *a.entry);
    a.piece = (embedding_piece *)take(bytes, base, pieces * (int64_t)sizeof *a.piece);
    a.sums = (float *)take(bytes, base, pieces * a.features * (int64_t)sizeof *a.sums);
    return a;
}

static uint64_t gradient_workspace(const cuda_device *device, const op_query *q)
{
    (void)device;
    uint64_t bytes = 0, zero_bytes = 0;
    (void)lay_out(q, 0, &bytes, &zero_bytes);
    return bytes;
}

enum { STAGE_RANK, STAGE_BASES, STAGE_PLACE, STAGE_PIECES, STAGE_ENTRIES, STAGES };

static int64_t lanes_of(const op_query *q)
{
    const int64_t lanes = PACK_BYTES / (int64_t)dtype_bytes((hr_dtype)q->out[0].dtype);
    return q->out[0].shape.dim[1] % lanes == 0 ? lanes : 1;
}

// The first three only count and move.
static uint32_t name_gradient(const op_query *q, char name[CUDA_STAGES_MAX][CUDA_NAME_MAX])
{
    static const char *const stages[STAGES] = {"rank", "bases", "place", "pieces", "entries"};
    for (uint32_t k = 0; k < STAGE_PIECES; k++) {
        (void)snprintf(name[k], CUDA_NAME_MAX, "embedding_%s", stages[k]);
    }
    for (uint32_t k = STAGE_PIECES; k < STAGES; k++) {
        (void)snprintf(name[k], CUDA_NAME_MAX, "embedding_%s_%s_%s", stages[k],
                       lanes_of(q) > 1 ? "wide" : "narrow", cuda_suffix(cuda_type(q)));
    }
    return STAGES;
}

static hr_status launch(const cuda_run *r, CUfunction function, int64_t threads, const embedding_bwd_args *a,
                        hr_err *err)
{
    const cuda_grid grid = cuda_grid_over(r->device, (uint64_t)threads, 1, EMBEDDING_THREADS);
    return cuda_launch(r, function, grid, a, sizeof *a, err);
}

static hr_status run_gradient(const cuda_run *r, hr_err *err)
{
    uint64_t bytes = 0, zero_bytes = 0;
    embedding_bwd_args a = lay_out(r->query, r->workspace, &bytes, &zero_bytes);
    const int64_t tiles = quotient_up(a.features / lanes_of(r->query), WARP_THREADS);
    const int64_t most_pieces = a.rows / EMBEDDING_RUN + a.rows / (EMBEDDING_RUN + 1);
    a.ids = (const int32_t *)r->in[0];
    a.dy = (const void *)r->in[1];
    a.dtable = (void *)r->out[0];
    a.tiles = divisor_of(tiles);
    HR_TRY(CUDA_CALL(err, cuMemsetD8Async, r->workspace, 0, zero_bytes, r->stream));
    const cuda_grid chunks = {.blocks_x = a.chunks, .threads = EMBEDDING_ROWS};
    HR_TRY(cuda_launch(r, r->stage[STAGE_RANK], chunks, &a, sizeof a, err));
    HR_TRY(launch(r, r->stage[STAGE_BASES], a.entries, &a, err));
    HR_TRY(launch(r, r->stage[STAGE_PLACE], a.rows, &a, err));
    if (most_pieces > 0) {
        HR_TRY(launch(r, r->stage[STAGE_PIECES], most_pieces * tiles * WARP_THREADS, &a, err));
    }
    return launch(r, r->stage[STAGE_ENTRIES], a.entries * tiles * WARP_THREADS, &a, err);
}

static const cuda_impl impls[] = {
    {.op = HR_OP_EMBEDDING,
     .types = CUDA_REAL,
     .name = "lookup",
     .fits = cuda_one_type,
     .module = "embedding",
     .kernel = lookup_name,
     .run = run_lookup},
    {.op = HR_OP_EMBEDDING_BWD,
     .types = CUDA_REAL,
     .name = "sum by entry",
     .fits = numbers_fit,
     .workspace = gradient_workspace,
     .module = "embedding",
     .stages = name_gradient,
     .run = run_gradient},
};

const cuda_family cuda_family_embedding = CUDA_FAMILY(impls);
