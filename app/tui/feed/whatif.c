// SPDX-License-Identifier: Apache-2.0
#include "app/tui/feed/whatif.h"

#include <stdio.h>
#include <string.h>

#include "headroom/replay.h"

#include "app/tui/feed/knob_edit.h"

static bool is_hot(hr_knob_id id)
{
    return hr_knob_rows(NULL)[id].hot;
}

static void add_turn(whatif *w, hr_knob_id id, int side, const char *value, hr_turn *turns)
{
    w->place[w->count].knob = id;
    w->place[w->count].side = side;
    turns[w->count] = (hr_turn){.knob = id};
    (void)snprintf(turns[w->count].value, sizeof turns->value, "%s", value);
    w->count++;
}

// A value that is not there, or may not be set here, is refused at once.
static void add_neighbour(whatif *w, const whatif_question *q, hr_knob_id id, int side, hr_turn *turns)
{
    char value[HR_KNOB_TEXT_MAX] = "";
    hr_knobs turned = q->knobs;
    whatif_cell *cell = &w->begun.cell[id][side];
    const int direction = side == WHATIF_LESS ? KNOB_EDIT_LESS : KNOB_EDIT_MORE;
    const bool can_be = !q->recorded || hr_replay_knob_applies(id);
    hr_err err = {0};
    const bool legal = can_be &&
                       knob_edit_reach(&q->knobs, id, direction, q->when_unset_bytes, value, NULL) &&
                       knob_edit_set(&turned, id, value, &err) == HR_OK;
    (void)snprintf(cell->why, sizeof cell->why, "%.*s", WHATIF_WHY_MAX - 1, err.sentence);
    (void)snprintf(cell->value, sizeof cell->value, "%.*s", (int)sizeof cell->value - 1, value);
    cell->known = cell->refused = !legal;
    if (legal && !is_hot(id) && w->count < HR_TURNS_MAX) {
        add_turn(w, id, side, value, turns);
    }
}

static void add_knob(whatif *w, const whatif_question *q, hr_knob_id id, hr_turn *turns)
{
    add_neighbour(w, q, id, WHATIF_MORE, turns);
    add_neighbour(w, q, id, WHATIF_LESS, turns);
}

size_t whatif_begin(whatif *w, const whatif_question *question, hr_turn turns[HR_TURNS_MAX])
{
    size_t count;
    const hr_knob_id *panel = knob_edit_panel(&count);
    memset(w, 0, sizeof *w);
    add_turn(w, HR_KNOB_COUNT, WHATIF_LESS, "", turns);
    add_knob(w, question, question->first, turns);
    for (size_t k = 0; k < count; k++) {
        if (panel[k] != question->first) {
            add_knob(w, question, panel[k], turns);
        }
    }
    return w->count;
}

static void refuse_loss(whatif_cell *cell)
{
    if (cell->known && !cell->refused && cell->other_param[0] != '\0') {
        cell->refused = true;
        (void)snprintf(cell->why, sizeof cell->why, "what was learned would be lost: %s changes",
                       cell->other_param);
    }
}

void whatif_learn(whatif_answers *answers)
{
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        refuse_loss(&answers->cell[id][WHATIF_LESS]);
        refuse_loss(&answers->cell[id][WHATIF_MORE]);
    }
}

static void fill(whatif_cell *cell, const hr_answer *answer)
{
    cell->known = true;
    cell->refused = answer->status != HR_OK;
    cell->estimated = answer->estimated;
    cell->plan = answer->whatif;
    (void)snprintf(cell->why, sizeof cell->why, "%.*s", WHATIF_WHY_MAX - 1, answer->sentence);
    (void)snprintf(cell->other_param, sizeof cell->other_param, "%s", answer->other_param);
}

static void fill_hot(const hr_answer *answer, whatif_answers *answers)
{
    size_t count;
    const hr_knob_id *panel = knob_edit_panel(&count);
    for (size_t k = 0; k < count; k++) {
        for (int side = 0; is_hot(panel[k]) && side < WHATIF_SIDES; side++) {
            whatif_cell *cell = &answers->cell[panel[k]][side];
            if (!cell->known || cell->estimated) {
                fill(cell, answer);
            }
        }
    }
}

// An answer to the question as a whole, the planner's end, says nothing of a knob.
static bool ends_early(const whatif *w, const hr_answer *answer)
{
    return answer->last && answer->index + 1 < w->count;
}

void whatif_take(whatif *w, const hr_answer *answer, whatif_answers *answers)
{
    if (answer->kind != HR_QUESTION_TURNS || answer->index >= w->count) {
        return;
    }
    if (answers->question != answer->number) {
        *answers = w->begun;
        answers->question = answer->number;
    }
    answers->estimated = answers->estimated || answer->estimated;
    if (answer->index == 0) {
        fill(&answers->present, answer);
        if (!ends_early(w, answer)) {
            fill_hot(answer, answers);
        }
    } else if (!ends_early(w, answer)) {
        fill(&answers->cell[w->place[answer->index].knob][w->place[answer->index].side], answer);
    }
}

void whatif_refine(whatif_answers *answers, uint64_t question)
{
    answers->question = question;
    answers->estimated = false;
}
