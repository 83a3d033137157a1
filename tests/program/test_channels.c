// SPDX-License-Identifier: Apache-2.0
// Which filters may go, of models written for it; and where their places lie, judged by the same model read with one filter less.
#include <inttypes.h>

#include "base/host_mem.h"
#include "model/channels.h"
#include "model/layer_kind.h"
#include "program/model_from_text.h"

#define HEAD                                                                                                 \
    "device: {vram: 1GiB}\n"                                                                                 \
    "%s"                                                                                                     \
    "model:\n"                                                                                               \
    "  name: bare\n"                                                                                         \
    "  input: {shape: [8, 8, 4]}\n"                                                                          \
    "  classes: 4\n"                                                                                         \
    "  loss: softmax_cross_entropy\n"                                                                        \
    "  layers:\n%s"

enum { TEXT_MAX = 4096, NAMES_MAX = 256 };

static const struct {
    const char *layers, *may_go;
} cases[] = {
    {"    - {name: a, kind: conv2d, filters: 6, kernel: 3}\n"
     "    - {kind: batch_norm}\n    - {kind: relu}\n    - {kind: dropout, rate: 0.5}\n    - {kind: max_pool, "
     "size: 2}\n"
     "    - {name: b, kind: conv2d, filters: 5, kernel: 1, activation: gelu}\n    - {kind: flatten}\n"
     "    - {name: c, kind: dense, units: 7, activation: tanh}\n    - {name: d, kind: dense, units: 4}\n",
     "a b c"},
    // what f makes of 0 is something
    {"    - {name: a, kind: conv2d, filters: 6, kernel: 3, activation: sigmoid}\n"
     "    - {name: b, kind: conv2d, filters: 6, kernel: 3, activation: softplus}\n"
     "    - {name: c, kind: conv2d, filters: 6, kernel: 3, activation: hard_sigmoid}\n"
     "    - {kind: global_avg_pool}\n    - {name: d, kind: dense, units: 4}\n",
     ""},
    // of a residual block the inner convolution
    {"    - {name: a, kind: conv2d, filters: 6, kernel: 3, padding: same}\n"
     "    - {name: b, kind: conv2d, filters: 5, kernel: 3, padding: same, activation: relu}\n"
     "    - {name: c, kind: conv2d, filters: 6, kernel: 3, padding: same}\n"
     "    - {kind: add, inputs: [a, c]}\n"
     "    - {kind: global_avg_pool}\n    - {name: d, kind: dense, units: 4}\n",
     "b"},
    // depthwise kernels follow; groups that were written do not
    {"    - {name: a, kind: conv2d, filters: 6, kernel: 3}\n"
     "    - {kind: depthwise_conv2d, kernel: 3, multiplier: 2}\n"
     "    - {name: b, kind: separable_conv2d, filters: 6, kernel: 1}\n"
     "    - {name: c, kind: conv2d, filters: 6, kernel: 1, groups: 6}\n"
     "    - {name: d, kind: conv2d_transpose, filters: 3, kernel: 2, stride: 2}\n"
     "    - {kind: flatten}\n    - {name: e, kind: dense, units: 4}\n",
     "a d"},
    // concatenation along the channels, flattened
    {"    - {name: a, kind: conv2d, filters: 6, kernel: 1}\n"
     "    - {name: b, kind: conv2d, filters: 3, kernel: 1, input: input}\n"
     "    - {kind: concat, inputs: [a, input, b], axis: -1}\n    - {kind: batch_norm}\n    - {kind: "
     "flatten}\n"
     "    - {kind: batch_norm}\n    - {name: c, kind: dense, units: 4}\n",
     "a b"},
    // along another axis
    {"    - {name: a, kind: conv2d, filters: 6, kernel: 1}\n"
     "    - {name: b, kind: conv2d, filters: 6, kernel: 1, input: input}\n"
     "    - {kind: concat, inputs: [a, b], axis: 1}\n    - {kind: flatten}\n    - {name: c, kind: dense, "
     "units: 4}\n",
     ""},
    // compared, normalised, weighed, or turned along the channels
    {"    - {name: a, kind: conv2d, filters: 6, kernel: 1}\n    - {kind: group_norm, groups: 2}\n"
     "    - {name: b, kind: conv2d, filters: 6, kernel: 1}\n    - {kind: layer_norm}\n"
     "    - {name: c, kind: conv2d, filters: 6, kernel: 1}\n    - {kind: softmax}\n"
     "    - {name: d, kind: conv2d, filters: 6, kernel: 1}\n    - {kind: channel_shuffle, groups: 2}\n"
     "    - {name: e, kind: conv2d, filters: 6, kernel: 1}\n    - {kind: slice, axis: -1, from: 0, count: "
     "3}\n"
     "    - {name: f, kind: conv2d, filters: 6, kernel: 1}\n    - {kind: reshape, shape: [384]}\n"
     "    - {name: g, kind: dense, units: 4}\n",
     ""},
    // a gate of its own result
    {"    - {name: a, kind: conv2d, filters: 6, kernel: 1}\n    - {kind: global_avg_pool}\n"
     "    - {name: b, kind: dense, units: 3, activation: relu}\n"
     "    - {name: c, kind: dense, units: 6, activation: sigmoid}\n"
     "    - {name: m, kind: multiply, inputs: [a, c]}\n    - {kind: flatten}\n    - {name: d, kind: dense, "
     "units: 4}\n",
     "b"},
    // weights of two layers, and two readers
    {"    - {name: a, kind: dense, units: 4}\n    - {name: b, kind: dense, units: 4, share: a}\n"
     "    - {name: c, kind: dense, units: 5}\n    - {name: e, kind: dense, units: 3}\n"
     "    - {name: f, kind: dense, units: 3, input: c}\n    - {kind: add, inputs: [e, f]}\n"
     "    - {kind: flatten}\n    - {name: d, kind: dense, units: 4}\n",
     "c"},
    // attention and recurrence are as wide as what they read, or share it out
    {"    - {kind: reshape, shape: [16, 16]}\n    - {name: a, kind: dense, units: 6, activation: gelu}\n"
     "    - {kind: attention, heads: 2}\n    - {name: b, kind: dense, units: 6, activation: relu}\n"
     "    - {name: c, kind: lstm, units: 5}\n    - {kind: flatten}\n    - {name: d, kind: dense, units: 4}\n",
     "b"},
};

