// SPDX-License-Identifier: Apache-2.0
// How long engines of cuDNN take on one kind of card, as workspace.search=on measured it there: a JSON file for a card and a
// version of cuDNN, which later runs and plans without the card order engines by.
//
//   presets/cards/nvidia-h200.cudnn-9.19.0.engines.json    in the user's data folder ($XDG_DATA_HOME/headroom), or a file of
//                                                          that name beside the card's properties
#ifndef DEVICE_CUDA_ENGINE_TIMES_H
#define DEVICE_CUDA_ENGINE_TIMES_H

#include "base/vec.h"
#include "cuda_device.h"

enum { ENGINE_TIMES_MAX = 10, ENGINE_TIMES_PATH_MAX = 1024, ENGINE_TIMES_TITLE_MAX = 128 };

typedef struct engine_time {
    int64_t engine; // cuDNN's global index
    uint64_t knobs; // hash of all knobs of the configuration and their values
    uint64_t took_ns;
} engine_time;

// Of one graph, in the order in which they were measured.
typedef struct engine_row {
    uint64_t key[2]; // of the graph (graph_list.key)
    uint32_t count;
    bool partial; // an engine had no memory when it was timed: orders this run's list, and is not kept
    engine_time time[ENGINE_TIMES_MAX];
} engine_row;

// What times are of. A file that says otherwise is refused.
typedef struct engine_times_of {
    char title[ENGINE_TIMES_TITLE_MAX]; // "NVIDIA H200"
    uint32_t compute_major, compute_minor, multiprocessors;
    uint64_t cudnn; // cudnnGetVersion: 91900
} engine_times_of;

typedef struct engine_times {
    engine_times_of of;
    VEC(engine_row) rows;
    uint64_t hash;  // of the file that was read; 0: none
    uint64_t stamp; // of the user's file as it was read; 0: there was none
} engine_times;

// Zeroed but for `of`; engine_times_deinit frees what the others add.
void engine_times_init(engine_times *t, const engine_times_of *of);
void engine_times_deinit(engine_times *t);

// Where they are written: in the user's data folder. False where it has none.
bool engine_times_path(const engine_times_of *of, char path[ENGINE_TIMES_PATH_MAX]);
// Adds the rows of the user's file or, where there is none, of the file beside `properties_path` ("": nowhere); nothing where
// there is neither. READ, PRESET and NOMEM errors, nothing is added then.
HR_MUST_CHECK hr_status engine_times_read(engine_times *t, const char *properties_path, hr_err *err);
// Has the user's file been written or removed since it was read?
bool engine_times_changed(const engine_times *t);
// Writes them all, and what another process has written meanwhile of other graphs. READ, PRESET, WRITE, NOMEM errors: the
// file is what it was.
HR_MUST_CHECK hr_status engine_times_write(engine_times *t, hr_err *err);

const engine_row *engine_times_find(const engine_times *t, const uint64_t key[2]); // NULL: not measured
HR_MUST_CHECK hr_status engine_times_add(engine_times *t, const engine_row *row, hr_err *err); // NOMEM
// 0: it was not measured.
uint64_t engine_row_ns(const engine_row *row, int64_t engine, uint64_t knobs);

#endif
