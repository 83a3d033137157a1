// SPDX-License-Identifier: Apache-2.0
// A recorded step where a training stands: sessions and planners on a trace say what its replay says.
#include "headroom/planning.h"
#include "headroom/replay.h"
#include "headroom/units.h"

#include "base/host_mem.h"
#include "insight/replay_plan.h"
#include "session/engine_loop.h"
#include "session/planning_wire.h"
#include "unit/session_use.h"

enum { BLOCKS = 48, ROWS = 1200 };

static char path[128];

static int serve_role(const char *role)
{
    return hr_session_serve(role, NULL);
}

static uint64_t random_between(uint64_t *seed, uint64_t least, uint64_t most)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return least + (*seed >> 33) % (most - least + 1);
}

// Blocks come and go at random; every seventh stays. Some have names of modules, some have none.
static void write_trace(void)
{
    uint64_t seed = 17;
    bool lives[BLOCKS] = {false};
    uint64_t bytes[BLOCKS] = {0};
    FILE *f = fopen(use_file("step.csv", path), "w");
    ck_assert_ptr_nonnull(f);
    fputs("time_ns,step,event,address,requested_bytes,allocated_bytes,tensor\n", f);
    for (int row = 0; row < ROWS; row++) {
        const uint64_t at = random_between(&seed, 0, BLOCKS - 1);
        if (!lives[at]) {
            bytes[at] = random_between(&seed, 1, UINT64_C(1) << random_between(&seed, 9, 22));
        } else if (at % 7 == 0) {
            continue;
        }
        fprintf(f, "%d,0,%s,%llu,%llu,%llu,%s\n", row * 1000, lives[at] ? "free" : "alloc",
                (unsigned long long)(at + 1) << 32, (unsigned long long)bytes[at],
                (unsigned long long)bytes[at],
                at % 3 == 0   ? ""
                : at % 3 == 1 ? "layer1/conv"
                              : "head");
        lives[at] = !lives[at];
    }
    ck_assert_int_eq(fclose(f), 0);
}

static void setup(void)
{
    use_setup();
    write_trace();
}

static hr_replay *open_trace(hr_knobs *knobs)
{
    hr_err err = {0};
    hr_replay *r = NULL;
    ck_assert_msg(hr_replay_open(path, &r, &err) == HR_OK, "%s", err.sentence);
    hr_replay_knobs_of(r, knobs);
    return r;
}

static hr_replay_memory replayed(hr_replay *r, const hr_knobs *knobs)
{
    hr_err err = {0};
    hr_replay_result result;
    ck_assert_msg(hr_replay_run(r, knobs, NULL, &result, &err) == HR_OK, "%s", err.sentence);
    const hr_replay_memory m = result.memory;
    hr_replay_result_deinit(&result);
    return m;
}

static void turn(hr_knobs *knobs, const char *pair)
{
    hr_err err = {0};
    ck_assert_msg(hr_knobs_set_pair(knobs, pair, &err) == HR_OK, "%s: %s", pair, err.sentence);
}

static const char *const allocators[] = {"bfc", "caching", "async", "direct", "static"};

enum { ALLOCATORS = sizeof allocators / sizeof *allocators };

static hr_knobs knobs_with(const hr_knobs *knobs, const char *kind, uint64_t limit_bytes)
{
    hr_knobs turned = *knobs;
    char pair[96], size[HR_BYTES_TEXT_MAX];
    (void)snprintf(pair, sizeof pair, "allocator.kind=%s", kind);
    turn(&turned, pair);
    if (limit_bytes > 0) {
        (void)snprintf(pair, sizeof pair, "device.vram=%s", hr_bytes_exact(limit_bytes, size));
        turn(&turned, pair);
    }
    return turned;
}

// ---- what-if --------------------------------------------------------------------------------------------------

