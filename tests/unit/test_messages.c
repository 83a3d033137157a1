// SPDX-License-Identifier: Apache-2.0
// What processes of ours say to each other: it comes out as it went in; cut anywhere it is refused; and whatever bits are
// changed, what is taken is valid, within its tables, and says the same again. Run under sanitizers.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "session/messages.h"

enum { MUTATIONS = 1500, SPREAD = 6 };

static uint64_t dice;

static uint32_t roll(uint32_t below)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(dice >> 33) % below;
}

// ---- a full message of every kind -----------------------------------------------------------------------------

static void fill_words(char *words, size_t size)
{
    size_t length = roll((uint32_t)size);
    for (size_t k = 0; k < length; k++) {
        words[k] = (char)('a' + roll(26));
    }
    words[length] = '\0';
}

static void write_report(wire_out *out)
{
    hr_report r = {.device.threads = 2, .step.seconds = (double)NAN, .evaluation.peak_in_use_bytes = HR_NONE};
    fill_words(r.preset, sizeof r.preset);
    fill_words(r.oom.sentence, sizeof r.oom.sentence);
    r.model.layer_count = roll(20);
    r.memory.at_peak.tensor_count = roll(30);
    r.host.stage_count = roll(10);
    r.oom.fix_count = roll(HR_FIXES_MAX + 1);
    r.oom.cause = (hr_oom_cause)roll(HR_OOM_CAUSE_COUNT);
    r.memory.at_peak.phase = (hr_phase)roll(HR_PHASE_COUNT + 1);
    r.model.layers = hr_calloc(r.model.layer_count, sizeof *r.model.layers);
    r.memory.at_peak.tensors = hr_calloc(r.memory.at_peak.tensor_count, sizeof *r.memory.at_peak.tensors);
    for (size_t k = 0; k < r.model.layer_count; k++) {
        fill_words(r.model.layers[k].name, sizeof r.model.layers[k].name);
        r.model.layers[k].parameters = dice;
    }
    for (size_t k = 0; k < r.memory.at_peak.tensor_count; k++) {
        fill_words(r.memory.at_peak.tensors[k].name, sizeof r.memory.at_peak.tensors[k].name);
        r.memory.at_peak.tensors[k].category = (hr_category)roll(HR_CATEGORY_COUNT + 1);
    }
    put_report(out, &r);
    hr_report_deinit(&r);
}

static bool read_report(const wire_message *m, wire_out *again)
{
    hr_report r;
    bool valid = get_report(m, &r);
    if (valid) {
        ck_assert_uint_lt(r.oom.cause, HR_OOM_CAUSE_COUNT);
        ck_assert_uint_le(r.memory.at_peak.phase, HR_PHASE_COUNT);
        ck_assert_uint_le(r.host.stage_count, sizeof r.host.stages / sizeof *r.host.stages);
        ck_assert_uint_le(r.oom.fix_count, HR_FIXES_MAX);
        for (size_t k = 0; k < r.memory.at_peak.tensor_count; k++) {
            ck_assert_uint_le(r.memory.at_peak.tensors[k].category, HR_CATEGORY_COUNT);
        }
        put_report(again, &r);
        hr_report_deinit(&r);
    }
    return valid;
}

static void write_heap(wire_out *out)
{
    hr_session_chunk chunks[40] = {{0}};
    hr_session_heap heap = {.seq = 12345, .chunks = chunks, .count = roll(40)};
    uint64_t address = 1 << 20;
    for (size_t k = 0; k < heap.count; k++) {
        hr_session_chunk *c = &chunks[k];
        bool begins = k % 10 == 0;
        address += begins ? 1 << 16 : 0;
        *c = (hr_session_chunk){.address = address,
                                .size_bytes = 256 * (1 + roll(8)),
                                .region_address = begins ? address : c[-1].region_address,
                                .region_bytes = 1 << 15,
                                .in_use = roll(2) == 1,
                                .category = (uint8_t)roll(HR_CATEGORY_COUNT + 1),
                                .tensor = roll(100)};
        c->requested_bytes = c->in_use ? c->size_bytes - roll(200) : 0;
        address += c->size_bytes;
    }
    put_heap(out, &heap);
}

