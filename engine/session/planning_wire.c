// SPDX-License-Identifier: Apache-2.0
#include "session/planning_wire.h"

#include <math.h>
#include <string.h>

#include "base/host_mem.h"
#include "session/codec.h"
#include "session/messages.h"

static bool get_flag(wire_in *in)
{
    bool flag = false;
    codec_bool(&(codec){.in = in}, &flag);
    return flag;
}

// ---- questions ------------------------------------------------------------------------------------------------

void planning_put_open(wire_out *o, const char *preset, bool trusts)
{
    wire_put_text(o, preset);
    wire_put_u32(o, trusts);
}

bool planning_get_open(wire_in *in, char preset[PLANNING_PRESET_MAX], bool *trusts)
{
    wire_get_text(in, preset, PLANNING_PRESET_MAX);
    *trusts = get_flag(in);
    return wire_in_is_done(in);
}

static void put_turns(wire_out *o, const planning_question *q)
{
    wire_put_u32(o, q->turn_count);
    for (uint32_t k = 0; k < q->turn_count; k++) {
        wire_put_u32(o, q->turns[k].knob);
        wire_put_text(o, q->turns[k].value);
    }
}

static void get_turns(wire_in *in, planning_question *q)
{
    q->turn_count = wire_get_u32(in);
    in->bad = in->bad || q->turn_count == 0 || q->turn_count > HR_TURNS_MAX;
    for (uint32_t k = 0; k < q->turn_count && !in->bad; k++) {
        const uint32_t knob = wire_get_u32(in);
        in->bad = in->bad || knob > HR_KNOB_COUNT;
        q->turns[k].knob = (hr_knob_id)knob;
        wire_get_text(in, q->turns[k].value, sizeof q->turns[k].value);
    }
}

void planning_put_question(wire_out *o, const planning_question *q)
{
    wire_put_u32(o, q->kind);
    wire_put_u64(o, q->number);
    wire_put_u32(o, q->exact);
    put_knobs(o, &q->knobs);
    if (q->kind == HR_QUESTION_DIFF) {
        put_knobs(o, &q->after);
    } else if (q->kind == HR_QUESTION_TURNS) {
        put_turns(o, q);
    } else if (q->kind == HR_QUESTION_FIT) {
        wire_put_u32(o, q->permission);
    }
}

static void get_permission(wire_in *in, planning_question *q)
{
    const uint32_t permission = wire_get_u32(in);
    in->bad = in->bad || permission >= HR_PERMISSION_COUNT;
    q->permission = (hr_fit_permission)permission;
}

bool planning_get_question(wire_in *in, planning_question *q)
{
    const uint32_t kind = wire_get_u32(in);
    in->bad = in->bad || kind >= HR_QUESTION_COUNT;
    q->kind = (hr_question_kind)kind;
    q->number = wire_get_u64(in);
    q->exact = get_flag(in);
    q->turn_count = 0;
    q->permission = HR_PERMIT_NOTHING;
    get_knobs(in, &q->knobs);
    if (q->kind == HR_QUESTION_DIFF) {
        get_knobs(in, &q->after);
    } else if (q->kind == HR_QUESTION_TURNS) {
        get_turns(in, q);
    } else if (q->kind == HR_QUESTION_FIT) {
        get_permission(in, q);
    }
    return wire_in_is_done(in);
}

// ---- answers --------------------------------------------------------------------------------------------------

static void put_plan(wire_out *o, const hr_whatif *w)
{
    wire_put_u32(o, w->fits);
    wire_put_u64(o, w->limit_bytes);
    wire_put_u64(o, w->static_bytes);
    wire_put_u64(o, w->saved_for_backward_bytes);
    wire_put_u64(o, w->peak_in_use_bytes);
    wire_put_u64(o, w->missing_bytes);
    wire_put_u32(o, w->is_at_least);
    wire_put(o, &w->step_seconds, sizeof w->step_seconds);
    wire_put(o, &w->step_seconds_low, sizeof w->step_seconds_low);
    wire_put(o, &w->step_seconds_high, sizeof w->step_seconds_high);
    wire_put_u32(o, w->step_basis);
    wire_put_u64(o, w->host_bytes);
    wire_put_u64(o, w->host_missing_bytes);
    wire_put_u64(o, w->h2d_bytes);
    wire_put(o, &w->input_seconds, sizeof w->input_seconds);
    wire_put(o, &w->stall, sizeof w->stall);
}

static void get_time(wire_in *in, double *seconds)
{
    wire_get(in, seconds, sizeof *seconds);
    in->bad = in->bad || !(isnan(*seconds) || (*seconds >= 0 && isfinite(*seconds)));
}

static hr_time_basis get_basis(wire_in *in)
{
    const uint32_t basis = wire_get_u32(in);
    in->bad = in->bad || basis >= HR_TIME_BASIS_COUNT;
    return in->bad ? HR_TIME_UNKNOWN : (hr_time_basis)basis;
}

