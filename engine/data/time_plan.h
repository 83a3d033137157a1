// SPDX-License-Identifier: Apache-2.0
// How long the batches of a step take to be made, estimated before anything is read: what a sample costs by its source
// (data_cost), in front of a cache or out of it, on as many threads as make samples and there are cores. Disks are not in it, nor
// that a device which computes on the same cores takes them.
#ifndef DATA_TIME_PLAN_H
#define DATA_TIME_PLAN_H

#include "data/host_plan.h"

typedef struct time_plan {
    double
        input_seconds; // of all batches of a step, once the first epoch has filled what caches there are; NaN: not known
    bool has_queue; // they are made while a step computes
} time_plan;

time_plan time_plan_make(const hr_knobs *knobs, const data_facts *facts, const pipeline_wire *wire);
// The share of a step's time, waiting included, in which training waits for its batches; step_seconds is without. With a
// queue they are made meanwhile, without one before it. NaN where one of both times is not known.
double time_plan_stall(const time_plan *plan, double step_seconds);

#endif
