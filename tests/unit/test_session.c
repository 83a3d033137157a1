// SPDX-License-Identifier: Apache-2.0
// A training in a process of its own: events without loss, reports that equal those of this process, errors, heaps.
#include <math.h>

#include "session/end.h"
#include "session/engine_loop.h"
#include "session/messages.h"
#include "unit/session_use.h"

static int serve_role(const char *role)
{
    return hr_session_serve(role, NULL);
}

// ---- moving ---------------------------------------------------------------------------------------------------

static const char *const planned[] = {"device.kind=plan", "device.card=rtx3070-8g", NULL};

static void take_report(hr_session *s, wire_out *body)
{
    uint64_t version = 0;
    hr_report report;
    ck_assert(hr_session_report(s, &version, &report));
    put_report(body, &report);
    ck_assert(!body->bad);
    hr_report_deinit(&report);
}

// ---- what is turned together ----------------------------------------------------------------------------------

// Knobs of one turn that come in two pieces: the second only to whoever waits for it.
typedef struct in_pieces {
    trace_heartbeat heartbeat;
    hr_command waiting, later;
    bool has_waiting, has_later;
    unsigned builds, waits;
} in_pieces;

static bool pieces_take(void *context, hr_command *command)
{
    in_pieces *p = context;
    const bool had = p->has_waiting;
    *command = p->waiting;
    p->has_waiting = false;
    return had;
}

static bool pieces_wait(void *context, uint64_t until_ns)
{
    in_pieces *p = context;
    const bool came = p->has_later;
    (void)until_ns;
    p->waits++;
    p->waiting = p->later;
    p->has_waiting = came;
    p->has_later = false;
    return came;
}

static void pieces_event(void *context, const hr_event *event)
{
    ((in_pieces *)context)->builds += event->kind == HR_EVENT_BUILD;
}

static void pieces_report(void *context, const hr_report *report)
{
    (void)context, (void)report;
}

static void pieces_error(void *context, const hr_err *err)
{
    (void)context;
    ck_abort_msg("%s", err->sentence);
}

static void pieces_knobs(void *context, const hr_knobs *knobs)
{
    (void)context, (void)knobs;
}

static bool pieces_want_no_heap(void *context)
{
    (void)context;
    return false;
}

static hr_command turned(hr_knob_id id, const char *text, bool followed)
{
    hr_command c = {
        .version = HR_EVENT_VERSION, .kind = HR_COMMAND_KNOB, .knob = (uint32_t)id, .count = followed};
    (void)snprintf(c.text, sizeof c.text, "%s", text);
    return c;
}

// True: both knobs are in the first build behind them. Whoever announces a knob and never sends it holds nobody up.
static bool builds_both(bool followed, bool comes)
{
    in_pieces p = {.waiting = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = 1000},
                   .has_waiting = true};
    const session_callbacks out = {.context = &p,
                                   .event = pieces_event,
                                   .report = pieces_report,
                                   .error = pieces_error,
                                   .knobs = pieces_knobs,
                                   .wants_heap = pieces_want_no_heap,
                                   .take = pieces_take,
                                   .wait = pieces_wait,
                                   .heartbeat = &p.heartbeat};
    static open_request request;
    engine_loop *l = NULL;
    hr_err err = {0};
    bool idle;
    request = (open_request){.knobs = use_knobs(planned)};
    (void)snprintf(request.preset, sizeof request.preset, "%s", use_preset);
    ck_assert_msg(engine_loop_create(&request, &out, NULL, &l, &err) == HR_OK, "%s", err.sentence);
    ck_assert(engine_loop_turn(l, &idle));
    const unsigned before = p.builds;
    p.waiting = turned(HR_KNOB_BATCH_SIZE, "8", followed);
    p.later = turned(HR_KNOB_EXECUTION_MODE, "graph", false);
    p.has_waiting = true;
    p.has_later = comes;
    while (p.builds == before) {
        ck_assert(engine_loop_turn(l, &idle));
    }
    const bool both = hr_knob_is(engine_loop_knobs(l), HR_KNOB_EXECUTION_MODE, "graph");
    engine_loop_destroy(l);
    return both;
}

