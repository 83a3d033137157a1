// SPDX-License-Identifier: Apache-2.0
#include "app/tui/feed/knob_edit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/card.h"
#include "headroom/preset.h"
#include "headroom/units.h"

// What decides most about memory and time; all others follow in the table's order, group by group.
static const hr_knob_id front[KNOB_EDIT_FRONT] = {
    HR_KNOB_BATCH_SIZE,
    HR_KNOB_BATCH_ACCUMULATE,
    HR_KNOB_OPTIMIZER_KIND,
    HR_KNOB_EXECUTION_MODE,
    HR_KNOB_PRECISION_POLICY,
    HR_KNOB_CHECKPOINT_STRATEGY,
    HR_KNOB_DEVICE_VRAM,
    HR_KNOB_DEVICE_CARD,
    HR_KNOB_ALLOCATOR_KIND,
    HR_KNOB_ALLOCATOR_GROWTH,
    HR_KNOB_OFFLOAD_ACTIVATIONS,
    HR_KNOB_OFFLOAD_OPTIMIZER,
    HR_KNOB_OPTIMIZER_FUSED_BACKWARD,
    HR_KNOB_OPTIMIZER_LEARNING_RATE,
    HR_KNOB_THREADS_COUNT,
};

static const hr_knob_row *row_of(hr_knob_id id)
{
    size_t count;
    return &hr_knob_rows(&count)[id];
}

static bool stands_in_front(hr_knob_id id)
{
    size_t i = 0;
    while (i < KNOB_EDIT_FRONT && front[i] != id) {
        i++;
    }
    return i < KNOB_EDIT_FRONT;
}

static bool has_values(hr_knob_id id)
{
    const hr_knob_row *row = row_of(id);
    return row->type != HR_KNOB_CHOICE || row->choices[1] != NULL;
}

const hr_knob_id *knob_edit_panel(size_t *count)
{
    static hr_knob_id panel[HR_KNOB_COUNT];
    static size_t panel_count;
    if (panel_count == 0) {
        size_t found = 0;
        for (size_t i = 0; i < KNOB_EDIT_FRONT; i++) {
            panel[found] = front[i];
            found += has_values(front[i]);
        }
        for (int id = 0; id < HR_KNOB_COUNT; id++) {
            panel[found] = (hr_knob_id)id; // overwritten by the next when it does not count
            found += !stands_in_front((hr_knob_id)id) && has_values((hr_knob_id)id);
        }
        panel_count = found;
    }
    *count = panel_count;
    return panel;
}

// ---- neighbours -----------------------------------------------------------------------------------------------

static bool next_choice(const hr_knob_row *row, const char *now, int direction, char *text)
{
    int at = 0;
    while (row->choices[at] != NULL && strcmp(row->choices[at], now) != 0) {
        at++;
    }
    at += direction;
    if (at < 0 || row->choices[at] == NULL) {
        return false;
    }
    snprintf(text, HR_KNOB_TEXT_MAX, "%s", row->choices[at]);
    return true;
}

// Wide ranges double and halve over the powers of two, small counts go one by one.
static bool next_integer(const hr_knob_row *row, int64_t now, int direction, char *text)
{
    bool wide = row->max > 256;
    int64_t next = now + direction;
    if (wide && direction > 0) {
        next = now < 1 ? 1 : now * 2;
    } else if (wide) {
        next = now / 2;
    }
    if (next == now || (double)next < row->min || (double)next > row->max) {
        return false;
    }
    snprintf(text, HR_KNOB_TEXT_MAX, "%" PRId64, next);
    return true;
}

// The neighbour of a positive number in the row 1, 2, 5, 10, 20 … of every power of ten.
static double next_125(double now, int direction)
{
    static const double steps[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(now) + 1e-9)), lead = now / power;
    if (direction > 0) {
        for (size_t i = 0; i < 4; i++) {
            if (steps[i] > lead * (1 + 1e-9)) {
                return steps[i] * power;
            }
        }
        return 20 * power;
    }
    for (size_t i = 3; i-- > 0;) {
        if (steps[i] < lead * (1 - 1e-9)) {
            return steps[i] * power;
        }
    }
    return power / 2;
}

