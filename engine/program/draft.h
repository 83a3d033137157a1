// SPDX-License-Identifier: Apache-2.0
// A program while the passes work on it. Private to program/.
//
// The passes run in the order of compile.c, each in one file below passes/. A pass may append tensors and rewrite
// the instruction list; ids of tensors and instructions never change.
#ifndef PROGRAM_DRAFT_H
#define PROGRAM_DRAFT_H

#include "headroom/event.h"
#include "headroom/knobs.h"

#include "base/host_mem.h"
#include "base/vec.h"
#include "model/model.h"
#include "ops/framework.h"
#include "program/program.h"
#include "program/target.h"

// Workspaces that stay, by name (execution.as=pytorch).
#define DRAFT_CUBLAS_FORWARD  "cublas:forward"
#define DRAFT_CUBLASLT        "cublaslt:forward"
#define DRAFT_CUBLAS_BACKWARD "cublas:backward"

typedef VEC(instr) instr_list;

// Loss scaling and what it needs; ids of tensors, HR_NO_ID where there is none.
typedef struct draft_scaling {
    bool dynamic;
    double fixed;                          // 1: none
    uint32_t scale, clean, health, finite; // finite: the verdict that updates ask before they happen
} draft_scaling;

// Of checkpoint.strategy=budget: program/checkpoint_ways.h.
typedef struct checkpoint_way checkpoint_way;
typedef struct checkpoint_ways checkpoint_ways;

typedef struct draft {
    const hr_model *model;
    const hr_knobs *knobs;
    const hr_target *target;
    program_mode mode;
    bool eager;
    bool pytorch, tensorflow; // execution.as: an eager step holds what that framework's would
    bool recorded;            // gradients are taken: training with a tape
    uint32_t batch;
    const checkpoint_way *way; // that is taken under a budget; NULL: nothing is dropped
    checkpoint_ways *ways;     // to be found, and none is taken; NULL: not asked for
    bool sends_all;            // offload.activations=on is of all that waits, not of what a way says
    hr_dtype real;             // type of weights and activations under precision.policy
    hr_dtype compute; // what operations compute and activations are; `real` is the type of the variables
    draft_scaling scaling;
    arena names;
    const char **layer_names; // in the arena
    VEC(tensor) tensors;
    instr_list instrs;
    uint32_t next_instr_id;
    uint32_t persistent_count;
    uint32_t first_input; // tensor of slot 0, as it travels; then slot by slot
    uint32_t ahead;       // batches held ahead (pipeline.device_prefetch), 0 in an evaluation
    uint32_t first_ahead; // tensor of slot 0 in the batch that comes next; then slot by slot, batch by batch
    uint32_t *param_tensor; // [model->param_count]
    uint32_t
        *first_part; // [model->param_count] of one that is held as whole numbers: its first part; HR_NO_ID
    uint32_t *first_slot; // [model->param_count] of a trainable one: its first optimizer slot
    uint8_t *
        pack; // [model->param_count] how many variables PyTorch has as one with it, where it is the first; 0: it is not
    uint32_t *accumulator;  // [model->param_count] of a trainable one under batch.accumulate: its sum
    uint32_t *mask;         // [model->param_count] of a kernel that is pruned: its mask; HR_NO_ID
    uint32_t *value_tensor; // [model->value_count], HR_NO_ID until the value exists
    uint32_t *range;    // [model->value_count] what an activation is quantised by, HR_NO_ID; NULL: none is
    uint32_t *gradient; // [tensors at autodiff] tensor of the gradient, HR_NO_ID
} draft;

// A copy of `name` that lives as long as the program; NULL when memory is short.
const char *draft_name(draft *d, const char *name);
// "name:suffix" in the same way.
const char *draft_suffixed(draft *d, const char *name, const char *suffix);
// Appends a tensor that owns its bytes; `like` gives shape, type and layout. *id is its id. MODEL error when its
// bytes overflow.
HR_MUST_CHECK hr_status draft_tensor(draft *d, const char *name, const op_operand *like, hr_category category,
                                     uint32_t layer, uint32_t *id, hr_err *err);
// Recomputes bytes and padding from shape, type and layout.
HR_MUST_CHECK hr_status draft_measure(tensor *t, hr_err *err);
// Appends an instruction to `list`; the caller fills operands through the returned pointer, valid until the next
// append. NULL when memory is short.
instr *draft_instr(draft *d, instr_list *list, hr_op op, hr_phase phase, uint32_t layer);
void instr_in(instr *i, uint32_t tensor_id);
void instr_out(instr *i, uint32_t tensor_id);

op_operand tensor_operand(const tensor *t);
void draft_query(const draft *d, const instr *i, op_query *q);
// What the framework of execution.as knows of a forward operation; NULL: nothing, or there is no framework.
const framework_rule *draft_rule(const draft *d, hr_op op);
// Follows the storage chain to its owner.
uint32_t draft_owner(const draft *d, uint32_t tensor_id);
// watched[tensor]: a gradient flows from it to a variable, so that the tape records what reads it.
void draft_mark_watched(const draft *d, bool *watched);

// The writers and readers of every tensor.
typedef struct draft_uses {
    uint32_t *writer;  // index of the instruction that writes it last, HR_NO_ID: none
    uint32_t *readers; // how many times it is read
} draft_uses;

