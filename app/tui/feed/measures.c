// SPDX-License-Identifier: Apache-2.0
#include "app/tui/feed/measures.h"

#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

static const measure_row rows[MEASURE_ALL] = {
#define X(id, term, kind, path) [MEASURE_##id] = {term, path, MEASURE_AS_##kind},
    MEASURE_MAP(X)
#undef X
};

const measure_row *measure_row_of(measure_id id)
{
    return &rows[id];
}

measures measures_unknown(void)
{
    measures m;
    for (int id = 0; id < MEASURE_ALL; id++) {
        m.value[id] = UNKNOWN;
    }
    return m;
}

bool measures_little_is_free(const hr_report_memory *m)
{
    enum { LITTLE = 50 };
    return m->peak_pool_bytes != HR_NONE && m->peak_in_use_bytes != HR_NONE &&
           (m->peak_pool_bytes <= m->peak_in_use_bytes ||
            m->peak_pool_bytes - m->peak_in_use_bytes < m->peak_pool_bytes / LITTLE);
}

static double count_of(uint64_t count)
{
    return count == HR_NONE ? UNKNOWN : (double)count;
}

static void take_memory(measures *m, const hr_report_memory *memory)
{
    m->value[MEASURE_PEAK] = count_of(memory->peak_in_use_bytes);
    m->value[MEASURE_POOL] = count_of(memory->peak_pool_bytes);
    m->value[MEASURE_REQUESTED] = count_of(memory->peak_requested_bytes);
    m->value[MEASURE_WASTE] = count_of(memory->waste_bytes);
    m->value[MEASURE_LARGEST_FREE] = count_of(memory->largest_free_bytes);
    m->value[MEASURE_FRAGMENTATION] = memory->fragmentation;
    m->value[MEASURE_STATIC] = count_of(memory->static_bytes);
    m->value[MEASURE_SAVED] = count_of(memory->saved_for_backward_bytes);
    m->value[MEASURE_LIBRARY] = count_of(memory->library_saved_bytes);
}

measures measures_of_report(const hr_report *r)
{
    measures m = measures_unknown();
    bool limited = r->memory.limit_bytes > 0;
    m.value[MEASURE_LIMIT] = count_of(limited ? r->memory.limit_bytes : r->oom.limit_bytes);
    m.value[MEASURE_PARAMETERS] = count_of(r->model.parameters);
    m.value[MEASURE_STEPS] = count_of(r->train.steps);
    if (r->memory.peak_in_use_bytes == 0 || r->memory.peak_in_use_bytes == HR_NONE) {
        return m;
    }
    take_memory(&m, &r->memory);
    m.value[MEASURE_HOST] =
        r->host.stage_count > 0 && r->host.unknown[0] == '\0' ? count_of(r->host.peak_bytes) : UNKNOWN;
    m.value[MEASURE_H2D] = count_of(r->h2d_bytes_per_step);
    m.value[MEASURE_STRIPPED] = count_of(r->deploy.stripped_bytes);
    m.value[MEASURE_DEPLOYED] = count_of(r->deploy.deployed_bytes);
    m.value[MEASURE_SECONDS] = r->step.seconds;
    m.value[MEASURE_EXAMPLES] = r->train.examples_per_second;
    m.value[MEASURE_LOSS_FIRST] = r->train.loss_first;
    m.value[MEASURE_LOSS_LAST] = r->train.loss_last;
    m.value[MEASURE_ACCURACY] = r->train.eval_accuracy;
    m.value[MEASURE_INSTRUCTIONS] = count_of(r->step.instructions);
    m.value[MEASURE_FLOPS] = count_of(r->step.flops);
    return m;
}

bool measures_tell(measure_id id, const measures *a, const measures *b)
{
    const double before = a->value[id], after = b->value[id];
    const bool of_deployment = id == MEASURE_STRIPPED || id == MEASURE_DEPLOYED;
    return (!isnan(before) || !isnan(after)) && (!of_deployment || isnan(after - before) || after != before);
}

static double highest_of(const measures *m, double highest, bool peak_only)
{
    for (int id = 0; m != NULL && id < MEASURE_ALL; id++) {
        const double value = m->value[id];
        const bool counts = rows[id].kind == MEASURE_AS_BYTES && (!peak_only || id == MEASURE_PEAK);
        highest = counts && value > highest ? value : highest; // never where it is not known
    }
    return highest;
}

byte_unit measures_unit(const measures *a, const measures *b)
{
    const double peak = highest_of(b, highest_of(a, 0, true), true);
    const double highest = highest_of(b, highest_of(a, 0, false), false);
    byte_unit unit = byte_unit_for((uint64_t)(peak > 0 ? peak : highest));
    while (highest >= 1e5 * unit.bytes && unit.bytes < 1024.0 * HR_GIB) { // a limit may dwarf the peak
        unit = byte_unit_for((uint64_t)(4 * 1024 * unit.bytes));
    }
    return unit;
}

// ---- as text --------------------------------------------------------------------------------------------------

