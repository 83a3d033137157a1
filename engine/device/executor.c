// SPDX-License-Identifier: Apache-2.0
#include "device/executor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/host_mem.h"
#include "base/vec.h"
#include "device/bound.h"
#include "device/cost.h"
#include "device/first_step.h"
#include "device/gradients.h"
#include "device/packing.h"
#include "memory/heap_snapshot.h"

// A persistent tensor, allocated once and shared by every attached program.
typedef struct resident {
    const char *name; // of the program it was built from, borrowed
    hr_category category;
    uint64_t bytes, address;
    bool on_host;
    void *host; // owned; NULL in a plan
} resident;

// Bytes that a RETAIN handed over: they are not freed before the build goes.
typedef struct kept {
    uint64_t address;
} kept;

struct executor {
    const device_ops *device;
    void *device_context;
    allocator *heap;
    trace_bus *bus;
    VEC(resident) residents;
    VEC(bound) programs;
    const program **planned; // [planned_count] as they were planned
    uint32_t planned_count;
    VEC(kept) retained;
    uint32_t round_begin, rounds_left; // of the REPEAT under way
    uint32_t round;                    // of the step, from 0 on
    bool lasts;                        // the step has written what outlives it
    uint32_t looks_left; // for a round that is like the one before, where the rest would not be seen
    uint64_t round_hash; // of the heap as the round began
    ledger ledger;
    executor_oom oom;
    uint64_t floor_bytes, peak_bytes, simulated_ns;
    uint64_t step_begin_ns; // of the bus, on simulated devices
    const bound *told;      // while before_update of its step runs
};

hr_status executor_create(const device_ops *device, void *device_context, allocator *heap, trace_bus *bus,
                          executor **out, hr_err *err)
{
    executor *x = hr_calloc(1, sizeof *x);
    *out = x;
    if (x == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for an executor");
    }
    x->device = device;
    x->device_context = device_context;
    x->heap = heap;
    x->bus = bus;
    ledger_init(&x->ledger);
    return HR_OK;
}

// ---- host memory ----------------------------------------------------------------------------------------------

static hr_status host_take(const executor *x, uint64_t bytes, void **out, hr_err *err)
{
    if (x->device != NULL && x->device->host_take != NULL) {
        return x->device->host_take(x->device_context, bytes, out, err);
    }
    *out = hr_calloc(bytes, 1);
    return *out != NULL
               ? HR_OK
               : HR_FAIL(err, NOMEM, "no host memory for what is offloaded: needed %" PRIu64 " B", bytes);
}

static void host_give_back(const executor *x, void *memory)
{
    if (x->device != NULL && x->device->host_give_back != NULL) {
        x->device->host_give_back(x->device_context, memory);
    } else {
        hr_free(memory);
    }
}

static void unbind(const executor *x, bound *b)
{
    if (b->kernels != NULL) {
        x->device->unload(x->device_context, b->kernels);
    }
    host_give_back(x, b->host);
    bound_deinit(b);
}

static void announce(executor *x, uint32_t instr_index, hr_phase phase, hr_category category)
{
    if (x->bus != NULL) {
        x->bus->instr = instr_index;
        x->bus->phase = (uint8_t)phase;
        x->bus->category = (uint8_t)category;
    }
}

