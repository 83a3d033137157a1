// SPDX-License-Identifier: Apache-2.0
// TensorFlow's out-of-memory logs of five ages: written from a heap that is drawn, read back, cut and damaged.
#include "base/file.h"
#include "formats/tensorflow_dump.h"
#include "formats/tensorflow_log.h"
#include "formats/tensorflow_log_lines.h"
#include "unit/tensorflow_log_sample.h"

#define TENSOR_LINE                                                                                          \
    "OOM when allocating tensor with shape[513,1047,1000] and type float on /job:localhost by allocator "    \
    "GPU_0_bfc\n"

static trace read_log(const text *log)
{
    ck_assert(!log->failed);
    trace t = read_text("tensorflow_log", log->data);
    ck_assert_ptr_nonnull(t.heaps[0]);
    return t;
}

static sample_log log_of(log_style style, uint64_t seed)
{
    style.line_end = style.line_end == NULL ? "\n" : style.line_end;
    return (sample_log){.style = style, .state = seed};
}

static void sample_deinit(sample_log *s)
{
    text_deinit(&s->out);
    text_deinit(&s->line);
}

static bool names_are_equal(const heap_snapshot *a, uint32_t x, const heap_snapshot *b, uint32_t y)
{
    const char *left = intern_text(&a->names, x), *right = intern_text(&b->names, y);
    return left == NULL || right == NULL ? left == right : strcmp(left, right) == 0;
}

// What a log of the age says must be in the snapshot; what it does not say must be empty.
static void check_chunks(const heap_snapshot *p, const heap_snapshot *read, const log_style *style)
{
    ck_assert_uint_eq(read->chunks.count, p->chunks.count);
    const bool named = style->age >= LOG_2020 && (style->debug || style->age == LOG_2026);
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        const heap_chunk *c = &p->chunks.data[k], *r = &read->chunks.data[k];
        MUST(c->address == r->address && c->size_bytes == r->size_bytes && c->in_use == r->in_use);
        MUST(c->requested_bytes == r->requested_bytes && c->freed_at == r->freed_at);
        MUST(c->region_address == r->region_address && c->region_bytes == r->region_bytes);
        MUST(r->handle == (style->age >= LOG_2020 ? c->handle : HR_NO_ID));
        MUST(r->since == (style->debug && style->age >= LOG_2020 ? c->since : 0));
        MUST(named ? names_are_equal(p, c->tensor, read, r->tensor) : r->tensor == HR_NO_ID);
    }
}

static bool is_about(uint64_t exact, uint64_t printed)
{
    const uint64_t apart = exact > printed ? exact - printed : printed - exact;
    return apart <= exact / 50;
}

static void check_counters(const heap_snapshot *p, const heap_snapshot *read, log_age age)
{
    const heap_counters *c = &p->counters, *r = &read->counters;
    ck_assert_uint_eq(r->pool_bytes, c->pool_bytes);
    ck_assert_uint_eq(r->in_use_bytes, c->in_use_bytes);
    ck_assert_uint_eq(r->largest_free_bytes, c->largest_free_bytes);
    ck_assert_uint_eq(r->allocations, c->allocations);
    ck_assert_uint_eq(read->damaged_regions, 0);
    if (age == LOG_2026) {
        ck_assert(is_about(c->limit_bytes, r->limit_bytes) && r->limit_bytes >= r->pool_bytes);
        ck_assert(is_about(c->peak_in_use_bytes, r->peak_in_use_bytes));
    } else {
        ck_assert_uint_eq(r->limit_bytes, c->limit_bytes);
        ck_assert_uint_eq(r->peak_in_use_bytes, c->peak_in_use_bytes);
        ck_assert_uint_eq(r->largest_allocation_bytes, c->largest_allocation_bytes);
        ck_assert_uint_eq(r->peak_pool_bytes, c->peak_pool_bytes);
    }
    ck_assert_uint_eq(read->next_region_bytes, age >= LOG_2020 ? p->next_region_bytes : 0);
    ck_assert(strncmp(read->source, p->source, strlen(read->source)) == 0);
}

