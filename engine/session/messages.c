// SPDX-License-Identifier: Apache-2.0
#include "session/messages.h"

#include <math.h>
#include <string.h>

#include "base/host_mem.h"
#include "base/text.h"
#include "session/codec.h"

static wire_in body_of(const wire_message *m)
{
    return (wire_in){.data = m->body, .bytes = m->bytes};
}

// ---- knobs ----------------------------------------------------------------------------------------------------

static bool is_default(const hr_knobs *knobs, const hr_knobs *defaults, hr_knob_id id)
{
    char here[HR_KNOB_TEXT_MAX], there[HR_KNOB_TEXT_MAX];
    return knobs->value[id].set == defaults->value[id].set &&
           strcmp(hr_knob_format(knobs, id, here), hr_knob_format(defaults, id, there)) == 0;
}

void put_knobs(wire_out *out, const hr_knobs *knobs)
{
    hr_knobs defaults;
    uint32_t count = 0;
    hr_knobs_init(&defaults);
    for (uint32_t k = 0; k < HR_KNOB_COUNT; k++) {
        count += !is_default(knobs, &defaults, (hr_knob_id)k);
    }
    wire_put_u32(out, count);
    for (uint32_t k = 0; k < HR_KNOB_COUNT; k++) {
        char value[HR_KNOB_TEXT_MAX];
        if (!is_default(knobs, &defaults, (hr_knob_id)k)) {
            wire_put_text(out, hr_knob_rows(NULL)[k].key);
            wire_put_text(out, hr_knob_format(knobs, (hr_knob_id)k, value));
        }
    }
}

void get_knobs(wire_in *in, hr_knobs *knobs)
{
    uint32_t count = wire_get_u32(in);
    hr_knobs_init(knobs);
    in->bad = in->bad || count > HR_KNOB_COUNT;
    for (uint32_t k = 0; k < count && !in->bad; k++) {
        char key[64], value[HR_KNOB_TEXT_MAX];
        wire_get_text(in, key, sizeof key);
        wire_get_text(in, value, sizeof value);
        const hr_knob_row *row = in->bad ? NULL : hr_knob_find(key, NULL);
        in->bad = row == NULL || hr_knobs_set(knobs, row->id, value, NULL) != HR_OK;
    }
}

// ---- to the worker --------------------------------------------------------------------------------------------

static void walk_open(codec *c, open_request *r)
{
    codec_text(c, r->preset, sizeof r->preset);
    codec_text(c, r->resume_path, sizeof r->resume_path);
    codec_text(c, r->autosave_path, sizeof r->autosave_path);
    codec_bool(c, &r->trusts);
    codec_bool(c, &r->watchable);
}

void put_open(wire_out *out, const open_request *request)
{
    open_request copy = *request;
    walk_open(&(codec){.out = out}, &copy);
    put_knobs(out, &request->knobs);
}

bool get_open(const wire_message *m, open_request *request)
{
    wire_in in = body_of(m);
    walk_open(&(codec){.in = &in}, request);
    get_knobs(&in, &request->knobs);
    return wire_in_is_done(&in);
}

static void walk_command(codec *c, hr_command *command)
{
    uint32_t kind = command->kind;
    codec_row(c, &kind, HR_COMMAND_COUNT);
    codec_u32(c, &command->knob);
    codec_u64(c, &command->count);
    codec_text(c, command->text, sizeof command->text);
    command->kind = (uint16_t)kind;
    command->version = HR_EVENT_VERSION;
}

void put_command(wire_out *out, const hr_command *command)
{
    hr_command copy = *command;
    copy.text[sizeof copy.text - 1] = '\0';
    walk_command(&(codec){.out = out}, &copy);
}

bool get_command(const wire_message *m, hr_command *command)
{
    wire_in in = body_of(m);
    walk_command(&(codec){.in = &in}, command);
    return wire_in_is_done(&in);
}

// ---- from the worker ------------------------------------------------------------------------------------------

void put_about(wire_out *out, const char *preset, const hr_knobs *knobs)
{
    char name[HR_KNOB_TEXT_MAX];
    (void)text_copy(name, sizeof name, preset);
    wire_put_text(out, name);
    put_knobs(out, knobs);
}

