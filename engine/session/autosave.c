// SPDX-License-Identifier: Apache-2.0
#include "session/autosave.h"

#include "base/clock.h"
#include "train/inside.h"

static const uint64_t apart_ns = UINT64_C(20000000000);
enum { COST_SHARE = 100 }; // a save is due only after a hundred times what the last one took
// Of what the first one will take: a disk takes 400 MB in a second.
enum { FIRST_NS_PER_BYTE = COST_SHARE * 10 / 4 };

void autosave_begin(autosave *a, const char *path, const save_origin *origin)
{
    const uint64_t now_ns = clock_now_ns();
    *a = (autosave){
        .path = path, .origin = *origin, .begin_ns = now_ns, .due_ns = now_ns + apart_ns, .steps = HR_NONE};
}

void autosave_note(autosave *a, uint64_t steps, trace_heartbeat *heartbeat)
{
    a->steps = steps;
    atomic_store_explicit(&heartbeat->saved_step, steps, memory_order_relaxed);
}

static bool is_cheap_first(const autosave *a, const hr_engine *engine, uint64_t now_ns)
{
    const bool first = a->steps == HR_NONE && !a->failed;
    return first && (now_ns - a->begin_ns) / FIRST_NS_PER_BYTE >= engine_save_bytes(engine);
}

static bool is_due(const autosave *a, const hr_engine *engine, uint64_t now_ns)
{
    const uint64_t steps = hr_engine_steps(engine);
    if (a->path[0] == '\0' || !engine_has_weights(engine) || steps == 0 || steps == a->steps) {
        return false;
    }
    return now_ns >= a->due_ns || is_cheap_first(a, engine, now_ns) ||
           (hr_engine_get_state(engine) != HR_ENGINE_RUNNING && !a->failed);
}

static void set_writing(const session_callbacks *out, bool begins)
{
    if (out->writing != NULL) {
        out->writing(out->context, begins);
    }
}

static hr_status write_now(autosave *a, hr_engine *engine, const session_callbacks *out, hr_err *err)
{
    set_writing(out, true);
    a->writing = true;
    hr_status status = engine_save_session(engine, a->path, &a->origin, err);
    a->writing = false;
    set_writing(out, false);
    return status;
}

void autosave_keep(autosave *a, hr_engine *engine, const session_callbacks *out)
{
    hr_err err = {0};
    const uint64_t begin_ns = clock_now_ns();
    if (!is_due(a, engine, begin_ns)) {
        return;
    }
    hr_status status = write_now(a, engine, out, &err);
    const uint64_t now_ns = clock_now_ns(), wait_ns = COST_SHARE * (now_ns - begin_ns);
    a->due_ns = now_ns + (wait_ns > apart_ns ? wait_ns : apart_ns);
    if (status != HR_OK && !a->failed) {
        out->error(out->context, &err);
    }
    a->failed = status != HR_OK;
}

hr_status autosave_now(autosave *a, hr_engine *engine, const session_callbacks *out, hr_err *err)
{
    const uint64_t steps = hr_engine_steps(engine);
    const bool stands = a->path[0] == '\0' || !engine_has_weights(engine) || steps == 0 || steps == a->steps;
    return stands ? HR_OK : write_now(a, engine, out, err);
}
