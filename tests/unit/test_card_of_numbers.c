// SPDX-License-Identifier: Apache-2.0
// Promises of the card of numbers (scripts/record/numbers): CUDA's functions, called as PyTorch calls them. Each test is a
// process of its own, which reads a card of its own.
#include <check.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "headroom/units.h"

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101, NOT_SUPPORTED = 801 };

static void *library;

// A function of the library, as a pointer of the wanted kind.
#define CUDA(name, ...) ((int (*)(__VA_ARGS__))function(#name))
#define FREE(p)         CUDA(cudaFree, void *)(p)

static void (*function(const char *name))(void)
{
    void *data = dlsym(library, name);
    void (*code)(void) = NULL;
    ck_assert_msg(data != NULL, "%s is not there", name);
    memcpy(&code, &data, sizeof code);
    return code;
}

static const char *const shape =
    "{\"deviceName\": \"A Card\", \"deviceVer\": %s, \"multiProcessorCount\": 128, \"maxThreadsPerSM\": "
    "1536, "
    "\"maxCtasPerSM\": 24, \"maxSharedMemoryPerBlock\": 49152, \"maxSharedMemoryPerBlockOptin\": 101376, "
    "\"reservedSharedMemoryPerBlock\": 1024, \"maxRegistersPerSM\": 65536, \"regsPerBlock\": 65536, "
    "\"smClockRateKHz\": 2520000, \"memClockRateKHz\": 10501000, \"l2CacheSize\": 75497472, "
    "\"totalGlobalMem\": %llu}";

static void open_library(void)
{
    library = dlopen(NUMBERS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL, "%s", dlerror());
}

static void open_card(unsigned long long memory, const char *context)
{
    char text[1024];
    (void)snprintf(text, sizeof text, shape, "890", memory);
    ck_assert_int_eq(setenv("HEADROOM_NUMBERS", text, 1), 0);
    if (context != NULL) {
        ck_assert_int_eq(setenv("HEADROOM_NUMBERS_CONTEXT", context, 1), 0);
    }
    open_library();
}

static int take(size_t bytes, void **out)
{
    return CUDA(cudaMalloc, void **, size_t)(out, bytes);
}

static size_t left(void)
{
    size_t free_now = 0, total = 0;
    ck_assert_int_eq(CUDA(cudaMemGetInfo, size_t *, size_t *)(&free_now, &total), OK);
    return free_now;
}

START_TEST(a_card_is_what_its_file_says)
{
    open_card(8 * HR_GIB, "104857600");
    int count = 0, value = 0;
    size_t free_now = 0, total = 0;
    ck_assert_int_eq(CUDA(cudaGetDeviceCount, int *)(&count), OK);
    ck_assert_int_eq(count, 1);
    ck_assert_int_eq(CUDA(cudaMemGetInfo, size_t *, size_t *)(&free_now, &total), OK);
    ck_assert_uint_eq(total, 8 * HR_GIB);
    ck_assert_uint_eq(free_now, 8 * HR_GIB - 104857600);
    const int expected[][2] = {{75, 8},  {76, 9},      {16, 128}, {39, 1536},
                               {10, 32}, {97, 101376}, {106, 24}, {120, 0}};
    for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
        ck_assert_int_eq(CUDA(cudaDeviceGetAttribute, int *, int, int)(&value, expected[k][0], 0), OK);
        ck_assert_int_eq(value, expected[k][1]);
        ck_assert_int_eq(CUDA(cuDeviceGetAttribute, int *, int, int)(&value, expected[k][0], 0), OK);
        ck_assert_int_eq(value, expected[k][1]);
    }
    char properties[1008]; // cudaDeviceProp of CUDA 13
    uint64_t memory = 0;
    int capability[2];
    ck_assert_int_eq(CUDA(cudaGetDeviceProperties, void *, int)(properties, 0), OK);
    memcpy(&memory, properties + 288, sizeof memory);
    memcpy(capability, properties + 360, sizeof capability);
    ck_assert_str_eq(properties, "A Card");
    ck_assert_mem_eq(properties + 256, "headroom numbers", 16);
    ck_assert_uint_eq(memory, 8 * HR_GIB);
    ck_assert_int_eq(capability[0] * 10 + capability[1], 89);
}
END_TEST