void executor_destroy(executor *x)
{
    if (x == NULL) {
        return;
    }
    for (uint32_t k = 0; k < x->programs.count; k++) {
        unbind(x, &x->programs.data[k]);
    }
    for (uint32_t k = x->retained.count; k-- > 0;) {
        announce(x, HR_NO_ID, HR_PHASE_BUILD, HR_CATEGORY_RETAINED);
        allocator_free(x->heap, x->retained.data[k].address);
    }
    for (uint32_t k = x->residents.count; k-- > 0;) {
        const resident *r = &x->residents.data[k];
        if (!r->on_host) {
            announce(x, HR_NO_ID, HR_PHASE_BUILD, r->category);
            allocator_free(x->heap, r->address);
        }
        host_give_back(x, r->host);
    }
    hr_free(x->planned);
    vec_deinit(&x->programs);
    vec_deinit(&x->residents);
    vec_deinit(&x->retained);
    hr_free(x);
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// What the heap had, and what of the step stood in the way: persistent and retained tensors could not go.
static void record_oom_heap(executor *x)
{
    uint32_t count = 0, retained_count = 0;
    uint64_t *stay = hr_calloc((size_t)x->residents.count + x->retained.count + 1, sizeof *stay);
    uint64_t *retained = hr_calloc((size_t)x->retained.count + 1, sizeof *retained);
    x->oom.in_the_way = HR_NO_ID;
    if (stay == NULL || retained == NULL) {
        hr_free(stay);
        hr_free(retained);
        return;
    }
    for (uint32_t k = 0; k < x->residents.count; k++) {
        stay[count++] = x->residents.data[k].address;
    }
    for (uint32_t k = 0; k < x->retained.count; k++) {
        stay[count++] = retained[retained_count++] = x->retained.data[k].address;
    }
    qsort(stay, count, sizeof *stay, by_address);
    qsort(retained, retained_count, sizeof *retained, by_address);
    x->oom.room = heap_room_at(x->heap, (heap_addresses){stay, count},
                               (heap_addresses){retained, retained_count}, &x->oom.in_the_way);
    hr_free(stay);
    hr_free(retained);
}

// One tensor's bytes, with everything that is told about it: event, ledger, and the full record when it fails.
static hr_status take(executor *x, const tensor *t, uint32_t id, uint32_t instr_index, hr_phase phase,
                      uint64_t *address, hr_err *err)
{
    announce(x, instr_index, phase, t->category);
    hr_status status = allocator_alloc(x->heap, t->bytes, id, address, err);
    if (status == HR_OK) {
        ledger_alloc(&x->ledger, x->heap, t->category, t->bytes, instr_index);
        return HR_OK;
    }
    x->oom = (executor_oom){.happened = true,
                            .tensor = id,
                            .instr = instr_index,
                            .requested_bytes = t->bytes,
                            .stats = allocator_get_stats(x->heap)};
    memcpy(x->oom.by_category, x->ledger.by_category, sizeof x->oom.by_category);
    if (status == HR_OOM) {
        record_oom_heap(x);
    }
    return status;
}

static void release(executor *x, const tensor *t, uint32_t instr_index, hr_phase phase, uint64_t address)
{
    announce(x, instr_index, phase, t->category);
    ledger_free(&x->ledger, t->category, t->bytes);
    allocator_free(x->heap, address);
}

hr_status executor_plan(executor *x, const program *const *programs, uint32_t count, hr_err *err)
{
    uint64_t needed_bytes = 0;
    if (!allocator_plans(x->heap)) {
        return HR_OK;
    }
    x->planned = hr_calloc(count, sizeof *x->planned);
    if (x->planned == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory to plan %u programs", count);
    }
    memcpy(x->planned, programs, count * sizeof *x->planned);
    x->planned_count = count;
    announce(x, HR_NO_ID, HR_PHASE_BUILD, HR_CATEGORY_WEIGHTS);
    hr_status status = packing_announce(x->heap, programs, count, &needed_bytes, err);
    if (status == HR_OOM) {
        x->oom = (executor_oom){.happened = true,
                                .block = true,
                                .instr = HR_NO_ID,
                                .requested_bytes = needed_bytes,
                                .stats = allocator_get_stats(x->heap)};
    }
    return status;
}

// Which step of the plan a program is.
static hr_status find_planned(const executor *x, const program *p, uint32_t *step, hr_err *err)
{
    *step = HR_NO_ID;
    if (!allocator_plans(x->heap)) {
        return HR_OK;
    }
    for (uint32_t k = 0; k < x->planned_count; k++) {
        if (x->planned[k] == p) {
            *step = k;
            return HR_OK;
        }
    }
    return HR_FAIL(err, CHECK, "a program for %u samples is not among the %u that were planned", p->batch,
                   x->planned_count);
}

// A plan's host tensors are numbers without memory, as its device's are.
static bool has_memory(const executor *x)
{
    return x->device != NULL && !x->device->simulated;
}

static hr_status take_host(const executor *x, resident *r, hr_err *err)
{
    if (!has_memory(x)) {
        return HR_OK;
    }
    HR_TRY(host_take(x, r->bytes, &r->host, err));
    r->address = (uint64_t)(uintptr_t)r->host;
    return HR_OK;
}

static hr_status take_resident(executor *x, const program *p, uint32_t id, hr_err *err)
{
    resident *r = &x->residents.data[id];
    return r->on_host ? take_host(x, r, err)
                      : take(x, &p->tensors[id], id, HR_NO_ID, HR_PHASE_BUILD, &r->address, err);
}

static hr_status take_residents(executor *x, const program *p, hr_err *err)
{
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        HR_TRY(p->tensors[k].made_at == 0 ? take_resident(x, p, k, err) : HR_OK);
    }
    return HR_OK;
}

