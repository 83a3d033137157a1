// SPDX-License-Identifier: Apache-2.0
// Files are read whole within a limit, and written whole or not at all (temporary file in the same folder,
// fsync, rename, fsync of the folder). Tests make the n-th file operation fail (file_fail_at).
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/files.h"
#include "headroom/status.h"

// The caller frees *data with hr_free; it is NUL-terminated beyond *bytes. READ error when missing or larger
// than `limit_bytes`, or when it is no file: a pipe is read below /dev and /proc only, where a shell hands it over.
HR_MUST_CHECK hr_status file_read(const char *path, uint64_t limit_bytes, char **data, size_t *bytes,
                                  hr_err *err);

// The same of what stands behind the place in a file that is open.
HR_MUST_CHECK hr_status file_read_rest(int fd, const char *path, uint64_t limit_bytes, char **data,
                                       size_t *bytes, hr_err *err);

// Reading a file piece by piece, of any size (base/input.h buffers it).
// A file's descriptor, or READ error when it is missing or no file, as above.
HR_MUST_CHECK hr_status file_open(const char *path, int *fd, hr_err *err);
// Up to `bytes` of what comes next; 0 at the end, negative with errno set when it cannot be read.
ptrdiff_t file_read_some(int fd, void *to, size_t bytes);
void file_close(int fd);

// A file without a name in `folder`, of `bytes` that the disk has set aside: gone with its descriptor. WRITE error.
HR_MUST_CHECK hr_status file_open_nameless(const char *folder, uint64_t bytes, int *fd, hr_err *err);
// All `bytes` at `offset`; `name` is for sentences. READ and WRITE errors. Any thread.
HR_MUST_CHECK hr_status file_read_at(int fd, uint64_t offset, void *to, uint64_t bytes, const char *name,
                                     hr_err *err);
HR_MUST_CHECK hr_status file_write_at(int fd, uint64_t offset, const void *from, uint64_t bytes,
                                      const char *name, hr_err *err);

typedef struct file_writer file_writer;
// WRITE error when the folder cannot take a file, or `path` is a folder, a device, a pipe or read-only. A link is
// followed, and the mode of a file that is replaced stays.
HR_MUST_CHECK hr_status file_writer_open(const char *path, file_writer **out, hr_err *err);
// Buffered. After a failure every later add and the commit fail too.
HR_MUST_CHECK hr_status file_writer_add(file_writer *w, const void *data, size_t bytes, hr_err *err);
// Renames into place. Frees w in every case; on failure the old file is still whole and the temporary is gone.
HR_MUST_CHECK hr_status file_writer_commit(file_writer *w, hr_err *err);
// Two files that belong together: both stand, or both are what they were. The old second never stands beside the new first,
// also when the process is killed. Frees both in every case.
HR_MUST_CHECK hr_status file_writer_commit_both(file_writer *first, file_writer *second, hr_err *err);
void file_writer_abandon(file_writer *w); // NULL is fine
// Before the commit: nothing is replaced, and the commit fails where something stands by then.
HR_MUST_CHECK hr_status file_writer_keep_others(file_writer *w, hr_err *err);
// Before the first add: where no file is replaced the new one is this user's alone.
HR_MUST_CHECK hr_status file_writer_make_private(file_writer *w, hr_err *err);
// What processes that were killed while they wrote `path` have left beside it: files of that name and this user that nobody
// is writing. A writer looks for them as it opens.
//
//   PATH.PID-N.headroom.tmp ──rename──▶ PATH     locked (flock) by who writes it, as long as it lives; where the file
//                                                system knows no locks, nothing is removed
void file_remove_leftovers(const char *path);

uint64_t file_fail_at(uint64_t nth); // as hr_host_mem_fail_at, over open, read, write, fsync, rename
void file_fail_with(int failure);    // its errno; EIO without

#endif