START_TEST(there_is_one_device)
{
    open_card(8 * HR_GIB, NULL);
    int value = 0;
    char properties[1008];
    ck_assert_int_eq(CUDA(cudaSetDevice, int)(0), OK);
    ck_assert_int_eq(CUDA(cudaSetDevice, int)(1), INVALID_DEVICE);
    ck_assert_int_eq(CUDA(cudaGetDeviceProperties, void *, int)(properties, 1), INVALID_DEVICE);
    ck_assert_int_eq(CUDA(cudaDeviceGetAttribute, int *, int, int)(&value, 75, 1), INVALID_DEVICE);
    ck_assert_int_eq(CUDA(cudaDeviceCanAccessPeer, int *, int, int)(&value, 0, 1), OK);
    ck_assert_int_eq(value, 0);
}
END_TEST

// What standard error says when a card cannot be read, and that there is none then.
static void expect_no_card(const char *sentence)
{
    char path[] = "/tmp/numbers-XXXXXX", said[512] = {0};
    const int file = mkostemp(path, O_CLOEXEC), before = dup(STDERR_FILENO);
    ck_assert_int_ge(file, 0);
    ck_assert_int_ge(dup2(file, STDERR_FILENO), 0);
    open_library();
    int count = -1, device = -1;
    void *address = NULL;
    size_t free_now = 0, total = 0;
    ck_assert_int_eq(CUDA(cudaGetDeviceCount, int *)(&count), NO_DEVICE);
    ck_assert_int_eq(count, 0);
    ck_assert_int_eq(CUDA(cudaGetDevice, int *)(&device), NO_DEVICE);
    ck_assert_int_eq(take(1, &address), NO_DEVICE);
    ck_assert_int_eq(CUDA(cudaMemGetInfo, size_t *, size_t *)(&free_now, &total), NO_DEVICE);
    ck_assert_int_ge(dup2(before, STDERR_FILENO), 0);
    ck_assert_int_ge(pread(file, said, sizeof said - 1, 0), 0);
    ck_assert_str_eq(said, sentence);
    close(file);
    close(before);
    unlink(path);
}

START_TEST(without_a_card_there_is_none_and_it_is_said)
{
    unsetenv("HEADROOM_NUMBERS");
    expect_no_card(
        "card of numbers: needs HEADROOM_NUMBERS, the text of a file like those of presets/cards\n");
}
END_TEST

START_TEST(a_count_that_is_none_is_named)
{
    static const char *const wrong[] = {"-1", "\"8\"", "8x", "", "99.5"};
    char text[1024];
    (void)snprintf(text, sizeof text, shape, wrong[_i], 8ULL << 30);
    setenv("HEADROOM_NUMBERS", text, 1);
    expect_no_card("card of numbers: HEADROOM_NUMBERS needs a count under \"deviceVer\", like a file of "
                   "presets/cards\n");
}
END_TEST

START_TEST(a_context_larger_than_the_card_is_refused)
{
    char text[1024];
    (void)snprintf(text, sizeof text, shape, "890", 1000ULL);
    setenv("HEADROOM_NUMBERS", text, 1);
    setenv("HEADROOM_NUMBERS_CONTEXT", "1001", 1);
    expect_no_card(
        "card of numbers: HEADROOM_NUMBERS_CONTEXT needs bytes, at most the card's 1000, had \"1001\"\n");
}
END_TEST

