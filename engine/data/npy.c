// SPDX-License-Identifier: Apache-2.0
#include "data/npy.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "base/half.h"

static const struct {
    const char *descr;
    uint8_t bytes;
    bool whole;
} types[NPY_TYPE_COUNT] = {
#define X(name, descr, bytes, whole) [NPY_##name] = {descr, bytes, whole},
    NPY_TYPE_MAP(X)
#undef X
};

enum { MAGIC_BYTES = 6, TEXT_MAX = 24 };

// ---- the header's dictionary ----------------------------------------------------------------------------------

typedef struct scan {
    const char *name;
    const uint8_t *bytes;
    uint32_t at, end;
} scan;

static hr_status refuse(const scan *s, const char *wanted, hr_err *err)
{
    char had[TEXT_MAX];
    uint32_t count = 0;
    for (uint32_t i = s->at; i < s->end && count + 1 < sizeof had && s->bytes[i] != '\n'; i++) {
        had[count++] = (char)(s->bytes[i] < ' ' || s->bytes[i] > '~' ? '?' : s->bytes[i]);
    }
    had[count] = '\0';
    const hr_status status =
        HR_FAIL(err, DATA, "%s, offset %u: needed %s, had %s%s%s", s->name, s->at, wanted,
                count > 0 ? "\"" : "", count > 0 ? had : "the end of the header", count > 0 ? "\"" : "");
    hr_err_try(err, "numpy.save(file, numpy.ascontiguousarray(array))");
    return status;
}

static void pass_blanks(scan *s)
{
    while (s->at < s->end && (s->bytes[s->at] == ' ' || s->bytes[s->at] == '\n' || s->bytes[s->at] == '\t')) {
        s->at++;
    }
}

// Passes over `mark` and the blanks around it, if it is there.
static bool take(scan *s, char mark)
{
    pass_blanks(s);
    if (s->at == s->end || s->bytes[s->at] != (uint8_t)mark) {
        return false;
    }
    s->at++;
    pass_blanks(s);
    return true;
}

static bool take_word(scan *s, const char *word)
{
    const size_t length = strlen(word);
    if (s->end - s->at < length || memcmp(s->bytes + s->at, word, length) != 0) {
        return false;
    }
    s->at += (uint32_t)length;
    return true;
}

// A text in single or double quotes, without escapes; false when there is none or it is too long.
static bool take_text(scan *s, char text[TEXT_MAX])
{
    const uint32_t began = s->at;
    if (s->at == s->end || (s->bytes[s->at] != '\'' && s->bytes[s->at] != '"')) {
        return false;
    }
    const uint8_t quote = s->bytes[s->at];
    uint32_t length = 0;
    for (s->at++; s->at < s->end && s->bytes[s->at] != quote && length + 1 < TEXT_MAX; s->at++) {
        text[length++] = (char)s->bytes[s->at];
    }
    text[length] = '\0';
    if (s->at == s->end || s->bytes[s->at] != quote) {
        s->at = began;
        return false;
    }
    s->at++;
    return true;
}

static bool take_number(scan *s, uint64_t *out)
{
    const uint32_t began = s->at;
    *out = 0;
    while (s->at < s->end && s->bytes[s->at] >= '0' && s->bytes[s->at] <= '9') {
        uint64_t tens;
        if (!hr_mul_bytes(*out, 10, &tens) || !hr_add_bytes(tens, (uint64_t)(s->bytes[s->at] - '0'), out)) {
            s->at = began;
            return false;
        }
        s->at++;
    }
    const bool any = s->at > began;
    (void)(any && take_word(s, "L")); // a long of Python 2
    return any;
}

// ---- its three keys -------------------------------------------------------------------------------------------

static bool type_of(const char *descr, npy *out)
{
    const bool little = __BYTE_ORDER == __LITTLE_ENDIAN;
    if (strchr("<>=|", descr[0]) == NULL || descr[0] == '\0') {
        return false;
    }
    for (npy_type type = 0; type < NPY_TYPE_COUNT; type++) {
        if (strcmp(descr + 1, types[type].descr) == 0) {
            out->type = type;
            out->swapped = types[type].bytes > 1 && descr[0] == (little ? '>' : '<');
            return descr[0] != '|' || types[type].bytes == 1;
        }
    }
    return false;
}

static hr_status parse_descr(scan *s, npy *out, hr_err *err)
{
    char descr[TEXT_MAX];
    const uint32_t began = s->at;
    const bool is_text = take_text(s, descr);
    if (is_text && type_of(descr, out)) {
        return HR_OK;
    }
    s->at = began;
    if (is_text && descr[0] != '\0' && descr[1] == 'O') {
        const hr_status status =
            HR_FAIL(err, DATA,
                    "%s, offset %u: needed numbers, had objects of Python (dtype=object), which "
                    "are not read",
                    s->name, began);
        hr_err_try(err, "numpy.save(file, array.astype(\"float32\"))");
        return status;
    }
    return refuse(s, "a type of b1, u1, u2, u4, i1, i2, i4, i8, f2, f4 and f8", err);
}

static hr_status parse_order(scan *s, npy *out, hr_err *err)
{
    (void)out;
    if (take_word(s, "False")) {
        return HR_OK;
    }
    const uint32_t began = s->at;
    if (!take_word(s, "True")) {
        return refuse(s, "True or False", err);
    }
    const hr_status status =
        HR_FAIL(err, DATA, "%s, offset %u: needed rows one behind the other, had fortran_order: columns",
                s->name, began);
    hr_err_try(err, "numpy.save(file, numpy.ascontiguousarray(array))");
    return status;
}

