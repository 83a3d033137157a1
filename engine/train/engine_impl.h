// SPDX-License-Identifier: Apache-2.0
// The engine's inside, shared by the files of train/. Engine's thread only.
#ifndef TRAIN_ENGINE_IMPL_H
#define TRAIN_ENGINE_IMPL_H

#include "headroom/deploy.h"
#include "headroom/engine.h"

#include "data/pipeline.h"
#include "insight/host_outlook.h"
#include "insight/near_full.h"
#include "insight/retry_watch.h"
#include "model/shelf.h"
#include "train/build.h"
#include "train/decompose.h"
#include "train/feed.h"
#include "train/inside.h"
#include "train/store.h"

enum { ENGINE_DURATIONS = 1024 };

// An evaluation under way or ended.
typedef struct evaluation {
    bool running;
    bool wanted; // by HR_COMMAND_EVALUATE, in state `asked_in`: it begins before anything else
    hr_engine_state asked_in;
    bool ever;
    double loss_sum;
    uint64_t correct, samples, count;
    double loss, accuracy;      // of the last one, NaN before
    uint64_t peak_in_use_bytes; // of all in this counter epoch
    ledger before;              // the training steps' ledger, put back when it ends
} evaluation;

typedef struct answering answering;

struct hr_engine {
    char preset_name[64];
    model_shelf *models;
    const hr_model *model; // under `knobs`
    const hr_model *built; // that `build` was made of: another one between the turn of a size and its build
    hr_knobs knobs;
    bool plan_only;
    bool rehearses; // it is to say whether it would stand, and never fills a build
    trace_bus bus;
    hr_engine_state state;
    hr_err error;                 // of OOM and FAILED
    hr_report_oom oom;            // of the OOM state
    host_outlook refused_host;    // of an oom of_host: what the host would have held
    uint64_t refused_limit_bytes; // of the same: the device's limit
    hr_heap *failure_heap;        // of the last out-of-memory, where host memory was there
    bool keeps_failure_heap;      // for who asks for it

    build *build;         // NULL before the first and after a failed one
    const build *refused; // whose dry run does not fit, while the stream is told of it
    bool (*goes_on)(void *context, uint32_t done, uint32_t rounds); // hr_engine_options
    void *goes_on_context;
    void (*before_update)(void *context); // hr_engine_options
    void *before_update_context;
    char times_file[HR_KNOB_TEXT_MAX]; // hr_engine_options; "": nothing is timed
    bool needs_build;                  // a knob that is not hot changed, or there was no build yet
    bool needs_pipeline;               // a knob of the pipeline changed
    bool beyond;                       // `position` may lie behind its epoch's end, and `data` is closed
    bool told_bad;                     // that a sample was replaced (pipeline.bad)
    bool resumed;                      // train.resume was read
    bool stripped;                     // what was read from a save had no slots
    hr_quantize quantized;  // what was read from a save was in whole numbers: it does not go on training
    bool lost_step;         // a step failed half way: contents of device memory are not to be trusted
    bool needs_seek;        // `data` is beyond `position`: a step broke off that had its batch
    bool restored;          // `carried` is what training goes on from, not what the build holds
    store carried;          // weights on their way from one build to the next
    store teacher;          // the teacher's save, on its way into a build
    float *answers;         // compress.distill_cache: of the teacher, to all training samples; NULL: none
    hr_knobs answers_knobs; // with which they are made
    answering *answering;   // they are being made; NULL: not at the moment
    uint64_t answers_bytes; // they take; 0: there are none
    uint64_t answers_limit_bytes;     // of the device meanwhile
    uint64_t answers_peak_bytes;      // in use while they are made: of a run measured, else planned
    const save_origin *origin;        // of the save that is being written; NULL: it tells none
    char last_save[HR_KNOB_TEXT_MAX]; // that this training wrote or was resumed from; "": none
    pipeline *data;
    hr_knobs data_knobs;    // with which `data` was opened
    data_position position; // where training stands in its data
    feed feed;              // batches that were copied ahead of it

    uint64_t steps, target_steps; // training steps done, to do
    uint64_t updates;
    uint64_t pruned_from; // updates that were done when masks were new (compress.prune)
    char pruned_by
        [160];        // the knobs of the save that was read, as they are typed; "": none, or it does not say
    uint64_t skipped; // steps of this counter epoch whose gradients were not finite
    float loss_scale; // after the last step; 0 before the first
    uint64_t samples; // since the counter epoch began
    double loss, loss_first;
    hr_event_losses losses;                  // of the last step; NaN where no teacher is
    uint64_t durations_ns[ENGINE_DURATIONS]; // ring of the latest steps
    uint64_t duration_count;
    uint64_t busy_ns; // sum over this counter epoch
    uint64_t heap_hash;
    near_full near;           // of the program that runs
    retry_watch retries;      // over this counter epoch
    uint64_t peak_pool_bytes; // over training steps
    evaluation eval;
    decomposed_list decomposed; // of the save that was resumed, layer by layer
    char weights_sha256[HR_SHA256_TEXT_MAX];
    double sparsity;    // of the same weights
    uint64_t sha_steps; // steps the hash belongs to
};

