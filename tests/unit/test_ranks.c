// SPDX-License-Identifier: Apache-2.0
// What ranks say of a layer's weights is what compress.low_rank then makes of them: the bytes of its factors and their error, of
// dense layers and of convolutions, rank by rank; where it cannot be computed the bytes alone.
#define SMALL_ENGINE_LAYERS                                                                                  \
    "    - {kind: conv2d, filters: 8, kernel: 3, stride: 4, activation: relu}\n"                             \
    "    - {kind: conv2d, filters: 12, kernel: 3, stride: 2, activation: relu}\n"                            \
    "    - {kind: flatten}\n"                                                                                \
    "    - {kind: dense, units: 24, activation: relu}\n"                                                     \
    "    - {name: wide, kind: dense, units: 400}\n"                                                          \
    "    - {name: wider, kind: dense, units: 400}\n"                                                         \
    "    - {name: head, kind: dense, units: 10}\n"

#include <math.h>

#include "headroom/deploy.h"

#include "unit/small_engine.h"

enum { POINTS_MAX = HR_RANK_POINTS };

static char images[160], path[128], save[160];

typedef struct told {
    hr_event_rank at[POINTS_MAX];
    size_t count;
} told;

static void hear(void *context, const hr_event *event)
{
    told *t = context;
    if (event->kind == HR_EVENT_RANK) {
        ck_assert_uint_lt(t->count, POINTS_MAX);
        t->at[t->count++] = event->u.rank;
    }
}

static hr_status ask(hr_engine *e, const char *layer, hr_err *err)
{
    hr_command ranks = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RANKS};
    (void)snprintf(ranks.text, sizeof ranks.text, "%s", layer);
    return hr_engine_command(e, &ranks, err);
}

static double error_of(const hr_report *r, const char *layer)
{
    size_t k = 0;
    while (k < r->model.layer_count && strcmp(r->model.layers[k].name, layer) != 0) {
        k++;
    }
    ck_assert_uint_lt(k, r->model.layer_count);
    return r->model.layers[k].factor_error;
}

static hr_engine *trained(const char *more, told *t)
{
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("w.safetensors", path));
    const char *const pairs[] = {write_images(16, 8, images), save, "device.vram=32MiB", more, NULL};
    hr_engine *e = create(pairs, &(hr_engine_options){.sink = hear, .sink_context = t});
    run_steps(e, 2);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    return e;
}

static const char *const layers[] = {"conv2d_1", "dense", "head"};

// With rank r the save is decomposed: parameters and errors are the point's.
static void compare(const char *layer, const hr_event_rank *at)
{
    char rank[64], resume[160];
    (void)snprintf(rank, sizeof rank, "compress.low_rank=%u", at->rank);
    (void)snprintf(resume, sizeof resume, "train.resume=%s", path);
    hr_engine *e = create((const char *const[]){images, resume, "device.vram=32MiB", rank, NULL}, NULL);
    run_steps(e, 1);
    hr_report r = report_of(e);
    size_t k = 0;
    while (strcmp(r.model.layers[k].name, layer) != 0) {
        k++;
    }
    const double error = error_of(&r, layer);
    const uint64_t biases = strcmp(layer, "head") == 0 ? 10 : strcmp(layer, "dense") == 0 ? 24 : 12;
    ck_assert_uint_eq((r.model.layers[k].parameters - biases) * sizeof(float), at->bytes);
    ck_assert_msg(at->bytes < at->dense_bytes ? fabs(error - at->error) < 1e-6
                                              : isnan(error) && at->error == 0,
                  "%s, rank %u: %.9g, and %.9g of the factors", layer, at->rank, at->error, error);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
}

START_TEST(bytes_and_errors_are_those_of_the_factors)
{
    told t = {.count = 0};
    hr_err err = {0};
    hr_engine *e = trained("train.seed=3", &t);
    ck_assert_msg(ask(e, layers[_i], &err) == HR_OK, "%s", err.sentence);
    hr_engine_destroy(e);
    ck_assert_uint_gt(t.count, 4);
    size_t fewer = 0;
    for (size_t k = 0; k < t.count; k++) {
        const hr_event_rank *at = &t.at[k];
        ck_assert_uint_eq(at->point, k);
        ck_assert_uint_eq(at->points, t.count);
        ck_assert(k == 0 ? at->rank == 1 : at->rank > at[-1].rank && at->error <= at[-1].error);
        fewer += at->bytes < at->dense_bytes;
        ck_assert((at->bytes < at->dense_bytes) == (at->rank < at->break_even));
        compare(layers[_i], at);
    }
    ck_assert_uint_gt(fewer, 1);
    ck_assert_uint_eq(t.at[t.count - 1].rank, t.at[0].full);
}
END_TEST

