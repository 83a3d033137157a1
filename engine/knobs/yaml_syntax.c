// SPDX-License-Identifier: Apache-2.0
// What is wrong with a file before it is a tree: bytes that are no text, which libyaml would misplace, and
// syntax errors, which libyaml says in words of its own.
#include <string.h>
#include <yaml.h>

#include "knobs/yaml_file.h"

// ---- the text ---------------------------------------------------------------------------------------------

static bool is_allowed(uint32_t code)
{
    bool line = code == '\t' || code == '\n' || code == '\r' || code == 0x85;
    return line || (code >= 0x20 && code < 0x7F) || (code >= 0xA0 && code != 0xFFFE && code != 0xFFFF);
}

bool yaml_check_text(yaml_file *file)
{
    uint32_t line = 1, column = 1;
    for (size_t at = 0; at < file->bytes;) {
        uint32_t code = 0;
        size_t length = yaml_utf8(file->data + at, file->bytes - at, &code);
        if (length == 0) {
            yaml_problem(file, line, column, "byte 0x%02X at offset %zu is not UTF-8: save the file as UTF-8",
                         (unsigned)(unsigned char)file->data[at], at);
            return false;
        }
        if (!is_allowed(code)) {
            yaml_problem(file, line, column, "control character U+%04X at offset %zu is not allowed",
                         (unsigned)code, at);
            return false;
        }
        size_t line_break = yaml_line_break(file->data + at, file->bytes - at);
        line += line_break > 0;
        column = line_break > 0 ? 1 : column + 1;
        at += line_break > 0 ? line_break : length;
    }
    return true;
}

// ---- syntax errors in words -------------------------------------------------------------------------------

// libyaml's words, and ours. `at_context` points to where the unfinished thing began.
static const struct {
    const char *problem;
    const char *context; // NULL: any
    bool at_context;
    const char *sentence;
} syntax_rows[] = {
    {"mapping values are not allowed in this context", NULL, false,
     "no 'key: value' can stand here: check the indentation of this line and of the one above"},
    {"did not find expected key", NULL, false,
     "this line does not line up with the keys above it: check its indentation"},
    {"did not find expected '-' indicator", NULL, false,
     "this line does not line up with the '-' above it: check its indentation"},
    {"block sequence entries are not allowed in this context", NULL, false,
     "no '- item' can stand here: begin it on a line of its own"},
    {"could not find expected ':'", NULL, true, "this key has no ':' behind it"},
    {"found unexpected end of stream", "while scanning a quoted scalar", true, "this quote is never closed"},
    {"found unexpected document indicator", "while scanning a quoted scalar", true,
     "this quote is never closed"},
    {"did not find expected ',' or ']'", NULL, true,
     "this '[' is not closed: needed ',' or ']' behind each item"},
    {"did not find expected ',' or '}'", NULL, true,
     "this '{' is not closed: needed ',' or '}' behind each value, and quotes around text with braces in it"},
    {"did not find expected <document start>", NULL, false,
     "nothing can follow the end of the first mapping: check the indentation"},
    {"found character that cannot start any token", NULL, false,
     "no value can start with this character: quote the text"},
};

// Column (1-based) of a tab within the indentation of a line; 0 when there is none.
static uint32_t tab_in_indentation(const yaml_file *file, uint32_t line)
{
    size_t bytes;
    const char *start = yaml_line(file, line, &bytes);
    size_t spaces = strspn(start, " ");
    return spaces < bytes && start[spaces] == '\t' ? (uint32_t)spaces + 1 : 0;
}

void yaml_report_syntax(yaml_file *file, const struct yaml_parser_s *parser)
{
    yaml_mark_t mark = parser->problem_mark;
    const char *sentence = NULL;
    uint32_t tab = tab_in_indentation(file, (uint32_t)mark.line + 1);
    if (tab > 0) {
        yaml_problem(file, (uint32_t)mark.line + 1, tab, "a tab cannot indent: use spaces");
        return;
    }
    for (size_t i = 0; i < sizeof syntax_rows / sizeof *syntax_rows; i++) {
        bool here = parser->problem != NULL && strcmp(parser->problem, syntax_rows[i].problem) == 0;
        const char *context = syntax_rows[i].context;
        if (here && (context == NULL || (parser->context != NULL && strcmp(parser->context, context) == 0))) {
            sentence = syntax_rows[i].sentence;
            mark = syntax_rows[i].at_context && parser->context != NULL ? parser->context_mark : mark;
            break;
        }
    }
    yaml_problem(file, (uint32_t)mark.line + 1, (uint32_t)mark.column + 1, "%s%s%s",
                 sentence != NULL          ? sentence
                 : parser->problem == NULL ? "cannot be read"
                                           : parser->problem,
                 sentence == NULL && parser->context != NULL ? " " : "",
                 sentence == NULL && parser->context != NULL ? parser->context : "");
}
