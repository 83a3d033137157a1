// SPDX-License-Identifier: Apache-2.0
#include "insight/fit_sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "insight/fit_change.h"

enum { WORDS_MAX = 6, FARTHEST = 4, TWICES = 2 * FARTHEST + 1 };

// One knob; without words every choice of its row is one, of the optimizer those of insight/fit_change.h.
typedef struct trade {
    hr_knob_id id;
    const char *words[WORDS_MAX];
} trade;

// What usually gives most comes first.
static const trade trades[] = {
    {.id = HR_KNOB_EXECUTION_MODE},
    {.id = HR_KNOB_CHECKPOINT_STRATEGY, .words = {"none", "selective", "blocks", "sqrt", "every:2"}},
    {.id = HR_KNOB_PRECISION_POLICY},
    {.id = HR_KNOB_OPTIMIZER_KIND},
    {.id = HR_KNOB_OPTIMIZER_FUSED_BACKWARD},
    {.id = HR_KNOB_OFFLOAD_OPTIMIZER},
    {.id = HR_KNOB_OFFLOAD_ACTIVATIONS},
    {.id = HR_KNOB_OFFLOAD_PREFETCH, .words = {"0", "1", "2", "4"}},
    {.id = HR_KNOB_ALLOCATOR_KIND,
     .words = {"bfc", "caching", "async", "direct", "static"}}, // a plan knows what it says
    {.id = HR_KNOB_ALLOCATOR_GROWTH},
    {.id = HR_KNOB_ALLOCATOR_EXPANDABLE_SEGMENTS},
    {.id = HR_KNOB_EXECUTION_INPLACE},
    {.id = HR_KNOB_EXECUTION_FUSE},
    {.id = HR_KNOB_WORKSPACE_LIMIT, .words = {"none", "64MiB", "16MiB", "0B"}},
    {.id = HR_KNOB_PRECISION_TF32},
};
enum { TRADES = sizeof trades / sizeof *trades, BATCH = TRADES, DIMENSIONS };

// Two ways to a further turn, which take turns: of what leaves alone what is learned, and of what a permission adds.
enum { OF_MEMORY, OF_LEARNING, WALKS };

typedef struct walk {
    uint32_t parent; // is being expanded
    int dimension;   // its next turn
    int8_t word;
} walk;

// A point, or what was tried and is none: which word of each dimension, AS_ASKED where it is not turned.
typedef struct node {
    int8_t word[DIMENSIONS]; // of BATCH: how often size is halved and accumulate doubled, and FARTHEST
    uint8_t turns;
    bool is_point, expanded[WALKS];
    uint64_t peak_bytes;
    double seconds; // 0: the device cannot tell
} node;

enum { AS_ASKED = -1 };

struct fit_sweep {
    hr_knobs knobs;
    hr_fit_permission permission;
    node nodes[FIT_PLANS_MAX];
    uint32_t count, points;
    walk walks[WALKS];
    int last_walk; // what the last plan came from
    bool has_pending;
    hr_fit_point pending; // found, but perhaps the last
};

hr_status fit_sweep_create(const hr_knobs *knobs, hr_fit_permission permission, fit_sweep **out, hr_err *err)
{
    fit_sweep *s = hr_calloc(1, sizeof *s);
    *out = s;
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a sweep of %d plans", (int)FIT_PLANS_MAX);
    }
    s->knobs = *knobs;
    s->permission = permission;
    return HR_OK;
}

void fit_sweep_destroy(fit_sweep *s)
{
    hr_free(s);
}

// ---- turns ----------------------------------------------------------------------------------------------------

static const char *word_of(const fit_sweep *s, int dimension, int8_t word)
{
    const trade *t = &trades[dimension];
    // A step as a framework holds it stays in that framework, on the allocator that it is asked about.
    const bool is_bound =
        t->id == HR_KNOB_ALLOCATOR_KIND && !hr_knob_is(&s->knobs, HR_KNOB_EXECUTION_AS, "headroom");
    if (is_bound || hr_fit_permission_for(t->id) > s->permission) {
        return NULL;
    }
    if (t->id == HR_KNOB_OPTIMIZER_KIND) {
        return fit_lighter_optimizer(&s->knobs, word);
    }
    if (t->words[0] != NULL) {
        return word < WORDS_MAX ? t->words[word] : NULL;
    }
    return word <= HR_KNOB_CHOICES_MAX ? hr_knob_rows(NULL)[t->id].choices[word] : NULL;
}