static hr_model *model_with(const char *layers, const char *widths)
{
    char words[TEXT_MAX];
    ck_assert_int_lt(snprintf(words, sizeof words, HEAD, widths, layers), TEXT_MAX);
    return model_from_text(words);
}

static model_channels channels_of(const hr_model *m)
{
    hr_err err = {0};
    model_channels c;
    ck_assert_int_eq(model_channels_of(m, &c, &err), HR_OK);
    return c;
}

START_TEST(filters_that_only_other_weights_read_may_go)
{
    char names[NAMES_MAX] = "";
    hr_model *m = model_with(cases[_i].layers, "");
    model_channels c = channels_of(m);
    for (uint32_t k = 0; k < m->param_count; k++) {
        if (c.may_go[k]) {
            const size_t length = strlen(names);
            (void)snprintf(names + length, sizeof names - length, "%s%s", length > 0 ? " " : "",
                           m->layers[m->params[k].layer].name);
        }
    }
    ck_assert_str_eq(names, cases[_i].may_go);
    model_channels_deinit(&c);
    model_destroy(m);
}
END_TEST

// What the places of one filter of `kernel` leave of a parameter.
static hr_shape without_one(const hr_model *m, const model_channels *c, uint32_t kernel, uint32_t param)
{
    hr_shape shape = m->params[param].shape;
    const int64_t filters = model_filters(m, c, kernel);
    for (uint32_t k = 0; k < c->parts.count; k++) {
        const channel_part *part = &c->parts.data[k];
        const int64_t side = m->params[param].shape.dim[part->axis];
        for (int64_t place = 0; part->param == param && part->kernel == kernel && place < side; place++) {
            shape.dim[part->axis] -= channel_filter_at(part, filters, place) == filters - 1;
        }
    }
    return shape;
}

