// SPDX-License-Identifier: Apache-2.0
// Promises of base/file.h: read whole within a limit, written whole or not at all whatever fails.
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host_mem.h"

static char folder[64];
static char path[128];

static void make_folder(void)
{
    strcpy(folder, "/tmp/headroom-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
}

static void remove_folder(void)
{
    DIR *d = opendir(folder);
    for (struct dirent *entry; d != NULL && (entry = readdir(d)) != NULL;) {
        char name[400];
        snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
        unlink(name);
    }
    closedir(d);
    rmdir(folder);
}

static unsigned files_in_folder(void)
{
    unsigned count = 0;
    DIR *d = opendir(folder);
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(d);
    return count;
}

static hr_status write_file(const char *to, const char *content, size_t bytes, hr_err *err)
{
    file_writer *w;
    HR_TRY(file_writer_open(to, &w, err));
    for (size_t done = 0; done < bytes;) {
        size_t part = bytes - done < 1000 ? bytes - done : 1000;
        hr_status status = file_writer_add(w, content + done, part, err);
        if (status != HR_OK) {
            file_writer_abandon(w);
            return status;
        }
        done += part;
    }
    return file_writer_commit(w, err);
}

static void assert_content(const char *from, const char *content, size_t bytes)
{
    char *data;
    size_t got;
    hr_err err;
    ck_assert_msg(file_read(from, 1 << 20, &data, &got, &err) == HR_OK, "%s", err.sentence);
    ck_assert_uint_eq(got, bytes);
    ck_assert_mem_eq(data, content, bytes);
    ck_assert_int_eq(data[bytes], '\0');
    hr_free(data);
}

START_TEST(what_is_written_is_read_back)
{
    int64_t live = hr_host_mem_live();
    size_t bytes = (size_t)_i * 33333;
    char *content = hr_calloc(bytes + 1, 1);
    for (size_t i = 0; i < bytes; i++) {
        content[i] = (char)(i * 31);
    }
    hr_err err;
    ck_assert_int_eq(write_file(path, content, bytes, &err), HR_OK);
    assert_content(path, content, bytes);
    ck_assert_uint_eq(files_in_folder(), 1);
    hr_free(content);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

START_TEST(one_large_piece_is_written_too)
{
    static char content[200000];
    memset(content, 'x', sizeof content);
    hr_err err;
    file_writer *w;
    ck_assert_int_eq(file_writer_open(path, &w, &err), HR_OK);
    ck_assert_int_eq(file_writer_add(w, "x", 1, &err), HR_OK);
    ck_assert_int_eq(file_writer_add(w, content, sizeof content - 1, &err), HR_OK);
    ck_assert_int_eq(file_writer_commit(w, &err), HR_OK);
    assert_content(path, content, sizeof content);
}
END_TEST

START_TEST(limit_is_a_limit)
{
    char *data;
    size_t bytes;
    hr_err err;
    ck_assert_int_eq(write_file(path, "12345", 5, &err), HR_OK);
    ck_assert_int_eq(file_read(path, 5, &data, &bytes, &err), HR_OK);
    hr_free(data);
    ck_assert_int_eq(file_read(path, 4, &data, &bytes, &err), HR_READ);
    ck_assert_ptr_null(data);
    ck_assert_ptr_nonnull(strstr(err.sentence, "at most 4 bytes"));
    ck_assert_int_eq(file_read("/dev/zero", 100000, &data, &bytes, &err), HR_READ); // has no size of its own
    ck_assert_int_eq(file_read("/dev/null", 0, &data, &bytes, &err), HR_OK);
    ck_assert_uint_eq(bytes, 0);
    hr_free(data);
}
END_TEST

START_TEST(missing_file_and_folder_are_named)
{
    char *data;
    size_t bytes;
    hr_err err;
    ck_assert_int_eq(file_read(path, 10, &data, &bytes, &err), HR_READ);
    ck_assert_ptr_nonnull(strstr(err.sentence, path));
    ck_assert_ptr_nonnull(strstr(err.sentence, "No such file"));
    ck_assert_int_eq(file_read(folder, 10, &data, &bytes, &err), HR_READ);
    ck_assert_ptr_nonnull(strstr(err.sentence, "folder"));
}
END_TEST

START_TEST(nothing_but_a_file_is_replaced)
{
    file_writer *w;
    hr_err err;
    ck_assert_int_eq(file_writer_open("/dev/null", &w, &err), HR_WRITE);
    ck_assert_ptr_null(w);
    ck_assert_int_eq(file_writer_open(folder, &w, &err), HR_WRITE);
    ck_assert_int_eq(file_writer_open("/nowhere/at/all", &w, &err), HR_WRITE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "/nowhere/at/all"));
    ck_assert_str_eq(err.hint, "mkdir -p '/nowhere/at', or another folder");
    char lengthy[5000];
    memset(lengthy, 'a', sizeof lengthy);
    lengthy[sizeof lengthy - 1] = '\0';
    ck_assert_int_eq(file_writer_open(lengthy, &w, &err), HR_WRITE);
}
END_TEST

START_TEST(abandoned_file_leaves_the_old_one)
{
    hr_err err;
    ck_assert_int_eq(write_file(path, "old", 3, &err), HR_OK);
    file_writer *w;
    ck_assert_int_eq(file_writer_open(path, &w, &err), HR_OK);
    ck_assert_int_eq(file_writer_add(w, "new", 3, &err), HR_OK);
    assert_content(path, "old", 3);
    file_writer_abandon(w);
    file_writer_abandon(NULL);
    assert_content(path, "old", 3);
    ck_assert_uint_eq(files_in_folder(), 1);
}
END_TEST

START_TEST(link_stays_a_link)
{
    char link_path[160];
    struct stat status;
    hr_err err;
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    ck_assert_int_eq(write_file(path, "old", 3, &err), HR_OK);
    ck_assert_int_eq(symlink("file", link_path), 0);
    ck_assert_int_eq(write_file(link_path, "new", 3, &err), HR_OK);
    ck_assert_int_eq(lstat(link_path, &status), 0);
    ck_assert(S_ISLNK(status.st_mode));
    assert_content(path, "new", 3);
}
END_TEST

START_TEST(new_file_has_the_persons_mode)
{
    struct stat status;
    hr_err err;
    mode_t old = umask(027);
    ck_assert_int_eq(write_file(path, "x", 1, &err), HR_OK);
    umask(old);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0640);
}
END_TEST

