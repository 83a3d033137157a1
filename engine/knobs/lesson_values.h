// SPDX-License-Identifier: Apache-2.0
// Values of a lesson.yaml: taken into the lesson, and what is wrong with them reported at their place.
#ifndef KNOBS_LESSON_VALUES_H
#define KNOBS_LESSON_VALUES_H

#include "knobs/lesson.h"
#include "knobs/yaml.h"

enum { LESSON_NAMES_MAX = HR_LESSON_RUNS_MAX + 2 };

typedef struct lesson_reading {
    hr_lesson *lesson;
    yaml_file *file;
    const char *path;                    // of the file
    const char *names[LESSON_NAMES_MAX]; // of the runs that conditions speak of
    uint32_t name_count;
    bool no_memory;
} lesson_reading;

// Zeroed memory of the lesson for `count` and one more; NULL: none, and no_memory says so.
void *lesson_memory(lesson_reading *r, size_t count, size_t size);
const char *lesson_keep_text(lesson_reading *r, const char *words);
// What is no value of its kind is reported; what is given back then is harmless.
const char *lesson_take_text(lesson_reading *r, const yaml_node *node);
// A preset's name as it is; a path counts from the lesson's folder and stays below it.
const char *lesson_take_preset(lesson_reading *r, const yaml_node *node, const char *words);
uint32_t lesson_take_count(lesson_reading *r, const yaml_node *node, int64_t most);
void lesson_take_texts(lesson_reading *r, const yaml_node *node, hr_lesson_texts *out);
void lesson_report(lesson_reading *r, const yaml_node *node, const hr_err *err);
// The key of a run: a word that a path can spell before its first '.', and that means nothing else there.
void lesson_check_run_name(lesson_reading *r, const yaml_node *child);
// Whether a node is a condition, holds good quotes, fits a page, or is pairs of knobs: reported where it is not.
void lesson_check_that(lesson_reading *r, const yaml_node *node);
void lesson_take_conditions(lesson_reading *r, const yaml_node *node, hr_lesson_texts *out);
void lesson_check_quotes(lesson_reading *r, const yaml_node *node);
void lesson_check_lines(lesson_reading *r, const yaml_node *node);
void lesson_take_pages(lesson_reading *r, const yaml_node *node, hr_lesson_texts *out);
void lesson_check_pairs(lesson_reading *r, const yaml_node *node);
const char *lesson_take_pairs(lesson_reading *r, const yaml_node *node);
void lesson_take_unlocked(lesson_reading *r, const yaml_node *node, hr_lesson_texts *out);
void lesson_take_claims(lesson_reading *r, const yaml_node *node, hr_lesson_texts *out);
void lesson_take_less(lesson_reading *r, const yaml_node *node, hr_lesson_texts *out);
// `node` has a key that is none of `keys`, with the nearest of them.
void lesson_report_unknown(lesson_reading *r, const yaml_node *node, const char *what,
                           const char *const *keys, size_t count);

#endif