static void check_refusal(const heap_snapshot *p, const heap_snapshot *read, log_age age)
{
    const heap_refusal *r = &read->refusal;
    ck_assert(r->any);
    if (age >= LOG_2020) {
        ck_assert_uint_eq(r->rounded_bytes, p->refusal.rounded_bytes);
        ck_assert_uint_eq(r->requested_bytes, p->refusal.rounded_bytes);
    } else {
        ck_assert(is_about(p->refusal.rounded_bytes, r->rounded_bytes) && r->rounded_bytes % 256 == 0);
    }
    ck_assert(age >= LOG_2023 ? names_are_equal(p, p->refusal.tensor, read, r->tensor)
                              : r->tensor == HR_NO_ID);
}

// What was in use, in the order of age where it is known; then the request.
static void check_events(const trace *t)
{
    const heap_snapshot *p = t->heaps[0];
    uint32_t in_use = 0;
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        in_use += p->chunks.data[k].in_use;
    }
    ck_assert_uint_eq(t->events.count, in_use + 1);
    for (uint32_t k = 0; k < in_use; k++) {
        const trace_event *e = &t->events.data[k];
        MUST(e->kind == TRACE_ALLOC && e->row == TRACE_BEFORE && e->block == k);
        bytes += e->bytes;
    }
    ck_assert_uint_eq(bytes, p->counters.requested_bytes);
    ck_assert(has_event(t, in_use, TRACE_ALLOC, p->refusal.requested_bytes, in_use));
    ck_assert_uint_eq(t->events.data[in_use].row, 0);
    ck_assert_uint_eq(t->rows, 1);
}

static void check_style(log_style style, uint64_t seed)
{
    heap_snapshot p = sample_heap(seed);
    sample_log s = log_of(style, seed);
    sample_dump(&s, &p);
    trace t = read_log(&s.out);
    ck_assert_uint_eq(t.dumps, 1);
    check_chunks(&p, t.heaps[0], &s.style);
    check_counters(&p, t.heaps[0], style.age);
    check_refusal(&p, t.heaps[0], style.age);
    ck_assert_str_eq(t.heaps[0]->source, style.age == LOG_2016 ? "" : p.source);
    check_events(&t);
    trace_deinit(&t);
    sample_deinit(&s);
    heap_snapshot_deinit(&p);
}

START_TEST(every_age_and_prefix_is_read)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        for (int age = 0; age < LOG_AGES; age++) {
            for (int prefix = 0; prefix < LOG_PREFIXES; prefix++) {
                check_style((log_style){.age = (log_age)age, .prefix = (log_prefix)prefix}, seed);
            }
        }
    }
}
END_TEST

START_TEST(what_terminals_and_people_do_to_logs_changes_nothing)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        for (int age = 0; age < LOG_AGES; age++) {
            const log_age a = (log_age)age;
            check_style((log_style){.age = a, .prefix = PREFIX_TIME, .line_end = "\r\n"}, seed);
            check_style((log_style){.age = a, .prefix = PREFIX_ABSL, .coloured = true}, seed);
            check_style((log_style){.age = a, .prefix = PREFIX_TIME, .chatty = true}, seed);
            check_style((log_style){.age = a, .prefix = PREFIX_TIME, .debug = true}, seed);
            check_style((log_style){.age = a, .prefix = PREFIX_OLD, .twice = true}, seed);
        }
    }
}
END_TEST

// As a terminal of so many columns shows it and a person copies it: blanks at the end of a line are lost.
static text wrapped(const text *log, size_t width)
{
    text out = {0};
    for (const char *line = log->data, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        const char *at = line;
        for (; end - at > (ptrdiff_t)width; at += width) {
            text_append(&out, "%.*s\n", (int)(width - (at[width - 1] == ' ')), at);
        }
        text_append(&out, "%.*s\n", (int)(end - at), at);
    }
    return out;
}

