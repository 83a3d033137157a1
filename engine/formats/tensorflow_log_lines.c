// SPDX-License-Identifier: Apache-2.0
#include "formats/tensorflow_log_lines.h"

#include <string.h>

#include "headroom/units.h"

// ---- spans ----------------------------------------------------------------------------------------------------

static const char *find(log_span s, const char *sign)
{
    return s.text == NULL ? NULL : memmem(s.text, s.length, sign, strlen(sign));
}

static log_span pass(log_span s, size_t count)
{
    return (log_span){s.text + count, s.length - count};
}

log_span log_behind(log_span line, const char *sign)
{
    const char *at = find(line, sign);
    return at == NULL ? (log_span){NULL, 0} : pass(line, (size_t)(at - line.text) + strlen(sign));
}

log_span log_before(log_span line, const char *sign)
{
    const char *at = find(line, sign);
    return at == NULL ? line : (log_span){line.text, (size_t)(at - line.text)};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static log_span pass_blanks(log_span s)
{
    while (s.length > 0 && is_blank(*s.text)) {
        s = pass(s, 1);
    }
    return s;
}

log_span log_trim(log_span s)
{
    s = pass_blanks(s);
    while (s.length > 0 && (is_blank(s.text[s.length - 1]) || s.text[s.length - 1] == '\r')) {
        s.length--;
    }
    return s;
}

static bool begins(log_span s, const char *word)
{
    const size_t length = strlen(word);
    return s.length >= length && memcmp(s.text, word, length) == 0;
}

bool log_without_colours(log_span *line, text *plain)
{
    if (memchr(line->text, '\x1b', line->length) == NULL) {
        return true;
    }
    plain->length = 0;
    text_append_bytes(plain, "", 0);
    for (size_t k = 0; k < line->length; k++) {
        if (line->text[k] != '\x1b') {
            text_append_bytes(plain, &line->text[k], 1);
            continue;
        }
        k += k + 1 < line->length && line->text[k + 1] == '[';
        while (k + 1 < line->length && (unsigned char)line->text[k + 1] < '@') { // parameters
            k++;
        }
        k++; // the letter that ends it
    }
    *line = (log_span){plain->data, plain->length};
    return !plain->failed;
}

// ---- numbers --------------------------------------------------------------------------------------------------

static unsigned digit_of(char c)
{
    return c >= '0' && c <= '9'   ? (unsigned)(c - '0')
           : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
           : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                  : 99;
}

static bool take_digits(log_span *s, unsigned base, uint64_t *out)
{
    uint64_t value = 0;
    log_span at = *s;
    for (; at.length > 0 && digit_of(*at.text) < base; at = pass(at, 1)) {
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit_of(*at.text), &value)) {
            return false;
        }
    }
    const bool any = at.length < s->length;
    *s = at;
    *out = value;
    return any;
}

bool log_take_u64(log_span *s, uint64_t *out)
{
    *s = pass_blanks(*s);
    return take_digits(s, 10, out);
}

bool log_take_hex(log_span *s, uint64_t *out)
{
    *s = pass_blanks(*s);
    if (begins(*s, "0x") || begins(*s, "0X")) {
        *s = pass(*s, 2);
    }
    return take_digits(s, 16, out);
}

static unsigned take_unit(log_span *s)
{
    static const char units[] = "KMGTPE";
    const char *unit = s->length >= 3 ? memchr(units, *s->text, sizeof units - 1) : NULL;
    if (unit == NULL || s->text[1] != 'i' || s->text[2] != 'B') {
        return 0;
    }
    *s = pass(*s, 3);
    return 10 * (unsigned)(unit - units + 1);
}

bool log_take_bytes(log_span *s, uint64_t *out, bool *exact)
{
    uint64_t hundredths = 0, whole, scaled;
    if (!log_take_u64(s, &whole)) {
        return false;
    }
    if (s->length > 1 && *s->text == '.' && digit_of(s->text[1]) < 10) {
        hundredths = 10 * digit_of(s->text[1]);
        *s = pass(*s, 2);
        if (s->length > 0 && digit_of(*s->text) < 10) {
            hundredths += digit_of(*s->text);
            *s = pass(*s, 1);
        }
    }
    const unsigned shift = take_unit(s);
    *exact = shift == 0;
    if (!hr_mul_bytes(whole, UINT64_C(1) << shift, &scaled)) {
        return false;
    }
    const uint64_t part =
        shift <= 50 ? (hundredths << shift) / 100 : (UINT64_C(1) << shift) / 100 * hundredths;
    return hr_add_bytes(scaled, part, out);
}

// One decimal of KiB, two of the larger units; TensorFlow cuts off and then rounds, and the decimals here were cut too.
bool log_prints_as(uint64_t exact_bytes, uint64_t printed_bytes)
{
    uint64_t unit = 1;
    while (unit <= exact_bytes / 1024) {
        unit *= 1024;
    }
    const uint64_t apart =
        exact_bytes > printed_bytes ? exact_bytes - printed_bytes : printed_bytes - exact_bytes;
    const uint64_t slack = unit == 1 ? 0 : unit == 1024 ? 60 : unit / 128;
    return apart <= slack;
}

