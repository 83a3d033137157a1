// SPDX-License-Identifier: Apache-2.0
// What plans know of data sets: files are opened once however many ask and however the knobs hold them, again when one of them has
// changed in any way, and nobody waits for files that others ask about.
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "data/data_files.h"
#include "insight/host_facts.h"

static atomic_int openings;
static bool held_up; // the first opening waits for `go_on`
static sem_t began, go_on;

hr_status __real_data_facts_read(const hr_knobs *knobs, const data_form *model, data_facts *out, hr_err *err);
hr_status __wrap_data_facts_read(const hr_knobs *knobs, const data_form *model, data_facts *out, hr_err *err);

hr_status __wrap_data_facts_read(const hr_knobs *knobs, const data_form *model, data_facts *out, hr_err *err)
{
    if (atomic_fetch_add(&openings, 1) == 0 && held_up) {
        sem_post(&began);
        sem_wait(&go_on);
    }
    return __real_data_facts_read(knobs, model, out, err);
}

static const data_form images = {.count = 2,
                                 .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {32, 32, 3}},
                                          {.type = DATA_IDS, .is_label = true, .classes = 10}}};
static const data_form rows = {.count = 2,
                               .slot = {{.type = DATA_FLOAT, .rank = 1, .dim = {2}},
                                        {.type = DATA_IDS, .is_label = true, .classes = 10}}};
static data_folder folder;

static void set_up(void)
{
    folder = data_folder_make();
    atomic_store(&openings, 0);
    held_up = false;
}

static void tear_down(void)
{
    data_folder_remove(&folder);
}

static void write_table(const char *leaf, const char *text)
{
    data_write(&folder, leaf, text, strlen(text));
}

static data_facts facts_for(const hr_knobs *knobs, const data_form *form)
{
    data_facts facts;
    hr_err err = {0};
    ck_assert_msg(host_facts_for(knobs, form, &facts, &err) == HR_OK, "%s", err.sentence);
    return facts;
}

// What is stamped with the same tick of the clock cannot be told apart.
static void wait_a_tick(void)
{
    const struct timespec tick = {.tv_nsec = 30000000};
    (void)nanosleep(&tick, NULL);
}

START_TEST(one_opening_tells_of_every_array)
{
    static const char *const arrays[] = {"off", "uint8", "float32", "float64"}, *const loads[] = {
                                                                                    "stream", "eager_stack"};
    char path[FILE_NAME_MAX];
    cifar_pack_set(data_folder_file(&folder, "cifar-10-binary.tar.gz", path), PACK_TAR_GZIP, 20, 5);
    for (int k = 0; k < 8; k++) {
        hr_knobs knobs = data_knobs("cifar10", path);
        ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_ARRAY, arrays[k % 4], NULL), HR_OK);
        ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_MODE, loads[k / 4], NULL), HR_OK);
        const data_facts had = facts_for(&knobs, &images);
        data_facts direct;
        ck_assert_int_eq(__real_data_facts_read(&knobs, &images, &direct, NULL), HR_OK);
        ck_assert_ptr_eq(had.source.ops, direct.source.ops);
        ck_assert_uint_eq(had.source.held_bytes, direct.source.held_bytes);
        ck_assert_uint_eq(had.source.opening_bytes, direct.source.opening_bytes);
        ck_assert_uint_eq(had.source.raw_bytes, direct.source.raw_bytes);
        ck_assert_uint_eq(had.source.room_bytes, direct.source.room_bytes);
        ck_assert_uint_eq(had.source.scratch_bytes, direct.source.scratch_bytes);
        ck_assert_mem_eq(had.raw_bytes, direct.raw_bytes, sizeof had.raw_bytes);
        ck_assert_uint_eq(had.source.info.train_samples, 20);
    }
    ck_assert_int_eq(atomic_load(&openings), 1);
}
END_TEST

