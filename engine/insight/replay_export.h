// SPDX-License-Identifier: Apache-2.0
// What a replay does, as a file of any kind that events can be written to (formats/exporter.h).
#ifndef INSIGHT_REPLAY_EXPORT_H
#define INSIGHT_REPLAY_EXPORT_H

#include "formats/exporter.h"
#include "insight/replay.h"

// Starts zeroed. Must not move between open and close.
typedef struct replay_export {
    trace_bus bus;
    exporter *out; // NULL: nothing is written
    const replay_player *player;
} replay_export;

// `file` as of exporter_open; NULL: nothing is written, and setup->bus stays as it is. The player is the one that is
// about to be started with `setup`, and is zeroed here.
HR_MUST_CHECK hr_status replay_export_open(replay_export *x, const char *file, replay_player *player,
                                           uint32_t device_count, replay_setup *setup, hr_err *err);
// Before replay_close: what that gives back is not part of the trace. The file is there, or an error says why not.
HR_MUST_CHECK hr_status replay_export_close(replay_export *x, hr_err *err);
void replay_export_abandon(replay_export *x);

#endif
