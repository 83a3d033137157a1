// SPDX-License-Identifier: Apache-2.0
// What to try where the host's ledger is beyond pipeline.ram_limit: first what changes neither samples nor their order, then
// another order, then other batches, and the limit itself last.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "data/tuned.h"
#include "train/remedy_proof.h"

enum { PAIR_MAX = 96, LEAST_MAX = 12 };

// One knob at another value.
typedef struct turn {
    hr_knob_id id;
    char pair[PAIR_MAX]; // "pipeline.prefetch=0"
} turn;

typedef struct host_search {
    const hr_engine *e;
    remedy_proof proof;
    hr_report_oom *oom;
    uint32_t room;         // how many fixes there may be
    turn least[LEAST_MAX]; // every knob at what holds least, as far as a run gives out the same
    size_t least_count;
    bool turned[HR_KNOB_COUNT]; // by a fix of one knob
} host_search;

// ---- one candidate ----------------------------------------------------------------------------------------------

static bool is_full(const host_search *s)
{
    return s->oom->fix_count >= s->room;
}

// The host is asked first: that is the cheaper half, and the one that says no.
static bool try_pairs(host_search *s, const char *const pairs[REMEDY_PAIRS])
{
    hr_report_fix fix;
    hr_knobs knobs;
    if (is_full(s) || !remedy_apply(s->e, pairs, &knobs, &fix) ||
        (build_compiles_alike(&knobs, &s->e->knobs) && !remedy_fits_host(&s->proof, &knobs)) ||
        !remedy_fits(&s->proof, &knobs, &fix)) {
        return false;
    }
    s->oom->fixes[s->oom->fix_count++] = fix;
    return true;
}

// False also where the pair is too long for one: then the value is one of few.
static bool turn_to(turn *t, hr_knob_id id, const char *value)
{
    t->id = id;
    return snprintf(t->pair, sizeof t->pair, "%s=%s", hr_knob_rows(NULL)[id].key, value) <
           (int)sizeof t->pair;
}

static bool turn_to_number(turn *t, hr_knob_id id, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    return turn_to(t, id, text);
}

// Once one value of a knob is named, no other is.
static bool try_turn(host_search *s, const turn *t)
{
    const char *const pairs[REMEDY_PAIRS] = {t->pair};
    const bool found = !s->turned[t->id] && try_pairs(s, pairs);
    s->turned[t->id] = s->turned[t->id] || found;
    return found;
}

// As large as it can be, by halves; 0 at the end.
static void try_halves(host_search *s, hr_knob_id id, int64_t value)
{
    for (bool found = false; value > 0 && !found;) {
        turn t;
        value /= 2;
        found = turn_to_number(&t, id, value) && try_turn(s, &t);
    }
}

// ---- the same samples in the same order -------------------------------------------------------------------------

static void add_least(host_search *s, hr_knob_id id, const char *value)
{
    turn t;
    if (s->least_count < LEAST_MAX && turn_to(&t, id, value)) {
        s->least[s->least_count++] = t;
    }
}

// pipeline.stages without the copy of the training set that stands in front.
static void add_stages(host_search *s)
{
    static const char copy[] = "slices,";
    char packed[HR_KNOB_TEXT_MAX];
    size_t used = 0;
    for (const char *c = hr_knob_text(&s->e->knobs, HR_KNOB_PIPELINE_STAGES); *c != '\0'; c++) {
        packed[used] = *c; // a fix is pairs, one space between two
        used += *c != ' ';
    }
    packed[used] = '\0';
    if (strncmp(packed, copy, sizeof copy - 1) == 0) {
        add_least(s, HR_KNOB_PIPELINE_STAGES, packed + sizeof copy - 1);
    }
}

// From what costs no time to what costs most.
static void collect_least(host_search *s)
{
    add_least(s, HR_KNOB_PIPELINE_MODE, "stream");
    add_stages(s);
    add_least(s, HR_KNOB_PIPELINE_SHUFFLE_OF, "indices");
    add_least(s, HR_KNOB_OFFLOAD_ACTIVATIONS, "off");
    add_least(s, HR_KNOB_OFFLOAD_OPTIMIZER, "off");
    add_least(s, HR_KNOB_PIPELINE_PREFETCH, "0");
    add_least(s, HR_KNOB_PIPELINE_ARRAY, "off");
    add_least(s, HR_KNOB_PIPELINE_CACHE, "none");
    add_least(s, HR_KNOB_PIPELINE_MAP_THREADS, "1");
}

