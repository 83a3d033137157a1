// SPDX-License-Identifier: Apache-2.0
// Pickles as a stream, against random values that are written here in every way that Python has, with their own text
// beside them: the visitor must come to the same text. Then what must not be read.
#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/host_mem.h"
#include "base/text.h"
#include "base/vec.h"
#include "formats/pickle.h"

enum { TREES = 800, DEPTH_MAX = 5, ITEMS_MAX = 12, SHARED_MAX = 64, SAID_MAX = 300 };

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state = hash64_mix(state, 5);
    return state % below;
}

// ---- the writer -----------------------------------------------------------------------------------------------

// A value that the memo has: its number, and what it says.
typedef struct shared {
    uint32_t number;
    char *said;
} shared;

typedef struct writer {
    text bytes;
    bool is_memoize; // MEMOIZE, or BINPUT with numbers
    uint32_t remembered;
    shared shared[SHARED_MAX];
    uint32_t shared_count;
} writer;

static void put(writer *w, const void *bytes, size_t count)
{
    text_append_bytes(&w->bytes, bytes, count);
}

static void put_op(writer *w, uint8_t op, uint64_t argument, size_t count)
{
    uint8_t bytes[9] = {op};
    for (size_t k = 0; k < count; k++) {
        bytes[1 + k] = (uint8_t)(argument >> 8 * k);
    }
    put(w, bytes, 1 + count);
}

// Remembers the top of the stack; its number.
static uint32_t remember(writer *w)
{
    if (w->is_memoize) {
        put_op(w, 0x94, 0, 0);
    } else if (w->remembered < 256 && draw(2) == 0) {
        put_op(w, 'q', w->remembered, 1);
    } else {
        put_op(w, 'r', w->remembered, 4);
    }
    return w->remembered++;
}

static void share(writer *w, uint32_t number, const char *said)
{
    if (w->shared_count < SHARED_MAX &&
        strlen(said) < SAID_MAX) { // what shares shares would grow beyond measure
        w->shared[w->shared_count++] = (shared){number, hr_strdup(said)};
    }
}

// Whether `count` bytes hold the value with its sign.
static bool fits(int64_t value, unsigned count)
{
    return count == 0 ? value == 0 : value >> (8 * count - 1) == 0 || value >> (8 * count - 1) == -1;
}

