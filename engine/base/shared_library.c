// SPDX-License-Identifier: Apache-2.0
#include "base/shared_library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "base/last_words.h"

enum { CALLING_MAX = 256 };

// POSIX has dlsym give an object pointer for a function: its bytes are what counts.
static hr_status find_all(const shared_library *wanted, void *handle, char *table, hr_err *err)
{
    for (size_t k = 0; k < wanted->call_count; k++) {
        const shared_call *call = &wanted->calls[k];
        void *found = dlsym(handle, call->symbol);
        if (found == NULL) {
            (void)HR_FAIL(err, DEPENDENCY, "%s needed %s, %s has no such function", wanted->needed_by,
                          call->symbol, wanted->soname);
            hr_err_try(err, "%s", wanted->hint);
            return HR_DEPENDENCY;
        }
        memcpy(table + call->offset, &found, sizeof found);
    }
    return wanted->check == NULL ? HR_OK : wanted->check(table, err);
}

// Why the library did not open: it is not there, or there is no room for it.
static hr_status refuse_open(const shared_library *wanted, hr_err *err)
{
    const char *why = dlerror();
    const bool no_room =
        strstr(why, "failed to map segment") != NULL || strstr(why, "annot allocate memory") != NULL;
    static const char sentence[] = "%s needed %s, the system says: %s";
    const hr_status status = no_room
                                 ? HR_FAIL(err, HOST_LIMIT, sentence, wanted->needed_by, wanted->soname, why)
                                 : HR_FAIL(err, DEPENDENCY, sentence, wanted->needed_by, wanted->soname, why);
    hr_err_try(err, "%s", no_room ? "ulimit -v unlimited" : wanted->hint);
    return status;
}

static hr_status load(const shared_library *wanted, void *table, hr_err *err)
{
    const size_t bytes = wanted->call_count * sizeof(void *);
    void *handle = dlopen(wanted->soname, RTLD_LAZY | RTLD_LOCAL);
    if (handle == NULL) {
        return refuse_open(wanted, err);
    }
    char *found = hr_calloc(1, bytes);
    const hr_status status =
        found == NULL ? HR_FAIL(err, NOMEM, "no host memory for the functions of %s", wanted->soname)
                      : find_all(wanted, handle, found, err);
    if (status == HR_OK) {
        memcpy(table, found, bytes);
    } else {
        (void)dlclose(handle);
    }
    hr_free(found);
    return status;
}

hr_status shared_library_load(const shared_library *wanted, void *table, hr_err *err)
{
    char calling[CALLING_MAX];
    (void)snprintf(calling, sizeof calling, "%s needed %s", wanted->needed_by, wanted->soname);
    last_words last = {.calling = calling, .hint = wanted->hint};
    last_words_begin(&last);
    const hr_status status = load(wanted, table, err);
    last_words_end(&last);
    return status;
}

hr_status shared_library_need(const shared_library *wanted, shared_state *state, void *table, hr_err *err)
{
    if (atomic_load(&state->loaded)) {
        return HR_OK;
    }
    pthread_mutex_lock(&state->loading);
    hr_status status = HR_OK;
    if (!atomic_load(&state->loaded)) {
        status = shared_library_load(wanted, table, err);
        atomic_store(&state->loaded, status == HR_OK);
    }
    pthread_mutex_unlock(&state->loading);
    return status;
}
