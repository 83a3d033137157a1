// SPDX-License-Identifier: Apache-2.0
// Promises of `headroom replay`: what a run takes is what the replay of its trace takes, sweeps make the columns that
// concern each allocator, failures are rows of the file, and bad input has its sentence.
#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/terms.h"

#include "program.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { PATH_TEXT_MAX = 128, WORDS_MAX = 512 };

static char path[PATH_TEXT_MAX];

static void write_file(const char *name, const char *text)
{
    snprintf(path, sizeof path, "%s/%s", program_home(), name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

// Six MiB that go, three that stay behind them, and six again: in pieces where the pool cannot be one piece.
static const char rmm_log[] = "Thread,Time,Action,Pointer,Size,Stream\n"
                              "1,10:00:00:000001,allocate,0x1000,6291456,0\n"
                              "1,10:00:00:000002,allocate,0x2000,3145728,0\n"
                              "1,10:00:00:000003,free,0x1000,6291456,0\n"
                              "1,10:00:00:000004,allocate,0x3000,4194304,0\n"
                              "1,10:00:00:000005,allocate,0x4000,33554432,0\n"
                              "1,10:00:00:000006,free,0x4000,33554432,0\n";

static json_t *replay_json(const char *options, int exit_code)
{
    char words[WORDS_MAX];
    snprintf(words, sizeof words, "replay %s --json %s", path, options);
    outcome o = program_run(words);
    assert_exit(&o, words, exit_code);
    ck_assert_msg(o.err[0] == '\0', "%s", o.err);
    json_t *document = assert_json(&o, words);
    ck_assert_str_eq(json_string_value(json_object_get(document, "schema")), "headroom.replay/1");
    outcome_deinit(&o);
    return document;
}

static const json_t *column(const json_t *document, size_t k)
{
    return json_array_get(json_object_get(document, "allocators"), k);
}

static json_int_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_integer(value), "%s is no number", key);
    return json_integer_value(value);
}

// ---- the plan is the replay -----------------------------------------------------------------------------------

START_TEST(the_replay_of_a_run_takes_what_the_run_took)
{
    static const char *const settings[] = {"", "-s allocator.growth=on -s batch.size=64"};
    static const char *const same[] = {"", "-s allocator.growth=on"};
    static const char *const counters[] = {"peak_in_use_bytes", "peak_requested_bytes", "peak_pool_bytes",
                                           "waste_bytes",       "largest_free_bytes",   "fragmentation"};
    char words[WORDS_MAX];
    snprintf(path, sizeof path, "%s/run.csv", program_home());
    snprintf(words, sizeof words, "run demo --steps 3 --json -s device.kind=plan %s --trace %s", settings[_i],
             path);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    json_t *run = assert_json(&o, words);
    outcome_deinit(&o);
    snprintf(words, sizeof words, "--allocator bfc -s device.vram=64MiB %s", same[_i]);
    json_t *replay = replay_json(words, 0);
    const json_t *taken = json_object_get(run, "memory");
    const json_t *again = json_object_get(column(replay, 0), "memory");
    for (size_t k = 0; k < COUNT(counters); k++) {
        ck_assert_msg(json_equal(json_object_get(taken, counters[k]), json_object_get(again, counters[k])),
                      "%s", counters[k]);
    }
    ck_assert_int_eq(number(json_object_get(replay, "trace"), "steps"), 3);
    json_decref(run);
    json_decref(replay);
}
END_TEST

// Of the same trace: one that keeps what it had, and one that gives each range back.
START_TEST(what_stays_of_the_pool_is_said)
{
    outcome o = program_run("replay pool_stays --json --allocator bfc,caching,direct");
    assert_exit(&o, "replay", 0);
    json_t *d = assert_json(&o, "replay");
    outcome_deinit(&o);
    for (size_t k = 0; k < 3; k++) {
        const json_t *memory = json_object_get(column(d, k), "memory");
        if (k < 2) {
            ck_assert_int_eq(number(memory, "end_pool_bytes"), number(memory, "peak_pool_bytes"));
        } else {
            ck_assert_int_eq(number(memory, "end_pool_bytes"), 0);
        }
    }
    json_decref(d);
    o = program_run("replay pool_stays --allocator direct");
    ck_assert_ptr_nonnull(strstr(o.out, "pool at the end "));
    outcome_deinit(&o);
    o = program_run("terms end_pool_bytes");
    assert_exit(&o, "terms", 0);
    outcome_deinit(&o);
}
END_TEST

