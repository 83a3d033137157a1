// SPDX-License-Identifier: Apache-2.0
// A step as the ways of instructions see it: its storages, who reads them when, and what each instruction costs. Private to program/.
#ifndef PROGRAM_EVICTOR_H
#define PROGRAM_EVICTOR_H

#include "base/vec.h"
#include "program/draft.h"
#include "program/link.h"

typedef enum evict_worth { BY_BYTES, BY_SOME_TIME, BY_TIME } evict_worth;

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
    bool held;       // by the tape
    bool away;       // on the host
    uint32_t needed; // sent: the instruction of backward before which it was asked for; HR_NO_ID
    uint64_t cost;   // of making it again, at least, since the step's latest instruction that ran again
    uint32_t known;  // reruns, when that was found; 0: never
} evict_state;

// What a way sends to the host, and when the link has room for it.
typedef struct evict_sends {
    uint32_t *
        order; // [order_count] values that may go, the dearest for their bytes first: the link has room for all of them
    uint32_t order_count;
    link_copy *copies; // [count]
    uint32_t count;
    bool *sent; // [values]
    uint32_t *first_done, *first_begin, *next_done,
        *next_begin; // [instructions + 1] and [values], of lists; HR_NO_ID
} evict_sends;

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
    evict_worth worth;      // what a value is worth
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
    uint32_t reruns; // how many instructions ran again, and one
    evict_sends sends;
    bool fails;          // what is on the host is asked for before forward is over
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

// What was sent is not made again.
static inline bool evict_can_be_made(const evictor *e, uint32_t v)
{
    return e->values[v].droppable && !e->sends.sent[v];
}

// Of making the value again from what is there but it; by `apart` from what backward reads, too. More than `most` is as good as any.
uint64_t evict_cost_again(evictor *e, uint32_t v, uint64_t most);

// One way through the step. *ends: at a price that is worth knowing. NOMEM only.
HR_MUST_CHECK hr_status evictor_go_through(evictor *e, bool *ends, hr_err *err);

// Finds what may be sent. NOMEM only.
HR_MUST_CHECK hr_status evictor_find_sends(evictor *e, hr_err *err);
// The ways to come send so many bytes, as far as the link has room for them in plain forward and backward.
void evictor_send(evictor *e, uint64_t bytes);
// What the copies of the way that was gone cost: a part of themselves, and by how much they hold it up.
uint64_t evictor_sends_cost(evictor *e);

#endif
