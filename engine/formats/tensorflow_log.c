// SPDX-License-Identifier: Apache-2.0
// The dump line by line. A table of signs says which line means what; lines with none are not the allocator's.
#include "formats/tensorflow_log.h"

#include <inttypes.h>
#include <string.h>

#include "headroom/units.h"

#include "formats/tensorflow_log_dump.h"
#include "formats/tensorflow_log_join.h"
#include "formats/tensorflow_log_lines.h"

enum { LOG_LINE_MAX = 64 << 10, STATS_LINES = 12, SIGN_STARTS = 3 };

typedef struct tensorflow_log {
    input *in;
    text plain; // the line without its colours
    log_dump now, best;
    log_request request;   // the last one, until a dump takes it
    uint64_t device_bytes; // as TensorFlow says when it opens a device; 0: it does not
    bool devices_differ;   // and of which the dump is, it does not say
    uint32_t dumps;
    uint32_t stats_lines;                 // that may still come
    uint32_t may_begin[SIGN_STARTS][256]; // signs, a bit each, that have this character first, second, third
    bool passing;                         // over dumps behind the first whole one
    uint64_t lines;
    size_t length; // of the present line
    log_joiner joiner;
} tensorflow_log;

typedef hr_status (*line_reader)(tensorflow_log *r, log_span line, log_span behind, hr_err *err);

static hr_status no_memory(const tensorflow_log *r, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "%s:%" PRIu64 ": needed host memory for chunk %" PRIu32 ", had none",
                   r->in->name, r->lines, r->now.snapshot.chunks.count);
}

static hr_status at_line(const tensorflow_log *r, bool done, hr_err *err)
{
    return done ? HR_OK : no_memory(r, err);
}

static void copy_span(char *to, size_t size, log_span from)
{
    size_t length = from.length < size ? from.length : size - 1;
    if (length > 0) {
        memcpy(to, from.text, length);
    }
    to[length] = '\0';
}

// ---- dumps ----------------------------------------------------------------------------------------------------

// Keeps the present dump when it is better than the best so far.
static void end_dump(tensorflow_log *r)
{
    const bool better = r->now.whole
                            ? !r->best.whole
                            : !r->best.whole && r->now.snapshot.chunks.count > r->best.snapshot.chunks.count;
    if (better || (!r->best.begun && r->now.begun)) {
        log_dump_deinit(&r->best);
        r->best = r->now;
        r->now = (log_dump){0};
    }
    log_dump_deinit(&r->now);
    r->stats_lines = 0;
}

// A heading behind a heading, with nothing in between, is the same dump's: some logs have every line twice.
static void begin_dump(tensorflow_log *r)
{
    if (r->now.begun && r->now.snapshot.chunks.count == 0 && r->now.regions.count == 0) {
        return;
    }
    end_dump(r);
    r->dumps++;
    r->passing = r->best.whole;
    if (r->passing) {
        return;
    }
    r->now.begun = true;
    r->now.request = r->request;
    r->request = (log_request){0};
    text_copy(r->now.snapshot.source, sizeof r->now.snapshot.source, r->now.request.allocator);
}

static void need_dump(tensorflow_log *r)
{
    if (!r->now.begun && !r->passing) {
        begin_dump(r);
    }
}

static hr_status on_dump(tensorflow_log *r, log_span line, log_span behind, hr_err *err)
{
    (void)line;
    (void)err;
    begin_dump(r);
    copy_span(r->now.snapshot.source, sizeof r->now.snapshot.source, log_before(log_trim(behind), " "));
    return HR_OK;
}

// The line of a bin is long, and always whole, unless a terminal broke it: the longest of the 21 is as long as that is
// wide. A request that was broken before that was known may have lost digits: its bin will say what it was.
static void set_width(tensorflow_log *r, log_span bin)
{
    if (log_behind(bin, "in use in bin").text != NULL || r->length <= r->joiner.width) {
        return;
    }
    r->joiner.width = r->length;
    const size_t length = r->now.request.line_length;
    if (length == r->joiner.width || length + 1 == r->joiner.width) {
        r->now.request = (log_request){0};
    }
}

// Before 2019 a dump had no heading but the smallest bin.
static hr_status on_bin(tensorflow_log *r, log_span line, log_span behind, hr_err *err)
{
    (void)line;
    (void)err;
    const bool is_smallest = behind.length >= 6 && memcmp(behind.text, "256): ", 6) == 0;
    if (is_smallest && (r->now.snapshot.chunks.count > 0 || (!r->now.begun && !r->passing))) {
        begin_dump(r);
    }
    set_width(r, behind);
    return HR_OK;
}

