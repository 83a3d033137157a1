// SPDX-License-Identifier: Apache-2.0
#include "app/tui/feed/feed.h"

#include "headroom/replay.h"
#include "headroom/units.h"

#include "app/tui/feed/knob_edit.h"

const run_log *feed_runs(const feed *f)
{
    return f->is_frozen && f->frozen_runs != NULL ? f->frozen_runs : &f->runs;
}

const run_state *feed_run_state(const feed *f)
{
    return f->is_frozen ? &f->frozen : &f->live;
}

hr_knob_id feed_knob(const feed *f)
{
    size_t count;
    const hr_knob_id *panel = knob_edit_panel(&count);
    return panel[f->knob < count ? f->knob : 0];
}

byte_unit feed_unit(const feed *f)
{
    const run_state *m = feed_run_state(f);
    const uint64_t planned = f->answers.present.known ? f->answers.present.plan.peak_in_use_bytes : 0;
    return byte_unit_for(m->peak_bytes > 0    ? m->peak_bytes
                         : planned > 0        ? planned
                         : m->limit_bytes > 0 ? m->limit_bytes
                                              : HR_MIB);
}

const hr_step_plan *feed_step_plan(const feed *f)
{
    return f->has_step_plan ? &f->step_plan : NULL;
}

const whatif_cell *feed_whatif(const feed *f, hr_knob_id id, int side)
{
    const whatif_cell *cell = &f->answers.cell[id][side];
    return f->answers.question == f->question && cell->known ? cell : NULL;
}

const char *feed_why_not_command(const feed *f)
{
    return f->watched == NULL ? NULL : "this training is another process's: it can be watched, not turned";
}

const char *feed_why_not_turn(const feed *f, hr_knob_id id)
{
    if (f->lesson != NULL && !hr_lesson_unlocks(f->lesson, id)) {
        return "the lesson holds it as it is: s opens a sandbox, where all turn; 6 says which turn here";
    }
    return !hr_preset_is_trace(f->preset) || hr_replay_knob_applies(id)
               ? NULL
               : "a recorded step's requests are what they were: its card and its allocator can be turned";
}

bool feed_engine_lives(const feed *f)
{
    return f->session != NULL && f->life != HR_SESSION_ENDED;
}
