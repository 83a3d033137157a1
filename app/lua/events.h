// SPDX-License-Identifier: Apache-2.0
// Events of a training as a recipe sees them, one row each: hr.on, the reference and the stub are walks over these rows.
#ifndef APP_LUA_EVENTS_H
#define APP_LUA_EVENTS_H

#include <lua.h>

#include "headroom/engine.h"

#include "app/lua/lua_script.h"

// X(ID, "name")
#define SCRIPT_EVENT_MAP(X)                                                                                  \
    X(ALLOC, "alloc")                                                                                        \
    X(BEFORE_UPDATE, "before_update")                                                                        \
    X(EPOCH, "epoch")                                                                                        \
    X(EPOCH_BEGIN, "epoch_begin")                                                                            \
    X(EVALUATION, "evaluation")                                                                              \
    X(NONFINITE, "nonfinite")                                                                                \
    X(OOM, "oom")                                                                                            \
    X(REBUILD, "rebuild")                                                                                    \
    X(SAVE, "save")                                                                                          \
    X(SCALE, "scale")                                                                                        \
    X(STEP, "step")                                                                                          \
    X(STEP_BEGIN, "step_begin")                                                                              \
    X(TRAIN_BEGIN, "train_begin")                                                                            \
    X(TRAIN_END, "train_end")

typedef enum script_event {
#define X(id, name) SCRIPT_EVENT_##id,
    SCRIPT_EVENT_MAP(X)
#undef X
        SCRIPT_EVENT_COUNT
} script_event;

typedef struct script_event_row {
    const char *name, *line;
    const lua_script_field *fields; // its own; NULL: those of result.oom
} script_event_row;

extern const script_event_row script_event_rows[SCRIPT_EVENT_COUNT];
// What every event but oom has beside its own: looked up when it is read, while the callback runs.
extern const lua_script_field script_now_fields[];

#endif