START_TEST(a_knob_that_was_announced_is_built_with_the_one_before_it)
{
    ck_assert(builds_both(true, true));
    ck_assert(!builds_both(false, true)); // nobody waits for what was not announced
    ck_assert(!builds_both(true, false));
}
END_TEST

// ---- another process -------------------------------------------------------------------------------------------

// Byte for byte: the training in another process is the training in this one.
START_TEST(a_worker_reports_what_a_session_in_this_process_does)
{
    seen n = {.state = HR_ENGINE_PAUSED};
    wire_out there = {0}, here = {0};
    hr_knobs knobs = use_knobs(planned);
    hr_session_options options = use_options(&knobs);
    hr_session *s = use_start(&options), *in = use_start_inline(&options);
    use_run(s, 3);
    use_read_until(s, &n, use_is_in, HR_ENGINE_IDLE);
    ck_assert_uint_eq(n.steps, 3);
    ck_assert_uint_eq(n.lost, 0);
    use_run_inline(in, 3);
    take_report(in, &here);
    for (int k = 0; k < 200 && (there.bytes != here.bytes || memcmp(there.data, here.data, here.bytes) != 0);
         k++) {
        use_pause(s); // the last report comes behind the last event
        wire_out_deinit(&there);
        take_report(s, &there);
    }
    ck_assert_uint_eq(there.bytes, here.bytes);
    ck_assert_mem_eq(there.data, here.data, here.bytes);
    wire_out_deinit(&there);
    wire_out_deinit(&here);
    use_stop(s);
    use_stop(in);
}
END_TEST

static uint64_t digest_of_inline(const hr_session_options *options, unsigned pieces)
{
    uint64_t digest = UINT64_C(1469598103934665603), lost = 0;
    hr_session *s = use_start_inline(options);
    use_run(s, 6);
    bool moves = true;
    while (moves) {
        moves = hr_session_advance(s, pieces);
        hr_event events[64];
        size_t got = 64;
        while (got == 64) {
            got = hr_session_events(s, events, 64, &lost);
            ck_assert_uint_eq(lost, 0);
            for (size_t k = 0; k < got; k++) {
                events[k].seq = 0;
                for (size_t b = 0; b < sizeof events[k]; b++) {
                    digest = (digest ^ ((const uint8_t *)&events[k])[b]) * UINT64_C(1099511628211);
                }
            }
        }
    }
    use_stop(s);
    return digest;
}

START_TEST(a_session_in_this_process_is_the_same_every_time)
{
    hr_knobs knobs = use_knobs(planned);
    hr_session_options options = use_options(&knobs);
    uint64_t digest = digest_of_inline(&options, 1);
    ck_assert_uint_eq(digest_of_inline(&options, 1), digest);
    ck_assert_uint_eq(digest_of_inline(&options, 1000), digest);
}
END_TEST

START_TEST(nothing_is_lost_while_it_is_drained)
{
    seen n = {.state = HR_ENGINE_PAUSED};
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    hr_session *s = use_start(&options);
    use_run(s, 40);
    use_read_until(s, &n, use_is_in, HR_ENGINE_IDLE);
    ck_assert_uint_eq(n.lost, 0);
    ck_assert_uint_eq(n.next_seq, n.events); // from the first one on
    ck_assert_uint_eq(n.steps, 40);
    ck_assert(isfinite(n.loss));
    use_stop(s);
}
END_TEST

START_TEST(who_does_not_read_loses_the_oldest_and_is_told)
{
    seen n = {.state = HR_ENGINE_PAUSED};
    enum { STEPS = 40 };
    hr_knobs knobs = use_knobs((const char *const[]){"batch.size=1", "batch.accumulate=64", NULL});
    hr_session_options options = use_options(&knobs);
    hr_session *s = use_start(&options);
    use_run(s, STEPS);
    uint64_t version = 0;
    hr_report report = {.preset = ""};
    while (report.train.steps < STEPS) { // reports are taken, events are not
        use_pause(s);
        hr_report fresh;
        if (hr_session_report(s, &version, &fresh)) {
            hr_report_deinit(&report);
            report = fresh;
        }
    }
    hr_report_deinit(&report);
    use_read(s, &n);
    ck_assert_uint_gt(n.lost, 0);
    ck_assert_uint_eq(n.lost + n.events, n.next_seq);
    ck_assert_int_eq(n.state, HR_ENGINE_IDLE);
    use_stop(s);
}
END_TEST

