// SPDX-License-Identifier: Apache-2.0
#include "model/words.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

const char *had_word(const char *word, char out[HAD_MAX])
{
    (void)snprintf(out, HAD_MAX, "'%.40s'", word);
    return out;
}

const char *had_node(const yaml_node *node, char out[HAD_MAX])
{
    if (node->kind == YAML_SCALAR) {
        return had_word(node->text, out);
    }
    (void)snprintf(out, HAD_MAX, "%s", node->kind == YAML_SEQUENCE ? "a list" : "a mapping");
    return out;
}

const char *word_list(const char *const *words, size_t count, char out[WORDS_MAX])
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < count && used < WORDS_MAX; i++) {
        used += (size_t)snprintf(out + used, WORDS_MAX - used, "%s%s", i ? ", " : "", words[i]);
    }
    return out;
}

const char *did_you_mean(const char *word, const char *const *words, size_t count, char out[WORDS_MAX])
{
    const char *near = word ? text_nearest(word, words, count) : NULL;
    out[0] = '\0';
    if (near) {
        (void)snprintf(out, WORDS_MAX, " — did you mean '%s'?", near);
    }
    return out;
}

bool is_misspelt(const yaml_node *mapping, const char *key)
{
    for (const yaml_node *child = mapping->child; child; child = child->next) {
        if (text_nearest(child->key, &key, 1)) {
            return true;
        }
    }
    return false;
}