static bool has_word(const fit_sweep *s, int dimension, int8_t word)
{
    return dimension == BATCH ? word < TWICES : word_of(s, dimension, word) != NULL;
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

static bool turn_knob(hr_knobs *knobs, hr_knob_id id, const char *word, char *pair, size_t size)
{
    char before[HR_KNOB_TEXT_MAX], after[HR_KNOB_TEXT_MAX];
    (void)hr_knob_format(knobs, id, before);
    if (hr_knobs_set(knobs, id, word, NULL) != HR_OK) {
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
                         : turn_knob(knobs, trades[k].id, word_of(s, k, n->word[k]), pair, sizeof pair))) {
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

static bool is_learning(int dimension)
{
    return dimension != BATCH && hr_fit_permission_for(trades[dimension].id) != HR_PERMIT_NOTHING;
}

// Nothing is beaten by what changes more, or else, of what is learned.
static bool beats(const node *a, const node *b)
{
    for (int k = 0; k < DIMENSIONS; k++) {
        if (is_learning(k) && a->word[k] != AS_ASKED && a->word[k] != b->word[k]) {
            return false;
        }
    }
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

static int learning_turns(const node *n)
{
    int turns = 0;
    for (int k = 0; k < DIMENSIONS; k++) {
        turns += is_learning(k) && n->word[k] != AS_ASKED;
    }
    return turns;
}

// What changes what is learned is first turned from the best of what does not; only then the other knobs beside it.
static uint32_t cost_of(const fit_sweep *s, const node *n, int which)
{
    const bool late = n->turns > 0 && (is_beaten(s, n) || (which == OF_MEMORY && learning_turns(n) > 0));
    return n->turns + (late ? 1U + DIMENSIONS : 0);
}

// False: every point has been expanded.
static bool choose_parent(fit_sweep *s, int which)
{
    uint32_t best = FIT_PLANS_MAX, best_cost = UINT32_MAX;
    for (uint32_t k = 0; k < s->count; k++) {
        const node *n = &s->nodes[k];
        const bool is_open = n->is_point && !n->expanded[which];
        const uint32_t cost = is_open ? cost_of(s, n, which) : UINT32_MAX;
        if (is_open && cost < best_cost) {
            best = k;
            best_cost = cost;
        }
    }
    if (best == FIT_PLANS_MAX) {
        return false;
    }
    s->nodes[best].expanded[which] = true;
    s->walks[which] = (walk){.parent = best};
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

// Turned alone, it needs more memory and no less time than what was asked about: so it does beside other turns.
static bool is_hopeless(const fit_sweep *s, int dimension, int8_t word)
{
    const node *asked = &s->nodes[0];
    for (uint32_t k = 1; k < s->count; k++) {
        const node *n = &s->nodes[k];
        if (n->turns == 1 && n->word[dimension] == word) {
            return n->peak_bytes > asked->peak_bytes && n->seconds >= asked->seconds;
        }
    }
    return false;
}

static bool is_wanted(const fit_sweep *s, int which, const node *parent, int dimension, int8_t word)
{
    return is_learning(dimension) == (which == OF_LEARNING) && parent->word[dimension] == AS_ASKED &&
           (which == OF_MEMORY || !is_hopeless(s, dimension, word));
}

// The next combination of a walk that is legal and was not tried; false: there is none.
static bool next_of(fit_sweep *s, int which, node *n, hr_knobs *knobs, hr_fit_point *point)
{
    walk *w = &s->walks[which];
    for (;;) {
        if (w->dimension == DIMENSIONS && !choose_parent(s, which)) {
            return false;
        }
        const node *parent = &s->nodes[w->parent];
        const int dimension = w->dimension;
        const int8_t word = w->word++;
        if (!has_word(s, dimension, word)) {
            w->dimension++;
            w->word = 0;
            continue;
        }
        *n = (node){.turns = (uint8_t)(parent->turns + 1)};
        memcpy(n->word, parent->word, sizeof n->word);
        n->word[dimension] = word;
        if (is_wanted(s, which, parent, dimension, word) && !was_tried(s, n) &&
            turn(s, n, knobs, point->knobs, sizeof point->knobs) && hr_knobs_validate(knobs, NULL) == HR_OK) {
            return true;
        }
    }
}

static bool next_candidate(fit_sweep *s, node *n, hr_knobs *knobs, hr_fit_point *point)
{
    for (int k = 0; k < WALKS; k++) {
        s->last_walk = (s->last_walk + 1) % WALKS;
        if (next_of(s, s->last_walk, n, knobs, point)) {
            return true;
        }
    }
    return false;
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
    s->walks[OF_MEMORY].dimension = s->walks[OF_LEARNING].dimension = DIMENSIONS;
    s->last_walk = OF_LEARNING;
    s->has_pending = true;
    return FIT_SWEEP_WORKED;
}

static bool same_as_parent(const fit_sweep *s, const node *n)
{
    const node *parent = &s->nodes[s->walks[s->last_walk].parent];
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
