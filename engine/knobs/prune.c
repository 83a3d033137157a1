// SPDX-License-Identifier: Apache-2.0
#include "knobs/prune.h"

#include <string.h>

#include "base/text.h"

enum { FIELDS_MAX = 7, FIELD_MAX = 32, UPDATES_MAX = 1000000000, SIDE_MAX = 1 << 20 };

typedef struct fields {
    char text[FIELDS_MAX][FIELD_MAX];
    uint32_t count;
} fields;

// Cut at each ':'; false where a field is too long, or there are too many.
static bool split(const char *words, fields *out)
{
    *out = (fields){.count = 0};
    while (out->count < FIELDS_MAX) {
        const size_t length = strcspn(words, ":");
        if (length >= FIELD_MAX) {
            return false;
        }
        memcpy(out->text[out->count++], words, length);
        if (words[length] == '\0') {
            return true;
        }
        words += length + 1;
    }
    return false;
}

static bool real_at(const fields *f, uint32_t k, double *out)
{
    return k >= f->count || text_to_real(f->text[k], out);
}

static bool int_at(const fields *f, uint32_t k, int32_t *out)
{
    int64_t value = 0;
    if (k >= f->count) {
        return true;
    }
    if (!text_to_int(f->text[k], &value) || value > UPDATES_MAX || value < -1) {
        return false;
    }
    *out = (int32_t)value;
    return true;
}

static bool is_share(double value)
{
    return value >= 0.0 && value < 1.0;
}

static prune_problem judge(const prune_choice *c, bool endless)
{
    if (!is_share(c->from) || !is_share(c->to)) {
        return PRUNE_SPARSITY;
    }
    if (c->begin < 0 || (c->end < 0 && !endless) || (c->end >= 0 && c->end < c->begin)) {
        return PRUNE_BACKWARDS;
    }
    return c->frequency < 1 ? PRUNE_NEVER : c->power > 0.0 ? PRUNE_FINE : PRUNE_POWER;
}

// constant:S[:BEGIN[:END[:FREQUENCY]]] (ConstantSparsity; tfmot gives begin_step no default, prune_low_magnitude gives 0).
static prune_problem constant_of(const fields *f, prune_choice *out)
{
    if (f->count < 2 || f->count > 5 || !real_at(f, 1, &out->to) || !int_at(f, 2, &out->begin) ||
        !int_at(f, 3, &out->end) || !int_at(f, 4, &out->frequency)) {
        return PRUNE_STRANGE;
    }
    out->from = out->to;
    out->power = 1.0;
    return judge(out, true);
}

// polynomial:S0:S1:BEGIN:END[:FREQUENCY[:POWER]] (PolynomialDecay).
static prune_problem polynomial_of(const fields *f, prune_choice *out)
{
    if (f->count < 5 || !real_at(f, 1, &out->from) || !real_at(f, 2, &out->to) ||
        !int_at(f, 3, &out->begin) || !int_at(f, 4, &out->end) || !int_at(f, 5, &out->frequency) ||
        !real_at(f, 6, &out->power)) {
        return PRUNE_STRANGE;
    }
    return judge(out, false);
}

// "2x4", "2:4": two sides with `between` between them.
static bool sides_of(const char *words, char between, int32_t *first, int32_t *second)
{
    char side[FIELD_MAX];
    const char *at = strchr(words, between);
    int64_t a = 0, b = 0;
    if (at == NULL || (size_t)(at - words) >= sizeof side) {
        return false;
    }
    memcpy(side, words, (size_t)(at - words));
    side[at - words] = '\0';
    if (!text_to_int(side, &a) || !text_to_int(at + 1, &b) || a < 1 || b < 1 || a > SIDE_MAX ||
        b > SIDE_MAX) {
        return false;
    }
    *first = (int32_t)a;
    *second = (int32_t)b;
    return true;
}

static prune_problem structure_of(const char *words, prune_choice *out)
{
    static const char block[] = "block:";
    out->rows = out->columns = 1;
    out->structure = PRUNE_BY_ELEMENT;
    if (strcmp(words, "element") == 0) {
        return PRUNE_FINE;
    }
    if (strcmp(words, "filter") == 0) {
        out->structure = PRUNE_BY_FILTER;
        return PRUNE_FINE;
    }
    if (strncmp(words, block, sizeof block - 1) == 0) {
        out->structure = PRUNE_BY_BLOCK;
        return sides_of(words + sizeof block - 1, 'x', &out->rows, &out->columns) ? PRUNE_FINE
                                                                                  : PRUNE_STRANGE_STRUCTURE;
    }
    out->structure = PRUNE_BY_GROUP;
    if (!sides_of(words, ':', &out->rows, &out->columns)) {
        return PRUNE_STRANGE_STRUCTURE;
    }
    return out->rows < out->columns ? PRUNE_FINE : PRUNE_WHOLE_GROUPS;
}

