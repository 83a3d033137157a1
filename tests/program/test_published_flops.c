// SPDX-License-Identifier: Apache-2.0
// Promise: the products of a forward pass are as many as published, to 1 %.
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "headroom/knobs.h"

#include "program/model_checks.h"

// Multiply-adds of one sample in 1e9: `_ops` of torchvision 0.29's weights (torchvision/models/*.py), which counts
// convolutions and matrix products and is rounded to three decimals.
static const struct {
    const char *name;
    double giga_macs;
} published[] = {
    {"resnet18", 1.814},           {"resnet50", 4.089},        {"resnext50", 4.230},
    {"densenet121", 2.834},        {"efficientnet_b0", 0.386}, {"efficientnet_b4", 4.394},
    {"mobilenet_v3_large", 0.217}, {"regnet_y_1_6gf", 1.612},  {"vgg16", 15.470},
    {"mobilenet_v2", 0.301},       {"vit_b16", 17.564},        {"convnext_t", 4.456},
    {"convnext_b", 15.355},        {"swin_t", 4.491},
};

static op_operand operand_of(const hr_model *m, model_ref ref)
{
    return (op_operand){.shape = ref.is_param ? m->params[ref.index].shape : m->values[ref.index].shape,
                        .dtype = HR_F32};
}

static bool is_product(hr_op op)
{
    const cost_family family = (cost_family)op_row_of(op)->traits.cost;
    return family == COST_CONV || family == COST_PRODUCT || family == COST_ATTENTION;
}

static double giga_macs_of(const hr_model *m)
{
    uint64_t flops = 0;
    for (uint32_t i = 0; i < m->node_count; i++) {
        const model_node *n = &m->nodes[i];
        op_query q = {.op = n->op, .in_count = (uint16_t)n->in_count, .out_count = (uint16_t)n->out_count};
        q.attr = n->attr;
        for (uint32_t k = 0; k < n->in_count; k++) {
            q.in[k] = operand_of(m, n->in[k]);
        }
        for (uint32_t k = 0; k < n->out_count; k++) {
            q.out[k] = operand_of(m, (model_ref){.index = n->out[k]});
        }
        flops += is_product(n->op) ? op_flops(&q) : 0;
    }
    return (double)flops / 2e9;
}

START_TEST(multiply_adds_are_the_published_ones)
{
    char path[128];
    ck_assert_int_lt(snprintf(path, sizeof path, "presets/models/%s.yaml", published[_i].name), 128);
    hr_preset *preset = NULL;
    hr_model *model = NULL;
    hr_err err = {0};
    ck_assert_msg(hr_preset_open(path, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(model_create(preset, hr_preset_knobs(preset), &model, NULL, &err) == HR_OK, "%s",
                  err.sentence);
    const double ours = giga_macs_of(model);
    ck_assert_msg(fabs(ours - published[_i].giga_macs) <= 0.01 * published[_i].giga_macs,
                  "%s: %.4f of %.3f published", published[_i].name, ours, published[_i].giga_macs);
    model_destroy(model);
    hr_preset_close(preset);
}
END_TEST

int main(void)
{
    setenv("HEADROOM_DATA", ".", 1); // tests start at the root of the tree
    Suite *suite = suite_create("published_flops");
    TCase *cases = tcase_create("models");
    tcase_add_loop_test(cases, multiply_adds_are_the_published_ones, 0, COUNT(published));
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0 || COUNT(published) == 0;
}
