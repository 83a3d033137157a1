// SPDX-License-Identifier: Apache-2.0
// A data source over any bytes, as a file without a name. What must hold: it opens with a sentence or within memory,
// its samples are read or refused with a sentence, and nothing is leaked; the same with a request for host memory
// failing, chosen by the bytes.
#ifndef TESTS_FUZZ_SOURCE_H
#define TESTS_FUZZ_SOURCE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/host_mem.h"
#include "data/source.h"
#include "fuzz/fuzz.h"

// What a byte of a file may take: packed it becomes at most 1032, plain it is a quarter of where a row begins.
enum { FUZZ_SAMPLES = 64, FUZZ_PACKED_FACTOR = 2 * 1032, FUZZ_PLAIN_FACTOR = 8 };

static inline void fuzz_must(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "fuzz: %s\n", what);
        abort();
    }
}

// Some samples of both sets, into slots of exact size.
static inline void fuzz_samples(const data_source *s)
{
    uint8_t *room = calloc(s->room_bytes + 1, 1), *scratch = calloc(s->scratch_bytes + 1, 1);
    uint8_t *values = calloc(data_form_packed_bytes(&s->form), 1);
    const data_room to = data_room_packed(&s->form, values);
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        const uint64_t samples = data_source_samples(s, set);
        fuzz_must(samples > 0 && samples <= UINT32_MAX, "a set without samples");
        for (uint64_t k = 0; k < FUZZ_SAMPLES && k < samples; k++) {
            const uint32_t index = (uint32_t)(k % 2 == 0 ? k / 2 : samples - 1 - k / 2);
            hr_err err = {0};
            data_raw raw;
            if (data_source_fetch(s, set, index, room, &raw, &err) != HR_OK) {
                fuzz_must(err.sentence[0] != '\0', "a sample refused without a sentence");
                continue;
            }
            fuzz_must(raw.size_bytes <= s->raw_bytes, "a sample larger than the largest");
            if (s->ops->write != NULL) {
                fuzz_must(s->ops->write(s, &raw, scratch, &to, NULL) == HR_OK,
                          "a sample that cannot be written");
            } else {
                uint8_t *image = calloc(data_source_values(s), 1);
                (void)s->ops->decode(s, &raw, scratch, image, NULL);
                free(image);
            }
        }
    }
    free(room);
    free(scratch);
    free(values);
}

static inline void fuzz_open(source_open *open, const char *path, const data_form *form, int64_t most_bytes)
{
    const int64_t live = hr_host_mem_live();
    data_source *s = NULL;
    hr_err err = {0};
    fuzz_memory_begin();
    const int64_t before = fuzz_memory_peak();
    const hr_status status = open(path, form, &s, &err);
    fuzz_must(fuzz_memory_peak() - before <= FUZZ_MEMORY_BASE_BYTES + most_bytes,
              "more memory than the bytes are worth");
    if (status == HR_OK) {
        s->form = *form;
        fuzz_samples(s);
    } else {
        fuzz_must(s == NULL && err.sentence[0] != '\0', "refused without a sentence");
    }
    data_source_close(s);
    fuzz_must(hr_host_mem_live() == live, "memory that nobody gave back");
}

static inline void fuzz_file(source_open *open, const data_form *form, const uint8_t *data, size_t size,
                             int64_t factor)
{
    char path[64];
    const int64_t most_bytes = factor * (int64_t)size;
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    fuzz_must(fd >= 0 && write(fd, data, size) == (ssize_t)size, "no file in memory");
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    fuzz_open(open, path, form, most_bytes);
    hr_host_mem_fail_at(1 + (size > 0 ? data[size / 2] % 8 : 0));
    fuzz_open(open, path, form, most_bytes);
    hr_host_mem_fail_at(0);
    close(fd);
}

static inline void fuzz_source(source_open *open, const data_form *form, const uint8_t *data, size_t size)
{
    fuzz_file(open, form, data, size, FUZZ_PACKED_FACTOR);
}

// The same of a kind that unpacks nothing.
static inline void fuzz_plain_source(source_open *open, const data_form *form, const uint8_t *data,
                                     size_t size)
{
    fuzz_file(open, form, data, size, FUZZ_PLAIN_FACTOR);
}

#endif
