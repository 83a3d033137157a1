// SPDX-License-Identifier: Apache-2.0
#include "train/build.h"

#include <string.h>

#include "base/host_mem.h"
#include "insight/planner.h"
#include "knobs/checkpoint.h"
#include "program/compile.h"

static hr_status open_device(build *b, const build_request *r, hr_err *err)
{
    HR_TRY(device_choice_open(r->knobs, r->plan_only, &b->on, err));
    b->device = b->on.ops;
    b->context = b->on.context;
    device_choice_target(&b->on, &b->target);
    b->ahead = hr_knob_batches_ahead(r->knobs);
    b->resident = hr_knob_is(r->knobs, HR_KNOB_PIPELINE_RESIDENT, "on");
    return device_choice_limit_bytes(&b->on, r->knobs, &b->limit_bytes, err);
}

static hr_status compile_for(build *b, const build_request *r, const hr_target *target, hr_err *err)
{
    uint32_t batch = (uint32_t)hr_knob_int(r->knobs, HR_KNOB_BATCH_SIZE);
    const uint32_t samples[BUILD_PROGRAMS] = {
        [BUILD_TRAIN] = batch,
        [BUILD_TRAIN_REST] = r->rest_samples,
        [BUILD_TRAIN_PARTIAL] = r->partial_samples,
        [BUILD_EVAL] = batch,
        [BUILD_EVAL_PARTIAL] = r->eval_partial_samples,
        [BUILD_FEED] = r->feeds ? batch : 0,
    };
    for (int k = 0; k < BUILD_PROGRAMS; k++) {
        program_mode mode = k < BUILD_EVAL ? PROGRAM_TRAIN : k < BUILD_FEED ? PROGRAM_EVALUATE : PROGRAM_FEED;
        if (samples[k] != 0 && b->programs[k] == NULL) {
            HR_TRY(program_compile(r->model, r->knobs, mode, samples[k], target, &b->programs[k], err));
        }
    }
    return HR_OK;
}

hr_status build_compile(build *b, const build_request *r, hr_err *err)
{
    play_place place = {
        .device = b->device, .device_context = b->context, .knobs = r->knobs, .limit_bytes = b->limit_bytes};
    const target_judge judge = play_judge(&place);
    hr_target target = b->target;
    target.judge = &judge;
    const hr_status status = compile_for(b, r, &target, err);
    if (r->judged_instrs != NULL) {
        *r->judged_instrs += place.judged_instrs;
    }
    return status;
}

hr_status build_prepare(const build_request *request, build **out, hr_err *err)
{
    build *b = hr_calloc(1, sizeof *b);
    *out = NULL;
    if (b == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a build");
    }
    hr_status status = open_device(b, request, err);
    if (status == HR_OK) {
        b->arithmetic = !request->plan_only && !b->device->simulated;
        if (b->target.very_slow) {
            planner_load_answers();
        }
        status = build_compile(b, request, err);
    }
    if (status == HR_OK && b->target.very_slow) {
        planner_keep_answers();
    }
    if (status != HR_OK) {
        build_destroy(b);
        return status;
    }
    *out = b;
    return HR_OK;
}

hr_status build_dry_run(const build *b, const hr_knobs *knobs, play_result *out, hr_err *err)
{
    return play_programs(b->device, b->context, knobs, b->limit_bytes, (const program *const *)b->programs,
                         BUILD_PROGRAMS, PLAY_STEPS, out, err);
}

hr_status build_play_watched(const build *b, const hr_knobs *knobs, trace_bus *bus, play_result *out,
                             hr_err *err)
{
    const program *full[BUILD_PROGRAMS] = {
        [BUILD_TRAIN] = b->programs[BUILD_TRAIN], [BUILD_EVAL] = b->programs[BUILD_EVAL]};
    uint64_t limit_bytes = 0;
    HR_TRY(device_choice_limit_bytes(&b->on, knobs, &limit_bytes, err));
    return play_traced(b->device, b->context, knobs, limit_bytes, bus, full, BUILD_PROGRAMS, PLAY_STEPS, out,
                       err);
}

