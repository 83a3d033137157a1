// SPDX-License-Identifier: Apache-2.0
#include "insight/fit_search.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/host_mem.h"
#include "insight/fit_ahead.h"
#include "insight/fit_turns.h"

enum {
    NODES_MAX = 8192, // combinations that were looked at, refused ones too
    SLOTS = 2 * NODES_MAX,
    LADDER = 12,
    KICKS = 4,    // of a sort
    BUDGETS = 3,  // steps that are recomputed under a budget, each: it takes ten plans and more
    FARTHEST = 4, // limits that such a step needs without it
    NOTHING = -1,
    NO_MEND = FIT_AS_ASKED - 1
};

// A combination that was tried.
typedef struct node {
    fit_combination c;
    bool planned, fits;
    bool has_mends;
    int8_t mends[FIT_DIMENSIONS]; // of a refused one: to which word alone a dimension makes it legal; NO_MEND
    uint64_t peak_bytes, over_bytes; // over: missing, of the device or the host
    double seconds;                  // 0: the device cannot tell
} node;

// FITS: the fastest that does. BELOW: the fastest with a peak of at most peak_bytes; 0: the least peak.
typedef struct goal {
    enum { GOAL_FITS, GOAL_BELOW } kind;
    bool learns; // may turn what changes what is learned
    uint64_t peak_bytes;
} goal;

// How far a node is from a goal: the less, the better, in this order.
typedef struct distance {
    uint64_t over_bytes;
    double seconds;
    uint64_t peak_bytes;
} distance;

struct fit_search {
    hr_knobs knobs;
    hr_fit_wish wish;
    bool normalises_batches;
    node nodes[NODES_MAX];
    int16_t slots[SLOTS];    // by hash; 0: empty, otherwise 1 + node
    int count, most, points; // of at most `most` nodes
    uint64_t
        nearest_bytes[2]; // of what learns the same, of all: the least that is missing; 0: something fits
    int goal_at;          // of the next one
    goal goal;
    int place, centre; // the best so far, and whose turns are being tried
    int kicks[2 * KICKS], kick_count, kick_at;
    int dimension, word; // the next turn of the centre
    int mending, mend; // the refused one that was last, and which dimension is next to make it legal; NOTHING
    fit_ahead *ahead;
    uint64_t limit_bytes; // of the device, for the knobs as asked; 0: none
    int budgets[BUDGETS], budget_count, budget_at,
        budget_goals; // nodes to recompute under it; goals they were chosen for
    bool has_pending;
    hr_fit_point pending; // found, but perhaps the last
};

hr_status fit_search_create(const hr_knobs *knobs, const hr_fit_wish *wish, bool normalises_batches,
                            fit_search **out, hr_err *err)
{
    fit_search *s = hr_calloc(1, sizeof *s);
    *out = s;
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a search of %d combinations", (int)NODES_MAX);
    }
    s->knobs = *knobs;
    s->wish = *wish;
    s->most = NODES_MAX;
    s->normalises_batches = normalises_batches;
    s->nearest_bytes[0] = s->nearest_bytes[1] = UINT64_MAX;
    const hr_status status = fit_ahead_create(wish->threads, &s->ahead, err);
    if (status != HR_OK) {
        hr_free(s);
        *out = NULL;
    }
    return status;
}

void fit_search_destroy(fit_search *s)
{
    if (s != NULL) {
        fit_ahead_destroy(s->ahead);
        hr_free(s);
    }
}

void fit_search_bound(fit_search *s, int most)
{
    s->most = most < NODES_MAX ? most : NODES_MAX;
}

int fit_search_looked_at(const fit_search *s)
{
    return s->count;
}

// ---- what was tried -------------------------------------------------------------------------------------------

static int16_t *slot_of(fit_search *s, const fit_combination *c)
{
    uint64_t at = hash64(c->word, sizeof c->word, 0) % SLOTS;
    while (s->slots[at] != 0 && memcmp(&s->nodes[s->slots[at] - 1].c, c, sizeof *c) != 0) {
        at = (at + 1) % SLOTS;
    }
    return &s->slots[at];
}

static int find(fit_search *s, const fit_combination *c)
{
    return *slot_of(s, c) - 1;
}

// For one more than those that are being planned.
static bool has_room(const fit_search *s)
{
    return (uint32_t)s->count + fit_ahead_left(s->ahead) < (uint32_t)s->most;
}

