// SPDX-License-Identifier: Apache-2.0
// TensorFlow's MemoryDump: bytes of Protocol Buffers' own library, what we write ourselves, and damage of both.
#include "base/file.h"
#include "formats/memory_dump.h"
#include "formats/varint.h"
#include "unit/tensorflow_log_sample.h"
#include "unit/trace_checks.h"

#define BY_PROTOBUF                                                                                          \
    "tests/fuzz/corpus/memory_dump/by_protobuf.pb" // serialised by its Python library, version 7.36

enum { DUMP_MAX = 4 << 20 };

static char path[] = "/tmp/headroom-memory-dump-XXXXXX";

static void make_file(void)
{
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void remove_file(void)
{
    unlink(path);
}

static bool is_named(const heap_snapshot *p, uint32_t chunk, const char *name)
{
    const char *has = intern_text(&p->names, p->chunks.data[chunk].tensor);
    return has == NULL || name == NULL ? has == name : strcmp(has, name) == 0;
}

START_TEST(what_protobufs_own_library_wrote_is_read)
{
    trace t;
    hr_err err = {0};
    ck_assert_msg(trace_read(BY_PROTOBUF, &t, &err) == HR_OK, "%s", err.sentence);
    ck_assert_str_eq(t.format, "memory_dump");
    ck_assert_int_eq(trace_check(&t, NULL), HR_OK);
    const heap_snapshot *p = t.heaps[0];
    const heap_chunk *c = p->chunks.data;
    ck_assert_str_eq(p->source, "GPU_0_bfc");
    ck_assert_uint_eq(p->chunks.count, 3);
    ck_assert(c[0].address == 0x7bc24cfe0000 && c[0].size_bytes == 1280 && c[0].requested_bytes == 1200);
    ck_assert(c[0].in_use && c[0].since == 12 && is_named(p, 0, "model/conv1/Conv2D"));
    ck_assert(c[0].region_bytes == 2048 && c[1].region_address == c[0].address);
    ck_assert(!c[1].in_use && c[1].requested_bytes == 0 && c[1].freed_at == 5 && is_named(p, 1, NULL));
    ck_assert(c[2].region_address == 0x7bc24d000000 && c[2].region_bytes == 256 && is_named(p, 2, NULL));
    const heap_counters *counters = &p->counters;
    ck_assert(counters->allocations == 9 && counters->in_use_bytes == 1536 &&
              counters->peak_in_use_bytes == 4096);
    ck_assert(counters->largest_allocation_bytes == 1280 && counters->limit_bytes == 0);
    ck_assert(counters->requested_bytes == 1204 && counters->largest_free_bytes == 768);
    ck_assert_uint_eq(t.events.count, 2); // the older one first
    ck_assert(has_event(&t, 0, TRACE_ALLOC, 4, 0) && has_event(&t, 1, TRACE_ALLOC, 1200, 1));
    ck_assert_str_eq(name_at(&t, 1), "model/conv1/Conv2D");
    ck_assert(t.events.data[1].row == TRACE_BEFORE && t.rows == 0);
    trace_deinit(&t);
}
END_TEST

// ---- our own --------------------------------------------------------------------------------------------------

static void waste_a_little(heap_snapshot *p, uint64_t seed)
{
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        heap_chunk *c = &p->chunks.data[k];
        c->requested_bytes -= c->in_use ? below(&seed, 256) : 0;
        c->freed_at = !c->in_use && below(&seed, 2) == 0 ? 1 + draw(&seed) % 1000 : 0;
    }
    heap_snapshot_count(p);
}

