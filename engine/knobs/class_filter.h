// SPDX-License-Identifier: Apache-2.0
// pipeline.filter: "label:0,1,7" names the classes whose samples stay.
#ifndef KNOBS_CLASS_FILTER_H
#define KNOBS_CLASS_FILTER_H

#include <stdbool.h>
#include <stdint.h>

enum { CLASS_FILTER_MOST = 128 };

typedef struct class_filter {
    int32_t label[CLASS_FILTER_MOST];
    uint32_t count; // > 0
} class_filter;

// False when the text is none.
bool class_filter_of(const char *text, class_filter *out);
bool class_filter_has(const class_filter *f, int32_t label);

#endif
