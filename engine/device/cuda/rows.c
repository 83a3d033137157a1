// SPDX-License-Identifier: Apache-2.0
#include "rows.h"

#include <stdio.h>

#include "kernels/rows_args.h"

enum {
    WARP = 32,
    PACK_BYTES = 16,
    LEAST_THREADS = 64, // of a block for one row
    THREADS_PER_PROCESSOR = 2048,
    STATIC_SHARED_BYTES =
        1024, // what kernels over rows have beside the row, and what the card keeps of a block's
};

static bool has_vectors(int64_t pitch, uint32_t type)
{
    return pitch % (int64_t)(PACK_BYTES / dtype_bytes((hr_dtype)type)) == 0;
}

static cuda_rows_mode mode_of(int64_t columns, bool vectors)
{
    return columns <= (vectors ? ROWS_WARP_ELEMENTS : ROWS_WARP_SINGLES)     ? CUDA_ROWS_WARP
           : columns <= (vectors ? ROWS_BLOCK_ELEMENTS : ROWS_BLOCK_SINGLES) ? CUDA_ROWS_BLOCK
                                                                             : CUDA_ROWS_LONG;
}

static uint32_t threads_of(const cuda_rows *r)
{
    const int64_t per_thread = (r->vectors ? ROWS_BLOCK_ELEMENTS : ROWS_BLOCK_SINGLES) / ROWS_BLOCK_THREADS;
    const uint32_t needed = (uint32_t)((r->columns + per_thread * WARP - 1) / (per_thread * WARP)) * WARP;
    return r->mode == CUDA_ROWS_WARP   ? ROWS_WARP_THREADS
           : r->mode == CUDA_ROWS_LONG ? ROWS_LONG_THREADS
           : needed < LEAST_THREADS    ? LEAST_THREADS
                                       : needed;
}

cuda_rows cuda_rows_of(const cuda_device *device, const op_operand *t, uint32_t type)
{
    const int64_t columns = t->shape.dim[t->shape.rank - 1], pitch = operand_pitch(t);
    cuda_rows r = {.rows = (int64_t)cuda_elements(t) / columns,
                   .columns = columns,
                   .pitch = pitch,
                   .vectors = has_vectors(pitch, type)};
    r.mode = mode_of(columns, r.vectors);
    const uint32_t threads = threads_of(&r);
    r.at_once = r.mode == CUDA_ROWS_WARP ? threads / WARP : 1;
    const int64_t blocks = (r.rows + r.at_once - 1) / r.at_once;
    const int64_t most =
        (int64_t)cuda_device_traits(device)->multiprocessors * (THREADS_PER_PROCESSOR / threads) * 2;
    r.grid = (cuda_grid){.blocks_x = (uint32_t)(blocks < most ? blocks : most),
                         .blocks_y = 1,
                         .blocks_z = 1,
                         .threads = threads};
    return r;
}

int32_t cuda_rows_cache(const cuda_device *device, cuda_rows *rows, uint32_t type)
{
    const uint64_t bytes = (uint64_t)rows->pitch * dtype_bytes((hr_dtype)type); // the last vector is whole
    const uint64_t room = cuda_device_traits(device)->shared_bytes_per_block;
    if (rows->mode != CUDA_ROWS_LONG || bytes + STATIC_SHARED_BYTES > room) {
        return 0;
    }
    rows->grid.shared_bytes = (uint32_t)bytes;
    return 1;
}

void cuda_rows_kernel(const op_query *q, char name[CUDA_NAME_MAX])
{
    static const char *const modes[] = {
        [CUDA_ROWS_WARP] = "warp", [CUDA_ROWS_BLOCK] = "block", [CUDA_ROWS_LONG] = "long"};
    const int64_t columns = q->in[0].shape.dim[q->in[0].shape.rank - 1];
    const uint32_t type = cuda_type(q);
    (void)snprintf(name, CUDA_NAME_MAX, "%s_%s_%s", op_name((hr_op)q->op),
                   modes[mode_of(columns, has_vectors(operand_pitch(&q->in[0]), type))], cuda_suffix(type));
}
