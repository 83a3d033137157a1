// SPDX-License-Identifier: Apache-2.0
// Lifetimes: read in every spelling of minimalloc, written, turned into traces and back.
#include "formats/lifetimes_csv.h"
#include "unit/trace_checks.h"

enum { BUFFERS = 40, TIMES = 12 };

static lifetimes read_lifetimes(const char *content)
{
    lifetimes l;
    input in;
    hr_err err = {0};
    input_of_memory(&in, "file", content, strlen(content));
    ck_assert_msg(lifetimes_read_input(&in, &l, &err) == HR_OK, "%s", err.sentence);
    return l;
}

static void refuses_lifetimes(const char *content, const char *sentence)
{
    lifetimes l;
    input in;
    hr_err err = {0};
    input_of_memory(&in, "file", content, strlen(content));
    ck_assert_int_eq(lifetimes_read_input(&in, &l, &err), HR_READ);
    ck_assert_str_eq(err.sentence, sentence);
    ck_assert_uint_eq(l.list.count, 0);
}

static bool is_lifetime(const lifetimes *l, uint32_t k, const char *id, uint64_t lower, uint64_t upper,
                        uint64_t bytes)
{
    const lifetime *b = &l->list.data[k];
    return strcmp(intern_text(&l->ids, b->id), id) == 0 && b->lower == lower && b->upper == upper &&
           b->bytes == bytes;
}

START_TEST(columns_have_all_their_names)
{
    static const char *const files[] = {
        "id,lower,upper,size\nb1,0,3,4\nb2,3,9,5\n",
        "buffer,start,end,size\nb1,0,2,4\nb2,3,8,5\n",
        "size,upper,begin,buffer_id\n4,3,0,b1\n5,9,3,b2",
        "id,lower,upper,size,comment\r\nb1,0,3,4,x\r\n\r\nb2,3,9,5,\r\n",
        "id, lower, upper, size\nb1, 0, 3, 4\nb2, 3, 9, 5\n",
    };
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        lifetimes l = read_lifetimes(files[k]);
        ck_assert_uint_eq(l.list.count, 2);
        ck_assert(is_lifetime(&l, 0, "b1", 0, 3, 4) && is_lifetime(&l, 1, "b2", 3, 9, 5));
        ck_assert_uint_eq(l.list.data[0].alignment_bytes, 1);
        ck_assert_uint_eq(l.list.data[0].offset, LIFETIME_NO_OFFSET);
        lifetimes_deinit(&l);
    }
}
END_TEST

START_TEST(gaps_alignments_hints_and_offsets_are_read)
{
    lifetimes l = read_lifetimes("id,start,end,size,alignment,hint,gaps,offset\n"
                                 "a,0,9,128,64,256,2-3 5-9@16:32,1024\n"
                                 "b,0,18446744073709551614,1,,,,\n");
    const lifetime *a = &l.list.data[0], *b = &l.list.data[1];
    ck_assert(a->alignment_bytes == 64 && a->hint == 256 && a->offset == 1024 && a->gap_count == 2);
    const lifetime_gap *gaps = l.gaps.data;
    ck_assert(gaps[0].lower == 2 && gaps[0].upper == 4 && gaps[0].low == 0 && gaps[0].high == 0);
    ck_assert(gaps[1].lower == 5 && gaps[1].upper == 10 && gaps[1].low == 16 && gaps[1].high == 32);
    ck_assert(b->upper == UINT64_MAX && b->alignment_bytes == 1 && b->gap_count == 0);
    ck_assert(b->hint == LIFETIME_NO_OFFSET && b->offset == LIFETIME_NO_OFFSET);
    lifetimes_deinit(&l);
}
END_TEST

