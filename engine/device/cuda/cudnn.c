// SPDX-License-Identifier: Apache-2.0
#include "cudnn.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shared_library.h"
#include "driver.h"

cudnn_calls cudnn;

#ifdef __SANITIZE_ADDRESS__
// What NVIDIA's libraries keep for the life of a process is no leak of ours. A leak sanitizer asks by this name.
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libcudnn\nleak:libcublasLt\nleak:libcuda\n";
}

// Which of them were used is nothing to read at the end of every command.
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "print_suppressions=0";
}
#endif

enum {
    WORDS_MAX = 320,
    FIRST_VERSION = 90800, // that plans for the properties of a card
};

static bool shows_compiled;

static const shared_call calls[] = {
#define X(name) {#name, offsetof(cudnn_calls, name)},
    CUDNN_CALL_MAP(X)
#undef X
};
_Static_assert(sizeof(cudnn_calls) == sizeof calls / sizeof *calls * sizeof(void *), "nothing but pointers");

#define INSTALL                                                                                              \
    "install cuDNN 9 for CUDA 13 (NVIDIA's packages, or pip install nvidia-cudnn-cu13 and build again), or " \
    "-s "                                                                                                    \
    "device.kind=plan"
#define LOOK "env LD_DEBUG=libs with the same command, which shows every file that is opened; "
#define HIDE                                                                                                 \
    "env CUDA_VISIBLE_DEVICES= with the same command, where a plan is for another card than the one here; "
static const char hint[] = INSTALL, hint_parts[] = LOOK INSTALL, hint_plans[] = HIDE LOOK INSTALL;

static hr_status check_version(const void *table, hr_err *err)
{
    const size_t version = ((const cudnn_calls *)table)->cudnnGetVersion();
    if (version / 10000 == CUDNN_MAJOR && version >= FIRST_VERSION) {
        return HR_OK;
    }
    (void)HR_FAIL(err, DEPENDENCY, "device 'cuda' needed cuDNN %d.8 or a later %d, the library is %zu.%zu",
                  CUDNN_MAJOR, CUDNN_MAJOR, version / 10000, version / 100 % 100);
    hr_err_try(err, "%s", hint);
    return HR_DEPENDENCY;
}

static shared_library library_at(const char *name)
{
    return (shared_library){.soname = name,
                            .needed_by = "device 'cuda'",
                            .hint = hint,
                            .calls = calls,
                            .call_count = sizeof calls / sizeof *calls,
                            .check = check_version};
}

// cuDNN opens libcuda.so.1 by its soname, and finds what already has it.
static bool open_driver(void)
{
    return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != NULL ||
           (HEADROOM_CUDA_STUB[0] != '\0' && dlopen(HEADROOM_CUDA_STUB, RTLD_LAZY | RTLD_GLOBAL) != NULL);
}

static bool find_driver(void)
{
    last_words last = {.calling = "cuDNN needed libcuda.so.1", .hint = "nvidia-smi; or -s device.kind=plan"};
    last_words_begin(&last);
    const bool found = open_driver();
    last_words_end(&last);
    return found;
}

static hr_status open_library(hr_err *err)
{
    const shared_library by_name = library_at(HEADROOM_CUDNN_SONAME),
                         by_path = library_at(HEADROOM_CUDNN_FILE);
    hr_err first = {0};
    shows_compiled = find_driver();
    const hr_status status = shared_library_load(&by_name, &cudnn, &first);
    if (status == HR_OK || shared_library_load(&by_path, &cudnn, NULL) == HR_OK) {
        return HR_OK;
    }
    if (err != NULL) {
        *err = first;
    }
    return status;
}

hr_status cudnn_need(hr_err *err)
{
    static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
    static atomic_bool opened;
    if (atomic_load(&opened)) {
        return HR_OK;
    }
    pthread_mutex_lock(&opening);
    const hr_status status = atomic_load(&opened) ? HR_OK : open_library(err);
    atomic_store(&opened, status == HR_OK);
    pthread_mutex_unlock(&opening);
    return status;
}

void cudnn_begin(last_words *w, bool for_other_card)
{
    *w = (last_words){.calling = "device 'cuda' asked cuDNN",
                      .hint = for_other_card ? hint_plans : hint_parts};
    last_words_begin(w);
}

// ---- the libraries behind it ------------------------------------------------------------------------------------

// By the names that they have for the loader, and something that each of them has.
static const struct {
    const char *soname, *symbol;
} parts[] = {
    {"libcudnn_graph.so.9", "cudnnBackendFinalize"},
    {"libcudnn_heuristic.so.9", "dummyHeuristicSymbol"},
    {"libcudnn_engines_precompiled.so.9", "dummyBackendEnginesPreCompiledSymbol"},
    {"libcudnn_engines_runtime_compiled.so.9", "dummyBackendEnginesRuntimeCompiledSymbol"},
};

