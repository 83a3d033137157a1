// SPDX-License-Identifier: Apache-2.0
// A device: what runs instructions. Each folder below device/ fills one table and one target; the executor knows
// only this. One engine thread uses a device at a time.
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/card.h"
#include "headroom/status.h"

#include "memory/backing.h"
#include "program/program.h"
#include "program/target.h"

typedef struct device_options {
    const hr_card *card; // NULL: undressed
    uint32_t threads;    // cpu
} device_options;

// What changes from step to step, and what a step gives back. Host memory, borrowed for the call.
typedef struct step_io {
    const float *images;   // host batch, [samples, ...] plain; INPUT slot 0 copies (and widens for float64)
    const int32_t *labels; // [samples]; INPUT slot 1
    double learning_rate;
    uint64_t update; // 1-based number of this update (Adam's t)
    double loss;     // out: READ slot 0
    int64_t correct; // out: READ slot 1
} step_io;

typedef struct device_ops {
    const char *name; // "cpu"
    const char *line; // one line for `headroom devices`
    bool simulated;   // no arithmetic: time comes from the card's roofline
    // DEPENDENCY error when the library or the card is missing: sentence says what to install.
    hr_status (*open)(const device_options *options, void **context, hr_err *err);
    void (*close)(void *context);
    void (*target)(void *context, hr_target *out); // borrowed until close
    void (*isa)(void *context, char *text, uint32_t size);
    uint32_t (*threads)(void *context); // that kernels run on; optional: NULL means one
    // Opens the memory of this device. With `numbers` the same granularity and alignment without memory behind.
    hr_status (*memory)(void *context, uint64_t capacity_bytes, bool numbers, backing *out, hr_err *err);
    // optional: HOST_LIMIT error when memory that a plan says will be used, at its peak, is not to be had. The
    // limit of a virtual card may be larger than this machine: only what is used counts.
    hr_status (*admit)(void *context, uint64_t peak_bytes, hr_err *err);
    // Makes every kernel of the program ready; nothing is created while running. DEVICE error names the
    // instruction that has no kernel. The program is borrowed until unload.
    hr_status (*load)(void *context, const program *p, void **kernels, hr_err *err);
    void (*unload)(void *context, void *kernels);
    // Runs one instruction. address[id] is where tensor id lies; never called for ALLOC, FREE and views.
    hr_status (*run)(void *context, void *kernels, uint32_t instr, void *const *address, step_io *io,
                     hr_err *err);
    // simulated devices only: nanoseconds instruction `instr` takes. NULL elsewhere.
    uint64_t (*duration_ns)(void *context, void *kernels, uint32_t instr);
    // Plain copies between host and device memory, for weights, saves and rebuilds.
    hr_status (*copy_in)(void *context, uint64_t address, const void *host, uint64_t bytes, hr_err *err);
    hr_status (*copy_out)(void *context, uint64_t address, void *host, uint64_t bytes, hr_err *err);
} device_ops;

// Rows of every device that was built in. "cpu" is missing when oneDNN was not found at configure time.
const device_ops *const *device_rows(uint32_t *count);
// DEPENDENCY error lists what there is.
HR_MUST_CHECK hr_status device_find(const char *kind, const device_ops **out, hr_err *err);

extern const device_ops device_plan;
extern const device_ops device_reference;
extern const device_ops device_cpu;

#endif
