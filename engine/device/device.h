// SPDX-License-Identifier: Apache-2.0
// A device: what runs instructions. Each folder below device/ fills one table and one target; the executor knows
// only this. One engine thread uses a device at a time.
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/card.h"
#include "headroom/status.h"
#include "headroom/time_basis.h"

#include "base/pinned.h"
#include "memory/backing.h"
#include "program/program.h"
#include "program/target.h"

typedef struct device_options {
    const hr_card *card; // NULL: undressed
    uint32_t threads;    // cpu
    bool plan_only;      // nothing will run: cuda then needs neither driver nor card
    bool tf32;           // float32 products may round their operands to TF32
    bool deterministic;  // cuda: only kernels that give the same bits every time
    bool capture;        // steady steps are captured into a CUDA graph and replayed
    bool search;         // cuda: engines of cuDNN by measured times, which a card that is there completes
} device_options;

// What stands outside the pool, in bytes of the card: what our context and libraries took beside the allocator, what
// the driver says this process has, and what everyone else has.
typedef struct device_outside {
    bool known; // a card is there
    uint64_t context_bytes, process_bytes, others_bytes;
} device_outside;

// What a card that is there says of itself.
enum { DEVICE_PROPERTIES_MAX = 4096 };
typedef struct device_facts {
    char title[64];
    uint32_t compute_major, compute_minor, multiprocessors;
    uint64_t vram_bytes;
    char properties[DEVICE_PROPERTIES_MAX]; // JSON, as a library takes it to plan without the card
} device_facts;

// What became of the steps' capture into a CUDA graph.
typedef struct device_capture {
    bool wanted;         // the device was opened with `capture`
    uint64_t replays;    // steps that were launched as a captured graph, the one of the capture included
    const char *refused; // why no step could be captured; NULL: one was, or is soon. Borrowed until unload
} device_capture;

// What became of measuring a library's engines.
typedef struct device_search {
    bool wanted;                   // the device was opened with `search`
    uint32_t known;                // graphs whose engines' times are known for this card and library
    uint32_t measured, unmeasured; // since it was opened: of the known; and those without times
    uint64_t took_ns;              // measuring
    const char
        *refused; // why one could not be measured, or times are not kept; NULL: none. Borrowed until close
} device_search;

// The implementation of an instruction that `load` has prepared.
typedef struct device_prepared {
    const char *
        impl; // of target_impl_name; NULL: nothing is computed, or the device takes what was planned or fails
    const char
        *reason; // why not what was planned, as far as it was seen; NULL otherwise. Borrowed until unload
} device_prepared;

// What changes from step to step, and what a step gives back. Host memory, borrowed for the call.
enum { STEP_MAX_SLOTS = 4 };

typedef struct step_io {
    // Host batch: slot k of the model, [samples, ...] plain, in the type of the tensor that INPUT or PREFETCH writes, but
    // float32 for float64. It is not changed before next_round is called or the step is over.
    const void *slot[STEP_MAX_SLOTS];
    uint64_t seed;         // of everything random
    uint64_t first_sample; // global index of the batch's first sample: what dropout masks are drawn for
    double learning_rate;
    uint64_t update;      // 1-based number of this update (Adam's t)
    uint64_t pruned_from; // updates that were done when pruning began: its schedule counts from there
    double loss_weight;   // of this batch in `loss`; 0 stands for 1
    // The next batch of an accumulated step: called before every round of REPEAT but the first; fills slot,
    // first_sample and loss_weight. NULL: the same batch again (plans).
    hr_status (*next_round)(void *context, struct step_io *io, hr_err *err);
    void *context;
    bool (*goes_on)(void *context, uint32_t done, uint32_t rounds); // hr_engine_options.goes_on; may be NULL
    void *goes_on_context;
    void (*before_update)(void *context); // hr_engine_options.before_update; may be NULL
    void *before_update_context;
    double loss;      // out: READ_LOSS adds loss_weight * weight * loss; the caller begins with 0
    double by_labels; // out: of it READ_OF_LABELS
    double distance;  // out: of it READ_OF_TEACHER
    int64_t correct;  // out: READ_CORRECT adds
    bool nonfinite;   // out: READ_FINITE: a gradient was not finite and the update did not happen
    float loss_scale; // out: READ_FINITE: the scale after this step
    const float
        *health; // out: READ_HEALTH: [params, 3] flushed, overflowing, elements; valid until the next step
} step_io;

// The update of PRUNE's schedule (ops/prune.h).
static inline uint64_t prune_update(const step_io *io)
{
    return io->update - io->pruned_from;
}

// What READ_LOSS multiplies a loss with.
static inline double step_io_weight(const step_io *io, const op_attr *attr)
{
    return (io->loss_weight == 0 ? 1.0 : io->loss_weight) * (attr->scale == 0 ? 1.0 : attr->scale);
}

// READ_LOSS has brought `loss`; `weight`: of step_io_weight in its round.
static inline void step_io_add_loss(step_io *io, const op_attr *attr, double weight, double loss)
{
    io->loss += weight * loss;
    io->by_labels += attr->rule == READ_OF_LABELS ? weight * loss : 0;
    io->distance += attr->rule == READ_OF_TEACHER ? weight * loss : 0;
}