START_TEST(lines_that_a_terminal_broke_are_put_together)
{
    static const size_t widths[] = {80, 100, 120, 132, 157};
    for (uint64_t seed = 0; seed < 5; seed++) {
        for (int age = LOG_2018; age < LOG_AGES; age++) {
            heap_snapshot p = sample_heap(seed);
            sample_log s =
                log_of((log_style){.age = (log_age)age, .prefix = PREFIX_TIME, .debug = seed % 2 == 0}, seed);
            sample_dump(&s, &p);
            text log = wrapped(&s.out, widths[seed]);
            trace t = read_log(&log);
            check_chunks(&p, t.heaps[0], &s.style);
            check_counters(&p, t.heaps[0], s.style.age);
            ck_assert(is_about(p.refusal.rounded_bytes, t.heaps[0]->refusal.rounded_bytes));
            trace_deinit(&t);
            text_deinit(&log);
            sample_deinit(&s);
            heap_snapshot_deinit(&p);
        }
    }
}
END_TEST

// One line of a bin is enough, even where it lost its blank.
START_TEST(one_broken_line_tells_the_width)
{
    trace t;
    hr_err err = {0};
    ck_assert_msg(trace_read("tests/fuzz/corpus/tensorflow_log/broken_lines.log", &t, &err) == HR_OK, "%s",
                  err.sentence);
    const heap_snapshot *p = t.heaps[0];
    ck_assert_uint_eq(p->chunks.count, 2);
    ck_assert_uint_eq(p->chunks.data[0].size_bytes, 1280000);
    ck_assert_uint_eq(p->chunks.data[1].size_bytes, 768000);
    ck_assert_uint_eq(p->damaged_regions, 0);
    trace_deinit(&t);
}
END_TEST

// ---- the dumps of this program --------------------------------------------------------------------------------

static void check_dump(const heap_snapshot *p, const tensorflow_dump_options *options)
{
    text log = {0};
    tensorflow_dump(p, options, &log);
    trace t = read_log(&log);
    const heap_snapshot *read = t.heaps[0];
    const bool human = options->version == TENSORFLOW_2_21 || options->version == TENSORFLOW_2026;
    ck_assert_uint_eq(read->chunks.count, p->chunks.count);
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        const heap_chunk *c = &p->chunks.data[k], *r = &read->chunks.data[k];
        MUST(c->address == r->address && c->size_bytes == r->size_bytes && c->in_use == r->in_use);
        MUST(c->region_address == r->region_address && c->region_bytes == r->region_bytes);
        MUST(c->handle == r->handle && r->freed_at == (options->timestamped ? c->freed_at : 0));
        MUST(!options->by_op ||
             (c->since == r->since && (!c->in_use || names_are_equal(p, c->tensor, read, r->tensor))));
    }
    ck_assert_uint_eq(read->counters.in_use_bytes, p->counters.in_use_bytes);
    ck_assert_uint_eq(read->counters.allocations, p->counters.allocations);
    ck_assert(human || (read->counters.limit_bytes == p->counters.limit_bytes &&
                        read->counters.peak_in_use_bytes == p->counters.peak_in_use_bytes &&
                        read->next_region_bytes == p->next_region_bytes));
    ck_assert(is_about(p->counters.limit_bytes, read->counters.limit_bytes));
    ck_assert_uint_eq(read->refusal.rounded_bytes, p->refusal.rounded_bytes);
    ck_assert_uint_eq(read->refusal.requested_bytes,
                      options->shape != NULL ? p->refusal.requested_bytes : p->refusal.rounded_bytes);
    trace_deinit(&t);
    text_deinit(&log);
}

