// SPDX-License-Identifier: Apache-2.0
#include "insight/fit_sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"

enum { WORDS_MAX = 6, FARTHEST = 4, TWICES = 2 * FARTHEST + 1 };

// One knob; without words every choice of its row is one.
typedef struct trade {
    hr_knob_id id;
    const char *words[WORDS_MAX];
} trade;

// What usually gives most comes first.
static const trade trades[] = {
    {HR_KNOB_EXECUTION_MODE, {NULL}},
    {HR_KNOB_CHECKPOINT_STRATEGY, {"none", "selective", "blocks", "sqrt", "every:2"}},
    {HR_KNOB_OPTIMIZER_FUSED_BACKWARD, {NULL}},
    {HR_KNOB_OFFLOAD_OPTIMIZER, {NULL}},
    {HR_KNOB_OFFLOAD_ACTIVATIONS, {NULL}},
    {HR_KNOB_OFFLOAD_PREFETCH, {"0", "1", "2", "4"}},
    {HR_KNOB_ALLOCATOR_KIND, {"bfc", "caching", "async", "direct", "static"}}, // a plan knows what it says
    {HR_KNOB_ALLOCATOR_GROWTH, {NULL}},
    {HR_KNOB_ALLOCATOR_EXPANDABLE_SEGMENTS, {NULL}},
    {HR_KNOB_EXECUTION_INPLACE, {NULL}},
    {HR_KNOB_EXECUTION_FUSE, {NULL}},
    {HR_KNOB_WORKSPACE_LIMIT, {"none", "64MiB", "16MiB", "0B"}},
};
enum { TRADES = sizeof trades / sizeof *trades, BATCH = TRADES, DIMENSIONS };

// A point, or what was tried and is none: which word of each dimension, AS_ASKED where it is not turned.
typedef struct node {
    int8_t word[DIMENSIONS]; // of BATCH: how often size is halved and accumulate doubled, and FARTHEST
    uint8_t turns;
    bool is_point, expanded;
    uint64_t peak_bytes;
    double seconds; // 0: the device cannot tell
} node;

enum { AS_ASKED = -1 };

struct fit_sweep {
    hr_knobs knobs;
    node nodes[FIT_PLANS_MAX];
    uint32_t count, points;
    uint32_t parent; // is being expanded
    int dimension;   // its next turn
    int8_t word;
    bool has_pending;
    hr_fit_point pending; // found, but perhaps the last
};

hr_status fit_sweep_create(const hr_knobs *knobs, fit_sweep **out, hr_err *err)
{
    fit_sweep *s = hr_calloc(1, sizeof *s);
    *out = s;
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a sweep of %d plans", (int)FIT_PLANS_MAX);
    }
    s->knobs = *knobs;
    return HR_OK;
}

void fit_sweep_destroy(fit_sweep *s)
{
    hr_free(s);
}

// ---- turns ----------------------------------------------------------------------------------------------------

static const char *word_of(int dimension, int8_t word)
{
    const trade *t = &trades[dimension];
    if (t->words[0] != NULL) {
        return word < WORDS_MAX ? t->words[word] : NULL;
    }
    return word <= HR_KNOB_CHOICES_MAX ? hr_knob_rows(NULL)[t->id].choices[word] : NULL;
}

static bool has_word(int dimension, int8_t word)
{
    return dimension == BATCH ? word < TWICES : word_of(dimension, word) != NULL;
}

// size * accumulate stays.
static bool turn_batch(hr_knobs *knobs, int halvings, char *pairs, size_t size)
{
    const int64_t wide = hr_knob_int(knobs, HR_KNOB_BATCH_SIZE);
    const int64_t often = hr_knob_int(knobs, HR_KNOB_BATCH_ACCUMULATE);
    const int64_t factor = INT64_C(1) << (halvings < 0 ? -halvings : halvings);
    char samples[24], rounds[24];
    if (halvings == 0 || (halvings < 0 ? often : wide) % factor != 0) {
        return false;
    }
    (void)snprintf(samples, sizeof samples, "%" PRId64, halvings < 0 ? wide * factor : wide / factor);
    (void)snprintf(rounds, sizeof rounds, "%" PRId64, halvings < 0 ? often / factor : often * factor);
    (void)snprintf(pairs, size, "batch.size=%s batch.accumulate=%s", samples, rounds);
    return hr_knobs_set(knobs, HR_KNOB_BATCH_SIZE, samples, NULL) == HR_OK &&
           hr_knobs_set(knobs, HR_KNOB_BATCH_ACCUMULATE, rounds, NULL) == HR_OK;
}

static bool turn_knob(hr_knobs *knobs, int dimension, int8_t word, char *pair, size_t size)
{
    const hr_knob_id id = trades[dimension].id;
    char before[HR_KNOB_TEXT_MAX], after[HR_KNOB_TEXT_MAX];
    (void)hr_knob_format(knobs, id, before);
    if (hr_knobs_set(knobs, id, word_of(dimension, word), NULL) != HR_OK) {
        return false;
    }
    (void)snprintf(pair, size, "%s=%s", hr_knob_rows(NULL)[id].key, hr_knob_format(knobs, id, after));
    return strcmp(before, after) != 0;
}

