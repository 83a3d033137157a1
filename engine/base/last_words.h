// SPDX-License-Identifier: Apache-2.0
// What is said when a call into a foreign library ends the process. A library aborts or exits where it finds itself
// incomplete, and the loader is sent SIGBUS over a file that was cut off: none of that returns to the caller. While
// a thread has last words, its end is theirs: a sentence with a `try`, and exit code 4.
//
//     last_words w = {.calling = "device 'cuda' needed libcudnn.so.9", .hint = "install cuDNN 9 again"};
//     last_words_begin(&w);
//     … calls …
//     last_words_end(&w);
#ifndef BASE_LAST_WORDS_H
#define BASE_LAST_WORDS_H

#include "headroom/status.h"

typedef struct last_words {
    const char *calling, *hint; // borrowed until the end
    const struct last_words *outer;
} last_words;

// Of the calling thread; they nest, the innermost are said. The caller's storage, until last_words_end. Costs nothing worth
// naming: from the first time in a process on, handlers of SIGABRT, SIGBUS, SIGSEGV, SIGILL and SIGFPE stand, which hand
// on what is not ours.
void last_words_begin(last_words *w);
void last_words_end(const last_words *w);

#endif