START_TEST(a_what_if_is_a_replay_and_what_is_missing_would_serve_it)
{
    hr_knobs knobs;
    hr_replay *r = open_trace(&knobs);
    const uint64_t asked_bytes = hr_replay_get_about(r)->peak_requested_bytes;
    int refused = 0;
    for (int k = 0; k < ALLOCATORS; k++) {
        for (uint64_t eighths = 4; eighths <= 14; eighths += 2) {
            const hr_knobs turned = knobs_with(&knobs, allocators[k], asked_bytes * eighths / 8);
            const hr_replay_memory want = replayed(r, &turned);
            hr_whatif got;
            ck_assert_int_eq(replay_whatif(r, &turned, &got, NULL), HR_OK);
            ck_assert_int_eq(got.fits, want.failures == 0);
            ck_assert_uint_eq(got.limit_bytes, want.limit_bytes);
            if (got.fits) {
                ck_assert_uint_eq(got.peak_in_use_bytes, want.peak_in_use_bytes);
                ck_assert_uint_eq(got.missing_bytes, 0);
                continue;
            }
            refused++;
            ck_assert_uint_eq(got.peak_in_use_bytes, got.limit_bytes + got.missing_bytes);
            const hr_knobs more = knobs_with(&knobs, allocators[k], got.peak_in_use_bytes);
            ck_assert_uint_eq(replayed(r, &more).failures, 0);
        }
    }
    ck_assert_int_gt(refused, ALLOCATORS);
    ck_assert_int_lt(refused, 6 * ALLOCATORS);
    hr_replay_close(r);
}
END_TEST

// ---- the step plan --------------------------------------------------------------------------------------------

// Requested bytes added up by hand; what the allocator holds is what events say; and the same again over the wire.
static void check_plan(const hr_step_plan *p, const hr_replay_memory *want)
{
    uint64_t live_bytes = 0, peak_bytes = 0;
    ck_assert_int_eq(p->fits, want->failures == 0);
    for (size_t k = 0; k < p->instr_count; k++) {
        const hr_step_plan_instr *i = &p->instrs[k];
        const hr_step_plan_tensor *t = &p->tensors[i->tensor];
        ck_assert_int_ne(i->is_alloc, i->is_free);
        ck_assert_uint_eq(i->is_alloc ? t->born : t->died, k);
        live_bytes = i->is_alloc ? live_bytes + t->bytes : live_bytes - t->bytes;
        ck_assert_uint_eq(i->requested_bytes, live_bytes);
        live_bytes -= i->is_alloc && t->died == k ? t->bytes : 0; // refused when it was recorded
        ck_assert(i->in_use_bytes == 0 || i->in_use_bytes >= live_bytes);
        peak_bytes = i->in_use_bytes > peak_bytes ? i->in_use_bytes : peak_bytes;
    }
    ck_assert_uint_eq(p->peak_in_use_bytes, peak_bytes);
    if (p->fits) {
        ck_assert_uint_eq(p->peak_in_use_bytes, want->peak_in_use_bytes);
        ck_assert_uint_eq(p->refused_instr, HR_NO_ID);
        ck_assert_uint_eq(p->instrs[p->peak_instr].in_use_bytes, want->peak_in_use_bytes);
    } else {
        ck_assert_uint_gt(p->missing_bytes, 0);
        ck_assert_uint_eq(p->events[p->event_count - 1].kind, HR_EVENT_OOM);
    }
}

// "layer1/conv" is of layer1, "head" of head, and what has no name of none.
static void check_layers(const hr_step_plan *p)
{
    uint64_t bytes = 0;
    ck_assert_uint_eq(p->layer_count, 2);
    for (size_t k = 0; k < p->tensor_count; k++) {
        const char *name = hr_step_plan_text(p, p->tensors[k].name);
        const uint32_t layer = p->tensors[k].layer;
        if (layer == HR_NO_ID) {
            ck_assert_str_eq(name, "");
            continue;
        }
        const char *owner = hr_step_plan_text(p, p->layers[layer].name);
        ck_assert_str_eq(owner, strcmp(name, "head") == 0 ? "head" : "layer1");
        bytes += p->tensors[k].bytes;
    }
    for (size_t k = 0; k < p->layer_count; k++) { // a record says none of it
        ck_assert_uint_eq(p->layers[k].parameters, HR_NONE);
        ck_assert_uint_eq(p->layers[k].parameter_bytes, HR_NONE);
        ck_assert_uint_eq(p->layers[k].saved_bytes, HR_NONE);
        ck_assert_uint_eq(p->layers[k].flops, HR_NONE);
    }
    ck_assert_uint_eq(bytes, p->layers[0].activation_bytes + p->layers[1].activation_bytes);
}