static bool next_real(const hr_knob_row *row, double now, int direction, char *text)
{
    bool share = row->max <= 1;
    double next = share           ? (round(now * 20) + direction) / 20
                  : now > 0       ? next_125(now, direction)
                  : direction > 0 ? 1e-5
                                  : -1;
    next = share && next > row->max ? row->max : next;
    if (!(next >= row->min) || next > row->max || next == now) {
        return false;
    }
    snprintf(text, HR_KNOB_TEXT_MAX, "%.6g", next);
    return true;
}

// An eighth of the power of two below: 4 GiB goes to 3.75 and 4.5 GiB, and whole MiB stay whole.
static bool next_bytes(const hr_knob_row *row, uint64_t now, int direction, char *text)
{
    uint64_t below = HR_MIB;
    uint64_t reach = direction < 0 ? now - (now > 0) : now;
    while (below * 2 <= reach && below * 2 < (uint64_t)row->max) {
        below *= 2;
    }
    uint64_t step = below / 8 > HR_MIB ? below / 8 : HR_MIB;
    if (direction < 0 && (now < step + HR_MIB || (double)(now - step) < row->min)) {
        return false;
    }
    uint64_t next = direction < 0 ? now - step : now + step;
    if ((double)next > row->max) {
        return false;
    }
    hr_bytes_exact(next, text);
    return true;
}

// ---- knobs whose values are words, or numbers that no rule would find

typedef struct named_card {
    char name[sizeof((hr_preset_entry *)NULL)->name];
    char title[sizeof((hr_preset_entry *)NULL)->title];
    uint64_t vram_bytes;
} named_card;

// The smallest first, `unlimited` last. Read once; one thread turns knobs.
static struct {
    named_card rows[KNOB_EDIT_WORDS_MAX];
    size_t count;
} cards;

static int by_vram(const void *a, const void *b)
{
    const named_card *x = a, *y = b;
    return x->vram_bytes != y->vram_bytes ? (x->vram_bytes < y->vram_bytes ? -1 : 1)
                                          : strcmp(x->name, y->name);
}

static void add_card(const char *name, const char *title)
{
    hr_card card;
    named_card *to = &cards.rows[cards.count++];
    snprintf(to->name, sizeof to->name, "%s", name);
    snprintf(to->title, sizeof to->title, "%s", title);
    to->vram_bytes = hr_card_load(name, &card, NULL) == HR_OK ? card.vram_bytes : 0;
}

static void read_cards(void)
{
    hr_preset_entry *entries = NULL;
    size_t found = 0;
    if (hr_preset_list("cards", &entries, &found, NULL) == HR_OK) {
        for (size_t i = 0; i < found && cards.count < KNOB_EDIT_WORDS_MAX - 1; i++) {
            add_card(entries[i].name, entries[i].title);
        }
        hr_preset_list_free(entries);
    }
    qsort(cards.rows, cards.count, sizeof *cards.rows, by_vram);
    add_card(HR_CARD_UNLIMITED, "no limit, with the times of an A100");
}

static size_t card_names(const char *names[KNOB_EDIT_WORDS_MAX])
{
    if (cards.count == 0) {
        read_cards();
    }
    for (size_t i = 0; i < cards.count; i++) {
        names[i] = cards.rows[i].name;
    }
    return cards.count;
}

const char *knob_edit_word_title(hr_knob_id id, const char *word)
{
    for (size_t i = 0; id == HR_KNOB_DEVICE_CARD && i < cards.count; i++) {
        if (strcmp(cards.rows[i].name, word) == 0) {
            return cards.rows[i].title;
        }
    }
    return "";
}

size_t knob_edit_words(hr_knob_id id, const char *words[KNOB_EDIT_WORDS_MAX])
{
    size_t count = 0;
    if (id == HR_KNOB_DEVICE_CARD) {
        return card_names(words);
    }
    const hr_knob_row *row = row_of(id);
    while (row->steps[count] != NULL) {
        words[count] = row->steps[count];
        count++;
    }
    return count;
}

static bool to_number(const char *word, double *number)
{
    char *end = NULL;
    uint64_t bytes;
    *number = strtod(word, &end);
    if (end != word && *end == '\0') {
        return true;
    }
    const bool is_size = hr_bytes_parse(word, &bytes);
    *number = is_size ? (double)bytes : 0;
    return is_size;
}

