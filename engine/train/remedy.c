// SPDX-License-Identifier: Apache-2.0
// What to try after an out-of-memory: candidates in the order of how little they change, each proved by a dry run
// before it is named.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "base/text.h"
#include "device/cost.h"
#include "insight/fit_change.h"
#include "train/remedy_proof.h"

#define REMEDY_VRAM_BYTES (4096 * HR_GIB)

// What a candidate turns. Of two that turn the same, the first that fits is named.
enum {
    ALLOCATOR = 1 << 0,
    TAPE = 1 << 1,
    UPDATE = 1 << 2,
    MODE = 1 << 3,
    RECOMPUTE = 1 << 4,
    OFFLOAD = 1 << 5,
    BATCH = 1 << 6,
    PRECISION = 1 << 7,
    LIMIT = 1 << 8,
    SCRATCH = 1 << 9,
    AHEAD = 1 << 10,
    BUDGET = 1 << 11, // its first pair, if a budget in its place is faster
};

typedef struct candidate {
    uint32_t turns;
    const char *pairs[REMEDY_PAIRS]; // "key=value"; NULL where there is none
} candidate;

// The weights stay the same bit for bit; the step takes as long at first, and more and more further down.
static const candidate same_bits[] = {
    {AHEAD, {"pipeline.device_prefetch=0"}},
    {ALLOCATOR, {"allocator.expandable_segments=on"}},
    {ALLOCATOR, {"allocator.kind=bfc"}},
    {ALLOCATOR, {"allocator.growth=off"}},
    {ALLOCATOR, {"allocator.kind=async", "allocator.growth=off"}},
    {ALLOCATOR, {"allocator.kind=caching", "allocator.growth=off"}},
    {ALLOCATOR, {"device.logical=none"}},
    {TAPE, {"execution.tape=once"}},
    {UPDATE, {"optimizer.fused_backward=on"}},
    {MODE, {"execution.mode=graph"}},
    {MODE | ALLOCATOR, {"execution.mode=graph", "allocator.growth=off"}},
    {MODE | ALLOCATOR, {"execution.mode=graph", "allocator.growth=off", "allocator.kind=static"}},
    {MODE | TAPE, {"execution.tape=once", "execution.mode=graph"}},
    {MODE | UPDATE, {"execution.mode=graph", "optimizer.fused_backward=on"}},
    {RECOMPUTE, {"checkpoint.strategy=selective"}},
    {RECOMPUTE | MODE, {"checkpoint.strategy=selective", "execution.mode=graph"}},
    {OFFLOAD, {"offload.optimizer=on"}},
    {BUDGET | RECOMPUTE, {"checkpoint.strategy=blocks"}},
    {BUDGET | RECOMPUTE, {"checkpoint.strategy=sqrt"}},
    {OFFLOAD, {"offload.activations=on"}},
    {BUDGET | RECOMPUTE | MODE, {"checkpoint.strategy=blocks", "execution.mode=graph"}},
    {BUDGET | RECOMPUTE | MODE, {"checkpoint.strategy=sqrt", "execution.mode=graph"}},
    {OFFLOAD | MODE, {"offload.activations=on", "execution.mode=graph"}},
    {BUDGET | RECOMPUTE | MODE | UPDATE,
     {"checkpoint.strategy=sqrt", "execution.mode=graph", "optimizer.fused_backward=on"}},
    {BUDGET | RECOMPUTE | MODE | OFFLOAD,
     {"checkpoint.strategy=sqrt", "execution.mode=graph", "offload.optimizer=on"}},
};

// Where the limit is too low and a knob sets it. Who set it wants to fit into it: named last.
static const candidate lifts[] = {
    {LIMIT, {"device.logical=none"}},
    {LIMIT, {"allocator.fraction=none"}},
    {LIMIT, {"allocator.conf="}},
    {LIMIT, {"device.vram=none"}},
};

static const candidate one_ahead = {AHEAD,
                                    {"pipeline.device_prefetch=1"}}; // hides the copy as well as more do
