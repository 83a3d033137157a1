// SPDX-License-Identifier: Apache-2.0
// From --allocator, --sweep and --set to the columns of a replay.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/words.h"

#include "app/cli/replay.h"

// ---- sweeps ---------------------------------------------------------------------------------------------------

// Cuts at commas that no bracket holds together: "none,[256:1,512:2],64MiB" has three values.
static hr_status cut_values(replay_sweep *s, char *values, hr_err *err)
{
    unsigned depth = 0;
    s->count = 0;
    s->values[s->count++] = values;
    for (char *c = values; *c != '\0'; c++) {
        depth += *c == '[';
        depth -= *c == ']' && depth > 0;
        if (*c != ',' || depth > 0) {
            continue;
        }
        if (s->count == REPLAY_VALUES_MAX) {
            return HR_FAIL(err, USAGE, "--sweep: at most %d values, had more", REPLAY_VALUES_MAX);
        }
        *c = '\0';
        s->values[s->count++] = c + 1;
    }
    return HR_OK;
}

static hr_status find_knob(const char *key, hr_knob_id *id, hr_err *err)
{
    const char *near = NULL;
    const hr_knob_row *row = hr_knob_find(key, &near);
    if (row == NULL) {
        hr_status status =
            HR_FAIL(err, KNOB, "there is no knob '%.64s'%s%s%s", key, near == NULL ? "" : " — did you mean '",
                    near == NULL ? "" : near, near == NULL ? "" : "'?");
        hr_err_try(err, "headroom knobs%s%s", near == NULL ? "" : " ", near == NULL ? "" : near);
        return status;
    }
    *id = row->id;
    if (!hr_replay_knob_applies(row->id)) {
        hr_status status =
            HR_FAIL(err, USAGE,
                    "%s changes nothing in a replay; device.card, device.vram and what begins with "
                    "allocator. does",
                    row->key);
        hr_err_try(err, "-s allocator.growth=on");
        return status;
    }
    return HR_OK;
}

static hr_status parse_sweep(const char *text, replay_sweep *s, hr_err *err)
{
    if ((size_t)snprintf(s->text, sizeof s->text, "%s", text) >= sizeof s->text) {
        return HR_FAIL(err, USAGE, "--sweep needs fewer than %zu characters, had %zu", sizeof s->text,
                       strlen(text));
    }
    char *equals = strchr(s->text, '=');
    if (equals == NULL || equals == s->text || equals[1] == '\0') {
        hr_status status = HR_FAIL(err, USAGE, "--sweep needs KEY=VALUE,VALUE, had '%.64s'", text);
        hr_err_try(err, "--sweep allocator.growth=on,off");
        return status;
    }
    *equals = '\0';
    HR_TRY(find_knob(s->text, &s->id, err));
    if (s->id == HR_KNOB_ALLOCATOR_KIND) {
        hr_status status = HR_FAIL(err, USAGE, "allocator.kind is swept by --allocator");
        hr_err_try(err, "--allocator %.200s", equals + 1);
        return status;
    }
    return cut_values(s, equals + 1, err);
}

// ---- kinds ----------------------------------------------------------------------------------------------------

typedef struct kinds {
    replay_sweep names; // values: "bfc", …
    bool chosen;        // by the person; otherwise all there are
} kinds;

static void take_all_kinds(kinds *k)
{
    const hr_knob_row *row = &hr_knob_rows(NULL)[HR_KNOB_ALLOCATOR_KIND];
    k->chosen = false;
    k->names.count = 0;
    for (unsigned n = 0; row->choices[n] != NULL; n++) {
        if (hr_replay_plays(row->choices[n])) {
            k->names.values[k->names.count++] = row->choices[n];
        }
    }
}

// What --allocator names, what -s allocator.kind names, `unnamed`, or all.
static hr_status take_kinds(const cli_args *args, const char *unnamed, kinds *k, hr_err *err)
{
    static const char key[] = "allocator.kind=";
    const char *listed = args->value[APP_ALLOCATOR], *set = NULL;
    for (unsigned n = 0; n < args->set_count; n++) {
        set = strncmp(args->sets[n], key, sizeof key - 1) == 0 ? args->sets[n] + sizeof key - 1 : set;
    }
    if (listed != NULL && set != NULL) {
        hr_status status =
            HR_FAIL(err, USAGE, "--allocator and -s allocator.kind say the same: needed one, had both");
        hr_err_try(err, "--allocator %.200s", listed);
        return status;
    }
    const char *named = listed != NULL ? listed : set != NULL ? set : unnamed;
    k->names.id = HR_KNOB_ALLOCATOR_KIND;
    if (named == NULL) {
        take_all_kinds(k);
        return HR_OK;
    }
    k->chosen = true;
    if ((size_t)snprintf(k->names.text, sizeof k->names.text, "%s", named) >= sizeof k->names.text) {
        return HR_FAIL(err, USAGE, "--allocator: the list is too long");
    }
    return cut_values(&k->names, k->names.text, err);
}

// ---- columns --------------------------------------------------------------------------------------------------

typedef struct maker {
    const cli_args *args;
    replay_table *t;
    uint64_t heard; // set of --set that some column listens to
} maker;

_Static_assert(CLI_SETS_MAX <= 64, "one bit for each --set");