START_TEST(replaced_file_keeps_its_mode)
{
    struct stat status;
    hr_err err;
    ck_assert_int_eq(write_file(path, "old", 3, &err), HR_OK);
    ck_assert_int_eq(chmod(path, 0600), 0);
    const mode_t old = umask(022);
    ck_assert_int_eq(write_file(path, "new", 3, &err), HR_OK);
    umask(old);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    assert_content(path, "new", 3);
}
END_TEST

START_TEST(read_only_file_is_not_replaced)
{
    hr_err err;
    file_writer *w;
    ck_assert_int_eq(write_file(path, "old", 3, &err), HR_OK);
    ck_assert_int_eq(chmod(path, 0444), 0);
    ck_assert_int_eq(file_writer_open(path, &w, &err), HR_WRITE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "it is read-only"));
    ck_assert_ptr_nonnull(strstr(err.hint, "chmod u+w '"));
    assert_content(path, "old", 3);
}
END_TEST

// Nobody ever writes into it: a reader that opened it as a file would wait for ever.
// What no test can bring about as root: the n-th operation fails as the kernel would have it.
static void check_hint(uint64_t nth, int failure, const char *hint)
{
    hr_err err = {0};
    file_writer *w = NULL;
    file_fail_at(nth);
    file_fail_with(failure);
    const hr_status status = file_writer_open(path, &w, &err);
    file_fail_at(0);
    file_fail_with(EIO);
    ck_assert_int_eq(status, HR_WRITE);
    ck_assert_ptr_null(w);
    ck_assert_msg(strstr(err.sentence, strerror(failure)) != NULL, "%s", err.sentence);
    ck_assert_str_eq(err.hint, hint);
    ck_assert_uint_eq(files_in_folder(), 0);
}

