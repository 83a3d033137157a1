// SPDX-License-Identifier: Apache-2.0
#include "insight/fit_turns.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "insight/fit_change.h"

enum { LISTED_MAX = 6, FARTHEST = 4, TWICES = 2 * FARTHEST + 1, CHECKPOINTS = 1 };

// One knob; without words every choice of its row is one, of the optimizer those of insight/fit_change.h.
typedef struct trade {
    hr_knob_id id;
    const char *words[LISTED_MAX];
} trade;

// What usually gives most comes first.
static const trade trades[] = {
    {.id = HR_KNOB_EXECUTION_MODE},
    [CHECKPOINTS] = {.id = HR_KNOB_CHECKPOINT_STRATEGY,
                     .words = {"none", "selective", "blocks", "sqrt", "every:2"}},
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
enum { TRADES = sizeof trades / sizeof *trades, BATCH = TRADES };
_Static_assert((int)BATCH + 1 == (int)FIT_DIMENSIONS, "a dimension per trade, and the batch");
_Static_assert((int)TWICES <= (int)FIT_WORDS_MAX && (int)HR_KNOB_CHOICES_MAX <= (int)FIT_WORDS_MAX,
               "words have room");

fit_combination fit_as_asked(void)
{
    fit_combination c;
    memset(c.word, FIT_AS_ASKED, sizeof c.word);
    return c;
}

bool fit_is_learning(int dimension, bool normalises_batches)
{
    return dimension == BATCH ? normalises_batches
                              : hr_fit_permission_for(trades[dimension].id) != HR_PERMIT_NOTHING;
}

bool fit_has_manner(int dimension)
{
    return dimension != BATCH && trades[dimension].id == HR_KNOB_OFFLOAD_ACTIVATIONS; // offload.prefetch
}

// ---- words ----------------------------------------------------------------------------------------------------

// Whatever is kept or permitted; NULL: there is none any more.
static const char *word_of(const hr_knobs *asked, int dimension, int word)
{
    const trade *t = &trades[dimension];
    if (t->id == HR_KNOB_OPTIMIZER_KIND) {
        return fit_lighter_optimizer(asked, word);
    }
    if (t->words[0] != NULL) {
        return word < LISTED_MAX ? t->words[word] : NULL;
    }
    return word <= HR_KNOB_CHOICES_MAX ? hr_knob_rows(NULL)[t->id].choices[word] : NULL;
}

static bool is_kept(const hr_knobs *asked, const hr_fit_wish *wish, int dimension)
{
    if (dimension == BATCH) {
        return wish->keeps[HR_KNOB_BATCH_SIZE] || wish->keeps[HR_KNOB_BATCH_ACCUMULATE];
    }
    // A step as a framework holds it stays in that framework, on the allocator that it is asked about.
    const hr_knob_id id = trades[dimension].id;
    const bool is_bound =
        id == HR_KNOB_ALLOCATOR_KIND && !hr_knob_is(asked, HR_KNOB_EXECUTION_AS, "headroom");
    return is_bound || wish->keeps[id] || !hr_turn_helps(asked, id) ||
           hr_fit_permission_for(id) > wish->permission;
}

int fit_words(const hr_knobs *asked, const hr_fit_wish *wish, int dimension)
{
    int words = 0;
    if (is_kept(asked, wish, dimension)) {
        return 0;
    }
    if (dimension == BATCH) {
        return TWICES;
    }
    while (words < FIT_WORDS_MAX && word_of(asked, dimension, words) != NULL) {
        words++;
    }
    return words;
}

// ---- knobs ----------------------------------------------------------------------------------------------------

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
    if (word == NULL || hr_knobs_set(knobs, id, word, NULL) != HR_OK) {
        return false;
    }
    (void)snprintf(pair, size, "%s=%s", hr_knob_rows(NULL)[id].key, hr_knob_format(knobs, id, after));
    return strcmp(before, after) != 0;
}

static bool turn_all(const hr_knobs *asked, const fit_combination *c, hr_knobs *knobs, char *pairs,
                     size_t size)
{
    char pair[2 * HR_KNOB_TEXT_MAX];
    size_t length = 0;
    *knobs = *asked;
    pairs[0] = '\0';
    for (int k = 0; k < FIT_DIMENSIONS; k++) {
        if (c->word[k] == FIT_AS_ASKED) {
            continue;
        }
        if (!(k == BATCH
                  ? turn_batch(knobs, c->word[k] - FARTHEST, pair, sizeof pair)
                  : turn_knob(knobs, trades[k].id, word_of(asked, k, c->word[k]), pair, sizeof pair))) {
            return false;
        }
        length += (size_t)snprintf(pairs + length, size - length, "%s%s", length > 0 ? " " : "", pair);
        if (length >= size) {
            return false;
        }
    }
    return true;
}