START_TEST(what_a_replay_did_is_a_trace_too)
{
    static const struct {
        const char *options, *suffix;
    } rows[] = {
        {"--allocator bfc -s device.vram=12MiB", "csv"},
        {"--allocator bfc", "csv"},
        {"--allocator static", "csv"},
        {"--allocator direct -s device.vram=12MiB", "csv"},
        {"--allocator caching", "pickle"},
        {"--allocator async", "hrt"},
    };
    const char *options = rows[_i].options;
    char words[WORDS_MAX], trace[PATH_TEXT_MAX];
    write_file("first.csv", rmm_log);
    bool fits = strstr(options, "vram") == NULL;
    snprintf(trace, sizeof trace, "%s/second.%s", program_home(), rows[_i].suffix);
    snprintf(words, sizeof words, "%s --trace %s", options, trace);
    json_t *first = replay_json(words, fits ? 0 : 1);
    snprintf(path, sizeof path, "%s", trace);
    json_t *second = replay_json(options, fits ? 0 : 1);
    const json_t *recorded = json_object_get(json_object_get(second, "trace"), "recorded");
    const json_t *memory = json_object_get(column(first, 0), "memory");
    ck_assert_int_eq(number(recorded, "peak_pool_bytes"), number(memory, "peak_pool_bytes"));
    ck_assert_int_eq(number(json_object_get(second, "trace"), "refused"),
                     number(column(first, 0), "failures_total"));
    static const char *const counters[] = {"peak_in_use_bytes", "peak_requested_bytes", "peak_pool_bytes",
                                           "largest_free_bytes", "allocations"};
    for (size_t k = 0; k < COUNT(counters); k++) {
        ck_assert_int_eq(number(memory, counters[k]),
                         number(json_object_get(column(second, 0), "memory"), counters[k]));
    }
    json_decref(first);
    json_decref(second);
}
END_TEST

// ---- columns --------------------------------------------------------------------------------------------------

START_TEST(sweeps_make_the_columns_that_concern_each_allocator)
{
    write_file("sweep.csv", rmm_log);
    json_t *d = replay_json("--allocator bfc,static --sweep allocator.growth=on,off "
                            "--sweep device.vram=64MiB,48MiB",
                            0);
    static const char *const kinds[] = {"bfc", "bfc", "bfc", "bfc", "static", "static"};
    static const json_int_t limits[] = {64, 48, 64, 48, 64, 48};
    ck_assert_uint_eq(json_array_size(json_object_get(d, "allocators")), COUNT(kinds));
    for (size_t k = 0; k < COUNT(kinds); k++) {
        ck_assert_str_eq(json_string_value(json_object_get(column(d, k), "name")), kinds[k]);
        ck_assert_int_eq(number(json_object_get(column(d, k), "memory"), "limit_bytes"), limits[k] << 20);
    }
    const json_t *knobs = json_object_get(column(d, 0), "knobs");
    ck_assert_str_eq(json_string_value(json_array_get(knobs, 0)), "device.vram=64MiB");
    ck_assert_str_eq(json_string_value(json_array_get(knobs, 1)), "allocator.growth=on");
    json_decref(d);
}
END_TEST

START_TEST(without_a_name_every_allocator_has_a_column)
{
    write_file("all.csv", rmm_log);
    json_t *d = replay_json("", 0);
    ck_assert_uint_ge(json_array_size(json_object_get(d, "allocators")), 2);
    for (size_t k = 0; k < json_array_size(json_object_get(d, "allocators")); k++) {
        const json_t *memory = json_object_get(column(d, k), "memory");
        ck_assert(json_is_null(json_object_get(memory, "limit_bytes")));
        ck_assert_int_ge(number(memory, "peak_pool_bytes"), number(memory, "peak_in_use_bytes"));
        ck_assert_int_ge(number(memory, "peak_in_use_bytes"), number(memory, "peak_requested_bytes"));
        ck_assert_int_eq(number(column(d, k), "failures_total"), 0);
    }
    json_decref(d);
}
END_TEST

