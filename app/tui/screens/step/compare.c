// SPDX-License-Identifier: Apache-2.0
// Two step plans side by side. The k-th instruction of a name answers to the k-th of that name in the other one, as far
// as both stand in the same order: the longest rising sequence of such pairs stays, the rest comes and goes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/tui/base/name_key.h"
#include "app/tui/screens/step/step.h"

typedef struct named {
    uint64_t name; // hash
    uint32_t instr;
} named;

typedef struct pairing {
    uint32_t *now_of;  // [before->instr_count] HR_NO_ID: none
    uint32_t *tail;    // scratch of the rising sequence: the last pair of one of that length
    uint32_t *earlier; // the pair before
    named *one, *other;
} pairing;

// ---- the same -------------------------------------------------------------------------------------------------

static bool is_same_instr(const hr_step_plan_instr *a, const hr_step_plan_instr *b)
{
    return a->name == b->name && a->line == b->line && a->impl == b->impl &&
           a->in_use_bytes == b->in_use_bytes && a->pool_bytes == b->pool_bytes &&
           a->requested_bytes == b->requested_bytes && a->flops == b->flops &&
           memcmp(&a->seconds, &b->seconds, sizeof a->seconds) == 0; // unknown is the same as unknown
}

bool step_is_same(const hr_step_plan *one, const hr_step_plan *other)
{
    bool same = one->instr_count == other->instr_count && one->tensor_count == other->tensor_count &&
                one->layer_count == other->layer_count && one->event_count == other->event_count &&
                one->texts_bytes == other->texts_bytes && one->limit_bytes == other->limit_bytes &&
                one->fits == other->fits && one->missing_bytes == other->missing_bytes &&
                one->peak_in_use_bytes == other->peak_in_use_bytes && one->peak_instr == other->peak_instr;
    same = same && (one->texts_bytes == 0 || memcmp(one->texts, other->texts, one->texts_bytes) == 0);
    for (size_t i = 0; same && i < one->instr_count; i++) {
        same = is_same_instr(&one->instrs[i], &other->instrs[i]);
    }
    for (size_t e = 0; same && e < one->event_count; e++) {
        same =
            one->events[e].kind == other->events[e].kind &&
            memcmp(&one->events[e].u.memory, &other->events[e].u.memory, sizeof one->events[e].u.memory) == 0;
    }
    return same;
}

// ---- names ----------------------------------------------------------------------------------------------------

static uint64_t name_of(const hr_step_plan *p, uint32_t instr)
{
    const hr_step_plan_instr *i = &p->instrs[instr];
    const bool of_tensor = i->is_alloc || i->is_free;
    return name_key(of_tensor ? step_tensor_name(p, i->tensor) : hr_step_plan_text(p, i->name)) +
           (i->is_alloc  ? 1
            : i->is_free ? 2
                         : 0);
}

static int by_name(const void *left, const void *right)
{
    const named *a = left, *b = right;
    if (a->name != b->name) {
        return a->name < b->name ? -1 : 1;
    }
    return a->instr < b->instr ? -1 : a->instr > b->instr;
}

static void list_names(const hr_step_plan *p, named *out)
{
    for (uint32_t i = 0; i < p->instr_count; i++) {
        out[i] = (named){name_of(p, i), i};
    }
    qsort(out, p->instr_count, sizeof *out, by_name);
}

// ---- pairs ----------------------------------------------------------------------------------------------------

static void pair_names(pairing *m, size_t ones, size_t others)
{
    size_t at = 0;
    for (size_t i = 0; i < ones; i++) {
        while (at < others && m->other[at].name < m->one[i].name) {
            at++;
        }
        bool same = at < others && m->other[at].name == m->one[i].name;
        m->now_of[m->one[i].instr] = same ? m->other[at++].instr : HR_NO_ID;
    }
}