static hr_status take_late_residents(executor *x, const program *p, first_step *first, hr_err *err)
{
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        if (p->tensors[k].made_at != 0) {
            HR_TRY(first_step_until(first, p->tensors[k].made_at, err));
            HR_TRY(take_resident(x, p, k, err));
        }
    }
    return HR_OK;
}

hr_status executor_build(executor *x, const program *p, hr_err *err)
{
    first_step first = {0};
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        const tensor *t = &p->tensors[k];
        resident *r = vec_push(&x->residents);
        if (r == NULL) {
            return HR_FAIL(err, NOMEM, "no host memory for %u persistent tensors", p->persistent_count);
        }
        *r = (resident){
            .name = t->name, .category = t->category, .bytes = t->bytes, .on_host = tensor_on_host(t)};
    }
    HR_TRY(take_residents(x, p, err));
    HR_TRY(first_step_begin(p, x->heap, x->bus, &first, err));
    hr_status status = take_late_residents(x, p, &first, err);
    const hr_status end = first_step_end(&first, status == HR_OK, err);
    return status != HR_OK ? status : end;
}

static const resident *find_resident(const executor *x, const char *name)
{
    for (uint32_t k = 0; k < x->residents.count; k++) {
        if (strcmp(x->residents.data[k].name, name) == 0) {
            return &x->residents.data[k];
        }
    }
    return NULL;
}

// Programs list their persistent tensors in one canonical order, so the next one is the next or a few further on.
static const resident *next_resident(const executor *x, const char *name, uint32_t *hint)
{
    for (uint32_t n = 0; n < x->residents.count; n++) {
        const uint32_t k = (uint32_t)(((uint64_t)*hint + n) % x->residents.count);
        if (strcmp(x->residents.data[k].name, name) == 0) {
            *hint = k + 1;
            return &x->residents.data[k];
        }
    }
    return NULL;
}

static hr_status bind_persistent(const executor *x, bound *b, hr_err *err)
{
    uint32_t hint = 0;
    for (uint32_t k = 0; k < b->p->persistent_count; k++) {
        const tensor *t = &b->p->tensors[k];
        const resident *r = next_resident(x, t->name, &hint);
        if (r == NULL || r->bytes != t->bytes) {
            return HR_FAIL(err, CHECK, "persistent tensor %s needs %" PRIu64 " B, the build has %" PRIu64,
                           t->name, t->bytes, r == NULL ? 0 : r->bytes);
        }
        bound_set_address(b, k, r->address);
    }
    return HR_OK;
}

// Places of the step's tensors on the host, side by side.
static hr_status bind_host(const executor *x, bound *b, hr_err *err)
{
    const uint64_t bytes = program_host_bytes(b->p);
    uint64_t at = 0;
    if (bytes == 0 || !has_memory(x)) {
        return HR_OK;
    }
    void *host = NULL;
    HR_TRY(host_take(x, bytes, &host, err));
    b->host = host;
    for (uint32_t k = b->p->persistent_count; k < b->p->tensor_count; k++) {
        if (tensor_on_host(&b->p->tensors[k])) {
            bound_set_address(b, k, (uint64_t)(uintptr_t)(b->host + at));
            at += program_host_room(&b->p->tensors[k]);
        }
    }
    return HR_OK;
}

static hr_status bind(executor *x, bound *b, const program *p, hr_err *err)
{
    HR_TRY(find_planned(x, p, &b->step, err));
    HR_TRY(bound_init(b, p, err));
    HR_TRY(bind_persistent(x, b, err));
    HR_TRY(bind_host(x, b, err));
    if (x->device == NULL) {
        return HR_OK;
    }
    if (x->device->simulated) {
        HR_TRY(timeline_init(&b->lanes, x->device, p, err));
        HR_TRY(timeline_init(&b->before_round, x->device, p, err));
    }
    return x->device->load(x->device_context, p, &b->kernels, err);
}

hr_status executor_attach(executor *x, const program *p, uint32_t *slot, hr_err *err)
{
    bound b = {0};
    hr_status status = bind(x, &b, p, err);
    bound *place = status == HR_OK ? vec_push(&x->programs) : NULL;
    if (place == NULL) {
        unbind(x, &b);
        return status != HR_OK ? status : HR_FAIL(err, NOMEM, "no host memory for another program");
    }
    *place = b;
    *slot = x->programs.count - 1;
    return HR_OK;
}

