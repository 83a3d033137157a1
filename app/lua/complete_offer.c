// SPDX-License-Identifier: Apache-2.0
#include "app/lua/complete_offer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/preset.h"
#include "headroom/scenario.h"
#include "headroom/words.h"

enum { NAME_MAX_BYTES = 256 };

// ---- one --------------------------------------------------------------------------------------------------------

// A terminal obeys nothing that is offered.
static bool is_plain(const char *text, size_t length)
{
    for (size_t k = 0; k < length; k++) {
        if (hr_control_bytes(text + k, "") > 0) {
            return false;
        }
    }
    return length > 0 && memchr(text, '\0', length) == NULL;
}

void offer(offering *o, const char *text, size_t length, const char *after)
{
    script_completion *c = o->out;
    if (length < o->word.length || memcmp(text, o->word.length > 0 ? o->word.at : "", o->word.length) != 0 ||
        !is_plain(text, length)) {
        return;
    }
    if (c->count == SCRIPT_CANDIDATES_MAX || length + 1 > SCRIPT_CANDIDATES_BYTES - c->used) {
        c->more = true;
        return;
    }
    memcpy(c->text + c->used, text, length);
    c->text[c->used + length] = '\0';
    c->items[c->count].at = c->used;
    (void)snprintf(c->items[c->count].after, SCRIPT_AFTER_MAX, "%s", after);
    c->count++;
    c->used += (uint32_t)length + 1;
}

void offer_text(offering *o, const char *text)
{
    const char after[2] = {o->close, '\0'};
    char quoted[NAME_MAX_BYTES];
    if (text[0] == '\0' || strpbrk(text, "\"'\\") != NULL) { // would not be what it says
        return;
    }
    if (o->in_text) {
        offer(o, text, strlen(text), after);
        return;
    }
    const int length = snprintf(quoted, sizeof quoted, "\"%s\"", text);
    if (length < NAME_MAX_BYTES) {
        offer(o, quoted, (size_t)length, "");
    }
}

void offer_bare(offering *o, const char *name, const char *after)
{
    if (!o->in_text) {
        offer(o, name, strlen(name), after);
    }
}

// ---- their order ------------------------------------------------------------------------------------------------

static int by_text(const void *a, const void *b)
{
    const char *const *one = a, *const *other = b;
    return strcmp(*one, *other);
}

// In place, by a list of where each begins.
void offer_sort(offering *o)
{
    script_completion *c = o->out;
    script_completion sorted = {.start = c->start, .more = c->more};
    const char *texts[SCRIPT_CANDIDATES_MAX];
    for (uint32_t k = 0; k < c->count; k++) {
        texts[k] = script_candidate(c, k);
    }
    qsort(texts, c->count, sizeof *texts, by_text);
    for (uint32_t k = 0; k < c->count; k++) {
        if (k > 0 && strcmp(texts[k], texts[k - 1]) == 0) {
            continue;
        }
        uint32_t of = 0;
        while (script_candidate(c, of) != texts[k]) {
            of++;
        }
        sorted.items[sorted.count++] = c->items[of];
    }
    memcpy(c->items, sorted.items, sizeof c->items);
    c->count = sorted.count;
}

size_t script_common_bytes(const script_completion *c)
{
    if (c->count == 0) {
        return 0;
    }
    const char *first = script_candidate(c, 0), *last = script_candidate(c, c->count - 1);
    size_t length = 0;
    while (first[length] != '\0' && first[length] == last[length]) {
        length++;
    }
    while (length > 0 &&
           ((unsigned char)first[length] & 0xC0U) == 0x80U) { // a character is whole, or not there
        length--;
    }
    return length;
}

// ---- tables of ours ---------------------------------------------------------------------------------------------

void offer_knobs(offering *o, const char *group, const char *after)
{
    const size_t length = strlen(group);
    for (int k = 0; k < HR_KNOB_COUNT; k++) {
        const char *key = hr_knob_rows(NULL)[k].key;
        if (length == 0) {
            offer(o, key, strlen(key), after);
        } else if (strncmp(key, group, length) == 0 && key[length] == '.') {
            offer(o, key + length + 1, strlen(key) - length - 1, after);
        }
    }
}

void offer_groups(offering *o, const char *after)
{
    for (int k = 0; k < HR_KNOB_COUNT; k++) {
        const char *key = hr_knob_rows(NULL)[k].key;
        const size_t length = strcspn(key, ".");
        if (k == 0 || strncmp(hr_knob_rows(NULL)[k - 1].key, key, length + 1) != 0) {
            offer(o, key, length, after);
        }
    }
}

void offer_fields(offering *o, const lua_script_field *fields, const char *after)
{
    for (; fields != NULL && fields->name != NULL; fields++) {
        offer(o, fields->name, strlen(fields->name), after);
    }
}

void offer_presets(offering *o, const char *folder)
{
    hr_preset_entry *entries = NULL;
    size_t count = 0;
    if (hr_preset_list(folder, &entries, &count, NULL) != HR_OK) {
        return;
    }
    for (size_t k = 0; k < count; k++) {
        offer_text(o, entries[k].name);
    }
    hr_preset_list_free(entries);
}

void offer_scenarios(offering *o)
{
    size_t k = 0;
    for (const hr_scenario *s = hr_scenario_row(k); s != NULL; s = hr_scenario_row(++k)) {
        offer_text(o, s->name);
    }
}

void offer_values(offering *o, const hr_knob_row *knob)
{
    if (hr_knob_is_switch(knob)) {
        offer_bare(o, "true", "");
        offer_bare(o, "false", "");
        if (!o->in_text) {
            return;
        }
    }
    for (int k = 0; knob->type == HR_KNOB_CHOICE && knob->choices[k] != NULL; k++) {
        offer_text(o, knob->choices[k]);
    }
    if (knob->id == HR_KNOB_DEVICE_CARD) {
        offer_presets(o, "cards");
    } else if (knob->id == HR_KNOB_COMPRESS_DISTILL) {
        offer_presets(o, NULL);
    }
}
