// SPDX-License-Identifier: Apache-2.0
// Where training steps get their batches, with pipeline.device_prefetch batches held ahead on the device, or with one that
// stays there (pipeline.resident).
//
//   pipeline ─▶ [ batches that were copied ahead, ends of epochs between them ] ─▶ step
//
// e->position is where training stands: behind the last batch that a step took, whatever was copied ahead of it. What was
// copied ahead is given up when the pipeline is sought, and read once more from there. A resident batch is the first of the
// epoch that training stands in, and does not move it. Engine's thread only.
#ifndef TRAIN_FEED_H
#define TRAIN_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#include "data/pipeline.h"
#include "device/device.h"

enum { FEED_MOST_AHEAD = 64, FEED_ROOM = 2 * FEED_MOST_AHEAD + 2 }; // between two batches an epoch may end

// A batch, or the end of an epoch.
typedef struct fed_batch {
    bool end;
    uint32_t samples;
    uint64_t first_sample;
    data_position after; // where training stands once it was taken
} fed_batch;

typedef struct feed {
    fed_batch queue[FEED_ROOM];
    uint32_t begin, count; // of the queue
    uint32_t batches;      // of them no ends: those on the device
    bool stays;            // the resident batch is in its slots
    fed_batch resident;    // that batch
} feed;

typedef struct hr_engine hr_engine;

// The next batch of training, or the end of an epoch; e->position moves behind it. io gets what the step hands to the
// device, which is this batch, or one that comes later. Adds to *wait_ns how long the pipeline was waited for. After an
// error e->position is as it was.
HR_MUST_CHECK hr_status engine_next_batch(hr_engine *e, fed_batch *out, step_io *io, uint64_t *wait_ns,
                                          hr_err *err);
// The pipeline goes to e->position, and what was copied ahead of it is given up.
HR_MUST_CHECK hr_status engine_seek_data(hr_engine *e, hr_err *err);
// For a fresh build, which holds no batches: the same where any were held.
HR_MUST_CHECK hr_status engine_refeed(hr_engine *e, hr_err *err);

#endif