// Every one of its counters, under its names.
START_TEST(pytorchs_statistics_are_whole)
{
    write_file("statistics.csv", rmm_log);
    json_t *d = replay_json("--allocator caching", 0);
    const json_t *statistics = json_object_get(column(d, 0), "statistics");
    ck_assert_uint_gt(json_object_size(statistics), 100);
    ck_assert_int_eq(number(statistics, "allocation.all.allocated"), 4);
    ck_assert_int_eq(number(statistics, "reserved_bytes.all.peak"),
                     number(json_object_get(column(d, 0), "memory"), "peak_pool_bytes"));
    ck_assert_int_eq(number(statistics, "num_ooms"), 0);
    json_decref(d);
}
END_TEST

START_TEST(failures_are_rows_of_the_file_and_the_replay_goes_on)
{
    write_file("fail.csv", rmm_log);
    json_t *d = replay_json("--allocator bfc -s device.vram=12MiB", 1);
    const json_t *failures = json_object_get(column(d, 0), "failures");
    ck_assert_int_eq(number(column(d, 0), "failures_total"), 1);
    ck_assert_uint_eq(json_array_size(failures), 1);
    ck_assert_int_eq(number(json_array_get(failures, 0), "event"), 4);
    ck_assert_int_eq(number(json_array_get(failures, 0), "requested_bytes"), 33554432);
    ck_assert_int_eq(number(json_object_get(column(d, 0), "memory"), "allocations"), 3);
    ck_assert_uint_ge(json_array_size(json_object_get(column(d, 0), "holes")), 1);
    ck_assert_str_eq(json_string_value(json_object_get(column(d, 0), "cause")), "capacity");
    json_decref(d);
    // A comparison in which one serves everything is a success.
    d = replay_json("--allocator bfc --sweep device.vram=12MiB,64MiB", 0);
    json_decref(d);
}
END_TEST

static void must_be_terms(const json_t *value)
{
    const char *key;
    const json_t *member;
    size_t k;
    json_array_foreach((json_t *)(uintptr_t)value, k, member)
    {
        must_be_terms(member);
    }
    json_object_foreach((json_t *)(uintptr_t)value, key, member)
    {
        ck_assert_msg(hr_term_find(key) != NULL, "%s is no term", key);
        if (strcmp(key, "statistics") != 0) { // those have the framework's own names
            must_be_terms(member);
        }
    }
}

START_TEST(every_field_is_a_term)
{
    write_file("terms.csv", rmm_log);
    json_t *d = replay_json("-s device.vram=12MiB", 1);
    must_be_terms(d);
    json_decref(d);
}
END_TEST

// ---- for people -----------------------------------------------------------------------------------------------

static const struct {
    const char *options;
    int exit_code;
    const char *printed[6];
} pages[] = {
    {"--allocator bfc -s device.vram=12MiB",
     1,
     {"  6 events: 4 allocations, at most 3 alive at once\n",
      "  alive at the peak 39.00 MiB: no allocator can do with less\n",
      "bfc ran out of memory at event 4\n  needed 32.00 MiB\n", "  capacity: the request needs 32.00 MiB",
      "none of them serves the whole trace"}},
    {"--allocator bfc,static",
     0,
     {"bfc p", "static p", "limit ", "serves the whole trace: every one of them",
      "static knows the whole trace beforehand"}},
    {"--allocator bfc --at-peak -s device.vram=100MiB",
     0,
     {"bfc at its peak, event 4: ", "  hole of ", "    behind "}},
    {"--allocator static -s device.vram=12MiB",
     1,
     {"static has a plan that does not fit\n  needed ", "had a limit of 12.00 MiB"}},
    {"--allocator bfc,static --sweep allocator.growth=on,off --sweep device.vram=12MiB,64MiB",
     0,
     {"growth ", "vram ", "of 6 serve the whole trace"}},
};