// The shortest sequence so far that `now` could not lengthen, by halving.
static uint32_t place_in(const pairing *m, uint32_t length, uint32_t now)
{
    uint32_t low = 0, high = length;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->now_of[m->tail[middle]] < now) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Keeps the longest sequence of pairs that rises on both sides.
static void keep_order(pairing *m, uint32_t ones)
{
    uint32_t length = 0;
    for (uint32_t i = 0; i < ones; i++) {
        if (m->now_of[i] != HR_NO_ID) {
            uint32_t place = place_in(m, length, m->now_of[i]);
            m->earlier[i] = place > 0 ? m->tail[place - 1] : HR_NO_ID;
            m->tail[place] = i;
            length = place == length ? length + 1 : length;
        }
    }
    uint32_t kept = length > 0 ? m->tail[length - 1] : HR_NO_ID;
    for (uint32_t i = ones; i-- > 0;) {
        if (i == kept) {
            kept = m->earlier[i];
        } else {
            m->now_of[i] = HR_NO_ID;
        }
    }
}

// ---- rows -----------------------------------------------------------------------------------------------------

static void add_row(step_changes *out, char sign, uint32_t before, uint32_t now)
{
    out->rows[out->count++] = (step_turned){sign, before, now};
    out->come += sign == '+';
    out->go += sign == '-';
    out->change += sign == '~';
}

static bool reads_the_same(const hr_step_plan *before, uint32_t one, const hr_step_plan *now, uint32_t other)
{
    return strcmp(step_line(before, one), step_line(now, other)) == 0 &&
           strcmp(hr_step_plan_text(before, before->instrs[one].impl),
                  hr_step_plan_text(now, now->instrs[other].impl)) == 0;
}

static void list_rows(const hr_step_plan *before, const hr_step_plan *now, const pairing *m,
                      step_changes *out)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < before->instr_count; i++) {
        if (m->now_of[i] == HR_NO_ID) {
            add_row(out, '-', i, HR_NO_ID);
            continue;
        }
        for (; next < m->now_of[i]; next++) {
            add_row(out, '+', HR_NO_ID, next);
        }
        next = m->now_of[i] + 1;
        if (!reads_the_same(before, i, now, m->now_of[i])) {
            add_row(out, '~', i, m->now_of[i]);
        }
    }
    for (; next < now->instr_count; next++) {
        add_row(out, '+', HR_NO_ID, next);
    }
}

// What answers to an instruction that went is what comes next.
static uint32_t answer_to(const pairing *m, uint32_t at, const hr_step_plan *before, const hr_step_plan *now)
{
    while (at < before->instr_count && m->now_of[at] == HR_NO_ID) {
        at++;
    }
    return at < before->instr_count ? m->now_of[at] : (uint32_t)now->instr_count;
}

void step_compare(const hr_step_plan *before, const hr_step_plan *now, step_changes *out, uint32_t *at)
{
    size_t ones = before->instr_count, others = now->instr_count;
    pairing m = {calloc(ones + 1, sizeof *m.now_of), calloc(ones + 1, sizeof *m.tail),
                 calloc(ones + 1, sizeof *m.earlier), calloc(ones + 1, sizeof *m.one),
                 calloc(others + 1, sizeof *m.other)};
    free(out->rows);
    out->rows = calloc(ones + others + 1, sizeof *out->rows);
    out->count = out->come = out->go = out->change = 0;
    out->compared = out->rows != NULL && m.now_of != NULL && m.tail != NULL && m.earlier != NULL &&
                    m.one != NULL && m.other != NULL;
    if (out->compared) {
        list_names(before, m.one);
        list_names(now, m.other);
        pair_names(&m, ones, others);
        keep_order(&m, (uint32_t)ones);
        list_rows(before, now, &m, out);
        *at = answer_to(&m, *at, before, now);
    }
    free(m.now_of);
    free(m.tail);
    free(m.earlier);
    free(m.one);
    free(m.other);
}
