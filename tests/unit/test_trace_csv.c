// SPDX-License-Identifier: Apache-2.0
// Comma-separated traces: our own and RMM's, in every spelling, damaged, and with memory that runs out.
#include "base/text.h"
#include "formats/fields.h"
#include "formats/readers.h"
#include "unit/trace_checks.h"

#define OWN "time_ns,step,event,address,requested_bytes,allocated_bytes,tensor,stream\n"
#define RMM "Thread,Time,Action,Pointer,Size,Stream\n"

// ---- fields ---------------------------------------------------------------------------------------------------

static void check_row(fields *f, uint32_t count, const char *const *words)
{
    bool more = false;
    hr_err err = {0};
    ck_assert_msg(fields_next(f, &more, &err) == HR_OK && more, "%s", err.sentence);
    ck_assert_uint_eq(f->count, count);
    for (uint32_t k = 0; k < count; k++) {
        ck_assert_uint_eq(f->at[k].length, strlen(words[k]));
        ck_assert_mem_eq(f->at[k].text, words[k], f->at[k].length);
    }
}

START_TEST(fields_are_those_of_rfc_4180)
{
    static const char content[] = "\xEF\xBB\xBF"
                                  "a,b\r\n\r\n,\n\"q\",  \"x \"\"y\"\" , z\" ,\"two\r\nlines\"\n\"\",last";
    input in;
    input_of_memory(&in, "f", content, sizeof content - 1);
    fields f = {.in = &in};
    check_row(&f, 2, (const char *const[]){"a", "b"});
    check_row(&f, 2, (const char *const[]){"", ""});
    ck_assert_uint_eq(f.line, 3);
    check_row(&f, 3, (const char *const[]){"q", "x \"y\" , z", "two\r\nlines"});
    check_row(&f, 2, (const char *const[]){"", "last"});
    ck_assert_uint_eq(f.line, 6);
    bool more = true;
    ck_assert_int_eq(fields_next(&f, &more, NULL), HR_OK);
    ck_assert(!more);
    fields_deinit(&f);
}
END_TEST

