// SPDX-License-Identifier: Apache-2.0
// The cuda device: an NVIDIA card through the driver, cuDNN, cuBLASLt and kernels of our own; or, opened for plans, the
// same choices without driver and card.
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "backing.h"
#include "base/hash.h"
#include "base/host_mem.h"
#include "base/text.h"
#include "device/card_time.h"
#include "graph_library.h"
#include "outside.h"
#include "step.h"

enum { NAME_BYTES = 64 };

// ---- open and close -----------------------------------------------------------------------------------------------

static hr_status attribute(const cuda_device *device, CUdevice_attribute which, uint32_t *out, hr_err *err)
{
    int value = 0;
    HR_TRY(CUDA_CALL(err, cuDeviceGetAttribute, &value, which, device->ordinal));
    *out = (uint32_t)value;
    return HR_OK;
}

static hr_status read_traits(cuda_device *device, hr_err *err)
{
    cuda_traits *t = &device->traits;
    uint32_t shared_bytes = 0;
    HR_TRY(attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &t->compute_major, err));
    HR_TRY(attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &t->compute_minor, err));
    HR_TRY(attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &t->multiprocessors, err));
    HR_TRY(attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &shared_bytes, err));
    HR_TRY(CUDA_CALL(err, cuDeviceGetName, device->title, sizeof device->title, device->ordinal));
    t->shared_bytes_per_block = shared_bytes;
    (void)snprintf(device->isa, sizeof device->isa, "sm_%u%u %s", t->compute_major, t->compute_minor,
                   device->title);
    return HR_OK;
}

// Shared memory of a block by compute capability, with opt-in (CUDA C++ Programming Guide, table of technical
// specifications), and multiprocessors of the largest card of that kind.
static const struct {
    uint32_t major, minor, multiprocessors;
    uint64_t shared_kib;
} generations[] = {
    {7, 5, 72, 64},  {8, 0, 108, 163}, {8, 6, 84, 99},    {8, 7, 16, 163},
    {8, 9, 142, 99}, {9, 0, 132, 227}, {10, 0, 148, 227}, {12, 0, 188, 99},
};

static hr_status guess_traits(cuda_device *device, const hr_card *card, hr_err *err)
{
    const uint32_t major = card == NULL ? 9 : card->compute_major,
                   minor = card == NULL ? 0 : card->compute_minor;
    for (size_t k = 0; k < sizeof generations / sizeof *generations; k++) {
        if (generations[k].major == major && generations[k].minor == minor) {
            device->traits = (cuda_traits){.compute_major = major,
                                           .compute_minor = minor,
                                           .multiprocessors = generations[k].multiprocessors,
                                           .shared_bytes_per_block = generations[k].shared_kib * HR_KIB};
            (void)snprintf(device->isa, sizeof device->isa, "sm_%u%u", major, minor);
            return HR_OK;
        }
    }
    return HR_FAIL(err, DEVICE,
                   "device 'cuda' needed a card of compute capability 7.5 or later, %s has %u.%u",
                   card == NULL ? "it" : card->name, major, minor);
}

// A plan that names no card is for the one that is here: its attributes say enough, nothing of it is taken.
static bool plan_this_card(cuda_device *device)
{
    return cuda_driver_need(NULL) == HR_OK && cuda_driver.cuDeviceGet(&device->ordinal, 0) == CUDA_SUCCESS &&
           read_traits(device, NULL) == HR_OK;
}

// What answered: "sm_90 NVIDIA H200, cuDNN 9.19.0, unverified". No card has confirmed what is planned.
static void say_who_answers(cuda_device *device)
{
    char words[NAME_BYTES];
    const size_t used = strlen(device->isa);
    graph_library_words(device->graphs, words, sizeof words);
    (void)snprintf(device->isa + used, sizeof device->isa - used, ", %s%s", words,
                   device->plan_only ? ", unverified" : "");
}

static hr_status check_kind(const hr_card *card, const cuda_properties *p, hr_err *err)
{
    if (p->traits.compute_major == card->compute_major && p->traits.compute_minor == card->compute_minor) {
        return HR_OK;
    }
    (void)HR_FAIL(err, PRESET, "%s is of compute capability %u.%u, card %s has %u.%u", card->properties_path,
                  p->traits.compute_major, p->traits.compute_minor, card->name, card->compute_major,
                  card->compute_minor);
    hr_err_try(err, "a file as presets/cards/PROPERTIES.md describes it; headroom cards");
    return HR_PRESET;
}

static graph_options library_options(cuda_device *device)
{
    return (graph_options){.tf32 = device->tf32,
                           .deterministic = device->deterministic,
                           .search = device->search,
                           .title = device->title,
                           .traits = &device->traits};
}