prune_problem prune_choice_of(const hr_knobs *knobs, prune_choice *out)
{
    const char *words = hr_knob_text(knobs, HR_KNOB_COMPRESS_PRUNE);
    fields f;
    *out = (prune_choice){.end = -1, .frequency = 100, .power = 3.0};
    const prune_problem shape = structure_of(hr_knob_text(knobs, HR_KNOB_COMPRESS_PRUNE_STRUCTURE), out);
    if (shape != PRUNE_FINE || strcmp(words, "none") == 0) {
        return shape;
    }
    out->prunes = true;
    if (!split(words, &f)) {
        return PRUNE_STRANGE;
    }
    return strcmp(f.text[0], "constant") == 0     ? constant_of(&f, out)
           : strcmp(f.text[0], "polynomial") == 0 ? polynomial_of(&f, out)
                                                  : PRUNE_STRANGE;
}

// The base that adapters stand beside is frozen, and what they add to it has no zeros.
bool prune_meets_adapters(const hr_knobs *knobs)
{
    return prune_is_on(knobs) && hr_knob_is_set(knobs, HR_KNOB_COMPRESS_LORA);
}

bool prune_is_on(const hr_knobs *knobs)
{
    return !hr_knob_is(knobs, HR_KNOB_COMPRESS_PRUNE, "none");
}

uint64_t prune_first_update(const hr_knobs *knobs)
{
    prune_choice c;
    if (prune_choice_of(knobs, &c) != PRUNE_FINE || !c.prunes) {
        return 0;
    }
    const bool once = c.structure == PRUNE_BY_GROUP;
    const int32_t first = c.begin > 0 ? c.begin : once ? 1 : c.frequency;
    return once || c.end < 0 || first <= c.end ? (uint64_t)first : 0;
}

#define HAS(name, problem)                                                                                   \
    bool name(const hr_knobs *knobs)                                                                         \
    {                                                                                                        \
        prune_choice choice;                                                                                 \
        return prune_choice_of(knobs, &choice) == (problem);                                                 \
    }

HAS(prune_has_no_power, PRUNE_POWER)
HAS(prune_structure_is_strange, PRUNE_STRANGE_STRUCTURE)
HAS(prune_groups_are_whole, PRUNE_WHOLE_GROUPS)

typedef enum schedule { SCHEDULE_NONE, SCHEDULE_CONSTANT, SCHEDULE_POLYNOMIAL } schedule;

static schedule schedule_of(const hr_knobs *knobs)
{
    const char *words = hr_knob_text(knobs, HR_KNOB_COMPRESS_PRUNE);
    fields f;
    (void)split(words, &f);
    return strcmp(f.text[0], "constant") == 0     ? SCHEDULE_CONSTANT
           : strcmp(f.text[0], "polynomial") == 0 ? SCHEDULE_POLYNOMIAL
                                                  : SCHEDULE_NONE;
}

// The same problem of one schedule: what helps is of that schedule, too.
#define HAS_UNDER(name, schedule, problem)                                                                   \
    bool name(const hr_knobs *knobs)                                                                         \
    {                                                                                                        \
        prune_choice choice;                                                                                 \
        return schedule_of(knobs) == (schedule) && prune_choice_of(knobs, &choice) == (problem);             \
    }

HAS_UNDER(prune_is_strange, SCHEDULE_NONE, PRUNE_STRANGE)
HAS_UNDER(constant_is_strange, SCHEDULE_CONSTANT, PRUNE_STRANGE)
HAS_UNDER(polynomial_is_strange, SCHEDULE_POLYNOMIAL, PRUNE_STRANGE)
HAS_UNDER(constant_takes_all, SCHEDULE_CONSTANT, PRUNE_SPARSITY)
HAS_UNDER(polynomial_takes_all, SCHEDULE_POLYNOMIAL, PRUNE_SPARSITY)
HAS_UNDER(constant_ends_first, SCHEDULE_CONSTANT, PRUNE_BACKWARDS)
HAS_UNDER(polynomial_ends_first, SCHEDULE_POLYNOMIAL, PRUNE_BACKWARDS)
HAS_UNDER(constant_has_no_turn, SCHEDULE_CONSTANT, PRUNE_NEVER)
HAS_UNDER(polynomial_has_no_turn, SCHEDULE_POLYNOMIAL, PRUNE_NEVER)