static const candidate half_as_wide = {PRECISION, {"precision.policy=mixed_bfloat16"}};
static const candidate without_scratch = {SCRATCH, {"workspace.limit=0B"}}; // other last digits
// PyTorch takes a smaller engine by itself where a workspace cannot be had.
static const candidate smaller_scratch[] = {{SCRATCH, {"workspace.limit=1GiB"}},
                                            {SCRATCH, {"workspace.limit=256MiB"}},
                                            {SCRATCH, {"workspace.limit=64MiB"}},
                                            {SCRATCH, {"workspace.limit=16MiB"}}};
static const candidate stop_the_leak = {0, {"execution.retain=none"}};

typedef struct search {
    const hr_engine *e;
    remedy_proof proof;
    uint64_t weights_bytes, slots_bytes; // on the device, of its weights and their optimizer's state
    hr_report_oom *oom;                  // to be given its fixes
    uint32_t turned;                     // by the fixes so far
    uint32_t room;                       // how many fixes there may be
} search;

// ---- one candidate -----------------------------------------------------------------------------------------------

static bool is_full(const search *s)
{
    return s->oom->fix_count >= s->room;
}

// Weights that are more than the limit stay so under every knob but the limit's, and optimizer state on the device as well
// unless it leaves: mixed precision keeps both in float32.
static bool residents_are_too_much(const search *s, const candidate *c)
{
    bool leaves = false;
    for (size_t k = 0; k < REMEDY_PAIRS && c->pairs[k] != NULL; k++) {
        leaves = leaves || strcmp(c->pairs[k], "offload.optimizer=on") == 0;
    }
    bool same_limit = c->turns != 0 && (c->turns & LIMIT) == 0;
    return same_limit && s->weights_bytes + (leaves ? 0 : s->slots_bytes) > s->oom->limit_bytes;
}

// A step that asks for more than the limit fits into it with no allocator.
static bool is_hopeless(const search *s, const candidate *c)
{
    bool too_much = s->oom->cause == HR_OOM_CAPACITY || s->oom->cause == HR_OOM_LIMIT;
    if (too_much && residents_are_too_much(s, c)) {
        return true;
    }
    return too_much && c->turns == ALLOCATOR && strncmp(c->pairs[0], "allocator.", strlen("allocator.")) == 0;
}

static bool find(search *s, const candidate *c, hr_report_fix *fix)
{
    hr_knobs knobs;
    const bool helps = (c->turns & OFFLOAD) == 0 || hr_turn_helps(&s->e->knobs, HR_KNOB_OFFLOAD_OPTIMIZER);
    return helps && (c->turns & s->turned) == 0 && !is_hopeless(s, c) &&
           remedy_apply(s->e, c->pairs, &knobs, fix) && remedy_fits(&s->proof, &knobs, fix);
}

// As little recomputation as the limit asks for, where that is faster. It tries these strategies too, so that it is kept where one of
// them fits.
static void try_budget(search *s, const candidate *c, hr_report_fix *fix)
{
    char bytes[HR_BYTES_TEXT_MAX], pair[HR_BYTES_TEXT_MAX + 32];
    candidate within = *c;
    hr_report_fix other;
    if ((c->turns & BUDGET) == 0 || s->proof.ways_left <= 0) {
        return;
    }
    (void)snprintf(pair, sizeof pair, "checkpoint.strategy=budget:%s",
                   hr_bytes_exact(s->oom->limit_bytes, bytes));
    within.pairs[0] = pair;
    if (find(s, &within, &other) && other.seconds < fix->seconds) {
        *fix = other;
    }
}

static bool try_candidate(search *s, const candidate *c)
{
    hr_report_fix fix;
    if (is_full(s) || !find(s, c, &fix)) {
        return false;
    }
    try_budget(s, c, &fix);
    s->turned |= c->turns & ~(uint32_t)BUDGET;
    s->oom->fixes[s->oom->fix_count++] = fix;
    return true;
}

// ---- smaller batches, larger cards ------------------------------------------------------------------------------

static int64_t divisor_from(int64_t batch, int64_t least)
{
    int64_t d = least;
    while (d <= batch && batch % d != 0) {
        d++;
    }
    return d;
}

