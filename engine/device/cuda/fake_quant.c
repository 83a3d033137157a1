// SPDX-License-Identifier: Apache-2.0
// Fake quantization, and the ranges that it follows (kernels/fake_quant.cu).
#include <stdio.h>

#include "cuda_device.h"
#include "kernels/fake_quant_args.h"

enum { FIRST, SECOND, STAGES };

static int64_t channels_of(const op_query *q)
{
    const hr_shape *shape = &q->in[0].shape;
    return q->attr.count == 0 ? 1 : shape->dim[shape->rank - 1];
}

static cuda_grid grid_of(const cuda_run *r)
{
    return cuda_grid_over(r->device, cuda_elements(&r->query->in[0]), 4, FAKE_QUANT_THREADS);
}

static fake_quant_args args_of(const cuda_run *r)
{
    const op_query *q = r->query;
    return (fake_quant_args){.x = (const void *)r->in[0],
                             .y = (void *)r->out[0],
                             .count = (int64_t)cuda_elements(&q->in[0]),
                             .channels = 1};
}

static hr_status clear_largest(const cuda_run *r, int64_t count, hr_err *err)
{
    return CUDA_CALL(err, cuMemsetD8Async, r->workspace, 0, (uint64_t)count * sizeof(float), r->stream);
}

// ---- weights --------------------------------------------------------------------------------------------------

static uint64_t weights_workspace(const cuda_device *device, const op_query *q)
{
    (void)device;
    return (uint64_t)channels_of(q) * sizeof(float);
}

static uint32_t weights_stages(const op_query *q, char name[CUDA_STAGES_MAX][CUDA_NAME_MAX])
{
    const char *suffix = cuda_suffix(q->in[0].dtype);
    (void)snprintf(name[FIRST], CUDA_NAME_MAX, "weights_largest_%s", suffix);
    (void)snprintf(name[SECOND], CUDA_NAME_MAX, "weights_levels_%s", suffix);
    return STAGES;
}

static hr_status run_weights(const cuda_run *r, hr_err *err)
{
    fake_quant_args a = args_of(r);
    a.channels = channels_of(r->query);
    a.largest = (float *)r->workspace;
    HR_TRY(clear_largest(r, a.channels, err));
    HR_TRY(cuda_launch(r, r->stage[FIRST], grid_of(r), &a, sizeof a, err));
    return cuda_launch(r, r->stage[SECOND], grid_of(r), &a, sizeof a, err);
}

// ---- ranges ---------------------------------------------------------------------------------------------------

static uint64_t range_workspace(const cuda_device *device, const op_query *q)
{
    (void)device, (void)q;
    return 2 * sizeof(float);
}

static uint32_t range_stages(const op_query *q, char name[CUDA_STAGES_MAX][CUDA_NAME_MAX])
{
    (void)snprintf(name[FIRST], CUDA_NAME_MAX, "batch_range_%s", cuda_suffix(q->in[0].dtype));
    (void)snprintf(name[SECOND], CUDA_NAME_MAX, "track_range");
    return STAGES;
}

static bool range_fits(const cuda_device *device, const op_query *q)
{
    (void)device;
    return q->in[1].dtype == HR_F32;
}

static hr_status run_track_range(const cuda_run *r, hr_err *err)
{
    fake_quant_args a = args_of(r);
    const double decay = r->query->attr.momentum;
    a.range = (float *)r->in[1];
    a.largest = (float *)r->workspace;
    a.keep = 1.0F - (float)decay;
    a.widest = decay == 0.0;
    HR_TRY(clear_largest(r, 2, err));
    HR_TRY(cuda_launch(r, r->stage[FIRST], grid_of(r), &a, sizeof a, err));
    return cuda_launch(r, r->stage[SECOND], (cuda_grid){1, 1, 1, 32, 0}, &a, sizeof a, err);
}

// ---- activations ----------------------------------------------------------------------------------------------

static void name_of(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "%s_%s", op_name((hr_op)q->op), cuda_suffix(q->in[0].dtype));
}

// Values and their gradient have one type, the range beside them is float32.
static bool fits(const cuda_device *device, const op_query *q)
{
    return range_fits(device, q) && q->in[0].dtype == q->out[0].dtype &&
           (q->in_count < 3 || q->in[2].dtype == q->out[0].dtype);
}

static hr_status run(const cuda_run *r, hr_err *err)
{
    fake_quant_args a = args_of(r);
    a.range = (float *)r->in[1];
    a.dy = r->query->in_count < 3 ? NULL : (const void *)r->in[2];
    return cuda_launch(r, r->function, grid_of(r), &a, sizeof a, err);
}

static const cuda_impl impls[] = {
    {.op = HR_OP_FAKE_QUANT_WEIGHTS,
     .types = CUDA_REAL,
     .name = "fake_quant",
     .workspace = weights_workspace,
     .module = "fake_quant",
     .stages = weights_stages,
     .run = run_weights},
    {.op = HR_OP_FAKE_QUANT,
     .types = CUDA_REAL,
     .name = "fake_quant",
     .fits = fits,
     .module = "fake_quant",
     .kernel = name_of,
     .run = run},
    {.op = HR_OP_FAKE_QUANT_BWD,
     .types = CUDA_REAL,
     .name = "fake_quant",
     .fits = fits,
     .module = "fake_quant",
     .kernel = name_of,
     .run = run},
    {.op = HR_OP_TRACK_RANGE,
     .types = CUDA_REAL,
     .name = "fake_quant",
     .fits = range_fits,
     .workspace = range_workspace,
     .module = "fake_quant",
     .stages = range_stages,
     .run = run_track_range},
};

const cuda_family cuda_family_fake_quant = CUDA_FAMILY(impls);