hr_status build_play_full(const build *b, const hr_knobs *knobs, play_result *out, hr_err *err)
{
    return build_play_watched(b, knobs, NULL, out, err);
}

static bool is_of_memory(hr_knob_id id)
{
    static const char group[] = "allocator.";
    return id == HR_KNOB_DEVICE_VRAM || id == HR_KNOB_DEVICE_LOGICAL ||
           strncmp(hr_knob_rows(NULL)[id].key, group, sizeof group - 1) == 0;
}

// Stages of the host, behind which a program sees the same batches.
static bool is_of_host(hr_knob_id id)
{
    return id == HR_KNOB_PIPELINE_STAGES || id == HR_KNOB_PIPELINE_CACHE || id == HR_KNOB_PIPELINE_SHUFFLE ||
           id == HR_KNOB_PIPELINE_SHUFFLE_OF || id == HR_KNOB_PIPELINE_MAP_THREADS ||
           id == HR_KNOB_PIPELINE_PREFETCH || id == HR_KNOB_PIPELINE_AUTOTUNE ||
           id == HR_KNOB_PIPELINE_PINNED || id == HR_KNOB_PIPELINE_RAM_LIMIT;
}

bool build_compiles_alike(const hr_knobs *a, const hr_knobs *b)
{
    char mine[HR_KNOB_TEXT_MAX], yours[HR_KNOB_TEXT_MAX];
    const bool by_memory =
        checkpoint_is_budget(a) || checkpoint_is_budget(b); // what a peak is, is the allocator's
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        const bool apart = is_of_host((hr_knob_id)id) || (!by_memory && is_of_memory((hr_knob_id)id));
        if (!apart &&
            strcmp(hr_knob_format(a, (hr_knob_id)id, mine), hr_knob_format(b, (hr_knob_id)id, yours)) != 0) {
            return false;
        }
    }
    return true;
}

hr_status build_failure_heap(const build *b, const hr_knobs *knobs, heap_snapshot *out, hr_err *err)
{
    return play_failure_heap(b->device, b->context, knobs, b->limit_bytes,
                             (const program *const *)b->programs, BUILD_PROGRAMS, PLAY_STEPS, out, err);
}

// What a listing, a report and a table of times name is what runs.
static void note_prepared(build *b, int which)
{
    program *p = b->programs[which];
    for (uint32_t n = 0; n < p->instr_count; n++) {
        device_prepared prepared;
        executor_prepared(b->x, b->slots[which], n, &prepared);
        if (prepared.impl != NULL && p->instrs[n].impl != NULL) {
            program_note_prepared(p, n, prepared.impl);
        }
    }
}

hr_status build_allocate(build *b, const hr_knobs *knobs, trace_bus *bus, hr_err *err)
{
    allocator_config config = play_allocator_config(knobs, b->limit_bytes);
    bool has_kernels = b->arithmetic || b->device->simulated;
    HR_TRY(b->device->memory(b->context, play_backing_bytes(&config), !b->arithmetic, &b->source, err));
    HR_TRY(allocator_create(&config, &b->source, bus, &b->heap, err));
    HR_TRY(executor_create(has_kernels ? b->device : NULL, b->context, b->heap, bus, &b->x, err));
    HR_TRY(executor_plan(b->x, (const program *const *)b->programs, BUILD_PROGRAMS, err));
    HR_TRY(executor_build(b->x, b->programs[BUILD_TRAIN], err));
    for (int k = 0; k < BUILD_PROGRAMS; k++) {
        if (b->programs[k] != NULL) {
            HR_TRY(executor_attach(b->x, b->programs[k], &b->slots[k], err));
            note_prepared(b, k);
        }
    }
    executor_reset_peak(b->x);
    return HR_OK;
}

void build_destroy(build *b)
{
    if (b == NULL) {
        return;
    }
    executor_destroy(b->x);
    allocator_destroy(b->heap);
    if (b->source.close != NULL) {
        backing_close(&b->source);
    }
    for (int k = 0; k < BUILD_PROGRAMS; k++) {
        program_destroy(b->programs[k]);
    }
    device_choice_close(&b->on);
    hr_free(b);
}
