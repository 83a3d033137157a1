// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/host_mem.h"
#include "formats/torch_record.h"

// What a container's word says: above TYPE_SHIFT which of these it is, below a number.
typedef enum part_type {
    NOTHING,
    RECORD,   // a dictionary whose fields are known; number of the record
    FRAME,    // a dictionary: a frame, lasting
    FRAMES,   // a list: its best frame, lasting
    ROWS,     // a list of entries: its run
    RUNS,     // a list of such lists: the first run
    EMPTIES,  // a list of empty lists: how many
    BLOCKS,   // a list: the first block
    SEGMENTS, // a list
    HISTORY,  // a list: the record of its first item
    PART_TYPES
} part_type;

enum { TYPE_SHIFT = 24, NUMBER_MAX = (1 << TYPE_SHIFT) - 1 };

_Static_assert(PART_TYPES << TYPE_SHIFT <= PICKLE_WORD_MAX, "words fit");

typedef struct gatherer {
    torch_parts *parts;
    VEC(torch_record) records;
    VEC(uint32_t) spare_records;
} gatherer;

static const uint8_t kind_of_key[TORCH_KEYS] = {
#define X(name, text, kind) [TORCH_KEY_##name] = PICKLE_##kind,
    TORCH_KEY_MAP(X)
#undef X
};

static uint32_t word_of(part_type type, uint32_t number)
{
    return (uint32_t)type << TYPE_SHIFT | number;
}

static part_type type_of(const pickle_value *v)
{
    return v->kind >= PICKLE_TUPLE ? (part_type)(v->word >> TYPE_SHIFT) : NOTHING;
}

static uint32_t number_of(const pickle_value *v)
{
    return v->word & NUMBER_MAX;
}

static hr_status no_memory(hr_err *err)
{
    return HR_FAIL(err, NOMEM, "snapshot: needed host memory for its parts, had none");
}

// ---- records --------------------------------------------------------------------------------------------------

// A record goes with the one that its history is.
static void release_record(gatherer *g, uint32_t number)
{
    for (;;) {
        const torch_record *r = &g->records.data[number];
        g->spare_records.data[g->spare_records.count++] = number; // reserved when the record was made
        if (!torch_has(r, TORCH_KEY_HISTORY)) {
            return;
        }
        number = (uint32_t)r->fields[TORCH_KEY_HISTORY];
    }
}

// A value that is not needed.
static void drop(gatherer *g, const pickle_value *v)
{
    part_type type = type_of(v);
    if (type == RECORD || type == HISTORY) {
        release_record(g, number_of(v));
    }
}

static hr_status new_record(gatherer *g, uint32_t *number, hr_err *err)
{
    if (g->spare_records.count > 0) {
        *number = g->spare_records.data[--g->spare_records.count];
    } else {
        if (!vec_reserve_((void **)&g->spare_records.data, &g->spare_records.capacity, g->records.count + 1,
                          sizeof *g->spare_records.data) ||
            vec_push(&g->records) == NULL) {
            return no_memory(err);
        }
        *number = g->records.count - 1;
    }
    g->records.data[*number].present = 0;
    return HR_OK;
}

// ---- dictionaries ---------------------------------------------------------------------------------------------

static bool kind_fits(torch_word key, const pickle_value *v)
{
    uint8_t wanted = kind_of_key[key];
    bool whole = v->kind == PICKLE_BOOL || v->kind == PICKLE_WHOLE;
    return v->kind == wanted || (whole && (wanted == PICKLE_BOOL || wanted == PICKLE_WHOLE));
}

// Whether a list is of what this key's list is of; an empty one is of anything.
static bool items_fit(torch_word key, part_type type)
{
    static const uint8_t types[TORCH_KEYS] = {
        [TORCH_KEY_FRAMES] = FRAMES,     [TORCH_KEY_HISTORY] = HISTORY,    [TORCH_KEY_BLOCKS] = BLOCKS,
        [TORCH_KEY_SEGMENTS] = SEGMENTS, [TORCH_KEY_DEVICE_TRACES] = RUNS,
    };
    return type == NOTHING || type == types[key] || (key == TORCH_KEY_DEVICE_TRACES && type == EMPTIES);
}

static uint64_t field_value(const pickle_value *v)
{
    if (v->kind == PICKLE_TEXT) {
        return v->word;
    }
    if (v->kind != PICKLE_LIST) {
        return (uint64_t)v->u.whole;
    }
    return type_of(v) == NOTHING || type_of(v) == EMPTIES ? TORCH_NONE : number_of(v);
}

