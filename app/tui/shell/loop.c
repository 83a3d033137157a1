// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/loop.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "app/tui/shell/act.h"
#include "app/tui/shell/offer.h"
#include "app/tui/shell/remember.h"
#include "app/tui/shell/tour.h"
#include "app/tui/term/terminal.h"

enum { FD_TERMINAL, FD_SIGNAL, FD_EVENTS, FD_WHATIF, FD_JUDGE, FD_COUNT };

static const uint64_t frame_ns = 250000000; // between two frames that only events asked for
static const uint64_t life_ns = 1000000000; // between two looks whether a training worker lives
static const uint64_t lesson_ns = 20000000; // between two looks at what a lesson plays
static const uint64_t drain_ns = 15000000;  // between two looks at the events: they come by the thousand
static const uint64_t remember_ns = 2000000000;
static const unsigned silent_wakes_max = 100;
// Reports and errors have no wake of their own and come a little after their events: two more looks, then rest.
static const uint64_t settle_ns[] = {30000000, 400000000};
enum { SETTLE_LOOKS = sizeof settle_ns / sizeof *settle_ns };

typedef struct loop {
    app *app;
    bool key_came, data_came, more;
    uint64_t frame_at_ns, drain_at_ns; // when the next may be
    unsigned looks;                    // since the last event
    uint64_t look_at_ns;               // while looks < SETTLE_LOOKS
    uint64_t remember_at_ns;           // looks are written down once they stay; UINT64_MAX: they are
    size_t pasted;                     // bytes of a paste that wait in
    char paste[PROMPT_MAX];
    unsigned silent_wakes; // wakes by a terminal that had no key: it is gone
} loop;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void draw(loop *l)
{
    app *a = l->app;
    a->now_ns = now_ns();
    l->key_came = false;
    l->data_came = !terminal_takes(); // then it is tried again
    if (!l->data_came) {
        if (a->redraws) {
            terminal_redraw();
            a->redraws = false;
        }
        terminal_begin_writing();
        app_draw(a);
        terminal_end_writing();
    }
    l->frame_at_ns = a->now_ns + frame_ns;
}

// For a training to end, or for a judgement of the next one.
static bool waits(const feed *f)
{
    return f->ending || f->judge != NULL;
}

// Nanoseconds until something is due; negative: nothing is.
static int64_t wait_ns(const loop *l)
{
    uint64_t now = now_ns();
    uint64_t due = l->data_came ? l->frame_at_ns : UINT64_MAX;
    due = l->looks < SETTLE_LOOKS && l->look_at_ns < due ? l->look_at_ns : due;
    due = l->remember_at_ns < due ? l->remember_at_ns : due;
    if ((run_state_is_training(&l->app->feed.live) || waits(&l->app->feed)) && now + life_ns < due) {
        due = now + life_ns; // a worker that hangs sends no event
    }
    if (learn_waits(&l->app->learn) && now + lesson_ns < due) {
        due = now + lesson_ns; // its thread has no wake
    }
    if (l->more) {
        due = now;
    } else if (l->drain_at_ns > now && l->drain_at_ns < due) {
        due = l->drain_at_ns;
    }
    return due == UINT64_MAX ? -1 : due > now ? (int64_t)(due - now) : 0;
}

// A paste comes character by character; what waits goes into the line as one text.
static void give_paste(loop *l)
{
    if (l->pasted > 0) {
        l->paste[l->pasted] = '\0';
        l->pasted = 0;
        app_paste(l->app, l->paste);
    }
}

static void take_event(loop *l, const terminal_event *e)
{
    char character[4];
    if (e->pasted) {
        size_t count = utf8_put((wchar_t)e->key, character);
        bool room = l->pasted + count < sizeof l->paste;
        memcpy(l->paste + l->pasted, character, room ? count : 0);
        l->pasted += room ? count : 0;
        return;
    }
    give_paste(l);
    l->app->click_y = e->y;
    l->app->click_x = e->x;
    app_key(l->app, e->key);
}

