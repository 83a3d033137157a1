// SPDX-License-Identifier: Apache-2.0
// Promises of headroom/terms.h: the table is sorted, whole, and knows every name that the engine prints.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/category.h"
#include "headroom/engine.h"
#include "headroom/event.h"
#include "headroom/report.h"
#include "headroom/report_fields.h"
#include "headroom/terms.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

START_TEST(names_are_sorted_and_found)
{
    size_t count;
    const hr_term *terms = hr_terms(&count);
    ck_assert_uint_gt(count, 100);
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(i == 0 || strcmp(terms[i - 1].name, terms[i].name) < 0, "%s", terms[i].name);
        ck_assert_ptr_eq(hr_term_find(terms[i].name), &terms[i]);
    }
}
END_TEST

static void assert_printable(const char *name, const char *text)
{
    ck_assert_msg(text[0] != '\0' && text[strlen(text) - 1] != '.', "%s", name);
    for (; *text != '\0'; text++) {
        ck_assert_msg(*text >= ' ' || (unsigned char)*text >= 0x80, "%s", name);
    }
}

START_TEST(every_row_is_whole_and_fits_a_line)
{
    size_t count;
    const hr_term *terms = hr_terms(&count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_ptr_nonnull(terms[i].unit);
        assert_printable(terms[i].name, terms[i].line);
        ck_assert_msg(strlen(terms[i].line) <= 160, "%s", terms[i].name);
        const char *optional[] = {terms[i].formula, terms[i].tensorflow, terms[i].pytorch,
                                  terms[i].nvidia_smi, terms[i].lesson};
        for (size_t j = 0; j < COUNT(optional); j++) {
            if (optional[j] != NULL) {
                assert_printable(terms[i].name, optional[j]);
            }
        }
    }
}
END_TEST

START_TEST(units_are_of_one_set)
{
    static const char *const known[] = {"", "B", "fraction", "s", "ns", "1/s", "FLOP", "samples"};
    size_t count;
    const hr_term *terms = hr_terms(&count);
    for (size_t i = 0; i < count; i++) {
        size_t j = 0;
        while (j < COUNT(known) && strcmp(known[j], terms[i].unit) != 0) {
            j++;
        }
        ck_assert_msg(j < COUNT(known), "%s: %s", terms[i].name, terms[i].unit);
        size_t length = strlen(terms[i].name);
        if (length > 6 && strcmp(terms[i].name + length - 6, "_bytes") == 0) {
            ck_assert_str_eq(terms[i].unit, "B");
        }
    }
}
END_TEST

START_TEST(label_finds_the_field_it_shows)
{
    ck_assert_str_eq(hr_term_find("largest free")->name, "largest_free_bytes");
    ck_assert_str_eq(hr_term_find("Largest free")->name, "largest_free_bytes");
    ck_assert_str_eq(hr_term_find("in use")->name, "in_use_bytes");
    ck_assert_str_eq(hr_term_find("pool")->name, "pool_bytes");
    ck_assert_str_eq(hr_term_find("batch size")->name, "batch_size");
    ck_assert_str_eq(hr_term_find("Effective batch")->name, "effective_batch");
    ck_assert_str_eq(hr_term_find("examples/s")->unit, "1/s");
}
END_TEST

START_TEST(what_is_no_term_is_not_found)
{
    char lengthy[300];
    memset(lengthy, 'a', sizeof lengthy);
    lengthy[sizeof lengthy - 1] = '\0';
    ck_assert_ptr_null(hr_term_find(lengthy));
    lengthy[63] = '\0'; // the longest that is looked up
    ck_assert_ptr_null(hr_term_find(lengthy));
    ck_assert_ptr_null(hr_term_find(""));
    ck_assert_ptr_null(hr_term_find("_bytes"));
    ck_assert_ptr_null(hr_term_find("zzz"));
}
END_TEST