bool fit_turn(const hr_knobs *asked, const fit_combination *c, hr_knobs *knobs, char *pairs, size_t size)
{
    return turn_all(asked, c, knobs, pairs, size) && hr_knobs_validate(knobs, NULL) == HR_OK;
}

bool fit_can_budget(const hr_knobs *asked, const hr_fit_wish *wish)
{
    return fit_words(asked, wish, CHECKPOINTS) > 0;
}

fit_combination fit_under_budget(const fit_combination *c)
{
    fit_combination turned = *c;
    turned.word[CHECKPOINTS] = FIT_BUDGET;
    return turned;
}

bool fit_has_checkpoints(const fit_combination *c)
{
    return c->word[CHECKPOINTS] != FIT_AS_ASKED;
}

bool fit_turn_to_budget(const hr_knobs *asked, const fit_combination *c, uint64_t budget_bytes,
                        hr_knobs *knobs, char *pairs, size_t size)
{
    char bytes[HR_BYTES_TEXT_MAX], word[HR_BYTES_TEXT_MAX + 8], pair[2 * HR_KNOB_TEXT_MAX];
    fit_combination others = *c;
    others.word[CHECKPOINTS] = FIT_AS_ASKED;
    (void)snprintf(word, sizeof word, "budget:%s", hr_bytes_exact(budget_bytes, bytes));
    // The others may go together only with it.
    if (!turn_all(asked, &others, knobs, pairs, size) ||
        !turn_knob(knobs, HR_KNOB_CHECKPOINT_STRATEGY, word, pair, sizeof pair)) {
        return false;
    }
    const size_t length = strlen(pairs);
    return (size_t)snprintf(pairs + length, size - length, "%s%s", length > 0 ? " " : "", pair) <
               size - length &&
           hr_knobs_validate(knobs, NULL) == HR_OK;
}

hr_status hr_fit_knobs(const hr_knobs *asked, const hr_fit_point *point, hr_knobs *out, hr_err *err)
{
    *out = *asked;
    return hr_knobs_set_pairs(out, point->knobs, err);
}

// ---- what is kept ---------------------------------------------------------------------------------------------

static hr_knob_id turned_knob(int at) // the trades, then the batch's two
{
    return at < TRADES ? trades[at].id : at == TRADES ? HR_KNOB_BATCH_SIZE : HR_KNOB_BATCH_ACCUMULATE;
}

static bool keep_word(hr_fit_wish *wish, const char *word)
{
    const size_t length = strlen(word);
    bool any = false;
    for (int k = 0; length > 0 && k < TRADES + 2; k++) {
        const char *key = hr_knob_rows(NULL)[turned_knob(k)].key;
        if (strncmp(key, word, length) == 0 && (key[length] == '\0' || key[length] == '.')) {
            wish->keeps[turned_knob(k)] = any = true;
        }
    }
    return any;
}

// "execution, checkpoint, …": the groups that there is something to turn of, each once.
static void list_groups(char *list, size_t size)
{
    size_t used = 0;
    list[0] = '\0';
    for (int k = 0; k < TRADES + 2; k++) {
        char group[32], found[40];
        const char *key = hr_knob_rows(NULL)[turned_knob(k)].key;
        (void)snprintf(group, sizeof group, "%.*s", (int)strcspn(key, "."), key);
        (void)snprintf(found, sizeof found, "%s%s", used > 0 ? ", " : "", group);
        if (strstr(list, group) == NULL && used < size) {
            used += (size_t)snprintf(list + used, size - used, "%s", found);
        }
    }
}

hr_status hr_fit_keep(hr_fit_wish *wish, const char *words, hr_err *err)
{
    char word[64], list[160];
    hr_fit_wish kept = *wish;
    for (const char *at = words;; at++) {
        at += strspn(at, " ");
        const size_t length = strcspn(at, ",");
        (void)snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), at);
        if (!keep_word(&kept, word)) {
            list_groups(list, sizeof list);
            const hr_status status = HR_FAIL(
                err, USAGE, "nothing that fit turns is called '%s'; it can keep %s, or one key of them", word,
                list);
            hr_err_try(err, "headroom fit demo --keep batch,precision");
            return status;
        }
        at += length;
        if (*at == '\0') {
            *wish = kept;
            return HR_OK;
        }
    }
}
