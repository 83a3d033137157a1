// SPDX-License-Identifier: Apache-2.0
// Private to the cuda device: what an implementation of an operation is, and what it sees when it runs.
//
// Every operation has one or more implementations, rows of its family's table; the first that fits a query is taken, by
// the target that answers for it and by load alike, so that plan and run agree. The order of families is the order of
// preference. A run enqueues on a stream and never waits.
#ifndef DEVICE_CUDA_CUDA_DEVICE_H
#define DEVICE_CUDA_CUDA_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/card.h"

#include "device/device.h"
#include "driver.h"

typedef struct cuda_device cuda_device;

// What is known of the card without one being there: from a property file, or read off the card.
typedef struct cuda_traits {
    uint32_t compute_major, compute_minor;
    uint32_t multiprocessors;
    uint64_t shared_bytes_per_block; // with opt-in
} cuda_traits;

const cuda_traits *cuda_device_traits(const cuda_device *device);
bool cuda_device_tf32(const cuda_device *device); // float32 products may round their operands to TF32
bool cuda_device_deterministic(const cuda_device *device); // only kernels that give the same bits every time
bool cuda_device_plans(const cuda_device *device); // opened without a card: nothing can be prepared or run

// One instruction at run time. Addresses are the device's.
typedef struct cuda_run {
    cuda_device *device;
    const program *program;
    const op_query *query;
    const instr *instr;
    void *state;             // what prepare made
    CUfunction function;     // of impl->kernel
    const CUfunction *stage; // of impl->stages
    CUstream stream;         // of the instruction's lane
    CUdeviceptr in[OP_MAX_IN], out[OP_MAX_OUT], workspace;
    uint64_t workspace_bytes;
    CUdeviceptr scalars; // CUDA_SCALAR_BYTES that impl->scalars filled for this round; 0 without
    const void *batch;   // of is_batch: where the host has it
    void *host;          // pinned: impl->host_bytes of this instruction and round; NULL without
    CUevent event;       // of RECORD and WAIT
    bool as_is;          // of REORDER: a copy, its reader takes the plain order
    step_io *io;         // host values of this round; not to be used for what a captured graph must see
} cuda_run;

enum { CUDA_SCALAR_BYTES = 32, CUDA_NAME_MAX = 64, CUDA_STAGES_MAX = 5, CUDA_GROUP_MAX = 64 };

// Types of the activations that an implementation takes; statistics beside two-byte ones are float32.
enum { CUDA_F32 = 1, CUDA_F16 = 2, CUDA_BF16 = 4, CUDA_HALF = CUDA_F16 | CUDA_BF16, CUDA_REAL = 7 };

// The names of rows whose arithmetic is a library's, and the first words of what they answer.
#define CUDA_CUDNN    "cudnn"
#define CUDA_CUBLASLT "cublaslt"

typedef struct cuda_impl {
    hr_op op;
    uint32_t types;                                             // CUDA_F32 …
    const char *name;                                           // of a library, or of our own kernels'
    bool (*fits)(const cuda_device *device, const op_query *q); // NULL: always
    uint64_t (*workspace)(const cuda_device *device, const op_query *q); // bytes; NULL: none
    // For implementations of a library, instead of `workspace`. `limit` is workspace.limit. When it answers HR_DEVICE
    // the next row is asked.
    hr_status (*ask)(cuda_device *device, const op_query *q, uint64_t limit, target_answer *out, hr_err *err);
    // One kernel of ours, or several: their module (the .cu file's name) and, into name, their own. How many there are is
    // what `stages` returns.
    const char *module;
    void (*kernel)(const op_query *q, char name[CUDA_NAME_MAX]);
    uint32_t (*stages)(const op_query *q, char name[CUDA_STAGES_MAX][CUDA_NAME_MAX]);
    // What must be made before the first run; `workspace_bytes` is what the instruction has, so that the choice is the
    // one that ask made. NULL: nothing.
    hr_status (*prepare)(cuda_device *device, const program *p, const instr *i, const op_query *q,
                         uint64_t workspace_bytes, void **state, hr_err *err);
    void (*release)(cuda_device *device, void *state);
    // What `prepare` chose, as `ask` words it behind the row's name; NULL where there is but one.
    const char *(*chosen)(const void *state);
    // Numbers that change from round to round, for the device to read: learning rates, keys of random numbers.
    void (*scalars)(const op_query *q, const step_io *io, unsigned char slot[CUDA_SCALAR_BYTES]);
    // Pinned host memory, a piece for every round: `stage` fills it when the instruction is reached, `collect` reads it
    // when the step is done. NULL: none.
    uint64_t (*host_bytes)(const op_query *q);
    void (*stage)(const op_query *q, const step_io *io, void *host);
    void (*collect)(const op_query *q, const void *host, step_io *io);
    // It copies the host's batch: from where that lies, unless a captured step reads it again from `host`.
    bool is_batch;
    hr_status (*run)(const cuda_run *r, hr_err *err);
    // Instead of `run`, of one kernel without a workspace: a launch for up to CUDA_GROUP_MAX consecutive instructions that
    // touch nothing of each other's. `joins`: may `next` go with `first`? NULL: always.
    bool (*joins)(const cuda_run *first, const cuda_run *next);
    hr_status (*run_group)(const cuda_run *runs, uint32_t count, hr_err *err);
} cuda_impl;

typedef struct cuda_family {
    const cuda_impl *impls;
    uint32_t count;
} cuda_family;

#define CUDA_FAMILY(rows)                                                                                    \
    {                                                                                                        \
        (rows), (uint32_t)(sizeof(rows) / sizeof(rows)[0])                                                   \
    }

