// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/remember_turned.h"

#include <string.h>

// Saves are of one training; a relative path is another one in another folder.
static bool is_of_the_moment(hr_knob_id id, const char *text)
{
    const bool is_path = id == HR_KNOB_PIPELINE_PATH || id == HR_KNOB_PIPELINE_CACHE_PATH ||
                         id == HR_KNOB_COMPRESS_DISTILL_WEIGHTS ||
                         (id == HR_KNOB_COMPRESS_DISTILL && strpbrk(text, "./") != NULL) ||
                         (id == HR_KNOB_DEVICE_CARD && strchr(text, '.') != NULL);
    return id == HR_KNOB_TRAIN_RESUME || id == HR_KNOB_TRAIN_SAVE || (is_path && text[0] != '/');
}

// A blank ends a pair.
static bool is_kept(const hr_knobs *knobs, const hr_knobs *preset, hr_knob_id id, char text[HR_KNOB_TEXT_MAX])
{
    hr_knob_format(knobs, id, text);
    return !is_of_the_moment(id, text) && knob_edit_differs(knobs, preset, id) && text[0] != '\0' &&
           strpbrk(text, " \n") == NULL;
}

void remember_turned_put(FILE *out, const feed *f)
{
    const hr_knobs *preset = hr_preset_knobs(f->preset);
    hr_knobs knobs = f->knobs;
    char text[HR_KNOB_TEXT_MAX];
    bool any = false;
    for (size_t i = 0; f->turned.done == 0 && i < f->turned.count; i++) {
        knobs.value[f->turned.step[i].id] = f->turned.step[i].after;
    }
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        if (is_kept(&knobs, preset, (hr_knob_id)id, text)) {
            fprintf(out, "%s%s=%s", any ? " " : "turned ", hr_knob_rows(NULL)[id].key, text);
            any = true;
        }
    }
    fputs(any ? "\n" : "", out);
}

void remember_turned_take(feed *f, const char *pairs)
{
    enum { NAMED_MAX = 100 };
    hr_knobs to = f->knobs;
    hr_knob_id order[HR_KNOB_COUNT];
    size_t count;
    if (hr_knobs_set_pairs(&to, pairs, NULL) != HR_OK ||
        knob_edit_order(&f->knobs, &to, order, &count, NULL) != HR_OK || count == 0 ||
        count > KNOB_EDIT_UNDO_MAX) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        knob_edit_log_add(&f->turned, order[i], &f->knobs.value[order[i]], &to.value[order[i]]);
    }
    knob_edit_log_join(&f->turned, count);
    while (knob_edit_log_undo(&f->turned) != NULL) {
    }
    if (strlen(pairs) > NAMED_MAX) {
        feed_say(f, MESSAGE_NOTE, "what was turned last time waits: Z turns those %zu knobs again", count);
    } else {
        feed_say(f, MESSAGE_NOTE, "what was turned last time waits: Z turns %s again", pairs);
    }
}