static void check_wire(const hr_step_plan *p)
{
    wire_out out = {0};
    hr_step_plan back;
    planning_put_step_plan(&out, p);
    wire_in in = {.data = out.data, .bytes = (uint32_t)out.bytes};
    ck_assert(planning_get_step_plan(&in, &back));
    ck_assert_uint_eq(back.instr_count, p->instr_count);
    ck_assert_mem_eq(back.instrs, p->instrs, p->instr_count * sizeof *p->instrs);
    hr_step_plan_deinit(&back);
    wire_out_deinit(&out);
}

START_TEST(a_step_plan_of_a_trace_has_its_requests_and_the_allocators_bytes)
{
    hr_knobs knobs;
    hr_replay *r = open_trace(&knobs);
    const uint64_t asked_bytes = hr_replay_get_about(r)->peak_requested_bytes;
    const uint64_t limits[] = {0, asked_bytes / 2, 2 * asked_bytes};
    for (int k = 0; k < 3 * ALLOCATORS; k++) {
        const hr_knobs turned = knobs_with(&knobs, allocators[k / 3], limits[k % 3]);
        const hr_replay_memory want = replayed(r, &turned);
        hr_step_plan p;
        ck_assert_int_eq(replay_step_plan(r, &turned, &p, NULL), HR_OK);
        check_plan(&p, &want);
        check_wire(&p);
        check_layers(&p);
        hr_step_plan_deinit(&p);
    }
    hr_replay_close(r);
}
END_TEST

// Recorded as refused, served here, and given back at once: nothing else is in use then. A request of no bytes is nothing.
START_TEST(a_request_that_the_record_refused_has_what_was_in_use_with_it)
{
    hr_knobs knobs;
    FILE *f = fopen(use_file("step.csv", path), "w");
    ck_assert_ptr_nonnull(f);
    fputs("time_ns,step,event,address,requested_bytes,allocated_bytes,tensor\n"
          "0,0,alloc,4096,1000,1000,a/w\n1,0,refused,0,3000000,0,w\n2,0,refused,0,0,0,z\n"
          "3,0,alloc,8192,5,5,b\n4,0,free,8192,5,5,b\n5,0,free,4096,1000,1000,a/w\n",
          f);
    ck_assert_int_eq(fclose(f), 0);
    hr_replay *r = open_trace(&knobs);
    for (int k = 0; k < ALLOCATORS; k++) {
        const hr_knobs turned = knobs_with(&knobs, allocators[k], 0);
        const hr_replay_memory want = replayed(r, &turned);
        hr_step_plan p;
        ck_assert_int_eq(replay_step_plan(r, &turned, &p, NULL), HR_OK);
        check_plan(&p, &want);
        ck_assert_uint_eq(p.peak_instr, 1);
        ck_assert_uint_eq(p.instrs[1].requested_bytes, 3001000);
        ck_assert_uint_ge(p.instrs[1].in_use_bytes, 3001000);
        ck_assert_uint_ge(p.instrs[1].pool_bytes, p.instrs[1].in_use_bytes);
        hr_step_plan_deinit(&p);
    }
    hr_replay_close(r);
}
END_TEST

// ---- what no fix may be ---------------------------------------------------------------------------------------

static void check_fixes(hr_replay *r, const hr_knobs *knobs, const hr_report *report)
{
    for (uint32_t k = 0; k < report->oom.fix_count; k++) {
        hr_knobs mended = *knobs;
        hr_replay_result result;
        turn(&mended, report->oom.fixes[k].knobs);
        ck_assert_int_eq(hr_replay_run(r, &mended, NULL, &result, NULL), HR_OK);
        ck_assert_uint_eq(result.failures_total, 0);
        ck_assert_uint_eq(result.memory.peak_in_use_bytes, report->oom.fixes[k].peak_bytes);
        hr_replay_result_deinit(&result);
    }
}

