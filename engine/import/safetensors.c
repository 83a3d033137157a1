// SPDX-License-Identifier: Apache-2.0
#include "safetensors.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/input.h"

enum {
    HEADER_MAX_BYTES = 100000000,
    NAME_MAX_BYTES = 65536,
    TYPE_MAX_BYTES = 16,
    SIDES_MAX = 64,
    LENGTH_BYTES = 8
};

static const tensor_type types[] = {
    {"BOOL", 1, 8, false},       {"U8", 1, 8, false},         {"I8", 1, 8, false},
    {"F4", 1, 4, true},          {"F6_E2M3", 1, 6, true},     {"F6_E3M2", 1, 6, true},
    {"F8_E5M2", 1, 8, true},     {"F8_E4M3", 1, 8, true},     {"F8_E8M0", 1, 8, false},
    {"F8_E4M3FNUZ", 1, 8, true}, {"F8_E5M2FNUZ", 1, 8, true}, {"I16", 1, 16, false},
    {"U16", 1, 16, false},       {"F16", 1, 16, true},        {"BF16", 1, 16, true},
    {"I32", 1, 32, false},       {"U32", 1, 32, false},       {"F32", 1, 32, true},
    {"C64", 1, 64, true},        {"F64", 1, 64, true},        {"I64", 1, 64, false},
    {"U64", 1, 64, false},
};

typedef struct scanner {
    input in;
    tensors *t;
    uint64_t end; // of the header, in the file
    hr_status status;
} scanner;

// ---- letters --------------------------------------------------------------------------------------------------

// Refused once; what comes behind reads zeros.
static void refuse(scanner *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void refuse(scanner *s, const char *format, ...)
{
    char words[200];
    if (s->status != HR_OK) {
        return;
    }
    va_list args;
    va_start(args, format);
    (void)vsnprintf(words, sizeof words, format, args);
    va_end(args);
    s->status =
        HR_FAIL(s->t->err, PRESET, "%.200s: byte %" PRIu64 ": %s", s->t->path, input_offset(&s->in), words);
    hr_err_try(s->t->err, "the file as it was published: a part of a download looks like this");
}

static void keep_status(scanner *s, hr_status status)
{
    s->status = s->status == HR_OK ? status : s->status;
}

// The letter that comes next, which stays; '\0': the header is over, or was refused.
static char peek(scanner *s)
{
    if (s->status != HR_OK || input_offset(&s->in) >= s->end || input_ahead(&s->in, 1) == 0) {
        return '\0';
    }
    return *input_here(&s->in);
}

static void skip_blanks(scanner *s)
{
    for (char c = peek(s); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(s)) {
        input_pass(&s->in, 1);
    }
}

// Passes over the sign where it comes next.
static bool accept(scanner *s, char sign)
{
    skip_blanks(s);
    const bool there = s->status == HR_OK && peek(s) == sign;
    if (there) {
        input_pass(&s->in, 1);
    }
    return there;
}

static void expect(scanner *s, char sign, const char *where)
{
    if (!accept(s, sign)) {
        refuse(s, "needed '%c' %s, had another letter or the end of the header", sign, where);
    }
}

// A text as it is written, its escapes unread, good until the next call.
static tensor_name text_of(scanner *s, const char *what)
{
    tensor_name name = {.text = "", .at = 0};
    expect(s, '"', what);
    for (size_t k = 0; s->status == HR_OK; k++) {
        const size_t ahead = k < NAME_MAX_BYTES ? input_ahead(&s->in, k + 1) : 0;
        const char c = ahead > k ? input_here(&s->in)[k] : '\0';
        if (ahead <= k || input_offset(&s->in) + k >= s->end || (unsigned char)c < ' ') {
            refuse(s, "needed a text of at most %d bytes that ends in the header (%s)", NAME_MAX_BYTES, what);
        } else if (c == '"') {
            name =
                (tensor_name){.text = input_here(&s->in), .bytes = (uint32_t)k, .at = input_offset(&s->in)};
            input_pass(&s->in, k + 1);
            break;
        } else if (c == '\\') {
            k++; // an escaped sign ends nothing
        }
    }
    return name;
}

static uint64_t number_of(scanner *s, const char *what)
{
    uint64_t value = 0;
    bool any = false, fits = true;
    skip_blanks(s);
    for (char c = peek(s); c >= '0' && c <= '9'; c = peek(s)) {
        fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
               !__builtin_add_overflow(value, (uint64_t)(c - '0'), &value);
        any = true;
        input_pass(&s->in, 1);
    }
    if (!any || !fits) {
        refuse(s, "needed a whole number %s", what);
    }
    return value;
}

static uint32_t numbers_of(scanner *s, const char *what, uint64_t *list, uint32_t most)
{
    uint32_t count = 0;
    expect(s, '[', what);
    if (accept(s, ']')) {
        return 0;
    }
    do {
        if (count == most) {
            refuse(s, "needed a list of at most %u numbers %s", most, what);
            return 0;
        }
        list[count++] = number_of(s, what);
    } while (s->status == HR_OK && accept(s, ','));
    expect(s, ']', what);
    return count;
}

// ---- a tensor -------------------------------------------------------------------------------------------------

typedef struct entry {
    const tensor_type *type;
    uint64_t sides[SIDES_MAX], offsets[2];
    uint32_t rank;
    bool has_shape, has_offsets;
} entry;

static bool is_word(const tensor_name *text, const char *word)
{
    return text->bytes == strlen(word) && memcmp(text->text, word, text->bytes) == 0;
}

static const tensor_type *type_of(scanner *s)
{
    char shown[TENSOR_NAME_SHOWN + 1];
    const tensor_name word = text_of(s, "of a dtype");
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        if (is_word(&word, types[k].name)) {
            return &types[k];
        }
    }
    refuse(s, "needed a dtype of safetensors, such as F32 or BF16, had '%s'", tensor_shown(&word, shown));
    return NULL;
}