static hr_status put_field(gatherer *g, const pickle *p, uint32_t number, const pickle_value *key,
                           const pickle_value *v, hr_err *err)
{
    if (key->kind != PICKLE_TEXT || key->word >= TORCH_KEYS || v->kind == PICKLE_NONE) {
        drop(g, key);
        drop(g, v);
        return HR_OK;
    }
    torch_word field = (torch_word)key->word;
    if (!kind_fits(field, v)) {
        return pickle_fail(p, err, "needed %s for '%s', had %s", pickle_kind_name(kind_of_key[field]),
                           torch_words[field], pickle_kind_name(v->kind));
    }
    if (v->kind == PICKLE_LIST && !items_fit(field, type_of(v))) {
        return pickle_fail(p, err, "'%s' is a list of something else", torch_words[field]);
    }
    torch_record *r = &g->records.data[number];
    if (field == TORCH_KEY_HISTORY) {
        if (torch_has(r, field)) {
            release_record(g, (uint32_t)r->fields[field]);
            r->present &= ~(1u << field);
        }
        if (type_of(v) == NOTHING) {
            return HR_OK;
        }
    }
    r->present |= 1u << field;
    r->fields[field] = field_value(v);
    return HR_OK;
}

// A dictionary with the three keys of a frame becomes one at once: it may be referred to a million times.
static hr_status make_frame(gatherer *g, pickle_value *into, hr_err *err)
{
    enum { KEYS = 1u << TORCH_KEY_NAME | 1u << TORCH_KEY_FILENAME | 1u << TORCH_KEY_LINE };
    const torch_record *r = &g->records.data[number_of(into)];
    if ((r->present & KEYS) != KEYS || torch_has(r, TORCH_KEY_ACTION)) {
        return HR_OK;
    }
    uint32_t frame;
    if (!torch_frame_add(g->parts, (uint32_t)r->fields[TORCH_KEY_NAME],
                         (uint32_t)r->fields[TORCH_KEY_FILENAME], (int64_t)r->fields[TORCH_KEY_LINE],
                         &frame)) {
        return no_memory(err);
    }
    release_record(g, number_of(into));
    into->word = frame == TORCH_NONE ? 0 : word_of(FRAME, frame);
    into->lasting = true;
    return HR_OK;
}

static hr_status fill_dict(gatherer *g, const pickle *p, pickle_value *into, const pickle_value *items,
                           uint32_t count, hr_err *err)
{
    if (type_of(into) == NOTHING) {
        uint32_t number = 0;
        HR_TRY(new_record(g, &number, err));
        into->word = word_of(RECORD, number);
        into->lasting = false;
    }
    for (uint32_t k = 0; k < count; k += 2) {
        if (type_of(into) == RECORD) {
            HR_TRY(put_field(g, p, number_of(into), &items[k], &items[k + 1], err));
        } else {
            drop(g, &items[k]);
            drop(g, &items[k + 1]);
        }
    }
    return type_of(into) == RECORD ? make_frame(g, into, err) : HR_OK;
}

// ---- what lists are of ----------------------------------------------------------------------------------------

// The list is of such things from now on, if it was not already of others.
static hr_status expect(const pickle *p, const pickle_value *into, part_type type, hr_err *err)
{
    if (type_of(into) == NOTHING || type_of(into) == type) {
        return HR_OK;
    }
    return pickle_fail(p, err, "needed a list of one kind of thing, had several");
}

static hr_status add_row(gatherer *g, const pickle *p, pickle_value *into, const torch_record *r, hr_err *err)
{
    torch_parts *parts = g->parts;
    HR_TRY(expect(p, into, ROWS, err));
    torch_row row;
    HR_TRY(torch_read_row(parts, p, r, &row, err));
    if (type_of(into) == NOTHING) {
        if (parts->runs.count == TORCH_RUNS_MAX) {
            return pickle_fail(p, err, "needed at most %d traces, has more", TORCH_RUNS_MAX);
        }
        torch_run *run = vec_push(&parts->runs);
        if (run == NULL) {
            return no_memory(err);
        }
        run->first = parts->rows.count;
        run->next = TORCH_NONE;
        into->word = word_of(ROWS, parts->runs.count - 1);
    }
    torch_run *run = &parts->runs.data[number_of(into)];
    if (run->first + run->count != parts->rows.count) {
        return pickle_fail(p, err,
                           "needed the entries of a device one after the other, had others between them");
    }
    torch_row *added = vec_push(&parts->rows);
    if (added == NULL) {
        return no_memory(err);
    }
    *added = row;
    run->count++;
    return HR_OK;
}

