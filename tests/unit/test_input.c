// SPDX-License-Identifier: Apache-2.0
// Streaming input against the same bytes lying whole in memory: every call, in any order, from a file, from a pipe's
// short reads and from memory.
#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/host_mem.h"
#include "base/input.h"

enum { BYTES = 3 << 20, ROUNDS = 4, LINE_MAX = 100 };

// Check writes a record at each of its own assertions: too slow for millions.
#define MUST(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            ck_abort_msg("%s", #condition);                                                                  \
        }                                                                                                    \
    } while (0)

static char folder[64], path[96];
static char *whole; // BYTES of lines of many lengths
static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state = hash64_mix(state, 3);
    return state % below;
}

static void set_up(void)
{
    state = 11;
    snprintf(folder, sizeof folder, "/tmp/headroom-input-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    whole = malloc(BYTES);
    for (size_t k = 0; k < BYTES; k++) {
        uint64_t byte = draw(70);
        whole[k] = byte == 0 ? '\n' : byte == 1 ? '\r' : byte == 2 ? '\0' : (char)(' ' + byte);
    }
    memset(whole + BYTES / 2, 'x', 300 << 10); // a line longer than the buffer
    FILE *file = fopen(path, "wb");
    ck_assert_uint_eq(fwrite(whole, 1, BYTES, file), BYTES);
    fclose(file);
}

static void tear_down(void)
{
    free(whole);
    (void)unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

// The next line of whole[at ..] as the header says; its length in the file goes to *passed.
static size_t plain_line(size_t at, size_t max, size_t *passed)
{
    const char *end = memchr(whole + at, '\n', BYTES - at);
    size_t length = end == NULL ? BYTES - at : (size_t)(end - (whole + at));
    *passed = length + (end != NULL);
    length = smaller(length, max);
    return length > 0 && whole[at + length - 1] == '\r' ? length - 1 : length;
}

static size_t check_line(input *in, size_t at)
{
    size_t length = 0, passed, max = draw(10) == 0 ? 3 : LINE_MAX + 100;
    const char *line = input_line(in, max, &length);
    if (at == BYTES) {
        MUST(line == NULL);
        return at;
    }
    size_t expected = plain_line(at, max, &passed);
    MUST(line != NULL);
    MUST(length == expected);
    MUST(memcmp(line, whole + at, length) == 0);
    return at + passed;
}

static size_t check_piece(input *in, size_t at)
{
    size_t wanted = draw(20) == 0 ? draw(600 << 10) : draw(300), left = BYTES - at;
    switch (draw(3)) {
    case 0: {
        size_t ahead = input_ahead(in, wanted);
        MUST(ahead == smaller(wanted, left));
        MUST(memcmp(input_here(in), whole + at, ahead) == 0);
        input_pass(in, ahead / 2);
        return at + ahead / 2;
    }
    case 1: {
        const char *taken = input_take(in, wanted);
        MUST((taken != NULL) == (wanted <= left));
        MUST(taken == NULL || memcmp(taken, whole + at, wanted) == 0);
        return taken == NULL ? at : at + wanted;
    }
    default:
        MUST(input_skip(in, wanted) == (wanted <= left));
        return at + smaller(wanted, left);
    }
}

// Any calls until the end. Lines that may come cut are not mixed with others, as the header asks.
static void check_all(input *in, bool lines)
{
    size_t at = 0;
    while (at < BYTES) {
        at = lines ? check_line(in, at) : check_piece(in, at);
        MUST(lines || input_offset(in) == at);
    }
    size_t length;
    ck_assert_ptr_null(input_line(in, LINE_MAX, &length));
    ck_assert_uint_eq(input_ahead(in, 1), 0);
    ck_assert_ptr_null(input_take(in, 1));
    ck_assert_ptr_nonnull(input_take(in, 0));
    ck_assert(!input_skip(in, 1));
    ck_assert_int_eq(input_status(in, NULL), HR_OK);
    ck_assert_uint_eq(input_offset(in), BYTES);
}

START_TEST(what_comes_is_what_lies_in_the_file)
{
    int64_t live = hr_host_mem_live();
    for (int round = 0; round < ROUNDS; round++) {
        input in;
        ck_assert_int_eq(input_open(&in, path, NULL), HR_OK);
        check_all(&in, round % 2 == 0);
        input_close(&in);
        input_of_memory(&in, "memory", whole, BYTES);
        check_all(&in, round % 2 == 0);
        input_close(&in);
    }
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

// A pipe that a shell hands over gives what its writer has written so far.
START_TEST(short_reads_change_nothing)
{
    int ends[2];
    char name[32];
    ck_assert_int_eq(pipe(ends), 0);
    (void)snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    pid_t writer = fork();
    ck_assert_int_ge(writer, 0);
    if (writer == 0) {
        FILE *to = fdopen(ends[1], "wb");
        for (size_t at = 0, piece; at < BYTES; at += piece) {
            piece = smaller(1 + draw(5000), BYTES - at);
            (void)fwrite(whole + at, 1, piece, to);
            (void)fflush(to);
        }
        fclose(to);
        _exit(0);
    }
    input in;
    ck_assert_int_eq(close(ends[1]), 0);
    ck_assert_int_eq(input_open(&in, name, NULL), HR_OK);
    ck_assert_int_eq(close(ends[0]), 0);
    check_all(&in, false);
    input_close(&in);
}
END_TEST

START_TEST(no_piece_is_too_long_for_the_largest)
{
    input in;
    ck_assert_int_eq(input_open(&in, path, NULL), HR_OK);
    ck_assert_uint_eq(input_ahead(&in, INPUT_PIECE_MAX), BYTES);
    ck_assert(memcmp(input_here(&in), whole, BYTES) == 0);
    input_close(&in);
}
END_TEST

START_TEST(an_empty_input_ends_at_once)
{
    input in;
    size_t length;
    input_of_memory(&in, "memory", "", 0);
    ck_assert_ptr_null(input_line(&in, LINE_MAX, &length));
    ck_assert_uint_eq(input_ahead(&in, 4), 0);
    ck_assert_int_eq(input_status(&in, NULL), HR_OK);
    input_close(&in);
}
END_TEST

START_TEST(what_is_no_file_cannot_be_opened)
{
    input in;
    hr_err err = {0};
    ck_assert_int_eq(input_open(&in, "/nowhere/at/all", &err), HR_READ);
    ck_assert_ptr_nonnull(strstr(err.sentence, "/nowhere/at/all: cannot be opened: "));
    ck_assert_int_eq(input_open(&in, folder, &err), HR_READ);
    ck_assert_ptr_nonnull(strstr(err.sentence, "it is a folder"));
}
END_TEST

// Reads everything in long pieces, so that the buffer grows; what was given before a failure is right.
static hr_status read_all(hr_err *err)
{
    input in;
    hr_status status = input_open(&in, path, err);
    if (status != HR_OK) {
        return status;
    }
    size_t at = 0;
    for (size_t ahead; (ahead = input_ahead(&in, 1 << 20)) > 0; at += ahead) {
        ck_assert(memcmp(input_here(&in), whole + at, ahead) == 0);
        input_pass(&in, ahead);
    }
    status = input_status(&in, err);
    ck_assert(status != HR_OK || at == BYTES);
    ck_assert_uint_eq(input_ahead(&in, 1), 0); // also after a failure
    input_close(&in);
    return status;
}

START_TEST(every_failure_is_told)
{
    int64_t live = hr_host_mem_live();
    for (int of_files = 0; of_files < 2; of_files++) {
        uint64_t nth = 1;
        for (bool failed = true; failed; nth++) {
            hr_err err = {0};
            (void)(of_files ? file_fail_at(nth) : hr_host_mem_fail_at(nth));
            hr_status status = read_all(&err);
            failed = (of_files ? file_fail_at(0) : hr_host_mem_fail_at(0)) >= nth;
            ck_assert_int_eq(status, !failed ? HR_OK : of_files ? HR_READ : HR_NOMEM);
            ck_assert_int_eq(strncmp(err.sentence, path, strlen(path)) == 0, failed);
            ck_assert_int_eq(hr_host_mem_live(), live);
        }
        ck_assert_uint_gt(nth, of_files ? 5 : 3);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("input");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, what_comes_is_what_lies_in_the_file);
    tcase_add_test(tests, short_reads_change_nothing);
    tcase_add_test(tests, no_piece_is_too_long_for_the_largest);
    tcase_add_test(tests, an_empty_input_ends_at_once);
    tcase_add_test(tests, what_is_no_file_cannot_be_opened);
    tcase_add_test(tests, every_failure_is_told);
    Suite *suite = suite_create("input");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
