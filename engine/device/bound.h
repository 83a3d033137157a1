// SPDX-License-Identifier: Apache-2.0
// An attached program: where its tensors lie. Views and results in place lie in the storage of their owner:
//
//   owner o ─→ shares[first_share[o + 1] .. first_share[o + 2]): the tensors in its storage, itself included
#ifndef DEVICE_BOUND_H
#define DEVICE_BOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#include "device/cost.h"
#include "device/instr_times.h"
#include "program/program.h"

// Starts zeroed.
typedef struct bound {
    const program *p;
    uint32_t step; // of the allocator's plan; HR_NO_ID when it has none
    void *kernels;
    void **address;   // [tensor_count] of every tensor, views and in-place results resolved
    uint32_t *owner;  // [tensor_count]
    uint32_t *shares; // tensors grouped by owner
    uint32_t *first_share;
    uint32_t first_lasting; // the first instruction that writes what outlives the step; HR_NO_ID: none does
    uint32_t ready_at;      // the instruction before which the gradients are there (device/gradients.h)
    bool whole;             // all of them
    uint8_t *host;          // of the program's tensors on the host
    timeline lanes;         // on simulated devices
    timeline before_round;  // where they were as the round began
    instr_times times;      // ns is NULL: nothing is timed
} bound;

// Finds owners, shares and first_lasting; no tensor has an address yet. NOMEM; the caller deinits it in every case.
HR_MUST_CHECK hr_status bound_init(bound *b, const program *p, hr_err *err);
// What the device and the host gave, kernels and host, goes back before.
void bound_deinit(bound *b);
// Every tensor that shares the owner's storage has its address; 0: none.
void bound_set_address(bound *b, uint32_t owner, uint64_t address);

#endif
