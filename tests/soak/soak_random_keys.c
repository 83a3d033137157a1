// SPDX-License-Identifier: Apache-2.0
// The workbench under random keys, clicks, pastes and window sizes, with the real engine and the real planner in this
// process on the plan device: nothing may crash, and under sanitizers nothing may be found. Every round is a new
// workbench on another preset, in another terminal; `--seed N` makes the same ones again. From the root of the checkout.
//
//   soak_random_keys [--seconds S] [--seed N]
//
// One JSON object on stdout: what was done, which screens and overlays were seen. Exit 1 when a screen or an overlay
// was never reached in two minutes, or resident memory grew from round to round.
#include <dirent.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/tui/shell/app.h"
#include "app/tui/term/paint.h"
#include "app/tui/term/terminal.h"

enum {
    KEYS_PER_ROUND = 2000,
    FRAME_EVERY = 3,
    OVERLAYS = OVERLAY_CARD,
    GROWTH_KIB = 16 * 1024,
    WARM_ROUNDS = 8
};

static const char *const presets[] = {"demo", "resnet50_tiny", "gpt2_124m_tiny", "lstm_lm_medium_tiny",
                                      "unet_tiny"};
static const char *const terminals[] = {"xterm-256color", "xterm", "screen", "linux", "vt100"};

typedef struct tally {
    uint64_t rounds, keys, frames, steps, sizes;
    uint64_t screen[SCREEN_COUNT], overlay[OVERLAYS];
    uint64_t ooms, presets_opened;
    long first_kib, last_kib;
} tally;

static double now_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static long resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) {
        abort();
    }
    (void)fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static unsigned dice(unsigned sides)
{
    return (unsigned)rand() % sides;
}

static app *open_workbench(FILE *nowhere, hr_preset **preset)
{
    hr_err err;
    hr_knobs knobs;
    if (hr_preset_open(presets[dice(sizeof presets / sizeof *presets)], false, preset, NULL, &err) != HR_OK) {
        (void)fprintf(stderr, "soak_random_keys: %s\n", err.sentence);
        exit(2);
    }
    knobs = *hr_preset_knobs(*preset);
    const char *turned = dice(4) == 0 ? "device.card=rtx3060-12g" : "device.kind=plan";
    if (hr_knobs_set_pair(&knobs, "device.kind=plan", &err) != HR_OK ||
        hr_knobs_set_pair(&knobs, turned, &err) != HR_OK) {
        abort();
    }
    app *a = app_create(*preset, &knobs);
    if (a == NULL || !terminal_open_on(terminals[dice(sizeof terminals / sizeof *terminals)], nowhere,
                                       nowhere, (int)dice(60) + 1, (int)dice(200) + 1)) {
        abort();
    }
    theme_make(&a->looks.theme, "auto", terminal_colors(), dice(8) == 0);
    a->looks.richest_glyphs = dice(4) == 0 ? GLYPHS_ASCII : GLYPHS_FULL;
    a->looks.glyphs = glyphs_make(a->looks.richest_glyphs);
    a->feed.scripted = true;
    a->card_seen = dice(4) != 0;
    a->started_ns = a->now_ns = 1;
    app_draw(a);
    feed_start_planner(&a->feed);
    feed_start_engine(&a->feed);
    return a;
}

// Keys that have a job most often; then any character; then a burst of text as a paste would bring it.
static int random_key(void)
{
    size_t count;
    const request_row *rows = request_rows(&count);
    unsigned side = dice(100);
    if (side < 72) {
        return rows[dice((unsigned)count)].key;
    }
    return side < 90   ? ' ' + (int)dice(95)
           : side < 97 ? INPUT_BEYOND_UNICODE + (int)dice(24)
                       : (int)dice(0x3000);
}

static void let_work(app *a, tally *t)
{
    bool more;
    uint64_t before = a->feed.live.steps;
    // Keys may well choose a device that computes, in minutes under sanitizers: what waits is then not done.
    if (a->feed.session != NULL && hr_knob_is(&a->feed.knobs, HR_KNOB_DEVICE_KIND, "plan")) {
        (void)hr_session_advance(a->feed.session, dice(3));
    }
    (void)app_drain(a, &more);
    t->steps += a->feed.live.steps > before ? a->feed.live.steps - before : 0;
    t->ooms += a->feed.live.state == HR_ENGINE_OOM;
}

