// SPDX-License-Identifier: Apache-2.0
// For the tests of the reader of ONNX files: a file in a folder of its own and what must hold of reading it, messages of
// protobuf by hand, and graphs in words.
#ifndef TESTS_UNIT_ONNX_WORDS_H
#define TESTS_UNIT_ONNX_WORDS_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/preset.h"

#include "base/host_mem.h"
#include "model/model.h"

enum { ROOM = 3 << 14 };

static char folder[64], path[128];
static hr_preset *preset;
static hr_err err;

static inline void setup(void)
{
    (void)strcpy(folder, "/tmp/headroom-onnx-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/a.onnx", folder);
    memset(&err, 0, sizeof err);
}

static inline void close_preset(void)
{
    hr_preset_close(preset);
    preset = NULL;
}

static inline void teardown(void)
{
    close_preset();
    ck_assert_int_eq(hr_host_mem_live(), 0);
    (void)unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static inline void put(const void *data, size_t bytes)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, bytes, f), bytes);
    ck_assert_int_eq(fclose(f), 0);
}

// Refused with a sentence, or a preset whose model is one; true: it was read.
static inline bool open_any(void)
{
    char *problems = NULL;
    hr_model *model = NULL;
    err.sentence[0] = '\0';
    const hr_status status = hr_preset_open(path, false, &preset, &problems, &err);
    ck_assert_msg(problems == NULL, "%s", problems); // what is written is a preset without a problem
    if (status == HR_OK) {
        ck_assert_msg(model_create(preset, hr_preset_knobs(preset), &model, NULL, &err) == HR_OK ||
                          strstr(err.sentence, "layer") != NULL,
                      "%s", err.sentence);
        model_destroy(model);
    }
    ck_assert_msg(status == HR_OK || status == HR_PRESET || status == HR_READ, "%d: %s", (int)status,
                  err.sentence);
    ck_assert(status == HR_OK || err.sentence[0] != '\0');
    close_preset();
    return status == HR_OK;
}

// ---- messages -------------------------------------------------------------------------------------------------

// Messages of protobuf, written from their end so that a length is known when it is written.
typedef struct message {
    unsigned char data[ROOM];
    size_t at; // of its first byte
} message;

static inline void number(message *m, uint64_t value)
{
    unsigned char bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value > 0);
    m->at -= count;
    memcpy(m->data + m->at, bytes, count);
}

static inline void varint(message *m, unsigned tag, uint64_t value)
{
    number(m, value);
    number(m, tag << 3);
}

static inline void bytes_of(message *m, unsigned tag, const void *from, size_t count)
{
    m->at -= count;
    memcpy(m->data + m->at, from, count);
    number(m, count);
    number(m, tag << 3 | 2);
}

static inline void words(message *m, unsigned tag, const char *text)
{
    bytes_of(m, tag, text, strlen(text));
}

// What was written since `end` becomes a field.
static inline void close_message(message *m, unsigned tag, size_t end)
{
    number(m, end - m->at);
    number(m, tag << 3 | 2);
}

// "Op in,in -> out"; one node.
static inline void node(message *m, const char *op, const char *one, const char *two, const char *out,
                        const char *domain)
{
    const size_t end = m->at;
    words(m, 7, domain);
    words(m, 4, op);
    words(m, 3, "the node");
    words(m, 2, out);
    if (two[0] != '\0') {
        words(m, 1, two);
    }
    words(m, 1, one);
    close_message(m, 1, end);
}

// A value of [batch, size], batch left open.
static inline void value(message *m, unsigned tag, const char *name, uint64_t size)
{
    const size_t end = m->at;
    size_t dim = m->at;
    if (size > 0) {
        varint(m, 1, size);
    } else {
        words(m, 2, "places");
    }
    close_message(m, 1, dim);
    dim = m->at;
    words(m, 2, "batch");
    close_message(m, 1, dim);
    close_message(m, 2, end); // shape
    varint(m, 1, 1);          // float
    close_message(m, 1, end);
    close_message(m, 2, end);
    words(m, 1, name);
    close_message(m, tag, end);
}

static inline void weight(message *m, const char *name, uint64_t rows, uint64_t columns)
{
    const size_t end = m->at;
    varint(m, 14, 1);
    words(m, 8, name);
    varint(m, 2, 1);
    varint(m, 1, columns);
    varint(m, 1, rows);
    close_message(m, 5, end);
}