HR_MUST_CHECK hr_status draft_count_uses(const draft *d, draft_uses *out, hr_err *err);
void draft_uses_deinit(draft_uses *u);
// Is the tensor read once, and by nothing behind the step's instructions?
bool draft_is_passing(const draft *d, const draft_uses *u, uint32_t tensor_id);
// Is the instruction at `position` an activation that the one before it, whose result it alone reads, can do, too?
bool draft_can_fuse(const draft *d, const draft_uses *u, uint32_t position);
// A tensor that nobody reads or writes, made by a HOLD.
typedef struct draft_held {
    const char *name; // lives as long as the program
    uint64_t bytes;
    hr_category category;
    hr_phase phase;
    uint32_t layer;
    uint32_t until; // tensor.held_until
} draft_held;

// Appends the HOLD to `list`. *id is the tensor's.
HR_MUST_CHECK hr_status draft_hold(draft *d, instr_list *list, const draft_held *held, uint32_t *id,
                                   hr_err *err);
// By the id of a forward instruction: the id of the last one that takes its gradient, 0 for none. The caller frees it; NULL
// when memory is short.
uint32_t *draft_gradients_taken(const draft *d);
// cut[layer], [layers], all false: a residual block ends behind it. writer, [tensors]: index of the instruction among the first
// forward_count that writes it, HR_NO_ID.
HR_MUST_CHECK hr_status draft_cut_blocks(const draft *d, const uint32_t *writer, uint32_t forward_count,
                                         bool *cut, hr_err *err);
// Closes the gaps of instructions whose operation has become HR_OP_COUNT.
void draft_close_gaps(draft *d);

// A program and what it owns, in one piece.
typedef struct program_owner {
    arena names;
    program p;
} program_owner;

// One step, compiled in one way.
typedef struct draft_request {
    const hr_model *model;
    const hr_knobs *knobs;
    program_mode mode;
    uint32_t batch;
    const hr_target *target;
    const checkpoint_way *way; // as in the draft
    checkpoint_ways *ways;
    bool sends_all;
} draft_request;

typedef hr_status (*draft_compiler)(const draft_request *r, program **out, hr_err *err);
// The cheapest way that is found to compile the step so that its peak is within the budget. CONSTRAINT error with the smallest peak
// that was found where none is.
HR_MUST_CHECK hr_status draft_compile_within(const draft_request *r, draft_compiler compile,
                                             uint64_t budget_bytes, program **out, hr_err *err);

hr_status pass_build(draft *d, hr_err *err);
// Appends the persistent ranges of fake quantization. Called by build.
HR_MUST_CHECK hr_status draft_add_ranges(draft *d, hr_err *err);
hr_status pass_fake_quantize(draft *d, hr_err *err);
hr_status pass_pads(draft *d, hr_err *err);
hr_status pass_packed(draft *d, hr_err *err);
hr_status pass_quantize(draft *d, hr_err *err);
hr_status pass_precision(draft *d, hr_err *err);
hr_status pass_packed_copies(draft *d, hr_err *err);
// Appends the persistent tensors of loss scaling and gradient health. Called by build.
HR_MUST_CHECK hr_status draft_add_scaling(draft *d, hr_err *err);
// Appends the masks of compress.prune, one for each kernel that has one. Called by build. CONSTRAINT error where a kernel cannot
// have the structure, or no kernel is one.
HR_MUST_CHECK hr_status draft_add_masks(draft *d, hr_err *err);
// The update `i` of `param`, whose operands are there up to its slots, masks as it writes, where there is a mask and the target can.
// Called by the optimizer.
void draft_mask_update(const draft *d, uint32_t param, instr *i);
hr_status pass_autodiff(draft *d, hr_err *err);
hr_status pass_scale_loss(draft *d, hr_err *err);
hr_status pass_unscale(draft *d, hr_err *err);
hr_status pass_rescale(draft *d, hr_err *err);
hr_status pass_mask(draft *d, hr_err *err);
hr_status pass_checkpoint(draft *d, hr_err *err);
hr_status pass_dedup(draft *d, hr_err *err);
hr_status pass_joined(draft *d, hr_err *err);
hr_status pass_keep(draft *d, hr_err *err);
hr_status pass_dequantize(draft *d, hr_err *err);
hr_status pass_framework(draft *d, hr_err *err);
hr_status pass_read(draft *d, hr_err *err);
hr_status pass_accumulate(draft *d, hr_err *err);
hr_status pass_clip(draft *d, hr_err *err);
hr_status pass_optimizer(draft *d, hr_err *err);
hr_status pass_prune(draft *d, hr_err *err);
hr_status pass_fused_backward(draft *d, hr_err *err);
hr_status pass_retain(draft *d, hr_err *err);
hr_status pass_fuse(draft *d, hr_err *err);
hr_status pass_fuse_qkv(draft *d, hr_err *err);
hr_status pass_fuse_sums(draft *d, hr_err *err);
hr_status pass_fuse_norms(draft *d, hr_err *err);
hr_status pass_fuse_cuts(draft *d, hr_err *err);
hr_status pass_fuse_loss(draft *d, hr_err *err);
hr_status pass_fuse_gelu(draft *d, hr_err *err);
hr_status pass_fuse_wide(draft *d, hr_err *err);
hr_status pass_pad_rows(draft *d, hr_err *err);
hr_status pass_lower(draft *d, hr_err *err);
hr_status pass_offload(draft *d, hr_err *err);
hr_status pass_prefetch(draft *d, hr_err *err);
hr_status pass_resident(draft *d, hr_err *err);
hr_status pass_liveness(draft *d, hr_err *err);
hr_status pass_late(draft *d, hr_err *err);

#endif