static void watch_extremes(executor *x)
{
    uint64_t in_use = allocator_get_stats(x->heap).in_use_bytes;
    x->floor_bytes = in_use < x->floor_bytes ? in_use : x->floor_bytes;
    x->peak_bytes = in_use > x->peak_bytes ? in_use : x->peak_bytes;
}

static hr_status run_memory(executor *x, bound *b, uint32_t n, hr_err *err)
{
    const instr *i = &b->p->instrs[n];
    uint32_t id = i->op == HR_OP_ALLOC ? i->out[0] : i->in[0];
    const tensor *t = &b->p->tensors[id];
    uint64_t address = (uint64_t)(uintptr_t)b->address[id];
    if (i->op == HR_OP_FREE) {
        release(x, t, n, (hr_phase)i->phase, address);
        address = 0;
    } else {
        HR_TRY(take(x, t, id, n, (hr_phase)i->phase, &address, err));
    }
    bound_set_address(b, id, address);
    watch_extremes(x);
    return HR_OK;
}

// The tensor's bytes stay where they are; the next step allocates it anew.
static hr_status retain(executor *x, bound *b, uint32_t n, hr_err *err)
{
    uint32_t owner = b->owner[b->p->instrs[n].in[0]];
    kept *place = vec_push(&x->retained);
    if (place == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory to remember that %s is retained",
                       b->p->tensors[owner].name);
    }
    place->address = (uint64_t)(uintptr_t)b->address[owner];
    bound_set_address(b, owner, 0);
    return HR_OK;
}

static hr_status next_batch(const executor *x, const bound *b, step_io *io, hr_err *err)
{
    if (io->next_round == NULL) {
        return HR_OK;
    }
    if (x->device != NULL && x->device->batch_read != NULL) {
        HR_TRY(x->device->batch_read(x->device_context, b->kernels, err));
    }
    return io->next_round(io->context, io, err);
}

static hr_status begin_round(executor *x, const bound *b, uint32_t round, step_io *io, hr_err *err)
{
    x->round = round;
    return x->device == NULL || x->device->begin_round == NULL
               ? HR_OK
               : x->device->begin_round(x->device_context, b->kernels, round, io, err);
}

// ---- rounds that repeat themselves ----------------------------------------------------------------------------

enum { ROUND_LOOKS = 64 };

// Are the rounds of a loop numbers alone, which are not told one by one?
static bool is_silent(const executor *x, const step_io *io)
{
    return !has_memory(x) && io->next_round == NULL && (x->bus == NULL || !trace_is_heard(x->bus));
}

static void mark_round(executor *x, bound *b)
{
    if (x->looks_left > 0) {
        x->looks_left--;
        x->round_hash = x->heap->ops->hash(x->heap);
        timeline_mark(&b->lanes, &b->before_round);
    }
}

// Allocations of a round balance, so that a heap which is as it was when the round began answers the next one as this one;
// when time went on alike too, so do all rounds that are left.
static bool repeats(const executor *x, const bound *b)
{
    return x->looks_left > 0 && x->round > 0 && x->rounds_left > 0 &&
           x->heap->ops->hash(x->heap) == x->round_hash && timeline_repeats(&b->lanes, &b->before_round);
}

static void skip_rounds(executor *x, bound *b)
{
    timeline_skip(&b->lanes, &b->before_round, x->rounds_left);
    x->round += x->rounds_left;
    x->rounds_left = 0;
    if (x->bus != NULL && x->device != NULL) {
        x->bus->now_ns = x->step_begin_ns + b->lanes.lane_ns[HR_LANE_COMPUTE];
    }
}

// What has been changed for good has to be finished.
static bool is_called_off(const executor *x, const step_io *io)
{
    const uint32_t done = x->round + 1;
    return io->goes_on != NULL && !io->goes_on(io->goes_on_context, done, done + x->rounds_left) &&
           (!has_memory(x) || !x->lasts);
}

// Back to the beginning of the loop while there are rounds left, with the next round's batch.
static hr_status end_round(executor *x, bound *b, uint32_t *n, step_io *io, hr_err *err)
{
    if (repeats(x, b)) {
        skip_rounds(x, b);
    }
    if (x->rounds_left == 0) {
        return HR_OK;
    }
    if (is_called_off(x, io)) {
        return HR_FAIL(err, INTERRUPTED, "the step was left after %u of its rounds", x->round + 1);
    }
    x->rounds_left--;
    *n = x->round_begin;
    mark_round(x, b);
    HR_TRY(next_batch(x, b, io, err));
    return begin_round(x, b, x->round + 1, io, err);
}