static void read_entry(scanner *s, entry *e)
{
    expect(s, '{', "of a tensor");
    do {
        const tensor_name key = text_of(s, "of a tensor's key");
        const bool dtype = is_word(&key, "dtype"), shape = is_word(&key, "shape");
        if (s->status == HR_OK && !dtype && !shape && !is_word(&key, "data_offsets")) {
            char shown[TENSOR_NAME_SHOWN + 1];
            refuse(s, "needed dtype, shape or data_offsets of a tensor, had '%s'", tensor_shown(&key, shown));
        } else if (dtype ? e->type != NULL : shape ? e->has_shape : e->has_offsets) {
            refuse(s, "needed each key of a tensor once, had one twice");
        }
        expect(s, ':', "behind a key");
        if (dtype) {
            e->type = type_of(s);
        } else if (shape) {
            e->rank = numbers_of(s, "of a shape", e->sides, SIDES_MAX);
            e->has_shape = true;
        } else {
            e->has_offsets = numbers_of(s, "of data_offsets", e->offsets, 2) == 2;
        }
    } while (s->status == HR_OK && accept(s, ','));
    expect(s, '}', "behind a tensor");
    if (e->type == NULL || !e->has_shape || !e->has_offsets) {
        refuse(s, "needed dtype, shape and two data_offsets of a tensor, had them not all");
    }
}

static void add_entry(scanner *s, const tensor_name *name)
{
    entry e = {0};
    char letters[TENSOR_NAME_SHOWN + 1];
    uint64_t elements = 0, bytes = 0;
    read_entry(s, &e);
    if (s->status == HR_OK) {
        keep_status(s, tensors_elements(s->t, name, e.sides, e.rank, &elements));
    }
    if (s->status == HR_OK) {
        keep_status(s, tensors_add(s->t, name, e.type, elements, e.offsets[0], &bytes));
    }
    if (s->status == HR_OK && (e.offsets[1] < e.offsets[0] || e.offsets[1] - e.offsets[0] != bytes)) {
        s->status = HR_FAIL(s->t->err, PRESET,
                            "%.200s: tensor '%s' needs data_offsets %" PRIu64 " bytes apart, had %" PRIu64
                            " and %" PRIu64,
                            s->t->path, tensor_shown(name, letters), bytes, e.offsets[0], e.offsets[1]);
    }
}

