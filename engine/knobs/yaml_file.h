// SPDX-License-Identifier: Apache-2.0
// The inside of a yaml_file, shared by the reader (yaml.c) and the problems (yaml_problem.c).
#ifndef KNOBS_YAML_FILE_H
#define KNOBS_YAML_FILE_H

#include "base/host_mem.h"
#include "base/vec.h"
#include "knobs/yaml.h"

enum { YAML_MAX_BYTES = 1 << 20, YAML_MAX_DEPTH = 16, YAML_MAX_EVENTS = 100000, YAML_MAX_PROBLEMS = 64 };

typedef struct yaml_trouble {
    uint32_t line, column;
    char *sentence; // owned
} yaml_trouble;

struct yaml_file {
    arena memory; // nodes, texts
    char *name;
    char *data; // the whole file, NUL-terminated; nodes do not point into it
    size_t bytes;
    const yaml_node *root;
    bool broken;                // reading ended before the file did
    VEC(yaml_trouble) troubles; // sorted by place, the first YAML_MAX_PROBLEMS
    size_t trouble_count;       // all of them, kept or not
    bool no_memory;             // a problem was found that could not be kept
};

// One UTF-8 character at from[0..bytes): its length, and the code point in *code. 0 when it is not well-formed
// (RFC 3629: shortest form, no surrogates, at most U+10FFFF).
size_t yaml_utf8(const char *from, size_t bytes, uint32_t *code);
// Length of the line break at from[0..bytes) as libyaml counts them (CR LF, CR, LF, NEL, LS, PS); 0: none.
size_t yaml_line_break(const char *from, size_t bytes);

// The line `line` (1-based) without its end; empty beyond the last.
const char *yaml_line(const yaml_file *file, uint32_t line, size_t *bytes);

// Reports the first byte that is no UTF-8 or no text, with its true line and column; false when there is one.
bool yaml_check_text(yaml_file *file);
// Reports the parser's error in words that help.
struct yaml_parser_s;
void yaml_report_syntax(yaml_file *file, const struct yaml_parser_s *parser);

#endif
