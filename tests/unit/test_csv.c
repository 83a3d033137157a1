// SPDX-License-Identifier: Apache-2.0
// Traces as CSV: the promised columns, and a file that is there whole or not at all.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host_mem.h"
#include "formats/csv.h"

enum { POINTS_MAX = 100, MANY = 5000 };

static char folder[64];
static char path[96];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/headroom-csv-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/trace.csv", folder);
}

static void remove_folder(void)
{
    (void)unlink(path);
    ck_assert_int_eq(rmdir(folder), 0); // nothing else was left behind
}

static void describe(void *context, const hr_event *event, event_context *out)
{
    (void)context;
    static const char *const names[] = {"conv1/weights", "a, \"b\""};
    uint32_t tensor = event->u.memory.tensor;
    out->tensor = tensor < 2 ? names[tensor] : NULL;
}

static const event_source source = {.describe = describe, .device_count = 1};

static hr_event memory_event(hr_event_kind kind, uint64_t time_ns, uint32_t tensor)
{
    return (hr_event){
        .kind = (uint8_t)kind,
        .step = 2,
        .time_ns = time_ns,
        .u.memory = {.address = 4096, .requested_bytes = 1000, .allocated_bytes = 1024, .tensor = tensor}};
}

static char *read_trace(void)
{
    char *data;
    size_t bytes;
    ck_assert_int_eq(file_read(path, 1 << 20, &data, &bytes, NULL), HR_OK);
    return data;
}

START_TEST(rows_have_the_promised_columns)
{
    exporter *csv;
    ck_assert_int_eq(exporter_open(path, &source, &csv, NULL), HR_OK);
    const hr_event events[] = {
        memory_event(HR_EVENT_GROW, 1, HR_NO_ID),
        memory_event(HR_EVENT_ALLOC, 2, 0),
        memory_event(HR_EVENT_FREE, 3, 1),
        memory_event(HR_EVENT_OOM, 4, 7),
        memory_event(HR_EVENT_SHRINK, 5, HR_NO_ID),
        {.kind = HR_EVENT_LOG},
        {.kind = HR_EVENT_STEP, .step = 3, .time_ns = 6},
    };
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        exporter_sink(csv, &events[i]);
    }
    ck_assert_int_ne(access(path, F_OK), 0); // not before close
    ck_assert_int_eq(exporter_close(csv, NULL), HR_OK);
    char *data = read_trace();
    ck_assert_str_eq(data, "time_ns,step,event,address,requested_bytes,allocated_bytes,tensor,stream\n"
                           "1,2,grow,4096,1000,1024,,0\n"
                           "2,2,alloc,4096,1000,1024,conv1/weights,0\n"
                           "3,2,free,4096,1000,1024,\"a, \"\"b\"\"\",0\n"
                           "4,2,oom,4096,1000,1024,#7,0\n"
                           "5,2,shrink,4096,1000,1024,,0\n"
                           "6,3,step,0,0,0,,0\n");
    hr_free(data);
}
END_TEST

static hr_status write_many(void)
{
    exporter *csv;
    hr_status status = exporter_open(path, &source, &csv, NULL);
    if (status != HR_OK) {
        return status;
    }
    for (uint32_t i = 0; i < MANY; i++) {
        hr_event e = memory_event(HR_EVENT_ALLOC, i, i % 3);
        exporter_sink(csv, &e);
    }
    return exporter_close(csv, NULL);
}

START_TEST(a_failed_operation_leaves_the_old_file_whole)
{
    FILE *old = fopen(path, "w");
    ck_assert_ptr_nonnull(old);
    fputs(EVENTS_CSV_HEADER "old", old);
    fclose(old);
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        ck_assert_uint_lt(nth, POINTS_MAX);
        (void)file_fail_at(nth);
        hr_status status = write_many();
        failed = file_fail_at(0) >= nth;
        ck_assert_int_eq(status, failed ? HR_WRITE : HR_OK);
        char *data = read_trace();
        ck_assert_int_eq(strcmp(data, EVENTS_CSV_HEADER "old") == 0, failed);
        hr_free(data);
    }
}
END_TEST

START_TEST(short_host_memory_leaves_no_file)
{
    int64_t live = hr_host_mem_live();
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        ck_assert_uint_lt(nth, POINTS_MAX);
        (void)hr_host_mem_fail_at(nth);
        hr_status status = write_many();
        failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert_int_eq(status, failed ? HR_NOMEM : HR_OK);
        ck_assert_int_eq(access(path, F_OK) == 0, !failed);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

START_TEST(a_folder_that_is_missing_is_an_error)
{
    exporter *csv;
    ck_assert_int_eq(exporter_open("/nowhere/at/all.csv", &source, &csv, NULL), HR_WRITE);
    ck_assert_ptr_null(csv);
    ck_assert_int_eq(exporter_close(NULL, NULL), HR_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("csv");
    TCase *files = tcase_create("files");
    tcase_add_checked_fixture(files, make_folder, remove_folder);
    tcase_add_test(files, rows_have_the_promised_columns);
    tcase_add_test(files, a_failed_operation_leaves_the_old_file_whole);
    tcase_add_test(files, short_host_memory_leaves_no_file);
    tcase_add_test(files, a_folder_that_is_missing_is_an_error);
    suite_add_tcase(suite, files);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
