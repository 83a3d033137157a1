// SPDX-License-Identifier: Apache-2.0
// A single-producer, single-consumer ring of events. The producer never waits: a slow reader loses the oldest
// records and is told how many; sequence numbers show the gap and counters are absolute.
#ifndef TRACE_RING_H
#define TRACE_RING_H

#include <stddef.h>
#include <stdint.h>

#include "headroom/event.h"
#include "headroom/status.h"

typedef struct trace_ring trace_ring;

HR_MUST_CHECK hr_status trace_ring_create(uint32_t capacity_events, trace_ring **out,
                                          hr_err *err); // rounded up to 2^k
void trace_ring_destroy(trace_ring *ring);
void trace_ring_put(trace_ring *ring, const hr_event *event);                               // producer
size_t trace_ring_take(trace_ring *ring, hr_event *out, size_t max, uint64_t *lost_events); // consumer

#endif
