// SPDX-License-Identifier: Apache-2.0
// The host ledger as a pure function: what every stage of a pipeline will hold, from the knobs and from what a source says of
// itself. A pipeline that is open counts the same, to the byte, once it has given its first batch.
#ifndef DATA_HOST_PLAN_H
#define DATA_HOST_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/knobs.h"
#include "headroom/status.h"

#include "data/pipeline.h"
#include "data/source.h"

// What is known of a source that need not be open.
typedef struct data_facts {
    data_source source;                 // as it describes itself: its samples are not to be asked for
    uint64_t raw_bytes[DATA_SET_COUNT]; // of all samples of a set, as their files have them
} data_facts;

data_facts data_facts_of(const data_source *open);
// Opens what the knobs name, and closes it. Errors of data_source_open.
HR_MUST_CHECK hr_status data_facts_read(const hr_knobs *knobs, const data_form *model, data_facts *out,
                                        hr_err *err);

// From what is known of a source without pipeline.array to what is known of it as `knobs` have that. DATA error.
HR_MUST_CHECK hr_status data_facts_make_array(const hr_knobs *knobs, data_facts *facts, hr_err *err);

typedef struct host_stage {
    const char *name; // static
    uint64_t bytes;   // the most it holds
} host_stage;

// In the order of pipeline_stages.
typedef struct host_plan {
    host_stage stages[PIPELINE_MAX_STAGES];
    uint32_t count;
    uint64_t bytes; // of all; UINT64_MAX: more than can be counted
} host_plan;

// Of the wire its types; `pinned`: the device gives memory for batches, and refuses none.
host_plan host_plan_make(const hr_knobs *knobs, const data_facts *facts, const pipeline_wire *wire,
                         bool pinned);

#endif
