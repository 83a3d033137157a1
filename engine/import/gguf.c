// SPDX-License-Identifier: Apache-2.0
#include "gguf.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"

enum {
    HEADER_MAX_BYTES = 256 << 20,
    KEYS_MAX = 1 << 16,
    WORD_MAX_BYTES = 128, // of a key or a text that is kept
    LIST_MAX = 1024,      // numbers of a list that are kept
    LISTED_MAX = 1 << 16, // of all lists together
    NESTING_MAX = 4,      // lists in lists
    NAME_MAX_BYTES = 256, // of a tensor; the format says 64
    SIDES_MAX = 8,        // the format says 4
    ALIGNMENT = 32,       // where none is said
    ALIGNMENT_MAX = 1 << 20
};

// By the number of the type; those that were taken out of the format have no name. Q8_1 is ggml-common.h's, of two halves, where
// gguf-py has two floats.
static const tensor_type types[] = {
    [0] = {"F32", 1, 32, true},
    [1] = {"F16", 1, 16, true},
    [2] = {"Q4_0", 32, 8 * 18, true},
    [3] = {"Q4_1", 32, 8 * 20, true},
    [6] = {"Q5_0", 32, 8 * 22, true},
    [7] = {"Q5_1", 32, 8 * 24, true},
    [8] = {"Q8_0", 32, 8 * 34, true},
    [9] = {"Q8_1", 32, 8 * 36, true},
    [10] = {"Q2_K", 256, 8 * 84, true},
    [11] = {"Q3_K", 256, 8 * 110, true},
    [12] = {"Q4_K", 256, 8 * 144, true},
    [13] = {"Q5_K", 256, 8 * 176, true},
    [14] = {"Q6_K", 256, 8 * 210, true},
    [15] = {"Q8_K", 256, 8 * 292, true},
    [16] = {"IQ2_XXS", 256, 8 * 66, true},
    [17] = {"IQ2_XS", 256, 8 * 74, true},
    [18] = {"IQ3_XXS", 256, 8 * 98, true},
    [19] = {"IQ1_S", 256, 8 * 50, true},
    [20] = {"IQ4_NL", 32, 8 * 18, true},
    [21] = {"IQ3_S", 256, 8 * 110, true},
    [22] = {"IQ2_S", 256, 8 * 82, true},
    [23] = {"IQ4_XS", 256, 8 * 136, true},
    [24] = {"I8", 1, 8, false},
    [25] = {"I16", 1, 16, false},
    [26] = {"I32", 1, 32, false},
    [27] = {"I64", 1, 64, false},
    [28] = {"F64", 1, 64, true},
    [29] = {"IQ1_M", 256, 8 * 56, true},
    [30] = {"BF16", 1, 16, true},
    [34] = {"TQ1_0", 256, 8 * 54, true},
    [35] = {"TQ2_0", 256, 8 * 66, true},
    [39] = {"MXFP4", 32, 8 * 17, true},
    [40] = {"NVFP4", 64, 8 * 36, true},
    [41] = {"Q1_0", 128, 8 * 18, true},
};

typedef enum value_type {
    VALUE_UINT8,
    VALUE_INT8,
    VALUE_UINT16,
    VALUE_INT16,
    VALUE_UINT32,
    VALUE_INT32,
    VALUE_FLOAT32,
    VALUE_BOOL,
    VALUE_TEXT,
    VALUE_LIST,
    VALUE_UINT64,
    VALUE_INT64,
    VALUE_FLOAT64,
    VALUE_TYPES
} value_type;

