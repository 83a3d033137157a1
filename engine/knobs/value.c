// SPDX-License-Identifier: Apache-2.0
// Values of knobs: read strictly as the row says, stored, and written back as they would be typed.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "headroom/knobs.h"
#include "headroom/units.h"
#include "headroom/words.h"

#include "base/text.h"
#include "knobs/torch_conf.h"

static const hr_knob_row *row_of(hr_knob_id id)
{
    return &hr_knob_rows(NULL)[id];
}

// Names of a choice in other tools, which are not taken: they say less than ours, or something else.
static const struct {
    hr_knob_id id;
    const char *typed, *meant;
} elsewhere[] = {
    {HR_KNOB_PRECISION_POLICY, "fp16", "mixed_float16"},
    {HR_KNOB_PRECISION_POLICY, "amp", "mixed_float16"},
    {HR_KNOB_PRECISION_POLICY, "mixed", "mixed_float16"},
    {HR_KNOB_PRECISION_POLICY, "mixed_fp16", "mixed_float16"},
    {HR_KNOB_PRECISION_POLICY, "half", "float16"},
    {HR_KNOB_PRECISION_POLICY, "bf16", "mixed_bfloat16"},
    {HR_KNOB_PRECISION_POLICY, "mixed_bf16", "mixed_bfloat16"},
    {HR_KNOB_PRECISION_POLICY, "fp32", "float32"},
    {HR_KNOB_PRECISION_POLICY, "fp64", "float64"},
    {HR_KNOB_PRECISION_POLICY, "double", "float64"},
    {HR_KNOB_ALLOCATOR_KIND, "pytorch", "caching"},
    {HR_KNOB_ALLOCATOR_KIND, "tensorflow", "bfc"},
    {HR_KNOB_ALLOCATOR_KIND, "cuda_malloc_async", "async_driver"},
    {HR_KNOB_DEVICE_KIND, "gpu", "cuda"},
};

uint32_t hr_knob_batches_ahead(const hr_knobs *knobs)
{
    if (hr_knob_is(knobs, HR_KNOB_PIPELINE_RESIDENT, "on")) {
        return 0;
    }
    return hr_knob_is_set(knobs, HR_KNOB_PIPELINE_DEVICE_PREFETCH)
               ? (uint32_t)hr_knob_int(knobs, HR_KNOB_PIPELINE_DEVICE_PREFETCH)
               : hr_knob_is(knobs, HR_KNOB_DEVICE_KIND, "cuda");
}

const char *hr_knob_unset_word(const hr_knob_row *row)
{
    return row->unset != NULL ? row->unset : "none";
}

static bool is_number(const hr_knob_row *row)
{
    return row->type == HR_KNOB_INT || row->type == HR_KNOB_REAL || row->type == HR_KNOB_BYTES;
}

// ---- ranges and choices in words --------------------------------------------------------------------------

enum { RANGE_TEXT_MAX = 160 };

static void write_bound(const hr_knob_row *row, double bound, char out[HR_BYTES_TEXT_MAX])
{
    if (row->type == HR_KNOB_BYTES) {
        hr_bytes_exact((uint64_t)bound, out);
    } else {
        snprintf(out, HR_BYTES_TEXT_MAX, row->type == HR_KNOB_INT ? "%.0f" : "%g", bound);
    }
}

// "a whole number from 1 to 1048576 (samples)"
static const char *write_need(const hr_knob_row *row, char out[RANGE_TEXT_MAX])
{
    static const char *const kinds[] = {
        [HR_KNOB_INT] = "a whole number",
        [HR_KNOB_REAL] = "a number",
        [HR_KNOB_BYTES] = "a size such as 64MiB",
    };
    char low[HR_BYTES_TEXT_MAX], high[HR_BYTES_TEXT_MAX];
    if (row->type == HR_KNOB_TEXT) {
        snprintf(out, RANGE_TEXT_MAX, "one line of text, %d bytes at most", HR_KNOB_TEXT_MAX - 1);
    } else if (row->type == HR_KNOB_CHOICE) {
        int length = snprintf(out, RANGE_TEXT_MAX, "%s", row->choices[1] == NULL ? "" : "one of ");
        for (size_t i = 0; row->choices[i] != NULL; i++) {
            length += snprintf(out + length, RANGE_TEXT_MAX - (size_t)length, "%s%s", i > 0 ? ", " : "",
                               row->choices[i]);
        }
    } else {
        bool named = row->type != HR_KNOB_BYTES && row->unit[0] != '\0';
        write_bound(row, row->min, low);
        write_bound(row, row->max, high);
        const bool optional = row->preset_default[0] == '\0';
        snprintf(out, RANGE_TEXT_MAX, "%s from %s to %s%s%s%s%s%s", kinds[row->type], low, high,
                 named ? " (" : "", named ? row->unit : "", named ? ")" : "", optional ? ", or " : "",
                 optional ? hr_knob_unset_word(row) : "");
    }
    return out;
}