static hr_status parse_shape(scan *s, npy *out, hr_err *err)
{
    if (!take(s, '(')) {
        return refuse(s, "a shape in parentheses", err);
    }
    out->rank = 0;
    while (!take(s, ')')) {
        if (out->rank == NPY_MAX_RANK) {
            return refuse(s, "at most 8 dimensions", err);
        }
        if (!take_number(s, &out->dim[out->rank])) {
            return refuse(s, "a dimension below 2^64", err);
        }
        out->rank++;
        const bool more = take(s, ',');
        if (!more && (s->at == s->end || s->bytes[s->at] != ')')) {
            return refuse(s, "a comma or a closing parenthesis", err);
        }
    }
    return HR_OK;
}

static const struct {
    const char *key;
    hr_status (*parse)(scan *s, npy *out, hr_err *err);
} keys[] = {{"descr", parse_descr}, {"fortran_order", parse_order}, {"shape", parse_shape}};

enum { KEYS = sizeof keys / sizeof *keys };

// One key and its value; each comes once.
static hr_status parse_entry(scan *s, uint32_t *seen, npy *out, hr_err *err)
{
    char key[TEXT_MAX];
    const uint32_t began = s->at;
    uint32_t k = KEYS;
    if (take_text(s, key)) {
        for (k = 0; k < KEYS && strcmp(key, keys[k].key) != 0; k++) {
        }
    }
    if (k == KEYS || (*seen & 1u << k) != 0 || !take(s, ':')) {
        s->at = began;
        return refuse(s, "'descr', 'fortran_order' and 'shape' once each", err);
    }
    *seen |= 1u << k;
    return keys[k].parse(s, out, err);
}

static hr_status parse_entries(scan *s, npy *out, hr_err *err)
{
    uint32_t seen = 0;
    if (!take(s, '{')) {
        return refuse(s, "a dictionary", err);
    }
    while (!take(s, '}')) {
        HR_TRY(parse_entry(s, &seen, out, err));
        const bool more = take(s, ',');
        if (!more && (s->at == s->end || s->bytes[s->at] != '}')) {
            return refuse(s, "a comma or a closing brace", err);
        }
    }
    if (seen != (1u << KEYS) - 1 || s->at != s->end) {
        return refuse(s, "'descr', 'fortran_order' and 'shape' and nothing behind them", err);
    }
    return HR_OK;
}

// ---- the file -------------------------------------------------------------------------------------------------

hr_status npy_header_size(const char *name, const uint8_t *bytes, uint32_t *size_bytes, hr_err *err)
{
    if (memcmp(bytes, "\x93NUMPY", MAGIC_BYTES) != 0) {
        return HR_FAIL(err, DATA,
                       "%s, offset 0: needed an array of NumPy (\\x93NUMPY), had 0x%02X%02X%02X%02X", name,
                       bytes[0], bytes[1], bytes[2], bytes[3]);
    }
    if (bytes[6] < 1 || bytes[6] > 3) {
        return HR_FAIL(err, DATA, "%s, offset 6: needed version 1, 2 or 3, had %u", name, bytes[6]);
    }
    uint64_t length = bytes[8] | (uint64_t)bytes[9] << 8;
    if (bytes[6] > 1) {
        length |= (uint64_t)bytes[10] << 16 | (uint64_t)bytes[11] << 24;
    }
    length += bytes[6] > 1 ? 12 : 10;
    if (length < NPY_PREFIX_BYTES || length > NPY_MOST_HEADER_BYTES) {
        return HR_FAIL(err, DATA, "%s, offset 8: needed a header of %d to %d bytes, had %" PRIu64, name,
                       NPY_PREFIX_BYTES, NPY_MOST_HEADER_BYTES, length);
    }
    *size_bytes = (uint32_t)length;
    return HR_OK;
}

hr_status npy_parse(const char *name, const uint8_t *bytes, uint32_t size_bytes, npy *out, hr_err *err)
{
    *out = (npy){.header_bytes = size_bytes};
    scan s = {.name = name, .bytes = bytes, .at = bytes[6] > 1 ? 12 : 10, .end = size_bytes};
    HR_TRY(parse_entries(&s, out, err));
    uint64_t data_bytes;
    if (!npy_data_bytes(out, &data_bytes)) {
        char text[128];
        return HR_FAIL(err, DATA, "%s: needed an array that a file can hold, had %s", name,
                       npy_text(out, text, sizeof text));
    }
    return HR_OK;
}

const char *npy_type_text(npy_type type)
{
    return types[type].descr;
}

uint32_t npy_value_bytes(const npy *a)
{
    return types[a->type].bytes;
}

bool npy_is_whole(const npy *a)
{
    return types[a->type].whole;
}

bool npy_item_values(const npy *a, uint64_t *values)
{
    *values = 1;
    bool fits = true;
    for (uint32_t d = 1; d < a->rank; d++) {
        fits = fits && hr_mul_bytes(*values, a->dim[d], values);
    }
    return fits;
}

bool npy_data_bytes(const npy *a, uint64_t *bytes)
{
    uint64_t values;
    return npy_item_values(a, &values) && hr_mul_bytes(values, npy_value_bytes(a), bytes) &&
           hr_mul_bytes(*bytes, a->rank > 0 ? a->dim[0] : 1, bytes) && *bytes <= INT64_MAX;
}

const char *npy_text(const npy *a, char *text, uint32_t size)
{
    uint32_t used = 0;
    text[0] = '\0';
    for (uint32_t d = 0; d < a->rank && used < size; d++) {
        used += (uint32_t)snprintf(text + used, size - used, "%s%" PRIu64, d == 0 ? "[" : ", ", a->dim[d]);
    }
    if (used < size) {
        (void)snprintf(text + used, size - used, "%s of %s", a->rank == 0 ? "[]" : "]", types[a->type].descr);
    }
    return text;
}
