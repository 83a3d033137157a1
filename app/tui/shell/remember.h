// SPDX-License-Identifier: Apache-2.0
// What the workbench remembers between two starts: looks, the columns of its tables, lines typed after ":",
// the last preset and what was turned of it, that the first card was seen. What was turned waits to be redone: nothing of
// it changes what a step takes by itself.
//
// One small text file, a line each ("theme safe"). What is not understood, and what lies beyond REMEMBER_BYTES_MAX, is
// passed over. Written whole by rename; where nothing can be written nothing is remembered, and that is no error.
#ifndef TUI_REMEMBER_H
#define TUI_REMEMBER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct app app;

enum { REMEMBER_BYTES_MAX = 256 * 1024 };

// Which of what is remembered the command line has already decided.
typedef struct remember_given {
    bool theme, glyphs, mouse;
} remember_given;

// Takes what `path` says. Nothing changes where there is no such file.
void remember_read(app *a, const char *path, remember_given given);
// The file for what is to be seen now; the caller frees it. NULL: host memory is short.
char *remember_text(const app *a);
// Writes it when it is not what was read or written last; makes the folders above it. False: it could not.
bool remember_write(app *a, const char *path);
// The preset that `path` names; false: none.
bool remember_preset(const char *path, char *preset, size_t size);

#endif
