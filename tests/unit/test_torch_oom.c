// SPDX-License-Identifier: Apache-2.0
// PyTorch's out-of-memory message in every form: beside tests/memory/test_caching_streams.c, which compares it with
// PyTorch's own, what needs other processes, limits and odd sizes.
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "formats/torch_oom.h"

static heap_snapshot snapshot;
static text line;

static void setup(void)
{
    static heap_chunk chunks[] = {
        {.size_bytes = 3 * HR_MIB, .in_use = true},
        {.size_bytes = HR_MIB, .in_use = true, .pending = true},
        {.size_bytes = 16 * HR_MIB},
    };
    snapshot = (heap_snapshot){.counters = {.pool_bytes = 20 * HR_MIB},
                               .refusal = {.any = true, .requested_bytes = 21, .driver_bytes = 22 * HR_MIB}};
    snapshot.chunks.data = chunks;
    snapshot.chunks.count = sizeof chunks / sizeof *chunks;
    line = (text){0};
}

static void teardown(void)
{
    text_deinit(&line);
}

static const char *written(const torch_driver *d)
{
    line.length = 0;
    torch_oom_write(&snapshot, d, &line);
    ck_assert(!line.failed);
    return line.data;
}

START_TEST(processes_and_the_allowed_share_are_named)
{
    const torch_process processes[] = {{.pid = 3936, .bytes = 5776689725},
                                       {.is_own = true, .bytes = 2 * HR_GIB + HR_GIB / 5}};
    const torch_driver d = {.device = 2,
                            .total_bytes = 8 * HR_GIB,
                            .free_bytes = 16127099,
                            .processes = processes,
                            .process_count = 2,
                            .allowed_bytes = 3 * HR_GIB};
    ck_assert_str_eq(
        written(&d),
        "CUDA out of memory. Tried to allocate 22.00 MiB. GPU 2 has a total capacity of 8.00 GiB of which "
        "15.38 MiB is free. Process 3936 has 5.38 GiB memory in use. Including non-PyTorch memory, this "
        "process has 2.20 GiB memory in use. 3.00 GiB allowed; Of the allocated memory 3.00 MiB is "
        "allocated by PyTorch, and 17.00 MiB is reserved by PyTorch but unallocated. If reserved but "
        "unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid "
        "fragmentation.  See documentation for Memory Management  "
        "(https://docs.pytorch.org/docs/stable/notes/"
        "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)");
}
END_TEST

START_TEST(sizes_are_written_as_pytorch_writes_them)
{
    static const struct {
        uint64_t bytes;
        const char *words;
    } rows[] = {
        {0, "0 bytes"},
        {1024, "1024 bytes"},
        {1025, "1.00 KiB"},
        {HR_MIB, "1024.00 KiB"},
        {HR_MIB + 1, "1.00 MiB"},
        {HR_GIB, "1024.00 MiB"},
        {HR_GIB + HR_GIB / 100, "1.01 GiB"},
        {80 * UINT64_C(1024) * HR_GIB, "81920.00 GiB"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char expected[64];
        const torch_driver d = {.total_bytes = HR_GIB, .free_bytes = rows[k].bytes};
        (void)snprintf(expected, sizeof expected, " of which %s is free. ", rows[k].words);
        ck_assert_msg(strstr(written(&d), expected) != NULL, "%s", line.data);
    }
}
END_TEST

START_TEST(the_tip_knows_of_expandable_segments)
{
    const torch_driver d = {.total_bytes = HR_GIB, .expandable_segments = true};
    ck_assert_ptr_nonnull(strstr(written(&d), "but unallocated. expandable_segments is enabled. If instead"));
    ck_assert_ptr_null(strstr(line.data, "try setting"));
}
END_TEST

START_TEST(an_exabyte_is_a_sentence_of_its_own)
{
    const torch_driver d = {.total_bytes = HR_GIB};
    snapshot.refusal.requested_bytes = UINT64_C(1) << 60;
    ck_assert_str_eq(written(&d), "CUDA out of memory. Tried to allocate more than 1EB memory.");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("torch_oom");
    TCase *messages = tcase_create("messages");
    tcase_add_checked_fixture(messages, setup, teardown);
    tcase_add_test(messages, processes_and_the_allowed_share_are_named);
    tcase_add_test(messages, sizes_are_written_as_pytorch_writes_them);
    tcase_add_test(messages, the_tip_knows_of_expandable_segments);
    tcase_add_test(messages, an_exabyte_is_a_sentence_of_its_own);
    suite_add_tcase(suite, messages);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
