// SPDX-License-Identifier: Apache-2.0
// Words for people: "did you mean …?", and text from untrusted files.
#ifndef HEADROOM_WORDS_H
#define HEADROOM_WORDS_H

#include <stddef.h>

// The nearest of `words` within max(1, strlen(word) / 3) typing errors; NULL when none is near. Borrowed from words.
const char *hr_word_nearest(const char *word, const char *const *words, size_t count);

// Bytes of the character at `at` when it is one that a terminal obeys (C0 and C1 controls, DEL) and not one of `kept`;
// 0: it is harmless.
size_t hr_control_bytes(const char *at, const char *kept);
// Makes text from an untrusted file harmless: such characters become '?'. Returns words.
char *hr_plain_text(char *words, const char *kept);

#endif