static inline void begin(message *m)
{
    m->at = sizeof m->data;
}

static inline void end_graph(message *m, uint64_t opset)
{
    close_message(m, 7, sizeof m->data);
    const size_t end = m->at;
    varint(m, 2, opset);
    close_message(m, 8, end);
    put(m->data + m->at, sizeof m->data - m->at);
}

static inline void assert_refused(const char *sentence)
{
    ck_assert(!open_any());
    ck_assert_msg(strstr(err.sentence, sentence) != NULL, "%s", err.sentence);
}

// ---- graphs in words ------------------------------------------------------------------------------------------

enum { PARTS = 1024 };

static inline size_t split(char *text, const char *between, char *parts[PARTS])
{
    size_t count = 0;
    char *rest = NULL;
    for (char *part = strtok_r(text, between, &rest); part != NULL; part = strtok_r(NULL, between, &rest)) {
        ck_assert_uint_lt(count, PARTS);
        parts[count++] = part;
    }
    return count;
}

static inline uint64_t type_of(char letter)
{
    return letter == 'f'   ? 1
           : letter == 'c' ? 3 // int8
           : letter == 'i' ? 7
           : letter == 'h' ? 10
           : letter == 'd' ? 11
                           : 16; // bfloat16
}

// "16,4": a tensor of floats in another file.
static inline void tensor_field(message *m, unsigned tag, const char *name, char letter, char *dims)
{
    char *parts[PARTS];
    const size_t end = m->at;
    varint(m, 14, 1);
    words(m, 8, name);
    varint(m, 2, type_of(letter));
    for (size_t k = split(dims, ",", parts); k-- > 0;) {
        varint(m, 1, strtoull(parts[k], NULL, 10));
    }
    close_message(m, tag, end);
}

// "axis=1", "perm=0,2,1", "mode=nearest", "value=:16,4" (a tensor whose name is "value" as well).
static inline void attribute(message *m, char *text)
{
    char *parts[PARTS], *what = strchr(text, '=') + 1;
    const size_t end = m->at;
    what[-1] = '\0';
    if (what[0] == ':') {
        tensor_field(m, 5, text, 'f', what + 1);
    } else if (strspn(what, "-0123456789,") < strlen(what)) {
        words(m, 4, what);
    } else if (strchr(what, ',') == NULL) {
        varint(m, 3, (uint64_t)strtoll(what, NULL, 10));
    } else {
        for (size_t k = split(what, ",", parts); k-- > 0;) {
            varint(m, 8, (uint64_t)strtoll(parts[k], NULL, 10));
        }
    }
    words(m, 1, text);
    close_message(m, 5, end);
}

// "Op in - in > out key=value"; '-' is an operand that is left out.
static inline void node_in_words(message *m, char *text)
{
    char *parts[PARTS];
    const size_t end = m->at, count = split(text, " ", parts);
    bool outputs = true;
    for (size_t k = count; k-- > 1;) {
        if (strcmp(parts[k], ">") == 0) {
            outputs = false;
        } else if (strchr(parts[k], '=') != NULL) {
            attribute(m, parts[k]);
        } else {
            words(m, outputs ? 2 : 1, strcmp(parts[k], "-") == 0 ? "" : parts[k]);
        }
    }
    words(m, 4, parts[0]);
    close_message(m, 1, end);
}

// What "t # 2,1,4" has.
static float listed[4096];

// "t * 2,1,4 0.5": floats that are 0.5 all over; "t + 2,1,4": that count 0, 1, 2, …; "t # 2,1,4": the first of `listed`.
static inline void floats_in_words(message *m, char **weight_parts, char kind)
{
    static float all[4096];
    char *dims[PARTS];
    const size_t end = m->at, rank = split(weight_parts[2], ",", dims);
    size_t count = 1;
    for (size_t k = 0; k < rank; k++) {
        count *= strtoull(dims[k], NULL, 10);
    }
    ck_assert_uint_le(count, sizeof all / sizeof *all);
    for (size_t k = 0; k < count; k++) {
        all[k] = kind == '+' ? (float)k : kind == '#' ? listed[k] : strtof(weight_parts[3], NULL);
    }
    bytes_of(m, 9, all, count * sizeof *all);
    words(m, 8, weight_parts[0]);
    varint(m, 2, type_of('f'));
    for (size_t k = rank; k-- > 0;) {
        varint(m, 1, strtoull(dims[k], NULL, 10));
    }
    close_message(m, 5, end);
}

