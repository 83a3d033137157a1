// SPDX-License-Identifier: Apache-2.0
#include "knobs/class_filter.h"

#include <string.h>

static const char prefix[] = "label:";

// One number of at most 9 digits. Returns what follows it; NULL: there is none.
static const char *take_label(const char *text, int32_t *out)
{
    int32_t value = 0;
    uint32_t digits = 0;
    for (; *text >= '0' && *text <= '9' && digits < 10; text++, digits++) {
        value = digits < 9 ? value * 10 + (*text - '0') : value;
    }
    *out = value;
    return digits > 0 && digits < 10 ? text : NULL;
}

bool class_filter_of(const char *text, class_filter *out)
{
    *out = (class_filter){.count = 0};
    if (strncmp(text, prefix, strlen(prefix)) != 0) {
        return false;
    }
    text += strlen(prefix);
    while (out->count < CLASS_FILTER_MOST) {
        text += strspn(text, " ");
        text = take_label(text, &out->label[out->count++]);
        if (text == NULL) {
            return false;
        }
        text += strspn(text, " ");
        if (*text == '\0') {
            return true;
        }
        if (*text++ != ',') {
            return false;
        }
    }
    return false;
}

bool class_filter_has(const class_filter *f, int32_t label)
{
    bool has = false;
    for (uint32_t k = 0; k < f->count; k++) {
        has = has || f->label[k] == label;
    }
    return has;
}