START_TEST(memory_comes_in_granules_until_there_is_none)
{
    open_card(64 * HR_MIB, "4194304");
    void *all[30], *one = NULL;
    for (size_t k = 0; k < 15; k++) { // 2 MiB and a byte take 4
        ck_assert_int_eq(take(2 * HR_MIB + 1, &all[k]), OK);
        ck_assert_uint_eq((uintptr_t)all[k] % (2 * HR_MIB), 0);
    }
    ck_assert_uint_eq(left(), 0);
    ck_assert_int_eq(take(1, &one), NO_MEMORY);
    ck_assert_ptr_null(one);
    ck_assert_int_eq(CUDA(cudaPeekAtLastError, void)(), NO_MEMORY);
    ck_assert_int_eq(CUDA(cudaGetLastError, void)(), NO_MEMORY);
    ck_assert_int_eq(CUDA(cudaGetLastError, void)(), OK);
    ck_assert_int_eq(FREE(all[7]), OK);
    ck_assert_uint_eq(left(), 4 * HR_MIB);
    ck_assert_int_eq(take(4 * HR_MIB, &one), OK);
    ck_assert_ptr_eq(one, all[7]); // the gap
    ck_assert_int_eq(take(SIZE_MAX, &one), NO_MEMORY);
    ck_assert_int_eq(take(SIZE_MAX - 4 * HR_MIB, &one), NO_MEMORY);
}
END_TEST

START_TEST(requests_of_many_tib_do_not_meet)
{
    open_card(64 * 1024 * HR_GIB, NULL);
    void *all[4], *one = NULL;
    for (size_t k = 0; k < 4; k++) {
        ck_assert_int_eq(take(15 * 1024 * HR_GIB, &all[k]), OK);
        ck_assert_int_eq(take(512, &one), OK);
        for (size_t j = 0; j <= k; j++) {
            ck_assert((uintptr_t)one - (uintptr_t)all[j] >= 15 * 1024 * HR_GIB);
            ck_assert(j == k || (uintptr_t)all[k] - (uintptr_t)all[j] >= 15 * 1024 * HR_GIB);
        }
    }
    ck_assert_int_eq(FREE(all[0]), OK);
    ck_assert_int_eq(take(18 * 1024 * HR_GIB, &one), NO_MEMORY); // as much is free, in two gaps of addresses
    ck_assert_uint_eq(left(), 19 * 1024 * HR_GIB - 2 * HR_MIB);
}
END_TEST

START_TEST(a_card_of_more_than_there_are_addresses_is_refused)
{
    char text[1024];
    (void)snprintf(text, sizeof text, shape, "890", (64ULL << 40) + 1);
    setenv("HEADROOM_NUMBERS", text, 1);
    expect_no_card("card of numbers: HEADROOM_NUMBERS has more than 64 TiB under \"totalGlobalMem\"\n");
}
END_TEST

START_TEST(small_requests_share_a_granule)
{
    open_card(64 * HR_MIB, NULL);
    void *a = NULL, *b = NULL, *c = NULL, *none = &none;
    ck_assert_int_eq(take(0, &none), OK);
    ck_assert_ptr_null(none);
    ck_assert_int_eq(take(100, &a), OK);
    ck_assert_uint_eq(left(), 62 * HR_MIB);
    ck_assert_int_eq(take(HR_MIB, &b), OK);
    ck_assert_uint_eq(left(), 62 * HR_MIB);
    ck_assert_int_eq(take(HR_MIB, &c), OK); // over the edge
    ck_assert_uint_eq(left(), 60 * HR_MIB);
    ck_assert_uint_eq((uintptr_t)b - (uintptr_t)a, 512);
    ck_assert_int_eq(FREE(c), OK);
    ck_assert_int_eq(FREE(a), OK);
    ck_assert_uint_eq(left(), 62 * HR_MIB);
    ck_assert_int_eq(FREE(b), OK);
    ck_assert_uint_eq(left(), 64 * HR_MIB);
}
END_TEST

START_TEST(what_was_not_given_is_not_taken_back)
{
    open_card(64 * HR_MIB, NULL);
    void *a = NULL;
    ck_assert_int_eq(take(4 * HR_MIB, &a), OK);
    ck_assert_int_eq(FREE((char *)a + 512), INVALID);
    ck_assert_int_eq(FREE(a), OK);
    ck_assert_int_eq(FREE(a), INVALID);
    ck_assert_int_eq(FREE(NULL), OK);
    ck_assert_uint_eq(left(), 64 * HR_MIB);
}
END_TEST