START_TEST(our_own_dumps_are_read_back)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        heap_snapshot p = sample_heap(seed);
        for (uint32_t k = 0; k < p.chunks.count; k++) {
            p.chunks.data[k].freed_at = p.chunks.data[k].in_use ? 0 : k;
        }
        for (int version = 0; version < TENSORFLOW_VERSIONS; version++) {
            const tensorflow_version v = (tensorflow_version)version;
            check_dump(&p, &(tensorflow_dump_options){.version = v});
            check_dump(&p, &(tensorflow_dump_options){.version = v,
                                                      .op = "model/dense/MatMul",
                                                      .shape = "513,1047,1000",
                                                      .type = "float",
                                                      .kernel = "matmul_op.cc:7",
                                                      .time = "2020-06-23 19:42:42.505584",
                                                      .growth = true,
                                                      .timestamped = true,
                                                      .by_op = true});
        }
        heap_snapshot_deinit(&p);
    }
}
END_TEST

// What TensorFlow 2.21 itself wrote (tests/bench/peers/tensorflow_bfc.cc).
START_TEST(tensorflows_own_dump_is_read)
{
    trace t;
    hr_err err = {0};
    ck_assert_msg(trace_read("tests/memory/golden_dump.txt", &t, &err) == HR_OK, "%s", err.sentence);
    const heap_snapshot *p = t.heaps[0];
    ck_assert_str_eq(p->source, "GPU_0_bfc");
    ck_assert_uint_eq(p->damaged_regions, 0);
    ck_assert_uint_eq(p->chunks.data[0].address, UINT64_C(1) << 40);
    ck_assert_uint_eq(p->counters.limit_bytes, UINT64_C(64) << 20);
    ck_assert_uint_eq(p->counters.allocations, 41);
    ck_assert_uint_eq(p->refusal.rounded_bytes, UINT64_C(60) << 20);
    trace_deinit(&t);
}
END_TEST

START_TEST(the_first_whole_dump_is_taken)
{
    heap_snapshot first = sample_heap(1), second = sample_heap(2);
    sample_log s = log_of((log_style){.age = LOG_2023, .prefix = PREFIX_TIME}, 1);
    sample_dump(&s, &first);
    const char *sum = strstr(s.out.data, "Sum Total");
    s.out.length = (size_t)(sum - s.out.data); // the first one was cut: its last lines are missing
    text_append(&s.out, "\n");
    sample_dump(&s, &second);
    sample_dump(&s, &first);
    trace t = read_log(&s.out);
    ck_assert_uint_eq(t.dumps, 3);
    check_chunks(&second, t.heaps[0], &s.style);
    check_counters(&second, t.heaps[0], LOG_2023);
    trace_deinit(&t);
    sample_deinit(&s);
    heap_snapshot_deinit(&first);
    heap_snapshot_deinit(&second);
}
END_TEST

// Of dumps that were all cut, the one that shows most.
START_TEST(of_cut_dumps_the_fullest_is_taken)
{
    trace t =
        read_text("tensorflow_log", "BFCAllocator dump for GPU_0_bfc\nInUse at 100 of size 256 next 1\n"
                                    "BFCAllocator dump for GPU_1_bfc\nInUse at 100 of size 256 next 1\n"
                                    "Free  at 200 of size 512 next 2\n"
                                    "BFCAllocator dump for GPU_2_bfc\nInUse at 100 of size 256 next 1\n");
    ck_assert_str_eq(t.heaps[0]->source, "GPU_1_bfc");
    ck_assert_uint_eq(t.heaps[0]->chunks.count, 2);
    ck_assert_uint_eq(t.heaps[0]->chunks.data[1].handle, 1);
    ck_assert_uint_eq(t.dumps, 3);
    ck_assert(!t.heaps[0]->refusal.any);
    ck_assert_uint_eq(t.events.count, 1);
    trace_deinit(&t);
}
END_TEST