static void try_each(host_search *s)
{
    turn bytes;
    const bool is_set = hr_knob_is_set(&s->e->knobs, HR_KNOB_PIPELINE_PREFETCH);
    try_halves(s, HR_KNOB_PIPELINE_PREFETCH,
               is_set ? hr_knob_int(&s->e->knobs, HR_KNOB_PIPELINE_PREFETCH) : DATA_PREFETCH);
    if (!hr_knob_is(&s->e->knobs, HR_KNOB_PIPELINE_ARRAY, "off")) {
        (void)(turn_to(&bytes, HR_KNOB_PIPELINE_ARRAY, "uint8") && try_turn(s, &bytes));
    }
    for (size_t k = 0; k < s->least_count; k++) {
        (void)try_turn(s, &s->least[k]);
    }
}

// Two of them, then three, where no one is enough.
static void try_several(host_search *s)
{
    const size_t count = s->least_count;
    for (size_t most = 2; most <= REMEDY_PAIRS; most++) {
        for (size_t k = 0; k < count * count * count && s->oom->fix_count == 0; k++) {
            const size_t a = k / (count * count), b = k / count % count, c = k % count;
            const char *const pairs[REMEDY_PAIRS] = {s->least[a].pair, s->least[b].pair,
                                                     most == 2 ? NULL : s->least[c].pair};
            if (a < b && (most == 2 ? c == 0 : b < c)) {
                (void)try_pairs(s, pairs);
            }
        }
    }
}

// ---- other batches, and the limit -------------------------------------------------------------------------------

// Smaller ones, with as many samples an update as before, or else with fewer; `with` another pair, or NULL.
static bool try_batches(host_search *s, bool keeps_update, const char *with)
{
    const int64_t batch = hr_knob_int(&s->e->knobs, HR_KNOB_BATCH_SIZE);
    const int64_t rounds = hr_knob_int(&s->e->knobs, HR_KNOB_BATCH_ACCUMULATE);
    bool found = false;
    for (int64_t parts = 2; parts <= batch && !found; parts *= 2) {
        turn size, count;
        (void)turn_to_number(&size, HR_KNOB_BATCH_SIZE, batch / parts);
        (void)turn_to_number(&count, HR_KNOB_BATCH_ACCUMULATE, rounds * parts);
        const char *const same[REMEDY_PAIRS] = {size.pair, count.pair, with};
        const char *const fewer[REMEDY_PAIRS] = {size.pair, with};
        found = keeps_update ? batch % parts == 0 && try_pairs(s, same) : try_pairs(s, fewer);
    }
    return found;
}

static void try_all_batches(host_search *s)
{
    bool found = try_batches(s, true, NULL);
    for (size_t k = 0; k < s->least_count && !found; k++) {
        found = try_batches(s, true, s->least[k].pair);
    }
    (void)(found || try_batches(s, false, NULL));
}

static void try_limit(host_search *s)
{
    char exact[HR_BYTES_TEXT_MAX];
    turn t;
    if (s->e->refused_host.bytes != HR_NONE) {
        (void)(turn_to(&t, HR_KNOB_PIPELINE_RAM_LIMIT, hr_bytes_exact(s->e->refused_host.bytes, exact)) &&
               try_turn(s, &t));
    }
}

void remedy_search_host(const hr_engine *e, const build *refused, hr_report_oom *oom)
{
    host_search s = {.e = e, .proof = remedy_proof_of(e, refused), .oom = oom, .room = HR_FIXES_MAX - 1};
    collect_least(&s);
    try_each(&s);
    try_several(&s);
    try_halves(&s, HR_KNOB_PIPELINE_SHUFFLE, hr_knob_int(&e->knobs, HR_KNOB_PIPELINE_SHUFFLE));
    if (oom->fix_count == 0) {
        try_all_batches(&s);
    }
    s.room = HR_FIXES_MAX; // who set the limit wants to fit into it
    try_limit(&s);
}