// What was meant by a word that is no choice: its name elsewhere, or a near one.
static const char *suggest_choice(const hr_knob_row *row, const char *typed)
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
        if (elsewhere[i].id == row->id && strcmp(typed, elsewhere[i].typed) == 0) {
            return elsewhere[i].meant;
        }
    }
    for (; row->choices[count] != NULL; count++) {
        if (strcasecmp(typed, row->choices[count]) == 0) {
            return row->choices[count];
        }
    }
    return text_nearest(typed, row->choices, count);
}

// A value to be tried.
static const char *example_of(const hr_knob_row *row)
{
    return row->type == HR_KNOB_CHOICE      ? row->choices[0]
           : row->preset_default[0] != '\0' ? row->preset_default
           : row->type == HR_KNOB_BYTES     ? "64MiB"
           : is_number(row)                 ? hr_knob_unset_word(row)
                                            : "NAME";
}

static hr_status refuse(const hr_knob_row *row, const char *typed, hr_err *err)
{
    char need[RANGE_TEXT_MAX];
    const char *meant = row->type == HR_KNOB_CHOICE ? suggest_choice(row, typed) : NULL;
    const char *hint = meant != NULL ? meant : example_of(row);
    hr_status status = HR_FAIL(err, KNOB, "%s: needs %s, had '%.200s'%s%s%s", row->key, write_need(row, need),
                               typed, meant == NULL ? "" : " — did you mean '", meant == NULL ? "" : meant,
                               meant == NULL ? "" : "'?");
    hr_err_try(err, "-s %s=%s", row->key, hint);
    return status;
}

// ---- reading ----------------------------------------------------------------------------------------------

static bool is_one_line(const char *typed)
{
    for (const char *at = typed; *at != '\0'; at++) {
        if (hr_control_bytes(at, "") > 0) {
            return false;
        }
    }
    return true;
}

bool hr_knob_is_switch(const hr_knob_row *row)
{
    return row->type == HR_KNOB_CHOICE && strcmp(row->choices[0], "off") == 0 &&
           strcmp(row->choices[1], "on") == 0 && row->choices[2] == NULL;
}

// YAML 1.1's words for off and on, as YAML, Lua and a command line write them.
static bool find_boolean(const char *typed, int64_t *index)
{
    static const char *const words[] = {"false", "true", "False", "True", "FALSE", "TRUE",
                                        "no",    "yes",  "No",    "Yes",  "NO",    "YES"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(typed, words[i]) == 0) {
            *index = (int64_t)(i % 2);
            return true;
        }
    }
    return false;
}

static bool find_choice(const hr_knob_row *row, const char *typed, int64_t *index)
{
    for (int64_t i = 0; row->choices[i] != NULL; i++) {
        if (strcmp(row->choices[i], typed) == 0) {
            *index = i;
            return true;
        }
    }
    return hr_knob_is_switch(row) && find_boolean(typed, index);
}

// Reads `text` as the row's type into a zeroed *value; false when it is not one, or out of range.
static bool read_value(const hr_knob_row *row, const char *typed, hr_knob_value *value)
{
    double number = 0;
    value->set = true;
    if (is_number(row) && row->preset_default[0] == '\0' &&
        (typed[0] == '\0' || strcmp(typed, hr_knob_unset_word(row)) == 0)) {
        value->set = false;
        return true;
    }
    switch (row->type) {
    case HR_KNOB_CHOICE:
        return find_choice(row, typed, &value->u.integer);
    case HR_KNOB_TEXT:
        value->set = typed[0] != '\0';
        return is_one_line(typed) && text_copy(value->text, sizeof value->text, typed);
    case HR_KNOB_INT:
        if (!text_to_int(typed, &value->u.integer)) {
            return false;
        }
        number = (double)value->u.integer;
        break;
    case HR_KNOB_REAL:
        if (!text_to_real(typed, &value->u.real)) {
            return false;
        }
        number = value->u.real;
        break;
    case HR_KNOB_BYTES:
        if (!hr_bytes_parse(typed, &value->u.bytes)) {
            return false;
        }
        number = (double)value->u.bytes;
        break;
    }
    return number >= row->min && number <= row->max;
}

