// SPDX-License-Identifier: Apache-2.0
// Heaps that a run's trace carries: at the first refusal, also when a dry run found it, and at the end; chunks keep the
// names of their tensors whatever program was running.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/engine.h"
#include "headroom/trace.h"
#include "headroom/units.h"

#include "base/host_mem.h"
#include "formats/formats.h"

static char folder[64], file[96];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/headroom-heaps-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/heap.pb", folder);
}

static void remove_folder(void)
{
    (void)unlink(file);
    ck_assert_int_eq(rmdir(folder), 0);
}

// Runs the demo on the plan device under these knobs, with a dump; returns what state it ends in.
static hr_engine_state run(const char *const *pairs, uint64_t *peak_in_use_bytes)
{
    hr_preset *preset = NULL;
    hr_engine *e = NULL;
    hr_trace *out = NULL;
    hr_report report;
    bool idle = false;
    hr_err err = {0};
    ck_assert_int_eq(hr_preset_open("presets/demo.yaml", false, &preset, NULL, &err), HR_OK);
    hr_knobs knobs = *hr_preset_knobs(preset);
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    ck_assert_int_eq(hr_engine_create(preset, &knobs, &(hr_engine_options){0}, &e, NULL), HR_OK);
    ck_assert_msg(hr_trace_open(e, file, &out, &err) == HR_OK, "%s", err.sentence);
    const hr_command go = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = 2};
    ck_assert_int_eq(hr_engine_command(e, &go, NULL), HR_OK);
    while (!idle) {
        hr_engine_advance(e, &idle);
    }
    const hr_engine_state state = hr_engine_get_state(e);
    ck_assert_int_eq(hr_engine_report(e, &report, NULL), HR_OK);
    *peak_in_use_bytes = report.memory.peak_in_use_bytes;
    hr_report_deinit(&report);
    ck_assert_msg(hr_trace_close(out, &err) == HR_OK, "%s", err.sentence);
    hr_engine_destroy(e);
    hr_preset_close(preset);
    return state;
}

static trace read_heap(void)
{
    trace t;
    hr_err err = {0};
    ck_assert_msg(trace_read(file, &t, &err) == HR_OK, "%s", err.sentence);
    ck_assert_ptr_nonnull(t.heaps[0]);
    return t;
}

// Names of what is in use, and how many of the chunks have none.
static unsigned count_named(const heap_snapshot *p, const char *part, unsigned *unnamed)
{
    unsigned found = 0;
    *unnamed = 0;
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        const char *name = p->chunks.data[k].in_use ? intern_text(&p->names, p->chunks.data[k].tensor) : "";
        *unnamed += name == NULL ? 1 : 0;
        found += name != NULL && strstr(name, part) != NULL ? 1 : 0;
    }
    return found;
}

START_TEST(the_heap_of_a_dry_run_that_does_not_fit_is_the_one_of_its_refusal)
{
    static const char *const kinds[] = {"allocator.kind=bfc", "allocator.growth=on", "allocator.kind=async"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const char *const pairs[] = {"device.kind=plan", "batch.size=256", kinds[k], NULL};
        uint64_t peak_bytes;
        unsigned unnamed;
        ck_assert_int_eq(run(pairs, &peak_bytes), HR_ENGINE_OOM); // tables that stay with the process
        const int64_t live = hr_host_mem_live();
        ck_assert_int_eq(run(pairs, &peak_bytes), HR_ENGINE_OOM);
        trace t = read_heap();
        const heap_counters *c = &t.heaps[0]->counters;
        ck_assert_uint_gt(c->in_use_bytes, 30 * HR_MIB); // the step had begun
        ck_assert_uint_le(c->in_use_bytes, 64 * HR_MIB);
        ck_assert_uint_ge(count_named(t.heaps[0], "/weights", &unnamed), 2);
        ck_assert_uint_ge(count_named(t.heaps[0], "/out", &unnamed), 1);
        ck_assert_uint_eq(unnamed, 0);
        trace_deinit(&t);
        (void)unlink(file);
        ck_assert_int_eq(hr_host_mem_live() - live, 0);
    }
}
END_TEST

START_TEST(at_the_end_only_what_persists_is_left)
{
    const char *const pairs[] = {"device.kind=plan", NULL};
    uint64_t peak_bytes;
    unsigned unnamed;
    ck_assert_int_eq(run(pairs, &peak_bytes), HR_ENGINE_IDLE);
    trace t = read_heap();
    ck_assert_uint_gt(t.heaps[0]->counters.in_use_bytes, 0);
    ck_assert_uint_lt(t.heaps[0]->counters.in_use_bytes, peak_bytes / 2);
    ck_assert_uint_eq(count_named(t.heaps[0], ":grad", &unnamed), 0);
    ck_assert_uint_eq(unnamed, 0);
    trace_deinit(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("exporter_engine");
    TCase *cases = tcase_create("heaps");
    tcase_add_checked_fixture(cases, make_folder, remove_folder);
    tcase_add_test(cases, the_heap_of_a_dry_run_that_does_not_fit_is_the_one_of_its_refusal);
    tcase_add_test(cases, at_the_end_only_what_persists_is_left);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