// A reader with room for one event at a time is woken for every one of them, and by nothing once all is taken.
START_TEST(the_descriptor_is_readable_while_something_waits)
{
    hr_engine_state state = HR_ENGINE_PAUSED;
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    hr_session *s = use_start(&options);
    uint64_t version = 0, lost = 0;
    hr_report report;
    hr_event event;
    use_run(s, 1);
    while (state != HR_ENGINE_IDLE) {
        ck_assert(use_wait_readable(s, USE_WAIT_MS));
        if (hr_session_events(s, &event, 1, &lost) == 1 && event.kind == HR_EVENT_STATE) {
            state = (hr_engine_state)event.u.note.count;
        }
    }
    bool quiet = false;
    for (int k = 0; k < USE_WAIT_MS / 50 && !quiet; k++) {
        if (hr_session_report(s, &version, &report)) {
            hr_report_deinit(&report);
        }
        (void)hr_session_events(s, &event, 1, &lost);
        quiet = !use_wait_readable(s, 50);
    }
    ck_assert(quiet);
    use_run(s, 1);
    ck_assert(use_wait_readable(s, USE_WAIT_MS));
    use_stop(s);
}
END_TEST

// The simulated clock begins at 0 wherever the machine's is; readers see one axis, and steps at the pace of the card.
START_TEST(a_card_takes_its_time_on_the_axis_of_the_device_before_it)
{
    enum { BEFORE = 5, AFTER = 4 };
    seen n = {.state = HR_ENGINE_PAUSED};
    hr_event events[USE_EVENTS];
    uint64_t lost = 0, last_ns = 0, time_ns = 0;
    unsigned steps = 0;
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    hr_session *s = use_start(&options);
    use_run(s, BEFORE);
    use_read_until(s, &n, use_is_in, HR_ENGINE_IDLE);
    ck_assert_double_gt(n.loss, 0);
    use_send(s, HR_COMMAND_KNOB, 0, HR_KNOB_DEVICE_CARD, "rtx3070-8g");
    use_send(s, HR_COMMAND_KNOB, 0, HR_KNOB_DEVICE_KIND, "plan");
    use_run(s, AFTER);
    time_ns = n.time_ns;
    while (steps < AFTER) {
        ck_assert(use_wait_readable(s, USE_WAIT_MS));
        size_t got = hr_session_events(s, events, USE_EVENTS, &lost);
        ck_assert_uint_eq(lost, 0);
        for (size_t k = 0; k < got; k++) {
            ck_assert_uint_ge(events[k].time_ns, time_ns);
            time_ns = events[k].time_ns;
            if (events[k].kind == HR_EVENT_STEP) {
                ck_assert(steps++ == 0 || time_ns - last_ns >= events[k].u.step.duration_ns);
                ck_assert_double_nan(
                    events[k].u.step.loss); // nothing is computed: the last loss is not of these steps
                last_ns = time_ns;
            }
        }
    }
    use_stop(s);
}
END_TEST

// ---- errors ---------------------------------------------------------------------------------------------------

START_TEST(a_refused_command_is_told)
{
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    hr_session *s = use_start(&options);
    use_send(s, HR_COMMAND_KNOB, 0, HR_KNOB_BATCH_SIZE, "many");
    hr_err err = use_wait_error(s);
    ck_assert_int_eq(err.status, HR_KNOB);
    ck_assert_ptr_nonnull(strstr(err.sentence, "batch.size"));
    use_stop(s);
}
END_TEST

START_TEST(out_of_memory_is_a_state_that_a_knob_leaves)
{
    seen n = {.state = HR_ENGINE_IDLE};
    hr_knobs knobs = use_knobs(NULL);
    char preset[HR_KNOB_TEXT_MAX];
    hr_session_options options = use_options(&knobs);
    hr_session *s = use_start(&options);
    use_send(s, HR_COMMAND_KNOB, 0, HR_KNOB_BATCH_SIZE, "100000");
    use_run(s, 0);
    use_read_until(s, &n, use_is_in, HR_ENGINE_OOM);
    use_send(s, HR_COMMAND_KNOB, 0, HR_KNOB_BATCH_SIZE, "8");
    use_read_until(s, &n, use_has_steps, 3);
    ck_assert(hr_session_about(s, preset, &knobs));
    ck_assert_str_eq(preset, use_preset);
    ck_assert_int_eq(hr_knob_int(&knobs, HR_KNOB_BATCH_SIZE), 8);
    use_stop(s);
}
END_TEST

