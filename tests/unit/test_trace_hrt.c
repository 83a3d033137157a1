// SPDX-License-Identifier: Apache-2.0
// Our binary trace: every event comes back as it was, a run's file says what its CSV says, and no damage goes unseen.
#include "base/file.h"
#include "formats/csv.h"
#include "formats/hrt.h"
#include "formats/hrt_code.h"
#include "unit/trace_checks.h"

enum { EVENTS = 3000, FILE_MAX = 1 << 24 };

static char folder[64], hrt_path[96], csv_path[96];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/headroom-hrt-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(hrt_path, sizeof hrt_path, "%s/t.hrt", folder);
    snprintf(csv_path, sizeof csv_path, "%s/t.csv", folder);
}

static void remove_folder(void)
{
    (void)unlink(hrt_path);
    (void)unlink(csv_path);
    ck_assert_int_eq(rmdir(folder), 0); // nothing else was left behind
}

// ---- writing --------------------------------------------------------------------------------------------------

static const char *const names[] = {"conv1/weights",      "a,\"b\"",     "", NULL,
                                    "conv1/weights:grad", "two\r\nlines"};
enum { NAMES = sizeof names / sizeof *names };

// From event 1000 on the names are those of another program.
static const char *name_of(const hr_event *event)
{
    return names[(event->u.memory.tensor + (event->instr >= 1000)) % NAMES];
}

static void describe(void *context, const hr_event *event, event_context *out)
{
    (void)context;
    out->tensor = name_of(event);
}

static const event_source source = {.describe = describe, .device_count = 2};

static hr_status write_events(const trace_writer *row, const char *path, const hr_event *events,
                              uint32_t count)
{
    void *w;
    hr_status status = row->open(path, &source, &w, NULL);
    if (status != HR_OK) {
        return status;
    }
    for (uint32_t k = 0; k < count; k++) {
        row->sink(w, &events[k]);
    }
    return row->close(w, NULL, false, NULL);
}

// ---- events that are drawn ------------------------------------------------------------------------------------

static hr_event any_event(uint64_t *state, uint32_t k)
{
    hr_event e = {
        .version = HR_EVENT_VERSION, .kind = (uint8_t)(1 + below(state, HR_EVENT_COUNT + 2)), .instr = k};
    e.category = (uint8_t)draw(state);
    e.phase = (uint8_t)below(state, 4);
    e.device = (uint8_t)draw(state);
    e.reserved = below(state, 50) == 0 ? (uint16_t)draw(state) : 0;
    e.step = (uint32_t)(draw(state) >> below(state, 64));
    e.seq = below(state, 9) == 0 ? draw(state) : k;
    e.time_ns = draw(state) >> below(state, 64);
    if (trace_is_memory(&e)) {
        hr_event_memory *m = &e.u.memory;
        uint64_t *numbers[] = {&m->address,      &m->requested_bytes, &m->allocated_bytes,
                               &m->in_use_bytes, &m->pool_bytes,      &m->largest_free_bytes};
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
            *numbers[n] = draw(state) >> below(state, 64);
        }
        m->tensor = below(state, 5) == 0 ? HR_NO_ID : (uint32_t)below(state, 40);
        m->stream = (uint32_t)(draw(state) >> below(state, 64));
    } else {
        const size_t length = (size_t)below(state, sizeof e.u + 1);
        for (size_t n = 0; n < length; n++) {
            ((uint8_t *)&e.u)[n] = (uint8_t)draw(state);
        }
    }
    return e;
}

typedef struct expected {
    const hr_event *events;
    uint32_t count, at;
} expected;

static hr_status must_be_next(void *context, const hr_event *event, const char *tensor, hr_err *err)
{
    (void)err;
    expected *x = context;
    MUST(x->at < x->count && memcmp(event, &x->events[x->at], sizeof *event) == 0);
    const bool named = trace_is_memory(event) && event->u.memory.tensor != HR_NO_ID;
    const char *name = named ? name_of(event) : NULL;
    MUST(name == NULL ? tensor == NULL : tensor != NULL && strcmp(name, tensor) == 0);
    x->at++;
    return HR_OK;
}