// Preference first to last.
#define CUDA_FAMILY_MAP(X)                                                                                   \
    X(move)          /* input, prefetch, advance, read, offload, fetch, record, wait, reorder */             \
    X(products)      /* cuBLASLt: dense, matmul, attention's products, pointwise convolutions */             \
    X(quantized)     /* whole-number products: cuBLASLt between kernels of our own, or these alone */        \
    X(held)          /* weights that are held as whole numbers, as real ones */                              \
    X(conv_narrow)   /* our own: depthwise and few-channel convolutions where they beat the library */       \
    X(conv)          /* cuDNN: convolutions, transposed ones */                                              \
    X(conv_direct)   /* our own: every convolution, no workspace; where cuDNN has none within the limit */   \
    X(attention)     /* cuDNN: streaming attention of two-byte types */                                      \
    X(attention_own) /* our own: streaming attention of any type */                                          \
    X(rotary)                                                                                                \
    X(relative)                                                                                              \
    X(experts)     /* choices of experts, the ways to them and back */                                       \
    X(elementwise) /* add, multiply, scale, zeros, cast, accumulate */                                       \
    X(activation)                                                                                            \
    X(combine) /* concat, slice, stack, reduce, broadcast, padding, upsampling */                            \
    X(resize)                                                                                                \
    X(dropout)                                                                                               \
    X(embedding)                                                                                             \
    X(norm) /* layer and RMS norm, softmax */                                                                \
    X(group_norm)                                                                                            \
    X(batch_norm)                                                                                            \
    X(pool)                                                                                                  \
    X(loss)                                                                                                  \
    X(precision)  /* finite, unscale, scale_update, square_sum, clip */                                      \
    X(fake_quant) /* of weights and activations, and the ranges that they follow */                          \
    X(update)     /* sgd, momentum, rmsprop, adam, lion, ema */                                              \
    X(adafactor)                                                                                             \
    X(adam8bit)                                                                                              \
    X(prune)                                                                                                 \
    X(recurrent)

#define X(name) extern const cuda_family cuda_family_##name;
CUDA_FAMILY_MAP(X)
#undef X

// ---- kernels of our own ---------------------------------------------------------------------------------------

typedef struct cuda_grid {
    uint32_t blocks_x, blocks_y, blocks_z;
    uint32_t threads;
    uint32_t shared_bytes; // dynamic
} cuda_grid;

// A kernel by the name of its .cu file and its own name. DEVICE error when there is none. Host calls of load only.
HR_MUST_CHECK hr_status cuda_function(cuda_device *device, const char *module, const char *name,
                                      CUfunction *out, hr_err *err);
// One launch on r->stream of a kernel whose only parameter is a struct of `bytes`.
HR_MUST_CHECK hr_status cuda_launch(const cuda_run *r, CUfunction function, cuda_grid grid,
                                    const void *arguments, uint32_t bytes, hr_err *err);
// As many blocks of `threads` as there are pieces of `per_thread` elements, but no more than fill the card several
// times over: kernels walk on by the grid's width.
cuda_grid cuda_grid_over(const cuda_device *device, uint64_t elements, uint32_t per_thread, uint32_t threads);

// A grid of both: adds an item of `elements` as cuda_grid_over divides it.
typedef struct group_blocks group_blocks;
void cuda_group_extend(const cuda_device *device, group_blocks *blocks, cuda_grid *grid, uint64_t elements,
                       uint32_t per_thread, uint32_t threads);

const char *cuda_suffix(uint32_t dtype); // "f32", "f16", "bf16", "i32", "u8": how kernels of a type end

// ---- what is asked of a query ---------------------------------------------------------------------------------

uint64_t cuda_elements(const op_operand *t);
uint64_t cuda_bytes(const op_operand *t);
// The type of the activations: the two-byte one when any operand has it, else float32.
uint32_t cuda_type(const op_query *q);
// Do kernels and products take the operands PADDED that are?
bool cuda_pads_rows(const op_query *q);
// Is every real operand of that type? A `fits`.
bool cuda_one_type(const cuda_device *device, const op_query *q);

// The implementation for a query and what it answers for the limit. DEVICE error with the reason when there is none.
HR_MUST_CHECK hr_status cuda_pick(cuda_device *device, const op_query *q, uint64_t workspace_limit,
                                  const cuda_impl **out, target_answer *answer, hr_err *err);
// The same for a plan, where each pass of an attention that drops weights has the whole limit: a library's only where one
// computes the other pass too (attention_pair.h). At load workspaces are the limits, and program.c sees to it.
HR_MUST_CHECK hr_status cuda_pick_planned(cuda_device *device, const op_query *q, uint64_t workspace_limit,
                                          const cuda_impl **out, target_answer *answer, hr_err *err);
// The first of our own kernels that fits, whatever workspace it needs.
HR_MUST_CHECK hr_status cuda_pick_own(cuda_device *device, const op_query *q, const cuda_impl **out,
                                      target_answer *answer, hr_err *err);
// Where a library refused what `taken` does: says so in the answer that cuda_pick gave.
HR_MUST_CHECK hr_status cuda_say_instead(cuda_device *device, const op_query *q, uint64_t workspace_limit,
                                         const cuda_impl *taken, target_answer *answer, hr_err *err);
// What the library said that refused what `taken` does; status HR_OK: there is none, or it does not refuse.
void cuda_refusal(cuda_device *device, const op_query *q, uint64_t workspace_limit, const cuda_impl *taken,
                  hr_err *out);

// cuda_impl.scalars of what drops: a dropout_scalars (kernels/dropout_args.h).
void cuda_dropout_scalars(const op_query *q, const step_io *io, unsigned char slot[CUDA_SCALAR_BYTES]);

#endif