// Nothing between the two: the state is "out of memory" before and after, and yet there is news.
START_TEST(a_second_out_of_memory_is_told_like_the_first)
{
    uint64_t version = 0;
    hr_err first = {0}, second = {0};
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    hr_session *s = use_start(&options);
    use_send(s, HR_COMMAND_KNOB, 0, HR_KNOB_BATCH_SIZE, "100000");
    use_run(s, 0);
    for (int k = 0; k < USE_WAIT_MS / 20 && !hr_session_error(s, &version, &first); k++) {
        use_pause(s);
    }
    use_send(s, HR_COMMAND_KNOB, 0, HR_KNOB_BATCH_SIZE, "50000");
    for (int k = 0; k < USE_WAIT_MS / 20 && !hr_session_error(s, &version, &second); k++) {
        use_pause(s);
    }
    ck_assert_int_eq(second.status, HR_OOM);
    ck_assert_str_ne(first.sentence, second.sentence);
    bool same = false;
    for (int k = 0; k < USE_WAIT_MS / 20 && !same; k++) {
        hr_report report;
        version = 0;
        use_pause(s);
        if (hr_session_report(s, &version, &report)) {
            same = strcmp(report.oom.sentence, second.sentence) == 0;
            hr_report_deinit(&report);
        }
    }
    ck_assert(same);
    use_stop(s);
}
END_TEST

START_TEST(what_the_worker_cannot_open_ends_it_with_the_reason)
{
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    options.preset = "/nonexistent/preset.yaml";
    hr_session *s = use_start(&options);
    hr_session_end end = use_wait_end(s);
    hr_err err = use_wait_error(s);
    ck_assert_int_eq(err.status, HR_READ);
    ck_assert_int_eq(end.exit_code, hr_status_exit_code(HR_READ));
    ck_assert_str_eq(end.sentence, err.sentence);
    use_stop(s);
}
END_TEST

START_TEST(knobs_that_are_refused_start_nothing)
{
    hr_err err = {0};
    hr_session *s = NULL;
    hr_knobs knobs = use_knobs((const char *const[]){"execution.mode=eager", NULL});
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "allocator.kind=static", NULL), HR_OK);
    hr_session_options options = use_options(&knobs);
    ck_assert_int_eq(hr_session_start(&options, &s, &err), HR_CONSTRAINT);
    ck_assert_ptr_null(s);
    ck_assert_int_eq(hr_session_start_inline(&options, &s, &err), HR_CONSTRAINT);
    ck_assert_ptr_null(s);
}
END_TEST

START_TEST(a_full_queue_takes_no_more)
{
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    hr_session *s = use_start(&options);
    hr_session_suspend(s, true);
    unsigned sent = 0;
    while (sent < 1000 && hr_session_send(s, &(hr_command){.kind = HR_COMMAND_PAUSE})) {
        sent++;
    }
    ck_assert_uint_eq(sent, 64);
    hr_session_suspend(s, false);
    bool taken = false;
    for (int k = 0; k < USE_WAIT_MS / 20 && !taken; k++) {
        use_pause(s);
        taken = hr_session_send(s, &(hr_command){.kind = HR_COMMAND_PAUSE});
    }
    ck_assert(taken);
    use_stop(s);
}
END_TEST

// ---- the heap -------------------------------------------------------------------------------------------------