// Ranges of addresses never overlap, and as much is free as a plain sum says.
START_TEST(random_requests_are_as_a_plain_model_says)
{
    open_card(256 * HR_MIB, NULL);
    enum { MOST = 64 };
    struct {
        uintptr_t address;
        size_t bytes;
    } live[MOST] = {0};
    uint64_t rng = 7, used = 0;
    for (int k = 0; k < 5000; k++) {
        rng = rng * 6364136223846793005U + 1442695040888963407U;
        const size_t at = (rng >> 33) % MOST;
        if (live[at].bytes > 0) {
            ck_assert_int_eq(CUDA(cudaFree, uintptr_t)(live[at].address), OK);
            used -= live[at].bytes;
            live[at].bytes = 0;
        } else {
            const size_t wanted = 2 * HR_MIB * (1 + (rng >> 45) % 8), asked = wanted - (rng >> 50) % HR_MIB;
            void *address = NULL;
            const int result = take(asked < 2 * HR_MIB ? wanted : asked, &address);
            ck_assert_int_eq(result, used + wanted <= 256 * HR_MIB ? OK : NO_MEMORY);
            if (result == OK) {
                live[at].address = (uintptr_t)address;
                live[at].bytes = wanted;
                used += wanted;
            }
        }
        ck_assert_uint_eq(left(), 256 * HR_MIB - used);
        for (size_t j = 0; j < MOST; j++) {
            ck_assert(j == at || live[j].bytes == 0 || live[at].bytes == 0 ||
                      live[j].address + live[j].bytes <= live[at].address ||
                      live[at].address + live[at].bytes <= live[j].address);
        }
    }
}
END_TEST

START_TEST(copies_from_the_card_are_zeros)
{
    open_card(64 * HR_MIB, NULL);
    void *card = NULL, *pinned = NULL;
    char host[64], other[64];
    ck_assert_int_eq(take(4096, &card), OK);
    ck_assert_int_eq(CUDA(cudaHostAlloc, void **, size_t, unsigned)(&pinned, 64, 0), OK);
    memset(host, 7, sizeof host);
    memset(pinned, 9, 64);
    ck_assert_int_eq(
        CUDA(cudaMemcpyAsync, void *, const void *, size_t, int, void *)(card, host, 64, 1, NULL), OK);
    ck_assert_int_eq(
        CUDA(cudaMemcpyAsync, void *, const void *, size_t, int, void *)(host, card, 60, 2, NULL), OK);
    ck_assert_int_eq(host[0] | host[59], 0);
    ck_assert_int_eq(host[60], 7);
    ck_assert_int_eq(CUDA(cudaMemcpy, void *, const void *, size_t, int)(other, pinned, 64, 0), OK);
    ck_assert_int_eq(other[63], 9);
    ck_assert_int_eq(CUDA(cudaMemset, void *, int, size_t)(card, 1, 4096), OK);
    struct {
        int type, device;
        void *of_device, *of_host;
        long reserved[8];
    } where;
    ck_assert_int_eq(CUDA(cudaPointerGetAttributes, void *, const void *)(&where, card), OK);
    ck_assert_int_eq(where.type, 2);
    ck_assert_int_eq(CUDA(cudaPointerGetAttributes, void *, const void *)(&where, host), OK);
    ck_assert_int_eq(where.type, 0);
    ck_assert_int_eq(CUDA(cudaPointerGetAttributes, void *, const void *)(&where, (char *)pinned + 63), OK);
    ck_assert_int_eq(where.type, 1);
    ck_assert_int_eq(CUDA(cudaPointerGetAttributes, void *, const void *)(&where, (char *)pinned + 64), OK);
    ck_assert_int_eq(where.type, 0);
    ck_assert_int_eq(CUDA(cudaFreeHost, void *)(host), INVALID);
    ck_assert_int_eq(CUDA(cudaFreeHost, void *)(pinned), OK);
    ck_assert_int_eq(CUDA(cudaPointerGetAttributes, void *, const void *)(&where, pinned), OK);
    ck_assert_int_eq(where.type, 0);
}
END_TEST

static void set_flag(void *data)
{
    *(int *)data = 1;
}