START_TEST(mistakes_are_named_with_line_and_column)
{
    refuses_lifetimes("", "file: needed a heading with the columns id, lower, upper and size, is empty");
    refuses_lifetimes("id,lower,size\n",
                      "file:1:10: needed one column 'upper' (behind the last instant) or 'end' (the "
                      "last instant), had 'size'");
    refuses_lifetimes(
        "id,lower,upper,end,size\n",
        "file:1:20: needed one column 'upper' (behind the last instant) or 'end' (the last instant), had "
        "'size'");
    refuses_lifetimes("id,lower,upper\n", "file:1: needed a column 'size' in the heading, has none");
    refuses_lifetimes("id,lower,uper,size\n",
                      "file:1:10: needed a column of this format (did you mean 'upper'?), had 'uper'");
    refuses_lifetimes("id,lower,upper,size\n\na,3,3,1\n",
                      "file:3:5: needed a lifetime that ends behind its beginning, had '3'");
    refuses_lifetimes(
        "id,start,end,size\na,3,18446744073709551615,1\n",
        "file:2:5: needed a lifetime that ends behind its beginning, had '18446744073709551615'");
    refuses_lifetimes("id,lower,upper,size\na,3,4,18446744073709551616\n",
                      "file:2:7: needed a whole number from 0 to 2^64-1, had '18446744073709551616'");
    refuses_lifetimes("id,lower,upper,size\na,3\n",
                      "file:2:4: needed a whole number from 0 to 2^64-1, had ''");
    refuses_lifetimes("id,lower,upper,size\na,-1,4,1\n",
                      "file:2:3: needed a whole number from 0 to 2^64-1, had '-1'");
    refuses_lifetimes("id,lower,upper,size\na,0,4,1\na,0,4,1\n", "file:3:1: needed every id once, had 'a'");
    refuses_lifetimes("id,lower,upper,size\n,0,4,1\n", "file:2:1: needed a buffer's id, had ''");
    refuses_lifetimes("id,lower,upper,size,alignment\na,0,4,1,0\n",
                      "file:2:9: needed an alignment of at least 1, had '0'");
    refuses_lifetimes("id,lower,upper,size,gaps\na,0,4,1,1-2 3\n",
                      "file:2:13: needed gaps as 3-5 or 3-5@0:64, with blanks between them, had '3'");
    refuses_lifetimes("id,lower,upper,size,gaps\na,0,4,1,3-5\n",
                      "file:2:9: needed gaps that begin before they end, within the lifetime, had '3-5'");
    refuses_lifetimes("id,lower,upper,size,gaps\na,0,4,1,1-2@0:2\n",
                      "file:2:9: needed bytes of a gap within the buffer's size, had '1-2@0:2'");
}
END_TEST

// ---- drawn ----------------------------------------------------------------------------------------------------

static void add_drawn(lifetimes *l, uint64_t *state)
{
    static const char *const names[] = {"b", "conv, \"1\"", " blank", "two\r\nlines", "x"};
    char id[64];
    const uint64_t lower = below(state, TIMES), length = 1 + below(state, TIMES);
    snprintf(id, sizeof id, "%s%u", names[below(state, 5)], l->list.count);
    lifetime *b = vec_push(&l->list);
    *b = (lifetime){.lower = lower,
                    .upper = lower + length,
                    .bytes = below(state, 5) * 100,
                    .alignment_bytes = UINT64_C(1) << below(state, 3) * 4,
                    .hint = below(state, 2) == 0 ? LIFETIME_NO_OFFSET : draw(state) >> 1,
                    .offset = below(state, 2) == 0 ? LIFETIME_NO_OFFSET : draw(state) >> 1,
                    .id = intern_add(&l->ids, id, strlen(id)),
                    .first_gap = l->gaps.count,
                    .gap_count = (uint32_t)below(state, 3)};
    for (uint32_t k = 0; k < b->gap_count; k++) {
        lifetime_gap *gap = vec_push(&l->gaps);
        const uint64_t high = below(state, b->bytes + 1);
        *gap = (lifetime_gap){lower, lower + length, high == 0 ? 0 : below(state, high), high};
    }
}

static lifetimes drawn_lifetimes(uint64_t seed)
{
    lifetimes l = {0};
    const uint64_t count = 1 + below(&seed, BUFFERS);
    for (uint64_t k = 0; k < count; k++) {
        add_drawn(&l, &seed);
    }
    return l;
}

static void must_be_equal(const lifetimes *a, const lifetimes *b)
{
    ck_assert_uint_eq(a->list.count, b->list.count);
    ck_assert_uint_eq(a->gaps.count, b->gaps.count);
    for (uint32_t k = 0; k < a->list.count; k++) {
        const lifetime *x = &a->list.data[k], *y = &b->list.data[k];
        MUST(is_lifetime(b, k, intern_text(&a->ids, x->id), x->lower, x->upper, x->bytes));
        MUST(x->alignment_bytes == y->alignment_bytes && x->hint == y->hint && x->offset == y->offset);
        MUST(x->gap_count == y->gap_count && x->first_gap == y->first_gap);
    }
    if (a->gaps.count > 0) {
        ck_assert_mem_eq(a->gaps.data, b->gaps.data, a->gaps.count * sizeof *a->gaps.data);
    }
}

