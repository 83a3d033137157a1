// SPDX-License-Identifier: Apache-2.0
// A shared library that is opened when it is first needed, not when the program starts: a command that does not use it neither
// waits for it nor maps what it brings along. Its functions are members of a table that its user declares:
//
//   #define CALL_MAP(X) X(read_new) X(read_free)
//   static struct { CALL_MAP(X as `__typeof__(archive_##name) *name;`) } archive;
//   … archive.read_new() …
#ifndef BASE_SHARED_LIBRARY_H
#define BASE_SHARED_LIBRARY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "headroom/status.h"

typedef struct shared_call {
    const char *symbol;
    size_t offset; // of its pointer in the table
} shared_call;

typedef struct shared_library {
    const char *soname;    // "libdnnl.so.2", or a path
    const char *needed_by; // "device 'cpu'"
    const char *hint;      // what to try when it is not there
    const shared_call *calls;
    size_t call_count;
    // optional: is a whole table of the right version? Sentence says what it is.
    hr_status (*check)(const void *table, hr_err *err);
} shared_library;

typedef struct shared_state {
    pthread_mutex_t loading;
    atomic_bool loaded;
} shared_state;
#define SHARED_STATE_INIT                                                                                    \
    {                                                                                                        \
        .loading = PTHREAD_MUTEX_INITIALIZER                                                                 \
    }

// Opens the library and fills the table, `call_count` function pointers and nothing else; it is never closed. On
// failure the table is as it was: DEPENDENCY error when the library or one of its functions is missing, else that
// of `check`. Functions of the libraries behind it are found too. A library that ends the process while it is opened or
// checked does so with a sentence (last_words.h).
HR_MUST_CHECK hr_status shared_library_load(const shared_library *wanted, void *table, hr_err *err);
// The same once: costs nothing from the first success on; what failed is tried again. Thread-safe.
HR_MUST_CHECK hr_status shared_library_need(const shared_library *wanted, shared_state *state, void *table,
                                            hr_err *err);

#endif
