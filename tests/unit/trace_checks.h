// SPDX-License-Identifier: Apache-2.0
// What the tests of trace readers share: reading from memory, damage of every kind, and memory that runs out.
#ifndef TESTS_UNIT_TRACE_CHECKS_H
#define TESTS_UNIT_TRACE_CHECKS_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host_mem.h"
#include "formats/formats.h"

#define MUST(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            ck_abort_msg("%s", #condition);                                                                  \
        }                                                                                                    \
    } while (0)

static inline hr_status read_bytes(const char *bytes, size_t count, trace *t, hr_err *err)
{
    input in;
    input_of_memory(&in, "file", bytes, count);
    return trace_read_input(&in, t, err);
}

// The trace of a text; it must be one of `format`, and keep the promises of trace_check.
static inline trace read_text(const char *format, const char *content)
{
    trace t;
    hr_err err = {0};
    hr_status status = read_bytes(content, strlen(content), &t, &err);
    ck_assert_msg(status == HR_OK, "%s", err.sentence);
    ck_assert_str_eq(t.format, format);
    ck_assert_msg(trace_check(&t, &err) == HR_OK, "%s", err.sentence);
    return t;
}

static inline void refuses(const char *content, const char *sentence)
{
    trace t;
    hr_err err = {0};
    ck_assert_int_eq(read_bytes(content, strlen(content), &t, &err), HR_READ);
    ck_assert_str_eq(err.sentence, sentence);
    ck_assert_ptr_nonnull(strstr(err.hint, "'file'")); // a command about the file
    ck_assert_uint_eq(t.events.count, 0);
}

static inline bool has_event(const trace *t, uint32_t at, trace_kind kind, uint64_t bytes, uint32_t block)
{
    return at < t->events.count && t->events.data[at].kind == kind && t->events.data[at].bytes == bytes &&
           t->events.data[at].block == block;
}

static inline const char *name_at(const trace *t, uint32_t at)
{
    return intern_text(&t->names, t->events.data[at].name);
}

// Reads what may be anything: an error or a trace that keeps its promises, and no memory left behind.
static inline hr_status read_anything(const trace_format *row, const char *bytes, size_t count)
{
    const int64_t live = hr_host_mem_live();
    trace t = {0};
    input in;
    hr_err err = {0};
    input_of_memory(&in, "file", bytes, count);
    (void)row->recognise(bytes, count);
    hr_status status = row->read(&in, &t, &err);
    MUST(status == HR_OK || (status == HR_READ && err.sentence[0] != '\0'));
    MUST(status != HR_OK || trace_check(&t, &err) == HR_OK);
    trace_deinit(&t);
    MUST(hr_host_mem_live() == live);
    return status;
}

// Cut behind every byte, and with every bit turned over. The bytes lie in memory of their own, so that a sanitizer sees
// who reads beyond them.
static inline void survives_damage(const trace_format *row, const char *bytes, size_t count)
{
    for (size_t cut = 0; cut <= count; cut++) {
        char *copy = malloc(cut + 1);
        memcpy(copy, bytes, cut);
        char *exact = realloc(copy, cut > 0 ? cut : 1);
        (void)read_anything(row, exact, cut);
        free(exact);
    }
    char *copy = malloc(count);
    memcpy(copy, bytes, count);
    for (size_t bit = 0; bit < 8 * count; bit++) {
        copy[bit / 8] = (char)(copy[bit / 8] ^ (1 << bit % 8));
        (void)read_anything(row, copy, count);
        copy[bit / 8] = bytes[bit / 8];
    }
    free(copy);
}

// Every request for host memory fails once: NOMEM, nothing kept, nothing lost.
static inline void survives_short_memory(const char *bytes, size_t count)
{
    const int64_t live = hr_host_mem_live();
    bool failed = true;
    uint64_t nth = 1;
    for (; failed; nth++) {
        trace t;
        hr_err err = {0};
        (void)hr_host_mem_fail_at(nth);
        hr_status status = read_bytes(bytes, count, &t, &err);
        failed = hr_host_mem_fail_at(0) >= nth;
        MUST(status == (failed ? HR_NOMEM : HR_OK));
        MUST(!failed || t.events.count == 0);
        trace_deinit(&t);
        MUST(hr_host_mem_live() == live);
    }
    ck_assert_uint_gt(nth, 2);
}

// A file of the bytes, read from disk with every file operation failing once.
static inline void survives_failing_files(const char *bytes, size_t count)
{
    char path[] = "/tmp/headroom-trace-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, count), (ssize_t)count);
    close(fd);
    const int64_t live = hr_host_mem_live();
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        trace t;
        (void)file_fail_at(nth);
        hr_status status = trace_read(path, &t, NULL);
        failed = file_fail_at(0) >= nth;
        MUST(status == (failed ? HR_READ : HR_OK));
        trace_deinit(&t);
        MUST(hr_host_mem_live() == live);
    }
    unlink(path);
}

// splitmix64
static inline uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline uint64_t below(uint64_t *state, uint64_t bound)
{
    return draw(state) % bound;
}

static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#endif