// As long as before, and its time set back: the time of its change is not to be set.
START_TEST(a_file_whose_time_was_set_back_is_another)
{
    char path[FILE_NAME_MAX];
    struct stat before;
    write_table("a.csv", "a,b,c\n1,2,3\n1,2,3\n1,2,3\n");
    hr_knobs knobs = data_knobs("csv", data_folder_file(&folder, "a.csv", path));
    ck_assert_uint_eq(facts_for(&knobs, &rows).source.info.train_samples, 2);
    ck_assert_int_eq(stat(path, &before), 0);
    wait_a_tick();
    write_table("a.csv", "a,b,c\n1,2,3\n1,2.000000,3\n");
    const struct timespec times[2] = {before.st_atim, before.st_mtim};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    ck_assert_uint_eq(facts_for(&knobs, &rows).source.info.train_samples, 1);
    ck_assert_int_eq(atomic_load(&openings), 2);
    (void)facts_for(&knobs, &rows);
    ck_assert_int_eq(atomic_load(&openings), 2);
}
END_TEST

// A class of images is a folder in a folder.
START_TEST(a_file_in_a_folder_of_the_folder_counts)
{
    char path[FILE_NAME_MAX], inner[FILE_NAME_MAX + 8];
    write_table("a.csv", "a,b,c\n1,2,3\n1,2,3\n");
    (void)snprintf(inner, sizeof inner, "%s", data_folder_file(&folder, "class", path));
    ck_assert_int_eq(mkdir(inner, 0700), 0);
    (void)snprintf(inner, sizeof inner, "%s/x", path);
    FILE *f = fopen(inner, "w");
    ck_assert_int_eq(fclose(f), 0);
    hr_knobs knobs = data_knobs("csv", folder.path);
    (void)facts_for(&knobs, &rows);
    (void)facts_for(&knobs, &rows);
    ck_assert_int_eq(atomic_load(&openings), 1);
    f = fopen(inner, "w");
    ck_assert_int_eq(fputs("more", f) < 0, false);
    ck_assert_int_eq(fclose(f), 0);
    (void)facts_for(&knobs, &rows);
    ck_assert_int_eq(atomic_load(&openings), 2);
    ck_assert_int_eq(unlink(inner), 0);
    ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

// No file of it changes when there are descriptors again.
START_TEST(what_is_no_fault_of_the_files_is_not_remembered)
{
    char path[FILE_NAME_MAX];
    struct rlimit limit;
    data_facts facts;
    write_table("a.csv", "a,b,c\n1,2,3\n1,2,3\n");
    hr_knobs knobs = data_knobs("csv", data_folder_file(&folder, "a.csv", path));
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    const hr_status status = host_facts_for(&knobs, &rows, &facts, NULL);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_ne(status, HR_OK);
    (void)facts_for(&knobs, &rows);
}
END_TEST

static void *ask_for(void *argument)
{
    (void)facts_for(argument, &rows);
    return NULL;
}

// Seconds may go by over an archive.
START_TEST(nobody_waits_for_files_of_others)
{
    char path[FILE_NAME_MAX];
    pthread_t slow, same;
    write_table("a.csv", "a,b,c\n1,2,3\n1,2,3\n");
    write_table("b.csv", "a,b,c\n1,2,3\n1,2,3\n");
    hr_knobs a = data_knobs("csv", data_folder_file(&folder, "a.csv", path));
    hr_knobs b = data_knobs("csv", data_folder_file(&folder, "b.csv", path));
    ck_assert_int_eq(sem_init(&began, 0, 0), 0);
    ck_assert_int_eq(sem_init(&go_on, 0, 0), 0);
    held_up = true;
    ck_assert_int_eq(pthread_create(&slow, NULL, ask_for, &a), 0);
    sem_wait(&began);
    ck_assert_int_eq(pthread_create(&same, NULL, ask_for, &a), 0);
    (void)facts_for(&b, &rows);
    sem_post(&go_on);
    ck_assert_int_eq(pthread_join(slow, NULL), 0);
    ck_assert_int_eq(pthread_join(same, NULL), 0);
    ck_assert_int_eq(atomic_load(&openings), 2); // the third waited for the first, and has what it found
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("host facts");
    tcase_set_timeout(tests, 20);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, one_opening_tells_of_every_array);
    tcase_add_test(tests, a_file_whose_time_was_set_back_is_another);
    tcase_add_test(tests, a_file_in_a_folder_of_the_folder_counts);
    tcase_add_test(tests, what_is_no_fault_of_the_files_is_not_remembered);
    tcase_add_test(tests, nobody_waits_for_files_of_others);
    Suite *suite = suite_create("host facts");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