// "x f 8,16", behind the batch, which is left open ('?': as well); "x f 8,16 2": a batch of 2, "2*batch" a name of it.
static inline void value_in_words(message *m, unsigned tag, char *text)
{
    char *parts[PARTS], *dims[PARTS];
    const size_t end = m->at, count = split(text, " ", parts);
    for (size_t k = count < 3 ? 0 : split(parts[2], ",", dims); k-- > 0;) {
        const size_t dim = m->at;
        if (strcmp(dims[k], "?") == 0) {
            words(m, 2, "places");
        } else {
            varint(m, 1, strtoull(dims[k], NULL, 10));
        }
        close_message(m, 1, dim);
    }
    const size_t batch = m->at;
    if (count > 3 && strspn(parts[3], "0123456789") < strlen(parts[3])) {
        words(m, 2, parts[3]);
    } else if (count > 3) {
        varint(m, 1, strtoull(parts[3], NULL, 10));
    } else {
        words(m, 2, "batch");
    }
    close_message(m, 1, batch);
    close_message(m, 2, end);
    varint(m, 1, type_of(parts[1][0]));
    close_message(m, 1, end);
    close_message(m, 2, end);
    words(m, 1, parts[0]);
    close_message(m, tag, end);
}

// "w f 16,4" in another file; "s = 1 2" int64; "c ~ 0.5" a float; "m ^ 8 0.5" a square that has the number above its
// diagonal; "m @ 8 55 1" one that has it at that place; "v : f 4,8" what the file says of the value v.
static inline void weight_in_words(message *m, char *text)
{
    static float square[64 * 64];
    int64_t wholes[16];
    char *parts[PARTS] = {0};
    const size_t count = split(text, " ", parts), end = m->at;
    ck_assert_ptr_nonnull(parts[1]);
    const char kind = parts[1][0];
    if (kind == ':') {
        static char shape[ROOM];
        (void)snprintf(shape, sizeof shape, "%s %s %s%s%s", parts[0], parts[2], parts[3],
                       count > 4 ? " " : "", count > 4 ? parts[4] : "");
        value_in_words(m, 13, shape);
        return;
    }
    if (kind == '*' || kind == '+' || kind == '#') {
        floats_in_words(m, parts, kind);
        return;
    }
    if (strchr("=~^@", kind) == NULL) {
        tensor_field(m, 5, parts[0], kind, count > 2 ? parts[2] : parts[1] + 1);
        return;
    }
    const size_t place = kind == '@' ? strtoul(parts[3], NULL, 10) : 0;
    const size_t side = kind == '^' || kind == '@' ? strtoul(parts[2], NULL, 10) : 1;
    for (size_t k = 0; k < side * side; k++) {
        const bool has = kind == '~' || (kind == '@' ? k == place : k % side > k / side);
        square[k] = has ? strtof(parts[count - 1], NULL) : 0;
    }
    for (size_t k = 2; kind == '=' && k < count; k++) {
        wholes[k - 2] = strtoll(parts[k], NULL, 10);
    }
    bytes_of(m, 9, kind == '=' ? (const void *)wholes : square,
             kind == '=' ? (count - 2) * sizeof *wholes : side * side * sizeof *square);
    words(m, 8, parts[0]);
    varint(m, 2, type_of(kind == '=' ? 'i' : 'f'));
    for (int k = 0; k < 2 && (kind == '^' || kind == '@'); k++) {
        varint(m, 1, side);
    }
    if (kind == '=') {
        varint(m, 1, count - 2);
    }
    close_message(m, 5, end);
}

static inline void graph_in_words(const char *input, const char *output, const char *weights,
                                  const char *nodes)
{
    static message m;
    static char all[ROOM];
    char *parts[PARTS];
    begin(&m);
    (void)snprintf(all, sizeof all, "%s", output);
    value_in_words(&m, 12, all);
    (void)snprintf(all, sizeof all, "%s", input);
    value_in_words(&m, 11, all);
    (void)snprintf(all, sizeof all, "%s", weights);
    for (size_t k = split(all, ";", parts); k-- > 0;) {
        weight_in_words(&m, parts[k]);
    }
    (void)snprintf(all, sizeof all, "%s", nodes);
    for (size_t k = split(all, ";", parts); k-- > 0;) {
        node_in_words(&m, parts[k]);
    }
    end_graph(&m, 18);
}

#endif