START_TEST(regions_that_are_not_whole_are_said)
{
    trace t = read_text("tensorflow_log",
                        "Next region of size 2048\nInUse at 1000 of size 256 next 1\n"
                        "Free  at 1100 of size 256 next 2\nInUse at 1600 of size 512 next 3\n"
                        "Next region of size 4096\nNext region of size 1024\n"
                        "InUse at 9000 of size 1024 next 18446744073709551615\nStats:\nLimit: 99999\n");
    const heap_snapshot *p = t.heaps[0];
    ck_assert_uint_eq(p->damaged_regions, 2);
    ck_assert_uint_eq(p->missing_bytes, 1024 + 4096);
    ck_assert_uint_eq(p->chunks.count, 4);
    ck_assert_uint_eq(p->chunks.data[0].region_bytes, 512);
    ck_assert_uint_eq(p->chunks.data[1].handle, 1);
    ck_assert_uint_eq(p->chunks.data[2].region_address, 0x1600);
    ck_assert_uint_eq(p->chunks.data[2].handle, HR_NO_ID);
    ck_assert_uint_eq(p->counters.pool_bytes, 2048);
    ck_assert_uint_eq(p->counters.limit_bytes, 99999);
    trace_deinit(&t);
}
END_TEST

static uint64_t number_behind(const char *line, const char *sign)
{
    const char *at = strstr(line, sign);
    return at == NULL ? 0 : strtoull(at + strlen(sign), NULL, 10);
}

// Cut behind any line, a log shows the chunks that came before, and says what is missing of the regions it announced.
START_TEST(a_log_that_ends_early_shows_what_came_before)
{
    heap_snapshot p = sample_heap((uint64_t)_i);
    sample_log s = log_of((log_style){.age = LOG_2023, .prefix = PREFIX_TIME}, (uint64_t)_i);
    uint64_t chunks = 0, announced = 0;
    sample_dump(&s, &p);
    for (char *line = s.out.data, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        const size_t length = (size_t)(end + 1 - s.out.data);
        *end = '\0';
        const bool is_region = strstr(line, "Next region") != NULL, is_chunk = strstr(line, " at 7b") != NULL;
        announced += is_region ? number_behind(line, " of size ") : 0;
        chunks += is_chunk;
        *end = '\n';
        trace t;
        if (read_bytes(s.out.data, length, &t, NULL) == HR_OK) {
            const heap_snapshot *read = t.heaps[0];
            MUST(read->chunks.count == chunks && chunks > 0);
            MUST(read->counters.pool_bytes + read->missing_bytes == announced);
            MUST((read->missing_bytes > 0) == (read->damaged_regions > 0));
            MUST(trace_check(&t, NULL) == HR_OK);
        } else {
            MUST(chunks == 0);
        }
        trace_deinit(&t);
    }
    ck_assert_uint_eq(chunks, p.chunks.count);
    sample_deinit(&s);
    heap_snapshot_deinit(&p);
}
END_TEST

// Two free chunks that touch would have been one: where a log has no regions, a region ended between them.
START_TEST(touching_regions_without_headings_are_told_apart)
{
    trace t =
        read_text("tensorflow_log",
                  "Bin (256): \tTotal Chunks: 0, Chunks in use: 0 0B in use in bin\n"
                  "Chunk at 0x1000 of size 256\nChunk at 0x1200 of size 256\n"
                  "Free at 0x1100 of size 256\nFree at 0x1300 of size 256\nFree at 0x1400 of size 512\n");
    const heap_snapshot *p = t.heaps[0];
    ck_assert_uint_eq(p->chunks.count, 5);
    ck_assert_uint_eq(p->chunks.data[3].region_bytes, 1024);
    ck_assert_uint_eq(p->chunks.data[4].region_address, 0x1400);
    ck_assert_uint_eq(p->damaged_regions, 0);
    trace_deinit(&t);
}
END_TEST

