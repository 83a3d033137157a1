// SPDX-License-Identifier: Apache-2.0
// The cpu device: float32 on the threads of this machine, through oneDNN and kernels of our own.
#include "cpu.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "base/hash.h"
#include "base/host_mem.h"
#include "base/machine.h"
#include "base/text.h"
#include "base/workers.h"
#include "device/rates_usual.h"
#include "gemm.h"
#include "running.h"

enum { PAGE_BYTES = 4096, THREADS_MAX = 1024, PATH_BYTES = 4096 };

// ---- open and close ---------------------------------------------------------------------------------------

static uint64_t target_key(const cpu_device *device)
{
    const char *isa = onednn_isa(), *tiles = gemm_isa();
    uint64_t key = hash64(isa, strlen(isa), onednn_version());
    key = hash64(tiles, strlen(tiles), key);
    return hash64_mix(key, device->threads);
}

static void cpu_close(void *context)
{
    cpu_device *device = context;
    onednn_close(device->library);
    workers_destroy(device->workers);
    workers_restore(device->former_mode);
    hr_free(device);
}

static hr_status cpu_open(const device_options *options, void **context, hr_err *err)
{
    *context = NULL;
    if (options->threads > THREADS_MAX) {
        return HR_FAIL(err, DEVICE, "the cpu device runs at most %d threads, threads.count is %u",
                       THREADS_MAX, options->threads);
    }
    HR_TRY(onednn_load(err));
    gemm_keep_to(onednn_lanes());
    cpu_device *device = hr_calloc(1, sizeof *device);
    if (device == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the cpu device");
    }
    device->threads = options->threads == 0 ? hr_machine_cores() : options->threads;
    device->former_mode = workers_flush_denormals();
    device->bf16 = strstr(onednn_isa(), "bf16") != NULL || strstr(onednn_isa(), "amx") != NULL;
    hr_status status = workers_create(device->threads, &device->workers, err);
    if (status == HR_OK) {
        onednn_settle_threads(device->threads);
        status = onednn_open(&device->library, err);
    }
    if (status != HR_OK) {
        cpu_close(device);
        return status;
    }
    device->key = target_key(device);
    char path[PATH_BYTES];
    device->calibrated = rates_path(path, sizeof path) && rates_load(path, device->key, &device->rates);
    if (!device->calibrated) {
        rates_usual(&device->rates, device->threads, onednn_lanes(), device->bf16);
    }
    *context = device;
    return HR_OK;
}

static void cpu_target(void *context, hr_target *out)
{
    cpu_fill_target(context, device_cpu.name, out);
}

static uint32_t cpu_threads(void *context)
{
    return ((const cpu_device *)context)->threads;
}

static hr_time_basis cpu_time_basis(void *context)
{
    return ((const cpu_device *)context)->calibrated ? HR_TIME_CALIBRATION : HR_TIME_USUAL_CORES;
}

static uint64_t cpu_duration_ns(void *context, const program *p, const instr *i)
{
    return rates_ns(&((const cpu_device *)context)->rates, p, i);
}

// Of a step as a whole, by which calibration was off for models that it had not seen.
static double cpu_spread(void *context, const instr *i)
{
    (void)i;
    return ((const cpu_device *)context)->rates.spread;
}

static void cpu_isa(void *context, char *name, uint32_t size)
{
    (void)context;
    (void)text_copy(name, size, onednn_isa());
}

static const char *cpu_remark(void *context)
{
    (void)context;
    return onednn_isa_remark();
}

// ---- memory -----------------------------------------------------------------------------------------------

static hr_status cpu_memory(void *context, uint64_t capacity_bytes, bool numbers, backing *out, hr_err *err)
{
    (void)context;
    if (numbers) {
        return backing_numbers_open(capacity_bytes, PAGE_BYTES, out, err);
    }
    return backing_pages_open(capacity_bytes, out, err);
}

static hr_status cpu_admit(void *context, uint64_t in_use_bytes, uint64_t pool_bytes, hr_err *err)
{
    (void)context, (void)pool_bytes; // pages come when they are touched
    const uint64_t available = hr_machine_available_bytes(), most = available / 100 * MACHINE_SHARE_PCT;
    if (available != UINT64_MAX && in_use_bytes > most) {
        char needed[HR_BYTES_TEXT_MAX], had[HR_BYTES_TEXT_MAX];
        return HR_FAIL(err, HOST_LIMIT,
                       "the step needs %s at its peak, %d %% of this machine's available memory is %s",
                       hr_bytes_human(in_use_bytes, needed), MACHINE_SHARE_PCT, hr_bytes_human(most, had));
    }
    return HR_OK;
}

static hr_status cpu_copy_in(void *context, uint64_t address, const void *host, uint64_t bytes, hr_err *err)
{
    (void)context, (void)err;
    memcpy((void *)(uintptr_t)address, host, bytes);
    return HR_OK;
}

