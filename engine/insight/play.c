// SPDX-License-Identifier: Apache-2.0
#include "insight/play.h"

#include <string.h>

#include "headroom/card.h"
#include "headroom/units.h"

#include "device/cost.h"
#include "formats/live_names.h"
#include "insight/caching_config.h"
#include "knobs/torch_settings.h"
#include "memory/heap_snapshot.h"

// The card that a fraction is of: cards have whole MiB, and none has more than 1 EiB.
static uint64_t card_of_fraction(uint64_t limit_bytes, double fraction)
{
    const double most_mib = (double)(UINT64_C(1) << 40);
    const double mib = (double)limit_bytes / fraction / (double)HR_MIB + 0.5;
    return (uint64_t)(mib < most_mib ? mib : most_mib) * HR_MIB;
}

allocator_config play_allocator_config(const hr_knobs *knobs, uint64_t limit_bytes)
{
    allocator_config c = allocator_config_of(hr_knob_text(knobs, HR_KNOB_ALLOCATOR_KIND), limit_bytes);
    const torch_conf torch = torch_settings_of(knobs);
    const double fraction = torch_settings_fraction(knobs);
    // Without a limit there is nothing to take at once: the pool grows.
    c.growth = hr_knob_is(knobs, HR_KNOB_ALLOCATOR_GROWTH, "on") || hr_limit_is_none(limit_bytes);
    c.garbage_collection = hr_knob_is(knobs, HR_KNOB_ALLOCATOR_GARBAGE_COLLECTION, "on");
    c.release_threshold_bytes =
        hr_knob_bytes(knobs, HR_KNOB_ALLOCATOR_RELEASE_THRESHOLD, c.release_threshold_bytes);
    c.caching = caching_options_of(&torch);
    c.caching.order = caching_order_of_version(hr_knob_text(knobs, HR_KNOB_ALLOCATOR_VERSION));
    if (fraction > 0) {
        c.limit_is_fraction = true;
        c.device_bytes = card_of_fraction(limit_bytes, fraction);
    }
    return c;
}

uint64_t play_backing_bytes(const allocator_config *config)
{
    bool passes = config->limit_is_fraction && config->caching.expandable_segments &&
                  allocator_traits_of(config->kind).expands;
    return passes ? config->device_bytes : config->limit_bytes;
}

static void announce_step(trace_bus *bus, uint32_t step)
{
    if (bus != NULL) {
        bus->step = step;
    }
}

static hr_status play_steps(executor *x, trace_bus *bus, const program *const *programs, uint32_t count,
                            uint32_t steps, play_result *out, hr_err *err)
{
    step_io io = {0};
    uint32_t done = 0;
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
            announce_step(bus, ++done);
        }
        if (k == 0) {
            out->peak = executor_ledger(x)->peak;
        }
    }
    out->oom_program = NULL;
    return HR_OK;
}

static hr_status play_on(allocator *heap, trace_bus *bus, const program *const *programs, uint32_t count,
                         uint32_t steps, play_result *out, hr_err *err)
{
    executor *x = NULL;
    HR_TRY(executor_create(NULL, NULL, heap, bus, &x, err));
    out->oom_program = programs[0];
    out->heap = heap;
    hr_status status = play_steps(x, bus, programs, count, steps, out, err);
    out->heap = NULL;
    out->stats = allocator_get_stats(heap);
    out->oom = *executor_last_oom(x);
    out->fits = status == HR_OK;
    executor_destroy(x);
    return status == HR_OOM ? HR_OK : status;
}

hr_status play_traced(const device_ops *device, void *device_context, const hr_knobs *knobs,
                      uint64_t limit_bytes, trace_bus *bus, const program *const *programs, uint32_t count,
                      uint32_t steps, play_result *out, hr_err *err)
{
    backing numbers;
    allocator *heap = NULL;
    allocator_config config = play_allocator_config(knobs, limit_bytes);
    *out = (play_result){0};
    HR_TRY(device->memory(device_context, play_backing_bytes(&config), true, &numbers, err));
    hr_status status = allocator_create(&config, &numbers, bus, &heap, err);
    if (status == HR_OK) {
        status = play_on(heap, bus, programs, count, steps, out, err);
    }
    allocator_destroy(heap);
    backing_close(&numbers);
    return status;
}

