// SPDX-License-Identifier: Apache-2.0
// Conditions and expressions of lessons: a parser that computes as it reads. With names alone, in place of runs, it only
// says whether what it reads can be computed.
//
//   condition  sum (= | != | < | <= | > | >=) sum
//   sum        product {(+ | -) product}
//   product    factor {(* | /) factor}
//   factor     number | 3GiB | 65% | word | path | ( sum )
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "headroom/lesson.h"
#include "headroom/units.h"

#include "base/text.h"
#include "knobs/lesson.h"

enum { TOKEN_MAX = 128, DEPTH_MAX = 16 };

typedef struct reader {
    const char *at, *whole;
    const hr_lesson_runs *runs; // NULL: names alone
    const char *const *names;
    uint32_t name_count;
    unsigned depth;
    hr_err *err;
} reader;

static hr_status wrong(const reader *r, const char *what, const char *which)
{
    const hr_status status = HR_FAIL(r->err, PRESET, "'%.120s': %s '%.60s'", r->whole, what, which);
    hr_err_try(r->err, "headroom plan demo --json # its names are paths: memory.peak_in_use_bytes");
    return status;
}

static void skip_blanks(reader *r)
{
    while (*r->at == ' ' || *r->at == '\n') {
        r->at++;
    }
}

static bool takes(reader *r, char character)
{
    skip_blanks(r);
    const bool is = *r->at == character;
    r->at += is;
    return is;
}

// ---- paths ----------------------------------------------------------------------------------------------------

// Which run the path begins with; `*path` goes on behind it. The learner's where it names none.
static const hr_lesson_seen *find_run(const reader *r, const char **path)
{
    const size_t length = strcspn(*path, ".");
    for (uint32_t k = 0; r->runs != NULL && k < r->runs->count; k++) {
        const char *name = k == 0 ? "now" : r->runs->seen[k]->name; // before a try it is the start's
        if (strlen(name) == length && strncmp(name, *path, length) == 0) {
            *path += length + 1;
            return r->runs->seen[k];
        }
    }
    for (uint32_t k = 0; r->runs == NULL && k < r->name_count; k++) {
        if (strlen(r->names[k]) == length && strncmp(r->names[k], *path, length) == 0) {
            *path += length + 1;
            break;
        }
    }
    return r->runs == NULL ? NULL : r->runs->seen[0];
}

// ---- numbers --------------------------------------------------------------------------------------------------

static bool number_value(const char *token, hr_lesson_value *out)
{
    uint64_t bytes = 0;
    double number = 0;
    char digits[TOKEN_MAX];
    const size_t length = strlen(token);
    if (length > 1 && token[length - 1] == '%') {
        (void)snprintf(digits, sizeof digits, "%.*s", (int)(length - 1), token);
        *out = (hr_lesson_value){.kind = HR_LESSON_REAL};
        const bool is = text_to_real(digits, &number);
        out->number = number / 100;
        return is;
    }
    if (text_to_real(token, &number)) {
        *out = lesson_real(HR_LESSON_REAL, number);
        return true;
    }
    if (hr_bytes_parse(token, &bytes)) {
        *out = lesson_real(HR_LESSON_BYTES, (double)bytes);
        return true;
    }
    return false;
}

bool hr_lesson_read_number(const char *typed, double *number)
{
    hr_lesson_value value;
    char plain[TOKEN_MAX];
    size_t length = 0;
    for (const char *at = typed; *at != '\0' && length + 1 < sizeof plain; at++) {
        if (*at != ',' && *at != '_' && *at != ' ') {
            plain[length++] = *at;
        }
    }
    plain[length] = '\0';
    if (!number_value(plain, &value)) {
        return false;
    }
    *number = value.number;
    return true;
}

// ---- the parser -----------------------------------------------------------------------------------------------

static hr_status read_sum(reader *r, hr_lesson_value *out);

static hr_status read_name(reader *r, const char *token, hr_lesson_value *out)
{
    const char *path = token;
    if (strchr(token, '.') == NULL) {
        *out = lesson_word(token);
        return HR_OK;
    }
    const hr_lesson_seen *seen = find_run(r, &path);
    return lesson_read_path(seen, path, out) ? HR_OK : wrong(r, "a report has no", token);
}

static hr_status read_factor(reader *r, hr_lesson_value *out)
{
    char token[TOKEN_MAX];
    size_t length = 0;
    if (takes(r, '(')) {
        if (++r->depth > DEPTH_MAX) {
            return wrong(r, "too many brackets at", r->at);
        }
        HR_TRY(read_sum(r, out));
        r->depth--;
        return takes(r, ')') ? HR_OK : wrong(r, "a ')' is missing at", r->at);
    }
    while ((isalnum((unsigned char)r->at[length]) || strchr("._%", r->at[length]) != NULL) &&
           r->at[length] != '\0' && length + 1 < sizeof token) {
        length++;
    }
    memcpy(token, r->at, length);
    token[length] = '\0';
    r->at += length;
    if (length == 0) {
        return wrong(r, "needs a number, a path or a word at", r->at);
    }
    if (isdigit((unsigned char)token[0])) {
        return number_value(token, out) ? HR_OK : wrong(r, "is no number or size:", token);
    }
    return read_name(r, token, out);
}

