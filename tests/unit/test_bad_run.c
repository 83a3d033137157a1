// SPDX-License-Identifier: Apache-2.0
// A run over images some of which cannot be read: with pipeline.bad=skip it says so once, counts what it replaced, and learns the
// same on any number of threads; with stop it ends with the file's name.
#include "data/image_tree.h"
#include "unit/small_engine.h"

enum { IMAGES = 24, BAD = 3, EPOCH_STEPS = 3 };

static data_folder tree; // beside the preset

static void open_all(void)
{
    char name[64];
    open_preset();
    (void)snprintf(tree.path, sizeof tree.path, "%s", folder);
    for (uint32_t n = 0; n < IMAGES; n++) {
        const bool is_bad = n % (IMAGES / BAD) == 1;
        tree_write(&tree, tree_name("train", 3, n, name),
                   is_bad ? tree_text("no image") : tree_noise(n, 40, 36));
        tree_write(&tree, tree_name("val", 3, n, name), tree_noise(n, 36, 40));
    }
}

typedef struct told {
    uint32_t lines;
    char last[256];
} told;

static void listen(void *context, const hr_event *event)
{
    told *t = context;
    if (event->kind == HR_EVENT_LOG) {
        t->lines++;
        (void)snprintf(t->last, sizeof t->last, "%s", event->u.note.text);
    }
}

static hr_engine *run_epoch(const char *bad, const char *threads, told *t)
{
    char path[160];
    hr_engine_options options = {.sink = listen, .sink_context = t};
    (void)snprintf(path, sizeof path, "pipeline.path=%s", folder);
    const char *const pairs[] = {"pipeline.source=images", path, bad, threads, NULL};
    hr_engine *e = create(pairs, &options);
    run_steps(e, EPOCH_STEPS);
    return e;
}

START_TEST(what_was_replaced_is_counted_and_told_once)
{
    static const char *const threads[] = {"pipeline.map_threads=1", "pipeline.map_threads=3"};
    char weights[2][128];
    for (int k = 0; k < 2; k++) {
        told t = {0};
        hr_engine *e = run_epoch("pipeline.bad=skip", threads[k], &t);
        hr_report r = report_of(e);
        ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_IDLE);
        ck_assert_uint_eq(r.host.bad_samples, BAD);
        ck_assert_uint_eq(t.lines, 1);
        ck_assert_ptr_nonnull(strstr(t.last, ".png: needed a JPEG or PNG"));
        (void)snprintf(weights[k], sizeof weights[k], "%s", r.train.weights_sha256);
        hr_report_deinit(&r);
        hr_engine_destroy(e);
    }
    ck_assert_str_eq(weights[0], weights[1]);
}
END_TEST

START_TEST(stop_names_the_file)
{
    told t = {0};
    hr_engine *e = run_epoch("pipeline.bad=stop", "pipeline.map_threads=2", &t);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_FAILED);
    ck_assert_ptr_nonnull(strstr(hr_engine_error(e)->sentence,
                                 ".png: needed a JPEG or PNG image, had 8 bytes of something else"));
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bad_run");
    TCase *cases = tcase_create("bad_run");
    tcase_add_checked_fixture(cases, open_all, close_preset);
    tcase_add_test(cases, what_was_replaced_is_counted_and_told_once);
    tcase_add_test(cases, stop_names_the_file);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