// Characters, not bytes.
static void assert_narrow(const char *text)
{
    size_t columns = 0;
    for (const char *c = text; *c != '\0'; c++) {
        columns = *c == '\n' ? 0 : columns + (((unsigned char)*c & 0xC0) != 0x80);
        ck_assert_msg(columns <= 80, "%.3000s", text);
    }
}

START_TEST(a_page_for_people_is_80_columns_wide)
{
    char words[WORDS_MAX];
    write_file("page.csv", rmm_log);
    snprintf(words, sizeof words, "replay %s %s", path, pages[_i].options);
    outcome o = program_run(words);
    assert_exit(&o, words, pages[_i].exit_code);
    for (size_t k = 0; k < COUNT(pages[_i].printed) && pages[_i].printed[k] != NULL; k++) {
        ck_assert_msg(strstr(o.out, pages[_i].printed[k]) != NULL, "%s\n%.3000s", pages[_i].printed[k],
                      o.out);
    }
    ck_assert_ptr_null(strchr(o.out, '\x1b'));
    assert_narrow(o.out);
    outcome_deinit(&o);
}
END_TEST

// A log as TensorFlow 2 prints it: 2 KiB, of which two pieces of 256 B are used, one of them in the middle.
static const char tensorflow_log[] = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.0KiB "
                                     "(rounded to 1024)requested by op conv1\n"
                                     "BFCAllocator dump for GPU_0_bfc\n"
                                     "Next region of size 2048\n"
                                     "InUse at 7f0000000000 of size 256 next 1\n"
                                     "Free  at 7f0000000100 of size 768 next 2\n"
                                     "InUse at 7f0000000400 of size 256 next 3\n"
                                     "Free  at 7f0000000500 of size 768 next 18446744073709551615\n"
                                     "total_region_allocated_bytes_: 2048 memory_limit_: 2048 available "
                                     "bytes: 0 curr_region_allocation_bytes_: 4096\n"
                                     "Stats: \n"
                                     "Limit:                            2048\n"
                                     "InUse:                             512\n"
                                     "MaxInUse:                          512\n"
                                     "NumAllocs:                           9\n"
                                     "MaxAllocSize:                      256\n";

START_TEST(a_recorded_heap_is_shown_and_packed_anew_under_its_limit)
{
    static const char *const printed[] = {
        "one heap, and not how it came about",
        "recorded heap: 1.50 KiB free in the pool, largest piece 768 B\n",
        "  ran out of memory, needed 1.00 KiB\n",
        "  hole of 768 B\n    behind a block (256 B",
        "  fragmentation: 1.50 KiB are free, but the largest piece is 768 B",
        "serves the whole trace: bfc\n",
    };
    char words[WORDS_MAX];
    write_file("heap.log", tensorflow_log);
    snprintf(words, sizeof words, "replay %s --allocator bfc", path);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    for (size_t k = 0; k < COUNT(printed); k++) {
        ck_assert_msg(strstr(o.out, printed[k]) != NULL, "%s\n%.3000s", printed[k], o.out);
    }
    outcome_deinit(&o);
    json_t *d = replay_json("--allocator bfc", 0);
    const json_t *recorded = json_object_get(json_object_get(d, "trace"), "recorded");
    ck_assert_int_eq(number(recorded, "limit_bytes"), 2048);
    ck_assert_int_eq(number(recorded, "largest_free_bytes"), 768);
    ck_assert_str_eq(json_string_value(json_object_get(recorded, "cause")), "fragmentation");
    ck_assert(json_is_null(json_object_get(column(d, 0), "cause")));
    ck_assert_int_eq(number(json_object_get(d, "trace"), "refused"), 1);
    ck_assert_int_eq(number(json_object_get(column(d, 0), "memory"), "limit_bytes"), 2048);
    json_decref(d);
}
END_TEST

