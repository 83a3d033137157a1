// SPDX-License-Identifier: Apache-2.0
// What every source is held to: errors in a sentence with nothing left behind, held_bytes that are what it took, each
// allocation failing once. Link with -Wl,--wrap=hr_calloc,--wrap=hr_realloc,--wrap=hr_free, which count.
#ifndef TESTS_SOURCE_CHECKS_H
#define TESTS_SOURCE_CHECKS_H

#include "base/host_mem.h"
#include "data/data_files.h"
#include "data/map.h"
#include "data/source.h"

// ---- what is allocated ------------------------------------------------------------------------------------------

enum { BLOCKS_MAX = 4096 };
static struct {
    void *at;
    size_t bytes;
} blocks[BLOCKS_MAX];
static size_t most_block_bytes; // of any so far

void *__real_hr_calloc(size_t count, size_t size);
void *__real_hr_realloc(void *old, size_t count, size_t size);
void __real_hr_free(void *memory);
void *__wrap_hr_calloc(size_t count, size_t size);
void *__wrap_hr_realloc(void *old, size_t count, size_t size);
void __wrap_hr_free(void *memory);

static void note_block(void *at, size_t bytes)
{
    size_t k = 0;
    while (at != NULL && blocks[k].at != NULL) {
        ck_assert_uint_lt(++k, BLOCKS_MAX);
    }
    if (at != NULL) {
        most_block_bytes = bytes > most_block_bytes ? bytes : most_block_bytes;
        blocks[k].at = at;
        blocks[k].bytes = bytes;
    }
}

static void forget_block(const void *at)
{
    for (size_t k = 0; at != NULL && k < BLOCKS_MAX; k++) {
        if (blocks[k].at == at) {
            blocks[k].at = NULL;
            return;
        }
    }
}

void *__wrap_hr_calloc(size_t count, size_t size)
{
    void *at = __real_hr_calloc(count, size);
    note_block(at, count * size);
    return at;
}

void *__wrap_hr_realloc(void *old, size_t count, size_t size)
{
    void *at = __real_hr_realloc(old, count, size);
    if (at != NULL) {
        forget_block(old);
        note_block(at, count * size);
    }
    return at;
}

void __wrap_hr_free(void *memory)
{
    forget_block(memory);
    __real_hr_free(memory);
}

// All but the block at `one`.
static inline uint64_t other_blocks_bytes(const void *one)
{
    uint64_t bytes = 0;
    for (size_t k = 0; k < BLOCKS_MAX; k++) {
        bytes += blocks[k].at != NULL && blocks[k].at != one ? blocks[k].bytes : 0;
    }
    return bytes;
}

// ---- opening ----------------------------------------------------------------------------------------------------

static inline data_source *source_at(const char *kind, const char *path, const data_form *form)
{
    hr_knobs knobs = data_knobs(kind, path);
    hr_err err = {0};
    data_source *s = NULL;
    ck_assert_uint_eq(other_blocks_bytes(NULL), 0);
    ck_assert_msg(data_source_open(&knobs, form, &s, &err) == HR_OK, "%s", err.sentence);
    ck_assert_uint_eq(other_blocks_bytes(s), s->held_bytes);
    return s;
}

static inline hr_err source_refused(const char *kind, const char *path, const data_form *form)
{
    hr_knobs knobs = data_knobs(kind, path);
    hr_err err = {0};
    data_source *s = NULL;
    const int64_t live = hr_host_mem_live();
    ck_assert_int_ne(data_source_open(&knobs, form, &s, &err), HR_OK);
    ck_assert_ptr_null(s);
    ck_assert_int_eq(hr_host_mem_live(), live);
    ck_assert_int_eq(err.status, HR_DATA);
    ck_assert_msg(err.hint[0] != '\0' || hr_status_try(err.status)[0] != '\0', "no try: line");
    return err;
}

// The sentence behind what it begins with.
static inline void assert_says(const hr_err *err, const char *begin, const char *rest)
{
    ck_assert_msg(strncmp(err->sentence, begin, strlen(begin)) == 0, "%s", err->sentence);
    ck_assert_str_eq(err->sentence + strlen(begin), rest);
}

static inline void assert_refused(const char *kind, const char *path, const data_form *form,
                                  const char *begin, const char *rest)
{
    const hr_err err = source_refused(kind, path, form);
    assert_says(&err, begin, rest);
}

// A new file under that name: writing over the old one would wait for the disk on some file systems.
static inline void data_replace(const data_folder *f, const char *leaf, const void *bytes, size_t count)
{
    char path[FILE_NAME_MAX];
    (void)unlink(data_folder_file(f, leaf, path));
    data_write(f, leaf, bytes, count);
}

// ---- reading ----------------------------------------------------------------------------------------------------

// One sample as a batch has it.
static inline hr_status read_sample(const data_source *s, data_set set, uint32_t index, data_room *room,
                                    hr_err *err)
{
    static const pinned_memory ordinary = {.take = NULL};
    const data_map map = {.source = s, .to = s->form};
    const data_ask ask = {.set = set, .sample = index};
    uint8_t *scratch = malloc(data_map_scratch_bytes(&map));
    ck_assert_int_eq(data_room_take(&s->form, 1, &ordinary, room, NULL), HR_OK);
    const hr_status status = data_map_write(&map, &ask, scratch, room, err);
    free(scratch);
    if (status != HR_OK) {
        data_room_give_back(room);
    }
    return status;
}

static inline data_room sample_of(const data_source *s, data_set set, uint32_t index)
{
    data_room room;
    hr_err err = {0};
    ck_assert_msg(read_sample(s, set, index, &room, &err) == HR_OK, "%s", err.sentence);
    return room;
}

static inline hr_err sample_refused(const data_source *s, data_set set, uint32_t index)
{
    data_room room;
    hr_err err = {0};
    ck_assert_int_eq(read_sample(s, set, index, &room, &err), HR_DATA);
    return err;
}

// ---- memory -----------------------------------------------------------------------------------------------------

static inline void assert_survives_short_memory(const char *kind, const char *path, const data_form *form)
{
    hr_knobs knobs = data_knobs(kind, path);
    const int64_t live = hr_host_mem_live();
    hr_status status = HR_NOMEM;
    for (uint64_t nth = 1; status != HR_OK; nth++) {
        data_source *s = NULL;
        hr_host_mem_fail_at(nth);
        status = data_source_open(&knobs, form, &s, NULL);
        const uint64_t seen = hr_host_mem_fail_at(0);
        ck_assert_int_eq(status, nth <= seen ? HR_NOMEM : HR_OK);
        data_source_close(s);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}

#endif