START_TEST(every_event_comes_back_as_it_was)
{
    static hr_event events[EVENTS];
    uint64_t state = (uint64_t)_i;
    const uint32_t count = _i == 0 ? 0 : (uint32_t)below(&state, EVENTS);
    for (uint32_t k = 0; k < count; k++) {
        events[k] = any_event(&state, k);
    }
    ck_assert_int_eq(write_events(&trace_writer_hrt, hrt_path, events, count), HR_OK);
    expected x = {events, count, 0};
    input in;
    hr_err err = {0};
    ck_assert_int_eq(input_open(&in, hrt_path, NULL), HR_OK);
    ck_assert_msg(hrt_read_events(&in, must_be_next, &x, &err) == HR_OK, "%s", err.sentence);
    ck_assert_uint_eq(x.at, count);
    input_close(&in);
}
END_TEST

// ---- a run ----------------------------------------------------------------------------------------------------

// Like an allocator's: counters follow, addresses are those of slots.
static uint32_t run_events(hr_event *events, uint32_t count, uint64_t seed)
{
    enum { SLOTS = 50 };
    bool living[SLOTS] = {false};
    uint64_t in_use = 0, pool = 0, time = 5000;
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t slot = (uint32_t)below(&seed, SLOTS);
        hr_event e = {.version = HR_EVENT_VERSION,
                      .instr = k,
                      .seq = k,
                      .step = k / 100,
                      .time_ns = time += below(&seed, 900)};
        hr_event_memory m = {
            .address = 4096 * (slot + UINT64_C(1)), .requested_bytes = 1000 + slot, .allocated_bytes = 1280};
        e.kind = k % 100 == 99  ? HR_EVENT_STEP
                 : k == 7       ? HR_EVENT_BUILD
                 : k == 9       ? HR_EVENT_LOG
                 : k == 500     ? HR_EVENT_OOM
                 : k == 0       ? HR_EVENT_GROW
                 : living[slot] ? HR_EVENT_FREE
                                : HR_EVENT_ALLOC;
        e.device = (uint8_t)(k / 100 % 2);
        living[slot] = e.kind == HR_EVENT_ALLOC ? true : e.kind == HR_EVENT_FREE ? false : living[slot];
        in_use += e.kind == HR_EVENT_ALLOC ? 1280u : 0u;
        in_use -= e.kind == HR_EVENT_FREE ? 1280u : 0u;
        pool += e.kind == HR_EVENT_GROW ? 1280u : 0u;
        m.in_use_bytes = in_use;
        m.pool_bytes = pool;
        m.tensor = e.kind == HR_EVENT_GROW ? HR_NO_ID : slot;
        m.stream = slot % 3;
        if (trace_is_memory(&e)) {
            e.u.memory = m;
        }
        events[k] = e;
    }
    return count;
}

static bool names_are_equal(const trace *a, const trace *b, uint32_t k)
{
    const char *x = name_at(a, k), *y = name_at(b, k);
    return x == NULL || y == NULL ? x == y : strcmp(x, y) == 0;
}

