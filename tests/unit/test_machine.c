// SPDX-License-Identifier: Apache-2.0
// What a process may use: the affinity mask and the control group count, of both versions, with the groups above.
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "headroom/units.h"

#include "base/machine.h"

static char root[64];

static void put(const char *path, const char *words)
{
    char whole[320];
    (void)snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *f = fopen(whole, "w");
    ck_assert_msg(f != NULL, "%s", whole);
    ck_assert_int_ge(fputs(words, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static void setup(void)
{
    (void)strcpy(root, "/tmp/headroom-machine-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    machine_read_below(root);
    put("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\nMemAvailable:    8388608 kB\n");
}

static void teardown(void)
{
    char command[96];
    machine_read_below("");
    (void)snprintf(command, sizeof command, "rm -r %s", root);
    ck_assert_int_eq(system(command), 0);
}

static size_t kernel_cpus; // of a machine that is put in this one's place; 0: this one

// As the kernel and the library behind it: a mask that is smaller than the machine is refused.
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *mask)
{
    if (kernel_cpus == 0) {
        memset(mask, 0, bytes);
        return syscall(SYS_sched_getaffinity, pid, bytes, mask) < 0 ? -1 : 0;
    }
    if (8 * bytes < kernel_cpus) {
        errno = EINVAL;
        return -1;
    }
    CPU_ZERO_S(bytes, mask);
    for (size_t k = 0; k < kernel_cpus; k++) {
        CPU_SET_S(k, bytes, mask);
    }
    return 0;
}

START_TEST(every_processor_of_a_large_machine_counts)
{
    static const size_t cpus[] = {1, 1024, 1025, 1792, 8192, 100000};
    for (size_t k = 0; k < sizeof cpus / sizeof *cpus; k++) {
        kernel_cpus = cpus[k];
        ck_assert_uint_eq(hr_machine_cores(), cpus[k]);
    }
    kernel_cpus = 0;
}
END_TEST

static uint32_t mask_count(void)
{
    cpu_set_t allowed;
    ck_assert_int_eq(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    return (uint32_t)CPU_COUNT(&allowed);
}

START_TEST(without_groups_the_mask_and_the_memory_count)
{
    ck_assert_uint_eq(hr_machine_cores(), mask_count());
    ck_assert_uint_eq(machine_cores_lately(), mask_count());
    ck_assert_uint_eq(hr_machine_memory_bytes(), 16 * HR_GIB);
    ck_assert_uint_eq(hr_machine_available_bytes(), 8 * HR_GIB);
    ck_assert_uint_eq(machine_share_bytes(), 204 * 64 * HR_MIB); // 12.8 GiB in whole 64 MiB
}
END_TEST

START_TEST(the_affinity_mask_counts)
{
    cpu_set_t before, one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (size_t k = 0; k < CPU_SETSIZE && CPU_COUNT(&one) == 0; k++) {
        if (CPU_ISSET(k, &before)) {
            CPU_SET(k, &one);
        }
    }
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ck_assert_uint_eq(hr_machine_cores(), 1);
    ck_assert_int_eq(sched_setaffinity(0, sizeof before, &before), 0);
}
END_TEST

static const struct {
    const char *quota;
    uint32_t most;
} quotas[] = {{"max 100000\n", 1000}, {"100000 100000\n", 1}, {"50000 100000\n", 1},
              {"190000 100000\n", 1}, {"0 0\n", 1000},        {"", 1000},
              {"nonsense\n", 1000}};

START_TEST(the_quota_of_a_group_counts_in_whole_processors)
{
    put("/proc/self/cgroup", "0::/user/box\n");
    put("/sys/fs/cgroup/user/box/cpu.max", quotas[_i].quota);
    const uint32_t mask = mask_count();
    ck_assert_uint_eq(hr_machine_cores(), quotas[_i].most < mask ? quotas[_i].most : mask);
}
END_TEST

START_TEST(limits_of_the_groups_above_hold_as_well)
{
    put("/proc/self/cgroup", "0::/user/box\n");
    put("/sys/fs/cgroup/user/box/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/user/cpu.max", "100000 100000\n");
    put("/sys/fs/cgroup/user/box/memory.max", "max\n");
    put("/sys/fs/cgroup/user/box/memory.current", "1\n");
    put("/sys/fs/cgroup/user/memory.max", "4294967296\n");
    put("/sys/fs/cgroup/user/memory.current", "1073741824\n");
    ck_assert_uint_eq(hr_machine_cores(), 1);
    ck_assert_uint_eq(hr_machine_memory_bytes(), 4 * HR_GIB);
    ck_assert_uint_eq(hr_machine_available_bytes(), 3 * HR_GIB);
    ck_assert_uint_eq(machine_share_bytes(), 51 * 64 * HR_MIB);
}
END_TEST

START_TEST(groups_of_version_one_count_too)
{
    put("/proc/self/cgroup", "12:memory:/box\n4:cpu,cpuacct:/box\n3:cpuset:/other\n");
    put("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "100000\n");
    put("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "2147483648\n");
    put("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "3147483648\n"); // beyond it
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    ck_assert_uint_eq(hr_machine_cores(), 1);
    ck_assert_uint_eq(hr_machine_memory_bytes(), 2 * HR_GIB);
    ck_assert_uint_eq(hr_machine_available_bytes(), 0);
}
END_TEST

START_TEST(a_machine_that_says_nothing_is_a_small_one)
{
    machine_read_below("/nowhere");
    ck_assert_uint_ge(hr_machine_cores(), 1);
    ck_assert_uint_eq(hr_machine_memory_bytes(), UINT64_MAX);
    ck_assert_uint_eq(hr_machine_available_bytes(), UINT64_MAX);
    ck_assert_uint_eq(machine_share_bytes(), 51 * 64 * HR_MIB);
    machine_read_below(root);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("machine");
    TCase *all = tcase_create("promises");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, without_groups_the_mask_and_the_memory_count);
    tcase_add_test(all, the_affinity_mask_counts);
    tcase_add_test(all, every_processor_of_a_large_machine_counts);
    tcase_add_loop_test(all, the_quota_of_a_group_counts_in_whole_processors, 0,
                        sizeof quotas / sizeof *quotas);
    tcase_add_test(all, limits_of_the_groups_above_hold_as_well);
    tcase_add_test(all, groups_of_version_one_count_too);
    tcase_add_test(all, a_machine_that_says_nothing_is_a_small_one);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
