// SPDX-License-Identifier: Apache-2.0
// Whole configurations at random: a tiny model, and every knob of the table drawn from its row, few or most of them turned.
// What the constraints refuse is counted, and their advice is followed until they let it pass. Then it is planned and run,
// and the plan has to be the run to the byte, or both refuse in the same words. That happens in a child: a death is a finding
// that names the configuration. From the root of the checkout.
//
//   soak_random [--seconds S] [--seed N] [--count C]    until C legal ones were looked at, or the time is up
//   soak_random --seed N --at K                         configuration K of seed N alone, in this process
//
// Findings on stderr as they come, one JSON object on stdout.
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "headroom/preset.h"

#include "cli/axes.h"
#include "cli/exactness.h"

enum {
    TEXT_MAX = 4096,
    WHY_MAX = 512,
    FINDINGS_MAX = 32,
    ADVICE_MAX = 40, // that is followed
    PER_CHILD = 64,  // then a fresh one, so that what a library keeps does not pile up
    TIMEOUT_S = 240,
    LOOK_MS = 2,
};

typedef enum verdict { PENDING, EXACT, REFUSED_BY_RULE, REFUSED_ALIKE, BROKEN, DIED, HUNG, VERDICTS } verdict;

static const char *const verdict_names[VERDICTS] = {
    "pending", "exact", "refused_by_constraints", "refused_alike", "broken", "died", "hung"};

// Between parent and child.
typedef struct shared {
    _Atomic uint64_t at; // the configuration that is looked at
    _Atomic uint64_t done[VERDICTS], refused_as_drawn;
    _Atomic uint32_t found;
    struct finding {
        uint64_t at;
        char text[TEXT_MAX], why[WHY_MAX];
    } findings[FINDINGS_MAX];
} shared;

// ---- drawing --------------------------------------------------------------------------------------------------

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static uint64_t below(uint64_t *state, uint64_t n)
{
    return next(state) % n;
}

static double unit(uint64_t *state)
{
    return (double)(next(state) >> 11) * 0x1p-53;
}

// Beyond this no limit and no size of an allocator does anything to a tiny model.
#define BYTES_MOST (4.0 * 1024 * 1024 * 1024)

// Where a number may go as far as its row lets it, and a test of it takes too long.
static const struct {
    hr_knob_id id;
    double most, least; // 0: the row's
} bounds[] = {
    {HR_KNOB_BATCH_SIZE, 9, 0},
    {HR_KNOB_BATCH_ACCUMULATE, 5, 0},
    {HR_KNOB_THREADS_COUNT, 3, 0},
    {HR_KNOB_PIPELINE_SAMPLES, 512, 45}, // at least an update
    {HR_KNOB_PIPELINE_AUGMENT_COPIES, 2, 0},
    {HR_KNOB_PIPELINE_SHUFFLE, 4096, 0},
    {HR_KNOB_PIPELINE_MAP_THREADS, 6, 0},
    {HR_KNOB_PIPELINE_PREFETCH, 6, 0},
    {HR_KNOB_PIPELINE_DEVICE_PREFETCH, 6, 0},
    {HR_KNOB_WORKSPACE_LIMIT, 16 << 20, 0},
};

static double bound_of(const hr_knob_row *row)
{
    for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++) {
        if (bounds[k].id == row->id) {
            return bounds[k].most;
        }
    }
    return row->type == HR_KNOB_BYTES ? fmin(row->max, BYTES_MOST) : row->max;
}

static double least_of(const hr_knob_row *row)
{
    for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++) {
        if (bounds[k].id == row->id && bounds[k].least > 0) {
            return bounds[k].least;
        }
    }
    return row->min;
}

// Of every order of magnitude as often.
static void draw_number(uint64_t *state, const hr_knob_row *row, char text[AXIS_TEXT_MAX])
{
    const double least = row->type == HR_KNOB_REAL ? fmax(row->min, 1e-6) : row->min + 1.0;
    const double most = row->type == HR_KNOB_REAL ? bound_of(row) : bound_of(row) + 1.0;
    double value = least * pow(most / least, unit(state));
    value = row->type == HR_KNOB_REAL ? value : floor(value) - (row->min > 0 ? 0.0 : 1.0);
    value = fmin(fmax(value, least_of(row)), bound_of(row));
    snprintf(text, AXIS_TEXT_MAX, row->type == HR_KNOB_REAL ? "%.6g" : "%.0f%s", value,
             row->type == HR_KNOB_BYTES ? "B" : "");
}