// growth goes with bfc alone, and expandable segments with handles of 2 MiB.
START_TEST(what_a_rule_refuses_is_no_fix_and_no_failure)
{
    static const struct {
        const char *kind, *setting, *no_fix;
    } rows[] = {{"bfc", "allocator.growth=on", "allocator.kind=async"},
                {"caching", "allocator.large_segment=21MiB", "allocator.expandable_segments=on"}};
    hr_knobs knobs;
    hr_replay *r = open_trace(&knobs);
    const uint64_t asked_bytes = hr_replay_get_about(r)->peak_requested_bytes;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        hr_knobs tight = knobs_with(&knobs, rows[k].kind, asked_bytes / 2);
        hr_err err = {0};
        hr_report report;
        turn(&tight, rows[k].setting);
        hr_knobs refused = tight;
        turn(&refused, rows[k].no_fix);
        ck_assert_int_eq(hr_knobs_validate(&refused, NULL), HR_CONSTRAINT);
        ck_assert_msg(hr_replay_report(r, &tight, "step", &report, &err) == HR_OK, "%s", err.sentence);
        ck_assert_uint_gt(report.oom.fix_count, 0);
        for (uint32_t i = 0; i < report.oom.fix_count; i++) {
            ck_assert_str_ne(report.oom.fixes[i].knobs, rows[k].no_fix);
        }
        check_fixes(r, &tight, &report);
        hr_report_deinit(&report);
    }
    hr_replay_close(r);
}
END_TEST

// ---- sessions -------------------------------------------------------------------------------------------------

typedef struct told {
    uint64_t peak_bytes, steps, ooms, states;
    hr_engine_state state;
    char built[HR_NAME_MAX];
} told;

static void take_all(hr_session *s, told *t)
{
    hr_event events[256];
    uint64_t lost = 0;
    size_t count;
    do {
        count = hr_session_events(s, events, 256, &lost);
        ck_assert_uint_eq(lost, 0);
        for (size_t k = 0; k < count; k++) {
            const hr_event *e = &events[k];
            if (e->kind == HR_EVENT_BUILD) {
                t->peak_bytes = 0;
                (void)snprintf(t->built, sizeof t->built, "%.*s", (int)sizeof e->u.note.text, e->u.note.text);
            } else if (e->kind == HR_EVENT_ALLOC && e->u.memory.in_use_bytes > t->peak_bytes) {
                t->peak_bytes = e->u.memory.in_use_bytes;
            } else if (e->kind == HR_EVENT_STATE) {
                t->state = (hr_engine_state)e->u.note.count;
                t->states++;
            }
            t->steps += e->kind == HR_EVENT_STEP;
            t->ooms += e->kind == HR_EVENT_OOM;
        }
    } while (count > 0);
}

static hr_session *start(const hr_knobs *knobs)
{
    hr_err err = {0};
    hr_session *s = NULL;
    const hr_session_options options = {.preset = path, .knobs = knobs};
    ck_assert_msg(hr_session_start_inline(&options, &s, &err) == HR_OK, "%s", err.sentence);
    return s;
}

static hr_report report_of(hr_session *s)
{
    uint64_t version = 0;
    hr_report report;
    ck_assert(hr_session_report(s, &version, &report));
    return report;
}

static void advance(hr_session *s, told *t)
{
    while (hr_session_advance(s, 8)) {
    }
    take_all(s, t);
}

START_TEST(a_session_on_a_trace_plays_it_under_every_turn)
{
    hr_knobs knobs;
    hr_replay *r = open_trace(&knobs);
    hr_session *s = start(&knobs);
    told t = {.state = HR_ENGINE_PAUSED};
    use_send(s, HR_COMMAND_RUN, 0, HR_KNOB_COUNT, "");
    advance(s, &t);
    for (int k = 0; k < ALLOCATORS; k++) {
        const hr_knobs turned = knobs_with(&knobs, allocators[k], 0);
        use_send(s, HR_COMMAND_KNOB, 0, HR_KNOB_ALLOCATOR_KIND, allocators[k]);
        advance(s, &t);
        const hr_replay_memory want = replayed(r, &turned);
        hr_report report = report_of(s);
        ck_assert_int_eq(t.state, HR_ENGINE_IDLE);
        ck_assert_uint_eq(t.steps, (uint64_t)k + 2);
        ck_assert_uint_eq(report.train.steps, t.steps);
        ck_assert_uint_eq(t.peak_bytes, want.peak_in_use_bytes);
        ck_assert_uint_eq(report.memory.peak_in_use_bytes, want.peak_in_use_bytes);
        ck_assert_uint_eq(report.memory.peak_pool_bytes, want.peak_pool_bytes);
        ck_assert_uint_eq(report.memory.waste_bytes, want.waste_bytes);
        uint64_t alive_bytes = 0;
        for (size_t i = 0; i < report.memory.at_peak.tensor_count; i++) {
            alive_bytes += report.memory.at_peak.tensors[i].bytes;
        }
        ck_assert_uint_eq(alive_bytes, want.peak_requested_bytes);
        hr_report_deinit(&report);
    }
    ck_assert_uint_eq(t.ooms, 0);
    ck_assert_int_eq(hr_session_stop(s, NULL), HR_OK);
    hr_replay_close(r);
}
END_TEST

