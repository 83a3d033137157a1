// SPDX-License-Identifier: Apache-2.0
// Pieces of sentences about what a person wrote.
#ifndef MODEL_WORDS_H
#define MODEL_WORDS_H

#include <stddef.h>

#include "knobs/yaml.h"

enum { WORDS_MAX = 256, HAD_MAX = 48 };

// "'conv2'"; cut, and without control characters, since the file may come from a stranger. Returns out.
const char *had_word(const char *word, char out[HAD_MAX]);
// The same of a node: "'conv2'", "a list", "a mapping".
const char *had_node(const yaml_node *node, char out[HAD_MAX]);
// "relu, none". Returns out.
const char *word_list(const char *const *words, size_t count, char out[WORDS_MAX]);
// " — did you mean 'conv2d'?", or "" when none of the words is near. `word` may be NULL. Returns out.
const char *did_you_mean(const char *word, const char *const *words, size_t count, char out[WORDS_MAX]);

#endif
