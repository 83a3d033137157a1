// SPDX-License-Identifier: Apache-2.0
// Logs of RMM's logging_resource_adaptor (rapidsai/rmm): Thread, Time, Action, Pointer, Size, Stream. Times are those of
// a clock on the wall, "HH:MM:SS:us" or "HH:MM:SS.us", or seconds; streams are addresses, numbered here in the order of
// their coming. A log that went to a terminal has no heading: it is known by its first row.
#include <string.h>

#include "formats/fields.h"
#include "formats/readers.h"

enum { THREAD, TIME, ACTION, POINTER, SIZE, STREAM, COLUMNS };

#define NS_PER_SECOND UINT64_C(1000000000)
#define NS_PER_DAY    (86400 * NS_PER_SECOND)

static const field_column columns[] = {
    [THREAD] = {{"Thread"}, false},  [TIME] = {{"Time"}, false}, [ACTION] = {{"Action"}, true},
    [POINTER] = {{"Pointer"}, true}, [SIZE] = {{"Size"}, true},  [STREAM] = {{"Stream"}, false},
};
_Static_assert((int)COLUMNS <= (int)FIELDS_COLUMNS_MAX, "columns fit");

static const struct {
    const char *name;
    uint8_t kind;
} actions[] = {
    {"allocate", TRACE_ALLOC},
    {"free", TRACE_FREE},
    {"deallocate", TRACE_FREE},
    {"allocate failure", TRACE_REFUSED},
};

typedef struct rmm_csv {
    fields f;
    uint32_t places[COLUMNS];
    trace *t;
    trace_builder builder;
    intern streams; // by their addresses in hex
    uint64_t last_stream_address;
    uint16_t last_stream;
    uint64_t last_time_ns, days_ns; // the clock on the wall begins anew at midnight
} rmm_csv;

static bool action_of(field t, uint8_t *kind)
{
    t = field_trim(t);
    for (size_t k = 0; k < sizeof actions / sizeof *actions; k++) {
        if (field_is(t, actions[k].name)) {
            *kind = actions[k].kind;
            return true;
        }
    }
    return false;
}

// Digits up to the next character that is none.
static bool take_digits(field *t, uint64_t *value, uint32_t *count)
{
    *value = 0;
    *count = 0;
    while (t->length > 0 && t->text[0] >= '0' && t->text[0] <= '9') {
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(t->text[0] - '0'), value)) {
            return false;
        }
        t->text++;
        t->length--;
        ++*count;
    }
    return *count > 0;
}

// "15:47:02.841961", "15:47:02:841961", "1634567890.123456", "12"
static bool time_of(field t, uint64_t *ns, bool *on_the_wall)
{
    uint64_t part, seconds = 0, fraction = 0;
    uint32_t digits, parts = 0, fraction_digits = 0;
    t = field_trim(t);
    bool is_fraction = false;
    for (;;) {
        if (!take_digits(&t, &part, &digits)) {
            return false;
        }
        if (is_fraction) {
            fraction = part;
            fraction_digits = digits;
        } else if (__builtin_mul_overflow(seconds, 60, &seconds) ||
                   __builtin_add_overflow(seconds, part, &seconds)) {
            return false;
        } else {
            parts++;
        }
        if (t.length == 0) {
            break;
        }
        const char separator = t.text[0];
        if (is_fraction || (separator != '.' && separator != ':' && separator != ',')) {
            return false;
        }
        is_fraction = separator != ':' || parts == 3;
        t.text++;
        t.length--;
    }
    if (fraction_digits > 9 || (parts != 1 && parts != 3)) {
        return false;
    }
    for (; fraction_digits < 9; fraction_digits++) {
        fraction *= 10;
    }
    *on_the_wall = parts == 3;
    return !__builtin_mul_overflow(seconds, NS_PER_SECOND, ns) && !__builtin_add_overflow(*ns, fraction, ns);
}

static hr_status read_time(rmm_csv *r, uint64_t *ns, hr_err *err)
{
    const field t = fields_at(&r->f, r->places[TIME]);
    bool on_the_wall;
    *ns = 0;
    if (r->places[TIME] == FIELDS_NONE) {
        return HR_OK;
    }
    if (!time_of(t, ns, &on_the_wall)) {
        return fields_refuse(&r->f, t, "a time as 15:47:02:841961, 15:47:02.841961 or in seconds", err);
    }
    if (on_the_wall && *ns + NS_PER_DAY / 2 < r->last_time_ns) {
        r->days_ns += NS_PER_DAY;
    }
    r->last_time_ns = *ns;
    *ns += r->days_ns;
    return HR_OK;
}

