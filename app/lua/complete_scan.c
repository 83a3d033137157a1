// SPDX-License-Identifier: Apache-2.0
#include "app/lua/complete_scan.h"

#include <ctype.h>
#include <string.h>

static const char *const keywords[] = {
    "and", "break", "do",  "else", "elseif", "end",    "false",  "for",  "function", "goto",  "if",
    "in",  "local", "nil", "not",  "or",     "repeat", "return", "then", "true",     "until", "while",
};

// ---- words ------------------------------------------------------------------------------------------------------

bool scan_is(scan_span span, const char *word)
{
    return span.at != NULL && strlen(word) == span.length && memcmp(span.at, word, span.length) == 0;
}

bool scan_begins(scan_span span, const char *word)
{
    return strncmp(span.length > 0 ? span.at : "", word, span.length) == 0;
}

const char *scan_keyword(size_t index)
{
    return index < sizeof keywords / sizeof *keywords ? keywords[index] : NULL;
}

bool scan_is_keyword(const char *word)
{
    size_t k = 0;
    while (scan_keyword(k) != NULL && strcmp(keywords[k], word) != 0) {
        k++;
    }
    return scan_keyword(k) != NULL;
}

static bool span_is_keyword(scan_span span)
{
    size_t k = 0;
    while (scan_keyword(k) != NULL && !scan_is(span, keywords[k])) {
        k++;
    }
    return scan_keyword(k) != NULL;
}