START_TEST(what_helps_against_a_folder_depends_on_why_it_is_refused)
{
    static const struct {
        int failure;
        const char *before, *behind; // the folder stands between them; NULL: the status' own words
    } rows[] = {
        {EACCES, "ls -ld '", "', or another folder"},
        {EPERM, "ls -ld '", "', or another folder"},
        {EROFS, "another folder: what '", "' lies on is read-only"},
        {ENOENT, "mkdir -p '", "', or another folder"},
        {ENOTDIR, "mkdir -p '", "', or another folder"},
        {ENOSPC, NULL, NULL},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char hint[256] = "";
        if (rows[k].before != NULL) {
            snprintf(hint, sizeof hint, "%s%s%s", rows[k].before, folder, rows[k].behind);
        }
        check_hint(1, rows[k].failure, hint); // its folder
        check_hint(2, rows[k].failure, hint); // the file beside it
    }
}
END_TEST

START_TEST(pipe_among_files_is_refused_without_waiting)
{
    char *data;
    size_t bytes;
    int fd;
    hr_err err;
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(file_read(path, 10, &data, &bytes, &err), HR_READ);
    ck_assert_ptr_nonnull(strstr(err.sentence, "needed a file, it is a pipe"));
    ck_assert_int_eq(file_open(path, &fd, &err), HR_READ);
    ck_assert_int_eq(fd, -1);
}
END_TEST

START_TEST(pipe_that_a_shell_hands_over_is_read)
{
    int ends[2];
    char name[32], *data;
    size_t bytes;
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], "words", 5), 5);
    ck_assert_int_eq(close(ends[1]), 0);
    (void)snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    ck_assert_int_eq(file_read(name, 10, &data, &bytes, NULL), HR_OK);
    ck_assert_uint_eq(bytes, 5);
    hr_free(data);
    ck_assert_int_eq(close(ends[0]), 0);
}
END_TEST

// Whatever operation fails, the file is the old one or the new one, whole, and nothing else lies beside it.
START_TEST(every_failing_operation_leaves_one_whole_file)
{
    static char content[150000];
    memset(content, 'n', sizeof content);
    int64_t live = hr_host_mem_live();
    hr_err err;
    unsigned failures = 0;
    for (uint64_t nth = 1;; nth++) {
        ck_assert_int_eq(write_file(path, "old", 3, &err), HR_OK);
        file_fail_at(nth);
        hr_status status = write_file(path, content, sizeof content, &err);
        uint64_t seen = file_fail_at(0);
        if (status == HR_OK) {
            assert_content(path, content, sizeof content);
        } else {
            ck_assert_int_eq(status, HR_WRITE);
            ck_assert_ptr_nonnull(strstr(err.sentence, path));
            assert_content(path, "old", 3);
            failures++;
        }
        ck_assert_uint_eq(files_in_folder(), 1);
        ck_assert_int_eq(hr_host_mem_live(), live);
        if (seen < nth) {
            ck_assert_int_eq(status, HR_OK);
            break;
        }
    }
    ck_assert_uint_ge(failures, 6); // two opens, three writes, fsync, rename
}
END_TEST

// In one go. What stands there gives way or stays as the rule says, also when any of the calls fails.
START_TEST(a_text_is_written_by_its_rule)
{
    static const hr_file_rule rules[] = {HR_FILE_NEW, HR_FILE_REPLACES, HR_FILE_PRIVATE};
    const hr_file_rule rule = rules[_i / 2];
    const bool stands = _i % 2 == 1;
    struct stat there;
    hr_err err;
    for (uint64_t nth = 1;; nth++) {
        (void)unlink(path);
        if (stands) {
            ck_assert_int_eq(write_file(path, "old", 3, &err), HR_OK);
        }
        file_fail_at(nth);
        const hr_status status = hr_file_write(path, "new", 3, rule, &err);
        const uint64_t seen = file_fail_at(0);
        ck_assert_uint_eq(files_in_folder(), stands || status == HR_OK);
        if (status != HR_OK) {
            ck_assert_int_eq(status, HR_WRITE);
            ck_assert_int_eq(stands ? 0 : -1, access(path, F_OK));
        }
        if (stands || status == HR_OK) {
            assert_content(path, status == HR_OK ? "new" : "old", 3);
        }
        if (seen < nth) {
            ck_assert_int_eq(status == HR_OK, !stands || rule != HR_FILE_NEW);
            break;
        }
    }
    ck_assert(rule != HR_FILE_NEW || !stands || strstr(err.sentence, "is there already, and stays") != NULL);
    ck_assert_int_eq(stat(path, &there), 0);
    ck_assert(rule != HR_FILE_PRIVATE || stands || (there.st_mode & 0777) == 0600);
}
END_TEST