START_TEST(a_narrower_layer_has_the_places_that_are_left)
{
    hr_model *m = model_with(cases[_i].layers, "");
    model_channels c = channels_of(m);
    for (uint32_t kernel = 0; kernel < m->param_count; kernel++) {
        char widths[NAMES_MAX];
        if (!c.may_go[kernel]) {
            continue;
        }
        (void)snprintf(widths, sizeof widths, "widths: {%s: %" PRId64 "}\n",
                       m->layers[m->params[kernel].layer].name, model_filters(m, &c, kernel) - 1);
        hr_model *narrower = model_with(cases[_i].layers, widths);
        ck_assert_uint_eq(narrower->param_count, m->param_count);
        ck_assert_uint_lt(narrower->parameters, m->parameters);
        for (uint32_t k = 0; k < m->param_count; k++) {
            const hr_shape left = without_one(m, &c, kernel, k);
            ck_assert_msg(shape_equal(&left, &narrower->params[k].shape), "%s under %s", m->params[k].name,
                          widths);
        }
        model_destroy(narrower);
    }
    model_channels_deinit(&c);
    model_destroy(m);
}
END_TEST

static const struct {
    const char *widths, *sentence;
} refusals[] = {
    {"widths: [a]\n", ":2:9: widths is a mapping of layers such as {conv1: 16, dense: 32}"},
    {"widths: {a: 0}\n", ":2:13: the width of layer 'a' must be from 1 to its 6 filters, had 0"},
    {"widths: {a: 7}\n", ":2:13: the width of layer 'a' must be from 1 to its 6 filters, had 7"},
    {"widths: {c: x}\n", ":2:13: the width of 'c' needs a whole number"},
    {"widths: {max_pol: 3}\n", ":2:10: the model has no layer 'max_pol' — did you mean 'max_pool'?"},
    {"widths: {input: 3}\n", ":2:10: the model has no layer 'input'"},
    {"widths: {relu: 3}\n",
     ":2:10: layer 'relu' (relu) has no filters or units of its own: it is as wide as what it reads"},
};

START_TEST(widths_that_do_not_suit_are_refused_where_they_stand)
{
    char words[TEXT_MAX], *problems = NULL;
    hr_err err = {0};
    hr_model *m = NULL;
    (void)snprintf(words, sizeof words, HEAD, refusals[_i].widths, cases[0].layers);
    hr_preset *preset = try_preset_from_text(words, &err);
    if (preset != NULL) {
        ck_assert_int_eq(model_create(preset, hr_preset_knobs(preset), &m, &problems, &err), HR_MODEL);
        ck_assert_msg(strstr(problems, refusals[_i].sentence) != NULL, "%s", problems);
        hr_preset_problems_free(problems);
    }
    ck_assert_msg(strstr(err.sentence, refusals[_i].sentence) != NULL, "%s", err.sentence);
    hr_preset_close(preset);
}
END_TEST

// What a width brings about further down is said where it comes about, with the width; what is wrong without it is not blamed on it.
static const struct {
    const char *widths, *layers, *sentence, *lacks;
} consequences[] = {
    {"widths: {a: 4}\n",
     "    - {name: a, kind: conv2d, filters: 6, kernel: 3}\n    - {kind: relu}\n"
     "    - {name: b, kind: conv2d, filters: 6, kernel: 1, groups: 3}\n    - {kind: flatten}\n"
     "    - {name: d, kind: dense, units: 4}\n",
     ":11:7: layer 'b' (conv2d): ", NULL},
    {"widths: {a: 4}\n",
     "    - {name: a, kind: conv2d, filters: 6, kernel: 1}\n"
     "    - {name: b, kind: conv2d, filters: 6, kernel: 1}\n    - {kind: add, inputs: [a, b]}\n"
     "    - {kind: flatten}\n    - {name: d, kind: dense, units: 4}\n",
     "layer 'add' (add): ", NULL},
    {"widths: {b: 4}\n",
     "    - {name: a, kind: conv2d, filters: 6, kernel: 1}\n"
     "    - {name: b, kind: conv2d, filters: 6, kernel: 1, groups: 3}\n    - {kind: flatten}\n"
     "    - {name: d, kind: dense, units: 4}\n",
     "layer 'b' (conv2d): ", NULL},
    {"widths: {d: 3}\n", "    - {kind: flatten}\n    - {name: d, kind: dense, units: 4}\n", ":", NULL},
    {"widths: {a: 4}\n",
     "    - {name: a, kind: conv2d, filters: 6, kernel: 1}\n    - {kind: relu, slope: 3}\n"
     "    - {kind: flatten}\n    - {name: d, kind: dense, units: 4}\n",
     "layer 'relu' (relu): has no attribute 'slope'", "(width "},
    {"widths: {a: 4}\n",
     "    - {name: a, kind: conv2d, kernel: 1}\n    - {kind: flatten}\n    - {name: d, kind: dense, units: "
     "4}\n",
     "layer 'a' (conv2d): needs filters", "width"},
};