static void keep(fit_search *s, const node *n)
{
    s->nodes[s->count++] = *n;
    *slot_of(s, &n->c) = (int16_t)s->count;
}

static bool learns(const fit_search *s, const fit_combination *c)
{
    for (int k = 0; k < FIT_DIMENSIONS; k++) {
        if (c->word[k] != FIT_AS_ASKED && fit_is_learning(k, s->normalises_batches)) {
            return true;
        }
    }
    return false;
}

// ---- goals ----------------------------------------------------------------------------------------------------

static distance distance_to(const goal *g, const node *n)
{
    const uint64_t over_bytes = g->kind == GOAL_FITS            ? (n->fits ? 0 : n->over_bytes)
                                : n->peak_bytes > g->peak_bytes ? n->peak_bytes - g->peak_bytes
                                                                : 0;
    return (distance){over_bytes, n->seconds, n->peak_bytes};
}

static bool is_nearer(const goal *g, const node *a, const node *b)
{
    const distance x = distance_to(g, a), y = distance_to(g, b);
    if (x.over_bytes != y.over_bytes) {
        return x.over_bytes < y.over_bytes;
    }
    return x.seconds < y.seconds || (!(x.seconds > y.seconds) && x.peak_bytes < y.peak_bytes);
}

static bool is_open_to(const fit_search *s, const goal *g, const node *n)
{
    return n->planned && (g->learns || !learns(s, &n->c));
}

static int best_for(const fit_search *s, const goal *g)
{
    int best = 0;
    for (int k = 1; k < s->count; k++) {
        if (is_open_to(s, g, &s->nodes[k]) && is_nearer(g, &s->nodes[k], &s->nodes[best])) {
            best = k;
        }
    }
    return best;
}

// The goals, in order: each without, then with what a permission adds.
static bool goal_of(fit_search *s, int at, goal *g)
{
    const int rank = at / 2;
    *g = (goal){.kind = GOAL_FITS, .learns = at % 2 != 0};
    if (rank == 1) {
        *g = (goal){.kind = GOAL_BELOW, .learns = g->learns};
    } else if (rank >= 2 && rank < 2 + LADDER) {
        const double least =
            (double)s->nodes[best_for(s, &(goal){.kind = GOAL_BELOW, .learns = g->learns})].peak_bytes;
        const goal fastest = {.kind = GOAL_BELOW, .learns = g->learns, .peak_bytes = UINT64_MAX};
        const double most =
            fmax((double)s->nodes[best_for(s, &fastest)].peak_bytes, (double)s->nodes[0].peak_bytes);
        *g = (goal){.kind = GOAL_BELOW,
                    .learns = g->learns,
                    .peak_bytes = (uint64_t)(least * pow(most / least, (double)(rank - 1) / LADDER))};
    }
    return rank <= 2 + LADDER;
}

// ---- walking --------------------------------------------------------------------------------------------------

static void stand_at(fit_search *s, int centre)
{
    s->centre = centre;
    s->dimension = 0;
    s->word = FIT_AS_ASKED;
    s->mending = NOTHING;
}

static bool begin_goal(fit_search *s)
{
    do {
        if (!goal_of(s, s->goal_at++, &s->goal)) {
            return false;
        }
    } while (s->goal.learns && s->wish.permission == HR_PERMIT_NOTHING && !s->normalises_batches);
    s->place = best_for(s, &s->goal);
    s->kick_count = s->kick_at = 0;
    stand_at(s, s->place);
    return true;
}

// The next single turn of the centre that belongs to the goal, legal or not; false: there is none any more.
static bool next_single(fit_search *s, fit_combination *c)
{
    for (; s->dimension < FIT_DIMENSIONS; s->dimension++, s->word = FIT_AS_ASKED) {
        const int words = fit_words(&s->knobs, &s->wish, s->dimension);
        const bool is_open =
            words > 0 && (s->goal.learns || !fit_is_learning(s->dimension, s->normalises_batches));
        while (is_open && s->word < words) {
            *c = s->nodes[s->centre].c;
            const int8_t before = c->word[s->dimension];
            c->word[s->dimension] = (int8_t)s->word++;
            if (c->word[s->dimension] != before) {
                return true;
            }
        }
    }
    return false;
}

static void mend_next(fit_search *s, int at)
{
    s->mending = at >= 0 && s->nodes[at].has_mends ? at : NOTHING;
    s->mend = 0;
}