static const uint8_t value_bytes[VALUE_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

typedef struct scanner {
    input in;
    gguf *g;
    bool swapped; // the file's bytes are the other way round
    uint32_t listed;
    hr_status status;
} scanner;

// ---- bytes ----------------------------------------------------------------------------------------------------

// Refused once; what comes behind reads zeros.
static void refuse(scanner *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void refuse(scanner *s, const char *format, ...)
{
    char words[256];
    const tensors *t = &s->g->list;
    if (s->status != HR_OK) {
        return;
    }
    va_list args;
    va_start(args, format);
    (void)vsnprintf(words, sizeof words, format, args);
    va_end(args);
    s->status = HR_FAIL(t->err, PRESET, "%.200s: byte %" PRIu64 ": %s", t->path, input_offset(&s->in), words);
    hr_err_try(t->err, "the file as it was published: a part of a download looks like this");
}

static void keep_status(scanner *s, hr_status status)
{
    s->status = s->status == HR_OK ? status : s->status;
}

static void no_memory(scanner *s)
{
    keep_status(s, HR_FAIL(s->g->list.err, NOMEM, "%.200s: no memory to read it", s->g->list.path));
}

// Whether so many bytes more are in the file and within the limit of a header.
static bool has(scanner *s, uint64_t bytes)
{
    const uint64_t at = input_offset(&s->in);
    if (s->status == HR_OK && bytes > s->g->list.file_bytes - at) {
        refuse(s, "needed %" PRIu64 " bytes more of its header, had %" PRIu64 " to the end of the file",
               bytes, s->g->list.file_bytes - at);
    } else if (s->status == HR_OK && bytes > HEADER_MAX_BYTES - at) {
        refuse(s, "needed a header of at most %d MiB, had more", HEADER_MAX_BYTES >> 20);
    }
    return s->status == HR_OK;
}

static void skip(scanner *s, uint64_t bytes)
{
    if (has(s, bytes) && !input_skip(&s->in, bytes)) {
        refuse(s, "needed the bytes that its size says, had fewer");
    }
}

static uint64_t whole_of(scanner *s, unsigned bytes)
{
    uint64_t value = 0;
    const char *at = has(s, bytes) ? input_take(&s->in, bytes) : NULL;
    for (unsigned k = 0; at != NULL && k < bytes; k++) {
        value = value << 8 | (uint8_t)at[s->swapped ? k : bytes - 1 - k];
    }
    if (at == NULL) {
        refuse(s, "needed the bytes that its size says, had fewer");
    }
    return value;
}

// A text of which at most `room - 1` letters are kept, as a sentence can have them; its length.
static uint64_t text_of(scanner *s, char *out, size_t room, uint64_t *at)
{
    const uint64_t bytes = whole_of(s, 8);
    const size_t kept = bytes < room - 1 ? (size_t)bytes : room - 1;
    *at = input_offset(&s->in);
    const char *letters = has(s, bytes) ? input_take(&s->in, kept) : NULL;
    for (size_t k = 0; letters != NULL && k < kept; k++) {
        out[k] = letters[k] < ' ' || letters[k] > '~' ? '?' : letters[k];
    }
    out[letters == NULL ? 0 : kept] = '\0';
    if (s->status == HR_OK && bytes > kept) {
        skip(s, bytes - kept);
    }
    return s->status == HR_OK ? bytes : 0;
}

// ---- values of the metadata -----------------------------------------------------------------------------------

// The shortest number that is the same float32.
static double float_of(uint32_t bits)
{
    float value;
    char words[32];
    memcpy(&value, &bits, sizeof value);
    for (int digits = 6; isfinite(value) && digits <= 9; digits++) {
        (void)snprintf(words, sizeof words, "%.*g", digits, (double)value);
        if (strtof(words, NULL) == value) {
            return strtod(words, NULL);
        }
    }
    return (double)value;
}

static json_t *real_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *number_json(value_type type, uint64_t bits)
{
    const unsigned unused = 64 - 8 * (unsigned)value_bytes[type];
    const bool is_signed =
        type == VALUE_INT8 || type == VALUE_INT16 || type == VALUE_INT32 || type == VALUE_INT64;
    double real;
    if (type == VALUE_FLOAT32) {
        return real_json(float_of((uint32_t)bits));
    }
    if (type == VALUE_FLOAT64) {
        memcpy(&real, &bits, sizeof real);
        return real_json(real);
    }
    if (type == VALUE_BOOL) {
        return json_boolean(bits != 0);
    }
    if (is_signed) {
        return json_integer((int64_t)(bits << unused) >> unused);
    }
    return bits <= INT64_MAX ? json_integer((json_int_t)bits) : real_json((double)bits);
}

static value_type type_of_value(scanner *s)
{
    const uint64_t type = whole_of(s, 4);
    if (type >= VALUE_TYPES) {
        refuse(s, "needed a type of metadata from 0 to %d, had %" PRIu64, VALUE_TYPES - 1, type);
        return VALUE_UINT8;
    }
    return (value_type)type;
}

static void skip_list(scanner *s, value_type of, uint64_t count, unsigned depth);

static void skip_value(scanner *s, value_type type, unsigned depth)
{
    if (type == VALUE_TEXT) {
        skip(s, whole_of(s, 8));
    } else if (type == VALUE_LIST) {
        const value_type of = type_of_value(s);
        skip_list(s, of, whole_of(s, 8), depth + 1);
    } else {
        skip(s, value_bytes[type]);
    }
}

static void skip_list(scanner *s, value_type of, uint64_t count, unsigned depth)
{
    if (depth > NESTING_MAX) {
        refuse(s, "needed lists of metadata at most %d deep", NESTING_MAX);
    } else if (of != VALUE_TEXT && of != VALUE_LIST) {
        skip(s, count > HEADER_MAX_BYTES ? UINT64_MAX : count * value_bytes[of]);
    } else {
        for (uint64_t k = 0; s->status == HR_OK && k < count; k++) {
            skip_value(s, of, depth);
        }
    }
}

// A short list of numbers; all equal: one of them.
static json_t *numbers_json(scanner *s, value_type of, uint64_t count)
{
    json_t *list = json_array();
    bool alike = true, good = list != NULL;
    s->listed += (uint32_t)count;
    for (uint64_t k = 0; good && s->status == HR_OK && k < count; k++) {
        json_t *one = number_json(of, whole_of(s, value_bytes[of]));
        good = one != NULL && json_array_append_new(list, one) == 0;
        alike = alike && good && json_equal(json_array_get(list, 0), one);
    }
    if (!good) {
        json_decref(list);
        return NULL;
    }
    if (alike && count > 0) {
        json_t *one = json_incref(json_array_get(list, 0));
        json_decref(list);
        return one;
    }
    return list;
}

static json_t *list_json(scanner *s)
{
    const value_type of = type_of_value(s);
    const uint64_t count = whole_of(s, 8);
    if (of != VALUE_TEXT && of != VALUE_LIST && count <= LIST_MAX && count <= LISTED_MAX - s->listed) {
        return numbers_json(s, of, count);
    }
    skip_list(s, of, count, 1);
    json_t *object = json_object();
    json_t *number = json_integer(count <= INT64_MAX ? (json_int_t)count : INT64_MAX);
    // The number is taken, also where there is no object.
    if (json_object_set_new(object, "count", number) != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

// NULL: no memory. A text that is too long to be kept is null.
static json_t *value_json(scanner *s, value_type type)
{
    char words[WORD_MAX_BYTES + 1];
    uint64_t at = 0;
    if (type == VALUE_LIST) {
        return list_json(s);
    }
    if (type == VALUE_TEXT) {
        return text_of(s, words, sizeof words, &at) <= WORD_MAX_BYTES ? json_string(words) : json_null();
    }
    return number_json(type, whole_of(s, value_bytes[type]));
}

static void read_key(scanner *s)
{
    char key[WORD_MAX_BYTES + 1];
    uint64_t at = 0;
    const uint64_t bytes = text_of(s, key, sizeof key, &at);
    const value_type type = type_of_value(s);
    if (s->status == HR_OK && bytes > WORD_MAX_BYTES) {
        skip_value(s, type, 0); // none that this reader asks for
        return;
    }
    if (s->status == HR_OK && json_object_get(s->g->keys, key) != NULL) {
        refuse(s, "needed each key of the metadata once, had '%.64s' twice", key);
    }
    json_t *value = s->status == HR_OK ? value_json(s, type) : NULL;
    if (s->status != HR_OK) {
        json_decref(value);
    } else if (value == NULL || json_object_set_new(s->g->keys, key, value) != 0) {
        no_memory(s);
    }
}

// ---- tensors --------------------------------------------------------------------------------------------------

static void note_tensor(gguf *g, const char *name, const uint64_t *sides, uint32_t rank)
{
    if (strcmp(name, "token_embd.weight") == 0 && rank == 2) {
        g->vocabulary = sides[1];
    }
    g->has_output = g->has_output || strcmp(name, "output.weight") == 0;
    g->has_query_bias = g->has_query_bias || strcmp(name, "blk.0.attn_q.bias") == 0;
    g->has_output_bias = g->has_output_bias || strcmp(name, "blk.0.attn_output.bias") == 0;
    g->has_inner_bias = g->has_inner_bias || strcmp(name, "blk.0.ffn_up.bias") == 0;
}

static uint32_t read_sides(scanner *s, uint64_t sides[SIDES_MAX])
{
    const uint64_t rank = whole_of(s, 4);
    if (s->status == HR_OK && rank > SIDES_MAX) {
        refuse(s, "needed at most %d dimensions of a tensor, had %" PRIu64, SIDES_MAX, rank);
    }
    for (uint64_t k = 0; s->status == HR_OK && k < rank; k++) {
        sides[k] = whole_of(s, 8);
    }
    return s->status == HR_OK ? (uint32_t)rank : 0;
}

static const tensor_type *read_type(scanner *s, const char *name)
{
    const uint64_t type = whole_of(s, 4);
    if (s->status != HR_OK) {
        return NULL;
    }
    if (type >= sizeof types / sizeof *types || types[type].name == NULL) {
        refuse(s, "tensor '%.64s' needs a type of GGUF, which ends with number %zu, had %" PRIu64, name,
               sizeof types / sizeof *types - 1, type);
        return NULL;
    }
    return &types[type];
}

static void read_tensor(scanner *s, uint64_t alignment)
{
    char letters[NAME_MAX_BYTES + 1];
    uint64_t sides[SIDES_MAX] = {0}, elements = 0, bytes = 0;
    tensor_name name = {.text = letters};
    const uint64_t length = text_of(s, letters, sizeof letters, &name.at);
    if (s->status == HR_OK && (length == 0 || length > NAME_MAX_BYTES)) {
        refuse(s, "needed a tensor's name of 1 to %d bytes, had %" PRIu64, NAME_MAX_BYTES, length);
    }
    name.bytes = (uint32_t)length;
    const uint32_t rank = read_sides(s, sides);
    const tensor_type *type = read_type(s, letters);
    const uint64_t offset = whole_of(s, 8);
    if (s->status != HR_OK) {
        return;
    }
    if (offset % alignment != 0) {
        refuse(s, "tensor '%.64s' needs data at a multiple of %" PRIu64 ", had %" PRIu64, letters, alignment,
               offset);
    } else if (rank > 0 && sides[0] % type->block != 0) {
        refuse(
            s,
            "tensor '%.64s' needs rows of a multiple of %u elements, which a block of %s has, had %" PRIu64,
            letters, type->block, type->name, sides[0]);
    }
    keep_status(s, s->status == HR_OK ? tensors_elements(&s->g->list, &name, sides, rank, &elements) : HR_OK);
    keep_status(s,
                s->status == HR_OK ? tensors_add(&s->g->list, &name, type, elements, offset, &bytes) : HR_OK);
    note_tensor(s->g, letters, sides, rank);
}

// ---- the header -----------------------------------------------------------------------------------------------

static uint64_t alignment_of(scanner *s)
{
    const json_t *value = json_object_get(s->g->keys, "general.alignment");
    const json_int_t alignment = value == NULL ? ALIGNMENT : json_integer_value(value);
    if (s->status == HR_OK && (alignment < 8 || alignment > ALIGNMENT_MAX || alignment % 8 != 0)) {
        refuse(s, "general.alignment needs a multiple of 8 up to %d, had %" JSON_INTEGER_FORMAT,
               ALIGNMENT_MAX, alignment);
    }
    return s->status == HR_OK ? (uint64_t)alignment : ALIGNMENT;
}

static void read_begin(scanner *s)
{
    const char *magic = has(s, 4) ? input_take(&s->in, 4) : NULL;
    if (magic == NULL || memcmp(magic, "GGUF", 4) != 0) { // a file of fewer bytes has been refused as cut
        refuse(s, "needed GGUF, which such a file begins with: a pointer of git-lfs looks like this");
        return;
    }
    uint64_t version = whole_of(s, 4);
    if ((version & 0xffff) == 0) { // written the other way round
        s->swapped = true;
        version = __builtin_bswap32((uint32_t)version);
    }
    if (s->status == HR_OK && version != 2 && version != 3) {
        refuse(s, "needed version 2 or 3 of GGUF, had %" PRIu64, version);
    }
}

// Where the data begin, and what each begins at a multiple of.
static uint64_t read_header(scanner *s, uint64_t *alignment)
{
    read_begin(s);
    const uint64_t tensor_count = whole_of(s, 8), key_count = whole_of(s, 8);
    if (s->status == HR_OK && (tensor_count > TENSORS_MAX || key_count > KEYS_MAX)) {
        refuse(s, "needed at most %d tensors and %d keys, had %" PRIu64 " and %" PRIu64, TENSORS_MAX,
               KEYS_MAX, tensor_count, key_count);
    }
    for (uint64_t k = 0; s->status == HR_OK && k < key_count; k++) {
        read_key(s);
    }
    *alignment = alignment_of(s);
    for (uint64_t k = 0; s->status == HR_OK && k < tensor_count; k++) {
        read_tensor(s, *alignment);
    }
    const uint64_t at = input_offset(&s->in);
    return at + (*alignment - at % *alignment) % *alignment;
}

hr_status gguf_read(const char *path, gguf *g, hr_err *err)
{
    scanner s = {.g = g};
    g->list.path = path;
    g->list.err = err;
    HR_TRY(input_open(&s.in, path, err));
    s.status = tensors_open(&g->list, s.in.fd);
    g->keys = s.status == HR_OK ? json_object() : NULL;
    if (s.status == HR_OK && g->keys == NULL) {
        no_memory(&s);
    }
    uint64_t alignment = ALIGNMENT;
    const uint64_t data_at = s.status == HR_OK ? read_header(&s, &alignment) : 0;
    if (s.in.failed) {
        s.status = input_status(&s.in, err); // what was refused was read past the failure
    }
    if (s.status == HR_OK) {
        s.status = tensors_check(&g->list, s.in.fd, data_at, alignment);
    }
    input_close(&s.in);
    return s.status;
}

void gguf_close(gguf *g)
{
    json_decref(g->keys);
    g->keys = NULL;
    tensors_deinit(&g->list);
}
