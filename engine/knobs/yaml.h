// SPDX-License-Identifier: Apache-2.0
// YAML files of strangers: libyaml events turned into a small tree with marks, under the limits of DESIGN §7
// (1 MiB, depth 16, no anchors, tags or second documents). Duplicate keys and all syntax problems are reported
// here; what a key means is not known here.
#ifndef KNOBS_YAML_H
#define KNOBS_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/status.h"

typedef enum yaml_kind { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING } yaml_kind;

typedef struct yaml_node {
    yaml_kind kind;
    bool quoted;                          // scalar was quoted: never a number
    uint32_t line, column;                // 1-based, of the value
    uint32_t key_line, key_column;        // of the key, in a mapping
    const char *key;                      // NULL outside a mapping
    const char *text;                     // scalar; NULL otherwise
    const struct yaml_node *child, *next; // first child; next sibling
    uint32_t count;                       // children
} yaml_node;

// All problems of one file, in the order found. A file with problems yields no preset and no model.
typedef struct yaml_problems yaml_problems;
typedef struct yaml_file yaml_file;

// Reads and parses. READ error when the file cannot be read; otherwise HR_OK even when problems were found:
// ask yaml_problem_count. The tree lives until yaml_close.
HR_MUST_CHECK hr_status yaml_open(const char *path, yaml_file **out, hr_err *err);
HR_MUST_CHECK hr_status yaml_open_text(const char *name, const char *text, size_t bytes, yaml_file **out,
                                       hr_err *err);
void yaml_close(yaml_file *file);
const yaml_node *yaml_root(const yaml_file *file); // NULL when empty or broken
const char *yaml_name(const yaml_file *file);

// Reports a problem at a line and column of `file` ("key 'batch' stands twice …"); the source line and a caret
// are added by yaml_problems_text.
void yaml_problem(yaml_file *file, uint32_t line, uint32_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
size_t yaml_problem_count(const yaml_file *file);
// As if none had been found: of a file that is good by itself, and was read under knobs that did not suit it.
void yaml_problems_forget(yaml_file *file);
// "file:line:column: sentence\n  source line\n       ^\n" for each. The caller frees with hr_free; NULL on NOMEM.
char *yaml_problems_text(const yaml_file *file);
// PRESET error with the first problem's sentence; HR_OK when there is none.
HR_MUST_CHECK hr_status yaml_status(const yaml_file *file, hr_err *err);

const yaml_node *yaml_find(const yaml_node *mapping, const char *key); // NULL when absent

#endif
