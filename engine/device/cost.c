// SPDX-License-Identifier: Apache-2.0
#include "device/cost.h"

#include <math.h>
#include <string.h>

#include "base/host_mem.h"

hr_time_basis cost_basis(const device_ops *device, void *context)
{
    return device->time_basis == NULL ? HR_TIME_UNKNOWN : device->time_basis(context);
}

// ---- families -------------------------------------------------------------------------------------------------

static const char *const names[] = {
#define X(id, text) [COST_##id] = text,
    COST_FAMILY_MAP(X)
#undef X
};

const char *cost_family_name(cost_family family)
{
    return names[family];
}

cost_family cost_family_of(const instr *i)
{
    const cost_family family = (cost_family)op_row_of(i->op)->traits.cost;
    const bool grouped = i->attr.groups > 1 && family >= COST_CONV && family <= COST_CONV_WEIGHTS;
    return grouped ? COST_DEPTHWISE : family;
}

hr_dtype cost_type_of(const program *p, const instr *i)
{
    for (uint32_t k = 0; k < i->in_count; k++) {
        const hr_dtype dtype = p->tensors[i->in[k]].dtype;
        if (dtype_is_real(dtype)) {
            return dtype;
        }
    }
    return HR_F32;
}

bool cost_is_product(cost_family family)
{
    return family == COST_PRODUCT || family == COST_ATTENTION ||
           (family >= COST_CONV && family <= COST_CONV_WEIGHTS);
}

// ---- lanes ----------------------------------------------------------------------------------------------------

hr_status timeline_init(timeline *t, const device_ops *device, const program *p, hr_err *err)
{
    *t = (timeline){.in_order = device->in_order};
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if (i->op == HR_OP_RECORD && (uint32_t)i->attr.slot >= t->event_count) {
            t->event_count = (uint32_t)i->attr.slot + 1;
        }
    }
    if (t->event_count == 0) {
        return HR_OK;
    }
    t->event_ns = hr_calloc(t->event_count, sizeof *t->event_ns);
    return t->event_ns != NULL ? HR_OK : HR_FAIL(err, NOMEM, "no host memory for %u events", t->event_count);
}

void timeline_deinit(timeline *t)
{
    hr_free(t->event_ns);
    *t = (timeline){0};
}

void timeline_begin(timeline *t)
{
    memset(t->lane_ns, 0, sizeof t->lane_ns);
    t->host_ns = 0;
    t->waited = false;
    for (uint32_t k = 0; k < t->event_count; k++) {
        t->event_ns[k] = 0;
    }
}

static void raise_to(uint64_t *ns, uint64_t least_ns)
{
    *ns = *ns < least_ns ? least_ns : *ns;
}

// A lane goes on once the host has issued what comes next. How long it stood still.
static uint64_t issue(timeline *t, uint64_t *lane, uint64_t issue_ns)
{
    const uint64_t before_ns = *lane;
    t->host_ns += issue_ns;
    raise_to(lane, issue_ns > 0 ? t->host_ns : 0);
    t->waited = t->waited || *lane > before_ns;
    return *lane - before_ns;
}

uint64_t timeline_add(timeline *t, const instr *i, uint64_t duration_ns, uint64_t issue_ns)
{
    uint64_t *compute = &t->lane_ns[HR_LANE_COMPUTE], *lane = t->in_order ? compute : &t->lane_ns[i->lane];
    const uint32_t event = (uint32_t)i->attr.slot;
    const bool holds = i->op == HR_OP_INPUT || i->op == HR_OP_READ;
    raise_to(lane, holds ? *compute : 0);
    const uint64_t stood_ns = issue(t, lane, issue_ns);
    *lane += duration_ns;
    if (i->op == HR_OP_RECORD) {
        t->event_ns[event] = *lane;
    } else if (i->op == HR_OP_WAIT) {
        raise_to(lane, event < t->event_count ? t->event_ns[event] : 0);
    } else if (holds) {
        raise_to(compute, *lane);
        raise_to(&t->host_ns, i->op == HR_OP_READ ? *lane : 0);
    }
    return duration_ns + (holds || lane == compute ? stood_ns : 0);
}

uint64_t timeline_end_ns(const timeline *t)
{
    uint64_t end_ns = 0;
    for (int k = 0; k < HR_LANE_COUNT; k++) {
        raise_to(&end_ns, t->lane_ns[k]);
    }
    return end_ns;
}

// ---- rounds ---------------------------------------------------------------------------------------------------

void timeline_mark(timeline *t, timeline *before)
{
    memcpy(before->lane_ns, t->lane_ns, sizeof t->lane_ns);
    before->host_ns = t->host_ns;
    t->waited = false;
    for (uint32_t k = 0; k < t->event_count; k++) {
        before->event_ns[k] = t->event_ns[k];
    }
}

// What stood still is not of this loop; what it held up, it held up in an earlier round. The host may be ahead, as long as
// nothing waits for it.
bool timeline_repeats(const timeline *t, const timeline *before)
{
    const uint64_t by_ns = t->lane_ns[HR_LANE_COMPUTE] - before->lane_ns[HR_LANE_COMPUTE];
    const uint64_t issued_ns = t->host_ns - before->host_ns;
    bool alike = issued_ns == by_ns || (issued_ns < by_ns && !t->waited);
    for (int k = 0; k < HR_LANE_COUNT; k++) {
        const uint64_t moved_ns = t->lane_ns[k] - before->lane_ns[k];
        alike = alike && (moved_ns == by_ns || moved_ns == 0);
    }
    for (uint32_t k = 0; k < t->event_count; k++) {
        const uint64_t moved_ns = t->event_ns[k] - before->event_ns[k];
        alike = alike && (moved_ns == by_ns || moved_ns == 0);
    }
    return alike;
}

