// SPDX-License-Identifier: Apache-2.0
#ifndef TUI_FEED_SHORT_PAIRS_H
#define TUI_FEED_SHORT_PAIRS_H

#include <stddef.h>

// "batch.size=128 optimizer.kind=sgd" as "size=128 kind=sgd": keys without their group, where no other key ends
// so and takes the value. Words that are no pair stay. Returns text.
const char *short_pairs(const char *pairs, char *text, size_t size);

#endif
