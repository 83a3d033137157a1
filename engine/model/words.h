// SPDX-License-Identifier: Apache-2.0
// Pieces of sentences about what a person wrote.
#ifndef MODEL_WORDS_H
#define MODEL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "knobs/yaml.h"

enum { WORDS_MAX = 512, HAD_MAX = 48 };

// "'conv2'", cut when it is long. Returns out.
const char *had_word(const char *word, char out[HAD_MAX]);
// The same of a node: "'conv2'", "a list", "a mapping".
const char *had_node(const yaml_node *node, char out[HAD_MAX]);
// "relu, none". Returns out.
const char *word_list(const char *const *words, size_t count, char out[WORDS_MAX]);
// " — did you mean 'conv2d'?", or "" when none of the words is near. `word` may be NULL. Returns out.
const char *did_you_mean(const char *word, const char *const *words, size_t count, char out[WORDS_MAX]);
// Does the mapping have a key for which did_you_mean would offer `key`? Then that `key` is missing need not be said,
// provided that the other key was refused.
bool is_misspelt(const yaml_node *mapping, const char *key);

#endif