// Parts of the batch, each about half the one before, one after the other: the update keeps its samples.
static bool try_accumulation(search *s)
{
    int64_t batch = hr_knob_int(&s->e->knobs, HR_KNOB_BATCH_SIZE);
    int64_t rounds = hr_knob_int(&s->e->knobs, HR_KNOB_BATCH_ACCUMULATE);
    bool found = false;
    for (int64_t d = divisor_from(batch, 2); d <= batch && !found; d = divisor_from(batch, 2 * d)) {
        char size[40];
        char count[40];
        (void)snprintf(size, sizeof size, "batch.size=%" PRId64, batch / d);
        (void)snprintf(count, sizeof count, "batch.accumulate=%" PRId64, rounds * d);
        found = try_candidate(s, &(candidate){BATCH, {size, count}});
    }
    return found;
}

static bool try_batches(search *s)
{
    bool found = false;
    for (int64_t batch = hr_knob_int(&s->e->knobs, HR_KNOB_BATCH_SIZE) / 2; batch > 0 && !found; batch /= 2) {
        char pair[40];
        (void)snprintf(pair, sizeof pair, "batch.size=%" PRId64, batch);
        found = try_candidate(s, &(candidate){BATCH, {pair}});
    }
    return found;
}

// A limit beyond the present one: of a card that has no name, or within the card.
static bool try_vram(search *s)
{
    bool found = false;
    for (uint64_t bytes = s->oom->limit_bytes * 2; bytes != 0 && bytes <= REMEDY_VRAM_BYTES && !found;
         bytes *= 2) {
        char exact[HR_BYTES_TEXT_MAX];
        char pair[64];
        (void)snprintf(pair, sizeof pair, "device.vram=%s", hr_bytes_exact(bytes, exact));
        found = try_candidate(s, &(candidate){0, {pair}});
    }
    return found;
}

// The smallest card with more than *bytes, which become its own; NULL when there is none.
static const char *next_card(const hr_preset_entry *cards, size_t count, uint64_t *bytes)
{
    const char *name = NULL;
    uint64_t least = UINT64_MAX;
    for (size_t k = 0; k < count; k++) {
        hr_card card;
        bool larger = hr_card_load(cards[k].name, &card, NULL) == HR_OK && card.vram_bytes > *bytes;
        if (larger && card.vram_bytes < least) {
            least = card.vram_bytes;
            name = cards[k].name;
        }
    }
    *bytes = least;
    return name;
}

// The last resort: the smallest of the larger cards that will do.
static bool try_cards(search *s)
{
    hr_preset_entry *cards = NULL;
    size_t count = 0;
    uint64_t bytes = s->oom->limit_bytes;
    bool found = false;
    if (!hr_knob_is_set(&s->e->knobs, HR_KNOB_DEVICE_CARD) ||
        hr_preset_list("cards", &cards, &count, NULL) != HR_OK) {
        return false;
    }
    for (const char *name = next_card(cards, count, &bytes); name != NULL && !found;
         name = next_card(cards, count, &bytes)) {
        char pair[96];
        (void)snprintf(pair, sizeof pair, "device.card=%s", name);
        found = try_candidate(s, &(candidate){0, {pair}});
    }
    hr_preset_list_free(cards);
    return found;
}

// ---- the whole search -------------------------------------------------------------------------------------------

static bool find_lift(search *s, hr_report_fix *lift)
{
    bool found = false;
    for (size_t k = 0; k < sizeof lifts / sizeof *lifts && !found; k++) {
        found = find(s, &lifts[k], lift);
    }
    return found;
}

static bool try_smaller_scratch(search *s)
{
    bool found = false;
    for (size_t k = 0; k < sizeof smaller_scratch / sizeof *smaller_scratch && !found; k++) {
        found = try_candidate(s, &smaller_scratch[k]);
    }
    return found;
}

// What keeps the card and the limit as they are.
static void search_within(search *s)
{
    const hr_knobs *knobs = &s->e->knobs;
    const bool on_a_card = hr_knob_is(knobs, HR_KNOB_DEVICE_KIND, "cuda");
    if (on_a_card && hr_knob_is(knobs, HR_KNOB_EXECUTION_AS, "pytorch")) {
        (void)try_smaller_scratch(s);
    }
    if (hr_knob_batches_ahead(knobs) > 1) {
        (void)try_candidate(s, &one_ahead);
    }
    for (size_t k = 0; k < sizeof same_bits / sizeof *same_bits && !is_full(s); k++) {
        (void)try_candidate(s, &same_bits[k]);
    }
    if (on_a_card) {
        (void)try_candidate(s, &without_scratch);
    }
    if (!is_full(s) && !try_accumulation(s) && s->oom->fix_count == 0) {
        (void)try_batches(s);
    }
    if (hr_knob_is(knobs, HR_KNOB_PRECISION_POLICY, "float32")) {
        (void)try_candidate(s, &half_as_wide);
    }
}