static bool read_heap(const wire_message *m, wire_out *again)
{
    hr_session_heap heap;
    bool valid = get_heap(m, &heap);
    for (size_t k = 0; valid && k < heap.count; k++) {
        const hr_session_chunk *c = &heap.chunks[k];
        ck_assert_uint_le(c->category, HR_CATEGORY_COUNT);
        ck_assert_uint_ge(c->address, c->region_address);
        ck_assert_uint_le(c->address + c->size_bytes, c->region_address + c->region_bytes);
        ck_assert_uint_le(c->requested_bytes, c->size_bytes);
        ck_assert(k == 0 || c[-1].region_address != c->region_address ||
                  (c->address >= c[-1].address + c[-1].size_bytes && c->region_bytes == c[-1].region_bytes));
    }
    if (valid) {
        put_heap(again, &heap);
        hr_session_heap_deinit(&heap);
    }
    return valid;
}

static hr_knobs some_knobs(void)
{
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "batch.size=48", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.vram=300MiB", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "optimizer.learning_rate=0.00012345678901234567", NULL),
                     HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "train.save=/tmp/ä b=c.safetensors", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "precision.policy=float32", NULL),
                     HR_OK); // the default, but set
    return knobs;
}

static void write_open(wire_out *out)
{
    static open_request r;
    r = (open_request){.trusts = true, .knobs = some_knobs()};
    fill_words(r.preset, 40);
    fill_words(r.resume_path, 300);
    put_open(out, &r);
}

static bool read_open(const wire_message *m, wire_out *again)
{
    static open_request r;
    bool valid = get_open(m, &r);
    if (valid) {
        put_open(again, &r);
    }
    return valid;
}

static void write_about(wire_out *out)
{
    hr_knobs knobs = some_knobs();
    put_about(out, "resnet50", &knobs);
}

static bool read_about(const wire_message *m, wire_out *again)
{
    char preset[HR_KNOB_TEXT_MAX];
    hr_knobs knobs;
    bool valid = get_about(m, preset, &knobs);
    if (valid) {
        put_about(again, preset, &knobs);
    }
    return valid;
}

static void write_command(wire_out *out)
{
    hr_command c = {.kind = (uint16_t)roll(HR_COMMAND_COUNT), .knob = roll(99), .count = dice};
    fill_words(c.text, sizeof c.text);
    put_command(out, &c);
}

static bool read_command(const wire_message *m, wire_out *again)
{
    hr_command c;
    bool valid = get_command(m, &c);
    if (valid) {
        ck_assert_uint_lt(c.kind, HR_COMMAND_COUNT);
        ck_assert_uint_eq(c.version, HR_EVENT_VERSION);
        put_command(again, &c);
    }
    return valid;
}

static void write_error(wire_out *out)
{
    hr_err err = {.status = (hr_status)(1 + roll(HR_STATUS_COUNT - 1))};
    fill_words(err.sentence, sizeof err.sentence);
    fill_words(err.hint, sizeof err.hint);
    put_error(out, &err);
}

static bool read_error(const wire_message *m, wire_out *again)
{
    hr_err err;
    bool valid = get_error(m, &err);
    if (valid) {
        ck_assert(err.status > HR_OK && err.status < HR_STATUS_COUNT);
        put_error(again, &err);
    }
    return valid;
}

static void write_ended(wire_out *out)
{
    hr_err err = {.status = HR_OK};
    fill_words(err.sentence, sizeof err.sentence);
    put_ended(out, (hr_status)roll(HR_STATUS_COUNT), &err);
}

static bool read_ended(const wire_message *m, wire_out *again)
{
    ended_note note;
    bool valid = get_ended(m, &note);
    if (valid) {
        ck_assert_uint_lt(note.status, HR_STATUS_COUNT);
        put_ended(again, note.status, &note.err);
    }
    return valid;
}

static void write_count(wire_out *out)
{
    wire_put_u64(out, dice);
}

static bool read_count(const wire_message *m, wire_out *again)
{
    uint64_t count = 0;
    bool valid = get_count(m, &count);
    if (valid) {
        wire_put_u64(again, count);
    }
    return valid;
}