START_TEST(work_is_done_when_it_is_enqueued)
{
    open_card(64 * HR_MIB, NULL);
    void *stream = NULL, *second = NULL, *event = NULL;
    int called = 0;
    float ms = 1;
    ck_assert_int_eq(CUDA(cudaStreamCreateWithPriority, void **, unsigned, int)(&stream, 1, 0), OK);
    ck_assert_int_eq(CUDA(cudaStreamCreate, void **)(&second), OK);
    ck_assert_ptr_ne(stream, second);
    ck_assert_int_eq(CUDA(cudaEventCreateWithFlags, void **, unsigned)(&event, 0), OK);
    ck_assert_int_eq(CUDA(cudaLaunchHostFunc, void *, void (*)(void *), void *)(stream, set_flag, &called),
                     OK);
    ck_assert_int_eq(called, 1);
    ck_assert_int_eq(CUDA(cudaEventQuery, void *)(event), OK);
    ck_assert_int_eq(CUDA(cudaEventElapsedTime, float *, void *, void *)(&ms, event, event), OK);
    ck_assert(ms == 0);
}
END_TEST

START_TEST(what_would_have_to_do_something_is_refused)
{
    open_card(64 * HR_MIB, NULL);
    static const char *const refused[] = {"cudaStreamBeginCapture", "cudaIpcGetMemHandle",
                                          "cudaIpcOpenMemHandle",   "cudaDeviceEnablePeerAccess",
                                          "cudaMallocManaged",      "cudaLibraryLoadData"};
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
        int (*call)(void *, size_t, unsigned) = (int (*)(void *, size_t, unsigned))function(refused[k]);
        ck_assert_int_eq(call(NULL, 0, 0), NOT_SUPPORTED);
        ck_assert_int_eq(CUDA(cudaGetLastError, void)(), NOT_SUPPORTED);
    }
    const char *words = ((const char *(*)(int))function("cudaGetErrorString"))(NOT_SUPPORTED);
    ck_assert_str_eq(words, "operation not supported (by a card of numbers)");
    ck_assert_int_eq(CUDA(cudnnRNNForward, void)(), 3000);
}
END_TEST

typedef void (*entry)(void);

static entry driver(const char *name)
{
    entry found = NULL;
    int status = -1;
    ck_assert_int_eq(CUDA(cudaGetDriverEntryPointByVersion, const char *, entry *, unsigned,
                          unsigned long long, int *)(name, &found, 12000, 0, &status),
                     OK);
    ck_assert_int_eq(status, found == NULL);
    return found;
}

START_TEST(segments_expand_by_the_drivers_mapping)
{
    open_card(64 * HR_MIB, NULL);
    int (*reserve)(uint64_t *, size_t, size_t, uint64_t, unsigned long long) =
        (int (*)(uint64_t *, size_t, size_t, uint64_t, unsigned long long))driver("cuMemAddressReserve");
    int (*unreserve)(uint64_t, size_t) = (int (*)(uint64_t, size_t))driver("cuMemAddressFree");
    int (*create)(uint64_t *, size_t, void *, unsigned long long) =
        (int (*)(uint64_t *, size_t, void *, unsigned long long))driver("cuMemCreate");
    int (*release)(uint64_t) = (int (*)(uint64_t))driver("cuMemRelease");
    int (*granule)(size_t *, void *, int) =
        (int (*)(size_t *, void *, int))driver("cuMemGetAllocationGranularity");
    uint64_t a = 0, b = 0, piece = 0;
    size_t bytes = 0;
    void *plain = NULL;
    ck_assert_int_eq(granule(&bytes, NULL, 0), OK);
    ck_assert_uint_eq(bytes, 2 * HR_MIB);
    ck_assert_int_eq(reserve(&a, HR_GIB, 0, 0, 0), OK); // more than there is: nothing but addresses
    ck_assert_int_eq(reserve(&b, HR_GIB, 0, 0, 0), OK);
    ck_assert(b >= a + HR_GIB || a >= b + HR_GIB);
    ck_assert_int_eq(reserve(&b, 1000, 0, 0, 0), INVALID);
    ck_assert_int_eq(create(&piece, 1000, NULL, 0), INVALID);
    ck_assert_int_eq(create(&piece, 60 * HR_MIB, NULL, 0), OK);
    ck_assert_uint_eq(left(), 4 * HR_MIB);
    ck_assert_int_eq(take(6 * HR_MIB, &plain), NO_MEMORY);
    ck_assert_int_eq(create(&b, 6 * HR_MIB, NULL, 0), NO_MEMORY);
    ck_assert_int_eq(release(piece), OK);
    ck_assert_int_eq(release(piece), INVALID);
    ck_assert_uint_eq(left(), 64 * HR_MIB);
    ck_assert_int_eq(unreserve(a, HR_GIB), OK);
    ck_assert_int_eq(unreserve(a, HR_GIB), INVALID);
    ck_assert(driver("cuMulticastCreate") == NULL);
}
END_TEST