START_TEST(a_image_is_written_and_read)
{
    heap_snapshot p = sample_heap((uint64_t)_i);
    trace t;
    hr_err err = {0};
    waste_a_little(&p, (uint64_t)_i);
    ck_assert_int_eq(memory_dump_write(path, &p, NULL), HR_OK);
    ck_assert_msg(trace_read(path, &t, &err) == HR_OK, "%s", err.sentence);
    const heap_snapshot *read = t.heaps[0];
    ck_assert_uint_eq(read->chunks.count, p.chunks.count);
    for (uint32_t k = 0; k < p.chunks.count; k++) {
        const heap_chunk *c = &p.chunks.data[k], *r = &read->chunks.data[k];
        MUST(c->address == r->address && c->size_bytes == r->size_bytes && c->in_use == r->in_use);
        MUST(c->requested_bytes == r->requested_bytes && c->since == r->since && c->freed_at == r->freed_at);
        MUST(c->region_address == r->region_address && c->region_bytes == r->region_bytes);
        MUST(is_named(read, k, intern_text(&p.names, c->tensor)));
    }
    heap_counters said = p.counters;
    said.limit_bytes = 0; // a dump has none
    said.peak_requested_bytes = said.requested_bytes;
    ck_assert_mem_eq(&said, &read->counters, sizeof said);
    ck_assert_str_eq(read->source, p.source);
    trace_deinit(&t);
    heap_snapshot_deinit(&p);
}
END_TEST

// The bin summaries by another reader: fields of the file one by one.
typedef struct bin_sums {
    uint64_t count, chunks, bytes;
} bin_sums;

static void sum_bin(byte_span message, bin_sums *sums)
{
    uint64_t key, value, number[6] = {0};
    while (message.at < message.end) {
        MUST(varint_take(&message, &key) && varint_take(&message, &value) && key % 8 == 0 && key / 8 <= 5);
        number[key / 8] = value;
    }
    MUST(number[1] == sums->count++);
    const uint64_t least = UINT64_C(256) << number[1];
    MUST(number[3] >= least * number[5] && number[2] <= number[3] && number[4] <= number[5]);
    MUST(number[1] == 20 || number[5] == 0 || number[3] < 2 * least * number[5]);
    sums->chunks += number[5];
    sums->bytes += number[3];
}

START_TEST(bin_summaries_are_those_of_the_chunks)
{
    heap_snapshot p = sample_heap((uint64_t)_i);
    char *data;
    size_t size;
    bin_sums sums = {0};
    ck_assert_int_eq(memory_dump_write(path, &p, NULL), HR_OK);
    ck_assert_int_eq(file_read(path, DUMP_MAX, &data, &size, NULL), HR_OK);
    byte_span s = {(const uint8_t *)data, (const uint8_t *)data + size};
    while (s.at < s.end) {
        uint64_t key, length;
        MUST(varint_take(&s, &key) && varint_take(&s, &length) && length <= (size_t)(s.end - s.at));
        if (key == (2 << 3 | 2)) {
            sum_bin((byte_span){s.at, s.at + length}, &sums);
        }
        s.at += length;
    }
    ck_assert_uint_eq(sums.count, 21);
    ck_assert_uint_eq(sums.chunks, p.chunks.count);
    ck_assert_uint_eq(sums.bytes, p.counters.pool_bytes);
    hr_free(data);
    heap_snapshot_deinit(&p);
}
END_TEST

// ---- varints --------------------------------------------------------------------------------------------------

START_TEST(varints_hold_every_number_and_no_other)
{
    uint64_t state = 5;
    uint8_t bytes[VARINT_MAX];
    for (int k = 0; k < 100000; k++) {
        const uint64_t value = k < 2 ? (uint64_t)-k : draw(&state) >> below(&state, 64);
        const size_t count = varint_put(bytes, value);
        uint64_t read;
        byte_span whole = {bytes, bytes + count}, cut = {bytes, bytes + count - 1};
        MUST(varint_take(&whole, &read) && read == value && whole.at == whole.end);
        MUST(!varint_take(&cut, &read) && cut.at == bytes);
        MUST(varint_unfold(varint_fold(value)) == value);
        MUST(varint_fold((uint64_t)-5) == 9 && varint_fold(5) == 10);
    }
    memset(bytes, 0xff, sizeof bytes);
    byte_span endless = {bytes, bytes + sizeof bytes};
    uint64_t read;
    ck_assert(!varint_take(&endless, &read));
    bytes[9] = 2; // the 65th bit
    ck_assert(!varint_take(&endless, &read));
    bytes[9] = 1;
    ck_assert(varint_take(&endless, &read) && read == UINT64_MAX);
}
END_TEST

// ---- damage ---------------------------------------------------------------------------------------------------

