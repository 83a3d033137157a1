// SPDX-License-Identifier: Apache-2.0
// The step program: one training step (or one evaluation batch) as a flat list of instructions, with every
// tensor's allocation and release written out.
//
//   persistent tensors (weights, state, optimizer slots, input slots) are allocated once at build, in the order
//   of their ids, those that a first step makes behind the others; every other tensor lives from its `alloc` to its `free` inside the list.
//   What stands between `repeat` and `end` runs several times (batch.accumulate); what it allocates it also frees.
//   Tensors that share storage (views, in-place results) name the owner in `storage`; only owners are allocated.
//
// A program is immutable once compiled and may be read by any thread.
#ifndef PROGRAM_PROGRAM_H
#define PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "headroom/category.h"
#include "headroom/status.h"

#include "ops/op.h"

// tensor.device of what lies in host memory, outside every allocator.
enum { HR_DEVICE_HOST = 0xff };

typedef enum hr_lane { HR_LANE_COMPUTE, HR_LANE_H2D, HR_LANE_D2H, HR_LANE_COUNT } hr_lane;

typedef struct tensor {
    const char *name; // "conv1/weights:grad"; lives as long as the program
    hr_shape shape;
    hr_dtype dtype;
    hr_layout layout;
    hr_category category;
    uint64_t bytes; // requested, padding included
    uint64_t padding_bytes;
    uint32_t storage; // tensor that owns the bytes; its own id when it does
    uint64_t offset;  // where in them this one begins, of one that lies beside others there
    uint32_t layer;   // index into the model's layers, HR_NO_ID
    uint32_t param;   // index into the model's params for weights, gradients, slots; HR_NO_ID
    uint32_t
        held; // the parameter that is held as whole numbers of which this is a part (ops/held.h); HR_NO_ID
    uint8_t device;
    bool persistent;
    bool saved;          // kept from forward to backward
    bool dropped;        // made again for backward: no tape keeps it
    bool leaves;         // for the host in forward, and comes back: a budget has it so
    bool of_teacher;     // a weight or statistic of the teacher: no save holds it
    uint32_t held_until; // eager: id of the instruction whose end its tape lives to see; 0: none
    float initial;       // persistent tensors that are no parameter: every element at build
    uint32_t
        made_at; // persistent: index of the instruction before which a first step makes it; 0: the build does
} tensor;

static inline bool tensor_on_host(const tensor *t)
{
    return t->device == HR_DEVICE_HOST;
}

typedef struct instr {
    uint32_t id; // stable while passes insert and remove
    hr_op op;
    op_attr attr;
    uint32_t in[OP_MAX_IN], out[OP_MAX_OUT]; // tensor ids
    uint8_t in_count, out_count;
    uint8_t phase, lane; // hr_phase, hr_lane
    uint8_t device;
    bool again; // a recomputation
    uint32_t
        serves; // backward: id of the forward instruction whose gradient it takes, or that it runs again; 0: none
    uint32_t layer;     // HR_NO_ID
    uint32_t workspace; // tensor id (category TEMPORARIES, U8), HR_NO_ID when none
    uint8_t instead;    // target_instead: why no library computes it
    uint8_t behind;     // target_answer.behind: how far from the library's first choice it is
    uint8_t
        theirs; // target_instead: why the framework has no workspace of its library for it (execution.as=pytorch)
    const char *impl; // its implementation (program/target.h); NULL: not asked for, or nothing is computed
    const char *
        planned; // the planned one, where the device could not prepare it and `impl` took its place; NULL otherwise
    uint64_t flops, bytes_moved;
} instr;

// FEED does nothing but copy a batch ahead, as every training step does beside its own work, or the one that stays.
typedef enum program_mode { PROGRAM_TRAIN, PROGRAM_EVALUATE, PROGRAM_FEED } program_mode;

typedef struct program {
    program_mode mode;
    bool eager;      // execution.mode: operations are issued one by one, as an interpreter comes to them
    bool late;       // a first step makes some of what stays (tensor.made_at), and is played for it
    bool resident;   // its batch stays in the input slots: no step copies one (pipeline.resident)
    uint32_t batch;  // samples of this program's batch
    uint32_t rounds; // batches of one step (batch.accumulate)
    const tensor *tensors;
    const instr *instrs;
    uint32_t tensor_count, instr_count;
    uint32_t persistent_count; // tensors [0, persistent_count) are the persistent ones, in canonical order
    uint32_t next_instr_id;
    uint64_t tried_instrs; // of other ways, compiled before it was found (checkpoint.strategy=budget)
    const char *const *layer_names; // [layer_count]
    uint32_t layer_count;
    uint64_t flops;
    uint64_t h2d_bytes;
    uint64_t saved_for_backward_bytes, library_saved_bytes, static_bytes;
    void *owner; // private
} program;

// Where a tensor begins in its owner's bytes.
uint64_t program_offset(const program *p, uint32_t tensor_id);
// What a kernel may write in of its workspace: all before the first of its operands that lies there.
uint64_t program_scratch_bytes(const program *p, const instr *i);
// The operation of an instruction as a query (for targets, cost and tests). `out` is zeroed first.
void program_query(const program *p, const instr *i, op_query *out);
// The type that a tensor is shown with: dtype_name, but "int64" of integers that have a framework's bytes (execution.as), of which
// our kernels use the first.
const char *tensor_type_name(const tensor *t);
// "conv1/conv2d_bwd_weights": layer and operation. Returns text.
const char *program_instr_name(const program *p, const instr *i, char *text, size_t size);
// Requested bytes that are alive once i has been executed, when live_bytes were before it.
uint64_t program_live_after(const program *p, const instr *i, uint64_t live_bytes);
// The device made `impl` (of target_impl_name) ready for instruction n, whatever was planned: what listings and reports name
// from now on.
void program_note_prepared(program *p, uint32_t n, const char *impl);
// The largest sum of requested bytes alive at once, persistent tensors included: what the step needs from an
// allocator that neither rounds nor fragments.
uint64_t program_peak_bytes(const program *p);
// What one instruction holds at once, with what stays and the gradients that wait for their update: requested bytes that no
// recomputation saves, workspaces not counted. Of all instructions the most; *which is that one.
uint64_t program_floor_bytes(const program *p, const instr **which);
// Host memory for one tensor of a step (rounded so that all of them are aligned), and for all of a step's.
uint64_t program_host_room(const tensor *t);
uint64_t program_host_bytes(const program *p);
// Prints the listing that people read.
void program_print(const program *p, FILE *out);
void program_print_instr(const program *p, const instr *i, FILE *out); // one line of it, without its number
void program_print_impl(const instr *i, FILE *out); // what stands before that: the column of implementations
void program_print_persistent(const program *p, uint32_t id, FILE *out); // one line of its head
// Prints the lines of the listing that are in one program only, in the order of the list: '-' those of `before`, '+'
// those of `after`. NOMEM error, then nothing was printed.
HR_MUST_CHECK hr_status program_print_diff(const program *before, const program *after, FILE *out,
                                           hr_err *err);

// Independent checker: every use lies between alloc and free (or is persistent), nothing is freed twice, nothing
// leaks over the step, storage chains end in owners, operand counts fit the rows, outputs that share storage with
// an input obey the row's in-place rule. CHECK error names the first offence.
HR_MUST_CHECK hr_status program_check(const program *p, hr_err *err);

void program_destroy(program *p);

#endif
