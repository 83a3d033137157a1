// SPDX-License-Identifier: Apache-2.0
// What a session asks of an engine beyond headroom/engine.h. Engine's thread, between two advances.
#ifndef TRAIN_INSIDE_H
#define TRAIN_INSIDE_H

#include "headroom/engine.h"

#include "memory/allocator.h"

const allocator *engine_heap(const hr_engine *e);             // NULL: nothing is built
hr_category engine_category(const hr_engine *e, uint32_t id); // of the tensor that a chunk holds
uint64_t engine_next_seq(const hr_engine *e);                 // of the next event
bool engine_needs_build(const hr_engine *e);     // the next advance compiles and fills, which may take long
bool engine_has_weights(const hr_engine *e);     // whether the build holds weights that training goes on from
bool engine_carries_weights(const hr_engine *e); // there is no build, and a save has what the last one had
// What a save tells of the session that it is of, beside its knobs, so that it can be gone on from by itself.
typedef struct save_origin {
    const char *preset; // what opens it; borrowed
    bool trusts;
} save_origin;

// engine_save for a session that may be gone on from in another process.
HR_MUST_CHECK hr_status engine_save_session(hr_engine *e, const char *path, const save_origin *origin,
                                            hr_err *err);
uint64_t engine_save_bytes(const hr_engine *e); // of the tensors of a save; 0: it has no weights
// STATE error without weights; WRITE errors; a SAVED event otherwise. Afterwards a step that breaks off returns to it.
HR_MUST_CHECK hr_status engine_save(hr_engine *e, const char *path, hr_err *err);

#endif