bool get_about(const wire_message *m, char preset[HR_KNOB_TEXT_MAX], hr_knobs *knobs)
{
    wire_in in = body_of(m);
    wire_get_text(&in, preset, HR_KNOB_TEXT_MAX);
    get_knobs(&in, knobs);
    return wire_in_is_done(&in);
}

static void walk_error(codec *c, hr_err *err)
{
    uint32_t status = err->status;
    codec_row(c, &status, HR_STATUS_COUNT);
    codec_text(c, err->sentence, sizeof err->sentence);
    codec_text(c, err->hint, sizeof err->hint);
    err->status = (hr_status)status;
}

void put_error(wire_out *out, const hr_err *err)
{
    hr_err copy = *err;
    walk_error(&(codec){.out = out}, &copy);
}

bool get_error(const wire_message *m, hr_err *err)
{
    wire_in in = body_of(m);
    *err = (hr_err){.file = ""};
    walk_error(&(codec){.in = &in}, err);
    return wire_in_is_done(&in) && err->status != HR_OK;
}

static void walk_chunk(codec *c, hr_session_chunk *chunk)
{
    uint32_t category = chunk->category;
    codec_u64(c, &chunk->address);
    codec_u64(c, &chunk->size_bytes);
    codec_u64(c, &chunk->requested_bytes);
    codec_u64(c, &chunk->region_address);
    codec_u64(c, &chunk->region_bytes);
    codec_u32(c, &chunk->tensor);
    codec_row(c, &category, HR_CATEGORY_COUNT + 1);
    codec_bool(c, &chunk->in_use);
    codec_bool(c, &chunk->pending);
    chunk->category = (uint8_t)category;
}

enum { CHUNK_WIRE_BYTES = 5 * 8 + 4 * 4 };

static void walk_heap(codec *c, hr_session_heap *heap)
{
    void *chunks = heap->chunks;
    codec_u64(c, &heap->seq);
    codec_array(c, &heap->count, &chunks, sizeof *heap->chunks, CHUNK_WIRE_BYTES);
    heap->chunks = chunks;
    for (size_t k = 0; k < heap->count && !codec_is_bad(c); k++) {
        walk_chunk(c, &heap->chunks[k]);
    }
}

// By region, by address: regions rise and none reaches into the next.
static bool begins_validly(const hr_session_chunk *before, const hr_session_chunk *chunk)
{
    return before == NULL || (chunk->region_address > before->region_address &&
                              chunk->region_address - before->region_address >= before->region_bytes);
}

// Each within its region, by address there, and none over another, as a reader of snapshots expects.
static bool chunks_are_valid(const hr_session_heap *heap)
{
    uint64_t end = 0;
    for (size_t k = 0; k < heap->count; k++) {
        const hr_session_chunk *chunk = &heap->chunks[k];
        const bool first = k == 0 || chunk[-1].region_address != chunk->region_address;
        const uint64_t offset = chunk->address - chunk->region_address;
        if (chunk->address < chunk->region_address || offset > chunk->region_bytes ||
            chunk->size_bytes > chunk->region_bytes - offset || (!first && chunk->address < end) ||
            chunk->requested_bytes > chunk->size_bytes ||
            chunk->region_bytes > UINT64_MAX - chunk->region_address ||
            (first ? !begins_validly(k > 0 ? chunk - 1 : NULL, chunk)
                   : chunk->region_bytes != chunk[-1].region_bytes)) {
            return false;
        }
        end = chunk->address + chunk->size_bytes;
    }
    return true;
}

void put_heap(wire_out *out, const hr_session_heap *heap)
{
    hr_session_heap copy = *heap;
    walk_heap(&(codec){.out = out}, &copy);
}

bool get_heap(const wire_message *m, hr_session_heap *heap)
{
    wire_in in = body_of(m);
    *heap = (hr_session_heap){0};
    walk_heap(&(codec){.in = &in}, heap);
    if (!wire_in_is_done(&in) || !chunks_are_valid(heap)) {
        hr_session_heap_deinit(heap);
        return false;
    }
    return true;
}

