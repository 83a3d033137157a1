// SPDX-License-Identifier: Apache-2.0
// Writers of traces: every kind of file is there whole or not at all, takes the place of its own kind and of nothing
// else, and says what the events said.
#include <check.h>
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/units.h"

#include "base/file.h"
#include "base/host_mem.h"
#include "formats/chrome.h"
#include "formats/exporter.h"
#include "formats/formats.h"
#include "formats/lifetimes_write.h"
#include "formats/memory_dump_export.h"
#include "formats/memory_profile.h"
#include "memory/allocator.h"
#include "memory/heap_snapshot.h"

enum { POINTS_MAX = 400, FEW = 40, SOME = 800, MANY = 3000, SLOTS = 64 };

static char folder[64];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/headroom-export-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

// How many files stand in the folder.
static unsigned files(void)
{
    unsigned count = 0;
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        count += e->d_name[0] == '.' && (e->d_name[1] == '\0' || e->d_name[1] == '.') ? 0 : 1;
    }
    closedir(dir);
    return count;
}

static void remove_folder(void)
{
    char path[512];
    DIR *dir = opendir(folder);
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        (void)unlink(path);
    }
    closedir(dir);
    ck_assert_int_eq(rmdir(folder), 0);
}

// "NAME:folder/file".
static char *file_of(const trace_writer *w, char text[160])
{
    snprintf(text, 160, "%s:%s/file", w->about.name, folder);
    return text;
}

static char *read_file(size_t *bytes)
{
    char path[128], *data;
    snprintf(path, sizeof path, "%s/file", folder);
    ck_assert_int_eq(file_read(path, UINT64_C(1) << 28, &data, bytes, NULL), HR_OK);
    return data;
}

// ---- somebody who tells events --------------------------------------------------------------------------------

typedef struct stage {
    trace_bus bus;
    backing numbers;
    allocator *heap;
    uint64_t address[SLOTS], bytes[SLOTS];
    uint64_t seed, requested_bytes, peak_requested_bytes;
} stage;

static const char *const names[] = {"conv1/weights", "a, \"b\"\\", "tab\there", "bad \xff utf \xe2\x82",
                                    "gr\xc3\xbc\xc3\x9f"};

static void describe(void *context, const hr_event *event, event_context *out)
{
    (void)context;
    const uint32_t tensor = event->u.memory.tensor;
    *out = (event_context){.tensor = names[tensor % 5],
                           .op = tensor % 2 == 0 ? "conv1/conv2d" : NULL,
                           .dtype = "float32",
                           .shape = "[2,3]"};
}

static const char *counters(void *context, uint8_t device, heap_counters *out)
{
    const stage *s = context;
    *out = allocator_get_stats(s->heap);
    return device == 0 ? "bfc" : NULL;
}

static hr_status snapshot(void *context, uint8_t device, heap_snapshot *out, hr_err *err)
{
    const stage *s = context;
    ck_assert_uint_eq(device, 0);
    return heap_snapshot_of(s->heap, out, err);
}

static event_source event_source_of(stage *s)
{
    return (event_source){
        .describe = describe, .counters = counters, .snapshot = snapshot, .context = s, .device_count = 1};
}

static void stage_open(stage *s)
{
    *s = (stage){.seed = 7};
    allocator_config config = allocator_config_of("bfc", 8 * HR_MIB);
    config.growth = true;
    trace_bus_init(&s->bus);
    s->bus.simulated = true;
    ck_assert_int_eq(backing_numbers_open(8 * HR_MIB, 256, &s->numbers, NULL), HR_OK);
    ck_assert_int_eq(allocator_create(&config, &s->numbers, &s->bus, &s->heap, NULL), HR_OK);
}

static void stage_close(stage *s)
{
    allocator_destroy(s->heap);
    backing_close(&s->numbers);
}

static uint64_t draw(stage *s, uint64_t below)
{
    s->seed = s->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (s->seed >> 33) % below;
}

static void count_requested(stage *s, uint64_t more_bytes, uint64_t less_bytes)
{
    s->requested_bytes += more_bytes;
    s->requested_bytes -= less_bytes;
    if (s->requested_bytes > s->peak_requested_bytes) {
        s->peak_requested_bytes = s->requested_bytes;
    }
}