START_TEST(names_of_a_stranger_do_not_reach_the_terminal_raw)
{
    char words[WORDS_MAX];
    write_file("names.csv", "time_ns,step,event,address,requested_bytes,allocated_bytes,tensor,stream\n"
                            "0,0,alloc,4096,99999999,99999999,bad\x1b[2J\xc2\x9b name,0\n");
    snprintf(words, sizeof words, "replay %s --allocator bfc -s device.vram=2MiB", path);
    outcome o = program_run(words);
    assert_exit(&o, words, 1);
    ck_assert_ptr_nonnull(strstr(o.out, "for bad?[2J?"));
    ck_assert_ptr_null(strchr(o.out, '\x1b'));
    outcome_deinit(&o);
}
END_TEST

// ---- what is wrong is said ------------------------------------------------------------------------------------

static const struct {
    const char *options;
    int exit_code;
    const char *said;
} wrong[] = {
    {"--allocator bcf", 2, "allocator.kind: needs one of"},
    {"--allocator bfc,", 2, "allocator.kind: needs one of"},
    {"-s batch.size=3", 2, "batch.size changes nothing in a replay"},
    {"--sweep device.kind=plan", 2, "device.kind changes nothing in a replay"},
    {"--sweep allocator.grwoth=on", 2,
     "there is no knob 'allocator.grwoth' — did you mean 'allocator.growth'?"},
    {"--sweep allocator.growth", 2, "--sweep needs KEY=VALUE,VALUE"},
    {"--sweep =on", 2, "--sweep needs KEY=VALUE,VALUE"},
    {"--sweep allocator.kind=bfc", 2, "allocator.kind is swept by --allocator"},
    {"--allocator bfc -s allocator.kind=direct", 2, "say the same: needed one, had both"},
    {"--allocator static -s allocator.growth=on", 2, "none of these allocators listens to it"},
    {"--allocator static --sweep allocator.growth=on,off", 2, "none of these allocators listens to it"},
    {"--sweep device.vram=1x", 2, "device.vram"},
    {"-s device.card=rtx9999", 2, "no card is called 'rtx9999'"},
    {"--trace x.csv", 2, "--trace needs one allocator, had "},
    {"--allocator bfc --trace x", 2, "--trace x: needed a file ending in"},
    {"--allocator bfc --trace /nowhere/x.csv", 5, "/nowhere/x.csv"},
    {"extra", 2, "replay takes at most 1 argument, had 'extra' too"},
    {"--sweep "
     "device.vram=1MiB,2MiB,3MiB,4MiB,5MiB,6MiB,7MiB,8MiB,9MiB --sweep "
     "allocator.fraction=0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8",
     2, "at most 64 combinations"},
};

START_TEST(bad_options_have_their_sentence)
{
    char words[WORDS_MAX];
    write_file("wrong.csv", rmm_log);
    snprintf(words, sizeof words, "replay %s %s", path, wrong[_i].options);
    outcome o = program_run(words);
    assert_exit(&o, words, wrong[_i].exit_code);
    ck_assert_msg(strstr(o.err, wrong[_i].said) != NULL, "headroom %s: %s", words, o.err);
    ck_assert_msg(strstr(o.err, "\n  try: ") != NULL, "headroom %s: %s", words, o.err);
    ck_assert_str_eq(o.out, "");
    outcome_deinit(&o);
}
END_TEST

START_TEST(a_drawn_heap_does_not_stand_beside_a_document)
{
    static const char words[] = "replay growth_boundary --allocator bfc --at-peak --json";
    outcome o = program_run(words);
    assert_exit(&o, words, 2);
    json_t *document = assert_json(&o, words);
    ck_assert_ptr_nonnull(
        strstr(json_string_value(json_object_get(document, "sentence")), "needed one, had both"));
    json_decref(document);
    outcome_deinit(&o);
}
END_TEST

// As it is, and with the knob that its words name.
static json_int_t bfc_failures(const char *words)
{
    outcome o = program_run(words);
    json_t *document = assert_json(&o, words);
    json_t *bfc = json_array_get(json_object_get(document, "allocators"), 0);
    json_int_t failures = (json_int_t)json_array_size(json_object_get(bfc, "failures"));
    json_decref(document);
    outcome_deinit(&o);
    return failures;
}