static bool begins_name(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static bool is_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

// ---- what stands before -----------------------------------------------------------------------------------------

static scan_frame *innermost(scan *s)
{
    return &s->frames[s->depth];
}

static void follow(scan *s, scan_before before)
{
    s->before = before;
    if (before != SCAN_DOT && before != SCAN_COLON) {
        s->path.count = 0;
    }
    if (before != SCAN_EQUALS) {
        s->left.count = 0;
    }
}

// A value without a name.
static void follow_value(scan *s)
{
    follow(s, SCAN_VALUE);
}

static void add_name(scan_path *path, scan_span name)
{
    if (path->count < SCAN_NAMES_MAX) {
        path->names[path->count++] = name;
    } else {
        path->count = 0;
    }
}

static void follow_name(scan *s, scan_span name)
{
    const bool goes_on = s->before == SCAN_DOT || s->before == SCAN_COLON;
    if (span_is_keyword(name)) {
        s->head = scan_is(name, "function");
        follow(s, scan_is(name, "end") ? SCAN_VALUE : SCAN_OTHER);
        return;
    }
    scan_path path = s->path;
    if (!goes_on) {
        path = (scan_path){0};
        add_name(&path, name);
    } else if (path.count > 0) {
        add_name(&path, name);
    }
    follow(s, SCAN_VALUE);
    s->path = path;
}

// ---- brackets ---------------------------------------------------------------------------------------------------

static void open_bracket(scan *s, char open)
{
    if (s->depth + 1 == SCAN_FRAMES_MAX) {
        s->beyond++;
        return;
    }
    scan_frame *f = &s->frames[++s->depth];
    *f = (scan_frame){.open = open};
    if (s->before == SCAN_VALUE && !s->head) {
        f->of = s->path;
    }
    if (s->before == SCAN_EQUALS) {
        f->left = s->left;
    }
    s->head = false;
    follow(s, SCAN_OPEN);
}

static char opened_by(char close)
{
    return close == ')' ? '(' : close == '}' ? '{' : '[';
}

// What never was opened is left alone; what was left open inside ends with it.
static void close_bracket(scan *s, char close)
{
    if (s->beyond > 0) {
        s->beyond--;
        return;
    }
    unsigned k = s->depth;
    while (k > 0 && s->frames[k].open != opened_by(close)) {
        k--;
    }
    if (k == 0) {
        follow(s, SCAN_OTHER);
        return;
    }
    const scan_frame closed = s->frames[k];
    s->depth = k - 1;
    follow_value(s);
    if (close == ']' && closed.key.at != NULL && (closed.of.count > 0 || innermost(s)->open == '{')) {
        s->path = closed.of;
        add_name(&s->path, closed.key);
    }
}

// ---- tokens: each returns where the next begins, or the cursor -----------------------------------------------------

// The level of a long bracket "[==[" at `at`; -1: it is none.
static int long_level(const char *at, const char *end)
{
    int level = 0;
    const char *p = at + 1;
    while (p < end && *p == '=') {
        p++;
        level++;
    }
    return p < end && *at == '[' && *p == '[' ? level : -1;
}

static const char *read_long(scan *s, const char *at, const char *end, int level)
{
    const char *p = at + level + 2;
    for (; p + level + 1 < end; p++) {
        int k = 0;
        while (*p == ']' && k < level && p[k + 1] == '=') {
            k++;
        }
        if (*p == ']' && k == level && p[level + 1] == ']') {
            return p + level + 2;
        }
    }
    s->nowhere = true;
    return end;
}

static const char *read_comment(scan *s, const char *at, const char *end)
{
    const char *p = at + 2;
    const int level = p < end && *p == '[' ? long_level(p, end) : -1;
    if (level >= 0) {
        return read_long(s, p, end, level);
    }
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    s->nowhere = newline == NULL;
    return newline == NULL ? end : newline;
}

// A text that its line does not end is over with the line.
static const char *read_text(scan *s, const char *at, const char *end)
{
    const char *p = at + 1;
    while (p < end && *p != *at && *p != '\n') {
        p += *p == '\\' && p + 1 < end ? 2 : 1;
    }
    if (p >= end) {
        s->word = (scan_span){at + 1, (size_t)(end - at - 1)};
        s->quote = *at;
        return end;
    }
    scan_frame *f = innermost(s);
    const bool is_key = f->open == '[' && s->before == SCAN_OPEN;
    follow_value(s);
    if (is_key) {
        f->key = (scan_span){at + 1, (size_t)(p - at - 1)};
    }
    return p + 1;
}

static const char *read_number(scan *s, const char *at, const char *end)
{
    const char *p = at;
    while (p < end &&
           (is_of_name(*p) || *p == '.' ||
            ((*p == '-' || *p == '+') && strchr("eEpP", p[-1]) != NULL && isdigit((unsigned char)*at)))) {
        p++;
    }
    s->nowhere = p == end;
    follow(s, SCAN_VALUE);
    return p;
}

static const char *read_name(scan *s, const char *at, const char *end)
{
    const char *p = at;
    while (p < end && is_of_name(*p)) {
        p++;
    }
    const scan_span name = {at, (size_t)(p - at)};
    if (p == end) {
        s->word = name;
    } else {
        follow_name(s, name);
    }
    return p;
}

static const char *read_dots(scan *s, const char *at, const char *end)
{
    const char *p = at;
    while (p < end && *p == '.' && p - at < 3) {
        p++;
    }
    if (p - at > 1) {
        follow(s, SCAN_OTHER);
        return p;
    }
    const bool of_value = s->before == SCAN_VALUE;
    follow(s, SCAN_DOT);
    s->path.count = of_value ? s->path.count : 0;
    return p;
}

static const char *read_colons(scan *s, const char *at, const char *end)
{
    if (at + 1 < end && at[1] == ':') {
        follow(s, SCAN_OTHER);
        return at + 2;
    }
    const bool of_value = s->before == SCAN_VALUE;
    follow(s, SCAN_COLON);
    s->path.count = of_value ? s->path.count : 0;
    return at + 1;
}

// =, ==, ~=, and what only begins so.
static const char *read_equals(scan *s, const char *at, const char *end)
{
    const bool two = at + 1 < end && at[1] == '=';
    const bool compares = *at != '=' || two;
    if (*at != '=' && (*at != '~' || !two)) { // < > / and the like
        follow(s, SCAN_OTHER);
        return at + 1 + two;
    }
    scan_frame *f = innermost(s);
    const scan_path left = s->before == SCAN_VALUE ? s->path : (scan_path){0};
    follow(s, SCAN_EQUALS);
    if (f->open == '{' && !compares) {
        f->key = left.count == 1 ? left.names[0] : (scan_span){NULL, 0};
    } else {
        s->left = left;
    }
    return at + 1 + two;
}

static const char *read_comma(scan *s, const char *at)
{
    scan_frame *f = innermost(s);
    f->argument += f->open != '\0' && s->beyond == 0;
    f->key = (scan_span){NULL, 0};
    follow(s, SCAN_COMMA);
    return at + 1;
}

static const char *read_sign(scan *s, const char *at, const char *end)
{
    switch (*at) {
    case '(':
    case '{':
    case '[':
        open_bracket(s, *at);
        return at + 1;
    case ')':
    case '}':
    case ']':
        close_bracket(s, *at);
        return at + 1;
    case '.':
        return read_dots(s, at, end);
    case ':':
        return read_colons(s, at, end);
    case ',':
    case ';':
        return read_comma(s, at);
    case '=':
    case '~':
    case '<':
    case '>':
        return read_equals(s, at, end);
    default:
        follow(s, SCAN_OTHER);
        return at + 1;
    }
}

static const char *read_token(scan *s, const char *at, const char *end)
{
    const int level = *at == '[' ? long_level(at, end) : -1;
    if (isspace((unsigned char)*at)) {
        return at + 1;
    }
    if (*at == '-' && at + 1 < end && at[1] == '-') {
        return read_comment(s, at, end);
    }
    if (level >= 0) {
        at = read_long(s, at, end, level);
        follow_value(s);
        return at;
    }
    if (*at == '"' || *at == '\'') {
        return read_text(s, at, end);
    }
    if (begins_name(*at)) {
        return read_name(s, at, end);
    }
    if (isdigit((unsigned char)*at) ||
        (*at == '.' && at + 1 < end && isdigit((unsigned char)at[1]) && s->before != SCAN_VALUE)) {
        return read_number(s, at, end);
    }
    return read_sign(s, at, end);
}

void scan_read(const char *text, size_t cursor, scan *out)
{
    const char *at = text, *end = text + cursor;
    *out = (scan){.word = {end, 0}};
    while (at < end) {
        at = read_token(out, at, end);
    }
    out->nowhere = out->nowhere || out->beyond > 0;
}