START_TEST(zeros_are_those_of_the_layer)
{
    told t = {.count = 0};
    hr_engine *e = trained("compress.prune=polynomial:0.75:0.75:0:2:1", &t);
    ck_assert_int_eq(ask(e, "dense", NULL), HR_OK);
    ck_assert_uint_gt(t.count, 0);
    ck_assert_double_eq_tol(t.at[0].zeros, 0.75, 1e-3);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(what_cannot_be_computed_has_bytes_alone_and_says_why)
{
    static const struct {
        const char *layer, *more, *sentence, *hint;
        bool trains;
        size_t points; // at least
    } rows[] = {
        {"wider", "train.seed=1", "would take about", "headroom export", true, 8},
        {"dense", "train.seed=1", "has no weights yet", "", false, 4},
        {"flatten", "train.seed=1", "no weights that a product could stand for", "a dense layer", true, 0},
        {"dense", "compress.low_rank=2", "made of factors already", "-s compress.low_rank=none", true, 0},
        {"nowhere", "train.seed=1", "has no layer nowhere", "", true, 0},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        told t = {.count = 0};
        hr_err err = {0};
        hr_engine *e = rows[k].trains ? trained(rows[k].more, &t)
                                      : create((const char *const[]){rows[k].more, NULL},
                                               &(hr_engine_options){.sink = hear, .sink_context = &t});
        ck_assert_int_eq(ask(e, rows[k].layer, &err), HR_STATE);
        ck_assert_msg(strstr(err.sentence, rows[k].sentence) != NULL, "%s", err.sentence);
        ck_assert_msg(strstr(err.hint, rows[k].hint) != NULL, "%s", err.hint);
        ck_assert_uint_ge(t.count, rows[k].points);
        ck_assert(rows[k].points > 0 || t.count == 0);
        for (size_t i = 0; i < t.count; i++) {
            ck_assert(isnan(t.at[i].error) && t.at[i].bytes > 0);
        }
        hr_engine_destroy(e);
    }
}
END_TEST

static hr_deploy exported(const char *from, const char *to, const char *more)
{
    hr_err err = {0};
    hr_deploy d;
    hr_knobs knobs = *hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, images, &err), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.vram=32MiB", &err), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, more, &err), HR_OK);
    const hr_deploy_request request = {.save = from, .out = to, .replaces = true, .ranks = true};
    ck_assert_msg(hr_deploy_run(preset, &knobs, &request, &d, &err) == HR_OK, "%s", err.sentence);
    return d;
}

// Time is no matter there.
START_TEST(an_export_has_every_layer)
{
    told t = {.count = 0};
    hr_engine_destroy(trained("train.seed=3", &t));
    hr_deploy d = exported(path, NULL, "train.seed=3");
    size_t layer_count = 0;
    for (size_t k = 0; k < d.rank_count; k++) {
        layer_count += d.ranks[k].at.point == 0;
        ck_assert(isfinite(d.ranks[k].at.error));
    }
    ck_assert_uint_eq(layer_count, 6); // all but flatten
    hr_deploy_deinit(&d);
}
END_TEST

// Averages, where a save has them, are what is deployed.
START_TEST(ranks_are_of_what_is_deployed)
{
    told t = {.count = 0};
    char out[128];
    hr_engine_destroy(trained("optimizer.ema=0.5", &t));
    hr_deploy save_of = exported(path, file_in("averages.safetensors", out), "optimizer.ema=0.5");
    hr_deploy again = exported(out, NULL, "optimizer.ema=none");
    ck_assert(save_of.averaged && !again.averaged);
    ck_assert_uint_eq(save_of.rank_count, again.rank_count);
    for (size_t k = 0; k < again.rank_count; k++) {
        ck_assert_double_eq(save_of.ranks[k].at.error, again.ranks[k].at.error);
    }
    hr_deploy_deinit(&save_of);
    hr_deploy_deinit(&again);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ranks");
    TCase *tc = tcase_create("ranks");
    tcase_set_timeout(tc, 120);
    tcase_add_unchecked_fixture(tc, open_preset, close_preset);
    tcase_add_loop_test(tc, bytes_and_errors_are_those_of_the_factors, 0, sizeof layers / sizeof *layers);
    tcase_add_test(tc, zeros_are_those_of_the_layer);
    tcase_add_test(tc, what_cannot_be_computed_has_bytes_alone_and_says_why);
    tcase_add_test(tc, an_export_has_every_layer);
    tcase_add_test(tc, ranks_are_of_what_is_deployed);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