static hr_status write_pair(const char *first, const char *second, const char *content, hr_err *err)
{
    file_writer *a = NULL, *b = NULL;
    hr_status status = file_writer_open(first, &a, err);
    status = status == HR_OK ? file_writer_open(second, &b, err) : status;
    status = status == HR_OK ? file_writer_add(a, content, strlen(content), err) : status;
    status = status == HR_OK ? file_writer_add(b, content, strlen(content), err) : status;
    if (status != HR_OK) {
        file_writer_abandon(a);
        file_writer_abandon(b);
        return status;
    }
    return file_writer_commit_both(a, b, err);
}

static void assert_as_before(const char *name, bool was_there)
{
    ck_assert_int_eq(access(name, F_OK) == 0, was_there);
    if (was_there) {
        assert_content(name, "old", 3);
    }
}

// _i says which of the two stood there before.
START_TEST(of_a_pair_both_are_new_or_both_old)
{
    char second[160];
    hr_err err;
    unsigned failures = 0;
    hr_status status = HR_WRITE;
    const int64_t live = hr_host_mem_live();
    const bool was_there[] = {(_i & 1) != 0, (_i & 2) != 0};
    snprintf(second, sizeof second, "%s/second", folder);
    const char *const names[] = {path, second};
    for (uint64_t nth = 1; status != HR_OK || failures < 8; nth++) {
        for (int k = 0; k < 2; k++) {
            (void)unlink(names[k]);
            ck_assert_int_eq(was_there[k] ? write_file(names[k], "old", 3, &err) : HR_OK, HR_OK);
        }
        file_fail_at(nth);
        status = write_pair(path, second, "new ones", &err);
        file_fail_at(0);
        failures += status != HR_OK;
        for (int k = 0; k < 2; k++) {
            if (status == HR_OK) {
                assert_content(names[k], "new ones", 8);
            } else {
                assert_as_before(names[k], was_there[k]);
            }
        }
        ck_assert_uint_eq(files_in_folder(), status == HR_OK ? 2 : (unsigned)was_there[0] + was_there[1]);
        ck_assert_int_eq(hr_host_mem_live(), live);
        ck_assert_uint_lt(nth, 100);
    }
}
END_TEST

START_TEST(lost_piece_is_never_committed)
{
    static char content[100000];
    hr_err err;
    file_writer *w;
    ck_assert_int_eq(file_writer_open(path, &w, &err), HR_OK);
    file_fail_at(1);
    ck_assert_int_eq(file_writer_add(w, content, sizeof content, &err), HR_WRITE);
    ck_assert_int_eq(file_writer_add(w, content, 10, &err), HR_OK); // buffered
    ck_assert_int_eq(file_writer_commit(w, &err), HR_WRITE);
    ck_assert_uint_eq(files_in_folder(), 0);
}
END_TEST