// Without a card: what is known of it from its property file, else from its generation.
static hr_status plan_card(cuda_device *device, const hr_card *card, hr_err *err)
{
    cuda_properties properties;
    graph_options options = library_options(device);
    if (card == NULL && plan_this_card(device)) {
        options.card = true;
        options.ordinal = device->ordinal;
        return graph_library_open(&options, &device->graphs, err);
    }
    HR_TRY(guess_traits(device, card, err));
    if (card != NULL && card->properties_path[0] != '\0') {
        HR_TRY(cuda_properties_read(card->properties_path, &properties, err));
        HR_TRY(check_kind(card, &properties, err));
        device->traits = properties.traits;
        options.properties = &properties;
        options.properties_path = card->properties_path;
        (void)text_copy(device->title, sizeof device->title, properties.name);
        (void)snprintf(device->isa, sizeof device->isa, "sm_%u%u %s", properties.traits.compute_major,
                       properties.traits.compute_minor, properties.name);
    }
    return graph_library_open(&options, &device->graphs, err);
}

static hr_status make_streams(cuda_device *device, hr_err *err)
{
    for (uint32_t k = 0; k < HR_LANE_COUNT; k++) {
        HR_TRY(CUDA_CALL(err, cuStreamCreate, &device->lane[k], CU_STREAM_NON_BLOCKING));
    }
    return CUDA_CALL(err, cuMemAlloc_v2, &device->small, CUDA_SMALL_BYTES);
}

static hr_status retain_context(cuda_device *device, hr_err *err)
{
    const CUresult result = cuda_driver.cuDevicePrimaryCtxRetain(&device->context, device->ordinal);
    if (result == CUDA_SUCCESS) {
        return cuda_enter(device, err);
    }
    device->context = NULL;
    return cuda_check(result, err, "starting work on the card");
}

// What a step of ours would take is not asked for yet.
static hr_status refuse_full_card(hr_err *err)
{
    (void)HR_FAIL(err, DEVICE,
                  "device 'cuda' needed memory for a context, the card has none: other processes hold it");
    hr_err_try(err, "nvidia-smi, which lists them; or -s device.kind=plan");
    return HR_DEVICE;
}

static hr_status start_work(cuda_device *device, hr_err *err)
{
    HR_TRY(retain_context(device, err));
    return make_streams(device, err);
}

static hr_status open_card(cuda_device *device, hr_err *err)
{
    HR_TRY(cuda_driver_need(err));
    HR_TRY(CUDA_CALL(err, cuDeviceGet, &device->ordinal, 0));
    HR_TRY(read_traits(device, err));
    const uint64_t before_bytes = cuda_card_used_bytes(device);
    const hr_status status = start_work(device, err);
    if (status != HR_OK) {
        return status == HR_OOM ? refuse_full_card(err) : status;
    }
    graph_options options = library_options(device);
    options.card = true;
    options.ordinal = device->ordinal;
    options.search_on = device;
    HR_TRY(graph_library_open(&options, &device->graphs, err));
    const uint64_t after_bytes = cuda_card_used_bytes(device);
    device->context_bytes = after_bytes > before_bytes ? after_bytes - before_bytes : CUDA_SMALL_BYTES;
    return HR_OK;
}

static void close_card(cuda_device *device)
{
    (void)cuda_settle(device, NULL);
    graph_library_close(device->graphs);
    device->graphs = NULL;
    for (uint32_t k = 0; k < HR_LANE_COUNT; k++) {
        if (device->lane[k] != NULL) {
            (void)cuda_driver.cuStreamDestroy_v2(device->lane[k]);
        }
    }
    if (device->small != 0) {
        (void)cuda_driver.cuMemFree_v2(device->small);
    }
    cuda_kernels_close(device);
    (void)cuda_driver.cuDevicePrimaryCtxRelease_v2(device->ordinal);
}

static void cuda_close(void *context)
{
    cuda_device *device = context;
    if (device->context != NULL) {
        close_card(device);
    }
    graph_library_close(device->graphs);
    pthread_mutex_destroy(&device->asking);
    hr_free(device);
}

// Of the card's kind, its driver, what cuDNN is asked with, and the knobs: what becomes a plan on a card is its driver's
// affair too, and answers outlive the process.
static uint64_t key_of(const cuda_device *device)
{
    int driver = 0;
    if (device->context != NULL) {
        (void)cuda_driver.cuDriverGetVersion(&driver);
    }
    const uint64_t card = hash64_mix(hash64(device->isa, strlen(device->isa), 0), (uint64_t)driver);
    return hash64_mix(card, graph_library_key(device->graphs));
}

static atomic_uint_fast64_t searching; // devices with workspace.search so far

static hr_status cuda_open(const device_options *options, void **context, hr_err *err)
{
    *context = NULL;
    cuda_device *device = hr_calloc(1, sizeof *device);
    if (device == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the cuda device");
    }
    pthread_mutex_init(&device->asking, NULL);
    device->plan_only = options->plan_only;
    device->tf32 = options->tf32;
    device->deterministic = options->deterministic;
    device->capture = options->capture;
    device->search = options->search;
    hr_status status = card_time_open(&device->speed, options->card, options->tf32, options->capture, err);
    if (status == HR_OK) {
        status = device->plan_only ? plan_card(device, options->card, err) : open_card(device, err);
    }
    if (status != HR_OK) {
        cuda_close(device);
        return status;
    }
    device->key = key_of(device);
    if (device->search) { // it counts what has no time yet, so that answers to another device are none to it
        device->key = hash64_mix(device->key, atomic_fetch_add(&searching, 1) + 1);
    }
    say_who_answers(device);
    *context = device;
    return HR_OK;
}