// Requests and releases in a muddle, steps now and then; some requests are refused.
static void play(stage *s, unsigned events)
{
    for (unsigned n = 0; n < events; n++) {
        const unsigned k = (unsigned)draw(s, SLOTS);
        s->bus.now_ns += 1 + draw(s, 5000);
        s->bus.instr = n;
        s->bus.phase = (uint8_t)(HR_PHASE_FORWARD + n / 16 % 3);
        if (s->address[k] != 0) {
            allocator_free(s->heap, s->address[k]);
            count_requested(s, 0, s->bytes[k]);
            s->address[k] = 0;
        } else {
            s->bytes[k] = 1 + draw(s, 400000);
            if (allocator_alloc(s->heap, s->bytes[k], (uint32_t)(n % 9), &s->address[k], NULL) == HR_OK) {
                count_requested(s, s->bytes[k], 0);
            }
        }
        if (n % 16 == 15) {
            hr_event step = {.kind = HR_EVENT_STEP,
                             .u.step = {.duration_ns = n % 32 == 15 ? 900 : 0, // the others do not say
                                        .samples = 4,
                                        .loss = n % 32 == 15 ? 1.5 : 0.0 / 0.0}};
            s->bus.step++;
            trace_emit(&s->bus, &step);
        }
    }
}

// The whole life of a file; `give_up` before the end.
static hr_status write_file(const trace_writer *w, unsigned events, bool give_up, hr_err *err)
{
    char file[160];
    stage s;
    exporter *e = NULL;
    stage_open(&s);
    const event_source source = event_source_of(&s);
    hr_status status = exporter_open(file_of(w, file), &source, &e, err);
    if (status == HR_OK) {
        ck_assert(trace_attach(&s.bus, exporter_sink, e));
        play(&s, events);
        if (give_up) {
            exporter_abandon(e);
        } else {
            status = exporter_close(e, err);
        }
        trace_detach(&s.bus, exporter_sink, e);
    }
    stage_close(&s);
    return status;
}

static unsigned writer_count(void)
{
    unsigned count = 0;
    while (trace_writers[count] != NULL) {
        count++;
    }
    return count;
}

// ---- every writer ---------------------------------------------------------------------------------------------

START_TEST(a_failed_file_operation_leaves_no_file)
{
    for (unsigned k = 0; k < writer_count(); k++) {
        bool failed = true;
        for (uint64_t nth = 1; failed; nth++) {
            hr_err err = {0};
            ck_assert_uint_lt(nth, POINTS_MAX);
            (void)file_fail_at(nth);
            hr_status status = write_file(trace_writers[k], SOME, false, &err);
            failed = file_fail_at(0) >= nth;
            ck_assert_int_eq(status, failed ? HR_WRITE : HR_OK);
            ck_assert_msg(!failed || strlen(err.sentence) > 10, "%s: %s", trace_writers[k]->about.name,
                          err.sentence);
            ck_assert_uint_eq(files(), failed ? 0 : 1);
        }
        remove_folder();
        make_folder();
    }
}
END_TEST

// Host memory is short at the n-th request that is made while the file is open, the allocator's own among them.
START_TEST(short_host_memory_leaves_no_file)
{
    for (unsigned k = 0; k < writer_count(); k++) {
        const int64_t live = hr_host_mem_live();
        char file[160];
        bool failed = true;
        for (uint64_t nth = 1; failed; nth++) {
            stage s;
            exporter *e = NULL;
            stage_open(&s);
            const event_source source = event_source_of(&s);
            (void)hr_host_mem_fail_at(nth);
            hr_status status = exporter_open(file_of(trace_writers[k], file), &source, &e, NULL);
            if (status == HR_OK) {
                (void)trace_attach(&s.bus, exporter_sink, e);
                play(&s, FEW);
                trace_detach(&s.bus, exporter_sink, e);
                status = exporter_close(e, NULL);
            }
            failed = hr_host_mem_fail_at(0) >= nth;
            stage_close(&s);
            ck_assert_uint_lt(nth, POINTS_MAX);
            ck_assert_int_eq(hr_host_mem_live(), live);
            ck_assert_int_eq(files() != 0, status == HR_OK);
            ck_assert(failed || status == HR_OK);
            remove_folder();
            make_folder();
        }
    }
}
END_TEST

