// SPDX-License-Identifier: Apache-2.0
#include "covering.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 8, MEND_ROUNDS = 12 };

static const axis *axes;
static size_t axis_count;

size_t covering_axes(const axis **out)
{
    axis_count = axes_of_knobs(&axes);
    if (out != NULL) {
        *out = axes;
    }
    return axis_count;
}

static void turn(hr_knobs *knobs, hr_knob_id id, const char *value)
{
    hr_err err = {0};
    if (hr_knobs_set(knobs, id, value, &err) != HR_OK) {
        fprintf(stderr, "covering: %s\n", err.sentence);
        exit(2);
    }
}

void configuration_apply(const configuration *c, hr_knobs *knobs)
{
    (void)covering_axes(NULL);
    for (size_t a = 1; a < axis_count; a++) {
        turn(knobs, axes[a].id, axes[a].values[c->value[a]]);
    }
}

const char *configuration_text(const configuration *c, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s", axes[0].values[c->value[0]]);
    for (size_t a = 1; a < axis_count && used < size; a++) {
        if (c->value[a] != 0) {
            used += (size_t)snprintf(text + used, size - used, " %s=%s", axes[a].key,
                                     axes[a].values[c->value[a]]);
        }
    }
    return text;
}

// ---- what may go together -------------------------------------------------------------------------------------

// Knobs as they are when nothing is turned, on a device with a limit.
static hr_knobs base_knobs(void)
{
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    turn(&knobs, HR_KNOB_DEVICE_VRAM, "4GiB");
    return knobs;
}

// The axis and value that "-s key=value" names; false when there is none.
static bool find_advice(const char *hint, size_t *at, uint8_t *value)
{
    for (size_t a = 1; a < axis_count; a++) {
        const size_t length = strlen(axes[a].key);
        if (strncmp(hint, "-s ", 3) != 0 || strncmp(hint + 3, axes[a].key, length) != 0 ||
            hint[3 + length] != '=') {
            continue;
        }
        for (uint8_t v = 0; axes[a].values[v] != NULL; v++) {
            if (strcmp(axes[a].values[v], hint + 4 + length) == 0) {
                *at = a;
                *value = v;
                return true;
            }
        }
    }
    return false;
}

// Does the knob at this value break no rule, or at least another one than before?
static bool helps(const configuration *c, size_t a, uint8_t value, const char *broken)
{
    configuration tried = *c;
    hr_knobs knobs = base_knobs();
    hr_err err = {0};
    tried.value[a] = value;
    configuration_apply(&tried, &knobs);
    return hr_knobs_validate(&knobs, &err) == HR_OK || strcmp(err.sentence, broken) != 0;
}

// Turns one axis that is not fixed: as the advice says, else any that helps.
static bool mend_once(configuration *c, const axis_set *fixed, const hr_err *refusal)
{
    size_t a = 0;
    uint8_t value = 0;
    if (find_advice(refusal->hint, &a, &value) && !fixed->has[a] && c->value[a] != value) {
        c->value[a] = value;
        return true;
    }
    for (a = 1; a < axis_count; a++) {
        for (value = 0; !fixed->has[a] && axes[a].values[value] != NULL; value++) {
            if (value != c->value[a] && helps(c, a, value, refusal->sentence)) {
                c->value[a] = value;
                return true;
            }
        }
    }
    return false;
}

bool configuration_mend(configuration *c, const axis_set *fixed)
{
    (void)covering_axes(NULL);
    for (int round = 0; round < MEND_ROUNDS; round++) {
        hr_knobs knobs = base_knobs();
        hr_err err = {0};
        configuration_apply(c, &knobs);
        if (hr_knobs_validate(&knobs, &err) == HR_OK) {
            return true;
        }
        if (!mend_once(c, fixed, &err)) {
            return false;
        }
    }
    return false;
}

// ---- pairs ----------------------------------------------------------------------------------------------------

typedef enum pair_state { PAIR_OPEN, PAIR_COVERED, PAIR_ILLEGAL } pair_state;

