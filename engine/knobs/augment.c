// SPDX-License-Identifier: Apache-2.0
#include "knobs/augment.h"

#include <string.h>

enum { DECIMALS = 3, DIGITS_MOST = 6 };

// `most` 0: the operation takes no amount. `decimals`: of the amount, which is kept as a whole number of such parts.
static const struct {
    const char *word;
    uint32_t most, decimals;
} words[AUGMENT_KINDS] = {
    [AUGMENT_FLIP] = {"flip", 0, 0},
    [AUGMENT_CROP] = {"crop", 1000, 0},
    [AUGMENT_COLOUR] = {"colour", 1000, DECIMALS},
    [AUGMENT_ROTATE] = {"rotate", 180, 0},
    [AUGMENT_ERASE] = {"erase", 0, 0},
};

const char *augment_word(augment_kind kind)
{
    return words[kind].word;
}

// The digits at *text, appended to *number; returns how many.
static uint32_t take_digits(const char **text, const char *end, uint32_t *number)
{
    uint32_t count = 0;
    for (; *text < end && **text >= '0' && **text <= '9' && count < DIGITS_MOST; (*text)++, count++) {
        *number = *number * 10 + (uint32_t)(**text - '0');
    }
    return count;
}

// "0.25" with 3 decimals is 250. False when the text is no such number.
static bool amount_of(const char *text, const char *end, uint32_t decimals, uint32_t *out)
{
    uint32_t behind = 0;
    *out = 0;
    if (take_digits(&text, end, out) == 0) {
        return false;
    }
    if (decimals > 0 && text < end && *text == '.') {
        text++;
        behind = take_digits(&text, end, out);
        if (behind == 0 || behind > decimals) {
            return false;
        }
    }
    for (; behind < decimals; behind++) {
        *out *= 10;
    }
    return text == end;
}

static bool step_of(const char *text, size_t length, augment_step *out)
{
    for (augment_kind kind = 0; kind < AUGMENT_KINDS; kind++) {
        const size_t word = strlen(words[kind].word);
        if (length < word || memcmp(text, words[kind].word, word) != 0) {
            continue;
        }
        *out = (augment_step){.kind = kind};
        if (words[kind].most == 0) {
            return length == word;
        }
        return length > word && text[word] == ':' &&
               amount_of(text + word + 1, text + length, words[kind].decimals, &out->amount) &&
               out->amount > 0 && out->amount <= words[kind].most;
    }
    return false;
}

static bool has_kind(const augment_list *list, augment_kind kind)
{
    bool has = false;
    for (uint32_t k = 0; k < list->count; k++) {
        has = has || list->step[k].kind == kind;
    }
    return has;
}

static bool read_list(const char *text, augment_list *out)
{
    for (;;) {
        augment_step step;
        text += strspn(text, ", ");
        const size_t length = strcspn(text, ", ");
        if (length == 0) {
            return true;
        }
        if (!step_of(text, length, &step) || has_kind(out, step.kind)) {
            return false;
        }
        out->step[out->count++] = step;
        text += length;
    }
}

bool augment_list_of(const hr_knobs *knobs, augment_list *out)
{
    const char *text = hr_knob_text(knobs, HR_KNOB_PIPELINE_AUGMENT);
    *out = (augment_list){0};
    if (strcmp(text, "none") == 0 || read_list(text, out)) {
        return true;
    }
    *out = (augment_list){0};
    return false;
}
