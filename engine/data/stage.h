// SPDX-License-Identifier: Apache-2.0
// The producer is a chain of stages: source → shuffle → batch → prefetch. Each stage pulls from the one before
// it; later kinds (map, cache, …) only add rows. What a stage holds is counted in the host ledger.
#ifndef DATA_STAGE_H
#define DATA_STAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

// One sample or one batch of samples on its way. The stage that gave it owns the bytes until the next call.
typedef struct data_item {
    const uint8_t *raw;    // before batch: one record's pixels, channel planes as the file has them
    const float *images;   // after batch: [count, H, W, C] in [0, 1], NHWC
    const int32_t *labels; // [count]
    uint32_t count;        // samples
    bool end;              // the epoch is over; nothing else is set
} data_item;

// Where an epoch stands: enough to go on bit-identically after a restart.
typedef struct data_position {
    uint64_t epoch;   // 0-based
    uint64_t samples; // given out in this epoch
} data_position;

typedef struct data_stage data_stage;

typedef struct data_stage_ops {
    const char *name;                                              // "shuffle"
    hr_status (*next)(data_stage *s, data_item *out, hr_err *err); // one item, or out->end
    // Starts epoch p.epoch after p.samples samples, as if they had been given out.
    hr_status (*seek)(data_stage *s, data_position p, hr_err *err);
    void (*close)(data_stage *s); // closes the stage before it too
    uint64_t (*host_bytes)(const data_stage *s);
    uint64_t (*peak_host_bytes)(const data_stage *s);
    void (*queue)(const data_stage *s, uint32_t *length, uint32_t *capacity); // optional: NULL means no queue
} data_stage_ops;

struct data_stage {
    const data_stage_ops *ops;
    data_stage *before; // owned; NULL for a source
};

#endif