// The step beside `now`. A number between two steps has both beside it, and lies below a word that ends the row; any other
// word lies before the first.
static bool next_step(const char *const *words, size_t count, const char *now, int direction, char *text)
{
    int at = -1, below = -1;
    double value, step;
    bool is_number = to_number(now, &value);
    for (size_t k = 0; k < count; k++) {
        if (strcmp(words[k], now) == 0 || (is_number && to_number(words[k], &step) && step == value)) {
            at = (int)k;
        } else if (is_number && (to_number(words[k], &step) ? step < value : k + 1 < count)) {
            below = (int)k;
        }
    }
    int next = at >= 0 ? at + direction : direction > 0 ? below + 1 : below;
    if (next < 0 || next >= (int)count) {
        return false;
    }
    snprintf(text, HR_KNOB_TEXT_MAX, "%s", words[next]);
    return true;
}

bool knob_edit_neighbour(const hr_knobs *knobs, hr_knob_id id, int direction, uint64_t when_unset_bytes,
                         char text[HR_KNOB_TEXT_MAX])
{
    const hr_knob_row *row = row_of(id);
    const char *words[KNOB_EDIT_WORDS_MAX];
    char now[HR_KNOB_TEXT_MAX];
    size_t count = knob_edit_words(id, words);
    text[0] = '\0';
    if (count > 0) {
        return next_step(words, count, hr_knob_format(knobs, id, now), direction, text);
    }
    switch (row->type) {
    case HR_KNOB_CHOICE:
        return next_choice(row, hr_knob_text(knobs, id), direction, text);
    case HR_KNOB_INT:
        return next_integer(row, hr_knob_int(knobs, id), direction, text);
    case HR_KNOB_REAL:
        return next_real(row, hr_knob_real(knobs, id), direction, text);
    case HR_KNOB_BYTES:
        if (!hr_knob_is_set(knobs, id) && when_unset_bytes == 0) {
            return false;
        }
        return next_bytes(row, hr_knob_bytes(knobs, id, when_unset_bytes), direction, text);
    case HR_KNOB_TEXT:
        break;
    }
    return false;
}

hr_status knob_edit_set(hr_knobs *knobs, hr_knob_id id, const char *text, hr_err *err)
{
    hr_knobs turned = *knobs;
    HR_TRY(hr_knobs_set(&turned, id, text, err));
    HR_TRY(hr_knobs_validate(&turned, err));
    *knobs = turned;
    return HR_OK;
}

bool knob_edit_both(const hr_knobs *refused, hr_knob_id id, hr_knobs *both, const hr_constraint **broken)
{
    size_t count;
    const hr_constraint *c = hr_constraints(&count);
    const hr_constraint *end = c + count;
    while (c < end && !c->broken(refused)) {
        c++;
    }
    *both = *refused;
    *broken = c;
    return c < end && c->turn != id && strncmp(c->hint, "-s ", 3) == 0 &&
           hr_knobs_set_pair(both, c->hint + 3, NULL) == HR_OK && hr_knobs_validate(both, NULL) == HR_OK;
}

static bool is_of_a_list(hr_knob_id id)
{
    const hr_knob_row *row = row_of(id);
    return row->type == HR_KNOB_CHOICE || id == HR_KNOB_DEVICE_CARD || row->steps[0] != NULL;
}

static bool stands(const hr_knobs *turned, hr_knob_id id)
{
    const hr_constraint *broken;
    hr_knobs both;
    return hr_knobs_validate(turned, NULL) == HR_OK || knob_edit_both(turned, id, &both, &broken);
}

static void add_passed(const char *value, char passed[HR_KNOB_TEXT_MAX])
{
    strncat(passed, passed[0] != '\0' ? ", " : "", HR_KNOB_TEXT_MAX - strlen(passed) - 1);
    strncat(passed, value, HR_KNOB_TEXT_MAX - strlen(passed) - 1);
}

bool knob_edit_reach(const hr_knobs *knobs, hr_knob_id id, int direction, uint64_t when_unset_bytes,
                     char text[HR_KNOB_TEXT_MAX], char passed[HR_KNOB_TEXT_MAX])
{
    char next[HR_KNOB_TEXT_MAX], between[HR_KNOB_TEXT_MAX] = "";
    hr_knobs turned = *knobs;
    const bool any = knob_edit_neighbour(knobs, id, direction, when_unset_bytes, text);
    bool more = any && is_of_a_list(id), found = false;
    (void)snprintf(next, sizeof next, "%s", text);
    while (more && !found && hr_knobs_set(&turned, id, next, NULL) == HR_OK) {
        found = stands(&turned, id);
        if (!found) {
            add_passed(next, between);
            more = knob_edit_neighbour(&turned, id, direction, when_unset_bytes, next);
        }
    }
    if (found) {
        (void)snprintf(text, HR_KNOB_TEXT_MAX, "%s", next);
    }
    if (passed != NULL) {
        (void)snprintf(passed, HR_KNOB_TEXT_MAX, "%s", found ? between : "");
    }
    return any;
}