// The turn that was refused, with one more that makes it legal; false: there is no other.
static bool next_mended(fit_search *s, fit_combination *c)
{
    while (s->mending != NOTHING && s->mend < FIT_DIMENSIONS) {
        const node *n = &s->nodes[s->mending];
        const int with = s->mend++;
        if (with != s->dimension && n->mends[with] != NO_MEND) {
            *c = n->c;
            c->word[with] = n->mends[with];
            return true;
        }
    }
    s->mending = NOTHING;
    return false;
}

// The next turn of the centre; behind one that is refused those with which it is not. False: there is none any more.
static bool next_turn(fit_search *s, fit_combination *c)
{
    if (next_mended(s, c)) {
        return true;
    }
    const bool any = next_single(s, c);
    mend_next(s, any ? find(s, c) : NOTHING);
    return any;
}

// The best single turn of the centre, of those that were planned; NOTHING: none is.
static int best_turn(fit_search *s)
{
    int best = NOTHING;
    fit_combination c;
    stand_at(s, s->centre);
    while (next_turn(s, &c)) {
        const int at = find(s, &c);
        if (at >= 0 && s->nodes[at].planned &&
            (best == NOTHING || is_nearer(&s->goal, &s->nodes[at], &s->nodes[best]))) {
            best = at;
        }
    }
    return best;
}

// Of two places that are faster than where no turn is better: which is tried first.
static bool is_sooner(const goal *g, const node *a, const node *b)
{
    const uint64_t x = distance_to(g, a).over_bytes, y = distance_to(g, b).over_bytes;
    return x < y || (x == y && a->seconds < b->seconds);
}

// A list of at most KICKS, what goes before others first.
static void insert(const fit_search *s, int list[KICKS], int *count, int at,
                   bool (*goes_before)(const goal *g, const node *a, const node *b))
{
    int k = *count < KICKS ? (*count)++ : KICKS;
    for (; k > 0 && goes_before(&s->goal, &s->nodes[at], &s->nodes[list[k - 1]]); k--) {
        if (k < KICKS) {
            list[k] = list[k - 1];
        }
    }
    if (k < KICKS) {
        list[k] = at;
    }
}

static bool is_same(const node *a, const node *b)
{
    return a->peak_bytes == b->peak_bytes && !(a->seconds < b->seconds) && !(a->seconds > b->seconds);
}

// Between the ends of a frontier it would take as many plans for each rung.
static bool tries_nearest(const fit_search *s)
{
    return s->goal.kind == GOAL_FITS || s->goal.peak_bytes == 0;
}

// What is faster, and what comes nearest, though both are worse: a second turn may be missing. What changes nothing is missing no turn,
// unless a knob says how it is done.
static void choose_kicks(fit_search *s)
{
    fit_combination c;
    int near[KICKS], near_count = 0;
    s->kick_count = s->kick_at = 0;
    stand_at(s, s->place);
    while (next_turn(s, &c)) {
        const int at = find(s, &c);
        if (at < 0 || !s->nodes[at].planned) {
            continue;
        }
        if (s->nodes[at].seconds < s->nodes[s->place].seconds) {
            insert(s, s->kicks, &s->kick_count, at, is_sooner);
        } else if (tries_nearest(s) &&
                   (!is_same(&s->nodes[at], &s->nodes[s->place]) || fit_has_manner(s->dimension))) {
            insert(s, near, &near_count, at, is_nearer);
        }
    }
    for (int k = 0; k < near_count; k++) {
        s->kicks[s->kick_count++] = near[k];
    }
}

// All turns of the centre are known: where to stand next. False: the goal is as near as it comes.
static bool move_on(fit_search *s)
{
    const int best = best_turn(s);
    if (best != NOTHING && is_nearer(&s->goal, &s->nodes[best], &s->nodes[s->place])) {
        s->place = best;
        s->kick_count = 0;
        stand_at(s, best);
        return true;
    }
    if (s->centre == s->place) {
        choose_kicks(s);
    }
    if (s->kick_at == s->kick_count) {
        return false;
    }
    stand_at(s, s->kicks[s->kick_at++]);
    return true;
}

// ---- plans ----------------------------------------------------------------------------------------------------

static void measure(node *n, const hr_whatif *plan)
{
    n->planned = true;
    n->fits = plan->fits;
    n->peak_bytes = plan->peak_in_use_bytes;
    n->over_bytes = hr_whatif_missing_bytes(plan);
    n->seconds = isnan(plan->step_seconds) ? 0 : plan->step_seconds;
}