const char *measure_format(measure_id id, double value, byte_unit unit, char text[FORMAT_MAX])
{
    if (isnan(value)) {
        return strcpy(text, "—");
    }
    switch (rows[id].kind) {
    case MEASURE_AS_BYTES:
        return format_cell_bytes((uint64_t)value, unit, text);
    case MEASURE_AS_FRACTION:
        return format_percent(value, text);
    case MEASURE_AS_SECONDS:
        return format_seconds(value, text);
    case MEASURE_AS_RATE:
        snprintf(text, FORMAT_MAX, value < 100 ? "%.1f" : "%.0f", value);
        return text;
    case MEASURE_AS_LOSS:
        return format_loss(value, text);
    case MEASURE_AS_COUNT:
        break;
    }
    return format_count(value, text);
}

const char *measure_format_delta(measure_id id, double before, double after, byte_unit unit,
                                 char text[FORMAT_MAX])
{
    double delta = after - before;
    char size[FORMAT_MAX];
    if (isnan(delta) || delta == 0) {
        return strcpy(text, isnan(delta) ? "—" : "±0");
    }
    switch (rows[id].kind) {
    case MEASURE_AS_FRACTION:
        return format_delta(100 * delta, "%", text);
    case MEASURE_AS_LOSS:
        return format_delta(delta, "", text);
    case MEASURE_AS_BYTES:
    case MEASURE_AS_SECONDS:
    case MEASURE_AS_RATE:
    case MEASURE_AS_COUNT:
        break;
    }
    measure_format(id, fabs(delta), unit, size);
    snprintf(text, FORMAT_MAX, "%c%.*s", delta < 0 ? '-' : '+', FORMAT_MAX - 2, size);
    return text;
}

const char *measure_format_percent(double before, double after, char text[FORMAT_MAX])
{
    double share = 100 * (after - before) / before;
    text[0] = '\0';
    if (isfinite(share) && before > 0 && after != before) {
        bool many = share >= 999.95; // a share says nothing any more
        snprintf(text, FORMAT_MAX, many ? "x%.0f" : "%+.1f%%", many ? after / before : share);
    }
    return text;
}

// ---- in words -------------------------------------------------------------------------------------------------

typedef struct wording {
    measure_id id;
    const char *verb, *less, *more, *of; // "needs 3 MiB" "less" "at the peak"
} wording;

static const wording wordings[] = {
    {MEASURE_PEAK, "needs", "less", "more", " at the peak"},
    {MEASURE_SECONDS, "takes", "less", "more", " a step"},
    {MEASURE_DEPLOYED, "deploys", "less", "more", ""},
    {MEASURE_LOSS_LAST, "ends at a loss", "lower", "higher", ""},
};

static const char *amount(measure_id id, double value, char text[FORMAT_MAX])
{
    char bytes[HR_BYTES_TEXT_MAX];
    if (rows[id].kind != MEASURE_AS_BYTES) {
        return measure_format(id, value, (byte_unit){"B", 1, 0}, text);
    }
    snprintf(text, FORMAT_MAX, "%s", hr_bytes_human((uint64_t)value, bytes));
    return text;
}

// One clause; 0 when nothing is known to have changed.
static int say_one(const wording *w, const measures *a, const measures *b, char *text, size_t size)
{
    char by[FORMAT_MAX], share[FORMAT_MAX];
    double before = a->value[w->id], after = b->value[w->id], delta = after - before;
    if (isnan(delta) || delta == 0) {
        return 0;
    }
    measure_format_percent(before, after, share);
    return snprintf(text, size, "%s %s %s%s%s%s%s", w->verb, amount(w->id, fabs(delta), by),
                    delta < 0 ? w->less : w->more, w->of, share[0] == '\0' ? "" : " (", share,
                    share[0] == '\0' ? "" : ")");
}

const char *measures_verdict(const measures *a, const measures *b, char *text, size_t size)
{
    enum { CLAUSES = sizeof wordings / sizeof *wordings };
    char clause[CLAUSES][160];
    int said = 0;
    for (int i = 0; i < CLAUSES; i++) {
        said += say_one(&wordings[i], a, b, clause[said], sizeof clause[said]) > 0;
    }
    if (said == 0) {
        bool timed = !isnan(a->value[MEASURE_SECONDS] + b->value[MEASURE_SECONDS]);
        bool known = !isnan(a->value[MEASURE_PEAK] + b->value[MEASURE_PEAK]);
        snprintf(text, size, "%s",
                 !known  ? "There is no peak of both to compare."
                 : timed ? "b needs what a needs, and their step times cannot be told apart."
                         : "b needs what a needs.");
        return text;
    }
    size_t used = (size_t)snprintf(text, size, "b ");
    for (int i = 0; i < said && used < size; i++) {
        const char *between = i == 0 ? "" : i + 1 == said ? " and " : ", ";
        int length =
            snprintf(text + used, size - used, "%s%s%s", between, clause[i], i + 1 == said ? "." : "");
        used += length > 0 ? (size_t)length : 0;
    }
    return text;
}

const char *measures_verdict_oom(const char *a_cause, const char *b_cause, char *text, size_t size)
{
    static const char unknown[] = "an unknown cause";
    const char *a = a_cause != NULL && a_cause[0] == '\0' ? unknown : a_cause;
    const char *b = b_cause != NULL && b_cause[0] == '\0' ? unknown : b_cause;
    if (a != NULL && b != NULL) {
        snprintf(text, size, "Neither fits: a runs out of memory by %s, b by %s.", a, b);
    } else {
        snprintf(text, size, "%s runs out of memory by %s, %s fits.", a != NULL ? "a" : "b",
                 a != NULL ? a : b, a != NULL ? "b" : "a");
    }
    return text;
}
