// SPDX-License-Identifier: Apache-2.0
// From a name to a trace that can be run: a scenario's, or a file's.
#include <string.h>

#include "base/host_mem.h"
#include "formats/formats.h"
#include "insight/replay.h"
#include "insight/scenario.h"

hr_status replay_of_trace(trace *t, hr_replay **out, hr_err *err)
{
    hr_replay *r = hr_calloc(1, sizeof *r);
    *out = r;
    if (r == NULL) {
        return HR_FAIL(err, NOMEM, "replay: needed host memory for a trace, had none");
    }
    replay_describe(t, &r->about);
    heap_snapshot **heap = &t->heaps[r->about.device];
    if (*heap != NULL) {
        r->recorded = hr_calloc(1, sizeof *r->recorded);
        if (r->recorded == NULL) {
            hr_free(r);
            *out = NULL;
            return HR_FAIL(err, NOMEM, "replay: needed host memory for a heap, had none");
        }
        r->recorded->snapshot = **heap;
        hr_free(*heap);
        *heap = NULL;
    }
    r->trace = *t;
    *t = (trace){0};
    return HR_OK;
}

// A word that no file has, and that is not written like a file's name, was meant as a scenario.
static hr_status refuse_name(const char *name, const char *near, const hr_err *from_file, hr_err *err)
{
    if (from_file->status != HR_READ || strpbrk(name, "/.") != NULL) {
        if (err != NULL) {
            *err = *from_file;
        }
        return from_file->status;
    }
    hr_status status =
        HR_FAIL(err, READ, "%.64s: there is no such file or scenario%s%s%s", name,
                near == NULL ? "" : " — did you mean '", near == NULL ? "" : near, near == NULL ? "" : "'?");
    hr_err_try(err, "headroom replay %s", near == NULL ? hr_scenario_row(0)->name : near);
    return status;
}

static hr_status find_trace(const char *name, trace *t, const hr_scenario **scenario, hr_err *err)
{
    const char *near = NULL;
    hr_err from_file = {0};
    *scenario = hr_scenario_find(name, &near);
    if (*scenario != NULL) {
        return scenario_trace(*scenario, t, err);
    }
    return trace_read(name, t, &from_file) == HR_OK ? HR_OK : refuse_name(name, near, &from_file, err);
}

hr_status hr_replay_open(const char *name, hr_replay **out, hr_err *err)
{
    trace t;
    const hr_scenario *scenario = NULL;
    *out = NULL;
    HR_TRY(find_trace(name, &t, &scenario, err));
    hr_status status = replay_of_trace(&t, out, err);
    trace_deinit(&t);
    if (status == HR_OK && scenario != NULL) {
        (*out)->about.scenario = scenario;
        (*out)->about.format_line = scenario->line;
    }
    return status;
}

bool hr_replay_recognises(const char *path)
{
    return trace_recognises(path);
}

void hr_replay_close(hr_replay *replay)
{
    if (replay != NULL) {
        trace_deinit(&replay->trace);
        hr_heap_destroy(replay->recorded);
        hr_free(replay);
    }
}

const hr_heap *hr_replay_recorded_heap(const hr_replay *replay)
{
    return replay->recorded;
}

const hr_replay_about *hr_replay_get_about(const hr_replay *replay)
{
    return &replay->about;
}