static const axis *axis_of(hr_knob_id id)
{
    const axis *axes = NULL;
    const size_t count = axes_of_knobs(&axes);
    for (size_t a = 0; a < count; a++) {
        if (axes[a].id == id) {
            return &axes[a];
        }
    }
    return NULL;
}

// A value for a knob; false: as it is. `text` has room for any.
static bool draw_value(uint64_t *state, const hr_knob_row *row, char text[AXIS_TEXT_MAX])
{
    const axis *a = axis_of(row->id);
    size_t choices = 0;
    while (row->type == HR_KNOB_CHOICE && row->choices[choices] != NULL) {
        choices++;
    }
    if (choices > 0) {
        snprintf(text, AXIS_TEXT_MAX, "%s", row->choices[below(state, choices)]);
    } else if (a != NULL && least_of(row) <= row->min &&
               (row->type == HR_KNOB_TEXT || below(state, 2) == 0)) {
        const char *value = a->values[below(state, axis_value_count(a))];
        snprintf(text, AXIS_TEXT_MAX, "%.*s", AXIS_TEXT_MAX - 1, value);
        return strlen(value) < AXIS_TEXT_MAX;
    } else if (row->type != HR_KNOB_TEXT) {
        draw_number(state, row, text);
    } else {
        return false;
    }
    return true;
}

// What is drawn is in its range.
static void turn(hr_knobs *knobs, hr_knob_id id, const char *value)
{
    hr_err err = {0};
    if (hr_knobs_set(knobs, id, value, &err) != HR_OK) {
        fprintf(stderr, "soak_random: %s\n", err.sentence);
        exit(2);
    }
}

// A limit that a tiny model may or may not do with, or a card.
static void draw_memory(uint64_t *state, hr_knobs *knobs)
{
    static const char *const limits[] = {"4GiB", "4GiB", "4GiB", "1GiB", "64MiB", "16MiB", "4MiB", "512KiB"};
    static const char *const cards[] = {"rtx3070-8g", "a100-80g"};
    const bool card = below(state, 8) == 0;
    turn(knobs, HR_KNOB_DEVICE_CARD, card ? cards[below(state, 2)] : "");
    turn(knobs, HR_KNOB_DEVICE_VRAM, card && below(state, 2) == 0 ? "none" : limits[below(state, 8)]);
}

typedef struct drawn {
    const char *model;
    hr_knobs knobs;
    bool refused; // before the advice was followed
} drawn;

// In C's own arithmetic, on one thread: only what is small.
static void draw_device(uint64_t *state, drawn *d)
{
    const uint64_t which = below(state, 24);
    const char *kind = which == 0 ? "plan" : which == 1 ? "reference" : "cpu";
    turn(&d->knobs, HR_KNOB_DEVICE_KIND, kind);
    if (which == 1) {
        d->model = below(state, 2) == 0 ? "mlp_tiny" : "lstm_lm_medium_tiny";
        turn(&d->knobs, HR_KNOB_BATCH_SIZE, "2");
    }
}

// What a test of files looks at, and what is drawn by itself.
static bool is_drawn(hr_knob_id id)
{
    return !axis_is_left_out(id) || id == HR_KNOB_ALLOCATOR_FRACTION;
}

// "-s key=value", constraint after constraint.
static void follow_advice(drawn *d)
{
    hr_err err = {0};
    for (int k = 0; k < ADVICE_MAX && hr_knobs_validate(&d->knobs, &err) != HR_OK; k++) {
        d->refused = true;
        if (strncmp(err.hint, "-s ", 3) != 0 || hr_knobs_set_pair(&d->knobs, err.hint + 3, NULL) != HR_OK) {
            return;
        }
    }
}