// ---- chunks ---------------------------------------------------------------------------------------------------

// The state of a chunk, the word "at", and the address.
static bool take_address(log_span at, const char *state, log_span *rest, uint64_t *address)
{
    const size_t length = strlen(state);
    if (!begins(at, state) || at.length == length || !is_blank(at.text[length])) {
        return false;
    }
    *rest = pass_blanks(pass(at, length));
    if (!begins(*rest, "at ")) {
        return false;
    }
    *rest = pass(*rest, 2);
    return log_take_hex(rest, address);
}

static bool take_state(log_span at, log_span *rest, log_chunk *out)
{
    out->in_use = !begins(at, "Free");
    return take_address(at, out->in_use ? "InUse" : "Free", rest, &out->address) ||
           (out->in_use && take_address(at, "Chunk", rest, &out->address));
}

static void read_number(log_span rest, const char *sign, uint64_t *out)
{
    uint64_t value;
    log_span at = log_behind(rest, sign);
    if (at.text != NULL && log_take_u64(&at, &value)) {
        *out = value;
    }
}

// An annotation may hold anything, also what looks like other parts of the line: the line without it is `rest`.
static void cut_annotation(log_span *rest, log_chunk *out, log_span *behind)
{
    *behind = (log_span){NULL, 0};
    const log_span inside = log_behind(*rest, " [");
    if (inside.text == NULL) {
        return;
    }
    size_t length = inside.length;
    while (length > 0 && inside.text[length - 1] != ']') {
        length--;
    }
    if (length == 0) {
        return;
    }
    log_span name = {inside.text, length - 1};
    name = begins(name, "allocation_annotation ") ? pass(name, strlen("allocation_annotation ")) : name;
    out->name = log_trim(name);
    *behind = pass(inside, length);
    rest->length = (size_t)(inside.text - rest->text) - 2;
}

bool log_chunk_of(log_span at, log_chunk *out)
{
    log_span rest, behind;
    *out = (log_chunk){.next = UINT64_MAX};
    if (!take_state(at, &rest, out)) {
        return false;
    }
    cut_annotation(&rest, out, &behind);
    const log_span op = log_behind(rest, " by op ");
    if (op.text != NULL) {
        out->name = log_trim(log_before(log_before(op, " action_count "), " next "));
        rest.length =
            (size_t)(op.text - rest.text); // what stands behind an operation's name is read from there
        const log_span counts = {out->name.text + out->name.length,
                                 op.length - (size_t)(out->name.text + out->name.length - op.text)};
        read_number(counts, " action_count ", &out->action_count);
        read_number(counts, " next ", &out->next);
        read_number(counts, " freed_at_count ", &out->freed_at);
    }
    read_number(rest, " of size ", &out->size_bytes);
    read_number(rest, " next ", &out->next);
    read_number(rest, " freed_at_count ", &out->freed_at);
    read_number(behind, " next ", &out->next);
    read_number(behind, " freed_at_count ", &out->freed_at);
    uint64_t end;
    return out->size_bytes > 0 && !__builtin_add_overflow(out->address, out->size_bytes, &end);
}

// ---- tensors --------------------------------------------------------------------------------------------------

// TensorFlow's names of types and their bytes.
static const struct {
    const char *name;
    uint8_t bytes;
} types[] = {
    {"float", 4},  {"double", 8},      {"half", 2},  {"bfloat16", 2},    {"int8", 1},          {"uint8", 1},
    {"int16", 2},  {"uint16", 2},      {"int32", 4}, {"uint32", 4},      {"int64", 8},         {"uint64", 8},
    {"bool", 1},   {"complex64", 8},   {"qint8", 1}, {"quint8", 1},      {"qint16", 2},        {"quint16", 2},
    {"qint32", 4}, {"complex128", 16}, {"int4", 1},  {"float8_e5m2", 1}, {"float8_e4m3fn", 1},
};

static uint64_t bytes_of_type(log_span word)
{
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        if (word.length == strlen(types[k].name) && memcmp(word.text, types[k].name, word.length) == 0) {
            return types[k].bytes;
        }
    }
    return 0;
}

bool log_tensor_bytes(log_span line, uint64_t *out)
{
    log_span at = log_behind(line, "OOM when allocating tensor with shape[");
    uint64_t product = 1, side;
    while (at.length > 0 && *at.text != ']') {
        if (!log_take_u64(&at, &side) || !hr_mul_bytes(product, side, &product) || at.length == 0) {
            return false;
        }
        at = *at.text == ',' ? pass(at, 1) : at;
    }
    const log_span type = log_behind(at, "] and type ");
    return type.text != NULL && hr_mul_bytes(product, bytes_of_type(log_before(type, " ")), out) && *out > 0;
}