START_TEST(a_tensors_shape_says_the_request_to_the_byte)
{
    for (int age = 0; age < LOG_AGES; age++) {
        heap_snapshot p = sample_heap(3);
        sample_log s = log_of((log_style){.age = (log_age)age, .prefix = PREFIX_TIME}, 3);
        sample_dump(&s, &p);
        text_append(&s.out, "OOM when allocating tensor with shape[9,9] and type float on x\n" TENSOR_LINE);
        trace t = read_log(&s.out);
        ck_assert_uint_eq(t.heaps[0]->refusal.requested_bytes, UINT64_C(513) * 1047 * 1000 * 4);
        ck_assert_uint_eq(t.events.data[t.events.count - 1].bytes, UINT64_C(513) * 1047 * 1000 * 4);
        trace_deinit(&t);
        sample_deinit(&s);
        heap_snapshot_deinit(&p);
    }
}
END_TEST

START_TEST(stamps_and_odd_spellings_are_read)
{
    trace t = read_text(
        "tensorflow_log",
        "  \"2023-09-18 13:20:23.844600: I bfc_allocator.cc:1344] InUse  at 2b673f104100 of size 256 next "
        "1463\\n\",\n(pid=7) Free  at 0x2b673f104200 of size 512 next 1464 freed_at_count 77\n"
        "InUse at 2b673f104400 of size 256 tag upper [allocation_annotation a{k=v, of size 9} / b{]x}] next "
        "3\n"
        "InUse at 2b673f104500 of size 256 by op of size 3 action_count 12 step 0 next 4\n");
    const heap_snapshot *p = t.heaps[0];
    ck_assert_uint_eq(p->chunks.count, 4);
    ck_assert_uint_eq(p->chunks.data[1].freed_at, 77);
    ck_assert(!p->chunks.data[1].in_use);
    ck_assert_uint_eq(p->chunks.data[1].handle, 1463);
    ck_assert_str_eq(intern_text(&p->names, p->chunks.data[2].tensor), "a{k=v, of size 9} / b{]x}");
    ck_assert_uint_eq(p->chunks.data[2].size_bytes, 256);
    ck_assert_uint_eq(p->chunks.data[3].handle, 3);
    ck_assert_uint_eq(p->chunks.data[3].since, 12);
    ck_assert_str_eq(intern_text(&p->names, p->chunks.data[3].tensor), "of size 3");
    trace_deinit(&t);
}
END_TEST

START_TEST(a_text_without_a_dump_is_refused_with_a_way_out)
{
    trace t;
    hr_err err = {0};
    const char *complaint =
        "Epoch 1\nW Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00GiB (rounded to "
        "2147483648)requested by op Mul\n";
    ck_assert_int_eq(read_bytes(complaint, strlen(complaint), &t, &err), HR_READ);
    ck_assert_str_eq(err.sentence,
                     "file: needed TensorFlow's dump of the heap (lines as 'InUse at 7f12c0000000 of size "
                     "256 next 1'), had the complaint without one in 2 lines");
    ck_assert_str_eq(
        err.hint,
        "TF_CPP_MIN_LOG_LEVEL=0 in the environment of the run, and all of what it writes to stderr");
    ck_assert_int_eq(read_bytes("hello\n", 6, &t, &err), HR_READ);
    ck_assert_ptr_nonnull(strstr(err.sentence, "it looks like none of them"));
    ck_assert_int_eq(read_bytes("\xFF\xFE"
                                "B\0F\0",
                                6, &t, &err),
                     HR_READ);
    ck_assert_str_eq(err.sentence, "file: needed a log in UTF-8, is in UTF-16");
    const char *overlap = "InUse at 1000 of size 512 next 1\nInUse at 1100 of size 256 next 2\n";
    ck_assert_int_eq(read_bytes(overlap, strlen(overlap), &t, &err), HR_READ);
    ck_assert_str_eq(
        err.sentence,
        "file: needed chunks that lie apart, the one at 1000 of 512 bytes reaches into the next");
}
END_TEST

// ---- numbers for people ---------------------------------------------------------------------------------------