// Memory is taken and given back at the pace of the compute lane.
static void advance_clock(executor *x, bound *b, const instr *i)
{
    if (!x->device->simulated) {
        return;
    }
    const uint64_t issue_ns =
        x->device->issue_ns == NULL ? 0 : x->device->issue_ns(x->device_context, b->p, i);
    (void)timeline_add(&b->lanes, i, x->device->duration_ns(x->device_context, b->p, i), issue_ns);
    if (x->bus != NULL) {
        x->bus->now_ns = x->step_begin_ns + b->lanes.lane_ns[HR_LANE_COMPUTE];
    }
}

// The step is over when its last lane is.
static void end_clock(executor *x, const bound *b)
{
    x->simulated_ns = timeline_end_ns(&b->lanes);
    if (x->bus != NULL && x->bus->simulated) {
        x->bus->now_ns = x->step_begin_ns + x->simulated_ns;
    }
}

static hr_status run_compute(executor *x, bound *b, uint32_t n, step_io *io, hr_err *err)
{
    const instr *i = &b->p->instrs[n];
    if (x->device == NULL) {
        return HR_OK;
    }
    advance_clock(x, b, i);
    if (!op_needs_kernel(i->op)) {
        return HR_OK;
    }
    const uint64_t begin_ns = b->times.ns == NULL ? 0 : clock_now_ns();
    HR_TRY(x->device->run(x->device_context, b->kernels, n, b->address, io, err));
    if (b->times.ns != NULL && x->device->took == NULL) {
        instr_times_note(&b->times, n, clock_now_ns() - begin_ns);
    }
    return HR_OK;
}

// Gives back what a step that was stopped at instruction n holds.
static void abandon(executor *x, bound *b, uint32_t n)
{
    for (uint32_t k = b->p->persistent_count; k < b->p->tensor_count; k++) {
        const tensor *t = &b->p->tensors[k];
        if (t->storage == k && b->address[k] != NULL && !tensor_on_host(t)) {
            release(x, t, n, HR_PHASE_BUILD, (uint64_t)(uintptr_t)b->address[k]);
            bound_set_address(b, k, 0);
        }
    }
}

// Runs instruction *n; *n is the one to go on behind.
static hr_status run_one(executor *x, bound *b, uint32_t *n, step_io *io, hr_err *err)
{
    const instr *i = &b->p->instrs[*n];
    if (i->op == HR_OP_ALLOC || i->op == HR_OP_FREE) {
        return run_memory(x, b, *n, err);
    }
    if (i->op == HR_OP_RETAIN) {
        return retain(x, b, *n, err);
    }
    if (i->op == HR_OP_REPEAT) {
        x->round_begin = *n;
        x->rounds_left = (uint32_t)i->attr.count - 1;
        x->looks_left = is_silent(x, io) ? ROUND_LOOKS : 0;
        mark_round(x, b);
        return HR_OK;
    }
    return i->op == HR_OP_END ? end_round(x, b, n, io, err) : run_compute(x, b, *n, io, err);
}

// For observers outside: a crash leaves it where it was.
static void stand_at(const executor *x, uint32_t n)
{
    if (x->bus != NULL && x->bus->position != NULL) {
        atomic_store_explicit(&x->bus->position->instr, n, memory_order_relaxed);
    }
}

static void tell_update(executor *x, const bound *b, const step_io *io)
{
    if (io->before_update != NULL) {
        x->told = b;
        io->before_update(io->before_update_context);
        x->told = NULL;
    }
}

// *n is where it stopped when it fails.
static hr_status run_all(executor *x, bound *b, uint32_t *n, step_io *io, hr_err *err)
{
    HR_TRY(begin_round(x, b, 0, io, err));
    for (; *n < b->p->instr_count; ++*n) {
        stand_at(x, *n);
        x->lasts = x->lasts || *n >= b->first_lasting;
        if (*n == b->ready_at) {
            tell_update(x, b, io);
        }
        HR_TRY(run_one(x, b, n, io, err));
    }
    return x->device == NULL || x->device->end_step == NULL
               ? HR_OK
               : x->device->end_step(x->device_context, b->kernels, io, err);
}