static hr_status set_kind(hr_knobs *knobs, const char *kind, hr_err *err)
{
    hr_status status = hr_knobs_set(knobs, HR_KNOB_ALLOCATOR_KIND, kind, err);
    if (status != HR_OK) {
        hr_err_try(err, "headroom knobs allocator.kind");
    }
    return status;
}

static hr_status set_base(maker *m, const char *kind, hr_knobs *knobs, hr_err *err)
{
    hr_replay_knobs_init(knobs);
    HR_TRY(set_kind(knobs, kind, err));
    for (unsigned k = 0; k < m->args->set_count; k++) {
        char key[64];
        hr_knob_id id;
        (void)snprintf(key, sizeof key, "%.*s", (int)strcspn(m->args->sets[k], "="), m->args->sets[k]);
        HR_TRY(find_knob(key, &id, err));
        if (id == HR_KNOB_ALLOCATOR_KIND) {
            m->heard |= UINT64_C(1) << k;
        } else if (hr_replay_knob_concerns(id, kind)) {
            HR_TRY(hr_knobs_set_pair(knobs, m->args->sets[k], err));
            m->heard |= UINT64_C(1) << k;
        }
    }
    return HR_OK;
}

static hr_status add_column(replay_table *t, const char *kind, const hr_knobs *knobs, replay_column **out,
                            hr_err *err)
{
    if (t->column_count == REPLAY_COLUMNS_MAX) {
        return HR_FAIL(err, USAGE, "replay: at most %d combinations, had more", REPLAY_COLUMNS_MAX);
    }
    *out = &t->columns[t->column_count++];
    **out = (replay_column){.knobs = *knobs, .kind = kind};
    return HR_OK;
}

// All combinations of the sweeps that concern the kind: an odometer with a wheel for each.
static hr_status add_combinations(replay_table *t, const char *kind, const hr_knobs *base, hr_err *err)
{
    unsigned wheel[REPLAY_SWEEPS_MAX] = {0}, at = 0;
    do {
        replay_column *column = NULL;
        HR_TRY(add_column(t, kind, base, &column, err));
        for (unsigned k = 0; k < t->sweep_count; k++) {
            const replay_sweep *s = &t->sweeps[k];
            if (hr_replay_knob_concerns(s->id, kind)) {
                column->value[k] = s->values[wheel[k]];
                HR_TRY(hr_knobs_set(&column->knobs, s->id, column->value[k], err));
            }
        }
        for (at = t->sweep_count; at > 0; at--) {
            const replay_sweep *s = &t->sweeps[at - 1];
            if (hr_replay_knob_concerns(s->id, kind) && ++wheel[at - 1] < s->count) {
                break;
            }
            wheel[at - 1] = 0;
        }
    } while (at > 0);
    return HR_OK;
}

// A knob that no column listens to would change nothing.
static hr_status check_heard(const maker *m, hr_err *err)
{
    for (unsigned k = 0; k < m->args->set_count; k++) {
        if ((m->heard >> k & 1) == 0) {
            return HR_FAIL(err, USAGE, "-s %.100s: none of these allocators listens to it", m->args->sets[k]);
        }
    }
    for (unsigned k = 0; k < m->t->sweep_count; k++) {
        bool heard = false;
        for (unsigned c = 0; c < m->t->column_count; c++) {
            heard |= m->t->columns[c].value[k] != NULL;
        }
        if (!heard) {
            return HR_FAIL(err, USAGE, "--sweep %.100s: none of these allocators listens to it",
                           hr_knob_rows(NULL)[m->t->sweeps[k].id].key);
        }
    }
    return HR_OK;
}

static hr_status make(maker *m, const kinds *k, hr_err *err)
{
    for (unsigned n = 0; n < k->names.count; n++) {
        hr_knobs base;
        HR_TRY(set_base(m, k->names.values[n], &base, err));
        // The word of the knob's own table, which outlives the command line.
        const char *kind = hr_knob_text(&base, HR_KNOB_ALLOCATOR_KIND);
        HR_TRY(add_combinations(m->t, kind, &base, err));
    }
    return check_heard(m, err);
}

hr_status replay_make_columns(const cli_args *args, replay_table *t, hr_err *err)
{
    kinds k;
    maker m = {.args = args, .t = t};
    t->sweep_count = t->column_count = 0;
    for (unsigned n = 0; n < args->sweep_count; n++) {
        if (n == REPLAY_SWEEPS_MAX) {
            return HR_FAIL(err, USAGE, "--sweep: at most %d, had more", REPLAY_SWEEPS_MAX);
        }
        HR_TRY(parse_sweep(args->sweeps[n], &t->sweeps[t->sweep_count++], err));
    }
    HR_TRY(take_kinds(args, t->kind_unnamed, &k, err));
    t->chosen = k.chosen;
    t->columns = calloc(REPLAY_COLUMNS_MAX, sizeof *t->columns);
    if (t->columns == NULL) {
        return HR_FAIL(err, NOMEM, "replay: no host memory for %d columns", REPLAY_COLUMNS_MAX);
    }
    return make(&m, &k, err);
}

void replay_table_deinit(replay_table *t)
{
    for (unsigned k = 0; k < t->column_count; k++) {
        hr_replay_result_deinit(&t->columns[k].result);
    }
    free(t->columns);
    t->columns = NULL;
    t->column_count = 0;
}

const char *replay_knob_label(const replay_sweep *s)
{
    const char *key = hr_knob_rows(NULL)[s->id].key, *dot = strchr(key, '.');
    return dot == NULL ? key : dot + 1;
}