static drawn draw(uint64_t seed, uint64_t at)
{
    uint64_t state = seed * UINT64_C(1000003) + at;
    const axis *axes = NULL;
    (void)axes_of_knobs(&axes);
    (void)next(&state);
    drawn d = {.model = axes[0].values[below(&state, axis_value_count(&axes[0]))]};
    hr_knobs_init(&d.knobs);
    turn(&d.knobs, HR_KNOB_BATCH_SIZE, "4");
    const uint64_t share = 1 + below(&state, 14); // of sixteen: how many knobs are turned
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        char text[AXIS_TEXT_MAX] = "";
        const hr_knob_row *row = &hr_knob_rows(NULL)[id];
        if (is_drawn((hr_knob_id)id) && below(&state, 16) < share && draw_value(&state, row, text)) {
            turn(&d.knobs, (hr_knob_id)id, text);
        }
    }
    draw_device(&state, &d);
    draw_memory(&state, &d.knobs);
    follow_advice(&d);
    return d;
}

// As a person would type it.
static void describe(const drawn *d, char text[TEXT_MAX])
{
    size_t used = (size_t)snprintf(text, TEXT_MAX, "headroom run %s --steps 3", d->model);
    for (int id = 0; id < HR_KNOB_COUNT && used < TEXT_MAX; id++) {
        char value[HR_KNOB_TEXT_MAX], plain[HR_KNOB_TEXT_MAX];
        hr_knobs untouched;
        hr_knobs_init(&untouched);
        hr_knob_format(&d->knobs, (hr_knob_id)id, value);
        if (strcmp(value, hr_knob_format(&untouched, (hr_knob_id)id, plain)) != 0) {
            used += (size_t)snprintf(text + used, TEXT_MAX - used, " -s %s=%s", hr_knob_rows(NULL)[id].key,
                                     value);
        }
    }
}

// ---- looking --------------------------------------------------------------------------------------------------

static verdict look(const drawn *d, char why[WHY_MAX])
{
    uint64_t peak_bytes = 0;
    hr_preset *preset = NULL;
    hr_err err = {0};
    why[0] = '\0';
    if (hr_knobs_validate(&d->knobs, &err) != HR_OK) {
        return REFUSED_BY_RULE;
    }
    if (hr_preset_open(d->model, false, &preset, NULL, &err) != HR_OK) {
        snprintf(why, WHY_MAX, "%s", err.sentence);
        return BROKEN;
    }
    const exactness found = exactness_of(preset, &d->knobs, &peak_bytes, why, WHY_MAX);
    hr_preset_close(preset);
    const bool too_large = strstr(why, "of this machine's available memory") != NULL;
    return found == EXACTNESS_HOLDS                  ? EXACT
           : found == EXACTNESS_REFUSED || too_large ? REFUSED_ALIKE
                                                     : BROKEN;
}

static void enter(shared *s, uint64_t seed, uint64_t at, verdict v, const char *why)
{
    (void)atomic_fetch_add(&s->done[v], 1);
    if (v <= REFUSED_ALIKE) {
        return;
    }
    char text[TEXT_MAX];
    const drawn d = draw(seed, at);
    describe(&d, text);
    fprintf(stderr, "%s: seed %" PRIu64 ", configuration %" PRIu64 ": %s\n  %s\n", verdict_names[v], seed, at,
            why, text);
    const uint32_t place = atomic_fetch_add(&s->found, 1);
    if (place < FINDINGS_MAX) {
        s->findings[place].at = at;
        memcpy(s->findings[place].text, text, TEXT_MAX);
        snprintf(s->findings[place].why, WHY_MAX, "%s: %.400s", verdict_names[v], why);
    }
}

static void child_main(shared *s, uint64_t seed, uint64_t end)
{
    for (uint64_t at = atomic_load(&s->at); at < end; at++) {
        char why[WHY_MAX];
        const drawn d = draw(seed, at);
        atomic_store(&s->at, at);
        (void)atomic_fetch_add(&s->refused_as_drawn, d.refused);
        enter(s, seed, at, look(&d, why), why);
    }
    atomic_store(&s->at, end);
    _exit(0);
}