START_TEST(a_scenario_shows_what_it_claims_when_it_is_played_as_it_is)
{
    ck_assert_int_gt(bfc_failures("replay growth_boundary --allocator bfc --json"), 0);
    ck_assert_int_eq(bfc_failures("replay growth_boundary --allocator bfc --json -s allocator.growth=off"),
                     0);
    outcome o = program_run("replay growth_boundary");
    ck_assert_ptr_nonnull(strstr(o.out, "bfc ran out of memory"));
    outcome_deinit(&o);
}
END_TEST

START_TEST(a_file_of_no_known_kind_is_told_what_there_is)
{
    char words[WORDS_MAX];
    write_file("none.txt", "nothing of the kind\n");
    snprintf(words, sizeof words, "replay %s", path);
    outcome o = program_run(words);
    assert_exit(&o, words, 5);
    ck_assert_ptr_nonnull(strstr(o.err, "RMM"));
    ck_assert_ptr_nonnull(strstr(o.err, "minimalloc"));
    outcome_deinit(&o);
    o = program_run("replay /nowhere/at/all");
    assert_exit(&o, "replay /nowhere/at/all", 5);
    outcome_deinit(&o);
    o = program_run("replay");
    assert_exit(&o, "replay", 2);
    ck_assert_ptr_nonnull(strstr(o.err, "replay needs a TRACE"));
    outcome_deinit(&o);
}
END_TEST

// ---- a plan of a trace ----------------------------------------------------------------------------------------

// Every limit from what nothing holds to what all hold: the plan fits where the replay serves all of it, and its document is
// the replay's.
START_TEST(the_plan_of_a_trace_is_its_replay)
{
    static const char *const allocators[] = {"bfc", "caching", "direct", "async"};
    write_file("log.csv", rmm_log);
    for (size_t k = 0; k < COUNT(allocators); k++) {
        for (unsigned mib = 32; mib <= 60; mib += 4) {
            char words[WORDS_MAX];
            snprintf(words, sizeof words, "replay %s --json --allocator %s -s device.vram=%uMiB", path,
                     allocators[k], mib);
            outcome replay = program_run(words);
            snprintf(words, sizeof words, "plan %s --json -s allocator.kind=%s -s device.vram=%uMiB", path,
                     allocators[k], mib);
            outcome plan = program_run(words);
            ck_assert_str_eq(plan.out, replay.out);
            ck_assert_int_eq(plan.exit_code, replay.exit_code);
            outcome_deinit(&plan);
            snprintf(words, sizeof words, "plan %s -s allocator.kind=%s -s device.vram=%uMiB", path,
                     allocators[k], mib);
            plan = program_run(words);
            const char *answer = replay.exit_code == 0 ? "fits: " : "does not fit: ";
            ck_assert_msg(strncmp(plan.out, answer, strlen(answer)) == 0, "%s: %.80s", words, plan.out);
            outcome_deinit(&replay);
            outcome_deinit(&plan);
        }
    }
}
END_TEST

static bool card_holds(const char *card)
{
    char words[WORDS_MAX];
    snprintf(words, sizeof words, "replay %s --allocator bfc -s device.card=%s", path, card);
    outcome o = program_run(words);
    const bool held = o.exit_code == 0;
    outcome_deinit(&o);
    return held;
}

static const char *smallest_card(char *text)
{
    static const char says[] = "the smallest card that holds it is ";
    char *card = strstr(text, says);
    ck_assert_msg(card != NULL, "%s", text);
    card += sizeof says - 1;
    card[strcspn(card, ",")] = '\0';
    return card;
}