typedef struct pairs {
    uint8_t state[AXES_MAX][AXIS_VALUES_MAX][AXES_MAX][AXIS_VALUES_MAX]; // first axis < second
    uint64_t random;
} pairs;

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
static uint64_t random_below(uint64_t *state, uint64_t n)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (z ^ z >> 31) % n;
}

static size_t count_open(const pairs *p, const configuration *c)
{
    size_t open = 0;
    for (size_t a = 0; a < axis_count; a++) {
        for (size_t b = a + 1; b < axis_count; b++) {
            open += p->state[a][c->value[a]][b][c->value[b]] == PAIR_OPEN;
        }
    }
    return open;
}

static void cover(pairs *p, const configuration *c)
{
    for (size_t a = 0; a < axis_count; a++) {
        for (size_t b = a + 1; b < axis_count; b++) {
            p->state[a][c->value[a]][b][c->value[b]] = PAIR_COVERED;
        }
    }
}

// The best of some random configurations that have value i of axis a and value j of axis b.
static bool candidate(pairs *p, size_t a, uint8_t i, size_t b, uint8_t j, configuration *best)
{
    axis_set fixed = {0};
    fixed.has[a] = fixed.has[b] = true;
    size_t most = 0;
    for (int n = 0; n < CANDIDATES; n++) {
        configuration c = {{0}};
        for (size_t k = 0; k < axis_count && n > 0; k++) {
            c.value[k] = (uint8_t)random_below(&p->random, axis_value_count(&axes[k]));
        }
        c.value[a] = i;
        c.value[b] = j;
        const size_t open = configuration_mend(&c, &fixed) ? count_open(p, &c) : 0;
        if (open > most) {
            most = open;
            *best = c;
        }
    }
    return most > 0;
}

static void append(configuration **list, size_t *count, configuration c)
{
    *list = realloc(*list, (*count + 1) * sizeof **list);
    if (*list == NULL) {
        exit(2);
    }
    (*list)[(*count)++] = c;
}

static void visit_pairs(pairs *p, void (*visit)(pairs *, size_t, uint8_t, size_t, uint8_t, void *),
                        void *context)
{
    for (size_t a = 0; a < axis_count; a++) {
        for (uint8_t i = 0; axes[a].values[i] != NULL; i++) {
            for (size_t b = a + 1; b < axis_count; b++) {
                for (uint8_t j = 0; axes[b].values[j] != NULL; j++) {
                    visit(p, a, i, b, j, context);
                }
            }
        }
    }
}

static void cover_pair(pairs *p, size_t a, uint8_t i, size_t b, uint8_t j, void *context)
{
    covering *out = context;
    configuration c;
    out->pairs++;
    if (p->state[a][i][b][j] == PAIR_OPEN) {
        if (candidate(p, a, i, b, j, &c)) {
            cover(p, &c);
            append(&out->list, &out->count, c);
        } else {
            p->state[a][i][b][j] = PAIR_ILLEGAL;
            c = (configuration){{0}};
            c.value[a] = i;
            c.value[b] = j;
            if (a > 0) {
                append(&out->illegal, &out->illegal_count, c);
            }
        }
    }
    out->illegal_pairs += p->state[a][i][b][j] == PAIR_ILLEGAL;
}

covering covering_make(uint64_t seed)
{
    covering out = {.list = NULL};
    pairs *p = calloc(1, sizeof *p);
    if (p == NULL) {
        exit(2);
    }
    (void)covering_axes(NULL);
    p->random = seed;
    visit_pairs(p, cover_pair, &out);
    free(p);
    return out;
}

void covering_deinit(covering *c)
{
    free(c->list);
    free(c->illegal);
    *c = (covering){.list = NULL};
}

void covering_visit_illegal(const covering *c,
                            void (*visit)(const configuration *pair, const hr_knobs *knobs))
{
    (void)covering_axes(NULL);
    for (size_t k = 0; k < c->illegal_count; k++) {
        hr_knobs knobs = base_knobs();
        configuration_apply(&c->illegal[k], &knobs);
        visit(&c->illegal[k], &knobs);
    }
}