static char *read_golden(size_t *size)
{
    char *data;
    ck_assert_int_eq(file_read(BY_PROTOBUF, DUMP_MAX, &data, size, NULL), HR_OK);
    return data;
}

START_TEST(mistakes_are_named_with_their_byte)
{
    static const struct {
        const char *bytes;
        size_t count;
        const char *sentence;
    } cases[] = {
        {"\x0a\x01g\x1a\x02\x08\x01", 7,
         "file: needed a MemChunk with a size above 0, and no more requested than that, before what comes at "
         "byte 7"},
        {"\x0a\x01g\x1a\x06\x10\x04\x18\x05\x40\x01", 11,
         "file: needed a MemChunk with a size above 0, and no more requested than that, before what comes at "
         "byte 11"},
        {"\x0a\x01g\x1a\x02\x10\xff", 7, "file: needed a whole MemChunk before what comes at byte 7"},
        {"\x0a\x01g\x12\x01", 5, "file: needed the rest of a field at byte 5"},
        {"\x0a\x01g\x12\x00\x1b", 6,
         "file: needed a field of a kind that Protocol Buffers have, before what comes at byte 6"},
        {"\x0a\x01g\x12\x00\x1a\xff\xff\xff\x7f", 10,
         "file: needed a field of at most a mebibyte at byte 10"},
        {"\x0a\x01g\x1a\x02\x10\x04\x00\x00", 9, "file: needed a field with a number at byte 8"},
        {"\x0a\x01g\x12\x00", 5, "file: needed a heap with chunks: it has none, and ends at byte 5"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        trace t = {0};
        input in;
        hr_err err = {0};
        input_of_memory(&in, "file", cases[k].bytes, cases[k].count);
        ck_assert_int_eq(trace_format_memory_dump.read(&in, &t, &err), HR_READ);
        ck_assert_str_eq(err.sentence, cases[k].sentence);
        trace_deinit(&t);
    }
}
END_TEST

START_TEST(texts_are_not_taken_for_dumps)
{
    static const char *const texts[] = {"\n\x04name",
                                        "\nAnother line of a text that begins with an empty one\n", "\n\ttab",
                                        "time_ns,step\n", ""};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        ck_assert(!trace_format_memory_dump.recognise(texts[k], strlen(texts[k])));
    }
}
END_TEST

START_TEST(damage_is_an_error_or_another_trace)
{
    size_t size;
    char *data = read_golden(&size);
    survives_damage(&trace_format_memory_dump, data, size);
    survives_short_memory(data, size);
    survives_failing_files(data, size);
    hr_free(data);
}
END_TEST

START_TEST(a_failed_operation_leaves_no_file_of_its_own)
{
    heap_snapshot p = sample_heap(1);
    const int64_t live = hr_host_mem_live();
    for (int memory = 0; memory < 2; memory++) {
        bool failed = true;
        for (uint64_t nth = 1; failed; nth++) {
            (void)(memory ? hr_host_mem_fail_at(nth) : file_fail_at(nth));
            hr_status status = memory_dump_write(path, &p, NULL);
            failed = (memory ? hr_host_mem_fail_at(0) : file_fail_at(0)) >= nth;
            ck_assert_int_eq(status, !failed ? HR_OK : memory ? HR_NOMEM : HR_WRITE);
            ck_assert_int_eq(hr_host_mem_live(), live);
        }
    }
    heap_snapshot_deinit(&p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace_memory_dump");
    TCase *dumps = tcase_create("dumps");
    tcase_add_checked_fixture(dumps, make_file, remove_file);
    tcase_add_test(dumps, what_protobufs_own_library_wrote_is_read);
    tcase_add_loop_test(dumps, a_image_is_written_and_read, 0, 20);
    tcase_add_loop_test(dumps, bin_summaries_are_those_of_the_chunks, 0, 20);
    tcase_add_test(dumps, varints_hold_every_number_and_no_other);
    tcase_add_test(dumps, mistakes_are_named_with_their_byte);
    tcase_add_test(dumps, texts_are_not_taken_for_dumps);
    tcase_add_test(dumps, damage_is_an_error_or_another_trace);
    tcase_add_test(dumps, a_failed_operation_leaves_no_file_of_its_own);
    suite_add_tcase(suite, dumps);
    return run_suite(suite);
}