START_TEST(what_does_not_fit_is_told_why_and_every_fix_serves_it)
{
    hr_knobs knobs;
    hr_replay *r = open_trace(&knobs);
    const uint64_t asked_bytes = hr_replay_get_about(r)->peak_requested_bytes;
    uint32_t fixes = 0;
    for (int k = 0; k < ALLOCATORS; k++) {
        const hr_knobs tight =
            knobs_with(&knobs, allocators[k], asked_bytes - (k % 2 == 0 ? 0 : asked_bytes / 8));
        hr_session *s = start(&tight);
        told t = {.state = HR_ENGINE_PAUSED};
        use_send(s, HR_COMMAND_RUN, 0, HR_KNOB_COUNT, "");
        advance(s, &t);
        hr_report report = report_of(s);
        const bool fits = replayed(r, &tight).failures == 0;
        ck_assert_int_eq(t.state, fits ? HR_ENGINE_IDLE : HR_ENGINE_OOM);
        ck_assert_int_eq(report.oom.cause != HR_OOM_NONE, !fits);
        ck_assert_int_eq(report.oom.sentence[0] != '\0', !fits);
        check_fixes(r, &tight, &report);
        fixes += report.oom.fix_count;
        ck_assert(fits || report.oom.fix_count > 0);
        hr_report_deinit(&report);
        ck_assert_int_eq(hr_session_stop(s, NULL), HR_OK);
    }
    ck_assert_uint_ge(fixes, 3);
    hr_replay_close(r);
}
END_TEST

// Device 0 asks for more in all, device 1 for it in two pieces that a pool of that size has not beside each other.
static void write_two_devices(void)
{
    FILE *f = fopen(use_file("step.csv", path), "w");
    ck_assert_ptr_nonnull(f);
    fputs("time_ns,step,event,address,requested_bytes,allocated_bytes,tensor,device\n"
          "0,0,alloc,4096,8388608,8388608,a/w,0\n1,0,alloc,4096,2097152,2097152,c,1\n"
          "2,0,alloc,8388608,1048576,1048576,d,1\n3,0,free,4096,2097152,2097152,c,1\n"
          "4,0,alloc,16777216,6291456,6291456,e,1\n5,0,free,4096,8388608,8388608,a/w,0\n",
          f);
    ck_assert_int_eq(fclose(f), 0);
}

static void check_verdict(hr_replay *r, const hr_knobs *knobs, bool fits, bool on_other)
{
    hr_whatif whatif;
    hr_step_plan plan;
    hr_report report;
    told t = {.state = HR_ENGINE_PAUSED};
    ck_assert_int_eq(replay_whatif(r, knobs, &whatif, NULL), HR_OK);
    ck_assert_int_eq(whatif.fits, fits);
    ck_assert_int_eq(whatif.missing_bytes > 0, !fits);
    ck_assert_int_eq(replay_step_plan(r, knobs, &plan, NULL), HR_OK);
    ck_assert_int_eq(plan.fits, fits);
    hr_step_plan_deinit(&plan);
    hr_session *s = start(knobs);
    use_send(s, HR_COMMAND_RUN, 0, HR_KNOB_COUNT, "");
    advance(s, &t);
    ck_assert_int_eq(t.state, fits ? HR_ENGINE_IDLE : HR_ENGINE_OOM);
    ck_assert_str_eq(t.built, "device 0 of 2 of a recorded step");
    report = report_of(s);
    ck_assert_int_eq(report.oom.cause != HR_OOM_NONE, !fits);
    ck_assert_int_eq(strncmp(report.oom.sentence, "device 1: ", 10) == 0, on_other);
    check_fixes(r, knobs, &report);
    hr_report_deinit(&report);
    ck_assert_int_eq(hr_session_stop(s, NULL), HR_OK);
}

