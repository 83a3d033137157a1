// SPDX-License-Identifier: Apache-2.0
// Knobs that name files: what a recipe says is a path by its rules (files.c), and the engine gets another.
#include <string.h>

#include "app/lua/script.h"

typedef enum path_kind {
    PATH_READ,
    PATH_WRITTEN,
    PATH_OR_NAME, // of a preset or a card; a name is looked up where those are
} path_kind;

static const struct {
    hr_knob_id id;
    path_kind kind;
} path_knobs[] = {
    {HR_KNOB_DEVICE_CARD, PATH_OR_NAME},
    {HR_KNOB_PIPELINE_PATH, PATH_READ},
    {HR_KNOB_PIPELINE_CACHE_PATH, PATH_WRITTEN},
    {HR_KNOB_TRAIN_RESUME, PATH_READ},
    {HR_KNOB_TRAIN_SAVE, PATH_WRITTEN},
    {HR_KNOB_COMPRESS_DISTILL, PATH_OR_NAME},
    {HR_KNOB_COMPRESS_DISTILL_WEIGHTS, PATH_READ},
};

enum { PATH_KNOBS = sizeof path_knobs / sizeof *path_knobs };

static bool is_path(path_kind kind, const char *text)
{
    return text[0] != '\0' && (kind != PATH_OR_NAME || hr_preset_is_path(text));
}

hr_status script_confine_knob(const script *s, hr_knob_id id, char text[HR_KNOB_TEXT_MAX], hr_err *err)
{
    char path[SCRIPT_PATH_MAX];
    for (int k = 0; k < PATH_KNOBS; k++) {
        if (path_knobs[k].id != id || !is_path(path_knobs[k].kind, text)) {
            continue;
        }
        HR_TRY(path_knobs[k].kind == PATH_WRITTEN ? script_writable_path(s, text, path, err)
                                                  : script_readable_path(s, text, path, err));
        if (strlen(path) >= HR_KNOB_TEXT_MAX) {
            return HR_FAIL(err, KNOB, "%s: needed a path of at most %d characters",
                           hr_knob_rows(NULL)[id].key, HR_KNOB_TEXT_MAX - 1);
        }
        (void)snprintf(text, HR_KNOB_TEXT_MAX, "%.255s", path);
    }
    return HR_OK;
}

// Of a preset, whose paths the engine would use as they are.
static hr_status confine_of_preset(const script *s, hr_knobs *knobs, hr_knob_id id, path_kind kind,
                                   hr_err *err)
{
    char text[HR_KNOB_TEXT_MAX];
    (void)snprintf(text, sizeof text, "%s", hr_knob_text(knobs, id));
    if (!is_path(kind, text)) {
        return HR_OK;
    }
    if (kind != PATH_WRITTEN) {
        return script_check_below(s, text, err);
    }
    HR_TRY(script_confine_knob(s, id, text, err));
    return hr_knobs_set(knobs, id, text, err);
}

hr_status script_confine_knobs(const script *s, hr_knobs *knobs, hr_err *err)
{
    for (int k = 0; k < PATH_KNOBS; k++) {
        HR_TRY(confine_of_preset(s, knobs, path_knobs[k].id, path_knobs[k].kind, err));
    }
    return HR_OK;
}
