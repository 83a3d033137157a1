// SPDX-License-Identifier: Apache-2.0
// What the session has said since the last look.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/card.h"

#include "app/tui/feed/autosave.h"
#include "app/tui/feed/feed.h"

enum { EVENT_BATCH = 256, EVENTS_PER_DRAIN = 64 * EVENT_BATCH };

static void follow_knob(feed *f, const hr_event *e)
{
    char text[sizeof e->u.note.text + 1] = "";
    memcpy(text, e->u.note.text, sizeof e->u.note.text);
    if (e->u.note.count < HR_KNOB_COUNT) {
        const hr_knob_id id = (hr_knob_id)e->u.note.count;
        const bool turns = knob_edit_differs(&f->knobs, &f->applied, id); // and what is turned is on its way
        hr_status status = hr_knobs_set(&f->applied, id, text, NULL);
        (void)status; // what is cut may be no value; what the session knows is
        if (f->recipe.ordered && !turns && knob_edit_differs(&f->knobs, &f->applied, id)) {
            f->knobs.value[id] = f->applied.value[id];
            feed_ask_whatif(f); // what was answered is of other knobs
        }
        f->cut[id] = strlen(text) + 1 >= sizeof e->u.note.text;
    }
    if (f->watched != NULL || f->follows_engine) { // it was turned elsewhere, or before a refusal
        f->knobs = f->applied;
        feed_ask_whatif(f);
    }
}

// What the session knows may be older than the event: then it does not begin so.
static void complete_knobs(feed *f)
{
    char preset[HR_KNOB_TEXT_MAX], begins[HR_KNOB_TEXT_MAX], whole[HR_KNOB_TEXT_MAX];
    hr_knobs told;
    bool any = false;
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        if (!f->cut[id] || !hr_session_about(f->session, preset, &told)) {
            continue;
        }
        hr_knob_format(&f->applied, (hr_knob_id)id, begins);
        hr_knob_format(&told, (hr_knob_id)id, whole);
        if (strncmp(begins, whole, strlen(begins)) == 0) {
            f->applied.value[id] = told.value[id];
            f->cut[id] = false;
            any = true;
        }
    }
    if (any && (f->watched != NULL || f->follows_engine)) {
        f->knobs = f->applied;
        feed_ask_whatif(f);
    }
}

// A worker's own save is no news to a user that leaves; one that a person asked for is. Older ones of dead sessions may go for it.
static void follow_save(feed *f, const hr_event *e)
{
    const char *text = e->u.note.text;
    const bool ours =
        f->autosave[0] != '\0' && strncmp(f->autosave, text, strnlen(text, sizeof e->u.note.text)) == 0;
    if (!ours) {
        run_state_log(&f->live, LOG_GOOD, "saved %.*s", (int)sizeof e->u.note.text, text);
        f->kept_step = e->u.note.count;
        if (f->awaits_save && f->message.kind != MESSAGE_ERROR) {
            feed_say(f, MESSAGE_NOTE, "step %" PRIu64 " is saved in %s", f->kept_step, text);
        }
        f->awaits_save = false;
        return;
    }
    f->saved_step = e->u.note.count;
    if (!f->pruned) {
        run_state_log(&f->live, LOG_GOOD, "autosaved at step %" PRIu64 ", and from now on", f->saved_step);
        f->pruned = true;
        autosave_prune(f->autosave);
    }
}

// A table with a gap, or of two answers, would be wrong: there is none then, and that is said.
static void lose_ranks(feed *f)
{
    f->rank_count = f->rank_next = 0;
    f->rank_version++;
    feed_say(f, MESSAGE_NOTE, "some ranks were lost on their way from the engine: Enter asks for them again");
}

static bool is_next_rank(const feed *f, const hr_event *e)
{
    const hr_event_rank *p = &e->u.rank;
    return p->point == f->rank_next &&
           (p->point == 0 ||
            (e->seq == f->rank_seq + 1 && p->layer == f->rank[0].layer && p->points == f->rank[0].points));
}

static void take_rank(feed *f, const hr_event *e)
{
    const hr_event_rank *p = &e->u.rank;
    const bool all = p->point + 1 == p->points;
    f->rank[p->point] = *p;
    f->rank_count = all ? p->points : 0;
    f->rank_next = all ? 0 : p->point + 1;
    f->rank_seq = e->seq;
    f->rank_step = e->step;
    f->rank_version++;
}

// Points come one behind the other, nothing between them; another model has none.
static void follow_ranks(feed *f, const hr_event *e)
{
    const bool is_rank =
        e->kind == HR_EVENT_RANK && e->u.rank.point < e->u.rank.points && e->u.rank.points <= HR_RANK_POINTS;
    if (is_rank && e->u.rank.point == 0) {
        f->rank_next = 0; // another answer
    }
    if (is_rank && is_next_rank(f, e)) {
        take_rank(f, e);
    } else if (is_rank || f->rank_next > 0) {
        lose_ranks(f);
    }
    if (e->kind == HR_EVENT_BUILD) {
        f->rank_count = f->rank_next = 0;
        f->rank_version++;
    }
}

