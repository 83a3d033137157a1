// SPDX-License-Identifier: Apache-2.0
// Tables: lookup, and a gradient that adds every entry's rows in their order (kernels/embedding.cu). Its scratch: a count
// of every entry in every chunk of rows, the list of rows, and float32 sums of the pieces of entries with many rows.
#include <stdio.h>

#include "base/host_mem.h"
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

typedef struct gradient_state {
    CUfunction rank, bases, place, pieces, entries;
} gradient_state;

static int64_t lanes_of(const op_query *q)
{
    const int64_t lanes = PACK_BYTES / (int64_t)dtype_bytes((hr_dtype)q->out[0].dtype);
    return q->out[0].shape.dim[1] % lanes == 0 ? lanes : 1;
}

static hr_status find_sum(cuda_device *device, const op_query *q, const char *what, CUfunction *out,
                          hr_err *err)
{
    char name[CUDA_NAME_MAX];
    (void)snprintf(name, sizeof name, "embedding_%s_%s_%s", what, lanes_of(q) > 1 ? "wide" : "narrow",
                   cuda_suffix(cuda_type(q)));
    return cuda_function(device, "embedding", name, out, err);
}

static hr_status find_kernels(cuda_device *device, const op_query *q, gradient_state *s, hr_err *err)
{
    HR_TRY(cuda_function(device, "embedding", "embedding_rank", &s->rank, err));
    HR_TRY(cuda_function(device, "embedding", "embedding_bases", &s->bases, err));
    HR_TRY(cuda_function(device, "embedding", "embedding_place", &s->place, err));
    HR_TRY(find_sum(device, q, "pieces", &s->pieces, err));
    return find_sum(device, q, "entries", &s->entries, err);
}

static hr_status prepare(cuda_device *device, const program *p, const instr *i, const op_query *q,
                         uint64_t workspace_bytes, void **state, hr_err *err)
{
    (void)p, (void)i, (void)workspace_bytes;
    gradient_state *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the kernels of a table's gradient");
    }
    const hr_status status = find_kernels(device, q, s, err);
    if (status != HR_OK) {
        hr_free(s);
        return status;
    }
    *state = s;
    return HR_OK;
}

static void release(cuda_device *device, void *state)
{
    (void)device;
    hr_free(state);
}

static hr_status launch(const cuda_run *r, CUfunction function, int64_t threads, const embedding_bwd_args *a,
                        hr_err *err)
{
    const cuda_grid grid = cuda_grid_over(r->device, (uint64_t)threads, 1, EMBEDDING_THREADS);
    return cuda_launch(r, function, grid, a, sizeof *a, err);
}

static hr_status run_gradient(const cuda_run *r, hr_err *err)
{
    const gradient_state *s = r->state;
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
    HR_TRY(cuda_launch(r, s->rank, chunks, &a, sizeof a, err));
    HR_TRY(launch(r, s->bases, a.entries, &a, err));
    HR_TRY(launch(r, s->place, a.rows, &a, err));
    if (most_pieces > 0) {
        HR_TRY(launch(r, s->pieces, most_pieces * tiles * WARP_THREADS, &a, err));
    }
    return launch(r, s->entries, a.entries * tiles * WARP_THREADS, &a, err);
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
     .prepare = prepare,
     .release = release,
     .run = run_gradient},
};

const cuda_family cuda_family_embedding = CUDA_FAMILY(impls);
