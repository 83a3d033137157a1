// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/host_mem.h"
#include "formats/formats.h"
#include "fuzz/fuzz.h"

// One run in so many goes on with a failing request for host memory.
enum { RUNS_PER_FAULT = 4, FAULTS_AMONG = 64 };

static void must(bool holds, const char *what, const hr_err *err)
{
    if (!holds) {
        fprintf(stderr, "fuzz: %s: %s\n", what, err->status == HR_OK ? "no error" : err->sentence);
        abort();
    }
}

static const trace_format *format_named(const char *name)
{
    for (const trace_format *const *f = trace_formats; *f != NULL; f++) {
        if (strcmp((*f)->name, name) == 0) {
            return *f;
        }
    }
    fprintf(stderr, "fuzz: there is no format '%s'\n", name);
    abort();
}

static hr_status read_as(const trace_format *f, input *in, trace *t, hr_err *err)
{
    if (f == NULL) {
        return trace_read_input(in, t, err);
    }
    size_t ahead = input_ahead(in, TRACE_SIGN_BYTES);
    (void)f->recognise(input_here(in), ahead);
    t->format = f->name;
    hr_status status = f->read(in, t, err);
    if (status != HR_OK) {
        trace_deinit(t); // as trace_read_input does
    }
    return status;
}

static void read_once(const trace_format *f, const uint8_t *data, size_t size, bool memory_fails)
{
    input in;
    trace t = {0};
    hr_err err = {0};
    int64_t live = hr_host_mem_live();
    input_of_memory(&in, "fuzz", data, size);
    fuzz_memory_begin();
    int64_t begin_bytes = fuzz_memory_peak();
    hr_status status = read_as(f, &in, &t, &err);
    int64_t taken_bytes = fuzz_memory_peak() - begin_bytes;
    must(taken_bytes <= FUZZ_MEMORY_BASE_BYTES + FUZZ_MEMORY_FACTOR * (int64_t)size, "too much memory", &err);
    if (status == HR_OK) {
        must(trace_check(&t, &err) == HR_OK || memory_fails, "a trace that does not pass its check", &err);
    } else {
        must(status == HR_READ || (status == HR_NOMEM && memory_fails), "an unfit status", &err);
        must(err.status == status && err.sentence[0] != '\0', "an error without a sentence", &err);
        must(t.events.data == NULL && t.device_count == 0, "a failure left something in the trace", &err);
    }
    trace_deinit(&t);
    input_close(&in);
    must(hr_host_mem_live() == live, "leaked host memory", &err);
}

void fuzz_read_trace(const char *format, const uint8_t *data, size_t size)
{
    const trace_format *f = format == NULL ? NULL : format_named(format);
    read_once(f, data, size, false);
    uint64_t draw = hash64(data, size, 0);
    if (draw % RUNS_PER_FAULT == 0) {
        (void)hr_host_mem_fail_at(1 + draw / RUNS_PER_FAULT % FAULTS_AMONG);
        read_once(f, data, size, true);
        (void)hr_host_mem_fail_at(0);
    }
}