// 23 GB at once: no card of less memory than the one that is named, and that one does.
START_TEST(the_smallest_card_that_holds_a_trace_is_named)
{
    write_file("large.csv", "Thread,Time,Action,Pointer,Size,Stream\n"
                            "1,10:00:00:000001,allocate,0x1000,13000000000,0\n"
                            "1,10:00:00:000002,allocate,0x2000,10000000000,0\n");
    char words[WORDS_MAX];
    snprintf(words, sizeof words, "plan %s", path);
    outcome o = program_run(words), all = program_run("cards --json");
    json_t *cards = assert_json(&all, "cards --json");
    const char *named = smallest_card(o.out);
    ck_assert_msg(card_holds(named), "%s does not hold it", named);
    json_int_t most = 0;
    size_t k = 0, smaller = 0;
    const json_t *card = NULL;
    json_array_foreach(cards, k, card)
    {
        if (strcmp(json_string_value(json_object_get(card, "name")), named) == 0) {
            most = number(card, "vram_bytes");
        }
    }
    json_array_foreach(cards, k, card)
    {
        const char *name = json_string_value(json_object_get(card, "name"));
        const json_t *bytes = json_object_get(card, "vram_bytes");
        if (json_is_integer(bytes) && json_integer_value(bytes) < most &&
            json_integer_value(bytes) > 20000000000) {
            smaller++;
            ck_assert_msg(!card_holds(name), "%s holds it and is smaller than %s", name, named);
        }
    }
    ck_assert_uint_gt(smaller, 0);
    json_decref(cards);
    outcome_deinit(&o);
    outcome_deinit(&all);
}
END_TEST

// PyTorch's own allocator where it is PyTorch's own snapshot; and presets are no traces.
START_TEST(a_plan_knows_a_trace_from_a_preset)
{
    char words[WORDS_MAX];
    snprintf(path, sizeof path, "%s/demo.pickle", program_home());
    snprintf(words, sizeof words, "run demo --steps 1 -s device.kind=plan --trace %s", path);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    outcome_deinit(&o);
    snprintf(words, sizeof words, "plan %s --json", path);
    o = program_run(words);
    json_t *d = assert_json(&o, words);
    ck_assert_str_eq(json_string_value(json_object_get(column(d, 0), "name")), "caching");
    json_decref(d);
    outcome_deinit(&o);
    snprintf(words, sizeof words, "plan %s --listing", path);
    o = program_run(words);
    assert_exit(&o, words, 2);
    ck_assert_ptr_nonnull(strstr(o.err, "is a trace"));
    outcome_deinit(&o);
    snprintf(words, sizeof words, "run %s", path);
    o = program_run(words);
    assert_exit(&o, words, 2);
    ck_assert_ptr_nonnull(strstr(o.err, "is read as a trace"));
    ck_assert_ptr_nonnull(strstr(o.err, "headroom plan "));
    outcome_deinit(&o);
    o = program_run("plan presets/demo.yaml --json");
    d = assert_json(&o, "plan presets/demo.yaml");
    ck_assert_ptr_nonnull(json_object_get(d, "memory"));
    json_decref(d);
    outcome_deinit(&o);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("replay command");
    tcase_add_loop_test(tests, the_replay_of_a_run_takes_what_the_run_took, 0, 2);
    tcase_add_test(tests, what_stays_of_the_pool_is_said);
    tcase_add_loop_test(tests, what_a_replay_did_is_a_trace_too, 0, 6);
    tcase_add_test(tests, sweeps_make_the_columns_that_concern_each_allocator);
    tcase_add_test(tests, without_a_name_every_allocator_has_a_column);
    tcase_add_test(tests, pytorchs_statistics_are_whole);
    tcase_add_test(tests, failures_are_rows_of_the_file_and_the_replay_goes_on);
    tcase_add_test(tests, every_field_is_a_term);
    tcase_add_loop_test(tests, a_page_for_people_is_80_columns_wide, 0, COUNT(pages));
    tcase_add_test(tests, a_recorded_heap_is_shown_and_packed_anew_under_its_limit);
    tcase_add_test(tests, names_of_a_stranger_do_not_reach_the_terminal_raw);
    tcase_add_loop_test(tests, bad_options_have_their_sentence, 0, COUNT(wrong));
    tcase_add_test(tests, a_drawn_heap_does_not_stand_beside_a_document);
    tcase_add_test(tests, a_file_of_no_known_kind_is_told_what_there_is);
    tcase_add_test(tests, a_scenario_shows_what_it_claims_when_it_is_played_as_it_is);
    tcase_add_test(tests, the_plan_of_a_trace_is_its_replay);
    tcase_add_test(tests, the_smallest_card_that_holds_a_trace_is_named);
    tcase_add_test(tests, a_plan_knows_a_trace_from_a_preset);
    Suite *suite = suite_create("replay command");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    program_remove_home();
    return failed != 0;
}