void hr_knobs_init(hr_knobs *knobs)
{
    *knobs = (hr_knobs){0};
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        hr_knob_value *value = &knobs->value[id];
        (void)read_value(row_of((hr_knob_id)id), row_of((hr_knob_id)id)->preset_default, value);
        value->set = false;
    }
}

// Texts with a grammar of their own: the first thing that is wrong with one.
static hr_status check_text(hr_knob_id id, const char *typed, hr_err *err)
{
    torch_conf conf;
    uint32_t divisions[TORCH_DIVISIONS];
    hr_err why = {0};
    hr_status status = HR_OK;
    const char *hint = "";
    if (id == HR_KNOB_ALLOCATOR_CONF) {
        status = torch_conf_parse(typed, &conf, &why);
        hint = "expandable_segments:True";
    } else if (id == HR_KNOB_ALLOCATOR_ROUNDUP) {
        status = torch_conf_parse_divisions(typed, divisions, &why);
        hint = "4";
    }
    if (status != HR_OK) {
        (void)HR_FAIL(err, KNOB, "%s: %s", row_of(id)->key, why.sentence);
        if (why.hint[0] != '\0') {
            hr_err_try(err, "%s", why.hint);
        } else {
            hr_err_try(err, "-s %s=%s", row_of(id)->key, hint);
        }
    }
    return status;
}

hr_status hr_knobs_set(hr_knobs *knobs, hr_knob_id id, const char *typed, hr_err *err)
{
    const hr_knob_row *row = row_of(id);
    hr_knob_value value = {0};
    if (!read_value(row, typed, &value)) {
        return refuse(row, typed, err);
    }
    HR_TRY(check_text(id, typed, err));
    knobs->value[id] = value;
    return HR_OK;
}

// What was typed for a key that is none, where the key that was meant takes it; otherwise what that one says of it.
static void say_suggestion(const hr_knobs *knobs, const hr_knob_row *row, const char *typed, hr_err *err)
{
    hr_knobs trial = *knobs;
    hr_err refused;
    if (typed[0] == '\0') {
        hr_err_try(err, "-s %s=%s", row->key, example_of(row));
    } else if (hr_knobs_set(&trial, row->id, typed, &refused) == HR_OK) {
        hr_err_try(err, "-s %s=%.200s", row->key, typed);
    } else {
        hr_err_try(err, "%s", refused.hint);
    }
}

hr_status hr_knobs_set_pair(hr_knobs *knobs, const char *pair, hr_err *err)
{
    enum { KEY_MAX = 64 };
    char key[KEY_MAX];
    const char *suggestion = NULL;
    const char *equals = strchr(pair, '=');
    size_t length = equals == NULL ? strlen(pair) : (size_t)(equals - pair);
    snprintf(key, sizeof key, "%.*s", length < KEY_MAX ? (int)length : KEY_MAX - 1, pair);
    const hr_knob_row *row = hr_knob_find(key, &suggestion);
    if (row == NULL) {
        hr_status status = HR_FAIL(err, KNOB, "no knob is called '%s'%s%s%s", key,
                                   suggestion == NULL ? "" : " — did you mean '",
                                   suggestion == NULL ? "" : suggestion, suggestion == NULL ? "" : "'?");
        if (suggestion != NULL) {
            say_suggestion(knobs, hr_knob_find(suggestion, NULL), equals == NULL ? "" : equals + 1, err);
        }
        return status;
    }
    if (equals == NULL) {
        hr_status status = HR_FAIL(err, KNOB, "%s: needs a value behind '=', had none", key);
        hr_err_try(err, "-s %s=%s", key, row->preset_default[0] == '\0' ? "VALUE" : row->preset_default);
        return status;
    }
    return hr_knobs_set(knobs, row->id, equals + 1, err);
}

hr_status hr_knobs_set_pairs(hr_knobs *knobs, const char *pairs, hr_err *err)
{
    char pair[2 * HR_KNOB_TEXT_MAX];
    while (*pairs != '\0') {
        const size_t length = strcspn(pairs, " ");
        if (length >= sizeof pair) {
            return HR_FAIL(err, KNOB, "a pair of key and value needs at most %zu characters, had %zu",
                           sizeof pair - 1, length);
        }
        (void)snprintf(pair, sizeof pair, "%.*s", (int)length, pairs);
        HR_TRY(length > 0 ? hr_knobs_set_pair(knobs, pair, err) : HR_OK);
        pairs += length + (pairs[length] == ' ');
    }
    return HR_OK;
}

// ---- asking -----------------------------------------------------------------------------------------------

