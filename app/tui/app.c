// SPDX-License-Identifier: Apache-2.0
#include "app/tui/app.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/card.h"
#include "headroom/units.h"

enum { EVENT_BATCH = 256, EVENTS_PER_DRAIN = 64 * EVENT_BATCH };

// ---- life -----------------------------------------------------------------------------------------------------

app *app_create(const hr_preset *preset, const hr_knobs *knobs)
{
    app *a = calloc(1, sizeof *a);
    if (a == NULL) {
        return NULL;
    }
    a->preset = preset;
    a->knobs = a->applied = *knobs;
    a->saved_step = a->kept_step = HR_NONE;
    a->zoom = 2;
    a->focus = PANE_KNOBS;
    a->glyphs = glyphs_make(GLYPHS_ASCII);
    for (int pane = 0; pane < PANE_FOCUS_COUNT; pane++) {
        table_view_init(&a->table[pane]);
    }
    step_view_init(&a->step);
    run_state_init(&a->live);
    return a;
}

static void free_presets(preset_list *list)
{
    for (int i = 0; i < PRESET_FOLDERS; i++) {
        hr_preset_list_free(list->entries[i]);
        list->entries[i] = NULL;
        list->count[i] = 0;
    }
}

void app_destroy(app *a)
{
    if (a == NULL) {
        return;
    }
    (void)app_stop_engine(a, NULL);
    app_stop_planner(a);
    app_forget_judge(a);
    free_presets(&a->presets);
    heap_record_deinit(&a->heap);
    heap_scene_deinit(&a->heap_scene);
    learn_close(&a->situations);
    free(a->frozen_runs);
    for (int pane = 0; pane < PANE_FOCUS_COUNT; pane++) {
        table_view_deinit(&a->table[pane]);
    }
    app_forget_step_plans(a);
    hr_preset_close(a->owned);
    hr_preset_close(a->opened);
    free(a->remembered);
    free(a);
}

// ---- what engine and planner say ------------------------------------------------------------------------------

static void follow_knob(app *a, const hr_event *e)
{
    char text[sizeof e->u.note.text + 1] = "";
    memcpy(text, e->u.note.text, sizeof e->u.note.text);
    if (e->u.note.count < HR_KNOB_COUNT) {
        const hr_knob_id id = (hr_knob_id)e->u.note.count;
        hr_status status = hr_knobs_set(&a->applied, id, text, NULL);
        (void)status; // what is cut may be no value; what the session knows is
        a->cut[id] = strlen(text) + 1 >= sizeof e->u.note.text;
    }
    if (a->watched != NULL ||
        a->follows_engine) { // whoever turned it sits elsewhere, or turned before a refusal
        a->knobs = a->applied;
        app_ask_whatif(a);
    }
}

// What the session knows may be older than the event: then it does not begin so.
static void complete_knobs(app *a)
{
    char preset[HR_KNOB_TEXT_MAX], begins[HR_KNOB_TEXT_MAX], whole[HR_KNOB_TEXT_MAX];
    hr_knobs told;
    bool any = false;
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        if (!a->cut[id] || !hr_session_about(a->session, preset, &told)) {
            continue;
        }
        hr_knob_format(&a->applied, (hr_knob_id)id, begins);
        hr_knob_format(&told, (hr_knob_id)id, whole);
        if (strncmp(begins, whole, strlen(begins)) == 0) {
            a->applied.value[id] = told.value[id];
            a->cut[id] = false;
            any = true;
        }
    }
    if (any && (a->watched != NULL || a->follows_engine)) {
        a->knobs = a->applied;
        app_ask_whatif(a);
    }
}