static const struct {
    message_kind kind;
    void (*write)(wire_out *out);
    bool (*read)(const wire_message *m, wire_out *again); // writes what it took
} kinds[] = {
    {MESSAGE_OPEN, write_open, read_open},    {MESSAGE_COMMAND, write_command, read_command},
    {MESSAGE_ABOUT, write_about, read_about}, {MESSAGE_REPORT, write_report, read_report},
    {MESSAGE_ERROR, write_error, read_error}, {MESSAGE_HEAP, write_heap, read_heap},
    {MESSAGE_ENDED, write_ended, read_ended}, {MESSAGE_WAKE, write_count, read_count},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

// In memory of exactly that size, so that a sanitizer sees a byte too many.
static bool read_exactly(int k, const uint8_t *data, size_t bytes, wire_out *again)
{
    void *body = NULL;
    ck_assert_int_eq(posix_memalign(&body, 8, bytes > 0 ? bytes : 1), 0);
    memcpy(body, data, bytes);
    const wire_message m = {.kind = kinds[k].kind, .bytes = (uint32_t)bytes, .body = body, .fd = -1};
    int64_t live = hr_host_mem_live();
    bool valid = kinds[k].read(&m, again);
    ck_assert_int_eq(hr_host_mem_live() - (again->data != NULL), live);
    free(body);
    return valid;
}

static wire_out written(int k)
{
    wire_out out = {0};
    kinds[k].write(&out);
    ck_assert(!out.bad);
    return out;
}

START_TEST(a_message_comes_out_as_it_went_in)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        dice = seed;
        wire_out out = written(_i), again = {0};
        ck_assert(read_exactly(_i, out.data, out.bytes, &again));
        ck_assert_uint_eq(again.bytes, out.bytes);
        ck_assert_mem_eq(again.data, out.data, out.bytes);
        wire_out_deinit(&out);
        wire_out_deinit(&again);
    }
}
END_TEST

START_TEST(a_message_that_was_cut_or_has_something_behind_it_is_refused)
{
    dice = 7;
    wire_out out = written(_i), again = {0};
    for (size_t bytes = 0; bytes < out.bytes; bytes++) {
        ck_assert(!read_exactly(_i, out.data, bytes, &again));
    }
    wire_put_u32(&out, 0);
    ck_assert(!read_exactly(_i, out.data, out.bytes, &again));
    ck_assert_ptr_null(again.data);
    wire_out_deinit(&out);
}
END_TEST

static bool is_taken(hr_session_chunk *chunks, size_t count)
{
    wire_out out = {0};
    hr_session_heap heap = {.chunks = chunks, .count = count};
    put_heap(&out, &heap);
    const wire_message m = {.kind = MESSAGE_HEAP, .bytes = (uint32_t)out.bytes, .body = out.data, .fd = -1};
    const bool taken = get_heap(&m, &heap);
    if (taken) {
        hr_session_heap_deinit(&heap);
    }
    wire_out_deinit(&out);
    return taken;
}

// Whatever order a few regions come in: they are taken when they rise and do not overlap.
START_TEST(regions_neither_overlap_nor_come_twice)
{
    enum { REGIONS = 3, PLACES = 5, PAGE = 4096 };
    unsigned taken = 0;
    for (uint32_t shape = 0; shape < PLACES * PLACES * PLACES; shape++) {
        hr_session_chunk chunks[REGIONS] = {{0}};
        bool rise = true;
        for (uint32_t k = 0, rest = shape; k < REGIONS; k++, rest /= PLACES) {
            const uint64_t address = (1 + rest % PLACES) * PAGE;
            const uint64_t bytes = k == 0 ? 2 * PAGE : PAGE;
            chunks[k] = (hr_session_chunk){
                .address = address, .size_bytes = PAGE / 4, .region_address = address, .region_bytes = bytes};
            rise = rise && (k == 0 || address >= chunks[k - 1].region_address + chunks[k - 1].region_bytes);
        }
        ck_assert_int_eq(is_taken(chunks, REGIONS), rise);
        taken += rise;
    }
    ck_assert_uint_eq(taken, 4); // 1 3 4, 1 3 5, 1 4 5, 2 4 5
}
END_TEST

START_TEST(an_amount_that_is_none_is_not_known)
{
    static const double wild[] = {-1, (double)INFINITY, -(double)INFINITY, (double)NAN, 1.5};
    for (size_t k = 0; k < sizeof wild / sizeof *wild; k++) {
        const double w = wild[k];
        hr_report r = {
            .step.seconds = w,
            .memory.fragmentation = w,
            .train = {.loss_scale = w, .examples_per_second = w, .loss_last = w, .eval_accuracy = w},
            .plan = {.seconds_median = w, .seconds_max = w}};
        wire_out out = {0};
        put_report(&out, &r);
        const wire_message m = {
            .kind = MESSAGE_REPORT, .bytes = (uint32_t)out.bytes, .body = out.data, .fd = -1};
        ck_assert(get_report(&m, &r));
        const double amounts[] = {r.step.seconds, r.train.loss_scale, r.train.examples_per_second,
                                  r.plan.seconds_median, r.plan.seconds_max};
        for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++) {
            ck_assert(w > 0 && isfinite(w) ? !(amounts[i] < w || amounts[i] > w) : (bool)isnan(amounts[i]));
        }
        ck_assert(isnan(r.memory.fragmentation) && isnan(r.train.eval_accuracy));
        ck_assert_mem_eq(&r.train.loss_last, &w, sizeof w); // one that diverges is a loss all the same
        hr_report_deinit(&r);
        wire_out_deinit(&out);
    }
}
END_TEST