// ---- the request ----------------------------------------------------------------------------------------------

static void set_printed(log_request *request, uint64_t bytes, bool exact)
{
    request->any = true;
    request->exact = exact;
    request->printed_bytes = request->requested_bytes = bytes;
}

// Behind "trying to allocate": "2.00GiB (rounded to 2147483648)requested by op Mul".
static bool read_request(log_span at, log_request *request)
{
    uint64_t bytes;
    bool exact;
    *request = (log_request){0};
    if (!log_take_bytes(&at, &bytes, &exact) || log_behind(at, "this is not a failure").text != NULL) {
        return false;
    }
    set_printed(request, bytes, exact);
    log_span rounded = log_behind(at, "(rounded to ");
    if (rounded.text != NULL && log_take_u64(&rounded, &request->rounded_bytes) && !exact) {
        request->requested_bytes = request->rounded_bytes;
    }
    copy_span(request->op, sizeof request->op, log_trim(log_behind(at, "requested by op ")));
    return true;
}

static hr_status on_request(tensorflow_log *r, log_span line, log_span behind, hr_err *err)
{
    (void)line;
    (void)err;
    log_request request;
    const log_span at = log_behind(behind, ") ran out of memory trying to allocate ");
    if (at.text != NULL && read_request(at, &request)) {
        r->request = request;
        r->request.line_length = r->length;
        copy_span(r->request.allocator, sizeof r->request.allocator, log_before(behind, ")"));
    }
    return HR_OK;
}

// Before 2017 the request stood behind the dump, without the allocator's name.
static hr_status on_late_request(tensorflow_log *r, log_span line, log_span behind, hr_err *err)
{
    (void)line;
    (void)err;
    log_request request;
    if (r->now.begun && (!r->now.request.any || r->now.request.guessed) && read_request(behind, &request)) {
        r->now.request = request;
    }
    return HR_OK;
}

// "Bin for 2.00GiB was 256.00MiB, Chunk State:" says the rounded request where nothing else does.
static hr_status on_bin_for(tensorflow_log *r, log_span line, log_span behind, hr_err *err)
{
    (void)line;
    (void)err;
    uint64_t bytes;
    bool exact;
    if (r->now.begun && !r->now.request.any && log_behind(behind, " was ").text != NULL &&
        log_take_bytes(&behind, &bytes, &exact)) {
        set_printed(&r->now.request, bytes, false);
        r->now.request.guessed = true;
    }
    return HR_OK;
}

// The operation's own complaint, behind the dump, says shape and type: so what was asked for is known to the byte.
static hr_status on_tensor(tensorflow_log *r, log_span line, log_span behind, hr_err *err)
{
    (void)behind;
    (void)err;
    log_request *request = &r->now.request;
    uint64_t bytes;
    if (!request->any || request->exact || !log_tensor_bytes(line, &bytes)) {
        return HR_OK;
    }
    const uint64_t rounded = request->rounded_bytes;
    const bool fits = rounded > 0 ? bytes <= rounded && rounded - bytes < LOG_ROUNDING_BYTES
                                  : log_prints_as(bytes, request->printed_bytes);
    if (fits) {
        request->requested_bytes = bytes;
        request->exact = true;
    }
    return HR_OK;
}

// ---- regions and chunks ---------------------------------------------------------------------------------------

static hr_status on_region(tensorflow_log *r, log_span line, log_span behind, hr_err *err)
{
    (void)line;
    uint64_t bytes;
    need_dump(r);
    return r->passing || !log_take_u64(&behind, &bytes) ? HR_OK
                                                        : at_line(r, log_dump_region(&r->now, bytes), err);
}

static hr_status on_chunk(tensorflow_log *r, log_span line, log_span behind, hr_err *err)
{
    (void)behind;
    log_chunk said;
    if (!log_chunk_of(line, &said)) {
        return HR_OK;
    }
    need_dump(r);
    return r->passing ? HR_OK : at_line(r, log_dump_chunk(&r->now, &said), err);
}

static hr_status on_sum(tensorflow_log *r, log_span line, log_span behind, hr_err *err)
{
    (void)line;
    (void)behind;
    (void)err;
    r->now.whole = r->now.snapshot.chunks.count > 0;
    return HR_OK;
}

// ---- counters -------------------------------------------------------------------------------------------------