// What a device that is not done when it returns has timed.
static hr_status end_times(executor *x, bound *b, hr_err *err)
{
    uint64_t ns = 0;
    for (uint32_t n = 0; b->times.ns != NULL && x->device->took != NULL && n < b->p->instr_count; n++) {
        HR_TRY(x->device->took(b->kernels, n, &ns, err));
        instr_times_note(&b->times, n, ns);
    }
    b->times.steps += b->times.ns != NULL;
    return HR_OK;
}

static hr_status run_or_abandon(executor *x, bound *b, step_io *io, hr_err *err)
{
    uint32_t n = 0;
    const hr_status status = run_all(x, b, &n, io, err);
    if (status == HR_OK) {
        end_clock(x, b);
        return end_times(x, b, err);
    }
    if (x->device != NULL && x->device->abandon_step != NULL) {
        x->device->abandon_step(x->device_context, b->kernels);
    }
    abandon(x, b, n);
    return status;
}

hr_status executor_step(executor *x, uint32_t slot, step_io *io, hr_err *err)
{
    bound *b = &x->programs.data[slot];
    if (b->step != HR_NO_ID) {
        HR_TRY(allocator_follow(x->heap, b->step, err));
    }
    x->floor_bytes = x->peak_bytes = allocator_get_stats(x->heap).in_use_bytes;
    x->step_begin_ns = x->bus == NULL ? 0 : x->bus->now_ns;
    timeline_begin(&b->lanes);
    x->lasts = false;
    hr_status status = run_or_abandon(x, b, io, err);
    stand_at(x, HR_NO_ID);
    allocator_synchronise(x->heap);
    return status;
}

uint64_t executor_address(const executor *x, const char *persistent_name)
{
    const resident *r = find_resident(x, persistent_name);
    return r == NULL ? 0 : r->address;
}

uint64_t executor_built_address(const executor *x, uint32_t id)
{
    return x->residents.data[id].address;
}

bool executor_gradient(const executor *x, uint32_t *at, executor_tensor *out)
{
    const bound *b = x->told;
    device_capture capture = {0};
    if (b == NULL || !b->whole || b->kernels == NULL) {
        return false;
    }
    if (x->device->captured != NULL) {
        x->device->captured(b->kernels, &capture);
    }
    *at = *at < b->ready_at ? b->ready_at : *at;
    const uint32_t id = capture.wanted ? HR_NO_ID : gradients_next(b->p, b->ready_at, at);
    if (id == HR_NO_ID) {
        return false;
    }
    *out = (executor_tensor){&b->p->tensors[id], (uint64_t)(uintptr_t)b->address[id]};
    return true;
}

const ledger *executor_ledger(const executor *x)
{
    return &x->ledger;
}

void executor_reset_peak(executor *x)
{
    ledger_reset_peak(&x->ledger, x->heap);
}

void executor_restore_peak(executor *x, const ledger *earlier)
{
    x->ledger.peak = earlier->peak;
    x->ledger.peak_requested_bytes = earlier->peak_requested_bytes;
}

bool executor_step_lasts(const executor *x)
{
    return x->lasts;
}

const executor_oom *executor_last_oom(const executor *x)
{
    return &x->oom;
}

uint64_t executor_step_floor_bytes(const executor *x)
{
    return x->floor_bytes;
}

uint64_t executor_step_peak_bytes(const executor *x)
{
    return x->peak_bytes;
}

hr_status executor_time(executor *x, uint32_t slot, hr_err *err)
{
    bound *b = &x->programs.data[slot];
    HR_TRY(instr_times_init(&b->times, b->p->instr_count, err));
    return x->device == NULL || x->device->time == NULL ? HR_OK
                                                        : x->device->time(x->device_context, b->kernels, err);
}

const instr_times *executor_times(const executor *x, uint32_t slot)
{
    return &x->programs.data[slot].times;
}

uint64_t executor_simulated_ns(const executor *x)
{
    return x->simulated_ns;
}

void executor_prepared(const executor *x, uint32_t slot, uint32_t at, device_prepared *out)
{
    const bound *b = &x->programs.data[slot];
    *out = (device_prepared){0};
    if (b->kernels != NULL && x->device->prepared != NULL) {
        x->device->prepared(b->kernels, at, out);
    }
}

void executor_captured(const executor *x, uint32_t slot, device_capture *out)
{
    const bound *b = &x->programs.data[slot];
    *out = (device_capture){0};
    if (b->kernels != NULL && x->device->captured != NULL) {
        x->device->captured(b->kernels, out);
    }
}
