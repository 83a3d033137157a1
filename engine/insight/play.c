// SPDX-License-Identifier: Apache-2.0
#include "insight/play.h"

allocator_config play_allocator_config(const hr_knobs *knobs, uint64_t limit_bytes)
{
    allocator_config c = allocator_config_of(hr_knob_text(knobs, HR_KNOB_ALLOCATOR_KIND), limit_bytes);
    c.growth = hr_knob_is(knobs, HR_KNOB_ALLOCATOR_GROWTH, "on");
    c.garbage_collection = hr_knob_is(knobs, HR_KNOB_ALLOCATOR_GARBAGE_COLLECTION, "on");
    c.release_threshold_bytes =
        hr_knob_bytes(knobs, HR_KNOB_ALLOCATOR_RELEASE_THRESHOLD, c.release_threshold_bytes);
    return c;
}

static hr_status play_steps(executor *x, const program *const *programs, uint32_t count, uint32_t steps,
                            play_result *out, hr_err *err)
{
    step_io io = {0};
    HR_TRY(executor_plan(x, programs, count, err));
    HR_TRY(executor_build(x, programs[0], err));
    executor_reset_peak(x);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t slot = 0;
        if (programs[k] == NULL) {
            continue;
        }
        out->oom_program = programs[k];
        HR_TRY(executor_attach(x, programs[k], &slot, err));
        for (uint32_t n = 0; n < (k == 0 ? steps : 1); n++) {
            HR_TRY(executor_step(x, slot, &io, err));
        }
        if (k == 0) {
            out->peak = executor_ledger(x)->peak;
        }
    }
    out->oom_program = NULL;
    return HR_OK;
}

static hr_status play_on(allocator *heap, const program *const *programs, uint32_t count, uint32_t steps,
                         play_result *out, hr_err *err)
{
    executor *x = NULL;
    HR_TRY(executor_create(NULL, NULL, heap, NULL, &x, err));
    out->oom_program = programs[0];
    hr_status status = play_steps(x, programs, count, steps, out, err);
    out->stats = allocator_get_stats(heap);
    out->oom = *executor_last_oom(x);
    out->fits = status == HR_OK;
    executor_destroy(x);
    return status == HR_OOM ? HR_OK : status;
}

hr_status play_programs(const device_ops *device, void *device_context, const hr_knobs *knobs,
                        uint64_t limit_bytes, const program *const *programs, uint32_t count, uint32_t steps,
                        play_result *out, hr_err *err)
{
    backing numbers;
    allocator *heap = NULL;
    allocator_config config = play_allocator_config(knobs, limit_bytes);
    *out = (play_result){0};
    HR_TRY(device->memory(device_context, limit_bytes, true, &numbers, err));
    hr_status status = allocator_create(&config, &numbers, NULL, &heap, err);
    if (status == HR_OK) {
        status = play_on(heap, programs, count, steps, out, err);
    }
    allocator_destroy(heap);
    backing_close(&numbers);
    return status;
}
