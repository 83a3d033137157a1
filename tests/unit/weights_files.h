// SPDX-License-Identifier: Apache-2.0
// For the tests of the readers of headers of weights: files in a folder of their own, those of tests/data and GGUF by hand.
#ifndef TESTS_UNIT_WEIGHTS_FILES_H
#define TESTS_UNIT_WEIGHTS_FILES_H

#include <check.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/preset.h"
#include "headroom/weights.h"

#include "base/host_mem.h"

enum { FILE_MAX = 1 << 16, PATH_BYTES = 160 };

static char folder[64], path[PATH_BYTES];
static unsigned char data[FILE_MAX];
static hr_weights weights;
static hr_err err;

static inline const char *path_of(const char *leaf)
{
    (void)snprintf(path, sizeof path, "%s/%s", folder, leaf);
    return path;
}

static inline void setup(void)
{
    (void)strcpy(folder, "/tmp/headroom-weights-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    memset(&err, 0, sizeof err);
}

static inline void teardown(void)
{
    static const char *const leaves[] = {"a.gguf",
                                         "a.safetensors",
                                         "model.safetensors",
                                         "model-00001-of-00002.safetensors",
                                         "model.safetensors.index.json",
                                         "config.json"};
    ck_assert_int_eq(hr_host_mem_live(), 0);
    for (size_t k = 0; k < sizeof leaves / sizeof *leaves; k++) {
        (void)unlink(path_of(leaves[k]));
    }
    ck_assert_int_eq(rmdir(folder), 0);
}

static inline const char *put(const char *leaf, const void *bytes, size_t count)
{
    FILE *f = fopen(path_of(leaf), "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, count, f), count);
    ck_assert_int_eq(fclose(f), 0);
    return path;
}

static inline size_t get(const char *name)
{
    char from[PATH_BYTES];
    (void)snprintf(from, sizeof from, "tests/data/weights/%s", name);
    FILE *f = fopen(from, "r");
    ck_assert_msg(f != NULL, "%s", from);
    const size_t bytes = fread(data, 1, sizeof data, f);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert(bytes > 0 && bytes < sizeof data);
    return bytes;
}

// ---- a file of our own -----------------------------------------------------------------------------------------

static size_t used;

static inline void add(const void *bytes, size_t count)
{
    ck_assert_uint_le(used + count, sizeof data);
    memcpy(data + used, bytes, count);
    used += count;
}

static inline void add_whole(uint64_t value, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++) {
        const unsigned char one = (unsigned char)(value >> 8 * k);
        add(&one, 1);
    }
}

static inline void add_text(const char *words)
{
    add_whole(strlen(words), 8);
    add(words, strlen(words));
}

static inline void begin(uint32_t version, uint64_t tensors, uint64_t keys)
{
    used = 0;
    add("GGUF", 4);
    add_whole(version, 4);
    add_whole(tensors, 8);
    add_whole(keys, 8);
}

static inline void add_tensor(const char *name, uint32_t rank, const uint64_t *sides, uint32_t type,
                              uint64_t offset)
{
    add_text(name);
    add_whole(rank, 4);
    for (uint32_t k = 0; k < rank; k++) {
        add_whole(sides[k], 8);
    }
    add_whole(type, 4);
    add_whole(offset, 8);
}

static inline hr_status end(uint64_t data_bytes)
{
    static const unsigned char zeros[8192];
    add(zeros, (32 - used % 32) % 32 + data_bytes);
    return hr_weights_read(put("a.gguf", data, used), &weights, &err);
}

#endif