static hr_status add_block(gatherer *g, const pickle *p, pickle_value *into, const torch_record *r,
                           hr_err *err)
{
    HR_TRY(expect(p, into, BLOCKS, err));
    static const torch_record nothing = {0};
    bool has_past = torch_has(r, TORCH_KEY_HISTORY);
    const torch_record *past = has_past ? &g->records.data[r->fields[TORCH_KEY_HISTORY]] : &nothing;
    torch_block block;
    HR_TRY(torch_read_block(p, r, past, &block, err));
    uint32_t number = g->parts->blocks.count;
    if (number == TORCH_BLOCKS_MAX) {
        return pickle_fail(p, err, "needed at most %d blocks, has more", TORCH_BLOCKS_MAX);
    }
    torch_block *added = vec_push(&g->parts->blocks);
    if (added == NULL) {
        return no_memory(err);
    }
    *added = block;
    if (type_of(into) == NOTHING) {
        into->word = word_of(BLOCKS, number);
    } else {
        torch_block *first = &g->parts->blocks.data[number_of(into)];
        g->parts->blocks.data[first->last].next = number;
    }
    g->parts->blocks.data[number_of(into)].last = number;
    return HR_OK;
}

static hr_status add_segment(gatherer *g, const pickle *p, pickle_value *into, const torch_record *r,
                             hr_err *err)
{
    HR_TRY(expect(p, into, SEGMENTS, err));
    torch_segment segment;
    HR_TRY(torch_read_segment(g->parts, p, r, &segment, err));
    torch_segment *added = vec_push(&g->parts->segments);
    if (added == NULL) {
        return no_memory(err);
    }
    *added = segment;
    into->word = word_of(SEGMENTS, 0);
    return HR_OK;
}

// ---- lists ----------------------------------------------------------------------------------------------------

static hr_status take_record(gatherer *g, const pickle *p, pickle_value *into, const pickle_value *item,
                             hr_err *err)
{
    const torch_record *r = &g->records.data[number_of(item)];
    hr_status status = HR_OK;
    if (torch_has(r, TORCH_KEY_ACTION)) {
        status = add_row(g, p, into, r, err);
    } else if (torch_has(r, TORCH_KEY_TOTAL_SIZE)) {
        status = add_segment(g, p, into, r, err);
    } else if (torch_has(r, TORCH_KEY_STATE)) {
        status = add_block(g, p, into, r, err);
    } else if (torch_has(r, TORCH_KEY_REAL_SIZE) && type_of(into) == NOTHING) {
        into->word = word_of(HISTORY, number_of(item));
        return HR_OK;
    }
    release_record(g, number_of(item));
    return status;
}

// A stack of frames is known by the first of those that say most.
static hr_status take_frame(gatherer *g, const pickle *p, pickle_value *into, const pickle_value *item,
                            hr_err *err)
{
    HR_TRY(expect(p, into, FRAMES, err));
    const torch_frame *frames = g->parts->frames.data;
    if (type_of(into) == NOTHING || frames[number_of(item)].rank < frames[number_of(into)].rank) {
        into->word = word_of(FRAMES, number_of(item));
        into->lasting = true;
    }
    return HR_OK;
}

// The next device's trace.
static hr_status take_rows(gatherer *g, const pickle *p, pickle_value *into, const pickle_value *item,
                           hr_err *err)
{
    uint32_t empties = type_of(into) == EMPTIES ? number_of(into) : 0;
    if (type_of(into) != EMPTIES) {
        HR_TRY(expect(p, into, RUNS, err));
    }
    torch_run *runs = g->parts->runs.data, *added = &runs[number_of(item)];
    if (type_of(into) != RUNS) {
        into->word = word_of(RUNS, number_of(item));
        added->items = empties;
    } else {
        runs[runs[number_of(into)].last].next = number_of(item);
    }
    torch_run *first = &runs[number_of(into)];
    first->last = number_of(item);
    added->device = first->items++;
    if (added->device >= TRACE_DEVICES_MAX) {
        return pickle_fail(p, err, "needed at most %d devices, has more", TRACE_DEVICES_MAX);
    }
    return HR_OK;
}

// A device that has no trace.
static hr_status take_empty(gatherer *g, const pickle *p, pickle_value *into, hr_err *err)
{
    uint32_t empties = type_of(into) == EMPTIES ? number_of(into) + 1 : 1;
    if (type_of(into) == RUNS) {
        g->parts->runs.data[number_of(into)].items++;
    } else if (type_of(into) == NOTHING || type_of(into) == EMPTIES) {
        into->word = word_of(EMPTIES, empties < TRACE_DEVICES_MAX ? empties : TRACE_DEVICES_MAX);
    } else {
        return expect(p, into, EMPTIES, err);
    }
    return HR_OK;
}

