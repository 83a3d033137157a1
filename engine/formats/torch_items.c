// SPDX-License-Identifier: Apache-2.0
// From a dictionary of a snapshot to what it describes.
#include <inttypes.h>

#include "formats/torch_record.h"

const char *const torch_words[TORCH_WORDS] = {
#define X(name, text, ...) [TORCH_KEY_##name] = (text),
    TORCH_KEY_MAP(X)
#undef X
#define X(name, text, ...) [TORCH_ACTION_##name] = (text),
        TORCH_ACTION_MAP(X)
#undef X
#define X(name, text, ...) [TORCH_STATE_##name] = (text),
            TORCH_STATE_MAP(X)
#undef X
                [TORCH_TYPE_SMALL] = "small",
};

static hr_status bytes_of(const pickle *p, const torch_record *r, torch_word key, uint64_t *out, hr_err *err)
{
    *out = torch_field(r, key, 0);
    if (*out > TORCH_BYTES_MAX) {
        return pickle_fail(p, err, "needed at most 2^50 bytes for '%s', had %" PRId64, torch_words[key],
                           (int64_t)*out);
    }
    return HR_OK;
}

static uint8_t kind_of_action(uint64_t word)
{
    static const uint8_t kinds[TORCH_WORDS] = {
#define X(name, text, kind) [TORCH_ACTION_##name] = 1 + (kind),
        TORCH_ACTION_MAP(X)
#undef X
    };
    return word < TORCH_WORDS && kinds[word] != 0 ? (uint8_t)(kinds[word] - 1) : TRACE_KINDS;
}

// What the user called it, or the frame that asked for it.
static hr_status name_of(torch_parts *parts, const torch_record *r, uint32_t *name, hr_err *err)
{
    const char *said =
        intern_text(&parts->texts, (uint32_t)torch_field(r, TORCH_KEY_USER_METADATA, TORCH_NONE));
    uint32_t frame = (uint32_t)torch_field(r, TORCH_KEY_FRAMES, TORCH_NONE);
    *name = HR_NO_ID;
    if (said != NULL && said[0] != '\0') {
        *name = torch_text_name(parts, said);
    } else if (frame != TORCH_NONE) {
        *name = torch_frame_name(parts, frame);
    } else {
        return HR_OK;
    }
    if (*name == INTERN_NONE) {
        return HR_FAIL(err, NOMEM, "snapshot: needed host memory for a name, had none");
    }
    return HR_OK;
}

hr_status torch_read_row(torch_parts *parts, const pickle *p, const torch_record *r, torch_row *row,
                         hr_err *err)
{
    *row = (torch_row){.name = HR_NO_ID, .kind = kind_of_action(r->fields[TORCH_KEY_ACTION])};
    if (!torch_has(r, TORCH_KEY_SIZE) || (!torch_has(r, TORCH_KEY_ADDR) && row->kind != TRACE_REFUSED)) {
        row->kind = TRACE_KINDS;
    }
    row->address = row->kind == TRACE_REFUSED ? torch_field(r, TORCH_KEY_DEVICE_FREE, TORCH_FREE_UNTOLD)
                                              : torch_field(r, TORCH_KEY_ADDR, 0);
    row->time_us = torch_field(r, TORCH_KEY_TIME_US, 0);
    if (row->time_us > TORCH_TIME_MAX) {
        return pickle_fail(p, err, "needed microseconds below 2^53 for 'time_us', had %" PRId64,
                           (int64_t)row->time_us);
    }
    HR_TRY(bytes_of(p, r, TORCH_KEY_SIZE, &row->bytes, err));
    HR_TRY(torch_stream_number(parts, (int64_t)torch_field(r, TORCH_KEY_STREAM, 0), &row->stream, err));
    return row->kind == TRACE_ALLOC || row->kind == TRACE_REFUSED ? name_of(parts, r, &row->name, err)
                                                                  : HR_OK;
}

static uint8_t state_of(uint64_t word)
{
    static const uint8_t states[TORCH_WORDS] = {
#define X(name, text, state) [TORCH_STATE_##name] = (state),
        TORCH_STATE_MAP(X)
#undef X
    };
    return word < TORCH_WORDS ? states[word] : TORCH_FREE;
}

hr_status torch_read_block(const pickle *p, const torch_record *r, const torch_record *past, torch_block *b,
                           hr_err *err)
{
    *b = (torch_block){.address = torch_field(r, TORCH_KEY_ADDRESS, 0),
                       .frame = TORCH_NONE,
                       .next = TORCH_NONE,
                       .state = state_of(r->fields[TORCH_KEY_STATE])};
    HR_TRY(bytes_of(p, r, TORCH_KEY_SIZE, &b->bytes, err));
    if (b->state == TORCH_FREE) {
        return HR_OK;
    }
    const torch_record *asked = torch_has(r, TORCH_KEY_REQUESTED_SIZE) ? r : past;
    torch_word asked_key = asked == r ? TORCH_KEY_REQUESTED_SIZE : TORCH_KEY_REAL_SIZE;
    HR_TRY(bytes_of(p, asked, asked_key, &b->requested_bytes, err));
    if (b->requested_bytes == 0 || b->requested_bytes > b->bytes) {
        b->requested_bytes = b->bytes;
    }
    b->frame = (uint32_t)torch_field(torch_has(r, TORCH_KEY_FRAMES) ? r : past, TORCH_KEY_FRAMES, TORCH_NONE);
    return HR_OK;
}

hr_status torch_read_segment(torch_parts *parts, const pickle *p, const torch_record *r, torch_segment *s,
                             hr_err *err)
{
    *s = (torch_segment){.address = torch_field(r, TORCH_KEY_ADDRESS, 0),
                         .first_block = (uint32_t)torch_field(r, TORCH_KEY_BLOCKS, TORCH_NONE)};
    uint64_t device = torch_field(r, TORCH_KEY_DEVICE, 0);
    if (device >= TRACE_DEVICES_MAX) {
        return pickle_fail(p, err, "needed a device below %d, had %" PRId64, TRACE_DEVICES_MAX,
                           (int64_t)device);
    }
    s->device = (uint8_t)device;
    HR_TRY(bytes_of(p, r, TORCH_KEY_TOTAL_SIZE, &s->bytes, err));
    HR_TRY(torch_stream_number(parts, (int64_t)torch_field(r, TORCH_KEY_STREAM, 0), &s->stream, err));
    bool small = torch_field(r, TORCH_KEY_SEGMENT_TYPE, 0) == TORCH_TYPE_SMALL;
    s->kind = torch_field(r, TORCH_KEY_IS_EXPANDABLE, 0) != 0 ? HEAP_REGION_EXPANDABLE
              : small                                         ? HEAP_REGION_SMALL
                                                              : HEAP_REGION_LARGE;
    return HR_OK;
}
