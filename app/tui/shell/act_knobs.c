// SPDX-License-Identifier: Apache-2.0
// Turning knobs, and turning them back.
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/shell/act.h"

// `followed`: another knob of the same turn comes at once, and nothing is built between the two.
static bool send_knob(feed *f, const hr_knobs *to, hr_knob_id id, bool followed)
{
    hr_command command = {
        .version = HR_EVENT_VERSION, .kind = HR_COMMAND_KNOB, .knob = (uint32_t)id, .count = followed};
    hr_knob_format(to, id, command.text);
    return feed_send(f, &command);
}

// Gives a->knobs the value and hands it to the engine; one that has ended is started again with it. False: it was not
// taken, and nothing has changed.
static bool hand_over(feed *f, hr_knob_id id, const hr_knob_value *value, bool followed)
{
    const hr_knob_value before = f->knobs.value[id];
    f->knobs.value[id] = *value;
    f->follows_engine = false;
    f->judges_turn = true;
    if (!feed_engine_lives(f)) {
        feed_restart_engine(f);
    } else if (!send_knob(f, &f->knobs, id, followed)) {
        f->knobs.value[id] = before;
        return false;
    } else {
        feed_ask_whatif(f);
    }
    return true;
}

// False, and said, when the training is only watched.
static bool may_command(feed *f)
{
    const char *why_not = feed_why_not_command(f);
    if (why_not != NULL) {
        feed_say(f, MESSAGE_NOTE, "%s", why_not);
    }
    return why_not == NULL;
}

static bool may_turn(feed *f, hr_knob_id id)
{
    const char *why_not = feed_why_not_turn(f, id);
    if (why_not != NULL) {
        feed_say(f, MESSAGE_NOTE, "%s: %s", hr_knob_rows(NULL)[id].key, why_not);
    }
    return why_not == NULL;
}

static bool stays(feed *f, hr_knob_id id)
{
    char same[HR_KNOB_TEXT_MAX];
    hr_knob_format(&f->knobs, id, same);
    feed_say(f, MESSAGE_NOTE, "%s is %s already", hr_knob_rows(NULL)[id].key,
             same[0] == '\0' ? "unset" : same);
    return true;
}

bool app_turn(feed *f, hr_knob_id id, const char *text)
{
    hr_err err;
    char now[HR_KNOB_TEXT_MAX];
    if (!may_command(f) || !may_turn(f, id)) {
        return false;
    }
    if (strcmp(hr_knob_format(&f->knobs, id, now), text) == 0) {
        return stays(f, id);
    }
    const hr_knob_value before = f->knobs.value[id];
    hr_knobs to = f->knobs;
    bool device = id == HR_KNOB_DEVICE_CARD || id == HR_KNOB_DEVICE_VRAM;
    if (knob_edit_set(&to, id, text, &err) != HR_OK ||
        (device && knob_edit_check_device(&to, &err) != HR_OK)) {
        feed_say_error(f, &err);
        return false;
    }
    if (!knob_edit_differs(&f->knobs, &to, id)) {
        return stays(f, id);
    }
    if (!hand_over(f, id, &to.value[id], false)) {
        return false;
    }
    knob_edit_log_add(&f->turned, id, &before, &to.value[id]);
    return true;
}

void act_turn_to(feed *f, hr_knob_id id, const char *text)
{
    char now[HR_KNOB_TEXT_MAX];
    f->message.kind = MESSAGE_NONE;
    if (app_turn(f, id, text) && f->message.kind == MESSAGE_NONE) {
        hr_knob_format(&f->knobs, id, now);
        feed_say(f, MESSAGE_NOTE, "%s=%s from the next step on; z turns it back", hr_knob_rows(NULL)[id].key,
                 now[0] == '\0' ? "\"\"" : now);
    }
}