static void mutate(uint8_t *data, size_t bytes)
{
    static const uint32_t wild[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x01000000};
    for (uint32_t changes = 1 + roll(SPREAD); changes > 0 && bytes >= 4; changes--) {
        size_t at = roll((uint32_t)bytes);
        if (roll(2) == 0) {
            data[at] ^= (uint8_t)(1 << roll(8));
        } else {
            memcpy(data + at / 4 * 4 - (at / 4 * 4 + 4 > bytes ? 4 : 0), &wild[roll(6)], 4);
        }
    }
}

START_TEST(whatever_is_changed_what_is_taken_is_valid)
{
    for (uint32_t k = 0; k < MUTATIONS; k++) {
        dice = k;
        wire_out out = written(_i), again = {0};
        mutate(out.data, out.bytes);
        if (read_exactly(_i, out.data, out.bytes, &again)) {
            wire_out third = {0};
            ck_assert(read_exactly(_i, again.data, again.bytes, &third));
            ck_assert_uint_eq(third.bytes, again.bytes);
            ck_assert_mem_eq(third.data, again.data, again.bytes);
            wire_out_deinit(&third);
        }
        wire_out_deinit(&out);
        wire_out_deinit(&again);
    }
}
END_TEST

START_TEST(short_memory_takes_nothing)
{
    dice = 3;
    wire_out out = written(_i), again = {0};
    for (uint64_t nth = 1; nth < 100; nth++) {
        wire_out short_of = {0};
        dice = 3;
        (void)hr_host_mem_fail_at(nth);
        if (kinds[_i].kind != MESSAGE_REPORT) { // whose making needs memory of its own here
            kinds[_i].write(&short_of);
        }
        bool seen = hr_host_mem_fail_at(0) >= nth;
        ck_assert(!seen || short_of.bad);
        wire_out_deinit(&short_of);
        const wire_message m = {
            .kind = kinds[_i].kind, .bytes = (uint32_t)out.bytes, .body = out.data, .fd = -1};
        int64_t live = hr_host_mem_live();
        (void)hr_host_mem_fail_at(nth);
        (void)kinds[_i].read(&m, &again);
        (void)hr_host_mem_fail_at(0);
        wire_out_deinit(&again);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    wire_out_deinit(&out);
}
END_TEST

// A row of a report is larger here than on the way: what is too long for any report takes nothing.
START_TEST(a_report_beyond_every_length_takes_no_memory)
{
    enum { REPORT = 3, BYTES = 17 << 20 };
    hr_report r;
    wire_message m = {.kind = MESSAGE_REPORT, .bytes = BYTES, .fd = -1};
    uint8_t *body = calloc(1, BYTES);
    wire_out small = written(REPORT);
    ck_assert_int_eq(kinds[REPORT].kind, MESSAGE_REPORT);
    memcpy(body, small.data, small.bytes);
    m.body = body;
    (void)hr_host_mem_fail_at(1);
    ck_assert(!get_report(&m, &r));
    ck_assert_uint_eq(hr_host_mem_fail_at(0), 0);
    wire_out_deinit(&small);
    free(body);
}
END_TEST

// ---- records of the ring --------------------------------------------------------------------------------------

START_TEST(a_point_of_a_rank_is_one_of_its_points)
{
    hr_event e = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_RANK};
    const hr_event_rank good = {.rank = 3,
                                .full = 8,
                                .point = 1,
                                .points = 4,
                                .break_even = 5.5,
                                .error = 0.25,
                                .zeros = (double)NAN};
    hr_event_rank bad[8];
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        bad[k] = good;
    }
    bad[0].point = 4;
    bad[1].points = HR_RANK_POINTS + 1;
    bad[2].rank = 0;
    bad[3].rank = 9;
    bad[4].break_even = (double)INFINITY;
    bad[5].break_even = (double)NAN;
    bad[6].error = (double)INFINITY;
    bad[7].zeros = 1.5;
    e.u.rank = good;
    ck_assert(event_is_valid(&e));
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        e.u.rank = bad[k];
        ck_assert_msg(!event_is_valid(&e), "%zu", k);
    }
}
END_TEST

