// SPDX-License-Identifier: Apache-2.0
// How long instructions take. A device that can tell has one function for it (device_ops.duration_ns); here stands
// what they share: the families of operations that run at like rates, and the lanes of a step.
//
//   compute  ──conv─▶ record 0 ──conv──▶──conv──▶ wait 2 ──conv_bwd──▶
//   d2h               wait 0 ──offload──▶ record 1
//   h2d                         ──fetch──▶ record 2
//
// A lane works off its instructions in their order, beside the other lanes, and none before the host has issued it; the
// host runs ahead of the lanes until it READs. WAIT moves its lane to where RECORD saw the other one. INPUT and READ hold
// the compute lane up: the step does not go on without them. The step ends with its last lane. What a device
// runs in order (device_ops.in_order) is all on the compute lane.
#ifndef DEVICE_COST_H
#define DEVICE_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "program/program.h"

// From what this device tells times.
hr_time_basis cost_basis(const device_ops *device, void *context);
const char *cost_family_name(cost_family family);
// NOTHING: views, events, and what the executor does itself.
cost_family cost_family_of(const instr *i);
// The type it computes in: that of its first operand which is not an integer.
hr_dtype cost_type_of(const program *p, const instr *i);
// Is it made of products, so that a card runs it on its tensor cores?
bool cost_is_product(cost_family family);

// The lanes of a step under way, in nanoseconds since it began.
typedef struct timeline {
    uint64_t lane_ns[HR_LANE_COUNT];
    uint64_t host_ns;   // the host has issued everything so far
    bool in_order;      // of the device: everything is on the compute lane
    bool waited;        // since `waited` was last false a lane stood still until the host issued something
    uint64_t *event_ns; // [event_count] when RECORD saw its lane; 0 before
    uint32_t event_count;
} timeline;

// NOMEM only.
HR_MUST_CHECK hr_status timeline_init(timeline *t, const device_ops *device, const program *p, hr_err *err);
void timeline_deinit(timeline *t);
void timeline_begin(timeline *t); // of another step
// What it adds to the compute lane, or to a copy's own: its duration, and before it what the compute lane waited for the
// host to issue it.
uint64_t timeline_add(timeline *t, const instr *i, uint64_t duration_ns, uint64_t issue_ns);
uint64_t timeline_end_ns(const timeline *t); // of the lane that ends last

// Rounds of a loop: `before` (of timeline_init for the same program) becomes what t is as a round begins; at its end, whether
// everything moved as far as the compute lane, so that every further round is the same again; then `rounds` more of it.
void timeline_mark(timeline *t, timeline *before);
bool timeline_repeats(const timeline *t, const timeline *before);
void timeline_skip(timeline *t, const timeline *before, uint64_t rounds);

// How long a step takes, NaN when the device cannot tell, and between which two times it lies, as a rule: each instruction as far
// from its time as the device says it may be, all of them to the same side, as what is wrong with one of a kind is wrong with
// the others. NaN, both, when the device cannot tell.
typedef struct cost_times {
    double seconds, low_seconds, high_seconds;
    hr_time_basis basis; // UNKNOWN: all of them are NaN
} cost_times;

// One step of p, rounds of REPEAT included: what the executor's clock would show. Takes microseconds: rounds are played
// until they repeat themselves. NOMEM only.
HR_MUST_CHECK hr_status cost_step_times(const device_ops *device, void *context, const program *p,
                                        cost_times *out, hr_err *err);
// Its `seconds` alone.
HR_MUST_CHECK hr_status cost_step_seconds(const device_ops *device, void *context, const program *p,
                                          double *seconds, hr_err *err);

#endif