// Doctor comes by itself with an out-of-memory, and goes when the training does; in a frozen view nothing comes or goes.
static void follow_state(app *a)
{
    bool oom = a->live.state == HR_ENGINE_OOM;
    if (a->is_frozen) {
        if (oom && !a->has_seen_oom && !a->oom_waits) {
            app_say(a, MESSAGE_NOTE, "the training ran out of memory; Space shows why");
        }
        a->oom_waits = oom && !a->has_seen_oom;
        return;
    }
    if (oom && !a->has_seen_oom) {
        bool comes_itself = a->screen != SCREEN_DOCTOR;
        a->before_doctor = a->screen;
        app_show_screen(a, SCREEN_DOCTOR);
        a->doctor_came_itself = comes_itself;
    } else if (run_state_is_training(&a->live) && a->doctor_came_itself) {
        app_show_screen(a, a->before_doctor);
    }
    a->has_seen_oom = oom;
}

// A worker's own save is no news to who leaves; one that a person asked for is. Older ones of dead sessions may go for it.
static void follow_save(app *a, const hr_event *e)
{
    const char *text = e->u.note.text;
    const bool ours =
        a->autosave[0] != '\0' && strncmp(a->autosave, text, strnlen(text, sizeof e->u.note.text)) == 0;
    if (!ours) {
        a->kept_step = e->u.note.count;
    } else if (!a->pruned) {
        a->pruned = true;
        autosave_prune(a->autosave);
    }
}

static bool drain_events(app *a, bool *more)
{
    hr_event events[EVENT_BATCH];
    uint64_t lost;
    size_t taken = 0, count;
    heap_record_knobs(&a->heap, &a->applied);
    do {
        count = hr_session_events(a->session, events, EVENT_BATCH, &lost);
        if (lost > 0) {
            run_state_lost(&a->live, lost);
            heap_record_lost(&a->heap, lost);
        }
        for (size_t i = 0; i < count; i++) {
            run_state_feed(&a->live, &events[i]);
            heap_record_feed(&a->heap, &events[i]);
            if (events[i].kind == HR_EVENT_KNOB) {
                follow_knob(a, &events[i]);
                complete_knobs(a); // a step of these knobs may be the next event
                a->stepped_is_old = true;
                heap_record_knobs(&a->heap, &a->applied);
            }
            if (events[i].kind == HR_EVENT_SAVED) {
                follow_save(a, &events[i]);
            }
            if (events[i].kind == HR_EVENT_STEP && a->stepped_is_old) {
                a->stepped = a->applied;
                a->stepped_is_old = false;
            }
            run_log_event(&a->runs, &a->live, &a->applied, hr_preset_name(a->preset), &events[i]);
        }
        taken += count;
    } while (count == EVENT_BATCH && taken < EVENTS_PER_DRAIN);
    *more = count == EVENT_BATCH;
    follow_state(a);
    return taken > 0;
}

// What was lost of the heap's history comes back as the heap itself.
static void recover_heap(app *a)
{
    hr_session_heap heap;
    if (a->heap.lost_events > a->heap_asked) {
        a->heap_asked = a->heap.lost_events;
        hr_session_ask_heap(a->session);
    }
    if (hr_session_heap_now(a->session, &a->heap_version, &heap)) {
        // Where it does not fit, the heap heals with the steps that come.
        (void)heap_record_restore(&a->heap, &heap);
        hr_session_heap_deinit(&heap);
    }
}

static void show_report(app *a)
{
    if (a->has_newest_report && !a->is_frozen) {
        hr_report_deinit(&a->report);
        a->report = a->newest_report;
        a->newest_report = (hr_report){0};
        a->has_report = true;
        a->has_newest_report = false;
        a->report_version++;
    }
}

// The runs hear of every report; the screen sees the newest once its view is not frozen.
static bool take_report(app *a)
{
    hr_report report;
    if (!hr_session_report(a->session, &a->report_taken, &report)) {
        return false;
    }
    run_log_report(&a->runs, &report);
    bool built = report.memory.limit_bytes > 0; // the first step may not have fitted
    uint64_t limit_bytes = built ? report.memory.limit_bytes : report.oom.limit_bytes;
    a->live.limit_bytes = hr_limit_is_none(limit_bytes) ? 0
                          : limit_bytes > 0             ? limit_bytes
                                                        : a->live.limit_bytes; // 0: no device was opened
    hr_report_deinit(&a->newest_report);
    a->newest_report = report;
    a->has_newest_report = true;
    show_report(a);
    return true;
}

