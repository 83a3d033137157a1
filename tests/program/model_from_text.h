// SPDX-License-Identifier: Apache-2.0
// Models for tests, out of preset text.
#ifndef TESTS_PROGRAM_MODEL_FROM_TEXT_H
#define TESTS_PROGRAM_MODEL_FROM_TEXT_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/preset.h"

#include "model/model.h"

// Opens `preset_text` as a preset file of its own; NULL when it is refused. The caller closes it.
static inline hr_preset *try_preset_from_text(const char *preset_text, hr_err *err)
{
    char path[] = "/tmp/headroom-model-XXXXXX.yaml";
    int fd = mkstemps(path, 5);
    ck_assert_int_ge(fd, 0);
    const size_t bytes = strlen(preset_text);
    ck_assert_int_eq(write(fd, preset_text, bytes), (ssize_t)bytes);
    close(fd);
    hr_preset *preset = NULL;
    hr_status status = hr_preset_open(path, false, &preset, NULL, err);
    unlink(path);
    return status == HR_OK ? preset : NULL;
}

static inline hr_preset *preset_from_text(const char *preset_text)
{
    hr_err err = {0};
    hr_preset *preset = try_preset_from_text(preset_text, &err);
    ck_assert_msg(preset != NULL, "%s", err.sentence);
    return preset;
}

// The model of `preset_text`, which must be good. The caller destroys it.
static inline hr_model *model_from_text(const char *preset_text)
{
    hr_preset *preset = preset_from_text(preset_text);
    hr_model *model = NULL;
    char *problems = NULL;
    hr_err err = {0};
    hr_status status = model_create(preset, hr_preset_knobs(preset), &model, &problems, &err);
    ck_assert_msg(status == HR_OK, "%s", problems ? problems : err.sentence);
    hr_preset_close(preset);
    return model;
}

#endif