// The fewest digits that read back as the same number.
static void write_real(double value, char out[HR_KNOB_TEXT_MAX])
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, HR_KNOB_TEXT_MAX, "%.*g", digits, value);
        if (strtod(out, NULL) == value) {
            return;
        }
    }
}

const char *hr_knob_format(const hr_knobs *knobs, hr_knob_id id, char out[HR_KNOB_TEXT_MAX])
{
    const hr_knob_row *row = row_of(id);
    const hr_knob_value *value = &knobs->value[id];
    if (is_number(row) && !value->set && row->preset_default[0] == '\0') {
        snprintf(out, HR_KNOB_TEXT_MAX, "%s", hr_knob_unset_word(row));
    } else if (row->type == HR_KNOB_INT) {
        snprintf(out, HR_KNOB_TEXT_MAX, "%" PRId64, value->u.integer);
    } else if (row->type == HR_KNOB_REAL) {
        write_real(value->u.real, out);
    } else if (row->type == HR_KNOB_BYTES) {
        hr_bytes_exact(value->u.bytes, out);
    } else {
        snprintf(out, HR_KNOB_TEXT_MAX, "%s", hr_knob_text(knobs, id));
    }
    return out;
}

int64_t hr_knob_int(const hr_knobs *knobs, hr_knob_id id)
{
    return knobs->value[id].u.integer;
}

double hr_knob_real(const hr_knobs *knobs, hr_knob_id id)
{
    return knobs->value[id].u.real;
}

uint64_t hr_knob_bytes(const hr_knobs *knobs, hr_knob_id id, uint64_t when_unset)
{
    bool none_set = !knobs->value[id].set && row_of(id)->preset_default[0] == '\0';
    return none_set ? when_unset : knobs->value[id].u.bytes;
}

const char *hr_knob_text(const hr_knobs *knobs, hr_knob_id id)
{
    const hr_knob_row *row = row_of(id);
    const hr_knob_value *value = &knobs->value[id];
    return row->type == HR_KNOB_CHOICE ? row->choices[value->u.integer] : value->text;
}

bool hr_knob_is(const hr_knobs *knobs, hr_knob_id id, const char *choice)
{
    return strcmp(hr_knob_text(knobs, id), choice) == 0;
}

static bool has_word(const char *words, const char *word)
{
    const size_t length = strlen(word);
    const char *at = length == 0 ? NULL : strstr(words, word);
    while (at != NULL && !((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))) {
        at = strstr(at + 1, word);
    }
    return at != NULL;
}

bool hr_knob_is_size(hr_knob_id id)
{
    static const char group[] = "model.";
    return strncmp(row_of(id)->key, group, sizeof group - 1) == 0;
}

bool hr_knob_shapes_model(hr_knob_id id)
{
    return hr_knob_is_size(id) || row_of(id)->models;
}

bool hr_knobs_same_model(const hr_knobs *a, const hr_knobs *b)
{
    bool same = hr_knobs_same_sizes(a, b);
    for (int k = 0; k < HR_KNOB_COUNT && same; k++) {
        const hr_knob_id id = (hr_knob_id)k;
        char x[HR_KNOB_TEXT_MAX], y[HR_KNOB_TEXT_MAX];
        same = !row_of(id)->models || strcmp(hr_knob_format(a, id, x), hr_knob_format(b, id, y)) == 0;
    }
    return same;
}

bool hr_knobs_same_sizes(const hr_knobs *a, const hr_knobs *b)
{
    bool same = true;
    for (int k = 0; k < HR_KNOB_COUNT && same; k++) {
        const hr_knob_id id = (hr_knob_id)k;
        same = !hr_knob_is_size(id) || (a->value[id].set == b->value[id].set &&
                                        (!a->value[id].set || hr_knob_int(a, id) == hr_knob_int(b, id)));
    }
    return same;
}

bool hr_knob_acts(const hr_knobs *knobs, hr_knob_id id)
{
    const hr_knob_row *row = row_of(id);
    bool acts = !hr_knob_is_size(id) || hr_knob_is_set(knobs, id);
    for (int k = 0; k < HR_KNOB_NEEDS_MAX && row->needs[k].words != NULL && acts; k++) {
        char value[HR_KNOB_TEXT_MAX];
        const char *words = row->needs[k].words, *had = hr_knob_format(knobs, row->needs[k].knob, value);
        acts = words[0] == '!' ? !has_word(words + 1, had) : has_word(words, had);
    }
    return acts;
}

bool hr_knob_is_set(const hr_knobs *knobs, hr_knob_id id)
{
    return knobs->value[id].set;
}
