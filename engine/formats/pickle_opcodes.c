// SPDX-License-Identifier: Apache-2.0
// What each opcode does. The numbers and arguments are those of CPython's Lib/pickletools.py.
#include <inttypes.h>
#include <string.h>

#include "formats/pickle_machine.h"

static hr_status push_kind(pickle *p, pickle_kind kind, hr_err *err)
{
    return pickle_push(p, (pickle_value){.kind = (uint8_t)kind}, err);
}

static hr_status push_whole(pickle *p, int64_t whole, hr_err *err)
{
    return pickle_push(p, (pickle_value){.kind = PICKLE_WHOLE, .u.whole = whole}, err);
}

// ---- numbers and texts -------------------------------------------------------------------------------

static uint64_t little_endian(const uint8_t *bytes, size_t count)
{
    uint64_t value = 0;
    for (size_t k = 0; k < count; k++) {
        value |= (uint64_t)bytes[k] << 8 * k;
    }
    return value;
}

// In one piece, so that it is one load.
static uint32_t little_endian4(const uint8_t *b)
{
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static hr_status do_none(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    return push_kind(p, PICKLE_NONE, err);
}

static hr_status do_true(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    return pickle_push(p, (pickle_value){.kind = PICKLE_BOOL, .u.whole = 1}, err);
}

static hr_status do_false(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    return push_kind(p, PICKLE_BOOL, err);
}

static hr_status do_int1(pickle *p, const uint8_t *argument, hr_err *err)
{
    return push_whole(p, argument[0], err);
}

static hr_status do_int2(pickle *p, const uint8_t *argument, hr_err *err)
{
    return push_whole(p, (int64_t)little_endian(argument, 2), err);
}

static hr_status do_int4(pickle *p, const uint8_t *argument, hr_err *err)
{
    return push_whole(p, (int32_t)(uint32_t)little_endian(argument, 4), err);
}

static hr_status do_long1(pickle *p, const uint8_t *argument, hr_err *err)
{
    size_t count = argument[0];
    if (count > 8) {
        return pickle_fail(p, err, "needed a whole number of at most 8 bytes, had %zu", count);
    }
    const uint8_t *bytes = (const uint8_t *)input_take(p->in, count);
    if (bytes == NULL) {
        return pickle_cut_short(p, err);
    }
    uint64_t value = little_endian(bytes, count);
    if (count > 0 && count < 8 && bytes[count - 1] >= 0x80) {
        value |= UINT64_MAX << 8 * count; // its sign
    }
    return push_whole(p, (int64_t)value, err);
}

static hr_status do_real(pickle *p, const uint8_t *argument, hr_err *err)
{
    uint64_t bits = 0;
    for (size_t k = 0; k < 8; k++) {
        bits = bits << 8 | argument[k];
    }
    pickle_value value = {.kind = PICKLE_REAL};
    memcpy(&value.u.real, &bits, sizeof bits);
    return pickle_push(p, value, err);
}

static hr_status push_text(pickle *p, uint64_t count, hr_err *err)
{
    size_t kept = count < PICKLE_TEXT_MAX ? (size_t)count : PICKLE_TEXT_MAX;
    const char *bytes = input_take(p->in, kept);
    if (bytes == NULL) {
        return pickle_cut_short(p, err);
    }
    intern *texts = p->visitor->texts;
    bool full = intern_count(texts) >= PICKLE_TEXTS_MAX || texts->bytes.count >= PICKLE_TEXT_BYTES_MAX;
    uint32_t number = full ? intern_find(texts, bytes, kept) : intern_add(texts, bytes, kept);
    if (number == INTERN_NONE && !full) {
        return pickle_no_memory(p, err);
    }
    if (!input_skip(p->in, count - kept)) {
        return pickle_cut_short(p, err);
    }
    return pickle_push(p, (pickle_value){.kind = PICKLE_TEXT, .word = number}, err);
}

static hr_status do_text1(pickle *p, const uint8_t *argument, hr_err *err)
{
    return push_text(p, argument[0], err);
}

static hr_status do_text4(pickle *p, const uint8_t *argument, hr_err *err)
{
    return push_text(p, little_endian(argument, 4), err);
}

static hr_status do_text8(pickle *p, const uint8_t *argument, hr_err *err)
{
    return push_text(p, little_endian(argument, 8), err);
}

static hr_status do_bytes1(pickle *p, const uint8_t *argument, hr_err *err)
{
    return input_skip(p->in, argument[0]) ? push_kind(p, PICKLE_BYTES, err) : pickle_cut_short(p, err);
}

// ---- containers --------------------------------------------------------------------------------------

static hr_status do_mark(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    if (p->marks.count == PICKLE_MARKS_MAX) {
        return pickle_fail(p, err, "needed at most %d marks at once, has more", PICKLE_MARKS_MAX);
    }
    pickle_mark *pushed = vec_push(&p->marks);
    if (pushed == NULL) {
        return pickle_no_memory(p, err);
    }
    pushed->at = p->floor = p->stack.count;
    return HR_OK;
}

static hr_status do_empty_tuple(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    return push_kind(p, PICKLE_TUPLE, err);
}

static hr_status do_empty_list(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    return push_kind(p, PICKLE_LIST, err);
}

static hr_status do_empty_dict(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    return push_kind(p, PICKLE_DICT, err);
}

// A container of the last `count` values in their place.
static hr_status gather(pickle *p, pickle_kind kind, uint32_t count, hr_err *err)
{
    pickle_value made = {.kind = (uint8_t)kind};
    HR_TRY(pickle_fill(p, &made, p->stack.data + (p->stack.count - count), count, err));
    p->stack.count -= count;
    return pickle_push(p, made, err);
}

static hr_status gather_few(pickle *p, uint32_t count, hr_err *err)
{
    pickle_value *first;
    HR_TRY(pickle_below(p, count - 1, &first, err));
    return gather(p, PICKLE_TUPLE, count, err);
}

static hr_status do_tuple1(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    return gather_few(p, 1, err);
}

static hr_status do_tuple2(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    return gather_few(p, 2, err);
}

static hr_status do_tuple3(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    return gather_few(p, 3, err);
}

static hr_status gather_marked(pickle *p, pickle_kind kind, hr_err *err)
{
    uint32_t count;
    HR_TRY(pickle_pop_mark(p, false, &count, err));
    return count == 0 ? push_kind(p, kind, err) : gather(p, kind, count, err);
}

static hr_status do_tuple(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    return gather_marked(p, PICKLE_TUPLE, err);
}

static hr_status do_list(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    return gather_marked(p, PICKLE_LIST, err);
}

// Puts the last `count` values, which the stack has since the last mark, into the container below them.
static hr_status put(pickle *p, pickle_kind kind, uint32_t count, hr_err *err)
{
    pickle_value *into;
    HR_TRY(pickle_below(p, count, &into, err));
    if (into->kind != kind) {
        return pickle_fail(p, err, "needed %s to put items into, had %s", pickle_kind_name((uint8_t)kind),
                           pickle_kind_name(into->kind));
    }
    HR_TRY(pickle_fill(p, into, into + 1, count, err));
    p->stack.count -= count;
    return HR_OK;
}

static hr_status put_marked(pickle *p, pickle_kind kind, hr_err *err)
{
    uint32_t count;
    HR_TRY(pickle_pop_mark(p, kind == PICKLE_LIST, &count, err));
    return put(p, kind, count, err);
}

static hr_status do_append(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    return put(p, PICKLE_LIST, 1, err);
}

static hr_status do_appends(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    return put_marked(p, PICKLE_LIST, err);
}

static hr_status do_setitem(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    return put(p, PICKLE_DICT, 2, err);
}

static hr_status do_setitems(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    return put_marked(p, PICKLE_DICT, err);
}

static hr_status do_dict(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    return gather_marked(p, PICKLE_DICT, err);
}

// ---- the memo -------------------------------------------------------------------------------------------------

// Python numbers what it remembers 0, 1, 2 …, also where the number is written out.
static hr_status remember(pickle *p, uint32_t number, hr_err *err)
{
    pickle_value *top;
    HR_TRY(pickle_below(p, 0, &top, err));
    if (number != p->memo.count) {
        return pickle_fail(p, err, "needed memo number %" PRIu32 " next, had %" PRIu32, p->memo.count,
                           number);
    }
    if (top->kind < PICKLE_TEXT) {
        return pickle_fail(p, err, "needed a text or a container to remember, had %s",
                           pickle_kind_name(top->kind));
    }
    if (pickle_memo_is_full(&p->memo)) {
        return pickle_fail(p, err, "needed at most %" PRIu32 " remembered values, has more", number);
    }
    uint32_t word = top->lasting ? top->word : 0;
    if (top->kind == PICKLE_TEXT) {
        word = top->word == INTERN_NONE ? PICKLE_WORD_MAX : top->word;
    }
    if (!pickle_memo_add(&p->memo, (uint32_t)top->kind << PICKLE_KIND_SHIFT | word)) {
        return pickle_no_memory(p, err);
    }
    if (top->kind >= PICKLE_TUPLE && !top->again) {
        top->u.memo = p->memo.count;
    }
    return HR_OK;
}

static hr_status do_memoize(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    return remember(p, p->memo.count, err);
}

static hr_status do_put1(pickle *p, const uint8_t *argument, hr_err *err)
{
    return remember(p, argument[0], err);
}

static hr_status do_put4(pickle *p, const uint8_t *argument, hr_err *err)
{
    return remember(p, (uint32_t)little_endian(argument, 4), err);
}

static hr_status recall(pickle *p, uint32_t number, hr_err *err)
{
    if (number >= p->memo.count) {
        return pickle_fail(p, err, "needed a memo number below %" PRIu32 ", had %" PRIu32, p->memo.count,
                           number);
    }
    uint32_t entry = *pickle_memo_at(&p->memo, number), word = entry & PICKLE_WORD_MAX;
    pickle_value value = {.kind = (uint8_t)(entry >> PICKLE_KIND_SHIFT), .word = word};
    if (value.kind == PICKLE_TEXT) {
        value.word = word == PICKLE_WORD_MAX ? INTERN_NONE : word;
    } else {
        value.lasting = word != 0;
        value.again = true;
    }
    return pickle_push(p, value, err);
}

static hr_status do_get1(pickle *p, const uint8_t *argument, hr_err *err)
{
    return recall(p, argument[0], err);
}

// Stacks of frames are long rows of these.
static hr_status do_get4(pickle *p, const uint8_t *argument, hr_err *err)
{
    enum { BYTES = 5 };
    input *in = p->in;
    for (;;) {
        HR_TRY(recall(p, little_endian4(argument), err));
        if (in->end - in->at < BYTES || *input_here(in) != 'j') {
            return HR_OK;
        }
        argument = (const uint8_t *)input_here(in) + 1;
        p->offset = input_offset(in);
        input_pass(in, BYTES);
    }
}

// ---- the rest -------------------------------------------------------------------------------------------------

static hr_status do_proto(pickle *p, const uint8_t *argument, hr_err *err)
{
    if (argument[0] < 2 || argument[0] > 5) {
        return pickle_fail(p, err, "needed a pickle of protocol 2 to 5, had %d", argument[0]);
    }
    return HR_OK;
}

// A frame says how many bytes belong together; they come one after the other here anyway.
static hr_status do_frame(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)p;
    (void)argument;
    (void)err;
    return HR_OK;
}

