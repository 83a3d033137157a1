// SPDX-License-Identifier: Apache-2.0
// A step as the ways of instructions see it: its storages, who reads them when, and what each instruction costs. Private to program/.
#ifndef PROGRAM_EVICTOR_H
#define PROGRAM_EVICTOR_H

#include "base/vec.h"
#include "program/draft.h"

// A storage.
typedef struct evict_value {
    uint64_t bytes;
    uint32_t first_tensor;         // of those that lie in it, linked by sibling
    uint32_t first_use, use_count; // in uses: instructions that read or write it, in ascending order
    uint32_t asked;                // the first instruction of backward that reads it; HR_NO_ID
    bool droppable;                // it can be made again
    bool taped;                    // an eager tape holds it to the end of backward, unless it is dropped
    bool stays;                    // to the end of backward
} evict_value;

// Of a value while the step is gone through.
typedef struct evict_state {
    uint32_t passed;  // how many of its uses are over
    uint32_t pending; // how often instructions that are about to run read it
    uint32_t place;   // in listed, of one that is alive and droppable
    bool alive;
    bool held;      // by the tape
    uint64_t cost;  // of making it again, at least, since the step's latest instruction that ran again
    uint32_t known; // reruns, when that was found; 0: never
} evict_state;

typedef struct evictor {
    const draft *d;
    uint32_t forward_count; // instructions before the first of backward
    bool in_place;          // results may be written over inputs
    evict_value *values;
    uint32_t value_count;
    uint32_t *value_of, *sibling, *writer; // [tensors] HR_NO_ID: none
    uint32_t *uses;
    uint64_t *cost, *operations; // [instructions] of each (program/costs.h)
    // Of one way:
    uint32_t quarters;      // of the budget that forward is given
    int rule;               // what a value is worth (checkpoint_evict.c)
    bool apart;             // it costs what it alone adds
    const uint64_t *weight; // what it costs by: cost or operations
    uint64_t *until;        // [instructions + 1] weight of all before each
    uint64_t budget_bytes, forward_budget_bytes, live_bytes, peak_bytes;
    uint64_t forward_cost, spent; // of the first time, and of running again
    evict_state *states;          // [values]
    uint32_t *listed;             // the values that may be let go of
    uint32_t listed_count;
    bool *there;     // [tensors]
    bool *wanted;    // [instructions] to run now
    uint32_t *stack; // [instructions]
    uint32_t *seen;  // [instructions] looks: met in the latest look
    uint32_t looks;
    uint32_t reruns;     // how many instructions ran again, and one
    VEC(uint32_t) steps; // of the way
} evictor;

// Of a draft behind autodiff. may_drop, [tensors]: what can be made again. On failure it is to be deinited, too. NOMEM only.
HR_MUST_CHECK hr_status evictor_init(evictor *e, const draft *d, uint32_t forward_count, const bool *may_drop,
                                     hr_err *err);
void evictor_deinit(evictor *e);
// Costs are compared by one of e's two from now on.
void evictor_weigh(evictor *e, const uint64_t *weight);
hr_status evictor_no_memory(const evictor *e, hr_err *err);

// Operand k of an instruction: inputs, then results.
static inline uint32_t evict_operand(const instr *i, uint32_t k)
{
    return k < i->in_count ? i->in[k] : i->out[k - i->in_count];
}

// Is operand k the first of the instruction's that lies in its storage?
bool evict_is_first(const evictor *e, const instr *i, uint32_t k);

#endif
