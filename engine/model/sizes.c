// SPDX-License-Identifier: Apache-2.0
#include "model/sizes.h"

#include <stdio.h>
#include <string.h>

#include "headroom/event.h"

#include "base/text.h"
#include "model/words.h"

bool size_is_symbolic(const yaml_node *node)
{
    return node->kind == YAML_SCALAR && !node->quoted && strchr(node->text, '$') != NULL;
}

// ---- which sizes a model has ----------------------------------------------------------------------------------

static const hr_knob_row *row_of_size(const char *name)
{
    char key[64];
    const int length = snprintf(key, sizeof key, "model.%s", name);
    return length > 0 && (size_t)length < sizeof key ? hr_knob_find(key, NULL) : NULL;
}

// The place of `name` among the sizes of the model; HR_NO_ID when it has none of that name.
static uint32_t place_of(const yaml_node *written, const char *name)
{
    uint32_t place = 0;
    for (const yaml_node *node = written ? written->child : NULL; node; node = node->next, place++) {
        if (strcmp(node->key, name) == 0) {
            return place;
        }
    }
    return HR_NO_ID;
}

// "those of this model are sequence, depth", or that it has none.
static const char *own_sizes(const yaml_node *written, char out[SIZE_WHY_MAX])
{
    char list[WORDS_MAX];
    const char *words[HR_KNOB_COUNT];
    size_t count = 0;
    for (const yaml_node *node = written ? written->child : NULL; node && count < HR_KNOB_COUNT;
         node = node->next) {
        words[count++] = node->key;
    }
    (void)snprintf(out, SIZE_WHY_MAX, count > 0 ? "those of this model are %.150s" : "this model has none%s",
                   count > 0 ? word_list(words, count, list) : "");
    return out;
}

// ---- what they stand for ----------------------------------------------------------------------------------------

static bool named_value(model_builder *b, const char *name, int64_t *value, char why[SIZE_WHY_MAX])
{
    char own[SIZE_WHY_MAX], had[HAD_MAX];
    const uint32_t place = place_of(b->sizes.written, name);
    const hr_knob_row *row = place != HR_NO_ID ? row_of_size(name) : NULL;
    if (!row || !hr_knob_is_set(b->sizes.knobs, row->id)) {
        (void)snprintf(why, SIZE_WHY_MAX, "%s %s: %.120s",
                       row ? "no number is given for the size" : "no size is called", had_word(name, had),
                       own_sizes(b->sizes.written, own));
        return false;
    }
    b->sizes.used |= UINT64_C(1) << place;
    *value = hr_knob_int(b->sizes.knobs, row->id);
    return true;
}

// One factor: "$width" or "4".
static bool factor_value(model_builder *b, const char *word, int64_t *value, char why[SIZE_WHY_MAX])
{
    if (word[0] == '$') {
        return named_value(b, word + 1, value, why);
    }
    if (!text_to_int(word, value) || *value < 1) {
        char had[HAD_MAX];
        (void)snprintf(why, SIZE_WHY_MAX,
                       "%s is neither a size nor a whole number: write $width, $width*4 or $width/64",
                       had_word(word, had));
        return false;
    }
    return true;
}

static bool take_factor(char sign, int64_t factor, int64_t *product, char why[SIZE_WHY_MAX])
{
    int64_t larger = 0;
    if (sign == '/' && *product % factor != 0) {
        (void)snprintf(why, SIZE_WHY_MAX, "%lld is not a multiple of %lld", (long long)*product,
                       (long long)factor);
        return false;
    }
    if (sign == '*' && __builtin_mul_overflow(*product, factor, &larger)) {
        (void)snprintf(why, SIZE_WHY_MAX, "%lld times %lld is too large", (long long)*product,
                       (long long)factor);
        return false;
    }
    *product = sign == '/' ? *product / factor : larger;
    return true;
}

bool size_value(model_builder *b, const yaml_node *node, int64_t *value, char why[SIZE_WHY_MAX])
{
    char sign = '*', word[64];
    *value = 1;
    for (const char *at = node->text; sign != '\0';) {
        const size_t length = strcspn(at, "*/");
        int64_t factor;
        if (length >= sizeof word) {
            (void)snprintf(why, SIZE_WHY_MAX, "'%.32s…' is longer than a size or a number", at);
            return false;
        }
        (void)snprintf(word, sizeof word, "%.*s", (int)length, at);
        if (!factor_value(b, word, &factor, why) || !take_factor(sign, factor, value, why)) {
            return false;
        }
        sign = at[length];
        at += length + (sign != '\0');
    }
    return true;
}

// ---- what is refused --------------------------------------------------------------------------------------------

void sizes_refuse_unused(model_builder *b)
{
    uint32_t place = 0;
    for (const yaml_node *node = b->sizes.written ? b->sizes.written->child : NULL; node && b->problems == 0;
         node = node->next, place++) {
        if ((b->sizes.used >> place & 1) == 0) {
            b->layer = HR_NO_ID;
            builder_problem_at(b, node->key_line, node->key_column,
                               "the size '%s' stands nowhere: write $%s where it belongs, or take it away",
                               node->key, node->key);
        }
    }
}

hr_status sizes_check_knobs(const model_builder *b, const char *model, hr_err *err)
{
    const hr_knob_row *rows = hr_knob_rows(NULL);
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        char own[SIZE_WHY_MAX], value[HR_KNOB_TEXT_MAX];
        if (!hr_knob_is_size((hr_knob_id)id) || !hr_knob_is_set(b->sizes.knobs, (hr_knob_id)id) ||
            place_of(b->sizes.written, strchr(rows[id].key, '.') + 1) != HR_NO_ID) {
            continue;
        }
        const hr_status status = HR_FAIL(err, KNOB, "%s=%s: model %.64s has no such size, %.150s",
                                         rows[id].key, hr_knob_format(b->sizes.knobs, (hr_knob_id)id, value),
                                         model, own_sizes(b->sizes.written, own));
        hr_err_try(err, "headroom knobs %s", rows[id].key);
        return status;
    }
    return HR_OK;
}