START_TEST(every_failing_read_and_allocation_is_reported)
{
    static char content[3000];
    hr_err err;
    char *data;
    size_t bytes;
    int64_t live = hr_host_mem_live();
    ck_assert_int_eq(write_file(path, content, sizeof content, &err), HR_OK);
    for (uint64_t nth = 1;; nth++) {
        file_fail_at(nth);
        hr_status status = file_read(path, 1 << 20, &data, &bytes, &err);
        if (file_fail_at(0) < nth) {
            ck_assert_int_eq(status, HR_OK);
            hr_free(data);
            break;
        }
        ck_assert_int_eq(status, HR_READ);
        ck_assert_ptr_null(data);
    }
    hr_host_mem_fail_at(1);
    ck_assert_int_eq(file_read(path, 1 << 20, &data, &bytes, &err), HR_NOMEM);
    hr_host_mem_fail_at(1);
    ck_assert_int_eq(write_file(path, "x", 1, &err), HR_NOMEM);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

static void put_file(const char *in, const char *leaf)
{
    char name[128];
    (void)snprintf(name, sizeof name, "%s/%s", in, leaf);
    FILE *f = fopen(name, "w");
    ck_assert_ptr_nonnull(f);
    fclose(f);
}

// A child that is in the middle of writing until it is killed.
static pid_t begin_writing(const char *to)
{
    int ready[2];
    char byte = 0;
    ck_assert_int_eq(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        file_writer *w = NULL;
        hr_err err = {0};
        const bool writes =
            file_writer_open(to, &w, &err) == HR_OK && file_writer_add(w, "half of it", 10, &err) == HR_OK;
        (void)!write(ready[1], &byte, writes);
        for (;;) {
            (void)pause();
        }
    }
    ck_assert_int_gt(pid, 0);
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static size_t count_in(const char *in)
{
    size_t count = 0;
    DIR *list = opendir(in);
    ck_assert_ptr_nonnull(list);
    while (readdir(list) != NULL) {
        count++;
    }
    closedir(list);
    return count - 2; // . and ..
}

START_TEST(what_a_killed_writer_left_is_removed_and_nothing_else)
{
    char left[] = "/tmp/headroom-left-XXXXXX", save[64], target[80];
    static const char *const others[] = {"save",
                                         "save.7-0.tmp",
                                         "save.7-0.headroom.tmp2",
                                         "save.7.headroom.tmp",
                                         "save2.7-0.headroom.tmp",
                                         "other.7-0.headroom.tmp"};
    enum { OTHERS = sizeof others / sizeof *others };
    ck_assert_ptr_nonnull(mkdtemp(left));
    for (size_t k = 0; k < OTHERS; k++) {
        put_file(left, others[k]);
    }
    (void)snprintf(save, sizeof save, "%s/save", left);
    const pid_t killed = begin_writing(save), lives = begin_writing(save);
    ck_assert_uint_eq(count_in(left), OTHERS + 2);
    ck_assert_int_eq(kill(killed, SIGKILL), 0);
    ck_assert_int_eq(waitpid(killed, NULL, 0), killed);
    file_remove_leftovers(save);
    ck_assert_uint_eq(count_in(left), OTHERS + 1); // of the one that lives
    hr_err err = {0};
    ck_assert_int_eq(write_file(save, "whole", 5, &err), HR_OK); // does it as well, as it opens
    ck_assert_int_eq(kill(lives, SIGKILL), 0);
    ck_assert_int_eq(waitpid(lives, NULL, 0), lives);
    ck_assert_int_eq(write_file(save, "whole", 5, &err), HR_OK);
    ck_assert_uint_eq(count_in(left), OTHERS);
    (void)snprintf(target, sizeof target, "%s/save.9-0.headroom.tmp", left);
    ck_assert_int_eq(symlink(save, target), 0); // a link is nobody's leftover
    file_remove_leftovers(save);
    ck_assert_int_eq(unlink(target), 0);
    for (size_t k = 0; k < OTHERS; k++) {
        (void)snprintf(target, sizeof target, "%s/%s", left, others[k]);
        ck_assert_int_eq(unlink(target), 0);
    }
    ck_assert_int_eq(rmdir(left), 0); // nothing else was there
}
END_TEST

START_TEST(base_directories_follow_the_specification)
{
    char to[128];
    setenv("HOME", "/home/someone", 1);
    setenv("XDG_DATA_HOME", "/data", 1);
    ck_assert(hr_file_xdg("XDG_DATA_HOME", ".local/share", "presets", to, sizeof to));
    ck_assert_str_eq(to, "/data/headroom/presets");
    setenv("XDG_DATA_HOME", "relative", 1); // ignored by the specification
    ck_assert(hr_file_xdg("XDG_DATA_HOME", ".local/share", "presets", to, sizeof to));
    ck_assert_str_eq(to, "/home/someone/.local/share/headroom/presets");
    unsetenv("XDG_DATA_HOME");
    ck_assert(hr_file_xdg("XDG_DATA_HOME", ".local/share", "", to, sizeof to));
    ck_assert_str_eq(to, "/home/someone/.local/share/headroom");
    ck_assert(!hr_file_xdg("XDG_DATA_HOME", ".local/share", "presets", to, 20));
    ck_assert_str_eq(to, "");
    unsetenv("HOME");
    ck_assert(!hr_file_xdg("XDG_DATA_HOME", ".local/share", "presets", to, sizeof to));
    ck_assert_str_eq(to, "");
}
END_TEST

// ---- files without a name -------------------------------------------------------------------------------------

static int interruptions; // of setting room aside, still to come
static int named;         // files that had a name

int __real_posix_fallocate(int fd, off_t offset, off_t bytes);
int __wrap_posix_fallocate(int fd, off_t offset, off_t bytes);
int __real_mkostemp(char *name, int flags);
int __wrap_mkostemp(char *name, int flags);

int __wrap_posix_fallocate(int fd, off_t offset, off_t bytes)
{
    return interruptions-- > 0 ? EINTR : __real_posix_fallocate(fd, offset, bytes);
}

int __wrap_mkostemp(char *name, int flags)
{
    named++;
    return __real_mkostemp(name, flags);
}

// Whoever is killed, at whatever point, leaves nothing behind; a signal that is handled is no failure.
START_TEST(a_file_without_a_name_never_has_one)
{
    int fd = open(folder, O_TMPFILE | O_RDWR, 0600), made = -1;
    const bool can = fd >= 0;
    struct stat facts;
    hr_err err = {0};
    file_close(fd);
    interruptions = 2;
    named = 0;
    ck_assert_msg(file_open_nameless(folder, 5000, &made, &err) == HR_OK, "%s", err.sentence);
    ck_assert_int_lt(interruptions, 1);
    ck_assert_int_eq(named, can ? 0 : 1); // else the file system has no such files
    ck_assert_int_eq(fstat(made, &facts), 0);
    ck_assert_int_eq(facts.st_size, 5000);
    ck_assert_uint_eq(facts.st_nlink, 0);
    ck_assert_uint_eq(files_in_folder(), 0);
    file_close(made);
    for (uint64_t nth = 1; nth <= 2; nth++) {
        file_fail_at(nth);
        ck_assert_int_eq(file_open_nameless(folder, 5000, &made, &err), HR_WRITE);
        ck_assert_int_eq(made, -1);
        ck_assert_uint_eq(files_in_folder(), 0);
    }
    file_fail_at(0);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("file");
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_loop_test(tests, what_is_written_is_read_back, 0, 6);
    tcase_add_test(tests, one_large_piece_is_written_too);
    tcase_add_test(tests, limit_is_a_limit);
    tcase_add_test(tests, missing_file_and_folder_are_named);
    tcase_add_test(tests, nothing_but_a_file_is_replaced);
    tcase_add_test(tests, abandoned_file_leaves_the_old_one);
    tcase_add_test(tests, link_stays_a_link);
    tcase_add_test(tests, new_file_has_the_persons_mode);
    tcase_add_test(tests, replaced_file_keeps_its_mode);
    tcase_add_test(tests, read_only_file_is_not_replaced);
    tcase_add_test(tests, what_helps_against_a_folder_depends_on_why_it_is_refused);
    tcase_add_test(tests, pipe_among_files_is_refused_without_waiting);
    tcase_add_test(tests, pipe_that_a_shell_hands_over_is_read);
    tcase_add_test(tests, every_failing_operation_leaves_one_whole_file);
    tcase_add_loop_test(tests, a_text_is_written_by_its_rule, 0, 6);
    tcase_add_loop_test(tests, of_a_pair_both_are_new_or_both_old, 0, 4);
    tcase_add_test(tests, lost_piece_is_never_committed);
    tcase_add_test(tests, every_failing_read_and_allocation_is_reported);
    tcase_add_test(tests, what_a_killed_writer_left_is_removed_and_nothing_else);
    tcase_add_test(tests, a_file_without_a_name_never_has_one);
    tcase_add_test(tests, base_directories_follow_the_specification);
    Suite *suite = suite_create("file");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