bool feed_drain_events(feed *f, bool *more)
{
    hr_event events[EVENT_BATCH];
    uint64_t lost;
    size_t taken = 0, count;
    heap_record_knobs(&f->heap, &f->applied);
    do {
        count = hr_session_events(f->session, events, EVENT_BATCH, &lost);
        if (lost > 0) {
            run_state_lost(&f->live, lost);
            heap_record_lost(&f->heap, lost);
        }
        for (size_t i = 0; i < count; i++) {
            run_state_feed(&f->live, &events[i]);
            heap_record_feed(&f->heap, &events[i]);
            if (events[i].kind == HR_EVENT_KNOB) {
                follow_knob(f, &events[i]);
                complete_knobs(f); // a step of these knobs may be the next event
                f->stepped_is_old = true;
                heap_record_knobs(&f->heap, &f->applied);
            }
            follow_ranks(f, &events[i]);
            if (events[i].kind == HR_EVENT_SAVED) {
                follow_save(f, &events[i]);
            }
            if (events[i].kind == HR_EVENT_STEP) {
                feed_note_learned(f);
            }
            if (events[i].kind == HR_EVENT_STEP && f->stepped_is_old) {
                f->stepped = f->applied;
                f->stepped_is_old = false;
            }
            run_log_event(&f->runs, &f->live, &f->applied, hr_preset_name(f->preset), &events[i]);
        }
        taken += count;
    } while (count == EVENT_BATCH && taken < EVENTS_PER_DRAIN);
    *more = count == EVENT_BATCH;
    return taken > 0;
}

// What was lost of the heap's history comes back as the heap itself.
static void recover_heap(feed *f)
{
    hr_session_heap heap;
    if (f->heap.lost_events > f->heap_asked) {
        f->heap_asked = f->heap.lost_events;
        hr_session_ask_heap(f->session);
    }
    if (hr_session_heap_now(f->session, &f->heap_version, &heap)) {
        // Where it does not fit, the heap heals with the steps that come.
        (void)heap_record_restore(&f->heap, &heap);
        hr_session_heap_deinit(&heap);
    }
}

static void show_report(feed *f)
{
    if (f->has_newest_report && !f->is_frozen) {
        hr_report_deinit(&f->report);
        f->report = f->newest_report;
        f->newest_report = (hr_report){0};
        f->has_report = true;
        f->has_newest_report = false;
        f->report_version++;
    }
}

// The runs hear of every report; the screen sees the newest once its view is not frozen.
static bool take_report(feed *f)
{
    hr_report report;
    if (!hr_session_report(f->session, &f->report_taken, &report)) {
        return false;
    }
    run_log_report(&f->runs, &report);
    bool built = report.memory.limit_bytes > 0; // the first step may not have fitted
    uint64_t limit_bytes = built ? report.memory.limit_bytes : report.oom.limit_bytes;
    f->live.limit_bytes = hr_limit_is_none(limit_bytes) ? 0
                          : limit_bytes > 0             ? limit_bytes
                                                        : f->live.limit_bytes; // 0: no device was opened
    hr_report_deinit(&f->newest_report);
    f->newest_report = report;
    f->has_newest_report = true;
    show_report(f);
    return true;
}

// A save that could not be written, while a turn is on its way, says nothing of the turn.
static bool is_of_turn(const feed *f, const hr_err *err)
{
    const bool saves_elsewhere = strcmp(hr_knob_text(&f->knobs, HR_KNOB_TRAIN_SAVE),
                                        hr_knob_text(&f->applied, HR_KNOB_TRAIN_SAVE)) != 0;
    return f->watched == NULL && err->status != HR_OOM && (err->status != HR_WRITE || saves_elsewhere) &&
           !knob_edit_same(&f->knobs, &f->applied);
}

static bool take_error(feed *f)
{
    hr_err err;
    if (!hr_session_error(f->session, &f->error_version, &err)) {
        return false;
    }
    if (is_of_turn(f, &err)) {
        f->knobs = f->applied;
        f->follows_engine = true;
        knob_edit_log_settle(&f->turned, &f->knobs);
        feed_ask_whatif(f);
    }
    if (err.status == HR_OOM) { // that one is Doctor's
        run_state_log_once(&f->live, LOG_BAD, err.sentence);
    } else {
        feed_say_error(f, &err);
    }
    return true;
}

bool feed_drain_rest(feed *f)
{
    complete_knobs(f);
    recover_heap(f);
    bool changed = take_report(f);
    changed = feed_take_recipe(f) || changed;
    changed = take_error(f) || changed;
    return feed_check_life(f) || changed;
}

void feed_freeze(feed *f, bool frozen)
{
    f->is_frozen = frozen;
    free(f->frozen_runs);
    f->frozen_runs = NULL;
    if (frozen) {
        f->frozen = f->live;
        f->frozen_runs = malloc(sizeof *f->frozen_runs);
        if (f->frozen_runs != NULL) {
            *f->frozen_runs = f->runs;
        }
    } else {
        show_report(f);
    }
}