static void cuda_target(void *context, hr_target *out)
{
    cuda_fill_target(context, device_cuda.name, out);
}

static void cuda_isa(void *context, char *name, uint32_t size)
{
    (void)text_copy(name, size, ((const cuda_device *)context)->isa);
}

// ---- time ---------------------------------------------------------------------------------------------------------

static hr_time_basis cuda_time_basis(void *context)
{
    return card_time_basis(&((const cuda_device *)context)->speed);
}

static uint64_t cuda_duration_ns(void *context, const program *p, const instr *i)
{
    return card_time_ns(&((const cuda_device *)context)->speed, p, i);
}

static uint64_t cuda_issue_ns(void *context, const program *p, const instr *i)
{
    return card_issue_ns(&((const cuda_device *)context)->speed, p, i);
}

static double cuda_spread(void *context, const instr *i)
{
    (void)context;
    return card_time_spread(i);
}

// ---- memory -------------------------------------------------------------------------------------------------------

static hr_status cuda_memory(void *context, uint64_t capacity_bytes, bool numbers, backing *out, hr_err *err)
{
    return numbers ? cuda_numbers_open(context, capacity_bytes, out, err)
                   : cuda_backing_open(context, capacity_bytes, out, err);
}

// On the stream that computes: what was enqueued before is done before, what comes after finds it.
static hr_status copy_done(cuda_device *device, hr_err *err)
{
    return cuda_check(cuda_driver.cuStreamSynchronize(device->lane[HR_LANE_COMPUTE]), err,
                      "waiting for a copy");
}

static hr_status cuda_copy_in(void *context, uint64_t address, const void *host, uint64_t bytes, hr_err *err)
{
    cuda_device *device = context;
    HR_TRY(cuda_enter(device, err));
    HR_TRY(cuda_noted(
        device, CUDA_CALL(err, cuMemcpyHtoDAsync_v2, address, host, bytes, device->lane[HR_LANE_COMPUTE])));
    return cuda_noted(device, copy_done(device, err));
}

static hr_status cuda_copy_out(void *context, uint64_t address, void *host, uint64_t bytes, hr_err *err)
{
    cuda_device *device = context;
    HR_TRY(cuda_enter(device, err));
    HR_TRY(cuda_noted(
        device, CUDA_CALL(err, cuMemcpyDtoHAsync_v2, host, address, bytes, device->lane[HR_LANE_COMPUTE])));
    return cuda_noted(device, copy_done(device, err));
}

static bool cuda_facts(void *context, device_facts *out)
{
    cuda_device *device = context;
    cuda_properties properties;
    size_t vram_bytes = 0;
    *out = (device_facts){.compute_major = device->traits.compute_major,
                          .compute_minor = device->traits.compute_minor,
                          .multiprocessors = device->traits.multiprocessors};
    if (cuda_enter(device, NULL) != HR_OK ||
        graph_library_properties(device->graphs, &properties, NULL) != HR_OK ||
        cuda_driver.cuDeviceTotalMem_v2(&vram_bytes, device->ordinal) != CUDA_SUCCESS) {
        return false;
    }
    out->vram_bytes = vram_bytes;
    return text_copy(out->title, sizeof out->title, properties.name) &&
           text_copy(out->properties, sizeof out->properties, properties.text);
}

static void cuda_searched(void *context, device_search *out)
{
    graph_library_searched(((cuda_device *)context)->graphs, out);
}

static bool cuda_outdated(void *context)
{
    return graph_library_outdated(((cuda_device *)context)->graphs);
}

const device_ops device_cuda = {
    .name = "cuda",
    .line = "an NVIDIA card through cuDNN, cuBLASLt and kernels of our own",
    .open = cuda_open,
    .close = cuda_close,
    .target = cuda_target,
    .outdated = cuda_outdated,
    .isa = cuda_isa,
    .memory = cuda_memory,
    .host_take = cuda_host_take,
    .host_give_back = cuda_host_give_back,
    .pinned = cuda_pinned_open,
    .admit = cuda_admit,
    .load = cuda_load,
    .unload = cuda_unload,
    .prepared = cuda_prepared_of,
    .captured = cuda_captured,
    .searched = cuda_searched,
    .run = cuda_run_instr,
    .begin_round = cuda_begin_round,
    .batch_read = cuda_batch_read,
    .end_step = cuda_end_step,
    .abandon_step = cuda_abandon_step,
    .time = cuda_time,
    .took = cuda_took,
    .outside = cuda_outside,
    .facts = cuda_facts,
    .time_basis = cuda_time_basis,
    .duration_ns = cuda_duration_ns,
    .card_times = true,
    .issue_ns = cuda_issue_ns,
    .spread = cuda_spread,
    .copy_in = cuda_copy_in,
    .copy_out = cuda_copy_out,
};
