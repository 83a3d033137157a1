// SPDX-License-Identifier: Apache-2.0
// What a walk refuses, with the node in hand, and what it leaves out.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "onnx_walk.h"

enum { SENTENCE_MAX = 320 };

void *walk_refuse(walk *w, const char *format, ...)
{
    char sentence[SENTENCE_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    const onnx_node *n = w->node;
    if (n == NULL) {
        onnx_refuse(w->g, "%s", sentence);
        return NULL;
    }
    const char *made = n->output_count > 0 ? intern_text(&w->g->values, n->outputs[0]) : NULL;
    const char *name = n->name[0] != '\0' ? n->name : made != NULL ? made : "";
    char plain[ONNX_NAME];
    (void)text_copy(plain, sizeof plain, name);
    for (char *c = plain; *c != '\0'; c++) {
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    }
    w->g->at_node = true;
    onnx_refuse(w->g, "node '%.80s' (%.40s): %s", plain, n->op, sentence);
    return NULL;
}

void walk_note(walk *w, const char *format, ...)
{
    char line[SENTENCE_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (char *c = line; *c != '\0'; c++) {
        *c = *c == '"' ? '\'' : *c == '\\' ? '/' : *c < ' ' || *c > '~' ? '?' : *c;
    }
    if (w->notes.data == NULL || strstr(w->notes.data, line) == NULL) {
        text_append(&w->notes, "%s%s", w->notes.length > 0 ? " " : "", line);
    }
}