static double now_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// The configurations up to `end` in one child. Where it dies, that one is a finding, and the next begins behind it.
static void look_at_some(shared *s, uint64_t seed, uint64_t end)
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        child_main(s, seed, end);
    }
    uint64_t seen = atomic_load(&s->at);
    double since = now_seconds();
    bool hung = false;
    while (child > 0 && waitpid(child, &status, WNOHANG) == 0) {
        const uint64_t at = atomic_load(&s->at);
        since = at == seen ? since : now_seconds();
        seen = at;
        if (now_seconds() - since > TIMEOUT_S) {
            hung = true;
            (void)kill(child, SIGKILL);
        }
        (void)poll(NULL, 0, LOOK_MS);
    }
    if (child < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
        return;
    }
    char why[WHY_MAX];
    const uint64_t at = atomic_load(&s->at);
    if (WIFSIGNALED(status)) {
        snprintf(why, sizeof why, "SIG%s", sigabbrev_np(WTERMSIG(status)));
    } else {
        snprintf(why, sizeof why, "exit code %d", WEXITSTATUS(status));
    }
    enter(s, seed, at, hung ? HUNG : DIED, why);
    atomic_store(&s->at, at + 1);
}

// ---- the result -----------------------------------------------------------------------------------------------

static void print_text(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            putchar('\\');
        }
        putchar((unsigned char)*text < 0x20 ? ' ' : *text);
    }
    putchar('"');
}

static void print_processor(void)
{
    char line[256] = "", *name = NULL;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && name == NULL && fgets(line, sizeof line, file) != NULL) {
        name = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
    }
    if (file != NULL) {
        fclose(file);
    }
    if (name != NULL) {
        name[strcspn(name, "\n")] = '\0';
    }
    print_text(name == NULL ? "unknown" : name + 2);
}

static void print_result(shared *s, uint64_t seed)
{
    const uint32_t found = atomic_load(&s->found);
    printf("{\"configurations\": %" PRIu64, atomic_load(&s->at));
    printf(", \"refused_as_drawn\": %" PRIu64, atomic_load(&s->refused_as_drawn));
    for (int v = EXACT; v < VERDICTS; v++) {
        printf(", \"%s\": %" PRIu64, verdict_names[v], atomic_load(&s->done[v]));
    }
    printf(", \"steps\": %d, \"seed\": %" PRIu64 ", \"processor\": ", (int)EXACTNESS_STEPS, seed);
    print_processor();
    printf(", \"findings\": [");
    for (uint32_t k = 0; k < found && k < FINDINGS_MAX; k++) {
        printf("%s{\"configuration\": %" PRIu64 ", \"what\": ", k == 0 ? "" : ", ", s->findings[k].at);
        print_text(s->findings[k].why);
        printf(", \"command\": ");
        print_text(s->findings[k].text);
        putchar('}');
    }
    puts("]}");
}

static uint64_t option(int argc, char **argv, const char *name, uint64_t otherwise)
{
    for (int k = 1; k + 1 < argc; k++) {
        if (strcmp(argv[k], name) == 0) {
            return strtoull(argv[k + 1], NULL, 10);
        }
    }
    return otherwise;
}

static int look_at_one(uint64_t seed, uint64_t at)
{
    char text[TEXT_MAX], why[WHY_MAX];
    const drawn d = draw(seed, at);
    describe(&d, text);
    puts(text);
    fflush(stdout);
    const verdict v = look(&d, why);
    printf("%s: %s\n", verdict_names[v], why);
    return v <= REFUSED_ALIKE ? 0 : 1;
}

static uint64_t legal(shared *s)
{
    return atomic_load(&s->at) - atomic_load(&s->done[REFUSED_BY_RULE]);
}

int main(int argc, char **argv)
{
    const double limit = (double)option(argc, argv, "--seconds", 60), begin = now_seconds();
    const uint64_t seed = option(argc, argv, "--seed", 1), at = option(argc, argv, "--at", UINT64_MAX);
    const uint64_t count = option(argc, argv, "--count", UINT64_MAX);
    hr_preset_search_beside(".");
    if (at != UINT64_MAX) {
        return look_at_one(seed, at);
    }
    shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED) {
        fprintf(stderr, "soak_random: no memory\n");
        return 2;
    }
    while (now_seconds() - begin < limit && legal(s) < count) {
        look_at_some(s, seed, atomic_load(&s->at) + PER_CHILD);
    }
    print_result(s, seed);
    return atomic_load(&s->found) == 0 ? 0 : 1;
}