// The chunks that live are those whose ALLOC and FREE events came before.
START_TEST(a_heap_is_that_of_the_events_before_it)
{
    seen n = {.state = HR_ENGINE_PAUSED};
    hr_session_heap heap = {0};
    uint64_t version = 0, in_use = 0, tiled = 0;
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    hr_session *s = use_start(&options);
    use_run(s, 3);
    use_read_until(s, &n, use_is_in, HR_ENGINE_IDLE);
    hr_session_ask_heap(s);
    for (int k = 0; k < USE_WAIT_MS / 20 && version == 0; k++) {
        use_pause(s);
        (void)hr_session_heap_now(s, &version, &heap);
    }
    ck_assert_uint_eq(version, 1);
    ck_assert_uint_eq(heap.seq, n.next_seq);
    for (size_t k = 0; k < heap.count; k++) {
        const hr_session_chunk *c = &heap.chunks[k];
        bool first = k == 0 || c[-1].region_address != c->region_address;
        ck_assert_uint_eq(c->address, first ? c->region_address : c[-1].address + c[-1].size_bytes);
        in_use += c->in_use ? c->size_bytes : 0;
        tiled += c->size_bytes;
        ck_assert(!c->in_use || c->tensor != HR_NO_ID);
    }
    ck_assert_uint_gt(tiled, in_use);
    ck_assert_uint_eq(in_use, n.in_use_bytes);
    hr_session_heap_deinit(&heap);
    use_stop(s);
}
END_TEST

static const char *const heaps[][4] = {
    {"allocator.kind=bfc", "device.vram=64MiB", NULL},
    {"allocator.kind=bfc", "allocator.growth=on", "device.vram=64MiB", NULL},
    {"allocator.kind=caching", "device.vram=64MiB", NULL},
    {"allocator.kind=caching", "allocator.expandable_segments=on", "device.vram=64MiB", NULL},
    {"allocator.kind=async", "device.vram=64MiB", NULL},
    {"allocator.kind=direct", "device.vram=64MiB", NULL},
    {"allocator.kind=static", "execution.mode=graph", "device.vram=64MiB", NULL},
};

// Whoever reads it ends a worker whose heap is none.
START_TEST(the_heap_of_every_allocator_is_taken)
{
    enum { HEAPS = 5 };
    uint64_t version = 0;
    seen n = {.state = HR_ENGINE_PAUSED};
    hr_knobs knobs = use_knobs(heaps[_i]);
    hr_session_options options = use_options(&knobs);
    hr_session *s = use_start(&options);
    use_run(s, 0);
    use_read_until(s, &n, use_has_steps, 1);
    for (uint64_t wanted = 1; wanted <= HEAPS; wanted++) {
        hr_session_ask_heap(s);
        for (int k = 0; k < USE_WAIT_MS / 20 && version < wanted; k++) {
            hr_session_heap heap = {0};
            hr_session_end end;
            use_pause(s);
            (void)hr_session_heap_now(s, &version, &heap);
            ck_assert(heap.count > 0 || version < wanted);
            hr_session_heap_deinit(&heap);
            ck_assert_int_ne(hr_session_get_life(s, &end), HR_SESSION_ENDED);
        }
        ck_assert_uint_eq(version, wanted);
    }
    use_stop(s);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("session");
    TCase *moving = tcase_create("moving");
    tcase_add_checked_fixture(moving, use_setup, use_teardown);
    tcase_add_test(moving, a_worker_reports_what_a_session_in_this_process_does);
    tcase_add_test(moving, a_session_in_this_process_is_the_same_every_time);
    tcase_add_test(moving, nothing_is_lost_while_it_is_drained);
    tcase_add_test(moving, who_does_not_read_loses_the_oldest_and_is_told);
    tcase_add_test(moving, the_descriptor_is_readable_while_something_waits);
    tcase_add_test(moving, a_card_takes_its_time_on_the_axis_of_the_device_before_it);
    tcase_add_test(moving, a_knob_that_was_announced_is_built_with_the_one_before_it);
    tcase_add_test(moving, a_refused_command_is_told);
    tcase_add_test(moving, out_of_memory_is_a_state_that_a_knob_leaves);
    tcase_add_test(moving, a_second_out_of_memory_is_told_like_the_first);
    tcase_add_test(moving, what_the_worker_cannot_open_ends_it_with_the_reason);
    tcase_add_test(moving, knobs_that_are_refused_start_nothing);
    tcase_add_test(moving, a_full_queue_takes_no_more);
    tcase_add_test(moving, a_heap_is_that_of_the_events_before_it);
    tcase_add_loop_test(moving, the_heap_of_every_allocator_is_taken, 0, sizeof heaps / sizeof *heaps);
    suite_add_tcase(suite, moving);
    return suite;
}

USE_MAIN(make_suite)
