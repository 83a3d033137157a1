// SPDX-License-Identifier: Apache-2.0
// Which knobs were turned away from the preset, between two starts. They come back as something to redo: nothing is turned
// before a key does it.
#ifndef TUI_REMEMBER_TURNED_H
#define TUI_REMEMBER_TURNED_H

#include <stdio.h>

#include "app/tui/feed/feed.h"

// "turned batch.size=64 execution.mode=graph", what waits to be redone included; nothing where the knobs are the preset's.
void remember_turned_put(FILE *out, const feed *f);
// Before the first turn: `Z` then turns these pairs. What can no longer be set is forgotten whole.
void remember_turned_take(feed *f, const char *pairs);

#endif