void timeline_skip(timeline *t, const timeline *before, uint64_t rounds)
{
    for (int k = 0; k < HR_LANE_COUNT; k++) {
        t->lane_ns[k] += rounds * (t->lane_ns[k] - before->lane_ns[k]);
    }
    t->host_ns += rounds * (t->host_ns - before->host_ns);
    for (uint32_t k = 0; k < t->event_count; k++) {
        t->event_ns[k] += rounds * (t->event_ns[k] - before->event_ns[k]);
    }
}

// ---- a whole step ---------------------------------------------------------------------------------------------

// What the device says of an instruction, asked once for all sides.
typedef struct told {
    uint64_t duration_ns, issue_ns;
    double spread;
} told;

typedef struct player {
    const program *p;
    const told *of;       // [instr_count]
    int side;             // -1: every time as short as it may be, 1: as long, 0: as expected
    timeline now, before; // `before`: at the beginning of the round
} player;

// One processor and interpreter issue a kernel in 5 us, others in 25.
static const double issue_spread = 1.6;

static uint64_t moved_to(int side, uint64_t ns, double spread)
{
    return side == 0 ? ns : (uint64_t)llround((double)ns * (side < 0 ? 1 / spread : spread));
}

static void play_range(player *y, uint32_t begin, uint32_t end)
{
    for (uint32_t n = begin; n < end; n++) {
        const told *t = &y->of[n];
        (void)timeline_add(&y->now, &y->p->instrs[n], moved_to(y->side, t->duration_ns, t->spread),
                           moved_to(y->side, t->issue_ns, issue_spread));
    }
}

static void play_rounds(player *y, uint32_t begin, uint32_t end, uint32_t rounds)
{
    for (uint32_t round = 0; round < rounds; round++) {
        timeline_mark(&y->now, &y->before);
        play_range(y, begin, end);
        if (round > 0 && timeline_repeats(&y->now, &y->before)) {
            timeline_skip(&y->now, &y->before, rounds - 1 - round);
            return;
        }
    }
}

static uint32_t end_of_loop(const program *p, uint32_t n)
{
    while (n < p->instr_count && p->instrs[n].op != HR_OP_END) {
        n++;
    }
    return n;
}

static void play_step(player *y)
{
    uint32_t from = 0;
    for (uint32_t n = 0; n < y->p->instr_count; n++) {
        if (y->p->instrs[n].op == HR_OP_REPEAT) {
            const uint32_t end = end_of_loop(y->p, n);
            play_range(y, from, n);
            play_rounds(y, n, end, (uint32_t)y->p->instrs[n].attr.count);
            from = n = end;
        }
    }
    play_range(y, from, y->p->instr_count);
}

static hr_status play(const device_ops *device, const program *p, const told *of, int side, double *seconds,
                      hr_err *err)
{
    player y = {.p = p, .of = of, .side = side};
    hr_status status = timeline_init(&y.now, device, p, err);
    if (status == HR_OK) {
        status = timeline_init(&y.before, device, p, err);
    }
    if (status == HR_OK) {
        play_step(&y);
        *seconds = (double)timeline_end_ns(&y.now) * 1e-9;
    }
    timeline_deinit(&y.now);
    timeline_deinit(&y.before);
    return status;
}

// One instruction at least, so that an empty program has room too.
static told *ask_all(const device_ops *device, void *context, const program *p)
{
    told *of = hr_calloc((size_t)p->instr_count + 1, sizeof *of);
    for (uint32_t n = 0; of != NULL && n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        of[n] = (told){.duration_ns = device->duration_ns(context, p, i),
                       .issue_ns = device->issue_ns == NULL ? 0 : device->issue_ns(context, p, i),
                       .spread = device->spread == NULL ? 1 : device->spread(context, i)};
    }
    return of;
}

hr_status cost_step_times(const device_ops *device, void *context, const program *p, cost_times *out,
                          hr_err *err)
{
    *out = (cost_times){(double)NAN, (double)NAN, (double)NAN, cost_basis(device, context)};
    if (out->basis == HR_TIME_UNKNOWN) {
        return HR_OK;
    }
    told *of = ask_all(device, context, p);
    hr_status status =
        of != NULL ? play(device, p, of, 0, &out->seconds, err)
                   : HR_FAIL(err, NOMEM, "no host memory for the times of %u instructions", p->instr_count);
    if (status == HR_OK && device->spread != NULL) {
        status = play(device, p, of, -1, &out->low_seconds, err);
        status = status == HR_OK ? play(device, p, of, 1, &out->high_seconds, err) : status;
    }
    hr_free(of);
    return status;
}

hr_status cost_step_seconds(const device_ops *device, void *context, const program *p, double *seconds,
                            hr_err *err)
{
    cost_times times;
    const hr_status status = cost_step_times(device, context, p, &times, err);
    *seconds = times.seconds;
    return status;
}