START_TEST(numbers_are_whole_and_within_64_bits)
{
    static const struct {
        const char *text;
        bool good;
        uint64_t value;
    } cases[] = {
        {"0", true, 0},
        {" 12 ", true, 12},
        {"18446744073709551615", true, UINT64_MAX},
        {"0x10", true, 16},
        {"0Xff", true, 255},
        {"18446744073709551616", false, 0},
        {"", false, 0},
        {"-1", false, 0},
        {"+1", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"0x", false, 0},
        {"99999999999999999999999", false, 0},
        {"1 2", false, 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint64_t value = 0;
        const field t = {cases[k].text, (uint32_t)strlen(cases[k].text), 1};
        ck_assert_msg(field_to_u64(t, &value) == cases[k].good, "'%s'", cases[k].text);
        ck_assert(!cases[k].good || value == cases[k].value);
    }
    uint64_t address;
    ck_assert(field_to_address((field){"7f00", 4, 1}, &address) && address == 0x7f00);
    ck_assert(field_to_address((field){"0x7F00", 6, 1}, &address) && address == 0x7f00);
    ck_assert(field_to_address((field){"(nil)", 5, 1}, &address) && address == 0);
    ck_assert(!field_to_address((field){"nil", 3, 1}, &address));
}
END_TEST

// ---- our own --------------------------------------------------------------------------------------------------

START_TEST(our_own_rows_become_events)
{
    trace t = read_text("csv", OWN "100,0,build,0,0,0,,0\n"
                                   "110,0,grow,4096,0,2097152,,0\n"
                                   "120,0,alloc,4096,1000,1024,\"conv1/weights, \"\"w\"\"\",0\n"
                                   "130,0,alloc,8192,10,256,x,3\n"
                                   "140,0,free,4096,1000,1024,,0\n"
                                   "150,0,oom,0,99999999999,0,big,0\n"
                                   "160,1,step,0,0,0,,0\n"
                                   "170,1,shrink,4096,0,2097152,,0\n");
    ck_assert_uint_eq(t.rows, 8);
    ck_assert_uint_eq(t.events.count, 7); // the build is a mark that nobody plays
    ck_assert(has_event(&t, 0, TRACE_GROW, 2097152, HR_NO_ID) && has_event(&t, 1, TRACE_ALLOC, 1000, 0));
    ck_assert(has_event(&t, 2, TRACE_ALLOC, 10, 1) && has_event(&t, 3, TRACE_FREE, 1000, 0));
    ck_assert(has_event(&t, 4, TRACE_REFUSED, 99999999999, HR_NO_ID) &&
              has_event(&t, 5, TRACE_STEP, 0, HR_NO_ID));
    ck_assert(has_event(&t, 6, TRACE_SHRINK, 2097152, HR_NO_ID));
    ck_assert_str_eq(name_at(&t, 1), "conv1/weights, \"w\"");
    ck_assert_uint_eq(t.events.data[2].stream, 3);
    ck_assert_uint_eq(t.events.data[6].row, 7);
    ck_assert_uint_eq(t.events.data[6].time_ns, 60);
    trace_deinit(&t);
}
END_TEST

START_TEST(columns_come_in_any_order_and_some_may_be_missing)
{
    trace t = read_text("csv", "tensor,device,requested_bytes,note,address,event\r\n"
                               "a,1,64,hello,0x100,alloc\r\n"
                               ",1,64,,0x100,free\r\n"
                               ",,64,,0x100,free\r\n");
    ck_assert_uint_eq(t.events.count, 2);
    ck_assert_uint_eq(t.events.data[0].device, 1);
    ck_assert_uint_eq(t.lost_frees, 1); // on device 0 nothing lives there
    ck_assert(!t.has_times);
    trace_deinit(&t);
}
END_TEST

START_TEST(mistakes_in_our_own_are_named_with_line_and_column)
{
    refuses(OWN "1,0,alloc,4096,1k,1024,,0\n", "file:2:16: needed a whole number below 2^64, had '1k'");
    refuses(OWN "\n1,0,aloc,4096,1,1024,,0\n",
            "file:3:5: needed an event: alloc, free, grow, shrink, oom, step, build, eval, had 'aloc'");
    refuses(OWN "1,0,alloc,4096,1,1024,,70000\n", "file:2:24: needed a smaller whole number, had '70000'");
    refuses(OWN "1,0,alloc,4096,1,1024,a,0,b\n",
            "file:2:27: needed no more fields than the heading has (text with commas in quotes), had 'b'");
    refuses("event,address,requested_bytes,event\n", "file:1:31: needed each column once, had 'event'");
    refuses("event,address,requested_bytes,time_nz\n",
            "file:1:31: needed a column of this format (did you mean 'time_ns'?), had 'time_nz'");
    refuses(OWN "1,0,\"alloc,4096,1,1024,,0\n", "file:2: needed a closing quote within a mebibyte");
    refuses(OWN "1,0,\"alloc\"x,4096,1,1024,,0\n", "file:2: needed a comma behind a closing quote");
    refuses(OWN "1,0,\x1b[31mred\x07,4096,1,1024,,0\n",
            "file:2:5: needed an event: alloc, free, grow, shrink, oom, "
            "step, build, eval, had '?[31mred?'");
}
END_TEST

// ---- RMM ------------------------------------------------------------------------------------------------------

START_TEST(logs_of_rmm_become_events)
{
    trace t = read_text("rmm", RMM "1979932,23:59:59:998533,allocate,0x30a000000,256,0x2\n"
                                   "1980043,23:59:59:998633,allocate,0x30b000000,512,0\n"
                                   "1980043,00:00:00:000533,free,0x30a000000,256,0x2\n"
                                   "1980043,00:00:01:000533,allocate failure,(nil),99999999999,0x2\n");
    ck_assert_uint_eq(t.events.count, 4);
    ck_assert(has_event(&t, 0, TRACE_ALLOC, 256, 0) && has_event(&t, 1, TRACE_ALLOC, 512, 1));
    ck_assert(has_event(&t, 2, TRACE_FREE, 256, 0) && has_event(&t, 3, TRACE_REFUSED, 99999999999, HR_NO_ID));
    ck_assert_uint_eq(t.events.data[0].stream, 1);
    ck_assert_uint_eq(t.events.data[1].stream, 0);
    ck_assert_uint_eq(t.events.data[2].time_ns, 2000000); // over midnight
    ck_assert_uint_eq(t.events.data[3].time_ns, 1002000000);
    trace_deinit(&t);
}
END_TEST

START_TEST(spellings_of_rmm_are_all_read)
{
    static const char *const logs[] = {
        RMM "1,15:47:02:841961,allocate,0x10012400000,1048576,0\n2,15:47:03:841961,free,0x10012400000,"
            "1048576,0\n",
        RMM "1,15:47:02.841961,allocate,0x10012400000,1048576,0x0\n2,15:47:03.841961,free,0x10012400000,"
            "1048576,0x0\n",
        "1979932,14:21:19.998533,allocate,0x30a000000,1048576,\n1980043,14:21:20.998533,free,0x30a000000,"
        "1048576,\n",
        "Time, Thread, Action, Pointer, Size, Stream\r\n"
        "1634567890.5, 7, allocate, 7f8a40000000, 1048576, 0\r\n1634567891.5, 7, deallocate, 7f8a40000000, "
        "1048576, 0\r\n",
        "\"Thread\",\"Time\",\"Action\",\"Pointer\",\"Size\",\"Stream\"\n"
        "\"1\",\"15:47:02:0\",\"allocate\",\"0x100\",\"1048576\",\"(nil)\"\n\"1\",\"15:47:03:0\",\"free\","
        "\"0x100\",\"1048576\",\"(nil)\"\n",
    };
    for (size_t k = 0; k < sizeof logs / sizeof *logs; k++) {
        trace t = read_text("rmm", logs[k]);
        ck_assert_uint_eq(t.events.count, 2);
        ck_assert(has_event(&t, 0, TRACE_ALLOC, 1048576, 0) && has_event(&t, 1, TRACE_FREE, 1048576, 0));
        ck_assert_uint_eq(t.events.data[1].time_ns, 1000000000);
        ck_assert_uint_eq(t.events.data[1].stream, 0);
        ck_assert_uint_eq(t.events.data[1].row, 1);
        trace_deinit(&t);
    }
}
END_TEST

START_TEST(mistakes_in_logs_of_rmm_are_named)
{
    refuses(RMM "1,15:47:02:1,alloc,0x1,1,0\n",
            "file:2:14: needed an action: allocate, free or allocate failure, had 'alloc'");
    refuses(RMM "1,15:47,allocate,0x1,1,0\n",
            "file:2:3: needed a time as 15:47:02:841961, 15:47:02.841961 or in seconds, had '15:47'");
    refuses(RMM "1,15:47:02:1,allocate,zero,1,0\n",
            "file:2:23: needed a pointer as 0x7f8a40000000 or (nil), had 'zero'");
    refuses(RMM "1,15:47:02:1,allocate,0x1,,0\n", "file:2:27: needed a size in bytes, had ''");
    refuses(RMM "1,15:47:02:1,allocate,0x1,1,stream\n",
            "file:2:29: needed a stream: 0, or its address in hexadecimal, had 'stream'");
}
END_TEST

// ---- written and read -----------------------------------------------------------------------------------------

static const char *const names[] = {"w", "a,b", "\"q\"", "", " blank ", "zwei\nzeilen", "cr\r\nlf", "ünï"};
enum { NAMES = sizeof names / sizeof *names, EVENTS = 400 };

static void append_name(text *to, const char *name)
{
    text_append(to, "\"");
    for (const char *c = name; *c != '\0'; c++) {
        text_append(to, *c == '"' ? "\"\"" : "%c", *c);
    }
    text_append(to, "\"");
}

// An independent writer of the columns, of events that are drawn: what is read must be what was drawn.
START_TEST(what_is_written_is_read)
{
    uint64_t state = (uint64_t)_i, time = 1000;
    text file = {0};
    trace_event drawn[EVENTS];
    bool living[16] = {false};
    text_append(&file, OWN);
    for (uint32_t k = 0; k < EVENTS; k++) {
        const uint32_t slot = (uint32_t)below(&state, 16), name = (uint32_t)below(&state, NAMES);
        drawn[k] = (trace_event){.time_ns = (time += below(&state, 9)) - 1000,
                                 .bytes = 100 + slot,
                                 .row = k,
                                 .stream = (uint16_t)below(&state, 9),
                                 .name = name,
                                 .kind = living[slot] ? TRACE_FREE : TRACE_ALLOC};
        living[slot] = !living[slot];
        text_append(&file, "%llu,0,%s,%u,%u,512,", (unsigned long long)time, living[slot] ? "alloc" : "free",
                    4096 * (slot + 1), 100 + slot);
        append_name(&file, names[name]);
        text_append(&file, ",%u\n", drawn[k].stream);
    }
    ck_assert(!file.failed);
    trace t = read_text("csv", file.data);
    ck_assert_uint_eq(t.events.count, EVENTS);
    for (uint32_t k = 0; k < EVENTS; k++) {
        const trace_event *e = &t.events.data[k];
        MUST(e->kind == drawn[k].kind && e->bytes == drawn[k].bytes && e->row == k &&
             e->stream == drawn[k].stream);
        MUST(e->time_ns + drawn[0].time_ns == drawn[k].time_ns);
        MUST(names[drawn[k].name][0] == '\0' ? e->name == HR_NO_ID
                                             : strcmp(name_at(&t, k), names[drawn[k].name]) == 0);
    }
    trace_deinit(&t);
    text_deinit(&file);
}
END_TEST

// ---- damage ---------------------------------------------------------------------------------------------------

static const char own_sample[] = OWN "1,0,alloc,4096,1000,1024,\"a \"\"b\"\"\",0\n2,0,alloc,8192,10,256,x,3\n"
                                     "3,0,free,4096,0,0,,0\n4,1,step,0,0,0,,0\n5,1,oom,0,77,0,z,0\n";
static const char rmm_sample[] = RMM "1,23:59:59:998533,allocate,0x30a000000,256,0x2\n"
                                     "2,00:00:01.5,free,0x30a000000,256,0x7f8a38001020\n"
                                     "2,00:00:02.5,allocate failure,(nil),256,\"0\"\n";

START_TEST(damage_is_an_error_or_another_trace)
{
    survives_damage(&trace_format_csv, own_sample, sizeof own_sample - 1);
    survives_damage(&trace_format_rmm, rmm_sample, sizeof rmm_sample - 1);
}
END_TEST

START_TEST(short_memory_and_failing_files_are_errors)
{
    survives_short_memory(own_sample, sizeof own_sample - 1);
    survives_short_memory(rmm_sample, sizeof rmm_sample - 1);
    survives_failing_files(own_sample, sizeof own_sample - 1);
    survives_failing_files(rmm_sample, sizeof rmm_sample - 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace_csv");
    TCase *rows = tcase_create("rows");
    tcase_add_test(rows, fields_are_those_of_rfc_4180);
    tcase_add_test(rows, numbers_are_whole_and_within_64_bits);
    tcase_add_test(rows, our_own_rows_become_events);
    tcase_add_test(rows, columns_come_in_any_order_and_some_may_be_missing);
    tcase_add_test(rows, mistakes_in_our_own_are_named_with_line_and_column);
    tcase_add_test(rows, logs_of_rmm_become_events);
    tcase_add_test(rows, spellings_of_rmm_are_all_read);
    tcase_add_test(rows, mistakes_in_logs_of_rmm_are_named);
    tcase_add_loop_test(rows, what_is_written_is_read, 0, 20);
    tcase_add_test(rows, damage_is_an_error_or_another_trace);
    tcase_add_test(rows, short_memory_and_failing_files_are_errors);
    suite_add_tcase(suite, rows);
    return run_suite(suite);
}
