// SPDX-License-Identifier: Apache-2.0
// Names: what layers are called, and what a reference means.
#include "model/reader.h"

#include <stdio.h>
#include <string.h>

#include "headroom/event.h"

#include "base/text.h"
#include "model/widths.h"
#include "model/words.h"

_Static_assert(MODEL_NAME_MAX == 64, "MODEL_NAME_RULE says so");

bool model_is_name(const char *word)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    if (!word) {
        return false;
    }
    const size_t length = strlen(word);
    return length > 0 && length <= MODEL_NAME_MAX && strspn(word, allowed) == length;
}

const char *model_keep_name(model_builder *b, const char *name)
{
    const char *kept = arena_print(&b->names, "%s", name);
    if (!kept) {
        builder_nomem(b);
    }
    return kept;
}

void reader_refuse_other_keys(model_builder *b, const yaml_node *mapping, const char *what,
                              const char *const *words, size_t count)
{
    for (const yaml_node *child = mapping->child; child && b->problems < MODEL_MAX_PROBLEMS;
         child = child->next) {
        size_t k = 0;
        while (k < count && strcmp(words[k], child->key) != 0) {
            k++;
        }
        if (k < count) {
            continue;
        }
        char had[HAD_MAX], near[WORDS_MAX];
        builder_problem_at(b, child->key_line, child->key_column, "%s has no key %s%s", what,
                           had_word(child->key, had), did_you_mean(child->key, words, count, near));
    }
}

// ---- {i} ------------------------------------------------------------------------------------------------------

// The number that "i", "i+1" or "i-1" between braces stands for.
static bool braced_number(const model_reader *r, const char *word, size_t length, int64_t *number)
{
    const size_t name_length = strcspn(word, "+-}");
    const repeat_round *round = r->round;
    while (round && !(round->index && strlen(round->index) == name_length &&
                      strncmp(round->index, word, name_length) == 0)) {
        round = round->outer;
    }
    if (!round) {
        return false;
    }
    char offset_text[16] = "";
    int64_t offset = 0;
    if (name_length < length) {
        const bool plus = word[name_length] == '+';
        const size_t skip = name_length + (plus ? 1 : 0);
        if (length - skip >= sizeof offset_text) {
            return false;
        }
        memcpy(offset_text, word + skip, length - skip);
        if (!text_to_int(offset_text, &offset) || offset < -MODEL_MAX_LAYERS || offset > MODEL_MAX_LAYERS) {
            return false;
        }
    }
    *number = round->number + offset;
    return true;
}

const char *reader_word(model_reader *r, const yaml_node *node, char out[READER_WORD_MAX])
{
    if (node->kind != YAML_SCALAR || !strchr(node->text, '{')) {
        return node->kind == YAML_SCALAR ? node->text : NULL;
    }
    size_t used = 0;
    for (const char *at = node->text; *at != '\0' && used < READER_WORD_MAX - 24; at++) {
        const char *close = *at == '{' ? strchr(at, '}') : NULL;
        int64_t number;
        if (!close) {
            out[used++] = *at;
        } else if (braced_number(r, at + 1, (size_t)(close - at - 1), &number)) {
            used += (size_t)snprintf(out + used, 24, "%lld", (long long)number);
            at = close;
        } else {
            char had[HAD_MAX];
            builder_problem_at(
                r->b, node->line, node->column,
                "%s: between braces stands the index of a repeat around it, as in {i} or {i-1}",
                had_word(node->text, had));
            return NULL;
        }
    }
    out[used] = '\0';
    return out;
}

// ---- references -----------------------------------------------------------------------------------------------

static const yaml_node *find_named(const yaml_node *layers, const char *name)
{
    for (const yaml_node *node = layers->child; node; node = node->next) {
        if (node->kind != YAML_MAPPING) {
            continue;
        }
        const yaml_node *word = yaml_find(node, "name");
        const yaml_node *inner = yaml_find(node, "layers");
        const yaml_node *found = inner && inner->kind == YAML_SEQUENCE ? find_named(inner, name) : NULL;
        if (found || (word && word->kind == YAML_SCALAR && strcmp(word->text, name) == 0)) {
            return found ? found : node;
        }
    }
    return NULL;
}