typedef struct device_ops {
    const char *name; // "cpu"
    const char *line; // one line for `headroom devices`
    bool simulated;   // no arithmetic: the executor's clock is duration_ns
    bool in_order; // runs one instruction after the other, whatever its lane: no copy is beside what computes
    // DEPENDENCY error when the library or the card is missing: sentence says what to install.
    hr_status (*open)(const device_options *options, void **context, hr_err *err);
    void (*close)(void *context);
    void (*target)(void *context, hr_target *out); // borrowed until close
    void (*isa)(void *context, char *text, uint32_t size);
    bool (*outdated)(void *context);      // optional: true: what was read at open has changed, open it anew
    const char *(*remark)(void *context); // optional: what was decided about it and why, "" when nothing was
    uint32_t (*threads)(void *context);   // that kernels run on; optional: NULL means one
    // Opens the memory of this device. With `numbers` the same granularity and alignment without memory behind.
    hr_status (*memory)(void *context, uint64_t capacity_bytes, bool numbers, backing *out, hr_err *err);
    // optional, both or none: zeroed host memory for tensors that lie there, in the form that copies to and from the
    // device are quick with. NOMEM error.
    hr_status (*host_take)(void *context, uint64_t bytes, void **out, hr_err *err);
    void (*host_give_back)(void *context, void *memory); // NULL is fine
    // optional: memory for batches that the device is to copy from without another copy on the host. It outlives the
    // device. DEVICE error.
    hr_status (*pinned)(void *context, pinned_memory *out, hr_err *err);
    // optional: HOST_LIMIT error when memory that a plan says will be used is not to be had: at its peak, in use and in
    // the pool. The limit of a virtual card may be larger than this machine: only what is used counts there. On a card the
    // pool does: an allocator that is given less than it asks for decides otherwise than its plan.
    hr_status (*admit)(void *context, uint64_t in_use_bytes, uint64_t pool_bytes, hr_err *err);
    // Makes every kernel of the program ready; nothing is created while running. DEVICE error names the
    // instruction that has no kernel. The program is borrowed until unload.
    hr_status (*load)(void *context, const program *p, void **kernels, hr_err *err);
    void (*unload)(void *context, void *kernels);
    // optional, of what `load` made. NULL: everything is what was planned; nothing is captured.
    void (*prepared)(void *kernels, uint32_t at, device_prepared *out);
    void (*captured)(void *kernels, device_capture *out);
    void (*searched)(void *context, device_search *out); // optional: NULL, nothing is measured
    // Runs one instruction. address[id] is where tensor id lies; never called for ALLOC, FREE and views.
    hr_status (*run)(void *context, void *kernels, uint32_t instr, void *const *address, step_io *io,
                     hr_err *err);
    // optional, all of them or none: around every step. begin_round comes before the first instruction of every round
    // (0, 1, …; a program without REPEAT has one) with that round's io; end_step waits until the step is done and
    // fills the outputs of io; abandon_step waits for what still runs of a step that failed, and forgets it.
    // DEVICE_LOST from any of them, from run or from a copy: the context is gone, only a new process helps.
    hr_status (*begin_round)(void *context, void *kernels, uint32_t round, step_io *io, hr_err *err);
    hr_status (*end_step)(void *context, void *kernels, step_io *io, hr_err *err);
    void (*abandon_step)(void *context, void *kernels);
    // optional; without it a batch was read when `run` returns. Waits until the batch of the round under way was read: its
    // host memory may then be written anew.
    hr_status (*batch_read)(void *context, void *kernels, hr_err *err);
    // optional, both; a device without them is done when `run` returns. `time`, once behind load: from now on what these
    // kernels do is timed on the device. `took`, behind a step: how long instruction `at` took in its last round; 0: it did not run.
    hr_status (*time)(void *context, void *kernels, hr_err *err);
    hr_status (*took)(void *kernels, uint32_t at, uint64_t *ns, hr_err *err);
    void (*outside)(void *context, device_outside *out); // optional
    bool (*facts)(void *context, device_facts *out); // optional; false: no card is there, or it does not say
    // optional, both: from what the device knows how long instructions take, and how long instruction i of p takes; 0 where
    // that is UNKNOWN, as it is without them. See device/cost.h. Thread-safe.
    hr_time_basis (*time_basis)(void *context);
    uint64_t (*duration_ns)(void *context, const program *p, const instr *i);
    bool card_times; // these follow from the card of its options: what is compiled may depend on them
    // optional: how long the host takes to issue it, which it does ahead of the device. NULL: no time.
    uint64_t (*issue_ns)(void *context, const program *p, const instr *i);
    // optional: an estimate. The instruction takes between duration_ns divided by this factor and times it, as a rule.
    // NULL: nothing is known of that.
    double (*spread)(void *context, const instr *i);
    // Plain copies between host and device memory, for weights, saves and rebuilds.
    hr_status (*copy_in)(void *context, uint64_t address, const void *host, uint64_t bytes, hr_err *err);
    hr_status (*copy_out)(void *context, uint64_t address, void *host, uint64_t bytes, hr_err *err);
} device_ops;

// Rows of every device that was built in. "cpu" is missing when oneDNN was not found at configure time.
const device_ops *const *device_rows(uint32_t *count);
// DEPENDENCY error lists what there is.
HR_MUST_CHECK hr_status device_find(const char *kind, const device_ops **out, hr_err *err);

// The hr_target.fuses of every device that fuses: ReLU and ReLU6 behind a product, a normalisation or an addition. One
// answer, so that a plan of one device has the instructions of another; what a card's library can do besides is cuda's.
bool device_fuses(void *context, hr_op op, hr_act act);
// TARGET_MASKS of every device that fuses: updates that take each weight by itself.
bool device_masks(hr_op op);

extern const device_ops device_plan;
extern const device_ops device_reference;
extern const device_ops device_cpu;
extern const device_ops device_cuda;

#endif