static void note_nearest(fit_search *s, const node *n)
{
    const uint64_t over_bytes = n->fits ? 0 : n->over_bytes;
    for (int k = learns(s, &n->c); k < 2; k++) {
        s->nearest_bytes[k] = over_bytes < s->nearest_bytes[k] ? over_bytes : s->nearest_bytes[k];
    }
}

// What may be nearer than all before it is planned to the byte, so that the nearest is: others miss at least as much.
static uint64_t nearer_than(const fit_search *s, const fit_combination *c)
{
    const uint64_t same_bytes = learns(s, c) ? 0 : s->nearest_bytes[0], any_bytes = s->nearest_bytes[1];
    return same_bytes > any_bytes ? same_bytes : any_bytes;
}

// The word of this dimension, as asked first, with which the combination is legal. What changes what is learned is only taken back.
static int8_t mend_by(const fit_search *s, fit_combination c, int dimension)
{
    hr_knobs knobs;
    char pairs[sizeof s->pending.knobs];
    const int8_t before = c.word[dimension];
    const bool is_learning = fit_is_learning(dimension, s->normalises_batches);
    const int words = is_learning ? 0 : fit_words(&s->knobs, &s->wish, dimension);
    for (int word = FIT_AS_ASKED; word < words; word++) {
        c.word[dimension] = (int8_t)word;
        if (word != before && fit_turn(&s->knobs, &c, &knobs, pairs, sizeof pairs)) {
            return (int8_t)word;
        }
    }
    return NO_MEND;
}

// One that is refused is noted, with what makes it legal: "accumulate, and do not update as gradients come".
static void keep_refused(fit_search *s, node *n)
{
    if (has_room(s)) {
        for (int k = 0; k < FIT_DIMENSIONS; k++) {
            n->mends[k] = mend_by(s, n->c, k);
            n->has_mends = n->has_mends || n->mends[k] != NO_MEND;
        }
        keep(s, n);
        mend_next(s, s->count - 1);
    }
}

// Places the next combination that was not tried; one that is refused is passed over. False: the centre has none left.
static bool place_next(fit_search *s, fit_candidate *to)
{
    node n = {.planned = false};
    while (next_turn(s, &n.c)) {
        if (find(s, &n.c) >= 0) {
            continue;
        }
        if (fit_turn(&s->knobs, &n.c, &to->knobs, to->point.knobs, sizeof to->point.knobs)) {
            to->c = n.c;
            to->point.normalises_batches = s->normalises_batches;
            to->exact_below_bytes = nearer_than(s, &n.c);
            return true;
        }
        n.has_mends = false;
        keep_refused(s, &n);
    }
    return false;
}

// As many as there is room for of one place's: where to stand next depends on what they come to.
static void place_turns(fit_search *s)
{
    fit_candidate *to;
    while (has_room(s) && (to = fit_ahead_place(s->ahead)) != NULL) {
        if (!place_next(s, to)) {
            fit_ahead_drop(s->ahead);
            return;
        }
    }
}

// ---- budgets --------------------------------------------------------------------------------------------------

// False: there is no room for it now.
static bool place_budget(fit_search *s, int at)
{
    const fit_combination c = fit_under_budget(&s->nodes[at].c);
    fit_candidate *to = has_room(s) ? fit_ahead_place(s->ahead) : NULL;
    if (to == NULL) {
        return false;
    }
    to->c = c;
    to->point.normalises_batches = s->normalises_batches;
    if (find(s, &c) >= 0 || !fit_turn_to_budget(&s->knobs, &c, s->limit_bytes, &to->knobs, to->point.knobs,
                                                sizeof to->point.knobs)) {
        fit_ahead_drop(s->ahead);
    }
    return true;
}

// Faster than what is best, and not so far from the limit that there were no hope.
static bool is_hopeful(const fit_search *s, const goal *g, int at, int best)
{
    const node *n = &s->nodes[at], *b = &s->nodes[best];
    return is_open_to(s, g, n) && !n->fits && !fit_has_checkpoints(&n->c) && n->seconds > 0 &&
           n->peak_bytes / FARTHEST <= s->limit_bytes && (!b->fits || n->seconds < b->seconds);
}