void app_freeze(app *a, bool frozen)
{
    a->is_frozen = frozen;
    free(a->frozen_runs);
    a->frozen_runs = NULL;
    if (frozen) {
        a->frozen = a->live;
        a->frozen_runs = malloc(sizeof *a->frozen_runs);
        if (a->frozen_runs != NULL) {
            *a->frozen_runs = a->runs;
        }
    } else {
        a->oom_waits = false;
        show_report(a);
        follow_state(a);
    }
}

static bool take_error(app *a)
{
    hr_err err;
    if (!hr_session_error(a->session, &a->error_version, &err)) {
        return false;
    }
    if (a->watched == NULL && (err.status == HR_KNOB || err.status == HR_CONSTRAINT)) { // a turn was refused
        a->knobs = a->applied;
        a->follows_engine = true;
        knob_edit_log_settle(&a->turned, &a->knobs);
        app_ask_whatif(a);
    }
    if (err.status == HR_OOM) { // that one is Doctor's
        run_state_log_once(&a->live, LOG_BAD, err.sentence);
    } else {
        app_say_error(a, &err);
    }
    return true;
}

bool app_drain(app *a, bool *more)
{
    *more = false;
    bool changed = false;
    if (a->session != NULL) {
        changed = drain_events(a, more);
        complete_knobs(a);
        recover_heap(a);
        changed = take_report(a) || changed;
        changed = take_error(a) || changed;
        changed = app_check_life(a) || changed;
    }
    return app_take_plans(a, more) || changed;
}

// ---- pending work ---------------------------------------------------------------------------------------------

static bool open_next(app *a)
{
    char *problems = NULL;
    hr_err err;
    hr_status status = hr_preset_open(a->pending_preset, false, &a->opened, &problems, &err);
    hr_preset_problems_free(problems);
    if (status != HR_OK) {
        a->opened = NULL;
        app_say_error(a, &err);
    }
    return status == HR_OK;
}

static void drop_next(app *a)
{
    app_forget_judge(a);
    hr_preset_close(a->opened);
    a->opened = NULL;
    a->next_stands = false;
    a->pending = PENDING_NONE;
}

// The training ends for what stands, and for nothing else.
static bool next_stands(app *a)
{
    if (a->pending == PENDING_QUIT || a->next_stands) {
        return true;
    }
    const bool again = a->pending == PENDING_RESTART;
    judgement v = JUDGED_REFUSED;
    if (again || a->opened != NULL || open_next(a)) {
        v = app_judge(a, again ? a->preset : a->opened, again ? &a->knobs : hr_preset_knobs(a->opened));
    }
    a->next_stands = v == JUDGED_STANDS;
    if (v == JUDGED_REFUSED) {
        drop_next(a);
    }
    return a->next_stands;
}

bool app_cancel_next(app *a)
{
    const bool waits = a->judge != NULL;
    if (waits) {
        drop_next(a);
    }
    return waits;
}

static void switch_preset(app *a)
{
    hr_err unsaved = {0};
    hr_status status = app_stop_engine(a, &unsaved);
    run_log_close(&a->runs);
    a->runs.pinned = 0;
    fit_forget(&a->fit);
    hr_preset_close(a->owned);
    a->preset = a->owned = a->opened;
    a->opened = NULL;
    app_forget_plans(a);
    a->knobs = a->applied = *hr_preset_knobs(a->preset);
    run_state_init(&a->live);
    heap_record_clear(&a->heap);
    heap_scene_clear(&a->heap_scene);
    memset(&a->turned, 0, sizeof a->turned);
    app_forget_step_plans(a);
    a->baseline.pinned = a->has_seen_oom = false;
    app_freeze(a, false);
    a->message.kind = MESSAGE_NONE;
    app_show_screen(a, SCREEN_BENCH);
    app_start_engine(a);
    app_tell_about(a);
    if (a->about.text[0] != '\0') {
        app_say(a, MESSAGE_NOTE, "%s", a->about.text);
    }
    if (status != HR_OK) {
        a->end_status = HR_OK;
        app_say(a, MESSAGE_ERROR, "the training that ended was not saved: %s", unsaved.sentence);
    }
}