// Suggests among the inputs and the layers just above: far enough for a slip of the keys, and no search through
// them all.
static void report_unknown(model_reader *r, const yaml_node *node, const char *word)
{
    enum { LOOK_BACK = 32 };
    model_builder *b = r->b;
    const char *words[LOOK_BACK + MODEL_MAX_SLOTS];
    char had[HAD_MAX], near[WORDS_MAX];
    size_t count = 0;
    const bool in_layer = b->layer != HR_NO_ID;
    for (uint32_t k = 0; k < b->model.slot_count; k++) {
        const uint32_t value = b->model.slots[k].value;
        words[count++] = value == HR_NO_ID ? "input" : b->values.data[value].name;
    }
    for (uint32_t i = in_layer ? b->layer : b->layers.count; i > 0 && count < LOOK_BACK + MODEL_MAX_SLOTS;
         i--) {
        words[count++] = b->layers.data[i - 1].name;
    }
    const yaml_node *below = in_layer && node->kind == YAML_SCALAR ? find_named(r->layers, node->text) : NULL;
    if (below && below == b->node) {
        builder_problem_at(b, node->line, node->column, "no layer above it is called %s: it is that itself",
                           had_word(word, had));
    } else if (below) {
        builder_problem_at(
            b, node->line, node->column,
            "no layer above it is called %s: one on line %u is, and a layer can only read what "
            "stands above it",
            had_word(word, had), below->line);
    } else {
        builder_problem_at(b, node->line, node->column, "no layer%s is called %s%s",
                           in_layer ? " above it" : "", word ? had_word(word, had) : had_node(node, had),
                           did_you_mean(model_is_name(word) ? word : NULL, words, count, near));
    }
}

// A value as an input; a broken one breaks its readers without another word.
static uint32_t use_value(model_reader *r, uint32_t value)
{
    r->b->broken = r->b->broken || value == HR_NO_ID;
    return value;
}

static uint32_t use_slot(model_reader *r, uint32_t slot)
{
    r->slot_used[slot] = true;
    return use_value(r, r->b->model.slots[slot].value);
}

static uint32_t use_layer(model_reader *r, uint32_t layer)
{
    r->notes.data[layer].used = true;
    widths_follow(r->b, r->notes.data[layer].width);
    return use_value(r, r->b->layers.data[layer].output);
}

// The layer above `layer`, or the first input.
static uint32_t use_above(model_reader *r, uint32_t layer)
{
    return layer == 0 ? use_slot(r, 0) : use_layer(r, layer - 1);
}

uint32_t reader_use_previous(model_reader *r)
{
    return use_above(r, r->b->layer);
}

// HR_NO_ID when the table has no such name, or it is the layer in hand.
static uint32_t look_up(const model_reader *r, const char *word)
{
    const uint32_t found = model_is_name(word) ? name_table_find(&r->names, word) : HR_NO_ID;
    return found == r->b->layer ? HR_NO_ID : found;
}

static uint32_t unknown(model_reader *r, const yaml_node *reference, const char *word)
{
    if (!r->cut && (word || reference->kind != YAML_SCALAR)) {
        report_unknown(r, reference, word);
    }
    r->unresolved = true;
    r->b->broken = true;
    return HR_NO_ID;
}

uint32_t reader_use(model_reader *r, const yaml_node *reference)
{
    char out[READER_WORD_MAX];
    const char *word = reader_word(r, reference, out);
    if (word && strcmp(word, "previous") == 0) {
        return reader_use_previous(r);
    }
    if (word && strcmp(word, "before") == 0 && r->round) {
        return use_above(r, r->round->first_layer);
    }
    const uint32_t found = look_up(r, word);
    if (found == HR_NO_ID) {
        return unknown(r, reference, word);
    }
    return found & NAME_IS_SLOT ? use_slot(r, found & ~NAME_IS_SLOT) : use_layer(r, found);
}

uint32_t reader_layer(model_reader *r, const yaml_node *reference)
{
    char out[READER_WORD_MAX];
    const char *word = reader_word(r, reference, out);
    const uint32_t found = look_up(r, word);
    return found == HR_NO_ID || found & NAME_IS_SLOT ? unknown(r, reference, word) : found;
}