static void write_whole(writer *w, text *said)
{
    int64_t value = (int64_t)(hash64_mix(state, draw(1000)) >> draw(64));
    value = draw(2) == 0 ? value : -value;
    text_append(said, "i%lld", (long long)value);
    if (value >= 0 && value < 256 && draw(4) > 0) {
        put_op(w, 'K', (uint64_t)value, 1);
    } else if (value >= 0 && value < 65536 && draw(4) > 0) {
        put_op(w, 'M', (uint64_t)value, 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX && draw(4) > 0) {
        put_op(w, 'J', (uint64_t)value, 4);
    } else {
        unsigned count = 0;
        while (!fits(value, count)) {
            count++;
        }
        count += (unsigned)draw(9 - count);
        put_op(w, 0x8a, count, 1);
        for (unsigned k = 0; k < count; k++) {
            put_op(w, (uint8_t)((uint64_t)value >> 8 * k), 0, 0);
        }
    }
}

static void write_text(writer *w, text *said)
{
    char word[32];
    size_t length = (size_t)snprintf(word, sizeof word, "w%u", (unsigned)draw(50));
    text_append(said, "s%s", word);
    switch (draw(3)) {
    case 0:
        put_op(w, 0x8c, length, 1);
        break;
    case 1:
        put_op(w, 'X', length, 4);
        break;
    default:
        put_op(w, 0x8d, length, 8);
        break;
    }
    put(w, word, length);
    if (draw(2) == 0) {
        size_t from = said->length - length - 1;
        share(w, remember(w), said->data + from);
    }
}

static void write_scalar(writer *w, text *said)
{
    double real = (double)draw(1000) / 8;
    uint64_t bits;
    switch (draw(6)) {
    case 0:
        text_append(said, "N");
        put_op(w, 'N', 0, 0);
        break;
    case 1:
        text_append(said, "b1");
        put_op(w, 0x88, 0, 0);
        break;
    case 2:
        memcpy(&bits, &real, sizeof bits);
        text_append(said, "r%.3f", real);
        put_op(w, 'G', __builtin_bswap64(bits), 8);
        break;
    case 3:
        write_text(w, said);
        break;
    default:
        write_whole(w, said);
        break;
    }
}

static void write_value(writer *w, text *said, unsigned depth);

static void write_items(writer *w, text *said, unsigned depth, unsigned count, bool pairs, bool *first)
{
    for (unsigned k = 0; k < count; k++) {
        text_append(said, "%s", *first ? "" : ",");
        *first = false;
        write_value(w, said, depth);
        if (pairs) {
            text_append(said, ",");
            write_value(w, said, depth);
        }
    }
}

// A tuple is whole when it is put together; the others are filled in batches of any size, or one by one.
static void write_tuple(writer *w, text *said, unsigned depth)
{
    unsigned count = (unsigned)draw(6);
    bool first = true, few = count >= 1 && count <= 3 && draw(2) == 0;
    text_append(said, "(");
    if (count > 0 && !few) {
        put_op(w, '(', 0, 0);
    }
    write_items(w, said, depth, count, false, &first);
    put_op(w, count == 0 ? ')' : few ? (uint8_t)(0x84 + count) : 't', 0, 0);
    text_append(said, ")");
}

static void write_filled(writer *w, text *said, unsigned depth, bool is_dict)
{
    static const char *const names[] = {"]lae[]",
                                        "}dsu{}"}; // empty, made at once, one, many, and around the text
    const char *op = names[is_dict];
    bool first = true, at_once = draw(5) == 0;
    unsigned left = (unsigned)draw(ITEMS_MAX);
    uint32_t number = UINT32_MAX;
    size_t from = said->length;
    text_append(said, "%c", op[4]);
    put_op(w, (uint8_t)(at_once ? '(' : op[0]), 0, 0);
    if (!at_once && draw(2) == 0) {
        number = remember(w); // before it is filled, as Python does
    }
    while (left > 0 && !at_once) {
        unsigned batch = 1 + (unsigned)draw(left);
        bool one = batch == 1 && draw(2) == 0;
        if (!one) {
            put_op(w, '(', 0, 0);
        }
        write_items(w, said, depth, batch, is_dict, &first);
        put_op(w, (uint8_t)op[one ? 2 : 3], 0, 0);
        left -= batch;
    }
    if (at_once) {
        write_items(w, said, depth, left, is_dict, &first);
        put_op(w, (uint8_t)op[1], 0, 0);
    }
    text_append(said, "%c", op[5]);
    if (number == UINT32_MAX && draw(3) == 0) {
        number = remember(w);
    }
    if (number != UINT32_MAX) {
        share(w, number, said->data + from);
    }
}

static void write_value(writer *w, text *said, unsigned depth)
{
    if (w->shared_count > 0 && draw(6) == 0) {
        const shared *s = &w->shared[draw(w->shared_count)];
        put_op(w, s->number < 256 ? 'h' : 'j', s->number, s->number < 256 ? 1 : 4);
        text_append(said, "%s", s->said);
    } else if (depth == 0 || draw(3) == 0) {
        write_scalar(w, said);
    } else if (draw(4) == 0) {
        write_tuple(w, said, depth - 1);
    } else {
        write_filled(w, said, depth - 1, draw(2) == 0);
    }
}

static void writer_deinit(writer *w)
{
    text_deinit(&w->bytes);
    for (uint32_t k = 0; k < w->shared_count; k++) {
        hr_free(w->shared[k].said);
    }
}

// ---- the visitor ----------------------------------------------------------------------------------------------

// What each container says, without its end; a word is its place here, counted from 1.
typedef struct listener {
    intern texts;
    VEC(text) said;
} listener;

static void say(const listener *l, text *to, const pickle_value *v)
{
    static const char *const ends[] = {[PICKLE_TUPLE] = "()", [PICKLE_LIST] = "[]", [PICKLE_DICT] = "{}"};
    switch (v->kind) {
    case PICKLE_NONE:
        text_append(to, "N");
        break;
    case PICKLE_BOOL:
        text_append(to, "b%d", (int)v->u.whole);
        break;
    case PICKLE_WHOLE:
        text_append(to, "i%lld", (long long)v->u.whole);
        break;
    case PICKLE_REAL:
        text_append(to, "r%.3f", v->u.real);
        break;
    case PICKLE_TEXT:
        text_append(to, "s%s", intern_text(&l->texts, v->word));
        break;
    default:
        text_append(to, "%c%s%c", ends[v->kind][0], v->word == 0 ? "" : l->said.data[v->word - 1].data,
                    ends[v->kind][1]);
        break;
    }
}

static hr_status listen(void *context, const pickle *p, pickle_value *into, const pickle_value *items,
                        uint32_t count, hr_err *err)
{
    listener *l = context;
    (void)p;
    if (into->word == 0) {
        if (vec_push(&l->said) == NULL) {
            return HR_FAIL(err, NOMEM, "no memory");
        }
        into->word = l->said.count;
        into->lasting = true;
    }
    for (uint32_t k = 0; k < count; k++) {
        text more = {0};
        say(l, &more, &items[k]);
        text *said = &l->said.data[into->word - 1];
        text_append(said, "%s%s", said->length == 0 ? "" : ",", more.data == NULL ? "" : more.data);
        bool failed = said->failed || more.failed;
        text_deinit(&more);
        if (failed) {
            return HR_FAIL(err, NOMEM, "no memory");
        }
    }
    return HR_OK;
}

// Reads and says; *said is the caller's to deinit.
static hr_status read_said(const void *bytes, size_t count, text *said, hr_err *err)
{
    listener l = {0};
    input in;
    pickle_value top = {0};
    pickle_visitor visitor = {.fill = listen, .context = &l, .texts = &l.texts};
    input_of_memory(&in, "file", bytes, count);
    hr_status status = pickle_read(&in, &visitor, &top, err);
    if (status == HR_OK) {
        say(&l, said, &top);
        ck_assert_uint_eq(input_offset(&in), count);
    }
    for (uint32_t k = 0; k < l.said.count; k++) {
        text_deinit(&l.said.data[k]);
    }
    vec_deinit(&l.said);
    intern_deinit(&l.texts);
    return status;
}

static void write_pickle(writer *w, text *said)
{
    bool frames = draw(2) == 0;
    put_op(w, 0x80, 2 + draw(4), 1);
    if (frames) {
        put_op(w, 0x95, draw(1000), 8);
    }
    w->is_memoize = draw(2) == 0;
    write_value(w, said, 1 + (unsigned)draw(DEPTH_MAX));
    put_op(w, '.', 0, 0);
}

START_TEST(every_way_to_write_a_value_is_read)
{
    int64_t live = hr_host_mem_live();
    size_t longest = 0;
    state = 3;
    for (int k = 0; k < TREES; k++) {
        writer w = {0};
        text said = {0}, heard = {0};
        hr_err err = {0};
        write_pickle(&w, &said);
        hr_status status = read_said(w.bytes.data, w.bytes.length, &heard, &err);
        ck_assert_msg(status == HR_OK, "tree %d: %s", k, err.sentence);
        if (strcmp(said.data, heard.data) != 0) {
            ck_abort_msg("tree %d: %s is read as %s", k, said.data, heard.data);
        }
        longest = w.bytes.length > longest ? w.bytes.length : longest;
        text_deinit(&said);
        text_deinit(&heard);
        writer_deinit(&w);
    }
    ck_assert_uint_gt(longest, 5000);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

START_TEST(a_cut_pickle_is_an_error_and_so_is_short_memory)
{
    int64_t live = hr_host_mem_live();
    writer w = {0};
    text said = {0};
    hr_err err = {0};
    for (state = 1; w.bytes.length < 300 || w.bytes.length > 3000; state++) {
        writer_deinit(&w);
        w = (writer){0};
        said.length = 0;
        write_pickle(&w, &said);
    }
    for (size_t cut = 0; cut < w.bytes.length; cut++) {
        text heard = {0};
        ck_assert_int_eq(read_said(w.bytes.data, cut, &heard, &err), HR_READ);
        ck_assert_ptr_nonnull(strstr(err.sentence, ": the file ends within the pickle"));
        text_deinit(&heard);
    }
    bool failed = true;
    uint64_t nth = 1;
    for (; failed; nth++) {
        text heard = {0};
        (void)hr_host_mem_fail_at(nth);
        hr_status status = read_said(w.bytes.data, w.bytes.length, &heard, &err);
        failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert(status == (failed ? HR_NOMEM : HR_OK) || (failed && heard.failed));
        text_deinit(&heard);
    }
    ck_assert_uint_gt(nth, 10);
    text_deinit(&said);
    writer_deinit(&w);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

// A writer in C++ puts all items of a list between two marks. Some items are tuples, which come in parts.
START_TEST(a_list_between_two_marks_needs_no_room)
{
    writer w = {0};
    text said = {0}, heard = {0};
    put_op(&w, 0x80, 2, 1);
    put(&w, "](", 2);
    text_append(&said, "[");
    for (unsigned k = 0; k < 200000; k++) {
        text_append(&said, k == 0 ? "" : ",");
        if (k % 3 == 0) {
            put(&w, "K\1K\2\x86]K\3a", 9);
            text_append(&said, "(i1,i2),[i3]");
        } else {
            put_op(&w, 'K', k % 256, 1);
            text_append(&said, "i%u", k % 256);
        }
    }
    put(&w, "e.", 2);
    text_append(&said, "]");
    hr_err err = {0};
    ck_assert_msg(read_said(w.bytes.data, w.bytes.length, &heard, &err) == HR_OK, "%s", err.sentence);
    ck_assert_uint_eq(said.length, heard.length);
    ck_assert(memcmp(said.data, heard.data, said.length) == 0);
    text_deinit(&said);
    text_deinit(&heard);
    writer_deinit(&w);
}
END_TEST

START_TEST(texts_are_cut_at_their_bound)
{
    writer w = {0};
    text heard = {0};
    char *longer = malloc(3 * PICKLE_TEXT_MAX);
    memset(longer, 'a', 3 * PICKLE_TEXT_MAX);
    put_op(&w, 0x80, 4, 1);
    put_op(&w, 'X', 3 * PICKLE_TEXT_MAX, 4);
    put(&w, longer, 3 * PICKLE_TEXT_MAX);
    put_op(&w, '.', 0, 0);
    ck_assert_int_eq(read_said(w.bytes.data, w.bytes.length, &heard, NULL), HR_OK);
    ck_assert_uint_eq(heard.length, 1 + PICKLE_TEXT_MAX);
    free(longer);
    text_deinit(&heard);
    writer_deinit(&w);
}
END_TEST

// Beyond the bound a text has no number, and those before keep theirs.
START_TEST(too_many_texts_have_no_number)
{
    listener l = {0};
    writer w = {0};
    char word[16];
    put_op(&w, 0x80, 2, 1);
    put(&w, "](", 2);
    for (unsigned k = 0; k < PICKLE_TEXTS_MAX + 10; k++) {
        size_t length = (size_t)snprintf(word, sizeof word, "%x", k);
        put_op(&w, 0x8c, length, 1);
        put(&w, word, length);
    }
    put_op(&w, 0x8c, 1, 1);
    put(&w, "5q\0h\0e.", 7);
    input in;
    pickle_value top;
    text heard = {0};
    input_of_memory(&in, "file", w.bytes.data, w.bytes.length);
    ck_assert_int_eq(
        pickle_read(&in, &(pickle_visitor){.fill = listen, .context = &l, .texts = &l.texts}, &top, NULL),
        HR_OK);
    ck_assert_uint_eq(intern_count(&l.texts), PICKLE_TEXTS_MAX);
    const char *said = l.said.data[0].data;
    ck_assert_str_eq(said + strlen(said) - 18, "s(null),s(null),s5,s5" + 3);
    text_deinit(&heard);
    text_deinit(&l.said.data[0]);
    vec_deinit(&l.said);
    intern_deinit(&l.texts);
    writer_deinit(&w);
}
END_TEST

// ---- what is not read -----------------------------------------------------------------------------------------

#define BYTES(literal) literal, sizeof(literal) - 1

static const struct {
    const char *bytes;
    size_t count;
    const char *sentence;
} refused[] = {
    {BYTES("\x80\2cos\nsystem\n."),
     "file: byte 2: GLOBAL could run code when Python loads the file: such a file is not read"},
    {BYTES("\x80\4\x8c\2os\x8c\6system\x93."),
     "file: byte 14: STACK_GLOBAL could run code when Python loads the file: such a file is not read"},
    {BYTES("\x80\2NNR."),
     "file: byte 4: REDUCE could run code when Python loads the file: such a file is not read"},
    {BYTES("\x80\2NNb."),
     "file: byte 4: BUILD could run code when Python loads the file: such a file is not read"},
    {BYTES("\x80\2(ios\nsystem\n."),
     "file: byte 3: INST could run code when Python loads the file: such a file is not read"},
    {BYTES("\x80\2(No."),
     "file: byte 4: OBJ could run code when Python loads the file: such a file is not read"},
    {BYTES("\x80\2NN\x81."),
     "file: byte 4: NEWOBJ could run code when Python loads the file: such a file is not read"},
    {BYTES("\x80\4NNN\x92."),
     "file: byte 5: NEWOBJ_EX could run code when Python loads the file: such a file is not read"},
    {BYTES("\x80\2\x82\1."),
     "file: byte 2: EXT1 could run code when Python loads the file: such a file is not read"},
    {BYTES("\x80\2\x83\1\1."),
     "file: byte 2: EXT2 could run code when Python loads the file: such a file is not read"},
    {BYTES("\x80\2\x84\1\1\1\1."),
     "file: byte 2: EXT4 could run code when Python loads the file: such a file is not read"},
    {BYTES("\x80\2Pid\n."),
     "file: byte 2: PERSID could run code when Python loads the file: such a file is not read"},
    {BYTES("\x80\2NQ."),
     "file: byte 3: BINPERSID could run code when Python loads the file: such a file is not read"},
    {BYTES("\x80\2I5\n."), "file: byte 2: needed plain data, had the opcode INT"},
    {BYTES("\x80\2Np0\n."), "file: byte 3: needed plain data, had the opcode PUT"},
    {BYTES("\x80\5\x96\0\0\0\0\0\0\0\0."), "file: byte 2: needed plain data, had the opcode BYTEARRAY8"},
    {BYTES("\x80\4\x8f."), "file: byte 2: needed plain data, had the opcode EMPTY_SET"},
    {BYTES("\x80\2\xfa."), "file: byte 2: needed an opcode, had 0xfa"},
    {BYTES("\x80\1N."), "file: byte 0: needed a pickle of protocol 2 to 5, had 1"},
    {BYTES("\x80\6N."), "file: byte 0: needed a pickle of protocol 2 to 5, had 6"},
    {BYTES("\x80\2\x8a\x09\0\0\0\0\0\0\0\0\1."),
     "file: byte 2: needed a whole number of at most 8 bytes, had 9"},
    {BYTES("\x80\2."), "file: byte 2: needed one value at the end, had 0"},
    {BYTES("\x80\2NN."), "file: byte 4: needed one value at the end, had 2"},
    {BYTES("\x80\2N(."), "file: byte 4: needed one value at the end, had 1"},
    {BYTES("\x80\2e."), "file: byte 2: needed a MARK, had none"},
    {BYTES("\x80\2](\x85."), "file: byte 4: needed 1 values, had 0"},
    {BYTES("\x80\2Na."), "file: byte 3: needed 2 values, had 1"},
    {BYTES("\x80\2}Na."), "file: byte 4: needed a list to put items into, had a dictionary"},
    {BYTES("\x80\2](Nu."), "file: byte 5: needed a dictionary to put items into, had a list"},
    {BYTES("\x80\2}(NNNu."), "file: byte 7: needed a value for every key, had 3 of both"},
    {BYTES("\x80\2(Nd."), "file: byte 4: needed a value for every key, had 1 of both"},
    {BYTES("\x80\2h\0."), "file: byte 2: needed a memo number below 0, had 0"},
    {BYTES("\x80\2]q\1."), "file: byte 3: needed memo number 0 next, had 1"},
    {BYTES("\x80\2]q\0q\0."), "file: byte 5: needed memo number 1 next, had 0"},
    {BYTES("\x80\4\x94."), "file: byte 2: needed 1 values, had 0"},
    {BYTES("\x80\4K\1\x94."), "file: byte 4: needed a text or a container to remember, had a whole number"},
    {BYTES("\x80\2]q\0(h\0Nae."), "file: byte 9: a list is filled again that was handed on before"},
};

START_TEST(what_is_no_plain_data_is_refused)
{
    hr_err err = {0};
    text heard = {0};
    ck_assert_int_eq(read_said(refused[_i].bytes, refused[_i].count, &heard, &err), HR_READ);
    ck_assert_str_eq(err.sentence, refused[_i].sentence);
    text_deinit(&heard);
}
END_TEST

static void refuses_many(const char *op, const char *sentence)
{
    writer w = {0};
    text heard = {0};
    hr_err err = {0};
    put_op(&w, 0x80, 2, 1);
    for (unsigned k = 0; k < 100000; k++) {
        put(&w, op, strlen(op));
    }
    ck_assert_int_eq(read_said(w.bytes.data, w.bytes.length, &heard, &err), HR_READ);
    ck_assert_ptr_nonnull(strstr(err.sentence, sentence));
    text_deinit(&heard);
    writer_deinit(&w);
}

START_TEST(depth_is_bounded)
{
    refuses_many("]", "needed at most 65536 values at once, has more");
    refuses_many("](", "needed at most 1000 marks at once, has more");
    refuses_many("(", "needed at most 1000 marks at once, has more");
}
END_TEST

START_TEST(a_pickle_is_known_by_its_first_bytes)
{
    ck_assert(pickle_is_pickle("\x80\2}", 3));
    ck_assert(pickle_is_pickle("\x80\5", 2));
    ck_assert(!pickle_is_pickle("\x80\1", 2));
    ck_assert(!pickle_is_pickle("\x80\6", 2));
    ck_assert(!pickle_is_pickle("\x80", 1));
    ck_assert(!pickle_is_pickle("{\"segments\"", 11));
    ck_assert(!pickle_is_pickle("", 0));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("pickle");
    tcase_add_test(tests, every_way_to_write_a_value_is_read);
    tcase_add_test(tests, a_cut_pickle_is_an_error_and_so_is_short_memory);
    tcase_add_test(tests, a_list_between_two_marks_needs_no_room);
    tcase_add_test(tests, texts_are_cut_at_their_bound);
    tcase_add_test(tests, too_many_texts_have_no_number);
    tcase_add_loop_test(tests, what_is_no_plain_data_is_refused, 0, sizeof refused / sizeof refused[0]);
    tcase_add_test(tests, depth_is_bounded);
    tcase_add_test(tests, a_pickle_is_known_by_its_first_bytes);
    Suite *suite = suite_create("pickle");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
