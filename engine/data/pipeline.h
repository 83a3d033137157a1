// SPDX-License-Identifier: Apache-2.0
// The pipeline as the trainer sees it: batches of one epoch after the other, and the held-out set.
#ifndef DATA_PIPELINE_H
#define DATA_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/event.h"
#include "headroom/knobs.h"
#include "headroom/status.h"

#include "data/stage.h"

typedef struct pipeline pipeline;

// What batches are on the host: the type of their floats, and the memory of training batches.
typedef struct pipeline_wire {
    data_type train[DATA_MAX_SLOTS], eval[DATA_MAX_SLOTS]; // of DATA_FLOAT slots, as data_form_narrowed
    pinned_memory pinned;                                  // all zero: ordinary memory
    data_slot answers; // what training batches have beside the samples: a teacher's logits. rank 0: nothing
    const float *answered; // of all training samples in file order; borrowed until close; NULL in a plan
} pipeline_wire;

// Of training batches: the source's, narrowed, and what comes beside.
data_form pipeline_train_form(const data_form *source, const pipeline_wire *wire);

typedef struct pipeline_info {
    char label[64]; // "generated", "CIFAR-10 (cifar-10-binary.tar.gz)": shown wherever results are shown
    uint32_t height, width, channels, classes; // of images; 0 for other data
    uint64_t train_samples, eval_samples;
} pipeline_info;

// Opens the source that pipeline.source and pipeline.path name ("auto" with no path: generated) and the chain
// with pipeline.shuffle, batch.size, batch.remainder, pipeline.prefetch and train.seed. The producer thread runs
// from here on when prefetch > 0. `model` says what a sample must be. DATA errors name file and offset, or what was
// needed and had when the data set is none for this model. On success the pipeline owns wire->pinned.
HR_MUST_CHECK hr_status pipeline_open(const hr_knobs *knobs, const data_form *model,
                                      const pipeline_wire *wire, pipeline **out, hr_err *err);
// Chains the stages anew, as `knobs` have them now, over the data set that is open; the next batch is the first of
// epoch 0 (seek). On failure the pipeline is as it was, and wire->pinned the caller's; otherwise it is the pipeline's. The
// data set itself is that of pipeline_open, and slices and a cache of samples as they were fetched stay with what they hold where they
// are the same; all else is taken before what was there is given back.
HR_MUST_CHECK hr_status pipeline_rechain(pipeline *p, const hr_knobs *knobs, const pipeline_wire *wire,
                                         hr_err *err);
// Are its batches of the wire's types, and was pinned memory wanted for them as it is now?
bool pipeline_has_wire(const pipeline *p, const pipeline_wire *wire, bool pinned);
// Why batches are not in the pinned memory that was wanted for them; NULL: they are, or none was. With prefetch = 0 it is
// known once a batch was asked for.
const char *pipeline_pinning_refused(const pipeline *p);
// With pipeline.bad=skip: how many samples that were given out replace others that cannot be read, and names and folders that
// were passed over when the data set was opened. *why: what was wrong with the first sample; NULL: there was none.
uint64_t pipeline_bad_samples(const pipeline *p, const char **why);
void pipeline_close(pipeline *p);
const pipeline_info *pipeline_get_info(const pipeline *p);

// The next training batch; *out is valid until the next call. out->end at the end of an epoch, then the next call
// begins the next epoch. *wait_ns is how long the caller waited. A partial batch has out->count < batch.size; with
// batch.remainder pad it is filled up with the samples the epoch began with. With repeat before batch none is partial: the end
// comes behind the update that gave the epoch's last sample, once though several epochs went by. After an error the position is as
// it was, and the next call tries the same batch again.
HR_MUST_CHECK hr_status pipeline_next(pipeline *p, data_item *out, uint64_t *wait_ns, hr_err *err);
// The held-out samples in file order, `batch` at a time; restarts after out->end, an error or a seek. Made when
// asked for, in a buffer of their own, which has room for batch.size from the beginning.
HR_MUST_CHECK hr_status pipeline_next_eval(pipeline *p, uint32_t batch, data_item *out, hr_err *err);

data_position
pipeline_position(const pipeline *p); // of what the caller has taken, not of what was prefetched
// Whether repeat stands in front of batch: until an epoch's end is taken, a position may lie behind it.
bool pipeline_fills_batches(const pipeline *p);
// Updates of an epoch that is begun at its first sample. With repeat before batch one more where a batch is shared by two.
uint64_t pipeline_epoch_updates(const pipeline *p);
// Whether the epoch has no further batch behind `position`: the next item is its end.
bool pipeline_epoch_is_over(const pipeline *p, data_position position);
// Goes on as a pipeline would that had given out everything before `position`: bit for bit, with the same knobs.
// What pipeline_next gave last is then void. DATA error when the data set is smaller than that, unless batches are filled from the
// next epoch, or when a shuffle of what is repeated would have to draw for hours.
HR_MUST_CHECK hr_status pipeline_seek(pipeline *p, data_position position, hr_err *err);

enum { PIPELINE_MAX_STAGES = 14 };
typedef struct pipeline_stage_info {
    char name[32];
    uint64_t host_bytes, peak_host_bytes; // of its buffers; files read in place count nothing
    uint32_t queue_length, queue_capacity;
    uint64_t busy_ns, wait_ns, items; // since its chain was opened; see hr_event_stage
    uint32_t threads, cores;
} pipeline_stage_info;
// Fills out[0..PIPELINE_MAX_STAGES); returns how many there are. Thread-safe.
uint32_t pipeline_stages(const pipeline *p, pipeline_stage_info *out);

enum { PIPELINE_MAX_DECISIONS = 16 };
// What pipeline.autotune decided since the last call; returns how many decisions there are.
uint32_t pipeline_decisions(pipeline *p, hr_event_tune out[PIPELINE_MAX_DECISIONS]);

#endif