START_TEST(numbers_for_people_are_near_what_they_stand_for)
{
    uint64_t state = 7;
    for (int k = 0; k < 200000; k++) {
        char word[32];
        const uint64_t bytes = draw(&state) >> (1 + below(&state, 63));
        uint64_t printed;
        bool exact;
        log_span at = {sample_human(bytes, word), strlen(word)};
        MUST(log_take_bytes(&at, &printed, &exact));
        MUST(exact == (bytes < 1024) && (!exact || printed == bytes));
        MUST(log_prints_as(bytes, printed));
        MUST(bytes < 1024 || !log_prints_as(bytes + bytes / 8, printed));
    }
}
END_TEST

// ---- damage ---------------------------------------------------------------------------------------------------

static text small_log(log_age age)
{
    heap_snapshot p = {.source = "GPU_0_bfc",
                       .refusal = {.any = true, .requested_bytes = 1 << 20, .rounded_bytes = 1 << 20}};
    uint64_t address = 0x7bc24cfe0000;
    p.refusal.tensor = intern_add(&p.names, "Mul", 3);
    for (uint32_t k = 0; k < 3; k++) {
        heap_chunk *c = vec_push(&p.chunks);
        MUST(c != NULL);
        *c = (heap_chunk){.address = address,
                          .size_bytes = 256,
                          .region_address = 0x7bc24cfe0000,
                          .region_bytes = 768,
                          .tensor = p.refusal.tensor,
                          .handle = k,
                          .in_use = k != 1,
                          .since = k,
                          .freed_at = k == 1};
        address += 256;
    }
    sample_log s = log_of((log_style){.age = age, .debug = age != LOG_2026, .coloured = age == LOG_2023}, 1);
    sample_request(&s, &p);
    SAMPLE_LINE(&s, "I", "BFCAllocator dump for GPU_0_bfc");
    sample_chunks(&s, &p);
    sample_stats(&s, &p);
    text_append(&s.out, TENSOR_LINE);
    heap_snapshot_deinit(&p);
    text_deinit(&s.line);
    return s.out;
}

START_TEST(damage_is_an_error_or_another_trace)
{
    text log = small_log((log_age)_i);
    survives_damage(&trace_format_tensorflow, log.data, log.length);
    text_deinit(&log);
}
END_TEST

START_TEST(short_memory_and_failing_files_are_errors)
{
    for (int age = 0; age < LOG_AGES; age++) {
        text log = small_log((log_age)age);
        survives_short_memory(log.data, log.length);
        survives_failing_files(log.data, log.length);
        text_deinit(&log);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace_tensorflow_log");
    TCase *logs = tcase_create("logs");
    tcase_add_test(logs, every_age_and_prefix_is_read);
    tcase_add_test(logs, what_terminals_and_people_do_to_logs_changes_nothing);
    tcase_add_test(logs, lines_that_a_terminal_broke_are_put_together);
    tcase_add_test(logs, one_broken_line_tells_the_width);
    tcase_add_test(logs, our_own_dumps_are_read_back);
    tcase_add_test(logs, tensorflows_own_dump_is_read);
    tcase_add_test(logs, the_first_whole_dump_is_taken);
    tcase_add_test(logs, of_cut_dumps_the_fullest_is_taken);
    tcase_add_test(logs, regions_that_are_not_whole_are_said);
    tcase_add_loop_test(logs, a_log_that_ends_early_shows_what_came_before, 0, 8);
    tcase_add_test(logs, touching_regions_without_headings_are_told_apart);
    tcase_add_test(logs, a_tensors_shape_says_the_request_to_the_byte);
    tcase_add_test(logs, stamps_and_odd_spellings_are_read);
    tcase_add_test(logs, a_text_without_a_dump_is_refused_with_a_way_out);
    tcase_add_test(logs, numbers_for_people_are_near_what_they_stand_for);
    tcase_add_loop_test(logs, damage_is_an_error_or_another_trace, 0, LOG_AGES);
    tcase_add_test(logs, short_memory_and_failing_files_are_errors);
    suite_add_tcase(suite, logs);
    return run_suite(suite);
}