static hr_status number_stream(rmm_csv *r, field t, uint64_t address, hr_err *err)
{
    char key[17];
    size_t length = 0;
    for (uint64_t rest = address; rest > 0 || length == 0; rest >>= 4) {
        key[length++] = "0123456789abcdef"[rest & 15];
    }
    uint32_t number = intern_add(&r->streams, key, length);
    if (number == INTERN_NONE) {
        return HR_FAIL(err, NOMEM, "%s: needed host memory for its streams, had none", r->f.in->name);
    }
    if (number > UINT16_MAX) {
        return fields_refuse(&r->f, t, "at most 65536 streams", err);
    }
    r->last_stream_address = address;
    r->last_stream = (uint16_t)number;
    return HR_OK;
}

static hr_status read_stream(rmm_csv *r, uint16_t *stream, hr_err *err)
{
    const field t = field_trim(fields_at(&r->f, r->places[STREAM]));
    uint64_t address = 0;
    if (t.length > 0 && !field_to_address(t, &address)) {
        return fields_refuse(&r->f, t, "a stream: 0, or its address in hexadecimal", err);
    }
    if (address != r->last_stream_address) {
        HR_TRY(number_stream(r, t, address, err));
    }
    *stream = r->last_stream;
    return HR_OK;
}

static hr_status read_row(void *context, hr_err *err)
{
    rmm_csv *r = context;
    trace_event event = {.row = (uint32_t)(r->t->rows++), .name = HR_NO_ID};
    uint64_t address;
    const field action = fields_at(&r->f, r->places[ACTION]), pointer = fields_at(&r->f, r->places[POINTER]);
    const field size = fields_at(&r->f, r->places[SIZE]);
    if (!action_of(action, &event.kind)) {
        return fields_refuse(&r->f, action, "an action: allocate, free or allocate failure", err);
    }
    if (!field_to_address(pointer, &address)) {
        return fields_refuse(&r->f, pointer, "a pointer as 0x7f8a40000000 or (nil)", err);
    }
    if (!field_to_u64(size, &event.bytes)) {
        return fields_refuse(&r->f, size, "a size in bytes", err);
    }
    HR_TRY(read_time(r, &event.time_ns, err));
    HR_TRY(read_stream(r, &event.stream, err));
    return trace_add(&r->builder, event, address, err);
}

// A row of a log without a heading has the columns in their usual order.
static bool is_row(const fields *f)
{
    uint8_t kind;
    uint64_t number;
    return f->count == COLUMNS && action_of(f->at[ACTION], &kind) && field_to_u64(f->at[SIZE], &number) &&
           field_to_address(f->at[POINTER], &number);
}

static hr_status read_heading(void *context, hr_err *err)
{
    rmm_csv *r = context;
    if (!is_row(&r->f)) {
        return fields_heading(&r->f, columns, COLUMNS, r->places, err);
    }
    for (uint32_t k = 0; k < COLUMNS; k++) {
        r->places[k] = k;
    }
    return read_row(r, err);
}

static bool begins_with_row(const char *start, size_t bytes)
{
    const char *end = memchr(start, '\n', bytes);
    input in;
    input_of_memory(&in, "", start, end == NULL ? bytes : (size_t)(end - start));
    fields f = {.in = &in};
    bool more, found = fields_next(&f, &more, NULL) == HR_OK && more && is_row(&f);
    fields_deinit(&f);
    return found;
}

static bool recognise(const char *start, size_t bytes)
{
    return fields_begin_with(start, bytes, columns, COLUMNS) || begins_with_row(start, bytes);
}

static hr_status read_rmm_csv(input *in, trace *t, hr_err *err)
{
    rmm_csv r = {.f.in = in, .t = t};
    trace_builder_init(&r.builder, t);
    hr_status status = number_stream(&r, (field){0}, 0, err); // stream 0 is the default one
    if (status == HR_OK) {
        status = fields_each(&r.f, read_heading, read_row, &r, err);
    }
    trace_builder_deinit(&r.builder);
    intern_deinit(&r.streams);
    fields_deinit(&r.f);
    return status;
}

const trace_format trace_format_rmm = {
    .name = "rmm",
    .line = "a log of RMM (Thread,Time,Action,Pointer,Size,Stream)",
    .recognise = recognise,
    .read = read_rmm_csv,
};