// Exact bytes replace what was said for people, and not the other way round.
static void set_bytes(log_span at, uint64_t *counter)
{
    uint64_t bytes;
    bool exact;
    if (at.text != NULL && log_take_bytes(&at, &bytes, &exact) && (exact || *counter == 0)) {
        *counter = bytes;
    }
}

static hr_status on_limit(tensorflow_log *r, log_span line, log_span behind, hr_err *err)
{
    (void)err;
    heap_snapshot *p = &r->now.snapshot;
    set_bytes(behind, &p->counters.limit_bytes);
    set_bytes(log_behind(line, "curr_region_allocation_bytes_: "), &p->next_region_bytes);
    return HR_OK;
}

static hr_status on_growth(tensorflow_log *r, log_span line, log_span behind, hr_err *err)
{
    (void)line;
    (void)err;
    set_bytes(behind, &r->now.snapshot.next_region_bytes);
    return HR_OK;
}

// "deviceMemorySize: 3.87GiB", before 2.1 "totalMemory: 3.87GiB freeMemory: 67.00MiB".
static hr_status on_device(tensorflow_log *r, log_span line, log_span behind, hr_err *err)
{
    (void)line;
    (void)err;
    uint64_t bytes;
    bool exact;
    if (log_take_bytes(&behind, &bytes, &exact)) {
        r->devices_differ = r->devices_differ || (r->device_bytes > 0 && bytes != r->device_bytes);
        r->device_bytes = bytes;
    }
    return HR_OK;
}

static hr_status on_stats(tensorflow_log *r, log_span line, log_span behind, hr_err *err)
{
    (void)line;
    (void)behind;
    (void)err;
    r->stats_lines = r->now.begun ? STATS_LINES : 0;
    return HR_OK;
}

// The lines below "Stats:".
static void read_stats(tensorflow_log *r, log_span line)
{
    heap_counters *c = &r->now.snapshot.counters;
    const struct {
        const char *sign;
        uint64_t *counter;
    } stats[] = {
        {"Limit:", &c->limit_bytes},
        {"MaxInUse:", &c->peak_in_use_bytes},
        {"NumAllocs:", &c->allocations},
        {"MaxAllocSize:", &c->largest_allocation_bytes},
    };
    for (size_t k = 0; k < sizeof stats / sizeof *stats; k++) {
        set_bytes(log_behind(line, stats[k].sign), stats[k].counter);
    }
}

// ---- lines ----------------------------------------------------------------------------------------------------

#define SIGN(text, reader)                                                                                   \
    {                                                                                                        \
        text, sizeof(text) - 1, reader                                                                       \
    }
static const struct {
    const char *sign;
    size_t length;
    line_reader read;
} signs[] = {
    SIGN("InUse", on_chunk),
    SIGN("Free", on_chunk),
    SIGN("Chunk", on_chunk),
    SIGN("Allocator (", on_request),
    SIGN("Ran out of memory trying to allocate ", on_late_request),
    SIGN("BFCAllocator dump for ", on_dump),
    SIGN("Bin (", on_bin),
    SIGN("Bin for ", on_bin_for),
    SIGN("Next region of size ", on_region),
    SIGN("Sum Total of in-use chunks", on_sum),
    SIGN("_limit_: ", on_limit),
    SIGN("Allocator region growth hint: next region allocation target ", on_growth),
    SIGN("Stats:", on_stats),
    SIGN("OOM when allocating tensor", on_tensor),
    SIGN("deviceMemorySize: ", on_device),
    SIGN("totalMemory: ", on_device),
};
enum { SIGNS = sizeof signs / sizeof *signs };
_Static_assert(SIGNS <= 32, "a bit each");

static void index_signs(tensorflow_log *r)
{
    for (uint32_t k = 0; k < SIGNS; k++) {
        for (size_t place = 0; place < SIGN_STARTS; place++) {
            r->may_begin[place][(unsigned char)signs[k].sign[place]] |= UINT32_C(1) << k;
        }
    }
}

// What the line says from here on; `may_be`: the signs whose first characters stand here.
static hr_status read_here(tensorflow_log *r, log_span here, uint32_t may_be, hr_err *err)
{
    for (size_t k = 0; k < SIGNS; k++) {
        const size_t length = signs[k].length;
        if ((may_be >> k & 1) != 0 && here.length >= length &&
            memcmp(here.text, signs[k].sign, length) == 0) {
            HR_TRY(signs[k].read(r, here, (log_span){here.text + length, here.length - length}, err));
        }
    }
    return HR_OK;
}