static void *one_thread(void *unused)
{
    (void)unused;
    for (int k = 0; k < 2000; k++) {
        void *address = NULL;
        ck_assert_int_eq(take(2 * HR_MIB, &address), OK);
        ck_assert_int_eq(FREE(address), OK);
        ck_assert_int_eq(take(100, &address), OK);
        ck_assert_int_eq(FREE(address), OK);
    }
    return NULL;
}

START_TEST(any_thread_may_call)
{
    open_card(64 * HR_MIB, NULL);
    pthread_t thread[2];
    for (size_t k = 0; k < 2; k++) {
        ck_assert_int_eq(pthread_create(&thread[k], NULL, one_thread, NULL), 0);
    }
    for (size_t k = 0; k < 2; k++) {
        ck_assert_int_eq(pthread_join(thread[k], NULL), 0);
    }
    ck_assert_uint_eq(left(), 64 * HR_MIB);
}
END_TEST

// cuDNN is not loaded here: PyTorch would get a status, and standard error says why.
START_TEST(without_cudnn_its_graphs_are_refused)
{
    open_card(64 * HR_MIB, NULL);
    void *handle = NULL;
    size_t bytes = 1;
    ck_assert_int_eq(CUDA(cudnnCreate, void **)(&handle), OK);
    ck_assert_int_eq(
        CUDA(cudnnBackendSetAttribute, void *, int, int, int64_t, const void *)(NULL, 800, 0, 1, &handle),
        1001);
    ck_assert_int_eq(CUDA(cudnnGetBatchNormalizationTrainingExReserveSpaceSize, void *, int, int, void *,
                          void *, size_t *)(handle, 1, 0, NULL, NULL, &bytes),
                     OK);
    ck_assert_uint_eq(bytes, 0);
    ck_assert_int_eq(CUDA(cudnnDestroy, void *)(handle), OK);
    void *blas = NULL;
    int mode = 0;
    ck_assert_int_eq(CUDA(cublasCreate_v2, void **)(&blas), OK);
    ck_assert_int_eq(CUDA(cublasSetMathMode, void *, int)(blas, 3), OK);
    ck_assert_int_eq(CUDA(cublasGetMathMode, void *, int *)(blas, &mode), OK);
    ck_assert_int_eq(mode, 3);
    ck_assert_int_eq(CUDA(cublasSgemm_v2, void *)(blas), OK);
    ck_assert_int_eq(CUDA(cublasDestroy_v2, void *)(blas), OK);
}
END_TEST

#ifdef CUDNN_FILE
// The true cuDNN, as PyTorch would have loaded it; what it answers is judged by tests of the cuda device.
static int set_in_a_plan(void)
{
    enum { PLAN = 5, GRAPH = 15, OF_PLAN = 400, OF_GRAPH = 800 };
    open_library();
    void *cudnn = dlopen(CUDNN_FILE, RTLD_NOW | RTLD_LOCAL), *made[2] = {0}, *handle = NULL;
    ck_assert_msg(cudnn != NULL, "%s", dlerror());
    int (*create)(int, void **) = NULL;
    void *symbol = dlsym(cudnn, "cudnnBackendCreateDescriptor");
    memcpy(&create, &symbol, sizeof create);
    ck_assert_int_eq(create(GRAPH, &made[0]), OK);
    ck_assert_int_eq(create(PLAN, &made[1]), OK);
    ck_assert_int_eq(CUDA(cudnnCreate, void **)(&handle), OK);
    int (*set)(void *, int, int, int64_t, const void *) =
        (int (*)(void *, int, int, int64_t, const void *))function("cudnnBackendSetAttribute");
    const int of_graph = set(made[0], OF_GRAPH, 0, 1, &handle),
              of_plan = set(made[1], OF_PLAN, 0, 1, &handle);
    ck_assert_int_eq(of_graph, of_plan);
    return of_plan;
}