// A save of headroom says so of each slot and state ("category:NAME").
static void set_aside(scanner *s, const tensor_name *key)
{
    static const char prefix[] = "category:";
    const uint32_t length = sizeof prefix - 1;
    if (s->status == HR_OK && key->bytes > length && memcmp(key->text, prefix, length) == 0) {
        keep_status(s, tensors_set_aside(s->t, key->text + length, key->bytes - length));
    }
}

// Texts by texts, as the library asks for.
static void read_metadata(scanner *s)
{
    expect(s, '{', "behind __metadata__");
    if (accept(s, '}')) {
        return;
    }
    do {
        const tensor_name key = text_of(s, "of a key of __metadata__");
        set_aside(s, &key);
        expect(s, ':', "behind a key");
        (void)text_of(s, "of a value of __metadata__");
    } while (s->status == HR_OK && accept(s, ','));
    expect(s, '}', "behind __metadata__");
    tensors_sort_aside(s->t);
}

// ---- the header -----------------------------------------------------------------------------------------------

static void read_tensors(scanner *s)
{
    char name[NAME_MAX_BYTES]; // a name outlives its place in the window
    if (accept(s, '}')) {
        return;
    }
    do {
        tensor_name key = text_of(s, "of a tensor's name");
        memcpy(name, key.text, key.bytes);
        key.text = name;
        expect(s, ':', "behind a name");
        if (memchr(name, '\\', key.bytes) != NULL) { // the same name could be written in two ways
            char shown[TENSOR_NAME_SHOWN + 1];
            refuse(s, "needed a tensor's name without a backslash, had '%s'", tensor_shown(&key, shown));
        } else if (is_word(&key, "__metadata__")) {
            read_metadata(s);
        } else if (s->status == HR_OK) {
            add_entry(s, &key);
        }
    } while (s->status == HR_OK && accept(s, ','));
    expect(s, '}', "behind the tensors");
}

static void read_header(scanner *s)
{
    uint64_t bytes = 0;
    const char *length = input_take(&s->in, LENGTH_BYTES);
    for (int k = LENGTH_BYTES - 1; length != NULL && k >= 0; k--) {
        bytes = bytes << 8 | (uint8_t)length[k];
    }
    if (length == NULL || bytes < 2 || bytes > HEADER_MAX_BYTES || input_ahead(&s->in, 1) == 0 ||
        *input_here(&s->in) != '{') {
        keep_status(s, input_status(&s->in, s->t->err));
        refuse(s, "needed the length of a header and its '{', which safetensors begin with: a pointer of "
                  "git-lfs looks like this");
        return;
    }
    s->end = LENGTH_BYTES + bytes;
    input_pass(&s->in, 1);
    read_tensors(s);
    skip_blanks(s);
    if (s->status == HR_OK && input_offset(&s->in) < s->end) {
        refuse(s, input_ahead(&s->in, 1) == 0 ? "needed a whole header, had the end of the file in it"
                                              : "needed blanks behind the header, had another letter");
    }
}

hr_status safetensors_read(const char *path, tensors *t, hr_err *err)
{
    scanner s = {.t = t};
    t->path = path;
    t->err = err;
    HR_TRY(input_open(&s.in, path, err));
    s.status = tensors_open(t, s.in.fd);
    if (s.status == HR_OK) {
        read_header(&s);
    }
    if (s.in.failed) {
        s.status = input_status(&s.in, err); // what was refused was read past the failure
    }
    if (s.status == HR_OK) {
        s.status = tensors_check(t, s.in.fd, s.end, 1);
    }
    input_close(&s.in);
    return s.status;
}