// Without an answer what was trained is kept.
static void leave(app *a)
{
    a->feed.keeps = true;
    a->quits = true;
}

static void take_keys(loop *l, short ready)
{
    bool any = false;
    terminal_event e = terminal_key();
    for (; e.key != INPUT_NONE; e = terminal_key()) {
        take_event(l, &e);
        any = l->key_came = true;
    }
    give_paste(l);
    if (any) {
        app_ask_for_screen(l->app); // nothing else may come that would
    }
    if (e.closed) {
        leave(l->app);
    }
    l->remember_at_ns = any ? now_ns() + remember_ns : l->remember_at_ns;
    l->silent_wakes = ready != 0 && !any ? l->silent_wakes + 1 : 0;
    if (ready & (POLLHUP | POLLERR | POLLNVAL) || l->silent_wakes > silent_wakes_max) {
        leave(l->app);
    }
}

static void take_signal(loop *l)
{
    const int number = terminal_signal();
    if (number == SIGINT) {
        app_key(l->app, INPUT_CTRL_C);
        l->key_came = true;
    } else if (number != 0) { // SIGTERM, SIGHUP
        feed_end_at_once(&l->app->feed);
        l->app->ended_by = number;
        leave(l->app);
    }
}

static void take_data(loop *l, bool events)
{
    uint64_t now = now_ns();
    bool looks = l->looks < SETTLE_LOOKS && now >= l->look_at_ns;
    if (!events && !looks) {
        return;
    }
    const recipe_log *recipe = &l->app->feed.recipe;
    const recipe_state state = recipe->state;
    const uint64_t answered = l->app->console.answered;
    l->data_came = app_drain(l->app, &l->more) || l->data_came;
    // What a person waits for is drawn at once.
    l->key_came = l->key_came || recipe->state != state || l->app->console.answered != answered;
    l->looks = events ? 0 : l->looks + 1;
    l->look_at_ns = now + (l->looks < SETTLE_LOOKS ? settle_ns[l->looks] : 0);
    l->drain_at_ns = now + drain_ns;
}

static void wait_and_take(loop *l)
{
    app *a = l->app;
    bool drains_later = l->drain_at_ns > now_ns();
    struct pollfd fds[FD_COUNT] = {
        [FD_TERMINAL] = {.fd = STDIN_FILENO, .events = POLLIN},
        [FD_SIGNAL] = {.fd = terminal_signal_fd(), .events = POLLIN},
        [FD_EVENTS] = {.fd = a->feed.session == NULL || drains_later ? -1 : hr_session_fd(a->feed.session),
                       .events = POLLIN},
        [FD_WHATIF] = {.fd = hr_planning_fd(a->feed.planning), .events = POLLIN},
        [FD_JUDGE] = {.fd = hr_planning_fd(a->feed.judge), .events = POLLIN},
    };
    int64_t wait = wait_ns(l);
    struct timespec timeout = {wait / 1000000000, wait % 1000000000};
    int ready = ppoll(fds, FD_COUNT, wait < 0 ? NULL : &timeout, terminal_poll_mask());
    if (ready > 0 && fds[FD_SIGNAL].revents != 0) {
        take_signal(l);
    }
    take_keys(l, ready > 0 ? fds[FD_TERMINAL].revents : 0);
    bool wakes = ready > 0 && (fds[FD_EVENTS].revents | fds[FD_WHATIF].revents) != 0;
    take_data(l, wakes || l->more || learn_waits(&l->app->learn));
}

// Where it cannot be written, nothing is remembered.
static void remember(app *a)
{
    if (a->remembered.path != NULL) {
        (void)remember_write(a, a->remembered.path);
    }
}

static void suspend_worker(void *context)
{
    const app *a = context;
    if (a->feed.session != NULL) {
        hr_session_suspend(a->feed.session, true);
    }
}

static void resume_worker(void *context)
{
    const app *a = context;
    if (a->feed.session != NULL) {
        hr_session_suspend(a->feed.session, false);
    }
}

