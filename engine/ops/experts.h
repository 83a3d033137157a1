// SPDX-License-Identifier: Apache-2.0
// A mixture of experts of fixed capacity (Lepikhin et al., "GShard", arXiv:2006.16668; Fedus et al., "Switch
// Transformers", arXiv:2101.03961). Each sample is a group of its own: how its tokens are shared out depends on no other.
//
//     ROUTE       each of T tokens chooses the k experts with its largest logits, the first of equals. Its gates are the
//                 softmax of its logits at them; with OP_FLAG_SHARES the softmax over the chosen alone
//     DISPATCH    slots of expert e are c·E + e, c from 0 to C − 1. First choices of all tokens take them in the order of
//                 the tokens, then second ones, …; who finds none free is dropped, and adds nothing
//
// A dropped choice has the number OP_DROPPED(e): its expert is still known to the gradient and to the balance.
#ifndef OPS_EXPERTS_H
#define OPS_EXPERTS_H

#include <stdint.h>

enum { OP_MAX_EXPERTS = 1024, OP_MAX_CHOICES = 16 };

#define OP_DROPPED(expert) (-1 - (expert))

// Of a choice among `experts`.
static inline int32_t op_expert_of(int32_t slot, int32_t experts)
{
    return slot < 0 ? OP_DROPPED(slot) : slot % experts;
}

#endif