hr_status play_programs(const device_ops *device, void *device_context, const hr_knobs *knobs,
                        uint64_t limit_bytes, const program *const *programs, uint32_t count, uint32_t steps,
                        play_result *out, hr_err *err)
{
    return play_traced(device, device_context, knobs, limit_bytes, NULL, programs, count, steps, out, err);
}

static hr_status judge_in(void *context, const program *p, target_judgement *out, hr_err *err)
{
    play_place *place = context;
    play_result played;
    if (place->stops != NULL && place->stops(place->stops_context)) {
        return HR_FAIL(err, INTERRUPTED, "a plan under a budget was given up for what was asked meanwhile");
    }
    place->judged_instrs += p->instr_count;
    HR_TRY(play_programs(place->device, place->device_context, place->knobs, place->limit_bytes,
                         (const program *const[]){p}, 1, PLAY_STEPS, &played, err));
    const uint64_t asked_bytes = program_peak_bytes(p);
    out->fits = played.fits;
    out->peak_bytes = played.fits                        ? played.peak.in_use_bytes
                      : asked_bytes > place->limit_bytes ? asked_bytes
                                                         : place->limit_bytes + 1;
    return HR_OK;
}

static uint64_t duration_in(void *context, const program *p, const instr *i)
{
    const play_place *place = context;
    return place->device->duration_ns(place->device_context, p, i);
}

target_judge play_judge(play_place *place)
{
    const device_ops *device = place->device;
    const bool tells = device->card_times && cost_basis(device, place->device_context) != HR_TIME_UNKNOWN;
    return (target_judge){.judge = judge_in, .context = place, .duration_ns = tells ? duration_in : NULL};
}

// ---- the heap of a refusal ------------------------------------------------------------------------------------

typedef struct witness {
    const program *build;
    const play_result *played;
    live_names names;
    heap_snapshot *snapshot;
    hr_status status;
    hr_err err;
} witness;

// While a step is played its tensors are numbered as in its program, before that as in the one that was built.
static const char *name_of(const witness *w, const hr_event *event)
{
    const program *p = event->instr == HR_NO_ID ? w->build : w->played->oom_program;
    const uint32_t id = event->u.memory.tensor;
    return p != NULL && id < p->tensor_count ? p->tensors[id].name : NULL;
}

static void watch(void *context, const hr_event *event)
{
    witness *w = context;
    live_names_note(&w->names, event, name_of(w, event));
    if (event->kind != HR_EVENT_OOM || w->played->heap == NULL || w->status != HR_OK) {
        return;
    }
    heap_snapshot_deinit(w->snapshot);
    w->status = heap_snapshot_of(w->played->heap, w->snapshot, &w->err);
    if (w->status == HR_OK) {
        w->status = live_names_give(&w->names, event->device, w->snapshot, &w->err);
    }
    const char *name = w->status == HR_OK ? name_of(w, event) : NULL;
    if (name != NULL) {
        w->snapshot->refusal.tensor = intern_add(&w->snapshot->names, name, strlen(name));
        w->status =
            w->snapshot->refusal.tensor != INTERN_NONE
                ? HR_OK
                : HR_FAIL(&w->err, NOMEM, "a heap's snapshot: needed host memory for a name, had none");
    }
}

hr_status play_failure_heap(const device_ops *device, void *device_context, const hr_knobs *knobs,
                            uint64_t limit_bytes, const program *const *programs, uint32_t count,
                            uint32_t steps, heap_snapshot *out, hr_err *err)
{
    play_result played;
    trace_bus bus;
    *out = (heap_snapshot){0};
    witness w = {.build = programs[0], .played = &played, .snapshot = out};
    trace_bus_init(&bus);
    bus.simulated = true;
    (void)trace_attach(&bus, watch, &w);
    hr_status status =
        play_traced(device, device_context, knobs, limit_bytes, &bus, programs, count, steps, &played, err);
    if (status == HR_OK && w.status != HR_OK) {
        status = w.status;
        if (err != NULL) {
            *err = w.err;
        }
    }
    if (status != HR_OK) {
        heap_snapshot_deinit(out);
    }
    live_names_deinit(&w.names);
    return status;
}