bool app_turn_all(feed *f, const hr_knobs *to)
{
    hr_knob_id order[HR_KNOB_COUNT];
    size_t count, taken = 0;
    hr_err err;
    if (!may_command(f)) {
        return false;
    }
    if (knob_edit_order(&f->knobs, to, order, &count, &err) != HR_OK) {
        feed_say_error(f, &err);
        return false;
    }
    for (size_t k = 0; k < count; k++) {
        if (!may_turn(f, order[k])) {
            return false;
        }
    }
    const bool lives = feed_engine_lives(f);
    for (; taken < count; taken++) {
        const hr_knob_id id = order[taken];
        if (lives && !send_knob(f, to, id, taken + 1 < count)) {
            break;
        }
        const hr_knob_value before = f->knobs.value[id];
        f->knobs.value[id] = to->value[id];
        f->follows_engine = false;
        f->judges_turn = true;
        knob_edit_log_add(&f->turned, id, &before, &f->knobs.value[id]);
    }
    knob_edit_log_join(&f->turned, taken);
    if (taken > 0 && !lives) {
        feed_restart_engine(f);
    } else if (taken > 0) {
        feed_ask_whatif(f);
    }
    return taken == count;
}

bool app_turn_pairs(feed *f, const char *pairs)
{
    hr_knobs to = f->knobs;
    hr_err err;
    if (hr_knobs_set_pairs(&to, pairs, &err) != HR_OK) {
        feed_say_error(f, &err);
        return false;
    }
    return app_turn_all(f, &to);
}

// Says what the plan knew of the value that was just turned to.
static void say_turned(feed *f, hr_knob_id id, const whatif_cell *plan)
{
    size_t count;
    char text[HR_KNOB_TEXT_MAX], bytes[HR_BYTES_TEXT_MAX];
    const char *key = hr_knob_rows(&count)[id].key;
    hr_knob_format(&f->knobs, id, text);
    if (plan == NULL || plan->refused) {
        feed_say(f, MESSAGE_NOTE, "%s=%s from the next step on", key, text);
    } else if (plan->plan.fits) {
        hr_bytes_human(plan->plan.peak_in_use_bytes, bytes);
        feed_say(f, MESSAGE_NOTE, "%s=%s from the next step on: planned peak %s", key, text, bytes);
    } else {
        const bool host = hr_whatif_lacks_host(&plan->plan);
        hr_bytes_human(host ? plan->plan.host_bytes : plan->plan.peak_in_use_bytes, bytes);
        feed_say(f, MESSAGE_NOTE, "%s=%s does not fit: it is planned to need %s%s; z turns it back", key,
                 text, bytes, host ? " of the host" : "");
    }
}

// A key that turned into a constraint may go on together with the knob that stands in its way. False: it is no such turn.
static bool offer_both(app *a, hr_knob_id id, int direction, const char *text)
{
    const hr_constraint *broken;
    char reason[HR_ERR_TEXT_MAX];
    hr_knobs refused = a->feed.knobs;
    if (hr_knobs_set(&refused, id, text, NULL) != HR_OK || feed_why_not_command(&a->feed) != NULL ||
        !knob_edit_both(&refused, id, &a->refused.both, &broken)) {
        return false;
    }
    hr_constraint_say(broken, &refused, reason, sizeof reason);
    a->refused.any = true;
    a->refused.knob = id;
    a->refused.direction = direction;
    feed_say(&a->feed, MESSAGE_NOTE, "%s=%s needs %s, and %s again turns both: %s",
             hr_knob_rows(NULL)[id].key, text, broken->hint + 3, direction == KNOB_EDIT_LESS ? "<" : ">",
             reason);
    return true;
}

static void turn_both(app *a)
{
    if (app_turn_all(&a->feed, &a->refused.both)) {
        feed_say(&a->feed, MESSAGE_NOTE, "both from the next step on; z turns them back");
    }
    a->refused.any = false;
}

// Behind what was said of the value that a key went to.
static void say_passed(feed *f, const char *passed)
{
    const size_t length = strlen(f->message.text);
    if (passed[0] != '\0') {
        (void)snprintf(f->message.text + length, sizeof f->message.text - length,
                       "; passed over, because it is refused here: %s", passed);
    }
}

static bool is_refused(const hr_knobs *knobs, hr_knob_id id, const char *text)
{
    hr_knobs to = *knobs;
    return knob_edit_set(&to, id, text, NULL) != HR_OK;
}

