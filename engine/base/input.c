// SPDX-License-Identifier: Apache-2.0
#include "base/input.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "base/host_mem.h"

enum { FIRST_BUFFER_BYTES = 256 << 10 };

hr_status input_open(input *in, const char *path, hr_err *err)
{
    *in = (input){.name = path, .fd = -1};
    HR_TRY(file_open(path, &in->fd, err));
    in->buffer = hr_realloc(NULL, FIRST_BUFFER_BYTES, 1);
    if (in->buffer == NULL) {
        file_close(in->fd);
        return HR_FAIL(err, NOMEM, "%s: needed %d bytes to read it", path, FIRST_BUFFER_BYTES);
    }
    in->window = in->buffer;
    in->capacity = FIRST_BUFFER_BYTES;
    return HR_OK;
}

void input_of_memory(input *in, const char *name, const void *bytes, size_t count)
{
    *in = (input){.name = name, .window = bytes, .end = count, .fd = -1, .ended = true};
}

void input_close(input *in)
{
    file_close(in->fd);
    hr_free(in->buffer);
    *in = (input){.fd = -1};
}

static bool stop(input *in)
{
    in->failed = in->ended = true;
    return false;
}

// Moves what is left to the front of a buffer that holds `bytes`.
static bool make_room(input *in, size_t bytes)
{
    memmove(in->buffer, in->buffer + in->at, in->end - in->at);
    in->passed += in->at;
    in->end -= in->at;
    in->at = 0;
    if (bytes <= in->capacity) {
        return true;
    }
    size_t capacity = in->capacity;
    while (capacity < bytes) {
        capacity *= 2;
    }
    char *grown = hr_realloc(in->buffer, capacity, 1);
    if (grown == NULL) {
        (void)HR_FAIL(&in->err, NOMEM, "%s: needed %zu bytes to read it", in->name, capacity);
        return stop(in);
    }
    in->buffer = grown;
    in->window = grown;
    in->capacity = capacity;
    return true;
}

static bool read_more(input *in)
{
    ptrdiff_t got = file_read_some(in->fd, in->buffer + in->end, in->capacity - in->end);
    if (got < 0) {
        (void)HR_FAIL(&in->err, READ, "%s: cannot be read at byte %llu: %s", in->name,
                      (unsigned long long)(in->passed + in->end), strerror(errno));
        return stop(in);
    }
    in->end += (size_t)got;
    in->ended = got == 0;
    return got > 0;
}

size_t input_ahead(input *in, size_t bytes)
{
    assert(bytes <= INPUT_PIECE_MAX);
    if (in->end - in->at < bytes && !in->ended && make_room(in, bytes)) {
        while (in->end - in->at < bytes && read_more(in)) {
        }
    }
    size_t ahead = in->end - in->at;
    return ahead < bytes ? ahead : bytes;
}

bool input_skip(input *in, uint64_t bytes)
{
    while (bytes > 0) {
        size_t ahead = input_ahead(in, bytes < FIRST_BUFFER_BYTES ? (size_t)bytes : FIRST_BUFFER_BYTES);
        if (ahead == 0) {
            return false;
        }
        in->at += ahead;
        bytes -= ahead;
    }
    return true;
}

const char *input_take(input *in, size_t bytes)
{
    if (input_ahead(in, bytes) < bytes) {
        return NULL;
    }
    const char *here = input_here(in);
    in->at += bytes;
    return here;
}

// The line's end among what is at hand; NULL when there is none within `max` bytes.
static const char *find_end(input *in, size_t max, size_t *ahead)
{
    size_t wanted = 512;
    for (;;) {
        wanted = wanted < max + 1 ? wanted : max + 1;
        *ahead = input_ahead(in, wanted);
        const char *end = *ahead == 0 ? NULL : memchr(input_here(in), '\n', *ahead);
        if (end != NULL || *ahead < wanted || wanted == max + 1) {
            return end;
        }
        wanted *= 4;
    }
}

static void skip_line(input *in)
{
    for (size_t ahead; (ahead = input_ahead(in, FIRST_BUFFER_BYTES)) > 0;) {
        const char *end = memchr(input_here(in), '\n', ahead);
        in->at += end == NULL ? ahead : (size_t)(end - input_here(in)) + 1;
        if (end != NULL) {
            return;
        }
    }
}

const char *input_line(input *in, size_t max, size_t *length)
{
    size_t ahead;
    assert(max < INPUT_PIECE_MAX);
    if (in->rest_of_line) {
        in->rest_of_line = false;
        skip_line(in);
    }
    const char *end = find_end(in, max, &ahead);
    const char *line = input_here(in);
    if (ahead == 0) {
        return NULL;
    }
    *length = end != NULL ? (size_t)(end - line) : ahead < max ? ahead : max;
    in->at += end != NULL ? *length + 1 : *length;
    in->rest_of_line = end == NULL && ahead > max; // passed over later: this line is good until the next call
    if (*length > 0 && line[*length - 1] == '\r') {
        --*length;
    }
    return line;
}

uint64_t input_offset(const input *in)
{
    return in->passed + in->at;
}

hr_status input_status(const input *in, hr_err *err)
{
    if (!in->failed) {
        return HR_OK;
    }
    if (err != NULL) {
        *err = in->err;
    }
    return in->err.status;
}