// The node's knobs and its pairs; false when a turn is none, or the pairs have no room.
static bool turn(const fit_sweep *s, const node *n, hr_knobs *knobs, char *pairs, size_t size)
{
    char pair[2 * HR_KNOB_TEXT_MAX];
    size_t length = 0;
    *knobs = s->knobs;
    pairs[0] = '\0';
    for (int k = 0; k < DIMENSIONS; k++) {
        if (n->word[k] == AS_ASKED) {
            continue;
        }
        if (!(k == BATCH ? turn_batch(knobs, n->word[k] - FARTHEST, pair, sizeof pair)
                         : turn_knob(knobs, k, n->word[k], pair, sizeof pair))) {
            return false;
        }
        length += (size_t)snprintf(pairs + length, size - length, "%s%s", length > 0 ? " " : "", pair);
        if (length >= size) {
            return false;
        }
    }
    return true;
}

// ---- which point next -----------------------------------------------------------------------------------------

static bool beats(const node *a, const node *b)
{
    return a->peak_bytes <= b->peak_bytes && a->seconds <= b->seconds &&
           (a->peak_bytes < b->peak_bytes || a->seconds < b->seconds);
}

static bool is_beaten(const fit_sweep *s, const node *n)
{
    for (uint32_t k = 0; k < s->count; k++) {
        if (s->nodes[k].is_point && beats(&s->nodes[k], n)) {
            return true;
        }
    }
    return false;
}

// False: every point has been expanded.
static bool choose_parent(fit_sweep *s)
{
    uint32_t best = FIT_PLANS_MAX, best_cost = UINT32_MAX;
    for (uint32_t k = 0; k < s->count; k++) {
        const node *n = &s->nodes[k];
        const uint32_t cost = n->turns + (n->is_point && is_beaten(s, n) ? 1U + DIMENSIONS : 0);
        if (n->is_point && !n->expanded && cost < best_cost) {
            best = k;
            best_cost = cost;
        }
    }
    if (best == FIT_PLANS_MAX) {
        return false;
    }
    s->nodes[best].expanded = true;
    s->parent = best;
    s->dimension = 0;
    s->word = 0;
    return true;
}

static bool was_tried(const fit_sweep *s, const node *n)
{
    for (uint32_t k = 0; k < s->count; k++) {
        if (memcmp(s->nodes[k].word, n->word, sizeof n->word) == 0) {
            return true;
        }
    }
    return false;
}

// The next combination that is legal and was not tried; false: there is none.
static bool next_candidate(fit_sweep *s, node *n, hr_knobs *knobs, hr_fit_point *point)
{
    for (;;) {
        if (s->dimension == DIMENSIONS && !choose_parent(s)) {
            return false;
        }
        const node *parent = &s->nodes[s->parent];
        const int dimension = s->dimension;
        const int8_t word = s->word++;
        if (!has_word(dimension, word)) {
            s->dimension++;
            s->word = 0;
            continue;
        }
        *n = (node){.turns = (uint8_t)(parent->turns + 1)};
        memcpy(n->word, parent->word, sizeof n->word);
        n->word[dimension] = word;
        if (parent->word[dimension] == AS_ASKED && !was_tried(s, n) &&
            turn(s, n, knobs, point->knobs, sizeof point->knobs) && hr_knobs_validate(knobs, NULL) == HR_OK) {
            return true;
        }
    }
}

// ---- plans ----------------------------------------------------------------------------------------------------

static void measure(node *n, const hr_whatif *plan)
{
    n->peak_bytes = plan->peak_in_use_bytes;
    n->seconds = isnan(plan->step_seconds) ? 0 : plan->step_seconds;
}

static fit_sweep_result begin(fit_sweep *s, const hr_planner *planner, hr_err *err)
{
    node *n = &s->nodes[0];
    *n = (node){.is_point = true};
    memset(n->word, AS_ASKED, sizeof n->word);
    s->pending = (hr_fit_point){.knobs = ""};
    if (hr_planner_plan(planner, &s->knobs, &s->pending.plan, err) != HR_OK) {
        return FIT_SWEEP_REFUSED;
    }
    measure(n, &s->pending.plan);
    s->count = s->points = 1;
    s->dimension = DIMENSIONS;
    s->has_pending = true;
    return FIT_SWEEP_WORKED;
}

static bool same_as_parent(const fit_sweep *s, const node *n)
{
    const node *parent = &s->nodes[s->parent];
    return n->peak_bytes == parent->peak_bytes && !(n->seconds < parent->seconds) &&
           !(n->seconds > parent->seconds);
}

fit_sweep_result fit_sweep_advance(fit_sweep *s, const hr_planner *planner, hr_fit_point *point, hr_err *err)
{
    node n;
    hr_knobs knobs;
    hr_fit_point found = {.knobs = ""};
    if (!s->has_pending) {
        return begin(s, planner, err);
    }
    if (s->count == FIT_PLANS_MAX || s->points == HR_FIT_POINTS_MAX ||
        !next_candidate(s, &n, &knobs, &found)) {
        *point = s->pending;
        return FIT_SWEEP_LAST;
    }
    const bool planned = hr_planner_plan(planner, &knobs, &found.plan, NULL) == HR_OK;
    measure(&n, &found.plan);
    n.is_point = planned && !same_as_parent(s, &n);
    s->nodes[s->count++] = n;
    if (!n.is_point) {
        return FIT_SWEEP_WORKED;
    }
    s->points++;
    *point = s->pending;
    s->pending = found;
    return FIT_SWEEP_POINT;
}