void app_work(app *a)
{
    const pending work = a->pending;
    if (work == PENDING_NONE || !next_stands(a) || (work != PENDING_RESTART && !app_let_end(a))) {
        return;
    }
    a->pending = PENDING_NONE;
    a->next_stands = false;
    if (work == PENDING_PRESET) {
        switch_preset(a);
    } else if (work == PENDING_RESTART) {
        app_restart_engine(a);
    } else {
        (void)app_stop_engine(a, NULL);
        a->quits = true;
    }
}

// ---- what the screen asks -------------------------------------------------------------------------------------

void app_say(app *a, message_kind kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(a->message.text, sizeof a->message.text, format, args);
    va_end(args);
    a->message.kind = kind;
}

// What is typed in a shell, as it is typed here, where it begins at `hint`. Moves it behind that, and *key is whether a
// knob's key follows.
static const char *said_here(const char **hint, bool *key)
{
    static const struct {
        const char *shell, *here;
    } rows[] = {{"-s ", ":set "},
                {"headroom presets", ":preset"},
                {"headroom cards", "Tab after :set device.card"},
                {"headroom knobs", "Tab after :set"},
                {"headroom plan ", ":preset "}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t length = strlen(rows[i].shell);
        bool plan = i + 1 == sizeof rows / sizeof *rows;
        const bool lists_cards =
            strcmp(rows[i].shell, "headroom cards") == 0; // one card is shown by the shell
        if (strncmp(*hint, rows[i].shell, length) == 0 && !(lists_cards && (*hint)[length] == ' ') &&
            !(plan && strchr(*hint + length, ' ') != NULL)) { // of a report; a preset alone can be opened
            *hint += length;
            *key = i == 0;
            return rows[i].here;
        }
    }
    return NULL;
}

// "-s KEY=VALUE" is ":set KEY VALUE"; without a value the '=' says so.
static void say_hint(const char *hint, char *text, size_t size)
{
    size_t length = 0;
    bool key = false; // its first '=' ends it
    while (*hint != '\0' && length + 1 < size) {
        const char *here = said_here(&hint, &key);
        if (here != NULL) {
            int added = snprintf(text + length, size - length, "%s", here);
            length += added > 0 ? (size_t)added : 0;
            continue;
        }
        bool ends = key && *hint == '=';
        key = key && !ends && *hint != ' ';
        text[length++] = ends && hint[1] != ' ' && hint[1] != '\0' ? ' ' : *hint;
        hint++;
    }
    text[length < size ? length : size - 1] = '\0';
}

void app_say_error(app *a, const hr_err *err)
{
    char hint[HR_ERR_TEXT_MAX];
    say_hint(err->hint[0] != '\0' ? err->hint : hr_status_try(err->status), hint, sizeof hint);
    app_say(a, MESSAGE_ERROR, "%s failed: %s\ntry: %s", hr_status_what(err->status), err->sentence, hint);
    run_state_log_once(&a->live, LOG_BAD, err->sentence);
}

const run_log *app_runs(const app *a)
{
    return a->is_frozen && a->frozen_runs != NULL ? a->frozen_runs : &a->runs;
}

const run_state *app_run_state(const app *a)
{
    return a->is_frozen ? &a->frozen : &a->live;
}

hr_knob_id app_knob(const app *a)
{
    size_t count;
    const hr_knob_id *panel = knob_edit_panel(&count);
    return panel[a->knob < count ? a->knob : 0];
}

layout_wish app_wish(const app *a)
{
    return (layout_wish){screen_row_of(a->screen), a->expanded, a->focus, KNOB_EDIT_FRONT};
}

layout app_layout(const app *a)
{
    layout_wish wish = app_wish(a);
    return layout_make(a->rows, a->columns, &wish);
}