static void get_plan(wire_in *in, hr_whatif *w)
{
    w->fits = get_flag(in);
    w->limit_bytes = wire_get_u64(in);
    w->static_bytes = wire_get_u64(in);
    w->saved_for_backward_bytes = wire_get_u64(in);
    w->peak_in_use_bytes = wire_get_u64(in);
    w->missing_bytes = wire_get_u64(in);
    w->is_at_least = get_flag(in);
    get_time(in, &w->step_seconds);
    get_time(in, &w->step_seconds_low);
    get_time(in, &w->step_seconds_high);
    w->step_basis = get_basis(in);
    w->host_bytes = wire_get_u64(in);
    w->host_missing_bytes = wire_get_u64(in);
    w->h2d_bytes = wire_get_u64(in);
    get_time(in, &w->input_seconds);
    get_time(in, &w->stall);
    in->bad = in->bad || w->stall > 1;
}

// A text of any length, its NUL included.
static void put_lines(wire_out *o, const char *lines)
{
    const size_t bytes = lines == NULL ? 0 : strlen(lines) + 1;
    wire_put_u64(o, bytes);
    wire_put(o, lines, bytes);
}

static void get_lines(wire_in *in, char **lines)
{
    const uint64_t bytes = wire_get_u64(in);
    *lines = wire_get_array(in, bytes, 1);
    if (*lines != NULL) {
        wire_get(in, *lines, bytes);
        in->bad = in->bad || strnlen(*lines, bytes) + 1 != bytes;
    }
}

void planning_put_answer(wire_out *o, const hr_answer *a)
{
    wire_put_u32(o, a->kind);
    wire_put_u64(o, a->number);
    wire_put_u32(o, a->index);
    wire_put_u32(o, a->last);
    wire_put_u32(o, a->estimated);
    wire_put_u32(o, a->status);
    wire_put_text(o, a->sentence);
    if (a->status != HR_OK) {
        return;
    }
    switch (a->kind) {
    case HR_QUESTION_STANDS: // its status says it
        break;
    case HR_QUESTION_TURNS:
        put_plan(o, &a->whatif);
        wire_put_text(o, a->other_param);
        break;
    case HR_QUESTION_STEP_PLAN:
        planning_put_step_plan(o, &a->step_plan);
        break;
    case HR_QUESTION_DIFF:
        put_lines(o, a->text);
        break;
    case HR_QUESTION_FIT:
        wire_put_text(o, a->point.knobs);
        put_plan(o, &a->point.plan);
        wire_put_u32(o, a->point.normalises_batches);
        break;
    case HR_QUESTION_COUNT:
        break;
    }
}

static void get_told(wire_in *in, hr_answer *a)
{
    switch (a->kind) {
    case HR_QUESTION_STANDS:
        break;
    case HR_QUESTION_TURNS:
        get_plan(in, &a->whatif);
        wire_get_text(in, a->other_param, sizeof a->other_param);
        break;
    case HR_QUESTION_STEP_PLAN:
        in->bad = in->bad || !planning_get_step_plan(in, &a->step_plan);
        break;
    case HR_QUESTION_DIFF:
        get_lines(in, &a->text);
        break;
    case HR_QUESTION_FIT:
        wire_get_text(in, a->point.knobs, sizeof a->point.knobs);
        get_plan(in, &a->point.plan);
        a->point.normalises_batches = get_flag(in);
        break;
    case HR_QUESTION_COUNT:
        in->bad = true;
        break;
    }
}

bool planning_get_answer(wire_in *in, hr_answer *a)
{
    *a = (hr_answer){.kind = HR_QUESTION_TURNS};
    const uint32_t kind = wire_get_u32(in);
    a->number = wire_get_u64(in);
    a->index = wire_get_u32(in);
    a->last = get_flag(in);
    a->estimated = get_flag(in);
    const uint32_t status = wire_get_u32(in);
    wire_get_text(in, a->sentence, sizeof a->sentence);
    in->bad = in->bad || kind >= HR_QUESTION_COUNT || status >= HR_STATUS_COUNT;
    a->kind = in->bad ? HR_QUESTION_TURNS : (hr_question_kind)kind;
    a->status = in->bad ? HR_OK : (hr_status)status;
    if (!in->bad && a->status == HR_OK) {
        get_told(in, a);
    }
    if (!wire_in_is_done(in)) {
        hr_answer_deinit(a);
        return false;
    }
    return true;
}

void hr_answer_deinit(hr_answer *answer)
{
    if (answer != NULL) {
        hr_step_plan_deinit(&answer->step_plan);
        hr_free(answer->text);
        *answer = (hr_answer){.kind = HR_QUESTION_TURNS};
    }
}