static hr_status do_stop(pickle *p, const uint8_t *argument, hr_err *err)
{
    (void)argument;
    (void)err;
    p->stopped = true;
    return HR_OK;
}

#define RUNS(byte, text, arguments, function)                                                                \
    [byte] = {.name = (text), .argument_bytes = (arguments), .run = (function)}
#define ACTS(byte, text) [byte] = {.name = (text), .could_run_code = true}
#define ODD(byte, text)  [byte] = {.name = (text)}

const pickle_opcode pickle_opcodes[256] = {
    RUNS('N', "NONE", 0, do_none),
    RUNS(0x88, "NEWTRUE", 0, do_true),
    RUNS(0x89, "NEWFALSE", 0, do_false),
    RUNS('K', "BININT1", 1, do_int1),
    RUNS('M', "BININT2", 2, do_int2),
    RUNS('J', "BININT", 4, do_int4),
    RUNS(0x8a, "LONG1", 1, do_long1),
    RUNS('G', "BINFLOAT", 8, do_real),
    RUNS(0x8c, "SHORT_BINUNICODE", 1, do_text1),
    RUNS('X', "BINUNICODE", 4, do_text4),
    RUNS(0x8d, "BINUNICODE8", 8, do_text8),
    RUNS('C', "SHORT_BINBYTES", 1, do_bytes1),
    RUNS('(', "MARK", 0, do_mark),
    RUNS(')', "EMPTY_TUPLE", 0, do_empty_tuple),
    RUNS(0x85, "TUPLE1", 0, do_tuple1),
    RUNS(0x86, "TUPLE2", 0, do_tuple2),
    RUNS(0x87, "TUPLE3", 0, do_tuple3),
    RUNS('t', "TUPLE", 0, do_tuple),
    RUNS(']', "EMPTY_LIST", 0, do_empty_list),
    RUNS('l', "LIST", 0, do_list),
    RUNS('a', "APPEND", 0, do_append),
    RUNS('e', "APPENDS", 0, do_appends),
    RUNS('}', "EMPTY_DICT", 0, do_empty_dict),
    RUNS('d', "DICT", 0, do_dict),
    RUNS('s', "SETITEM", 0, do_setitem),
    RUNS('u', "SETITEMS", 0, do_setitems),
    RUNS(0x94, "MEMOIZE", 0, do_memoize),
    RUNS('q', "BINPUT", 1, do_put1),
    RUNS('r', "LONG_BINPUT", 4, do_put4),
    RUNS('h', "BINGET", 1, do_get1),
    RUNS('j', "LONG_BINGET", 4, do_get4),
    RUNS(0x80, "PROTO", 1, do_proto),
    RUNS(0x95, "FRAME", 8, do_frame),
    RUNS('.', "STOP", 0, do_stop),
    ACTS('c', "GLOBAL"),
    ACTS(0x93, "STACK_GLOBAL"),
    ACTS('R', "REDUCE"),
    ACTS('b', "BUILD"),
    ACTS('i', "INST"),
    ACTS('o', "OBJ"),
    ACTS(0x81, "NEWOBJ"),
    ACTS(0x92, "NEWOBJ_EX"),
    ACTS(0x82, "EXT1"),
    ACTS(0x83, "EXT2"),
    ACTS(0x84, "EXT4"),
    ACTS('P', "PERSID"),
    ACTS('Q', "BINPERSID"),
    ODD('I', "INT"),
    ODD('L', "LONG"),
    ODD(0x8b, "LONG4"),
    ODD('F', "FLOAT"),
    ODD('S', "STRING"),
    ODD('T', "BINSTRING"),
    ODD('U', "SHORT_BINSTRING"),
    ODD('V', "UNICODE"),
    ODD('B', "BINBYTES"),
    ODD(0x8e, "BINBYTES8"),
    ODD(0x96, "BYTEARRAY8"),
    ODD(0x97, "NEXT_BUFFER"),
    ODD(0x98, "READONLY_BUFFER"),
    ODD(0x8f, "EMPTY_SET"),
    ODD(0x90, "ADDITEMS"),
    ODD(0x91, "FROZENSET"),
    ODD('0', "POP"),
    ODD('1', "POP_MARK"),
    ODD('2', "DUP"),
    ODD('g', "GET"),
    ODD('p', "PUT"),
};

hr_status pickle_refuse(const pickle *p, uint8_t byte, hr_err *err)
{
    const pickle_opcode *op = &pickle_opcodes[byte];
    if (op->name == NULL) {
        return pickle_fail(p, err, "needed an opcode, had 0x%02x", byte);
    }
    if (op->could_run_code) {
        return pickle_fail(p, err, "%s could run code when Python loads the file: such a file is not read",
                           op->name);
    }
    return pickle_fail(p, err, "needed plain data, had the opcode %s", op->name);
}
