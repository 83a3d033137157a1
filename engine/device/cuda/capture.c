// SPDX-License-Identifier: Apache-2.0
// Steps that repeat become one graph: a step whose calls were those of the steps before it is not enqueued but put off
// to its end, captured from all lanes and launched; the steps after it only fill pinned memory and launch. The first
// call that differs sends what was put off on its way, and the graph is forgotten.
#include <stdio.h>

#include "outside.h"
#include "step.h"

enum {
    CAPTURE_AFTER_MAX = 1024, // steps alike before one is captured, after many captures in vain
    NAME_BYTES = 80
};

void cuda_forget_graph(cuda_loaded *l)
{
    if (l->replay != NULL) {
        (void)cuda_driver.cuGraphExecDestroy(l->replay);
    }
    l->replay = NULL;
}

// What was put off; the rest has been enqueued as it came.
static hr_status enqueue_all(cuda_loaded *l, step_io *io, hr_err *err)
{
    for (uint32_t k = l->first; k < l->call_count; k++) {
        HR_TRY(cuda_enqueue(l, &l->calls[k], io, err));
    }
    return HR_OK;
}

hr_status cuda_divert(cuda_loaded *l, step_io *io, hr_err *err)
{
    l->mode = STEP_EAGER;
    l->alike = false;
    l->capture_after = l->capture_after < CAPTURE_AFTER_MAX ? l->capture_after * 2 : l->capture_after;
    cuda_forget_graph(l);
    l->failed = enqueue_all(l, io, err);
    return l->failed;
}

hr_status cuda_catch_up(cuda_loaded *l, hr_err *err)
{
    HR_TRY(l->mode == STEP_EAGER ? HR_OK : cuda_divert(l, NULL, err));
    return cuda_group_launch(&l->group, err);
}

// ---- capture ------------------------------------------------------------------------------------------------------

static hr_status fork_lanes(cuda_loaded *l, hr_err *err)
{
    HR_TRY(CUDA_CALL(err, cuEventRecord, l->fork, l->device->lane[HR_LANE_COMPUTE]));
    for (uint32_t k = HR_LANE_COMPUTE + 1; k < HR_LANE_COUNT; k++) {
        if (l->uses[k]) {
            HR_TRY(CUDA_CALL(err, cuStreamWaitEvent, l->device->lane[k], l->fork, CU_EVENT_WAIT_DEFAULT));
        }
    }
    return HR_OK;
}

static hr_status record_all(cuda_loaded *l, step_io *io, hr_err *err)
{
    HR_TRY(fork_lanes(l, err));
    HR_TRY(enqueue_all(l, io, err));
    return cuda_join(l, err);
}

// *graph is NULL after a failure.
static hr_status record_graph(cuda_loaded *l, step_io *io, CUgraph *graph, hr_err *err)
{
    CUstream compute = l->device->lane[HR_LANE_COMPUTE];
    *graph = NULL;
    HR_TRY(CUDA_CALL(err, cuStreamBeginCapture_v2, compute, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    const hr_status status = record_all(l, io, err);
    const CUresult result = cuda_driver.cuStreamEndCapture(compute, graph);
    if (status != HR_OK || result != CUDA_SUCCESS) {
        if (result == CUDA_SUCCESS) {
            (void)cuda_driver.cuGraphDestroy(*graph);
        }
        *graph = NULL;
        return status != HR_OK ? status : cuda_check(result, err, "capturing a step");
    }
    return HR_OK;
}

static hr_status make_graph(cuda_loaded *l, step_io *io, hr_err *err)
{
    CUgraph graph = NULL;
    const uint64_t before_bytes = cuda_free_bytes();
    HR_TRY(record_graph(l, io, &graph, err));
    const CUresult result = cuda_driver.cuGraphInstantiateWithFlags(&l->replay, graph, 0);
    (void)cuda_driver.cuGraphDestroy(graph);
    if (result != CUDA_SUCCESS) {
        l->replay = NULL;
    }
    cuda_count_context(l->device, before_bytes);
    return cuda_check(result, err, "making a captured step ready");
}

// ---- a step's end -------------------------------------------------------------------------------------------------

// What is refused during a capture may be told as if the card were gone; the driver knows.
static bool is_gone(hr_status status)
{
    return status == HR_DEVICE_LOST && cuda_is_lost();
}

hr_status cuda_launch_step(cuda_loaded *l, step_io *io, hr_err *err)
{
    const uint32_t end = l->last_count < l->last ? l->last_count : l->last;
    if (l->call_count != end) {
        return cuda_divert(l, io, err);
    }
    if (l->mode == STEP_DEFERRED) {
        const hr_status status = make_graph(l, io, &l->refused);
        if (status != HR_OK) { // it goes on as it would have gone without, and says why
            l->never = true;
            return is_gone(status) ? HR_FAIL(err, DEVICE_LOST, "the card was lost while a step was captured")
                                   : cuda_divert(l, io, err);
        }
    }
    l->device->busy = true;
    HR_TRY(cuda_check(cuda_driver.cuGraphLaunch(l->replay, l->device->lane[HR_LANE_COMPUTE]), err,
                      "launching a captured step"));
    l->replays++;
    return HR_OK;
}

// Why no step was captured though none was refused; NULL where there is nothing to say yet.
static const char *waits_for(cuda_loaded *l)
{
    char name[NAME_BYTES];
    if (l->times != NULL) {
        return "every instruction is timed by itself";
    }
    if (l->moved == HR_NO_ID) {
        return NULL;
    }
    (void)snprintf(l->waits, sizeof l->waits,
                   "%s has other addresses in every step, which a graph cannot; execution.mode=graph with "
                   "allocator.kind=static keeps them",
                   program_instr_name(l->source, &l->source->instrs[l->moved], name, sizeof name));
    return l->waits;
}

void cuda_captured(void *kernels, device_capture *out)
{
    cuda_loaded *l = kernels;
    *out = (device_capture){.wanted = l->device->capture, .replays = l->replays};
    if (l->refused.status != HR_OK) {
        out->refused = l->refused.sentence;
    } else if (out->wanted && l->replays == 0) {
        out->refused = waits_for(l);
    }
}