// engine.c
void engine_fail(hr_engine *e, hr_engine_state state);
void engine_set_state(hr_engine *e, hr_engine_state state, const char *why);
void engine_set_bus_step(hr_engine *e); // what events and the position say from here on: e->steps

// rebuild.c: makes e->build agree with e->knobs. On an out-of-memory the old build stays as it was, e->oom is
// filled and HR_OOM returned. Where a teacher has to answer first (compress.distill_cache) a call begins that or does a batch of it,
// and the build is still needed; the old one is gone then, and what was learned is in e->carried, for the build or a save.
HR_MUST_CHECK hr_status engine_rebuild(hr_engine *e, hr_err *err);
// The stream tells of what a dry run of `b` found.
void engine_tell_oom(hr_engine *e, const build *b, const play_result *played);
// All of that up to where memory is taken. HR_OOM as above.
HR_MUST_CHECK hr_status engine_try_rebuild(hr_engine *e, hr_err *err);

// step.c
HR_MUST_CHECK hr_status engine_train_step(hr_engine *e, hr_err *err);
void engine_begin_evaluation(hr_engine *e);
bool engine_begin_wanted_evaluation(hr_engine *e); // false: nothing is held out, and the log says so
HR_MUST_CHECK hr_status engine_evaluate_batch(hr_engine *e, hr_err *err);

// health.c: after a step, what loss scaling did and which layers float16 would not hold, as events.
void engine_tell_scaling(hr_engine *e, const step_io *io);

// save.c (and inside.h)
// Whether a save could be written to `path` ("": none is wanted), so that it is not found out at the end. WRITE error.
HR_MUST_CHECK hr_status engine_check_save_path(const char *path, hr_err *err);
// Where hr_engine_write_times writes (times.c): WRITE error where a file is in the way.
HR_MUST_CHECK hr_status engine_set_times_file(hr_engine *e, const char *path, hr_err *err);
// Fills e->carried, counters and position from a save.
HR_MUST_CHECK hr_status engine_load(hr_engine *e, const char *path, hr_err *err);
// Fills e->teacher from the save that compress.distill_weights names, or the teacher's preset; leaves it empty where the model
// has no teacher or there is no save.
HR_MUST_CHECK hr_status engine_load_teacher(hr_engine *e, const hr_model *model, hr_err *err);

// answers.c: whether a heap would hold what answering takes: HR_OOM as of a dry run, with what to try. Notes its peak.
HR_MUST_CHECK hr_status engine_check_answers(hr_engine *e, hr_err *err);
// What the teacher says to every training sample, [samples, …] in file order, is made on a device and in a heap of their own: one
// batch at a time, so that commands come through, between engine_begin_answers and the batch that fills e->answers and ends it.
// Each of them is told (HR_EVENT_ANSWERS). A failure ends it, too.
HR_MUST_CHECK hr_status engine_begin_answers(hr_engine *e, hr_err *err);
HR_MUST_CHECK hr_status engine_answer_batch(hr_engine *e, hr_err *err);
void engine_end_answers(hr_engine *e); // what is half made is gone
// Says so where the model's teacher has no save in e->teacher.
void engine_tell_teacher(hr_engine *e, const hr_model *model);

// remedy.c: after an out-of-memory, the changes of knobs that a dry run says would fit, those that change least first:
// fills `fixes`, and `hint` with the first as a command line ("-s execution.mode=graph"); none and "" when nothing it
// knows does. Nothing else is touched. `refused` is what does not fit; of a very large program only some are tried.
void engine_find_remedy(const hr_engine *e, const build *refused, hr_report_oom *oom);
// Its last part: says what the fixes cost beside the step that was refused, and puts them in order.
void engine_rank_fixes(const hr_engine *e, const build *refused, hr_report_oom *oom);
// All of them as what to try.
void engine_say_remedies(const hr_report_oom *oom, hr_err *err);

// report.c
// Describes it, finds what to try, and makes the error of it. `in_a_step`: of a build whose dry run fitted. Returns
// HR_OOM.
hr_status engine_oom(hr_engine *e, const build *b, const program *p, const executor_oom *facts,
                     bool in_a_step, hr_err *err);

// host_limit.c: HOST_LIMIT error where this machine has not the memory that a teacher's answers to all samples take.
HR_MUST_CHECK hr_status engine_admit_answers(const hr_engine *e, const build *fresh, hr_err *err);

// host_limit.c: whether the host may hold what this build's run would, by pipeline.ram_limit: HR_OK, or HR_OOM as above.
HR_MUST_CHECK hr_status engine_check_host(hr_engine *e, const build *fresh, hr_err *err);

#endif