// What stands at that path now, as far as a change of it shows.
typedef struct file_look {
    time_t seconds;
    long nanoseconds;
    off_t size;
    ino_t number;
} file_look;

static file_look look_at_file(const char *path)
{
    struct stat s;
    return stat(path, &s) != 0 ? (file_look){0}
                               : (file_look){s.st_mtim.tv_sec, s.st_mtim.tv_nsec, s.st_size, s.st_ino};
}

// $VISUAL and $EDITOR may have arguments: a shell takes them apart.
static void edit_preset(loop *l)
{
    app *a = l->app;
    const char *editor = getenv("VISUAL"), *path = hr_preset_path(a->feed.preset);
    char line[PATH_MAX];
    editor = editor != NULL && editor[0] != '\0' ? editor : getenv("EDITOR");
    editor = editor != NULL && editor[0] != '\0' ? editor : "vi";
    snprintf(line, sizeof line, "%s \"$@\"", editor);
    char shell[] = "sh", option[] = "-c", name[] = "editor", file[PATH_MAX];
    snprintf(file, sizeof file, "%s", path);
    char *argv[] = {shell, option, line, name, file, NULL};
    const file_look before = look_at_file(path);
    const int status = terminal_lend(argv);
    const file_look after = look_at_file(path);
    if (status != 0) {
        a->edits_preset = false;
        feed_say(
            &a->feed, MESSAGE_ERROR,
            "the editor '%.60s' ended with status %d, and nothing was read again\ntry: EDITOR=vi headroom",
            editor, status);
    } else {
        act_preset_was_edited(a, before.seconds != after.seconds || before.nanoseconds != after.nanoseconds ||
                                     before.size != after.size || before.number != after.number);
    }
    l->key_came = true;
}

// A frame says what is waited for, before and while it is.
static void work(loop *l)
{
    app *a = l->app;
    const bool waited = waits(&a->feed), was_ending = a->feed.ending;
    if (!waited) {
        draw(l);
    }
    app_work(a);
    l->key_came = l->key_came || !waited || !waits(&a->feed);
    if (a->feed.ending && !was_ending) {
        draw(l);
    }
}

// A file that was named on the command line, once there is a training for it.
static void begin_recipe(app *a)
{
    const char *recipe = a->recipe;
    if (recipe != NULL && a->feed.session != NULL && a->overlay != OVERLAY_OFFER) {
        a->recipe = NULL;
        console_run(a, recipe, "");
    }
}

// What stands before the first key is pressed.
static void open_first(loop *l)
{
    app *a = l->app;
    begin_recipe(a);
    if (a->overlay == OVERLAY_NONE) {
        card_show(a);
    }
    if (a->overlay != OVERLAY_NONE) {
        draw(l); // nothing else may come that would
    }
}

void loop_run(app *a)
{
    loop l = {.app = a, .looks = SETTLE_LOOKS, .remember_at_ns = UINT64_MAX};
    a->started_ns = now_ns();
    draw(&l);
    if (!a->feed.unknown) {
        feed_start_planner(&a->feed);
    }
    offer_look(a);
    if (a->overlay != OVERLAY_OFFER) {
        feed_start_engine(&a->feed);
    }
    if (!a->feed.unknown) {
        app_tell_about(a);
    }
    terminal_on_suspend(suspend_worker, resume_worker, a);
    open_first(&l);
    while (!a->quits) {
        wait_and_take(&l);
        begin_recipe(a);
        l.data_came = feed_check_life(&a->feed) || l.data_came;
        bool due = l.data_came && now_ns() >= l.frame_at_ns;
        if (l.key_came || due) {
            draw(&l);
        }
        if (a->edits_preset) {
            edit_preset(&l);
        }
        if (a->next.work != PENDING_NONE) {
            work(&l);
        }
        if (now_ns() >= l.remember_at_ns) {
            l.remember_at_ns = UINT64_MAX;
            remember(a);
        }
    }
    remember(a);
    terminal_on_suspend(NULL, NULL, NULL);
}