static char path[] = "/tmp/headroom-lifetimes-XXXXXX";

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

START_TEST(what_is_written_is_read)
{
    lifetimes l = drawn_lifetimes((uint64_t)_i), again;
    uint64_t offsets[BUFFERS + 1];
    hr_err err = {0};
    ck_assert_int_eq(lifetimes_write(path, &l, NULL, NULL), HR_OK);
    ck_assert_msg(lifetimes_read(path, &again, &err) == HR_OK, "%s", err.sentence);
    must_be_equal(&l, &again);
    lifetimes_deinit(&again);
    for (uint32_t k = 0; k < l.list.count; k++) {
        l.list.data[k].offset = offsets[k] = 7 * k;
    }
    ck_assert_int_eq(lifetimes_write(path, &l, offsets, NULL), HR_OK);
    ck_assert_int_eq(lifetimes_read(path, &again, NULL), HR_OK);
    must_be_equal(&l, &again);
    lifetimes_deinit(&again);
    lifetimes_deinit(&l);
}
END_TEST

static bool meet(uint64_t a_lower, uint64_t a_upper, uint64_t b_lower, uint64_t b_upper)
{
    return a_lower < b_upper && b_lower < a_upper;
}

START_TEST(instants_meet_when_lifetimes_do)
{
    lifetimes l = drawn_lifetimes((uint64_t)_i);
    uint32_t births[BUFFERS + 1], deaths[BUFFERS + 1];
    for (uint32_t k = 0; k < l.list.count; k++) { // far apart, so that nothing fits 32 bits
        l.list.data[k].lower <<= 55;
        l.list.data[k].upper <<= 55;
    }
    ck_assert_int_eq(lifetimes_instants(&l, births, deaths, NULL), HR_OK);
    for (uint32_t i = 0; i < l.list.count; i++) {
        const lifetime *a = &l.list.data[i];
        MUST(births[i] < deaths[i] && deaths[i] < 2 * l.list.count);
        for (uint32_t k = 0; k < i; k++) {
            const lifetime *b = &l.list.data[k];
            MUST(meet(a->lower, a->upper, b->lower, b->upper) ==
                 meet(births[i], deaths[i], births[k], deaths[k]));
        }
    }
    lifetimes_deinit(&l);
}
END_TEST

// Through a file, as a trace, and back: the same buffers meet, and nothing else is known of their times.
START_TEST(a_trace_of_lifetimes_has_the_same_meetings)
{
    lifetimes l = drawn_lifetimes((uint64_t)_i), back;
    ck_assert_int_eq(lifetimes_write(path, &l, NULL, NULL), HR_OK);
    trace t;
    hr_err err = {0};
    ck_assert_msg(trace_read(path, &t, &err) == HR_OK, "%s", err.sentence);
    ck_assert_str_eq(t.format, "lifetimes");
    ck_assert_int_eq(trace_check(&t, NULL), HR_OK);
    ck_assert_int_eq(lifetimes_of_trace(&t, 0, &back, NULL), HR_OK);
    uint32_t of[BUFFERS + 1], sized = 0, at = 0; // which buffer the k-th allocation is
    for (uint32_t k = 0; k < t.events.count; k++) {
        if (t.events.data[k].kind == TRACE_ALLOC) {
            of[at++] = t.events.data[k].row;
        }
    }
    for (uint32_t k = 0; k < l.list.count; k++) {
        sized += l.list.data[k].bytes > 0;
    }
    ck_assert_uint_eq(at, sized);
    ck_assert_uint_eq(back.list.count, sized);
    ck_assert_uint_eq(t.events.count, 2 * sized);
    for (uint32_t i = 0; i < sized; i++) {
        const lifetime *a = &l.list.data[of[i]], *x = &back.list.data[i];
        char id[96];
        snprintf(id, sizeof id, "%u:%s", i, intern_text(&l.ids, a->id));
        MUST(strcmp(intern_text(&back.ids, x->id), id) == 0 && x->bytes == a->bytes);
        for (uint32_t k = 0; k < i; k++) {
            const lifetime *b = &l.list.data[of[k]], *y = &back.list.data[k];
            MUST(meet(a->lower, a->upper, b->lower, b->upper) ==
                 meet(x->lower, x->upper, y->lower, y->upper));
        }
    }
    lifetimes_deinit(&back);
    trace_deinit(&t);
    lifetimes_deinit(&l);
}
END_TEST