byte_unit app_unit(const app *a)
{
    const run_state *m = app_run_state(a);
    const uint64_t planned = a->answers.present.known ? a->answers.present.plan.peak_in_use_bytes : 0;
    return byte_unit_for(m->peak_bytes > 0    ? m->peak_bytes
                         : planned > 0        ? planned
                         : m->limit_bytes > 0 ? m->limit_bytes
                                              : HR_MIB);
}

static const struct {
    const char *label, *term;
} counters[] = {
#define X(id, label, term) [COUNTER_##id] = {label, term},
    COUNTER_MAP(X)
#undef X
};

const char *app_counter_label(counter_id id)
{
    return counters[id].label;
}

const char *app_counter_term(counter_id id)
{
    return counters[id].term;
}

// What the pipeline says it holds now, and what the step program keeps offloaded.
static double host_bytes(const app *a)
{
    const run_state *m = app_run_state(a);
    double sum = 0;
    bool known = m->stage_count > 0;
    for (uint32_t i = 0; i < m->stage_count; i++) {
        sum += (double)m->stage[i].host_bytes;
    }
    for (size_t i = 0; a->has_report && i < a->report.host.stage_count; i++) {
        bool offloaded = strcmp(a->report.host.stages[i].name, "offload") == 0;
        sum += offloaded ? (double)a->report.host.stages[i].peak_bytes : 0;
        known = known || offloaded;
    }
    return known ? sum : UNKNOWN;
}

static double known(uint64_t bytes)
{
    return bytes == HR_NONE ? UNKNOWN : (double)bytes;
}

double app_counter(const app *a, counter_id id)
{
    const run_state *m = app_run_state(a);
    const hr_report_memory *report = a->has_report ? &a->report.memory : NULL;
    if (!m->any) {
        return UNKNOWN;
    }
    switch (id) {
    case COUNTER_PEAK:
        return (double)m->epoch_peak_bytes;
    case COUNTER_EVER:
        return (double)m->peak_bytes;
    case COUNTER_WINDOW:
        return a->zoom == 0 ? (double)m->step_peak_bytes
                            : (double)history_peak_bytes(&m->history, a->zoom - 1, app_graph_columns(a));
    case COUNTER_IN_USE:
        return (double)m->heap.in_use_bytes;
    case COUNTER_POOL:
        return (double)m->heap.pool_bytes;
    case COUNTER_REQUESTED:
        return m->attributed ? (double)m->heap.requested_bytes : UNKNOWN;
    case COUNTER_WASTE:
        return m->attributed ? (double)m->heap.in_use_bytes - (double)m->heap.requested_bytes : UNKNOWN;
    case COUNTER_LARGEST_FREE:
        return report == NULL ? UNKNOWN : known(report->largest_free_bytes);
    case COUNTER_FRAGMENTATION:
        return report == NULL ? UNKNOWN : report->fragmentation;
    case COUNTER_STATIC:
        return report == NULL ? UNKNOWN : known(report->static_bytes);
    case COUNTER_SAVED:
        return report == NULL ? UNKNOWN : known(report->saved_for_backward_bytes);
    case COUNTER_HOST:
        return host_bytes(a);
    case COUNTER_COUNT:
        break;
    }
    return UNKNOWN;
}

const hr_step_plan *app_step_plan(const app *a)
{
    return a->has_step_plan ? &a->step_plan : NULL;
}

const whatif_cell *app_whatif(const app *a, hr_knob_id id, int side)
{
    const whatif_cell *cell = &a->answers.cell[id][side];
    return a->answers.question == a->question && cell->known ? cell : NULL;
}

const hr_preset_entry *app_preset_entry(const app *a, size_t index)
{
    for (int folder = 0; folder < PRESET_FOLDERS; folder++) {
        for (size_t i = 0; i < a->presets.count[folder]; i++) {
            const hr_preset_entry *entry = &a->presets.entries[folder][i];
            bool matches = strcasestr(entry->name, a->presets.filter) != NULL ||
                           strcasestr(entry->title, a->presets.filter) != NULL;
            if (matches && index-- == 0) {
                return entry;
            }
        }
    }
    return NULL;
}
