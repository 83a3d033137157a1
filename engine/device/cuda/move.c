// SPDX-License-Identifier: Apache-2.0
// What only moves bytes: host batches in, scalars out, tensors to the host and back; and which lane waits for which.
#include <string.h>

#include "cuda_device.h"

// ---- batches --------------------------------------------------------------------------------------------------

static uint64_t batch_bytes(const op_query *q)
{
    return cuda_bytes(&q->out[0]);
}

static void stage_batch(const op_query *q, const step_io *io, void *host)
{
    memcpy(host, io->slot[q->attr.slot], cuda_bytes(&q->out[0]));
}

static hr_status run_input(const cuda_run *r, hr_err *err)
{
    return CUDA_CALL(err, cuMemcpyHtoDAsync_v2, r->out[0], r->batch, cuda_bytes(&r->query->out[0]),
                     r->stream);
}

// A batch that was copied for a later round moves up.
static hr_status run_advance(const cuda_run *r, hr_err *err)
{
    return CUDA_CALL(err, cuMemcpyDtoDAsync_v2, r->out[0], r->in[0], cuda_bytes(&r->query->out[0]),
                     r->stream);
}

// ---- results --------------------------------------------------------------------------------------------------

// What a READ has on the host: the weight of its round, then its operands.
typedef struct read_head {
    double weight;
    int32_t word; // correct, finite
    float real;   // loss, scale
} read_head;

static uint64_t read_bytes(const op_query *q)
{
    return q->attr.slot == READ_HEALTH ? cuda_bytes(&q->in[0]) : sizeof(read_head);
}

static void stage_read(const op_query *q, const step_io *io, void *host)
{
    if (q->attr.slot == READ_LOSS) {
        ((read_head *)host)->weight = step_io_weight(io, &q->attr);
    }
}

static hr_status copy_word(const cuda_run *r, void *to, uint32_t operand, hr_err *err)
{
    return CUDA_CALL(err, cuMemcpyDtoHAsync_v2, to, r->in[operand], sizeof(int32_t), r->stream);
}

static hr_status run_read(const cuda_run *r, hr_err *err)
{
    read_head *head = r->host;
    switch ((read_slot)r->query->attr.slot) {
    case READ_HEALTH:
        return CUDA_CALL(err, cuMemcpyDtoHAsync_v2, r->host, r->in[0], cuda_bytes(&r->query->in[0]),
                         r->stream);
    case READ_FINITE:
        HR_TRY(copy_word(r, &head->real, 1, err));
        return copy_word(r, &head->word, 0, err);
    case READ_CORRECT:
        return copy_word(r, &head->word, 0, err);
    case READ_LOSS:
        break;
    }
    return copy_word(r, &head->real, 0, err);
}

static void collect_read(const op_query *q, const void *host, step_io *io)
{
    const read_head *head = host;
    switch ((read_slot)q->attr.slot) {
    case READ_HEALTH:
        io->health = host;
        break;
    case READ_FINITE:
        io->nonfinite = head->word == 0;
        io->loss_scale = head->real;
        break;
    case READ_CORRECT:
        io->correct += head->word;
        break;
    case READ_LOSS:
        step_io_add_loss(io, &q->attr, head->weight, (double)head->real);
        break;
    }
}

// ---- offload and order ------------------------------------------------------------------------------------------

static hr_status run_offload(const cuda_run *r, hr_err *err)
{
    return CUDA_CALL(err, cuMemcpyDtoHAsync_v2, (void *)(uintptr_t)r->out[0], r->in[0],
                     cuda_bytes(&r->query->in[0]), r->stream);
}

static hr_status run_fetch(const cuda_run *r, hr_err *err)
{
    return CUDA_CALL(err, cuMemcpyHtoDAsync_v2, r->out[0], (const void *)(uintptr_t)r->in[0],
                     cuda_bytes(&r->query->in[0]), r->stream);
}

static hr_status run_record(const cuda_run *r, hr_err *err)
{
    return CUDA_CALL(err, cuEventRecord, r->event, r->stream);
}

static hr_status run_wait(const cuda_run *r, hr_err *err)
{
    return CUDA_CALL(err, cuStreamWaitEvent, r->stream, r->event, CU_EVENT_WAIT_DEFAULT);
}

static const cuda_impl impls[] = {
    {.op = HR_OP_INPUT,
     .types = CUDA_REAL,
     .name = "copy",
     .host_bytes = batch_bytes,
     .stage = stage_batch,
     .is_batch = true,
     .run = run_input},
    {.op = HR_OP_PREFETCH,
     .types = CUDA_REAL,
     .name = "copy",
     .host_bytes = batch_bytes,
     .stage = stage_batch,
     .is_batch = true,
     .run = run_input},
    {.op = HR_OP_ADVANCE, .types = CUDA_REAL, .name = "copy", .run = run_advance},
    {.op = HR_OP_READ,
     .types = CUDA_REAL,
     .name = "copy",
     .host_bytes = read_bytes,
     .stage = stage_read,
     .collect = collect_read,
     .run = run_read},
    {.op = HR_OP_OFFLOAD, .types = CUDA_REAL, .name = "copy", .run = run_offload},
    {.op = HR_OP_FETCH, .types = CUDA_REAL, .name = "copy", .run = run_fetch},
    {.op = HR_OP_RECORD, .types = CUDA_REAL, .name = "event", .run = run_record},
    {.op = HR_OP_WAIT, .types = CUDA_REAL, .name = "event", .run = run_wait},
};

const cuda_family cuda_family_move = CUDA_FAMILY(impls);