void act_turn(app *a, int direction)
{
    char text[HR_KNOB_TEXT_MAX], passed[HR_KNOB_TEXT_MAX];
    size_t count;
    hr_knob_id id = feed_knob(&a->feed);
    if (a->refused.any && a->refused.knob == id && a->refused.direction == direction) {
        turn_both(a);
        return;
    }
    a->refused.any = false;
    const whatif_cell *cell =
        feed_whatif(&a->feed, id, direction == KNOB_EDIT_LESS ? WHATIF_LESS : WHATIF_MORE);
    whatif_cell plan = cell == NULL ? (whatif_cell){0} : *cell;
    if (!knob_edit_reach(&a->feed.knobs, id, direction, a->feed.live.limit_bytes, text, passed)) {
        feed_say(&a->feed, MESSAGE_NOTE, "%s: no value %s this one", hr_knob_rows(&count)[id].key,
                 direction == KNOB_EDIT_LESS ? "below" : "above");
    } else if (offer_both(a, id, direction, text)) {
        say_passed(&a->feed, passed); // the rest has been said
    } else if (app_turn(&a->feed, id, text)) {
        say_turned(&a->feed, id, plan.known ? &plan : NULL);
        say_passed(&a->feed, passed);
    } else if (is_refused(&a->feed.knobs, id, text)) {
        a->feed.message.kind = MESSAGE_NOTE; // nothing was lost: the next key has read it
    }
}

// Of all the knobs that were turned together.
static bool may_step_back(feed *f, bool forward)
{
    const knob_edit_log *log = &f->turned;
    bool goes_on = forward ? log->done < log->count : log->done > 0;
    for (size_t at = forward ? log->done : log->done - 1; goes_on; at = forward ? at + 1 : at - 1) {
        if (!may_turn(f, log->step[at].id)) {
            return false;
        }
        goes_on = forward ? at + 1 < log->count && log->step[at + 1].joined : log->step[at].joined && at > 0;
    }
    return true;
}

void act_step_back(app *a, int forward)
{
    const knob_edit_step *step;
    size_t count, turned = 0;
    char text[HR_KNOB_TEXT_MAX];
    bool goes_on = may_step_back(&a->feed, forward);
    hr_knob_id id = HR_KNOB_COUNT;
    while (goes_on && (step = forward ? knob_edit_log_redo(&a->feed.turned)
                                      : knob_edit_log_undo(&a->feed.turned)) != NULL) {
        knob_edit_log *log = &a->feed.turned;
        goes_on = forward ? log->done < log->count && log->step[log->done].joined : step->joined;
        if (!hand_over(&a->feed, step->id, forward ? &step->after : &step->before, goes_on)) {
            (void)(forward ? knob_edit_log_undo(log) : knob_edit_log_redo(log));
            return; // it has been said
        }
        id = step->id;
        turned++;
    }
    if (turned == 1) {
        feed_say(&a->feed, MESSAGE_NOTE, "%s: %s=%s", forward ? "redone" : "undone",
                 hr_knob_rows(&count)[id].key, hr_knob_format(&a->feed.knobs, id, text));
    } else if (turned > 1) {
        feed_say(&a->feed, MESSAGE_NOTE, "%s: %zu knobs that were turned together",
                 forward ? "redone" : "undone", turned);
    }
}

void act_edit(app *a)
{
    char text[HR_KNOB_TEXT_MAX];
    hr_knob_id id = feed_knob(&a->feed);
    prompt_begin_selected(&a->prompt, hr_knob_format(&a->feed.knobs, id, text));
    a->overlay = OVERLAY_EDIT;
    complete_look(a);
}

void act_select_knob(app *a, int rows)
{
    size_t knobs, old = a->feed.knob;
    knob_edit_panel(&knobs);
    int64_t to = (int64_t)a->feed.knob + rows;
    a->feed.knob = to < 0 ? 0 : (size_t)to < knobs ? (size_t)to : knobs - 1;
    if (a->feed.knob != old) {
        feed_ask_knob(&a->feed);
    }
}