typedef struct patience {
    trace_heartbeat heartbeat;
    hr_command waiting;
    bool has_waiting;
    uint32_t least_report_s, reports;
} patience;

static void patience_event(void *context, const hr_event *event)
{
    (void)context, (void)event;
}

static void patience_report(void *context, const hr_report *report)
{
    patience *p = context;
    const uint32_t timeout_s = atomic_load(&p->heartbeat.timeout_s);
    (void)report;
    p->reports++;
    p->least_report_s = p->reports == 1 || timeout_s < p->least_report_s ? timeout_s : p->least_report_s;
}

static bool patience_take(void *context, hr_command *command)
{
    patience *p = context;
    const bool had = p->has_waiting;
    *command = p->waiting;
    p->has_waiting = false;
    return had;
}

static bool patience_wants_heap(void *context)
{
    (void)context;
    return false;
}

static void patience_knobs(void *context, const hr_knobs *knobs)
{
    (void)context, (void)knobs;
}

static void patience_error(void *context, const hr_err *err)
{
    (void)context, (void)err;
}

// The commands' play, and how often it asked for host memory.
static uint64_t requests_of(engine_loop *l, patience *p, const hr_command *command)
{
    bool idle = false;
    p->waiting = *command;
    p->has_waiting = true;
    (void)hr_host_mem_fail_at(UINT64_MAX);
    while (!idle || p->has_waiting) {
        ck_assert(engine_loop_turn(l, &idle));
    }
    return hr_host_mem_fail_at(0);
}

// A report is replays by the dozen. It is made when the record is opened, and when a knob was turned, under the patience of a
// build; another play of the same knobs is one play.
START_TEST(a_report_is_made_once_for_its_knobs_and_patiently)
{
    static open_request request;
    patience p = {0};
    const session_callbacks out = {.context = &p,
                                   .event = patience_event,
                                   .report = patience_report,
                                   .error = patience_error,
                                   .knobs = patience_knobs,
                                   .wants_heap = patience_wants_heap,
                                   .take = patience_take,
                                   .heartbeat = &p.heartbeat};
    const hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = 1};
    hr_command turn_back = {
        .version = HR_EVENT_VERSION, .kind = HR_COMMAND_KNOB, .knob = HR_KNOB_ALLOCATOR_KIND};
    hr_knobs knobs;
    engine_loop *l = NULL;
    hr_replay *r = open_trace(&knobs);
    request =
        (open_request){.knobs = knobs_with(&knobs, "bfc", hr_replay_get_about(r)->peak_requested_bytes / 2)};
    (void)snprintf(request.preset, sizeof request.preset, "%s", path);
    (void)snprintf(turn_back.text, sizeof turn_back.text, "caching");
    ck_assert_int_eq(engine_loop_create(&request, &out, NULL, &l, NULL), HR_OK);
    engine_loop_report(l);
    ck_assert_uint_eq(p.reports, 1);
    ck_assert_uint_ge(p.least_report_s, 60);
    const uint64_t first = requests_of(l, &p, &run), second = requests_of(l, &p, &run);
    const uint64_t turned = requests_of(l, &p, &turn_back), third = requests_of(l, &p, &run);
    ck_assert_uint_gt(first, 0);
    ck_assert_uint_lt(3 * first, turned);
    ck_assert_uint_lt(3 * second, turned);
    ck_assert_uint_lt(3 * third, turned);
    engine_loop_destroy(l);
    hr_replay_close(r);
}
END_TEST

