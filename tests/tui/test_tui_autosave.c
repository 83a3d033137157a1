// SPDX-License-Identifier: Apache-2.0
// Whose autosaves are removed: those of workbenches of this machine that are no more, whole or half-written.
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/tui/autosave.h"
#include "tests/tui/suite.h"

static char folder[] = "/tmp/headroom-autosave-XXXXXX";

static pid_t dead(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    return pid;
}

// Whether the file is there after a workbench has looked for its own name.
static bool stays(const char *name)
{
    char path[PATH_MAX], state[PATH_MAX], own[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(state, sizeof state, "%s/workbench", folder);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fclose(f);
    autosave_name(state, own, sizeof own);
    ck_assert_ptr_nonnull(strstr(own, folder));
    const bool there = access(path, F_OK) == 0;
    (void)unlink(path);
    return there;
}

START_TEST(only_what_nobody_here_needs_is_removed)
{
    char host[HOST_NAME_MAX + 1] = "", name[NAME_MAX];
    const int gone = (int)dead();
    ck_assert_int_eq(gethostname(host, sizeof host - 1), 0);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(name, sizeof name, "autosave-%s-%d.save", host, gone);
    ck_assert(!stays(name));
    snprintf(name, sizeof name, "autosave-%s-%d.save.%d-0.tmp", host, gone, gone + 1);
    ck_assert(!stays(name));
    snprintf(name, sizeof name, "autosave-%s-%d.save", host, (int)getppid());
    ck_assert(stays(name));
    snprintf(name, sizeof name, "autosave-%sx-%d.save", host, gone); // another machine's
    ck_assert(stays(name));
    snprintf(name, sizeof name, "autosave-%s-x-%d.save", host, gone);
    ck_assert(stays(name));
    snprintf(name, sizeof name, "autosave-%s-%d.saved", host, gone);
    ck_assert(stays(name));
    snprintf(name, sizeof name, "autosave-%s-%d.save.mine", host, gone);
    ck_assert(stays(name));
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(two_workbenches_have_two_names)
{
    char path[PATH_MAX], pid[32];
    autosave_name("/tmp/workbench", path, sizeof path);
    snprintf(pid, sizeof pid, "-%d.save", (int)getpid());
    ck_assert_ptr_nonnull(strstr(path, pid));
    autosave_name(NULL, path, sizeof path);
    ck_assert_str_eq(path, "");
    autosave_name("/tmp/workbench", path, 20);
    ck_assert_str_eq(path, "");
}
END_TEST

SUITE_MAIN("tui autosave", only_what_nobody_here_needs_is_removed, two_workbenches_have_two_names)