hr_status knob_edit_check_device(const hr_knobs *knobs, hr_err *err)
{
    hr_card card;
    uint64_t limit_bytes;
    const char *name = hr_knob_text(knobs, HR_KNOB_DEVICE_CARD);
    if (name[0] == '\0') {
        return HR_OK; // hr_knobs_validate knows whether that may be
    }
    HR_TRY(hr_card_load(name, &card, err));
    return hr_device_limit_bytes(knobs, &card, &limit_bytes, err);
}

bool knob_edit_differs(const hr_knobs *a, const hr_knobs *b, hr_knob_id id)
{
    char one[HR_KNOB_TEXT_MAX], other[HR_KNOB_TEXT_MAX];
    return memcmp(&a->value[id], &b->value[id], sizeof a->value[id]) != 0 &&
           strcmp(hr_knob_format(a, id, one), hr_knob_format(b, id, other)) != 0;
}

bool knob_edit_same(const hr_knobs *a, const hr_knobs *b)
{
    int id = 0;
    while (id < HR_KNOB_COUNT && !knob_edit_differs(a, b, (hr_knob_id)id)) {
        id++;
    }
    return id == HR_KNOB_COUNT;
}

// The first knob that still differs and can be turned now; HR_KNOB_COUNT when there is none.
static hr_knob_id next_legal(const hr_knobs *now, const hr_knobs *to, bool *differs)
{
    *differs = false;
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        if (knob_edit_differs(now, to, (hr_knob_id)id)) {
            hr_knobs turned = *now;
            turned.value[id] = to->value[id];
            *differs = true;
            if (hr_knobs_validate(&turned, NULL) == HR_OK) {
                return (hr_knob_id)id;
            }
        }
    }
    return HR_KNOB_COUNT;
}

hr_status knob_edit_order(const hr_knobs *from, const hr_knobs *to, hr_knob_id order[HR_KNOB_COUNT],
                          size_t *count, hr_err *err)
{
    hr_knobs now = *from;
    bool differs;
    *count = 0;
    HR_TRY(hr_knobs_validate(to, err));
    hr_knob_id id;
    while ((id = next_legal(&now, to, &differs)) != HR_KNOB_COUNT) {
        now.value[id] = to->value[id];
        order[(*count)++] = id;
    }
    if (differs) {
        return HR_FAIL(err, CONSTRAINT,
                       "these knobs can be set together, but not one after the other while it trains");
    }
    return HR_OK;
}

// ---- the way back ---------------------------------------------------------------------------------------------

void knob_edit_log_add(knob_edit_log *log, hr_knob_id id, const hr_knob_value *before,
                       const hr_knob_value *after)
{
    size_t gone = log->done == KNOB_EDIT_UNDO_MAX ? 1 : 0;
    while (gone > 0 && gone < log->done && log->step[gone].joined) {
        gone++; // what was turned together is forgotten together
    }
    memmove(log->step, log->step + gone, (log->done - gone) * sizeof *log->step);
    log->done -= gone;
    log->step[log->done++] = (knob_edit_step){id, *before, *after, false};
    log->count = log->done;
}

void knob_edit_log_join(knob_edit_log *log, size_t count)
{
    for (size_t back = 1; back < count && back < log->done; back++) {
        log->step[log->done - back].joined = true;
    }
}

const knob_edit_step *knob_edit_log_undo(knob_edit_log *log)
{
    return log->done == 0 ? NULL : &log->step[--log->done];
}

const knob_edit_step *knob_edit_log_redo(knob_edit_log *log)
{
    return log->done == log->count ? NULL : &log->step[log->done++];
}

void knob_edit_log_settle(knob_edit_log *log, const hr_knobs *knobs)
{
    for (; log->done > 0; log->done--) {
        const knob_edit_step *newest = &log->step[log->done - 1];
        hr_knobs turned = *knobs;
        turned.value[newest->id] = newest->after;
        if (!knob_edit_differs(&turned, knobs, newest->id)) {
            break;
        }
    }
    log->count = log->done;
}