START_TEST(a_run_is_the_same_trace_as_its_csv)
{
    static hr_event events[EVENTS];
    trace a, b;
    hr_err err = {0};
    const uint32_t count = run_events(events, EVENTS, (uint64_t)_i);
    for (uint32_t k = 0; k < count; k++) {
        events[k].device = 0; // the columns of our CSV do not say which
    }
    ck_assert_int_eq(write_events(&trace_writer_hrt, hrt_path, events, count), HR_OK);
    ck_assert_int_eq(write_events(&trace_writer_csv, csv_path, events, count), HR_OK);
    ck_assert_msg(trace_read(hrt_path, &a, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(trace_read(csv_path, &b, &err) == HR_OK, "%s", err.sentence);
    ck_assert_str_eq(a.format, "hrt");
    ck_assert_str_eq(b.format, "csv");
    ck_assert_int_eq(trace_check(&a, NULL), HR_OK);
    ck_assert_uint_eq(a.events.count, b.events.count);
    ck_assert_uint_eq(a.events.count, count - 2); // BUILD is a row that nobody plays, LOG is none
    for (uint32_t k = 0; k < a.events.count; k++) {
        trace_event x = a.events.data[k], y = b.events.data[k];
        x.name = y.name = 0;
        MUST(memcmp(&x, &y, sizeof x) == 0 && names_are_equal(&a, &b, k));
    }
    ck_assert(a.rows == b.rows && a.lost_frees == b.lost_frees && a.block_count == b.block_count);
    trace_deinit(&a);
    trace_deinit(&b);
}
END_TEST

static char *read_file(const char *path, size_t *size)
{
    char *data;
    ck_assert_int_eq(file_read(path, FILE_MAX, &data, size, NULL), HR_OK);
    return data;
}

START_TEST(a_run_takes_few_bytes)
{
    static hr_event events[EVENTS];
    size_t hrt, csv;
    const uint32_t count = run_events(events, EVENTS, 1);
    ck_assert_int_eq(write_events(&trace_writer_hrt, hrt_path, events, count), HR_OK);
    ck_assert_int_eq(write_events(&trace_writer_csv, csv_path, events, count), HR_OK);
    hr_free(read_file(hrt_path, &hrt));
    hr_free(read_file(csv_path, &csv));
    ck_assert_uint_lt(hrt, csv / 5);
    ck_assert_uint_lt(hrt, EVENTS * 11);
}
END_TEST

// ---- damage ---------------------------------------------------------------------------------------------------

static char *small_file(size_t *size)
{
    static hr_event events[12];
    (void)run_events(events, 12, 4);
    events[11].kind = HR_EVENT_STEP;
    ck_assert_int_eq(write_events(&trace_writer_hrt, hrt_path, events, 12), HR_OK);
    return read_file(hrt_path, size);
}

START_TEST(every_cut_and_every_turned_bit_is_seen)
{
    size_t size;
    char *data = small_file(&size);
    ck_assert_int_eq(read_anything(&trace_format_hrt, data, size), HR_OK);
    for (size_t cut = 0; cut < size; cut++) {
        MUST(read_anything(&trace_format_hrt, data, cut) == HR_READ);
    }
    for (size_t bit = 0; bit < 8 * size; bit++) {
        data[bit / 8] = (char)(data[bit / 8] ^ (1 << bit % 8));
        MUST(read_anything(&trace_format_hrt, data, size) == HR_READ);
        data[bit / 8] = (char)(data[bit / 8] ^ (1 << bit % 8));
    }
    char *longer = malloc(size + 1);
    memcpy(longer, data, size);
    longer[size] = '\n';
    ck_assert_int_eq(read_anything(&trace_format_hrt, longer, size + 1), HR_READ);
    free(longer);
    hr_free(data);
}
END_TEST

// With checksums that fit: what is read may be anything then, within memory. The file has one frame.
START_TEST(a_forged_frame_is_an_error_or_another_trace)
{
    size_t size;
    uint8_t *data = (uint8_t *)small_file(&size), *frame = data + HRT_HEAD_BYTES;
    const uint32_t bytes = hrt_get_u32(frame);
    ck_assert_uint_eq(size, HRT_HEAD_BYTES + 2 * HRT_FRAME_HEAD_BYTES + bytes);
    uint32_t read = 0;
    for (size_t bit = 8 * 4; bit < 8 * (size_t)(HRT_FRAME_HEAD_BYTES + bytes); bit++) {
        frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
        const uint32_t crc = hrt_crc(hrt_crc(0, frame, 8), frame + HRT_FRAME_HEAD_BYTES, bytes);
        hrt_put_u32(frame + 8, crc);
        read += read_anything(&trace_format_hrt, (char *)data, size) == HR_OK;
        frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    ck_assert_uint_gt(read, bytes); // most numbers are as good as others
    hr_free(data);
}
END_TEST

START_TEST(mistakes_are_named)
{
    size_t size;
    char *data = small_file(&size);
    const struct {
        size_t at;
        uint8_t value;
        const char *sentence;
    } cases[] = {
        {4, '\n', "file: needed the first bytes of a trace, was changed: by a transfer as text?"},
        {9, 1, "file: needed a head with its checksum in the frame at byte 0"},
        {HRT_HEAD_BYTES + 3, 1, "file: needed at most 4 MiB in the frame at byte 16"},
        {HRT_HEAD_BYTES + 20, 0xff, "file: needed bytes that fit their checksum in the frame at byte 16"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char before = data[cases[k].at];
        trace t;
        hr_err err = {0};
        data[cases[k].at] = (char)cases[k].value;
        ck_assert_int_eq(read_bytes(data, size, &t, &err), HR_READ);
        ck_assert_str_eq(err.sentence, cases[k].sentence);
        data[cases[k].at] = before;
    }
    trace t;
    hr_err err = {0};
    data[8] = 2;
    hrt_put_u32((uint8_t *)data + 12, hrt_crc(0, data, 12));
    ck_assert_int_eq(read_bytes(data, size, &t, &err), HR_READ);
    ck_assert_str_eq(err.sentence, "file: needed a trace of version 1, is of version 2");
    hr_free(data);
}
END_TEST

START_TEST(the_checksum_is_that_of_ieee_802_3)
{
    ck_assert_uint_eq(hrt_crc(0, "123456789", 9), 0xcbf43926);
    ck_assert_uint_eq(hrt_crc(hrt_crc(0, "1234", 4), "56789", 5), 0xcbf43926);
}
END_TEST

START_TEST(short_memory_and_failing_files_are_errors)
{
    static hr_event events[EVENTS];
    size_t size;
    char *data = small_file(&size);
    survives_short_memory(data, size);
    survives_failing_files(data, size);
    hr_free(data);
    const uint32_t count = run_events(events, EVENTS, 1);
    const int64_t live = hr_host_mem_live();
    for (int memory = 0; memory < 2; memory++) {
        bool failed = true;
        for (uint64_t nth = 1; failed; nth++) {
            (void)unlink(hrt_path);
            (void)(memory ? hr_host_mem_fail_at(nth) : file_fail_at(nth));
            hr_status status = write_events(&trace_writer_hrt, hrt_path, events, count);
            failed = (memory ? hr_host_mem_fail_at(0) : file_fail_at(0)) >= nth;
            ck_assert_int_eq(status, !failed ? HR_OK : memory ? HR_NOMEM : HR_WRITE);
            ck_assert_int_eq(access(hrt_path, F_OK) == 0, !failed);
            ck_assert_int_eq(hr_host_mem_live(), live);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace_hrt");
    TCase *files = tcase_create("files");
    tcase_add_checked_fixture(files, make_folder, remove_folder);
    tcase_add_loop_test(files, every_event_comes_back_as_it_was, 0, 20);
    tcase_add_loop_test(files, a_run_is_the_same_trace_as_its_csv, 0, 5);
    tcase_add_test(files, a_run_takes_few_bytes);
    tcase_add_test(files, every_cut_and_every_turned_bit_is_seen);
    tcase_add_test(files, a_forged_frame_is_an_error_or_another_trace);
    tcase_add_test(files, mistakes_are_named);
    tcase_add_test(files, the_checksum_is_that_of_ieee_802_3);
    tcase_add_test(files, short_memory_and_failing_files_are_errors);
    suite_add_tcase(suite, files);
    return run_suite(suite);
}