// Bytes by bytes are a ratio, bytes by a ratio are bytes.
static void combine(char sign, hr_lesson_value *a, const hr_lesson_value *b)
{
    const hr_lesson_kind kind = sign == '/' && a->kind == b->kind ? HR_LESSON_REAL
                                : a->kind == HR_LESSON_REAL       ? b->kind
                                                                  : a->kind;
    const double number = sign == '+'   ? a->number + b->number
                          : sign == '-' ? a->number - b->number
                          : sign == '*' ? a->number * b->number
                                        : a->number / b->number;
    const bool known = a->kind != HR_LESSON_UNKNOWN && b->kind != HR_LESSON_UNKNOWN;
    *a = known ? lesson_real(kind, number) : (hr_lesson_value){.kind = HR_LESSON_UNKNOWN};
}

static hr_status read_chain(reader *r, const char *signs, hr_status (*part)(reader *r, hr_lesson_value *out),
                            hr_lesson_value *out)
{
    HR_TRY(part(r, out));
    for (skip_blanks(r); *r->at != '\0' && strchr(signs, *r->at) != NULL; skip_blanks(r)) {
        const char sign = *r->at++;
        hr_lesson_value next;
        skip_blanks(r);
        HR_TRY(part(r, &next));
        if (out->kind == HR_LESSON_WORD || next.kind == HR_LESSON_WORD) {
            return wrong(r, "cannot compute with the word",
                         out->kind == HR_LESSON_WORD ? out->word : next.word);
        }
        combine(sign, out, &next);
    }
    return HR_OK;
}

static hr_status read_product(reader *r, hr_lesson_value *out)
{
    skip_blanks(r);
    return read_chain(r, "*/", read_factor, out);
}

static hr_status read_sum(reader *r, hr_lesson_value *out)
{
    return read_chain(r, "+-", read_product, out);
}

static hr_status read_expression(reader *r, hr_lesson_value *out)
{
    HR_TRY(read_sum(r, out));
    skip_blanks(r);
    return *r->at == '\0' ? HR_OK : wrong(r, "something is left over:", r->at);
}

// ---- conditions -----------------------------------------------------------------------------------------------

static bool compare(const char *sign, const hr_lesson_value *a, const hr_lesson_value *b)
{
    if (a->kind == HR_LESSON_UNKNOWN || b->kind == HR_LESSON_UNKNOWN) {
        return false;
    }
    if (a->kind == HR_LESSON_WORD || b->kind == HR_LESSON_WORD) {
        const bool same = a->kind == b->kind && strcmp(a->word, b->word) == 0;
        return sign[0] == '!' ? !same : sign[0] == '=' && same;
    }
    const bool same = a->number == b->number;
    return sign[0] == '!'   ? !same
           : sign[0] == '=' ? same
           : sign[0] == '<' ? a->number < b->number || (sign[1] == '=' && same)
                            : a->number > b->number || (sign[1] == '=' && same);
}

static hr_status read_condition(reader *r, bool *holds)
{
    static const char *const signs[] = {"<=", ">=", "!=", "=", "<", ">"};
    hr_lesson_value left, right;
    const char *sign = NULL;
    HR_TRY(read_sum(r, &left));
    skip_blanks(r);
    for (size_t k = 0; k < sizeof signs / sizeof *signs && sign == NULL; k++) {
        sign = strncmp(r->at, signs[k], strlen(signs[k])) == 0 ? signs[k] : NULL;
    }
    if (sign == NULL) {
        return wrong(r, "needs one of = != < <= > >= at", r->at);
    }
    r->at += strlen(sign);
    HR_TRY(read_expression(r, &right));
    *holds = compare(sign, &left, &right);
    return HR_OK;
}

hr_status hr_lesson_evaluate(const char *expression, const hr_lesson_runs *runs, hr_lesson_value *out,
                             hr_err *err)
{
    reader r = {.at = expression, .whole = expression, .runs = runs, .err = err};
    return read_expression(&r, out);
}

hr_status hr_lesson_holds(const char *condition, const hr_lesson_runs *runs, bool *holds, hr_err *err)
{
    reader r = {.at = condition, .whole = condition, .runs = runs, .err = err};
    return read_condition(&r, holds);
}

hr_status lesson_check_condition(const char *condition, const char *const *runs, uint32_t count, hr_err *err)
{
    bool holds;
    reader r = {.at = condition, .whole = condition, .names = runs, .name_count = count, .err = err};
    return read_condition(&r, &holds);
}

hr_status lesson_check_expression(const char *expression, const char *const *runs, uint32_t count,
                                  hr_err *err)
{
    hr_lesson_value value;
    reader r = {.at = expression, .whole = expression, .names = runs, .name_count = count, .err = err};
    return read_expression(&r, &value);
}