START_TEST(a_step_fits_when_every_device_serves_its_part)
{
    hr_knobs knobs;
    int others = 0;
    write_two_devices();
    hr_replay *r = open_trace(&knobs);
    for (uint64_t mib = 6; mib <= 12; mib++) {
        const hr_knobs turned = knobs_with(&knobs, "bfc", mib * HR_MIB);
        hr_replay_result want;
        ck_assert_int_eq(hr_replay_run(r, &turned, NULL, &want, NULL), HR_OK);
        const bool fits = want.failures_total == 0;
        const bool on_other = !fits && want.failures[0].device == 1;
        others += on_other && want.memory.failures == 0;
        hr_replay_result_deinit(&want);
        check_verdict(r, &turned, fits, on_other);
    }
    ck_assert_int_gt(others, 0);
    hr_replay_close(r);
}
END_TEST

START_TEST(what_a_record_has_not_cannot_be_turned)
{
    hr_knobs knobs;
    hr_replay *r = open_trace(&knobs);
    hr_session *s = start(&knobs);
    uint64_t version = 0;
    hr_err err = {0};
    told t = {.state = HR_ENGINE_PAUSED};
    use_send(s, HR_COMMAND_KNOB, 0, HR_KNOB_BATCH_SIZE, "64");
    advance(s, &t);
    ck_assert(hr_session_error(s, &version, &err));
    ck_assert_int_eq(err.status, HR_KNOB);
    ck_assert_str_eq(
        err.sentence,
        "batch.size cannot be turned: this is a recorded step, whose requests are what they were");
    use_send(s, HR_COMMAND_KNOB, 0, HR_KNOB_ALLOCATOR_KIND, "async_driver");
    advance(s, &t);
    ck_assert(hr_session_error(s, &version, &err));
    use_send(s, HR_COMMAND_SAVE, 0, HR_KNOB_COUNT, "/tmp/nothing.save");
    advance(s, &t);
    ck_assert(hr_session_error(s, &version, &err));
    ck_assert_int_eq(err.status, HR_STATE);
    ck_assert_uint_eq(t.steps, 0);
    ck_assert_int_eq(hr_session_stop(s, NULL), HR_OK);
    hr_replay_close(r);
}
END_TEST

// ---- questions ------------------------------------------------------------------------------------------------

static hr_answer answer_of(hr_planning *p)
{
    hr_answer answer;
    for (int k = 0; k < USE_WAIT_MS && !hr_planning_take(p, &answer); k++) {
        struct pollfd ready = {.fd = hr_planning_fd(p), .events = POLLIN};
        (void)poll(&ready, 1, 1);
    }
    return answer;
}

static void ask_all(bool in_process)
{
    hr_knobs knobs;
    hr_err err = {0};
    hr_planning *p = NULL;
    hr_replay *r = open_trace(&knobs);
    const hr_turn turns[] = {
        {HR_KNOB_COUNT, ""}, {HR_KNOB_ALLOCATOR_KIND, "direct"}, {HR_KNOB_BATCH_SIZE, "8"}};
    ck_assert_msg(hr_planning_start(in_process, &p, &err) == HR_OK, "%s", err.sentence);
    hr_planning_open(p, path, false);
    ck_assert_uint_gt(hr_planning_ask_turns(p, &knobs, turns, 3), 0);
    const hr_knobs direct = knobs_with(&knobs, "direct", 0);
    ck_assert_uint_eq(answer_of(p).whatif.peak_in_use_bytes, replayed(r, &knobs).peak_in_use_bytes);
    ck_assert_uint_eq(answer_of(p).whatif.peak_in_use_bytes, replayed(r, &direct).peak_in_use_bytes);
    ck_assert_int_eq(answer_of(p).status, HR_KNOB);
    ck_assert_uint_gt(hr_planning_ask_step_plan(p, &knobs), 0);
    hr_answer plan = answer_of(p);
    const hr_replay_memory want = replayed(r, &knobs);
    ck_assert_int_eq(plan.status, HR_OK);
    check_plan(&plan.step_plan, &want);
    hr_answer_deinit(&plan);
    ck_assert_uint_gt(hr_planning_ask_stands(p, &knobs), 0);
    ck_assert_int_eq(answer_of(p).status, HR_OK);
    ck_assert_uint_gt(hr_planning_ask_fit(p, &knobs, HR_PERMIT_NOTHING), 0);
    ck_assert_int_eq(answer_of(p).status, HR_STATE);
    ck_assert_uint_gt(hr_planning_ask_diff(p, &knobs, &direct), 0);
    ck_assert_int_eq(answer_of(p).status, HR_STATE);
    hr_planning_stop(p);
    hr_replay_close(r);
}