START_TEST(cudnn_takes_the_cards_properties_for_a_handle)
{
    char text[4096] = {0};
    const int file = open("presets/cards/rtx4090-24g.json", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(file, 0);
    ck_assert_int_gt(read(file, text, sizeof text - 1), 0);
    close(file);
    setenv("HEADROOM_NUMBERS", text, 1);
    ck_assert_int_eq(set_in_a_plan(), OK);
}
END_TEST

START_TEST(a_card_that_cudnn_does_not_know_is_refused)
{
    char text[1024];
    (void)snprintf(text, sizeof text, shape, "890", 8ULL << 30); // without what cuDNN needs beside
    setenv("HEADROOM_NUMBERS", text, 1);
    ck_assert_int_eq(set_in_a_plan(), 1001);
}
END_TEST
#endif

START_TEST(its_management_library_knows_one_card_without_processes)
{
    library = dlopen(NUMBERS_NVML, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL, "%s", dlerror());
    void *card = NULL;
    unsigned count = 0, processes = 7;
    char uuid[41];
    ck_assert_int_eq(CUDA(nvmlInit_v2, void)(), 0);
    ck_assert_int_eq(CUDA(nvmlDeviceGetCount_v2, unsigned *)(&count), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(CUDA(nvmlDeviceGetHandleByIndex_v2, unsigned, void **)(1, &card), 2);
    ck_assert_int_eq(CUDA(nvmlDeviceGetHandleByPciBusId_v2, const char *, void **)("0000:01:00.0", &card), 0);
    ck_assert_int_eq(
        CUDA(nvmlDeviceGetComputeRunningProcesses, void *, unsigned *, void *)(card, &processes, NULL), 0);
    ck_assert_uint_eq(processes, 0);
    ck_assert_int_eq(CUDA(nvmlDeviceGetUUID, void *, char *, unsigned)(card, uuid, 40), 2);
    ck_assert_int_eq(CUDA(nvmlDeviceGetUUID, void *, char *, unsigned)(card, uuid, 41), 0);
    ck_assert_str_eq(uuid, "GPU-68656164-726f-6f6d-206e-756d62657273"); // cudaDeviceProp.uuid
}
END_TEST

int main(void)
{
    Suite *s = suite_create("card of numbers");
    TCase *t = tcase_create("card of numbers");
    suite_add_tcase(s, t);
    tcase_add_test(t, a_card_is_what_its_file_says);
    tcase_add_test(t, there_is_one_device);
    tcase_add_test(t, without_a_card_there_is_none_and_it_is_said);
    tcase_add_loop_test(t, a_count_that_is_none_is_named, 0, 5);
    tcase_add_test(t, a_context_larger_than_the_card_is_refused);
    tcase_add_test(t, memory_comes_in_granules_until_there_is_none);
    tcase_add_test(t, requests_of_many_tib_do_not_meet);
    tcase_add_test(t, a_card_of_more_than_there_are_addresses_is_refused);
    tcase_add_test(t, small_requests_share_a_granule);
    tcase_add_test(t, what_was_not_given_is_not_taken_back);
    tcase_add_test(t, random_requests_are_as_a_plain_model_says);
    tcase_add_test(t, copies_from_the_card_are_zeros);
    tcase_add_test(t, work_is_done_when_it_is_enqueued);
    tcase_add_test(t, what_would_have_to_do_something_is_refused);
    tcase_add_test(t, segments_expand_by_the_drivers_mapping);
    tcase_add_test(t, any_thread_may_call);
    tcase_add_test(t, without_cudnn_its_graphs_are_refused);
    tcase_add_test(t, its_management_library_knows_one_card_without_processes);
#ifdef CUDNN_FILE
    tcase_add_test(t, cudnn_takes_the_cards_properties_for_a_handle);
    tcase_add_test(t, a_card_that_cudnn_does_not_know_is_refused);
#endif
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    const int failures = srunner_ntests_failed(r);
    srunner_free(r);
    return failures == 0 ? 0 : 1;
}