typedef struct place {
    char path[PATH_MAX]; // of the file itself
    size_t folder_bytes; // of it
} place;

// False: it is not open.
static bool find_part(const char *soname, const char *symbol, place *out, bool *whole)
{
    struct link_map *map = NULL;
    void *handle = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
    const bool found = handle != NULL && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 &&
                       realpath(map->l_name, out->path) != NULL;
    *whole = handle != NULL && dlsym(handle, symbol) != NULL;
    if (found) {
        out->folder_bytes = (size_t)(strrchr(out->path, '/') - out->path);
    }
    if (handle != NULL) {
        (void)dlclose(handle);
    }
    return found;
}

// "9.19.0" of ".../libcudnn_graph.so.9.19.0"
static const char *version_in(const place *p)
{
    const char *mark = strstr(p->path + p->folder_bytes, ".so.");
    return mark == NULL ? "" : mark + strlen(".so.");
}

static bool are_together(const place *a, const place *b)
{
    const char *one = version_in(a), *other = version_in(b);
    const bool both_say = strchr(one, '.') != NULL && strchr(other, '.') != NULL;
    return a->folder_bytes == b->folder_bytes && memcmp(a->path, b->path, a->folder_bytes) == 0 &&
           (!both_say || strcmp(one, other) == 0);
}

static hr_status refuse_part(const char *name, const char *what, hr_err *err)
{
    (void)HR_FAIL(err, DEPENDENCY, "device 'cuda' needed the libraries of one cuDNN, %.160s is %.200s", name,
                  what);
    hr_err_try(err, "%s", hint_parts);
    return HR_DEPENDENCY;
}

hr_status cudnn_check_parts(hr_err *err)
{
    place first, other;
    bool whole = false;
    if (!find_part(parts[0].soname, parts[0].symbol, &first, &whole)) {
        return HR_OK; // a cuDNN of one file
    }
    for (size_t k = 1; k < sizeof parts / sizeof *parts; k++) {
        if (!find_part(parts[k].soname, parts[k].symbol, &other, &whole)) {
            continue;
        }
        if (!whole) {
            return refuse_part(other.path, "none of them", err);
        }
        if (!are_together(&first, &other)) {
            char what[WORDS_MAX];
            (void)snprintf(what, sizeof what, "of another than %.180s", first.path);
            return refuse_part(other.path, what, err);
        }
    }
    return HR_OK;
}

// ---- results ----------------------------------------------------------------------------------------------------

bool cudnn_shows_compiled(void)
{
    return shows_compiled;
}

hr_status cudnn_check(cudnnStatus_t status, hr_err *err, const char *what)
{
    if (status == CUDNN_STATUS_SUCCESS) {
        return HR_OK;
    }
    char words[WORDS_MAX] = "";
    cudnn.cudnnGetLastErrorString(words, sizeof words);
    const char *name = cudnn.cudnnGetErrorString(status);
    if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED) {
        return HR_FAIL(err, NOMEM, "%s: %s", what, name);
    }
    if (status == CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED ||
        status == CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH) {
        (void)HR_FAIL(err, DEPENDENCY, "%s: %s, %s", what, name, words);
        hr_err_try(err, "%s", hint_parts);
        return HR_DEPENDENCY;
    }
    if (CUDNN_STATUS_CATEGORY((int)status) == CUDNN_STATUS_EXECUTION_FAILED && cuda_is_lost()) {
        return HR_FAIL(err, DEVICE_LOST, "%s: %s, %s", what, name, words);
    }
    return HR_FAIL(err, DEVICE, "%s: %s, %s", what, name, words);
}

// ---- descriptors ----------------------------------------------------------------------------------------------

cudnn_maker cudnn_make(cudnnBackendDescriptorType_t type)
{
    cudnn_maker m = {.descriptor = NULL};
    m.status = cudnn.cudnnBackendCreateDescriptor(type, &m.descriptor);
    return m;
}

void cudnn_set(cudnn_maker *m, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
               int64_t count, const void *values)
{
    if (m->status == CUDNN_STATUS_SUCCESS) {
        m->status = cudnn.cudnnBackendSetAttribute(m->descriptor, name, type, count, values);
    }
}

hr_status cudnn_finish(cudnn_maker *m, const char *what, cudnnBackendDescriptor_t *out, hr_err *err)
{
    *out = NULL;
    if (m->status == CUDNN_STATUS_SUCCESS) {
        m->status = cudnn.cudnnBackendFinalize(m->descriptor);
    }
    if (m->status == CUDNN_STATUS_SUCCESS) {
        *out = m->descriptor;
        return HR_OK;
    }
    const hr_status status = cudnn_check(m->status, err, what);
    cudnn_destroy(m->descriptor);
    return status;
}

void cudnn_destroy(cudnnBackendDescriptor_t descriptor)
{
    if (descriptor != NULL) {
        (void)cudnn.cudnnBackendDestroyDescriptor(descriptor);
    }
}