static void press(app *a, tally *t)
{
    a->click_y = (int)dice(60);
    a->click_x = (int)dice(200);
    a->now_ns += 20000000;
    app_key(a, random_key());
    t->keys++;
    t->presets_opened += a->next.work == PENDING_PRESET;
    if (a->next.work == PENDING_QUIT) {
        a->next.work = PENDING_NONE; // stays to take more
    } else {
        app_work(a);
    }
    a->quits = false;
    t->screen[a->screen]++;
    t->overlay[(int)a->overlay < (int)OVERLAYS ? (int)a->overlay : 0]++;
}

// What `S`, `:save`, exports and typed file names leave behind in the round's folder.
static void clean_folder(void)
{
    DIR *list = opendir(".");
    for (struct dirent *entry = list == NULL ? NULL : readdir(list); entry != NULL; entry = readdir(list)) {
        if (entry->d_type == DT_REG) {
            (void)unlink(entry->d_name);
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
}

static void play_round(unsigned seed, tally *t, double until)
{
    hr_preset *preset;
    FILE *nowhere = fopen("/dev/null", "r+");
    srand(seed);
    if (nowhere == NULL) {
        abort();
    }
    app *a = open_workbench(nowhere, &preset);
    for (int i = 0; i < KEYS_PER_ROUND && now_seconds() < until; i++) {
        press(a, t);
        if (dice(60) == 0) {
            terminal_resize((int)dice(dice(3) == 0 ? 120 : 50) + 1, (int)dice(dice(3) == 0 ? 300 : 160) + 1);
            t->sizes++;
        }
        if (dice(16) == 0) {
            let_work(a, t);
        }
        if (i % FRAME_EVERY == 0) {
            app_draw(a);
            t->frames++;
        }
    }
    feed_stop_planner(&a->feed);
    app_destroy(a);
    terminal_close_on();
    (void)fclose(nowhere);
    hr_preset_close(preset);
    clean_folder();
    t->rounds++;
    long kib = resident_kib();
    t->first_kib = t->rounds == WARM_ROUNDS ? kib : t->first_kib;
    t->last_kib = kib;
}

static bool reached_everything(const tally *t)
{
    bool all = true;
    for (int i = 0; i < SCREEN_COUNT; i++) {
        all = all && t->screen[i] > 0;
    }
    for (int i = 0; i < OVERLAYS; i++) {
        all = all && t->overlay[i] > 0;
    }
    return all;
}

// A frozen view, caches and logs fill up: what a round leaves behind is what may not grow. Address sanitizers keep what
// was freed, and look for leaks themselves.
static bool has_grown(const tally *t)
{
#ifdef __SANITIZE_ADDRESS__
    (void)t;
    return false;
#else
    return t->rounds > 2 * WARM_ROUNDS && t->last_kib > t->first_kib + GROWTH_KIB;
#endif
}

int main(int argc, char **argv)
{
    double seconds = 20;
    unsigned seed = 1;
    char folder[] = "/tmp/headroom-keys-XXXXXX", data[4096];
    for (int i = 1; i + 1 < argc; i += 2) {
        seconds = strcmp(argv[i], "--seconds") == 0 ? atof(argv[i + 1]) : seconds;
        seed = strcmp(argv[i], "--seed") == 0 ? (unsigned)atoi(argv[i + 1]) : seed;
    }
    if (setlocale(LC_ALL, "C.UTF-8") == NULL || getcwd(data, sizeof data - 16) == NULL ||
        mkdtemp(folder) == NULL) {
        (void)fputs("soak_random_keys: needs the locale C.UTF-8 and a folder in /tmp\n", stderr);
        return 2;
    }
    strcat(data, "/presets");
    (void)setenv("HEADROOM_DATA", data, 0);
    (void)setenv("XDG_STATE_HOME", folder, 1);
    (void)setenv("XDG_CACHE_HOME", folder, 1);
    if (chdir(folder) != 0) {
        return 2;
    }
    tally t = {0};
    const double until = now_seconds() + seconds;
    for (unsigned round = 0; now_seconds() < until; round++) {
        play_round(seed * 1000003u + round, &t, until);
    }
    (void)!chdir("/");
    bool ok = (reached_everything(&t) || seconds < 120) && !has_grown(&t); // a slice need not get everywhere
    printf("{\"seed\": %u, \"rounds\": %" PRIu64 ", \"keys\": %" PRIu64 ", \"frames\": %" PRIu64
           ", \"sizes\": %" PRIu64 ", \"steps\": %" PRIu64 ", \"presets_opened\": %" PRIu64
           ", \"everything_reached\": %s, \"resident_kib\": [%ld, %ld]}\n",
           seed, t.rounds, t.keys, t.frames, t.sizes, t.steps, t.presets_opened,
           reached_everything(&t) ? "true" : "false", t.first_kib, t.last_kib);
    return ok ? 0 : 1;
}