// An entry, a block, a segment or a device's trace that stands there a second time: what it said is gone.
static bool is_repeated(const pickle_value *into, const pickle_value *item)
{
    const part_type list = type_of(into);
    const bool of_records = list == ROWS || list == BLOCKS || list == SEGMENTS;
    return item->again && type_of(item) == NOTHING &&
           ((item->kind == PICKLE_DICT && of_records) || (item->kind == PICKLE_LIST && list == RUNS));
}

static hr_status take_item(gatherer *g, const pickle *p, pickle_value *into, const pickle_value *item,
                           hr_err *err)
{
    part_type type = type_of(item);
    if (is_repeated(into, item)) {
        return pickle_fail(p, err, "needed %s of its own, had one that stands there before",
                           pickle_kind_name(item->kind));
    }
    if (type == RECORD) {
        return take_record(g, p, into, item, err);
    }
    if (type == FRAME) {
        return take_frame(g, p, into, item, err);
    }
    if (type == ROWS) {
        return take_rows(g, p, into, item, err);
    }
    if (item->kind == PICKLE_LIST && type == NOTHING) {
        return take_empty(g, p, into, err);
    }
    drop(g, item);
    return HR_OK;
}

static hr_status fill(void *context, const pickle *p, pickle_value *into, const pickle_value *items,
                      uint32_t count, hr_err *err)
{
    gatherer *g = context;
    if (into->kind == PICKLE_DICT) {
        return fill_dict(g, p, into, items, count, err);
    }
    for (uint32_t k = 0; k < count; k++) {
        if (into->kind == PICKLE_LIST) {
            HR_TRY(take_item(g, p, into, &items[k], err));
        } else {
            drop(g, &items[k]);
        }
    }
    return HR_OK;
}

// ---- the whole ------------------------------------------------------------------------------------------------

static hr_status take_top(gatherer *g, const pickle_value *top, const char *name, hr_err *err)
{
    torch_parts *parts = g->parts;
    if (top->kind == PICKLE_LIST && type_of(top) == SEGMENTS) { // torch.cuda.memory_snapshot()
        parts->has_segments = true;
        return HR_OK;
    }
    const torch_record *r = type_of(top) == RECORD ? &g->records.data[number_of(top)] : NULL;
    if (r == NULL || !(torch_has(r, TORCH_KEY_SEGMENTS) || torch_has(r, TORCH_KEY_DEVICE_TRACES))) {
        return HR_FAIL(err, READ,
                       "%s: needed a memory snapshot with 'segments' or 'device_traces', had neither", name);
    }
    parts->has_segments = torch_has(r, TORCH_KEY_SEGMENTS);
    parts->first_run = (uint32_t)torch_field(r, TORCH_KEY_DEVICE_TRACES, TORCH_NONE);
    return HR_OK;
}

static bool add_words(torch_parts *parts)
{
    for (uint32_t k = 0; k < TORCH_WORDS; k++) {
        if (intern_add(&parts->texts, torch_words[k], strlen(torch_words[k])) != k) {
            return false;
        }
    }
    return true;
}

hr_status torch_parts_read(torch_parts *parts, input *in, trace *t, hr_err *err)
{
    uint16_t zero;
    *parts = (torch_parts){.t = t, .file = in->name, .first_run = TORCH_NONE};
    if (!add_words(parts)) {
        return no_memory(err);
    }
    HR_TRY(torch_stream_number(parts, 0, &zero, err));
    gatherer g = {.parts = parts};
    pickle_visitor visitor = {.fill = fill, .context = &g, .texts = &parts->texts};
    pickle_value top = {0};
    hr_status status = pickle_read(in, &visitor, &top, err);
    if (status == HR_OK) {
        status = take_top(&g, &top, in->name, err);
    }
    vec_deinit(&g.records);
    vec_deinit(&g.spare_records);
    return status;
}

void torch_parts_deinit(torch_parts *parts)
{
    vec_deinit(&parts->rows);
    vec_deinit(&parts->runs);
    vec_deinit(&parts->frames);
    vec_deinit(&parts->blocks);
    vec_deinit(&parts->segments);
    intern_deinit(&parts->texts);
    intern_deinit(&parts->streams);
    intern_deinit(&parts->frame_keys);
}
