// SPDX-License-Identifier: Apache-2.0
// The stages there are. Each constructor borrows nothing but what it names, takes over `before` on success and
// leaves it with the caller on failure. NOMEM errors unless said otherwise.
#ifndef DATA_STAGES_H
#define DATA_STAGES_H

#include "data/map.h"
#include "data/pool.h"
#include "data/source.h"
#include "data/stage.h"
#include "data/tuned.h"

// Numbers of `set` in file order. `source` is borrowed until close.
HR_MUST_CHECK hr_status stage_source_open(const data_source *source, data_set set, data_stage **out,
                                          hr_err *err);

// The numbers of training samples in the order of interleave(cycle, block) over the files of a source (stage_interleave.c) that has
// `cycle` of them at least. `before` tells how many there are. `source` is borrowed until close.
typedef struct interleave_form {
    uint32_t cycle, block; // files read in turn; samples in one turn; > 0
} interleave_form;

enum { INTERLEAVE_FILE_BYTES = 8 }; // that it holds of an open file

HR_MUST_CHECK hr_status stage_interleave_open(data_stage *before, const data_source *source,
                                              const interleave_form *form, data_stage **out, hr_err *err);

// The epochs of `before`, which have `samples` each (> 0), one behind the other without an end.
HR_MUST_CHECK hr_status stage_repeat_open(data_stage *before, uint64_t samples, data_stage **out,
                                          hr_err *err);

// tf.data's shuffle: a buffer of `samples` numbers, from which each output is drawn at random and replaced by
// the next input. The k-th draw of epoch e is Philox(seed, "shuffle", k, e), or that of epoch 0 when `same_order`. samples > 0.
// With a pool of as many places, it says there which sample is to lie where. Over what is repeated all epochs are one: draws are
// counted on and on, and a seek goes through all of them.
typedef struct shuffle_form {
    uint32_t samples;
    uint64_t seed;
    bool same_order;
    uint64_t repeated; // samples of an epoch of `before`, which has no end; 0: it has one
    data_pool *pool;   // borrowed; NULL: numbers alone
} shuffle_form;

HR_MUST_CHECK hr_status stage_shuffle_open(data_stage *before, const shuffle_form *form, data_stage **out,
                                           hr_err *err);

// What becomes of the samples that do not fill a last batch.
typedef enum batch_remainder {
    BATCH_DROP, // not given
    BATCH_KEEP, // given, with their own count
    BATCH_PAD,  // given, filled up with the samples the epoch began with, again and again if need be
} batch_remainder;

// What batches are like. `rounds` of them make one update, and the remainder concerns whole updates: what fills none
// is dropped, or filled up to one, together.
typedef struct batch_form {
    uint32_t batch, rounds;
    batch_remainder remainder;
    uint32_t threads; // that read and write samples side by side; 1..BATCH_THREADS_MAX
    bool at_once;     // its own buffers are taken when it is opened, not with the first item
    bool is_filled;   // from the next epoch: what comes before has no end. `remainder` is BATCH_KEEP then
    data_pool *pool;  // borrowed: where drawn samples lie; NULL: they are asked of the map
} batch_form;

enum { BATCH_THREADS_MAX = DATA_THREADS_MAX };

// Writes form->batch samples of `set` into the slots of `buffers`, whose form is the map's: the same bytes on any number of
// threads. Its own buffers are taken with the first item that is not written elsewhere. What the map borrows is borrowed until
// close. DATA errors while reading.
HR_MUST_CHECK hr_status stage_batch_open(data_stage *before, const data_map *map, data_set set,
                                         const batch_form *form, const data_buffers *buffers,
                                         data_stage **out, hr_err *err);
// How many of form->threads have work from now on; 1 at least. Any thread.
void stage_batch_use_threads(data_stage *s, uint32_t threads);
// Another batch size from the next item on; only for BATCH_KEEP and without write_to.
void stage_batch_resize(data_stage *s, uint32_t batch);

// A thread of its own keeps up to `batches` batches of `batch` samples ready, in batches + 1 buffers: one may be with
// the consumer. `before` must have write_to and is the thread's from here on. An error
// on the thread is given to the consumer after the batches that were ready. HOST_LIMIT when no thread can start.
HR_MUST_CHECK hr_status stage_prefetch_open(data_stage *before, uint32_t batches, uint32_t batch,
                                            const data_buffers *buffers, data_stage **out, hr_err *err);
// How many of `batches` are kept ready from now on; 1 at least. Fewer than are ready: the next are made when they have gone.
// Buffers are used from the first on, so that those of the others stay untouched. The consumer's thread.
void stage_prefetch_use(data_stage *s, uint32_t batches);

#endif
