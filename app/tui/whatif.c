// SPDX-License-Identifier: Apache-2.0
#include "app/tui/whatif.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "app/tui/turn.h"

struct whatif {
    pthread_t thread;
    pthread_mutex_t lock; // guards all below but `fd`
    pthread_cond_t changed;
    bool stops, asked, planning;
    uint64_t generation; // of the question; a plan for an older one is dropped
    whatif_question question;
    whatif_answers answers;
    int fd;
};

void whatif_plan_present(const whatif_question *question, whatif_cell *cell)
{
    memset(cell, 0, sizeof *cell);
    cell->known = true;
    cell->refused = question->planner == NULL ||
                    hr_planner_plan(question->planner, &question->knobs, &cell->plan, NULL) != HR_OK;
}

void whatif_plan_cell(const whatif_question *question, hr_knob_id id, int side, whatif_cell *cell)
{
    char text[HR_KNOB_TEXT_MAX];
    hr_knobs turned = question->knobs;
    memset(cell, 0, sizeof *cell);
    cell->known = true;
    if (!turn_neighbour(&question->knobs, id, side == WHATIF_LESS ? TURN_LESS : TURN_MORE,
                        question->when_unset_bytes, text) ||
        turn_set(&turned, id, text, NULL) != HR_OK) {
        cell->refused = true;
        return;
    }
    snprintf(cell->value, sizeof cell->value, "%.*s", (int)sizeof cell->value - 1, text);
    cell->refused =
        question->planner == NULL || hr_planner_plan(question->planner, &turned, &cell->plan, NULL) != HR_OK;
}

// Stores one answer when the question is still the same; false when it is not.
static bool store(whatif *w, const whatif_question *question, uint64_t generation, whatif_cell *to,
                  const whatif_cell *cell)
{
    pthread_mutex_lock(&w->lock);
    bool same = !w->stops && w->generation == generation;
    if (same) {
        w->answers.question = question->number;
        *to = *cell;
    }
    pthread_mutex_unlock(&w->lock);
    uint64_t one = 1;
    return same && write(w->fd, &one, sizeof one) == (ssize_t)sizeof one;
}

// A knob that changes between two steps needs no other build: the plan stays the present one.
static bool answer_knob(whatif *w, const whatif_question *question, uint64_t generation, hr_knob_id id,
                        const whatif_cell *present)
{
    static const int sides[] = {WHATIF_MORE, WHATIF_LESS};
    bool goes_on = true, same_plan = hr_knob_rows(NULL)[id].hot;
    for (int i = 0; goes_on && i < WHATIF_SIDES; i++) {
        whatif_cell cell = *present;
        if (!same_plan) {
            whatif_plan_cell(question, id, sides[i], &cell);
        }
        goes_on = store(w, question, generation, &w->answers.cell[id][sides[i]], &cell);
    }
    return goes_on;
}

static void answer(whatif *w, const whatif_question *question, uint64_t generation)
{
    size_t count;
    const hr_knob_id *panel = turn_panel(&count);
    whatif_cell present;
    whatif_plan_present(question, &present);
    bool goes_on = store(w, question, generation, &w->answers.present, &present) &&
                   answer_knob(w, question, generation, question->first, &present);
    for (size_t i = 0; goes_on && i < count; i++) {
        goes_on = panel[i] == question->first || answer_knob(w, question, generation, panel[i], &present);
    }
}

static void *run(void *context)
{
    whatif *w = context;
    setpriority(PRIO_PROCESS, 0, 19); // on Linux: of this thread alone
    pthread_mutex_lock(&w->lock);
    while (!w->stops) {
        if (!w->asked) {
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        whatif_question question = w->question;
        uint64_t generation = w->generation;
        w->asked = false;
        w->planning = true;
        memset(&w->answers, 0, sizeof w->answers);
        pthread_mutex_unlock(&w->lock);
        answer(w, &question, generation);
        pthread_mutex_lock(&w->lock);
        w->planning = false;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

whatif *whatif_start(void)
{
    whatif *w = calloc(1, sizeof *w);
    if (w == NULL) {
        return NULL;
    }
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    // Signals belong to the thread that owns the screen.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    bool started = w->fd >= 0 && pthread_create(&w->thread, NULL, run, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!started) {
        close(w->fd);
        free(w);
        return NULL;
    }
    return w;
}

void whatif_stop(whatif *w)
{
    if (w == NULL) {
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->stops = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    close(w->fd);
    free(w);
}

void whatif_ask(whatif *w, const whatif_question *question)
{
    if (w == NULL) {
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->question = *question;
    w->asked = true;
    w->generation++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void whatif_forget(whatif *w)
{
    if (w == NULL) {
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->asked = false;
    w->generation++;
    while (w->planning) {
        pthread_cond_wait(&w->changed, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
}

int whatif_fd(const whatif *w)
{
    return w == NULL ? -1 : w->fd;
}

bool whatif_take(whatif *w, whatif_answers *answers)
{
    uint64_t wakes;
    if (w == NULL || read(w->fd, &wakes, sizeof wakes) != (ssize_t)sizeof wakes) {
        return false;
    }
    pthread_mutex_lock(&w->lock);
    *answers = w->answers;
    pthread_mutex_unlock(&w->lock);
    return true;
}