static hr_status cpu_copy_out(void *context, uint64_t address, void *host, uint64_t bytes, hr_err *err)
{
    (void)context, (void)err;
    memcpy(host, (const void *)(uintptr_t)address, bytes);
    return HR_OK;
}

// ---- programs ---------------------------------------------------------------------------------------------

typedef struct prepared {
    const cpu_impl *impl; // NULL: nothing runs
    void *state;
    op_query query;
} prepared;

typedef struct loaded_program {
    const program *source; // borrowed until unload
    prepared *instrs;
} loaded_program;

static void cpu_unload(void *context, void *kernels)
{
    (void)context;
    loaded_program *loaded = kernels;
    if (loaded == NULL) {
        return;
    }
    for (uint32_t n = 0; loaded->instrs != NULL && n < loaded->source->instr_count; n++) {
        const prepared *k = &loaded->instrs[n];
        if (k->state != NULL) {
            k->impl->release(k->state);
        }
    }
    hr_free(loaded->instrs);
    hr_free(loaded);
}

static hr_status prepare_one(const cpu_device *device, const program *p, const instr *i, prepared *k,
                             hr_err *err)
{
    if (!op_needs_kernel(i->op)) {
        return HR_OK;
    }
    program_query(p, i, &k->query);
    HR_TRY(cpu_pick(device, &k->query, &k->impl, err));
    if (k->impl->prepare == NULL) {
        return HR_OK;
    }
    return k->impl->prepare(device, p, i, &k->query, &k->state, err);
}

static hr_status prepare_all(const cpu_device *device, loaded_program *loaded, hr_err *err)
{
    const program *p = loaded->source;
    loaded->instrs = hr_calloc(p->instr_count, sizeof *loaded->instrs);
    if (loaded->instrs == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the kernels of %u instructions", p->instr_count);
    }
    for (uint32_t n = 0; n < p->instr_count; n++) {
        HR_TRY(prepare_one(device, p, &p->instrs[n], &loaded->instrs[n], err));
    }
    return HR_OK;
}

static hr_status cpu_load(void *context, const program *p, void **kernels, hr_err *err)
{
    *kernels = NULL;
    const cpu_device *device = context;
    loaded_program *loaded = hr_calloc(1, sizeof *loaded);
    if (loaded == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a program's kernels");
    }
    loaded->source = p;
    // Mode and team belong to the thread that runs; it may not be the one that opened the device.
    (void)workers_flush_denormals();
    onednn_settle_threads(device->threads);
    const hr_status status = prepare_all(device, loaded, err);
    if (status != HR_OK) {
        cpu_unload(context, loaded);
        return status;
    }
    *kernels = loaded;
    return HR_OK;
}

static _Atomic(const char *) running;

const char *cpu_running(char *isa, size_t size)
{
    const char *who = atomic_load_explicit(&running, memory_order_relaxed);
    (void)text_copy(isa, size, who == NULL ? "" : onednn_isa());
    return who;
}

static hr_status run_prepared(const prepared *k, const cpu_run *r, hr_err *err)
{
    if (k->impl->call != NULL) {
        return k->impl->call(r, err);
    }
    k->impl->run(r);
    return HR_OK;
}

static hr_status cpu_run_instr(void *context, void *kernels, uint32_t at, void *const *address, step_io *io,
                               hr_err *err)
{
    const loaded_program *loaded = kernels;
    const prepared *k = &loaded->instrs[at];
    const instr *i = &loaded->source->instrs[at];
    if (k->impl == NULL) {
        return HR_OK;
    }
    cpu_run r = {.device = context, .query = &k->query, .state = k->state, .io = io};
    for (uint32_t n = 0; n < i->in_count; n++) {
        r.in[n] = address[i->in[n]];
    }
    for (uint32_t n = 0; n < i->out_count; n++) {
        r.out[n] = address[i->out[n]];
    }
    r.workspace = i->workspace == HR_NO_ID ? NULL : address[i->workspace];
    atomic_store_explicit(&running, i->impl != NULL ? i->impl : k->impl->name, memory_order_relaxed);
    const hr_status status = run_prepared(k, &r, err);
    atomic_store_explicit(&running, NULL, memory_order_relaxed);
    return status;
}

const device_ops device_cpu = {
    .name = "cpu",
    .in_order = true,
    .line = "this machine's cores through oneDNN, float32, under a capped virtual card",
    .open = cpu_open,
    .close = cpu_close,
    .target = cpu_target,
    .isa = cpu_isa,
    .remark = cpu_remark,
    .threads = cpu_threads,
    .memory = cpu_memory,
    .admit = cpu_admit,
    .load = cpu_load,
    .unload = cpu_unload,
    .run = cpu_run_instr,
    .time_basis = cpu_time_basis,
    .duration_ns = cpu_duration_ns,
    .spread = cpu_spread,
    .copy_in = cpu_copy_in,
    .copy_out = cpu_copy_out,
};