START_TEST(what_is_given_up_leaves_no_file)
{
    const int64_t live = hr_host_mem_live();
    for (unsigned k = 0; k < writer_count(); k++) {
        ck_assert_int_eq(write_file(trace_writers[k], FEW, true, NULL), HR_OK);
        ck_assert_uint_eq(files(), 0);
    }
    ck_assert_int_eq(hr_host_mem_live(), live);
    exporter_abandon(NULL);
    ck_assert_int_eq(exporter_close(NULL, NULL), HR_OK);
}
END_TEST

static void put_file(const char *data, size_t bytes)
{
    char path[128];
    snprintf(path, sizeof path, "%s/file", folder);
    FILE *f = fopen(path, "w");
    ck_assert_uint_eq(fwrite(data, 1, bytes, f), bytes);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(a_file_takes_the_place_of_its_own_kind_and_of_nothing_else)
{
    for (unsigned old = 0; old < writer_count(); old++) {
        size_t before, after;
        ck_assert_int_eq(write_file(trace_writers[old], FEW, false, NULL), HR_OK);
        char *kept = read_file(&before);
        for (unsigned k = 0; k < writer_count(); k++) {
            hr_err err = {0};
            put_file(kept, before);
            hr_status status = write_file(trace_writers[k], SOME, false, &err);
            char *found = read_file(&after);
            const bool same = before == after && memcmp(kept, found, after) == 0;
            ck_assert_msg(status == (old == k ? HR_OK : HR_WRITE), "%s over %s", trace_writers[k]->about.name,
                          trace_writers[old]->about.name);
            ck_assert_int_eq(same, old != k);
            ck_assert(old == k || strstr(err.sentence, "it stays as it is") != NULL);
            hr_free(found);
        }
        hr_free(kept);
        remove_folder();
        make_folder();
    }
}
END_TEST

START_TEST(an_empty_trace_is_a_file_that_the_next_one_may_replace)
{
    for (unsigned k = 0; k < writer_count(); k++) {
        ck_assert_int_eq(write_file(trace_writers[k], 0, false, NULL), HR_OK);
        ck_assert_int_eq(write_file(trace_writers[k], FEW, false, NULL), HR_OK);
        remove_folder();
        make_folder();
    }
}
END_TEST

START_TEST(equal_events_make_equal_files)
{
    for (unsigned k = 0; k < writer_count(); k++) {
        size_t first, second;
        ck_assert_int_eq(write_file(trace_writers[k], SOME, false, NULL), HR_OK);
        char *one = read_file(&first);
        ck_assert_int_eq(write_file(trace_writers[k], SOME, false, NULL), HR_OK);
        char *two = read_file(&second);
        ck_assert_uint_eq(first, second);
        ck_assert_mem_eq(one, two, first);
        hr_free(one);
        hr_free(two);
        remove_folder();
        make_folder();
    }
}
END_TEST

// ---- which writer ---------------------------------------------------------------------------------------------

START_TEST(the_suffix_or_the_name_says_which)
{
    static const struct {
        const char *file, *name, *path;
    } cases[] = {
        {"a.csv", "csv", "a.csv"},
        {"dir/a.json", "chrome", "dir/a.json"},
        {"a.hrt", "hrt", "a.hrt"},
        {"a.pb", "memory_dump", "a.pb"},
        {"lifetimes:out.csv", "lifetimes", "out.csv"},
        {"memory_profile:out.csv", "memory_profile", "out.csv"},
        {"csv:anything", "csv", "anything"},
        {"lifetimes:x:y.json", "lifetimes", "x:y.json"},
        {"no_such_format:x.csv", "csv", "no_such_format:x.csv"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const trace_writer *row;
        const char *path;
        ck_assert_int_eq(trace_writer_find(cases[k].file, &row, &path, NULL), HR_OK);
        ck_assert_str_eq(row->about.name, cases[k].name);
        ck_assert_str_eq(path, cases[k].path);
    }
    static const char *const wrong[] = {"a", "a.txt", ".csv", "lifetimes:", "", "csv"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        const trace_writer *row;
        const char *path;
        hr_err err = {0};
        ck_assert_int_eq(trace_writer_find(wrong[k], &row, &path, &err), HR_USAGE);
        ck_assert_ptr_nonnull(strstr(err.sentence, "needed a file ending in .csv, "));
        ck_assert_ptr_nonnull(strstr(err.sentence, "NAME:FILE with a name of csv, "));
    }
}
END_TEST

START_TEST(the_public_rows_are_the_writers)
{
    for (unsigned k = 0; k < writer_count(); k++) {
        const hr_trace_format *f = hr_trace_format_row(k);
        ck_assert_ptr_nonnull(f);
        ck_assert_str_eq(f->name, trace_writers[k]->about.name);
        ck_assert_uint_gt(strlen(f->line), 0);
        for (unsigned n = 0; n < k; n++) {
            ck_assert_str_ne(f->name, trace_writers[n]->about.name);
            ck_assert(f->suffix[0] == '\0' || strcmp(f->suffix, trace_writers[n]->about.suffix) != 0);
        }
    }
    ck_assert_ptr_null(hr_trace_format_row(writer_count()));
}
END_TEST

// ---- Chrome ---------------------------------------------------------------------------------------------------

static bool is_kind(const json_t *event, const char *ph, const char *name)
{
    return strcmp(json_string_value(json_object_get(event, "ph")), ph) == 0 &&
           (name == NULL || strcmp(json_string_value(json_object_get(event, "name")), name) == 0);
}

typedef struct chrome_sums {
    unsigned spans, steps, refused;
    int open_spans, open_phases;
    json_int_t in_use, pool, requested, peak_requested;
    bool any_loss;
    double step_end; // of the last one, in microseconds
} chrome_sums;

// A step lasts as long as it says, or from the end of the one before.
static void add_step(chrome_sums *sums, const json_t *e)
{
    const double from = json_real_value(json_object_get(e, "ts"));
    const double length = json_real_value(json_object_get(e, "dur"));
    const bool told = json_object_get(json_object_get(e, "args"), "loss") != NULL;
    ck_assert_double_eq_tol(told ? length : from, told ? 0.9 : sums->step_end, 1e-6);
    sums->step_end = from + length;
    sums->any_loss = sums->any_loss || told;
    sums->steps++;
}

static void add_counter(chrome_sums *sums, const json_t *e)
{
    const json_int_t bytes = json_integer_value(json_object_get(json_object_get(e, "args"), "bytes"));
    if (is_kind(e, "C", "in_use")) {
        sums->in_use = bytes;
    } else if (is_kind(e, "C", "pool")) {
        sums->pool = bytes;
    } else {
        ck_assert(is_kind(e, "C", "requested"));
        sums->requested = bytes;
        sums->peak_requested = bytes > sums->peak_requested ? bytes : sums->peak_requested;
    }
}

static void add_chrome(chrome_sums *sums, const json_t *e)
{
    ck_assert_int_eq(json_integer_value(json_object_get(e, "pid")), 0);
    ck_assert(json_is_real(json_object_get(e, "ts")));
    ck_assert(json_is_object(json_object_get(e, "args")));
    sums->spans += is_kind(e, "b", NULL) ? 1 : 0;
    sums->open_spans += is_kind(e, "b", NULL) ? 1 : is_kind(e, "e", NULL) ? -1 : 0;
    sums->open_phases += is_kind(e, "B", NULL) ? 1 : is_kind(e, "E", NULL) ? -1 : 0;
    ck_assert_int_ge(sums->open_spans, 0);
    ck_assert(sums->open_phases == 0 || sums->open_phases == 1);
    sums->refused += is_kind(e, "i", "out of memory") ? 1 : 0;
    if (is_kind(e, "X", NULL)) {
        add_step(sums, e);
    }
    if (is_kind(e, "C", NULL)) {
        add_counter(sums, e);
    }
}

START_TEST(chrome_json_is_json_and_adds_up)
{
    char file[160];
    stage s;
    exporter *e = NULL;
    size_t bytes;
    stage_open(&s);
    const event_source source = event_source_of(&s);
    ck_assert_int_eq(exporter_open(file_of(&trace_writer_chrome, file), &source, &e, NULL), HR_OK);
    ck_assert(trace_attach(&s.bus, exporter_sink, e));
    play(&s, MANY);
    const heap_counters c = allocator_get_stats(s.heap);
    ck_assert_int_eq(exporter_close(e, NULL), HR_OK);
    trace_detach(&s.bus, exporter_sink, e);
    char *data = read_file(&bytes);
    json_error_t error;
    json_t *root = json_loadb(data, bytes, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(root != NULL, "line %d: %s", error.line, error.text);
    const json_t *events = json_object_get(root, "traceEvents");
    chrome_sums sums = {0};
    size_t index;
    const json_t *one;
    json_array_foreach(events, index, one)
    {
        add_chrome(&sums, one);
    }
    ck_assert_uint_eq(sums.spans, c.allocations);
    ck_assert_int_gt(sums.open_spans, 0); // what still lives has not ended
    ck_assert_int_eq(sums.open_phases, 0);
    ck_assert_uint_eq(sums.steps, MANY / 16);
    ck_assert_uint_gt(sums.refused, 0);
    ck_assert(sums.any_loss);
    ck_assert_int_eq(sums.in_use, (json_int_t)c.in_use_bytes);
    ck_assert_int_eq(sums.pool, (json_int_t)c.pool_bytes);
    ck_assert_int_eq(sums.requested, (json_int_t)s.requested_bytes);
    ck_assert_int_eq(sums.peak_requested, (json_int_t)s.peak_requested_bytes);
    json_decref(root);
    hr_free(data);
    stage_close(&s);
}
END_TEST

START_TEST(names_that_are_no_text_are_still_json)
{
    size_t bytes;
    ck_assert_int_eq(write_file(&trace_writer_chrome, MANY, false, NULL), HR_OK);
    char *data = read_file(&bytes);
    ck_assert_ptr_nonnull(strstr(data, "\"name\":\"a, \\\"b\\\"\\\\\""));
    ck_assert_ptr_nonnull(strstr(data, "\"name\":\"tab\\u0009here\""));
    ck_assert_ptr_nonnull(strstr(data, "\"name\":\"bad \\ufffd utf \\ufffd\\ufffd\""));
    ck_assert_ptr_nonnull(strstr(data, "\"name\":\"gr\xc3\xbc\xc3\x9f\""));
    hr_free(data);
}
END_TEST

// ---- lifetimes ------------------------------------------------------------------------------------------------

// Plain and slow: what each allocation was, and when it ended.
typedef struct lifetime {
    unsigned long long lower, upper, size, address;
    bool ended;
} lifetime;

typedef struct notebook {
    lifetime *rows;
    unsigned count;
    unsigned long long events;
} notebook;

static void note(void *context, const hr_event *event)
{
    notebook *n = context;
    const hr_event_memory *m = &event->u.memory;
    if (event->kind == HR_EVENT_ALLOC) {
        n->rows[n->count++] = (lifetime){n->events++, 0, m->requested_bytes, m->address, false};
    } else if (event->kind == HR_EVENT_FREE) {
        for (unsigned k = 0; k < n->count; k++) {
            if (!n->rows[k].ended && n->rows[k].address == m->address) {
                n->rows[k].ended = true;
                n->rows[k].upper = n->events;
            }
        }
        n->events++;
    }
}

static unsigned long long highest_sum(const notebook *n)
{
    unsigned long long highest = 0;
    for (unsigned long long t = 0; t < n->events; t++) {
        unsigned long long sum = 0;
        for (unsigned k = 0; k < n->count; k++) {
            sum += n->rows[k].lower <= t && t < n->rows[k].upper ? n->rows[k].size : 0;
        }
        highest = sum > highest ? sum : highest;
    }
    return highest;
}

static void check_lifetimes(char *data, notebook *n)
{
    unsigned rows = 0;
    char *rest = NULL;
    ck_assert_str_eq(strtok_r(data, "\n", &rest), "lower,upper,size,id");
    for (char *line = strtok_r(NULL, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        unsigned id;
        lifetime found;
        ck_assert_int_eq(sscanf(line, "%llu,%llu,%llu,%u", &found.lower, &found.upper, &found.size, &id), 4);
        ck_assert_uint_lt(id, n->count);
        lifetime *wanted = &n->rows[id];
        wanted->upper = wanted->ended ? wanted->upper : n->events;
        ck_assert_msg(found.lower == wanted->lower && found.upper == wanted->upper &&
                          found.size == wanted->size,
                      "%s", line);
        rows++;
    }
    ck_assert_uint_eq(rows, n->count);
}

START_TEST(lifetimes_are_those_of_a_plain_notebook)
{
    char file[160];
    stage s;
    exporter *e = NULL;
    size_t bytes;
    notebook n = {.rows = calloc(MANY, sizeof(lifetime))};
    stage_open(&s);
    const event_source source = event_source_of(&s);
    ck_assert_int_eq(exporter_open(file_of(&trace_writer_lifetimes, file), &source, &e, NULL), HR_OK);
    ck_assert(trace_attach(&s.bus, exporter_sink, e) && trace_attach(&s.bus, note, &n));
    play(&s, MANY);
    ck_assert_int_eq(exporter_close(e, NULL), HR_OK);
    trace_detach(&s.bus, exporter_sink, e);
    trace_detach(&s.bus, note, &n);
    char *data = read_file(&bytes);
    check_lifetimes(data, &n);
    ck_assert_uint_eq(highest_sum(&n), s.peak_requested_bytes);
    hr_free(data);
    free(n.rows);
    stage_close(&s);
}
END_TEST

START_TEST(lifetimes_of_a_person_are_not_replaced)
{
    static const char mine[] = "id,lower,upper,size\n1,0,5,100\n";
    char file[160];
    stage s;
    exporter *e = NULL;
    size_t bytes;
    hr_err err;
    stage_open(&s);
    const event_source source = event_source_of(&s);
    FILE *f = fopen(strchr(file_of(&trace_writer_lifetimes, file), ':') + 1, "w");
    ck_assert(f != NULL && fputs(mine, f) >= 0 && fclose(f) == 0);
    ck_assert_int_eq(exporter_open(file, &source, &e, &err), HR_WRITE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "needed a lifetimes file of headroom or no file"));
    char *data = read_file(&bytes);
    ck_assert_str_eq(data, mine);
    hr_free(data);
    stage_close(&s);
}
END_TEST

// The first write that fails is known while events still come; memory_dump writes nothing before the end.
START_TEST(a_full_disk_is_known_before_the_end)
{
    char file[160];
    stage s;
    exporter *e = NULL;
    hr_err err = {0}, closing = {0};
    const trace_writer *row = trace_writers[_i];
    stage_open(&s);
    const event_source source = event_source_of(&s);
    ck_assert_int_eq(exporter_open(file_of(row, file), &source, &e, NULL), HR_OK);
    ck_assert(trace_attach(&s.bus, exporter_sink, e));
    ck_assert_int_eq(exporter_failure(e, &err), HR_OK);
    (void)file_fail_at(1);
    for (unsigned k = 0; k < 40 && exporter_failure(e, &err) == HR_OK; k++) {
        play(&s, MANY);
    }
    (void)file_fail_at(0);
    ck_assert_int_eq(exporter_failure(e, &err), row->failure == NULL ? HR_OK : HR_WRITE);
    ck_assert_int_eq(exporter_close(e, &closing), row->failure == NULL ? HR_OK : HR_WRITE);
    ck_assert_str_eq(closing.sentence, err.sentence);
    trace_detach(&s.bus, exporter_sink, e);
    stage_close(&s);
}
END_TEST

// ---- Memory Profile -------------------------------------------------------------------------------------------

START_TEST(a_memory_profile_row_has_the_fields_of_the_event)
{
    char file[160];
    stage s;
    exporter *e = NULL;
    size_t bytes;
    uint64_t a, b;
    stage_open(&s);
    const event_source source = event_source_of(&s);
    ck_assert_int_eq(exporter_open(file_of(&trace_writer_memory_profile, file), &source, &e, NULL), HR_OK);
    ck_assert(trace_attach(&s.bus, exporter_sink, e));
    s.bus.step = 3;
    s.bus.category = HR_CATEGORY_ACTIVATIONS;
    s.bus.now_ns = 11;
    ck_assert_int_eq(allocator_alloc(s.heap, 1000, 0, &a, NULL), HR_OK);
    s.bus.now_ns = 12;
    ck_assert_int_eq(allocator_alloc(s.heap, 5000, 1, &b, NULL), HR_OK);
    allocator_free(s.heap, a);
    ck_assert_int_eq(exporter_close(e, NULL), HR_OK);
    trace_detach(&s.bus, exporter_sink, e);
    char *data = read_file(&bytes), wanted[1024];
    const unsigned long long limit = 8 * HR_MIB, pool = 2 * HR_MIB, from = a;
    // 1024 B of two MiB are a hole before the block of 5120.
    const double pieces = 1024.0 / (double)(pool - 5120);
    snprintf(
        wanted, sizeof wanted,
        FORMATS_MEMORY_PROFILE_HEADER
        "11,MemoryAllocation,GPU_0_bfc,0,1024,%llu,0.000000,1024,1000,1024,%llu,conv1/conv2d,3,activations,"
        "float32,\"[2,3]\"\n"
        "12,MemoryAllocation,GPU_0_bfc,0,6144,%llu,0.000000,6144,5000,5120,%llu,,3,activations,float32,"
        "\"[2,3]\"\n"
        "12,MemoryDeallocation,GPU_0_bfc,0,5120,%llu,%.6f,6144,1000,1024,%llu,conv1/conv2d,3,activations,"
        "float32,\"[2,3]\"\n",
        limit - 1024, from, limit - 6144, from + 1024, limit - 5120, pieces, from);
    ck_assert_str_eq(data, wanted);
    hr_free(data);
    stage_close(&s);
}
END_TEST

// ---- heaps ----------------------------------------------------------------------------------------------------

START_TEST(a_memory_dump_shows_the_heap_of_the_first_refusal)
{
    char file[160], path[128];
    stage s;
    exporter *e = NULL;
    uint64_t a, b;
    trace t;
    stage_open(&s);
    const event_source source = event_source_of(&s);
    ck_assert_int_eq(exporter_open(file_of(&trace_writer_memory_dump, file), &source, &e, NULL), HR_OK);
    ck_assert(exporter_wants_heaps(e));
    ck_assert(trace_attach(&s.bus, exporter_sink, e));
    ck_assert_int_eq(allocator_alloc(s.heap, 3 * HR_MIB, 0, &a, NULL), HR_OK);
    ck_assert_int_eq(allocator_alloc(s.heap, 6 * HR_MIB, 1, &b, NULL), HR_OOM);
    allocator_free(s.heap, a);
    ck_assert_int_eq(allocator_alloc(s.heap, 9 * HR_MIB, 1, &b, NULL), HR_OOM); // not the first
    ck_assert_int_eq(exporter_close(e, NULL), HR_OK);
    trace_detach(&s.bus, exporter_sink, e);
    snprintf(path, sizeof path, "%s/file", folder);
    ck_assert_int_eq(trace_read(path, &t, NULL), HR_OK);
    ck_assert_ptr_nonnull(t.heaps[0]);
    ck_assert_uint_eq(t.heaps[0]->counters.requested_bytes, 3 * HR_MIB);
    ck_assert_str_eq(t.heaps[0]->source, "bfc");
    trace_deinit(&t);
    stage_close(&s);
}
END_TEST

START_TEST(a_dump_of_tensorflow_is_not_ours_to_replace)
{
    // allocator_name "GPU_0_bfc" and one empty BinSummary
    static const char dump[] = "\n\x09GPU_0_bfc\x12\x02\x08\x01";
    hr_err err = {0};
    put_file(dump, sizeof dump - 1);
    ck_assert_int_eq(write_file(&trace_writer_memory_dump, FEW, false, &err), HR_WRITE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "it stays as it is"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("exporter");
    TCase *cases = tcase_create("files");
    tcase_add_checked_fixture(cases, make_folder, remove_folder);
    tcase_add_test(cases, a_failed_file_operation_leaves_no_file);
    tcase_add_test(cases, short_host_memory_leaves_no_file);
    tcase_add_test(cases, what_is_given_up_leaves_no_file);
    tcase_add_test(cases, a_file_takes_the_place_of_its_own_kind_and_of_nothing_else);
    tcase_add_test(cases, an_empty_trace_is_a_file_that_the_next_one_may_replace);
    tcase_add_test(cases, equal_events_make_equal_files);
    tcase_add_test(cases, the_suffix_or_the_name_says_which);
    tcase_add_test(cases, the_public_rows_are_the_writers);
    tcase_add_test(cases, chrome_json_is_json_and_adds_up);
    tcase_add_test(cases, names_that_are_no_text_are_still_json);
    tcase_add_test(cases, lifetimes_are_those_of_a_plain_notebook);
    tcase_add_test(cases, lifetimes_of_a_person_are_not_replaced);
    tcase_add_loop_test(cases, a_full_disk_is_known_before_the_end, 0, (int)writer_count());
    tcase_add_test(cases, a_memory_profile_row_has_the_fields_of_the_event);
    tcase_add_test(cases, a_memory_dump_shows_the_heap_of_the_first_refusal);
    tcase_add_test(cases, a_dump_of_tensorflow_is_not_ours_to_replace);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
