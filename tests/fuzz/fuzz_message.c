// SPDX-License-Identifier: Apache-2.0
// What a process reads of another: the first byte is the kind, the rest the body. What is taken must be valid, say the
// same when it is written and read again, and take no memory that its bytes do not pay for; what is refused leaves
// nothing, and so it is with a request for memory failing, chosen by the bytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "fuzz/fuzz.h"
#include "session/messages.h"

static bool again_open(const wire_message *m, wire_out *out)
{
    static open_request request;
    bool valid = get_open(m, &request);
    if (valid) {
        put_open(out, &request);
    }
    return valid;
}

static bool again_command(const wire_message *m, wire_out *out)
{
    hr_command command;
    bool valid = get_command(m, &command);
    if (valid) {
        put_command(out, &command);
    }
    return valid;
}

static bool again_about(const wire_message *m, wire_out *out)
{
    char preset[HR_KNOB_TEXT_MAX];
    hr_knobs knobs;
    bool valid = get_about(m, preset, &knobs);
    if (valid) {
        put_about(out, preset, &knobs);
    }
    return valid;
}

static bool again_report(const wire_message *m, wire_out *out)
{
    hr_report report;
    bool valid = get_report(m, &report);
    if (valid) {
        put_report(out, &report);
        hr_report_deinit(&report);
    }
    return valid;
}

static bool again_error(const wire_message *m, wire_out *out)
{
    hr_err err;
    bool valid = get_error(m, &err);
    if (valid) {
        put_error(out, &err);
    }
    return valid;
}

static bool again_heap(const wire_message *m, wire_out *out)
{
    hr_session_heap heap;
    bool valid = get_heap(m, &heap);
    if (valid) {
        put_heap(out, &heap);
        hr_session_heap_deinit(&heap);
    }
    return valid;
}

static bool again_ended(const wire_message *m, wire_out *out)
{
    ended_note note;
    bool valid = get_ended(m, &note);
    if (valid) {
        put_ended(out, note.status, &note.err);
    }
    return valid;
}

static bool again_event(const wire_message *m, wire_out *out)
{
    hr_event event;
    bool valid = m->bytes == sizeof event;
    if (valid) {
        memcpy(&event, m->body, sizeof event);
        valid = event_is_valid(&event);
    }
    if (valid) {
        valid = strlen(hr_event_name((hr_event_kind)event.kind)) > 0;
        wire_put(out, &event, sizeof event);
    }
    return valid;
}

static bool (*const again[])(const wire_message *m, wire_out *out) = {
    again_open, again_command, again_about, again_report, again_error, again_heap, again_ended, again_event,
};

enum { KINDS = sizeof again / sizeof *again };

static void offend(const char *what, unsigned kind)
{
    (void)fprintf(stderr, "fuzz_message: kind %u: %s\n", kind, what);
    abort();
}

static bool take(unsigned kind, const void *body, size_t bytes, wire_out *out)
{
    const wire_message m = {.kind = kind, .bytes = (uint32_t)bytes, .body = body, .fd = -1};
    int64_t live = hr_host_mem_live();
    bool valid = again[kind](&m, out);
    if (!valid && out->data != NULL) {
        offend("wrote what it refused", kind);
    }
    if (hr_host_mem_live() - (out->data != NULL) != live) {
        offend("kept host memory", kind);
    }
    return valid;
}

// NaNs keep their bits, texts their bytes: what was taken is written as it came, but for knobs, which have one spelling.
static void check(unsigned kind, const void *body, size_t bytes)
{
    wire_out once = {0}, twice = {0};
    if (take(kind, body, bytes, &once)) {
        bool right = take(kind, once.data, once.bytes, &twice) && twice.bytes == once.bytes &&
                     memcmp(twice.data, once.data, once.bytes) == 0;
        if (!right) {
            offend("says something else when it is read again", kind);
        }
    }
    wire_out_deinit(&once);
    wire_out_deinit(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    void *body = NULL;
    if (size < 2 || posix_memalign(&body, 8, size) != 0) {
        return 0;
    }
    const unsigned kind = data[0] % KINDS;
    const size_t bytes = size - 1;
    memcpy(body, data + 1, bytes);
    fuzz_memory_begin();
    int64_t base = fuzz_memory_peak();
    check(kind, body, bytes);
    if (fuzz_memory_peak() - base > FUZZ_MEMORY_BASE_BYTES + (int64_t)size * FUZZ_MEMORY_FACTOR) {
        offend("took more memory than its bytes pay for", kind);
    }
    wire_out out = {0};
    (void)hr_host_mem_fail_at(1 + data[size / 2] % 4);
    (void)take(kind, body, bytes, &out);
    (void)hr_host_mem_fail_at(0);
    wire_out_deinit(&out);
    free(body);
    return 0;
}