// The fastest that takes visibly longer than `from`; of those that take as long what needs least. NOTHING: there is none.
static int next_hopeful(const fit_search *s, const goal *g, int best, double from)
{
    const double visible = 1.001;
    int next = NOTHING;
    for (int k = 0; k < s->count; k++) {
        const node *n = &s->nodes[k], *other = &s->nodes[next == NOTHING ? 0 : next];
        if (n->seconds > from * visible && is_hopeful(s, g, k, best) &&
            (next == NOTHING || n->seconds < other->seconds ||
             (!(n->seconds > other->seconds) && n->peak_bytes < other->peak_bytes))) {
            next = k;
        }
    }
    return next;
}

// Of the best its own checkpoints, and of what misses the fastest, are tried under a budget that is the limit.
static void choose_budgets(fit_search *s)
{
    const goal g = {.kind = GOAL_FITS, .learns = s->budget_goals++ > 0};
    const int best = best_for(s, &g);
    s->budget_count = s->budget_at = 0;
    if (fit_has_checkpoints(&s->nodes[best].c)) {
        s->budgets[s->budget_count++] = best;
    }
    int hopeful = next_hopeful(s, &g, best, 0);
    while (hopeful != NOTHING && s->budget_count < BUDGETS) {
        s->budgets[s->budget_count++] = hopeful;
        hopeful = next_hopeful(s, &g, best, s->nodes[hopeful].seconds);
    }
}

// False: all were tried.
static bool place_budgets(fit_search *s)
{
    const bool may = s->limit_bytes > 0 && s->nodes[0].seconds > 0 && fit_can_budget(&s->knobs, &s->wish);
    for (;;) {
        while (s->budget_at < s->budget_count && place_budget(s, s->budgets[s->budget_at])) {
            s->budget_at++;
        }
        if (fit_ahead_left(s->ahead) > 0) {
            return true;
        }
        if (!has_room(s) || !may || s->budget_goals == 2) {
            return false;
        }
        choose_budgets(s);
    }
}

// The next combination, planned. NULL: there is none.
static const fit_candidate *next_candidate(fit_search *s, const hr_planner *planner)
{
    bool goes_on = true;
    while (goes_on && fit_ahead_left(s->ahead) == 0 && s->count < s->most) {
        place_turns(s);
        if (fit_ahead_left(s->ahead) > 0) {
            fit_ahead_plan(s->ahead, planner);
        } else {
            goes_on = move_on(s) || begin_goal(s);
        }
        if (!goes_on && place_budgets(s)) {
            fit_ahead_plan(s->ahead, planner);
        }
    }
    return fit_ahead_next(s->ahead);
}

static void take_plan(fit_search *s, const fit_candidate *c, node *n, hr_fit_point *found)
{
    *n = (node){.c = c->c};
    *found = c->point;
    if (!c->planned) {
        return;
    }
    measure(n, &found->plan);
    if (c->has_exact && n->over_bytes < nearer_than(s, &n->c)) {
        found->plan = c->exact;
        measure(n, &found->plan);
    }
    note_nearest(s, n);
}

static fit_search_result begin(fit_search *s, const hr_planner *planner, hr_err *err)
{
    node n = {.c = fit_as_asked()};
    s->pending = (hr_fit_point){.knobs = "", .normalises_batches = s->normalises_batches};
    const hr_status status = hr_planner_plan(planner, &s->knobs, &s->pending.plan, err);
    if (status != HR_OK) {
        return status == HR_INTERRUPTED ? FIT_SEARCH_WORKED : FIT_SEARCH_REFUSED;
    }
    measure(&n, &s->pending.plan);
    note_nearest(s, &n);
    keep(s, &n);
    s->limit_bytes = s->pending.plan.limit_bytes;
    s->points = 1;
    s->has_pending = begin_goal(s);
    return FIT_SEARCH_WORKED;
}

fit_search_result fit_search_advance(fit_search *s, const hr_planner *planner, hr_fit_point *point,
                                     hr_err *err)
{
    node n;
    hr_fit_point found;
    if (!s->has_pending) {
        return begin(s, planner, err);
    }
    const fit_candidate *c = s->points < HR_FIT_POINTS_MAX ? next_candidate(s, planner) : NULL;
    if (c == NULL) {
        *point = s->pending;
        return FIT_SEARCH_LAST;
    }
    if (c->given_up) {
        return FIT_SEARCH_WORKED;
    }
    take_plan(s, c, &n, &found);
    keep(s, &n);
    if (!n.planned || is_same(&n, &s->nodes[s->centre])) {
        return FIT_SEARCH_WORKED;
    }
    s->points++;
    *point = s->pending;
    s->pending = found;
    return FIT_SEARCH_POINT;
}