START_TEST(what_a_width_brings_about_names_it)
{
    char words[TEXT_MAX], *problems = NULL, width[64];
    hr_err err = {0};
    hr_model *m = NULL;
    const char *widths = consequences[_i].widths;
    (void)snprintf(words, sizeof words, HEAD, widths, consequences[_i].layers);
    hr_preset *preset = try_preset_from_text(words, &err);
    ck_assert_msg(preset != NULL, "%s", err.sentence);
    ck_assert_int_eq(model_create(preset, hr_preset_knobs(preset), &m, &problems, &err), HR_MODEL);
    ck_assert_msg(strstr(err.sentence, consequences[_i].sentence) != NULL, "%s", err.sentence);
    ck_assert_msg(strstr(problems, consequences[_i].sentence) != NULL, "%s", problems);
    if (consequences[_i].lacks == NULL) {
        (void)snprintf(width, sizeof width, "(width %.1s of ", strchr(widths + 8, ':') + 2);
        ck_assert_msg(strstr(err.sentence, width) != NULL, "%s", err.sentence);
        ck_assert_msg(strstr(err.sentence, ":2)") != NULL, "%s", err.sentence);
    } else {
        ck_assert_msg(strstr(problems, consequences[_i].lacks) == NULL, "%s", problems);
    }
    hr_preset_problems_free(problems);
    hr_preset_close(preset);
}
END_TEST

START_TEST(a_section_by_another_name_is_told)
{
    char words[TEXT_MAX];
    hr_err err = {0};
    (void)snprintf(words, sizeof words, HEAD, "width: {a: 4}\n", cases[0].layers);
    ck_assert_ptr_null(try_preset_from_text(words, &err));
    ck_assert_msg(strstr(err.sentence, ":2:1: unknown key 'width' — did you mean 'widths'?") != NULL, "%s",
                  err.sentence);
}
END_TEST

START_TEST(memory_that_is_short_is_said)
{
    hr_model *m = model_with(cases[4].layers, "");
    hr_status status = HR_NOMEM;
    uint64_t nth = 1;
    for (; status != HR_OK && nth < 100; nth++) {
        model_channels c;
        const int64_t live = hr_host_mem_live();
        hr_host_mem_fail_at(nth);
        status = model_channels_of(m, &c, NULL);
        hr_host_mem_fail_at(0);
        ck_assert(status == HR_OK || status == HR_NOMEM);
        model_channels_deinit(&c);
        ck_assert(hr_host_mem_live() == live);
    }
    ck_assert_uint_gt(nth, 4);
    ck_assert_int_eq(status, HR_OK);
    model_destroy(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("channels");
    TCase *all = tcase_create("models");
    tcase_add_loop_test(all, filters_that_only_other_weights_read_may_go, 0,
                        (int)(sizeof cases / sizeof *cases));
    tcase_add_loop_test(all, a_narrower_layer_has_the_places_that_are_left, 0,
                        (int)(sizeof cases / sizeof *cases));
    tcase_add_loop_test(all, widths_that_do_not_suit_are_refused_where_they_stand, 0,
                        (int)(sizeof refusals / sizeof *refusals));
    tcase_add_loop_test(all, what_a_width_brings_about_names_it, 0,
                        (int)(sizeof consequences / sizeof *consequences));
    tcase_add_test(all, a_section_by_another_name_is_told);
    tcase_add_test(all, memory_that_is_short_is_said);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