START_TEST(what_lives_at_the_end_lives_to_the_end)
{
    trace t = read_text(
        "csv", "event,address,requested_bytes,tensor,device\nalloc,1,10,a,0\nalloc,1,5,b,1\nalloc,2,20,,0\n"
               "free,1,10,,0\nalloc,1,30,a,0\n");
    lifetimes l;
    ck_assert_int_eq(lifetimes_of_trace(&t, 0, &l, NULL), HR_OK);
    ck_assert_uint_eq(l.list.count, 3);
    ck_assert(is_lifetime(&l, 0, "0:a", 0, 3, 10) && is_lifetime(&l, 1, "1", 2, 5, 20));
    ck_assert(is_lifetime(&l, 2, "2:a", 4, 5, 30));
    lifetimes_deinit(&l);
    trace_deinit(&t);
}
END_TEST

// ---- damage ---------------------------------------------------------------------------------------------------

static const char sample[] =
    "id,start,end,size,alignment,hint,gaps,offset\n\"a,\"\"\",0,9,128,64,256,2-3 5-9@16:32,1024\n"
    "b,3,12,1,,,,\nc,9,18446744073709551613,99,2,,12-13,7\n";

START_TEST(damage_is_an_error_or_another_trace)
{
    survives_damage(&trace_format_lifetimes, sample, sizeof sample - 1);
}
END_TEST

START_TEST(short_memory_and_failing_files_are_errors)
{
    survives_short_memory(sample, sizeof sample - 1);
    survives_failing_files(sample, sizeof sample - 1);
    lifetimes l = read_lifetimes(sample);
    const int64_t live = hr_host_mem_live();
    for (int memory = 0; memory < 2; memory++) {
        bool failed = true;
        for (uint64_t nth = 1; failed; nth++) {
            (void)(memory ? hr_host_mem_fail_at(nth) : file_fail_at(nth));
            hr_status status = lifetimes_write(path, &l, NULL, NULL);
            failed = (memory ? hr_host_mem_fail_at(0) : file_fail_at(0)) >= nth;
            ck_assert_int_eq(status, !failed ? HR_OK : memory ? HR_NOMEM : HR_WRITE);
            ck_assert_int_eq(hr_host_mem_live(), live);
        }
    }
    lifetimes_deinit(&l);
}
END_TEST

START_TEST(a_trace_that_memory_is_too_short_for_gives_no_lifetimes)
{
    trace t = read_text("lifetimes", sample);
    const int64_t live = hr_host_mem_live();
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        lifetimes l;
        (void)hr_host_mem_fail_at(nth);
        hr_status status = lifetimes_of_trace(&t, 0, &l, NULL);
        uint32_t births[8], deaths[8];
        status = status == HR_OK ? lifetimes_instants(&l, births, deaths, NULL) : status;
        failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert_int_eq(status, failed ? HR_NOMEM : HR_OK);
        lifetimes_deinit(&l);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    trace_deinit(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace_lifetimes");
    TCase *all = tcase_create("lifetimes");
    tcase_add_checked_fixture(all, make_file, remove_file);
    tcase_add_test(all, columns_have_all_their_names);
    tcase_add_test(all, gaps_alignments_hints_and_offsets_are_read);
    tcase_add_test(all, mistakes_are_named_with_line_and_column);
    tcase_add_loop_test(all, what_is_written_is_read, 0, 50);
    tcase_add_loop_test(all, instants_meet_when_lifetimes_do, 0, 50);
    tcase_add_loop_test(all, a_trace_of_lifetimes_has_the_same_meetings, 0, 50);
    tcase_add_test(all, what_lives_at_the_end_lives_to_the_end);
    tcase_add_test(all, damage_is_an_error_or_another_trace);
    tcase_add_test(all, short_memory_and_failing_files_are_errors);
    tcase_add_test(all, a_trace_that_memory_is_too_short_for_gives_no_lifetimes);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