START_TEST(every_name_the_engine_prints_is_a_term)
{
    for (int i = 0; i < HR_CATEGORY_COUNT; i++) {
        const hr_term *term = hr_term_find(hr_category_name((hr_category)i));
        ck_assert_msg(term != NULL, "%s", hr_category_name((hr_category)i));
        ck_assert_int_eq(term->line[0], hr_category_letter((hr_category)i));
        ck_assert_int_eq(term->line[1], ':');
    }
    for (int i = 0; i < HR_PHASE_COUNT; i++) {
        ck_assert_ptr_nonnull(hr_term_find(hr_phase_name((hr_phase)i)));
    }
    for (int i = HR_EVENT_NONE + 1; i < HR_EVENT_COUNT; i++) {
        ck_assert_msg(hr_term_find(hr_event_name((hr_event_kind)i)) != NULL, "%s",
                      hr_event_name((hr_event_kind)i));
    }
    for (int i = HR_OOM_NONE + 1; i < HR_OOM_CAUSE_COUNT; i++) {
        ck_assert_ptr_nonnull(hr_term_find(hr_oom_cause_name((hr_oom_cause)i)));
    }
    for (int i = 0; i < HR_ENGINE_STATE_COUNT; i++) {
        ck_assert_ptr_nonnull(hr_term_find(hr_engine_state_name((hr_engine_state)i)));
    }
}
END_TEST

static void check_fields(const hr_field *fields)
{
    for (const hr_field *f = fields; !hr_field_is_end(f); f++) {
        ck_assert_msg(f->name == NULL || hr_term_find(f->name) != NULL, "%s is not a term", f->name);
        if (f->fields != NULL) {
            check_fields(f->fields);
        }
    }
}

START_TEST(every_field_of_a_report_is_a_term)
{
    check_fields(hr_report_fields());
}
END_TEST

START_TEST(every_field_of_the_files_is_a_term)
{
    static const char *const fields[] = {
        "schema",

        // headroom.error/1
        "error",
        "sentence",
        "try",
        "exit_code",
        // headroom.calibration/1, what-if
        "families",
        "goes_on",
        "line_seconds",
        "model_error",
        "resumed",
        "spread",
        "kept",
        "refusal",
        "noise",
        "models",
        "batch",
        "planned_seconds",
        // cards
        "family",
        "year",
        "multiprocessors",
        "vram_bytes",
        "context_bytes",
        "granularity_bytes",
        "compute_capability",
        "memory_bytes_per_second",
        "link_bytes_per_second",
        "float32_flops",
        "tf32_flops",
        "float16_flops",
        "bfloat16_flops",
        "float64_flops",
        "source",
        "measured_seconds",
        "start_seconds",
        "flops_per_second",
        "bytes_per_second",
        "step_seconds",
        // pack, replay, traces
        "height_bytes",
        "lower_bound_bytes",
        "optimal",
        "offsets",
        "id",
        "offset",
        "failures",
        "failures_total",
        "served",
        "event",
        "trace",
        "file",
        "format",
        "rows",
        "events",
        "allocations",
        "blocks",
        "devices",
        "lost_frees",
        "refused",
        "recorded",
        "allocators",
        "statistics",
        "holes",
        "joined_bytes",
        "age",
        "before",
        "after",
        "capacity_bytes",

        "gap",
        "time_ns",
        "address",
        "allocated_bytes",
        "stream",
        // columns of a table of times
        "instr",
        "phase",
        "family",
        "dtype",
        "implementation",
        "behind",
        "results",
        "operands",
        "flops",
        "bytes_moved",
        "workspace_bytes",
        "steps",
        "took_ns",
        "least_ns",
        "estimated_ns",
        // the workbench
        "batch size",
        "loss",
        "accuracy",
        "epoch",
        "peak",
        "limit",
        "in use",
        "pool",
        "largest free",
        "waste",
        "requested",
        "left",
        "wait",
        "queue",
        "host",
        "effective batch",
        "learning rate",
        "it/s",
        "measured",
        "planned",
        "simulated",
        "estimated",
    };
    for (size_t i = 0; i < COUNT(fields); i++) {
        ck_assert_msg(hr_term_find(fields[i]) != NULL, "%s", fields[i]);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("terms");
    tcase_add_test(tests, names_are_sorted_and_found);
    tcase_add_test(tests, every_row_is_whole_and_fits_a_line);
    tcase_add_test(tests, units_are_of_one_set);
    tcase_add_test(tests, label_finds_the_field_it_shows);
    tcase_add_test(tests, what_is_no_term_is_not_found);
    tcase_add_test(tests, every_name_the_engine_prints_is_a_term);
    tcase_add_test(tests, every_field_of_a_report_is_a_term);
    tcase_add_test(tests, every_field_of_the_files_is_a_term);
    Suite *suite = suite_create("terms");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