START_TEST(a_teacher_answers_no_more_samples_than_there_are)
{
    hr_event e = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_ANSWERS, .u.answers = {7, 7, 0, 0}};
    ck_assert(event_is_valid(&e));
    e.u.answers.answered = 8;
    ck_assert(!event_is_valid(&e));
}
END_TEST

START_TEST(a_record_beyond_its_tables_is_none)
{
    const hr_event good = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_ALLOC};
    ck_assert(event_is_valid(&good));
    hr_event e = good;
    e.version = HR_EVENT_VERSION + 1;
    ck_assert(!event_is_valid(&e));
    e = good;
    e.category = HR_CATEGORY_COUNT; // of a recorded step
    e.phase = HR_PHASE_COUNT;
    ck_assert(event_is_valid(&e));
    e.category++;
    ck_assert(!event_is_valid(&e));
    e = good;
    e.phase = HR_PHASE_COUNT + 1;
    ck_assert(!event_is_valid(&e));
    for (uint32_t kind = 0; kind < 256; kind++) {
        e = good;
        e.kind = (uint8_t)kind;
        ck_assert_int_eq(event_is_valid(&e), kind < HR_EVENT_COUNT && kind != HR_EVENT_RANK);
        memset(&e.u, 'x', sizeof e.u); // no text in it ends
        bool has_text = (kind >= HR_EVENT_EPOCH && kind <= HR_EVENT_SAVED) || kind == HR_EVENT_BUILD ||
                        (kind >= HR_EVENT_HEALTH && kind <= HR_EVENT_RANK);
        ck_assert_int_eq(event_is_valid(&e), kind < HR_EVENT_COUNT && !has_text);
    }
    e = good;
    e.kind = HR_EVENT_STATE;
    e.u.note.count = HR_ENGINE_STATE_COUNT;
    ck_assert(!event_is_valid(&e));
    e.kind = HR_EVENT_KNOB;
    e.u.note.count = HR_KNOB_COUNT;
    ck_assert(!event_is_valid(&e));
}
END_TEST

// Workers, traces and rings of an older build hold these numbers.
START_TEST(numbers_that_are_sent_stay_what_they_were)
{
    static const hr_command_kind commands[] = {
        HR_COMMAND_RUN,  HR_COMMAND_PAUSE, HR_COMMAND_KNOB,  HR_COMMAND_SAVE,     HR_COMMAND_STOP,
        HR_COMMAND_KEEP, HR_COMMAND_QUIT,  HR_COMMAND_RANKS, HR_COMMAND_EVALUATE, HR_COMMAND_GUEST};
    static const char *const events[] = {"none",   "alloc",    "free",  "grow",  "shrink", "oom",   "build",
                                         "step",   "eval",     "epoch", "state", "knob",   "saved", "scale",
                                         "health", "pipeline", "tune",  "log",   "rank"};
    for (size_t k = 0; k < sizeof commands / sizeof *commands; k++) {
        ck_assert_uint_eq(commands[k], k);
    }
    for (size_t k = 0; k < sizeof events / sizeof *events; k++) {
        ck_assert_str_eq(hr_event_name((hr_event_kind)k), events[k]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("messages");
    TCase *tests = tcase_create("messages");
    tcase_add_test(tests, regions_neither_overlap_nor_come_twice);
    tcase_add_test(tests, an_amount_that_is_none_is_not_known);
    tcase_add_loop_test(tests, a_message_comes_out_as_it_went_in, 0, KINDS);
    tcase_add_loop_test(tests, a_message_that_was_cut_or_has_something_behind_it_is_refused, 0, KINDS);
    tcase_add_loop_test(tests, whatever_is_changed_what_is_taken_is_valid, 0, KINDS);
    tcase_add_loop_test(tests, short_memory_takes_nothing, 0, KINDS);
    tcase_add_test(tests, a_report_beyond_every_length_takes_no_memory);
    tcase_add_test(tests, a_teacher_answers_no_more_samples_than_there_are);
    tcase_add_test(tests, a_record_beyond_its_tables_is_none);
    tcase_add_test(tests, a_point_of_a_rank_is_one_of_its_points);
    tcase_add_test(tests, numbers_that_are_sent_stay_what_they_were);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