void hr_session_heap_deinit(hr_session_heap *heap)
{
    if (heap != NULL) {
        hr_free(heap->chunks);
        *heap = (hr_session_heap){0};
    }
}

void put_ended(wire_out *out, hr_status status, const hr_err *err)
{
    hr_err copy = *err;
    copy.status = status;
    walk_error(&(codec){.out = out}, &copy);
}

bool get_ended(const wire_message *m, ended_note *note)
{
    wire_in in = body_of(m);
    *note = (ended_note){.err.file = ""};
    walk_error(&(codec){.in = &in}, &note->err);
    note->status = note->err.status;
    return wire_in_is_done(&in);
}

void put_said(wire_out *out, const said_log *said)
{
    wire_put_u64(out, said->total);
    wire_put(out, said->text, said->held);
}

// Lines that end, and no more of them than were ever said.
bool get_said(const wire_message *m, said_log *said)
{
    wire_in in = body_of(m);
    const uint64_t total = wire_get_u64(&in);
    const size_t held = in.bytes - in.at;
    const bool valid =
        !in.bad && held <= SAID_BYTES && held <= total && (held == 0 || in.data[in.bytes - 1] == '\n');
    if (valid) {
        said->total = total;
        said->held = held;
        wire_get(&in, said->text, held);
    }
    return valid;
}

bool get_count(const wire_message *m, uint64_t *count)
{
    wire_in in = body_of(m);
    *count = wire_get_u64(&in);
    return wire_in_is_done(&in);
}

// ---- records of the ring --------------------------------------------------------------------------------------

static bool is_share_or_unknown(double value)
{
    return isnan(value) || (value >= 0 && value <= 1);
}

static bool is_rank(const hr_event_rank *r)
{
    return r->points <= HR_RANK_POINTS && r->point < r->points && r->rank >= 1 && r->rank <= r->full &&
           isfinite(r->break_even) && r->break_even >= 0 && is_share_or_unknown(r->zeros) &&
           (isnan(r->error) || (isfinite(r->error) && r->error >= 0));
}

static bool is_text(const char *words, size_t size)
{
    return memchr(words, '\0', size) != NULL;
}

bool event_is_valid(const hr_event *e)
{
    if (e->version != HR_EVENT_VERSION || e->kind >= HR_EVENT_COUNT || e->category > HR_CATEGORY_COUNT ||
        e->phase > HR_PHASE_COUNT) {
        return false;
    }
    switch ((hr_event_kind)e->kind) {
    case HR_EVENT_BUILD:
    case HR_EVENT_EPOCH:
    case HR_EVENT_SAVED:
    case HR_EVENT_LOG:
        return is_text(e->u.note.text, sizeof e->u.note.text);
    case HR_EVENT_STATE:
        return e->u.note.count < HR_ENGINE_STATE_COUNT && is_text(e->u.note.text, sizeof e->u.note.text);
    case HR_EVENT_KNOB:
        return e->u.note.count < HR_KNOB_COUNT && is_text(e->u.note.text, sizeof e->u.note.text);
    case HR_EVENT_PIPELINE:
        return is_text(e->u.stage.name, sizeof e->u.stage.name);
    case HR_EVENT_TUNE:
        return e->u.tune.reason < HR_TUNE_REASON_COUNT;
    case HR_EVENT_HEALTH:
        return is_text(e->u.health.layer, sizeof e->u.health.layer);
    case HR_EVENT_RANK:
        return is_rank(&e->u.rank);
    case HR_EVENT_ANSWERS:
        return e->u.answers.answered <= e->u.answers.samples;
    case HR_EVENT_NONE:
    case HR_EVENT_ALLOC:
    case HR_EVENT_FREE:
    case HR_EVENT_GROW:
    case HR_EVENT_SHRINK:
    case HR_EVENT_OOM:
    case HR_EVENT_STEP:
    case HR_EVENT_EVAL:
    case HR_EVENT_SCALE:
    case HR_EVENT_LOSSES:
    case HR_EVENT_COUNT:
        break;
    }
    return true;
}