static void search_all(search *s)
{
    hr_report_fix lift;
    const bool own_limit = s->oom->cause == HR_OOM_LIMIT, lifted = own_limit && find_lift(s, &lift);
    // Recording nothing is what was asked for: a tape that records would be another experiment.
    s->turned = hr_knob_is(&s->e->knobs, HR_KNOB_EXECUTION_TAPE, "none") ? TAPE : 0;
    s->room = HR_FIXES_MAX - (lifted ? 1 : 0);
    s->proof.most_limit_bytes = own_limit ? s->oom->limit_bytes : UINT64_MAX;
    search_within(s);
    s->room = HR_FIXES_MAX;
    s->proof.most_limit_bytes = UINT64_MAX;
    if (lifted) {
        s->oom->fixes[s->oom->fix_count++] = lift;
    }
    if (s->oom->fix_count == 0) {
        (void)(try_vram(s) || try_cards(s));
    }
}

// "execution.mode=graph allocator.growth=off" as the options of a command.
static void say_options(const hr_report_fix *fix, char *out, size_t size)
{
    char pairs[sizeof fix->knobs];
    char *rest = NULL;
    size_t length = 0;
    (void)text_copy(pairs, sizeof pairs, fix->knobs);
    out[0] = '\0';
    for (char *pair = strtok_r(pairs, " ", &rest); pair != NULL && length < size;
         pair = strtok_r(NULL, " ", &rest)) {
        length += (size_t)snprintf(out + length, size - length, "%s-s %s", length > 0 ? " " : "", pair);
    }
}

static uint64_t persistent_bytes(const program *p, hr_category category)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        const tensor *t = &p->tensors[k];
        sum += t->category == category && !tensor_on_host(t) ? t->bytes : 0;
    }
    return sum;
}

void engine_rank_fixes(const hr_engine *e, const build *refused, hr_report_oom *oom)
{
    double seconds = (double)NAN;
    if (cost_step_seconds(refused->device, refused->context, refused->programs[BUILD_TRAIN], &seconds,
                          NULL) != HR_OK) {
        seconds = (double)NAN;
    }
    fit_rank_fixes(&e->knobs, model_normalises_batches(e->model), seconds, oom);
}

void engine_find_remedy(const hr_engine *e, const build *refused, hr_report_oom *oom)
{
    const program *p = refused->programs[BUILD_TRAIN];
    search s = {.e = e,
                .proof = remedy_proof_of(e, refused),
                .weights_bytes = persistent_bytes(p, HR_CATEGORY_WEIGHTS),
                .slots_bytes = persistent_bytes(p, HR_CATEGORY_OPTIMIZER),
                .oom = oom,
                .room = HR_FIXES_MAX};
    oom->fix_count = 0;
    oom->hint[0] = '\0';
    if (oom->of_host) {
        remedy_search_host(e, refused, oom);
    } else if (oom->cause == HR_OOM_LEAK) {
        (void)try_candidate(&s, &stop_the_leak); // any other change only runs out later
    } else {
        search_all(&s);
    }
    engine_rank_fixes(e, refused, oom);
    if (oom->fix_count > 0) {
        say_options(&oom->fixes[0], oom->hint, sizeof oom->hint);
    }
}

void engine_say_remedies(const hr_report_oom *oom, hr_err *err)
{
    char words[HR_ERR_TEXT_MAX];
    size_t length = 0;
    for (uint32_t k = 0; k < oom->fix_count && length < sizeof words; k++) {
        char options[sizeof oom->hint];
        say_options(&oom->fixes[k], options, sizeof options);
        length +=
            (size_t)snprintf(words + length, sizeof words - length, "%s%s", k > 0 ? ", or " : "", options);
    }
    hr_err_try(
        err, "%s",
        length > 0     ? words
        : oom->of_host ? "-s pipeline.ram_limit=none"
        : oom->cause == HR_OOM_OUTSIDE
            ? "nvidia-smi, which lists who holds the rest of the card"
            : "headroom cards --fit PRESET, which says on what it fits: nothing else that was tried does it");
}