START_TEST(a_planner_answers_of_a_trace_by_replays)
{
    ask_all(true);
    ask_all(false);
}
END_TEST

START_TEST(a_record_that_asks_for_nothing_is_refused)
{
    hr_err err = {0};
    hr_preset *preset = NULL;
    hr_session *s = NULL;
    hr_knobs knobs;
    hr_replay_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.vram=1GiB", NULL), HR_OK);
    FILE *f = fopen(use_file("step.csv", path), "w");
    ck_assert_ptr_nonnull(f);
    fputs("time_ns,step,event,address,requested_bytes,allocated_bytes,tensor\n", f);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(hr_replay_open_preset(path, false, &preset, NULL, &err), HR_USAGE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "needed requests for memory to plan, had none"));
    const hr_session_options options = {.preset = path, .knobs = &knobs};
    ck_assert_int_eq(hr_session_start_inline(&options, &s, &err), HR_USAGE);
}
END_TEST

// ---- host memory ----------------------------------------------------------------------------------------------

static hr_status try_all(hr_replay *r, const hr_knobs *knobs, hr_err *err)
{
    hr_step_plan p;
    hr_report report;
    hr_status status = replay_step_plan(r, knobs, &p, err);
    if (status == HR_OK) {
        hr_step_plan_deinit(&p);
        status = hr_replay_report(r, knobs, "step", &report, err);
    }
    if (status == HR_OK) {
        hr_report_deinit(&report);
    }
    return status;
}

static void write_short_trace(void)
{
    FILE *f = fopen(use_file("step.csv", path), "w");
    ck_assert_ptr_nonnull(f);
    fputs("time_ns,step,event,address,requested_bytes,allocated_bytes,tensor\n"
          "0,0,alloc,4096,3000000,3000000,a/w\n1,0,alloc,8192,2000000,2000000,b\n"
          "2,0,free,4096,3000000,3000000,a/w\n3,0,alloc,12288,5000000,5000000,\n",
          f);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(every_request_for_host_memory_may_fail)
{
    hr_knobs knobs;
    write_short_trace();
    hr_replay *r = open_trace(&knobs);
    const hr_knobs tight = knobs_with(&knobs, "caching", 6 * HR_MIB);
    const int64_t live = hr_host_mem_live();
    hr_status status = HR_NOMEM;
    uint64_t nth = 0;
    while (status != HR_OK) {
        hr_err err = {0};
        (void)hr_host_mem_fail_at(++nth);
        status = try_all(r, &tight, &err);
        (void)hr_host_mem_fail_at(0);
        ck_assert_msg(status == HR_OK || status == HR_NOMEM, "%s", err.sentence);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    ck_assert_uint_gt(nth, 20);
    hr_replay_close(r);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("recorded");
    TCase *c = tcase_create("recorded");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, setup, use_teardown);
    tcase_add_test(c, a_what_if_is_a_replay_and_what_is_missing_would_serve_it);
    tcase_add_test(c, a_step_plan_of_a_trace_has_its_requests_and_the_allocators_bytes);
    tcase_add_test(c, a_session_on_a_trace_plays_it_under_every_turn);
    tcase_add_test(c, what_does_not_fit_is_told_why_and_every_fix_serves_it);
    tcase_add_test(c, a_request_that_the_record_refused_has_what_was_in_use_with_it);
    tcase_add_test(c, a_report_is_made_once_for_its_knobs_and_patiently);
    tcase_add_test(c, what_a_rule_refuses_is_no_fix_and_no_failure);
    tcase_add_test(c, a_step_fits_when_every_device_serves_its_part);
    tcase_add_test(c, what_a_record_has_not_cannot_be_turned);
    tcase_add_test(c, a_planner_answers_of_a_trace_by_replays);
    tcase_add_test(c, a_record_that_asks_for_nothing_is_refused);
    tcase_add_test(c, every_request_for_host_memory_may_fail);
    suite_add_tcase(s, c);
    return s;
}

USE_MAIN(make_suite)
