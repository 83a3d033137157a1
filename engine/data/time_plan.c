// SPDX-License-Identifier: Apache-2.0
#include "data/time_plan.h"

#include <math.h>

#include "base/machine.h"
#include "data/keep.h"

// Out of a cache in memory, by the byte; measured as data_cost is.
static const double copy_byte_ns = 0.13;

static double values_of(const data_form *form)
{
    uint64_t values = 0;
    for (uint32_t k = 0; k < form->count; k++) {
        values += data_slot_values(&form->slot[k]);
    }
    return (double)values;
}

static double sample_ns(const data_keep_plan *keep, const data_facts *facts, const data_form *batches)
{
    const data_cost *cost = &facts->source.cost;
    const double raw_bytes =
        (double)facts->raw_bytes[DATA_TRAIN] / (double)data_source_samples(&facts->source, DATA_TRAIN);
    const bool keeps_raw = keep->has_slices || (keep->has_cache && !keep->cache_made);
    if (keep->has_cache && keep->cache_made) {
        return (double)data_form_packed_bytes(batches) * copy_byte_ns;
    }
    const double fetched = // what is kept as it was read is made where it lies
        keeps_raw ? 0 : cost->fetch_ns + raw_bytes * cost->fetch_byte_ns;
    return fetched + raw_bytes * cost->make_byte_ns + values_of(batches) * cost->make_value_ns;
}

static double input_seconds(const hr_knobs *knobs, const data_keep_plan *keep, double each_ns)
{
    const uint32_t threads = keep->tuned.threads, cores = machine_cores_lately();
    const double samples =
        (double)hr_knob_int(knobs, HR_KNOB_BATCH_SIZE) * (double)hr_knob_int(knobs, HR_KNOB_BATCH_ACCUMULATE);
    return samples * each_ns * 1e-9 / (double)(threads < cores ? threads : cores);
}

time_plan time_plan_make(const hr_knobs *knobs, const data_facts *facts, const pipeline_wire *wire)
{
    const data_form batches = pipeline_train_form(&facts->source.form, wire);
    const data_keep_plan keep =
        data_keep_plan_of(knobs, &facts->source, facts->raw_bytes[DATA_TRAIN], &batches);
    time_plan plan = {.input_seconds = (double)NAN, .has_queue = keep.tuned.prefetch > 0};
    if (hr_knob_is(knobs, HR_KNOB_PIPELINE_RESIDENT, "on")) {
        plan.input_seconds = 0;
    } else if (facts->source.cost.make_value_ns > 0) {
        plan.input_seconds = input_seconds(knobs, &keep, sample_ns(&keep, facts, &batches));
    }
    return plan;
}

double time_plan_stall(const time_plan *plan, double step_seconds)
{
    const double beside = plan->has_queue ? step_seconds : 0;
    const double waits = plan->input_seconds > beside ? plan->input_seconds - beside : 0;
    return isfinite(plan->input_seconds) && step_seconds > 0 ? waits / (waits + step_seconds) : (double)NAN;
}
