// SPDX-License-Identifier: Apache-2.0
// What a program must know of the device it is lowered for. A device fills one of these; the passes ask it.
// Answers depend on nothing but the query, the target and its threads, so they are memoised by target_ask.
#ifndef PROGRAM_TARGET_H
#define PROGRAM_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#include "ops/op.h"
#include "ops/pytorch.h"

enum { TARGET_MAX_REORDERS = 3, TARGET_IMPL_MAX = 64 };

// Why a kernel of our own does what a library was asked for.
typedef enum target_instead {
    TARGET_INSTEAD_NONE,    // it was not asked, or it does it
    TARGET_INSTEAD_LIMIT,   // it needs more workspace than workspace.limit
    TARGET_INSTEAD_ENGINE,  // it has no engine for it
    TARGET_INSTEAD_DRIVER,  // it shows none where there is no driver; a card may have one
    TARGET_INSTEAD_LIBRARY, // it is not there
    TARGET_INSTEAD_FAULT,   // it is known to be wrong there
    TARGET_INSTEAD_COUNT
} target_instead;

typedef struct target_answer {
    uint64_t workspace_bytes; // scratch the kernel needs while it runs
    uint64_t saved_bytes;     // what the library itself carries to backward (0 on all targets so far)
    uint8_t reorder_count;
    struct {
        uint8_t operand; // k: input k; 0x80 | k: output k. The kernel wants it in the library's own layout:
        uint64_t
            bytes; // lower puts a REORDER before (input) or behind (output) with a temporary of these bytes
    } reorder[TARGET_MAX_REORDERS];
    uint8_t instead; // target_instead
    uint8_t
        behind; // what its library's heuristics would rather have taken and workspace.limit kept from it, at most 255
    const char *impl; // NULL: nothing is computed. A literal, or of target_impl_name
} target_answer;

typedef struct hr_target hr_target;

typedef enum target_absorption {
    // Its optional summand: behind a normalisation, its gradient or a product, before the gradient of an activation. A
    // product of two-byte values adds before it rounds.
    TARGET_ADDS,
    TARGET_GRADIENT, // a loss's gradient is made with the loss
    TARGET_CUTS, // the gradient of a normalisation counts where the activation behind it let values through
    TARGET_GATES, // the same of what one could not make again: the activation's result is an operand, its gradient a result
    TARGET_NORMALISES, // it normalises what it reads, with statistics that are there: its summand, or what it pools
    TARGET_UNPOOLS, // the gradient of a normalisation takes that of what was pooled behind it, and the index
    TARGET_WIDENS, // it writes the gradients of weights in float32, of two-byte operands, without rounding on the way
    TARGET_MASKS, // an update masks what it writes (OP_FLAG_MASKED)
    TARGET_JOINS, // it takes queries, keys and values side by side in the rows of one sequence, and makes gradients so
} target_absorption;

// Answers in place of a target that is slow to ask: what is not remembered is asked of `from`, and neither
// remembered nor kept. `count` goes up with every such answer.
typedef struct target_estimates {
    const hr_target *from;
    uint32_t count;
} target_estimates;

struct program;
struct instr;

// What a step needs where it will be held: the most that its allocator has in use at once, rounding and all. Where it does not fit,
// more than there is.
typedef struct target_judgement {
    uint64_t peak_bytes;
    bool fits;
} target_judgement;

typedef struct target_judge {
    hr_status (*judge)(void *context, const struct program *p, target_judgement *out, hr_err *err);
    void *context;
    // How long an instruction takes, on its lane and alone, where that follows from the device's options; NULL: nobody says.
    uint64_t (*duration_ns)(void *context, const struct program *p, const struct instr *i);
} target_judge;

struct hr_target {
    const char *name;            // "cpu", "cuda", "plan", "reference"
    uint64_t key;                // hash of device, library version, ISA and threads: part of every memo key
    bool slow_to_ask;            // answers are worth keeping between two starts
    bool very_slow;              // an answer takes tens of milliseconds: interactive plans take estimates
    target_estimates *estimates; // NULL: it answers itself. Borrowed, of one thread
    const target_judge *judge;   // of budgets; NULL: what a step asks for at once. Borrowed
    uint32_t compute_major,
        compute_minor;        // compute capability of the card that it is or stands for; 0: of none
    uint32_t multiprocessors; // of that card; 0: nobody says
    void *context;            // passed back; borrowed
    // Does the device run this operation on these types and layouts, and with what temporaries? DEVICE error with
    // the reason when it does not. `workspace_limit` bounds workspace and reorder bytes of one operation.
    hr_status (*ask)(void *context, const op_query *q, uint64_t workspace_limit, target_answer *out,
                     hr_err *err);
    // The workspace that PyTorch takes for what convolves (execution.as=pytorch), where its library is there; NULL: it is not. None,
    // and `instead` says why, where the library has no engine for it.
    hr_status (*ask_pytorch)(void *context, const op_query *q, const pytorch_images *images,
                             uint64_t workspace_limit, target_answer *out, hr_err *err);
    // May `act` be fused behind `op`?
    bool (*fuses)(void *context, hr_op op, hr_act act);
    // Does the kernel of `op` do more than its row asks? With the bits that instructions beside it would give, unless
    // target_absorption says otherwise. Optional.
    bool (*absorbs)(void *context, target_absorption what, hr_op op);
    // Does the device run this operation with the operands PADDED that are, and gain by it? NULL: no operand is.
    bool (*pads_rows)(void *context, const op_query *q);
};

// An implementation's name, for people: "cudnn eng47 k2=17", "cublaslt", "onednn brgconv:avx2", "own winograd", "estimate". The first
// word is the library, "own" for kernels of headroom. The text is kept until the process ends, once for all that are
// equal, and cut at TARGET_IMPL_MAX. Thread-safe.
const char *target_impl_name(const char *library, const char *name);

// target->ask through a process-wide memo (thread-safe as far as `ask` is). Names in its answers are those of
// target_impl_name, so that equal answers are equal.
HR_MUST_CHECK hr_status target_ask(const hr_target *target, const op_query *q, uint64_t workspace_limit,
                                   target_answer *out, hr_err *err);
// target->ask_pytorch through the same memo. Where estimates answer (hr_target.estimates) there is none: 0, counted.
HR_MUST_CHECK hr_status target_ask_pytorch(const hr_target *target, const op_query *q,
                                           const pytorch_images *images, uint64_t workspace_limit,
                                           target_answer *out, hr_err *err);
void target_forget(void); // empties the memo (tests, calibration)
// Reads answers that an earlier process kept; writes those of slow targets when there are new ones. A cache: what
// cannot be read or written is not missed. True when a file was written. Thread-safe.
void target_memo_load(const char *path);
bool target_memo_save(const char *path);

bool target_absorbs(const hr_target *target, target_absorption what, hr_op op);

#endif