static hr_status read_line(tensorflow_log *r, log_span line, hr_err *err)
{
    if (r->stats_lines > 0) {
        r->stats_lines--;
        read_stats(r, line);
    }
    const unsigned char *here = (const unsigned char *)line.text;
    for (size_t at = 0; at + SIGN_STARTS <= line.length; at++) {
        const uint32_t may_be =
            r->may_begin[0][here[at]] & r->may_begin[1][here[at + 1]] & r->may_begin[2][here[at + 2]];
        if (may_be != 0) {
            HR_TRY(read_here(r, (log_span){line.text + at, line.length - at}, may_be, err));
        }
    }
    return HR_OK;
}

static hr_status read_joined(tensorflow_log *r, hr_err *err)
{
    const log_span line = log_joined(&r->joiner);
    return line.length == 0 ? HR_OK : read_line(r, line, err);
}

static hr_status read_next(tensorflow_log *r, log_span line, hr_err *err)
{
    r->lines++;
    if (!log_without_colours(&line, &r->plain)) {
        return no_memory(r, err);
    }
    if (log_begins_anew(&r->joiner, line)) {
        HR_TRY(read_joined(r, err));
    }
    r->length = line.length;
    const bool whole = log_join(&r->joiner, &line);
    if (r->joiner.joined.failed) {
        return no_memory(r, err);
    }
    return whole ? read_line(r, line, err) : HR_OK;
}

static hr_status read_lines(tensorflow_log *r, hr_err *err)
{
    log_span line;
    while ((line.text = input_line(r->in, LOG_LINE_MAX, &line.length)) != NULL) {
        HR_TRY(read_next(r, line, err));
    }
    HR_TRY(input_status(r->in, err));
    HR_TRY(read_joined(r, err));
    end_dump(r);
    return HR_OK;
}

static hr_status refuse(const tensorflow_log *r, hr_err *err)
{
    if (r->dumps == 0 && !r->request.any) {
        return trace_refuse(r->in, err);
    }
    hr_status status =
        HR_FAIL(err, READ,
                "%s: needed TensorFlow's dump of the heap (lines as 'InUse at 7f12c0000000 of size 256 "
                "next 1'), had %s without one in %" PRIu64 " lines",
                r->in->name, r->dumps > 0 ? "its heading" : "the complaint", r->lines);
    hr_err_try(err,
               "TF_CPP_MIN_LOG_LEVEL=0 in the environment of the run, and all of what it writes to stderr");
    return status;
}

static hr_status read_tensorflow_log(input *in, trace *t, hr_err *err)
{
    tensorflow_log r = {.in = in};
    hr_status status = HR_OK;
    index_signs(&r);
    if (input_ahead(in, 2) == 2 && memcmp(input_here(in), "\xFF\xFE", 2) == 0) {
        status = HR_FAIL(err, READ, "%s: needed a log in UTF-8, is in UTF-16", in->name);
        hr_err_try(err, "iconv -f UTF-16 -t UTF-8 '%s' > log.txt", in->name);
    }
    if (status == HR_OK) {
        status = read_lines(&r, err);
    }
    t->dumps = r.dumps;
    r.best.snapshot.refusal.device_bytes = r.devices_differ ? 0 : r.device_bytes;
    if (status == HR_OK) {
        status =
            r.best.snapshot.chunks.count == 0 ? refuse(&r, err) : log_dump_finish(&r.best, in->name, t, err);
    }
    log_dump_deinit(&r.now);
    log_dump_deinit(&r.best);
    text_deinit(&r.plain);
    log_joiner_deinit(&r.joiner);
    return status;
}

// A text: no NUL, and hardly a control character that a terminal would not expect.
static bool recognise(const char *start, size_t bytes)
{
    size_t strange = 0;
    for (size_t k = 0; k < bytes; k++) {
        strange += (unsigned char)start[k] < ' ' && strchr("\t\n\r\b\f\x1b", start[k]) == NULL;
        if (start[k] == '\0') {
            return bytes > 2 && memcmp(start, "\xFF\xFE", 2) == 0;
        }
    }
    return bytes > 0 && strange * 100 <= bytes;
}

const trace_format trace_format_tensorflow = {
    .name = "tensorflow_log",
    .line = "a log with TensorFlow's out-of-memory dump",
    .is_any_text = true,
    .recognise = recognise,
    .read = read_tensorflow_log,
};
