// SPDX-License-Identifier: Apache-2.0
// The table at the head of device/cuda/products.c: which layers of the presets have rows that are no whole sixteen bytes, so
// that what rides on their products may have to be done beside them.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/knobs.h"
#include "headroom/preset.h"

#include "device/device.h"
#include "model/model.h"
#include "program/compile.h"

enum { ROW_BYTES = 16, BIAS = 1, SUMS = 2, ACTIVATION = 4 };

static const struct {
    const char *model;
    int64_t columns;  // 0: every row is whole
    unsigned besides; // BIAS …
} table[] = {{"bert_base", 0, 0},      {"cifar10_separable_cnn", 10, BIAS | SUMS},
             {"gpt2_124m", 0, 0},      {"lstm_lm_medium", 0, 0},
             {"mlp", 10, BIAS | SUMS}, {"mobilenet_v2", 0, 0},
             {"resnet18", 0, 0},       {"resnet18_cifar", 10, BIAS | SUMS},
             {"resnet50", 0, 0},       {"unet", 2, BIAS | SUMS},
             {"vgg16", 0, 0},          {"vit_b16", 0, 0}};
enum { ROWS = sizeof table / sizeof *table };

static hr_status ask_nothing(void *context, const op_query *q, uint64_t limit, target_answer *out,
                             hr_err *err)
{
    (void)context, (void)q, (void)limit, (void)err;
    *out = (target_answer){0};
    return HR_OK;
}

static const hr_target target = {.name = "rows", .key = 21, .ask = ask_nothing, .fuses = device_fuses};

static bool is_product(const op_query *q)
{
    const bool convolution = q->op == HR_OP_CONV2D || q->op == HR_OP_CONV2D_BWD_WEIGHTS;
    return q->op == HR_OP_DENSE || q->op == HR_OP_DENSE_BWD_WEIGHTS ||
           (convolution && q->attr.kernel_h == 1 && q->attr.kernel_w == 1 && q->attr.groups == 1);
}

// What rides on the product; `columns` of what it is over.
static unsigned rides(const op_query *q, int64_t *columns)
{
    const bool forward = q->op == HR_OP_DENSE || q->op == HR_OP_CONV2D;
    const op_operand *over = forward ? &q->out[0] : &q->in[1];
    *columns = over->shape.dim[over->shape.rank - 1];
    if (!forward) {
        return q->out_count > 1 ? SUMS : 0;
    }
    return (q->in_count > 2 ? BIAS : 0) | (q->attr.act != HR_ACT_NONE ? ACTIVATION : 0);
}

static program *compile(const char *name, const char *policy)
{
    char path[128];
    hr_err err = {0};
    hr_preset *preset = NULL;
    hr_model *model = NULL;
    program *p = NULL;
    (void)snprintf(path, sizeof path, "presets/models/%s.yaml", name);
    ck_assert_msg(hr_preset_open(path, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    hr_knobs knobs = *hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "execution.mode=graph", &err), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, policy, &err), HR_OK);
    ck_assert_int_eq(model_create(preset, hr_preset_knobs(preset), &model, NULL, &err), HR_OK);
    ck_assert_msg(program_compile(model, &knobs, PROGRAM_TRAIN, 8, &target, &p, &err) == HR_OK, "%s",
                  err.sentence);
    model_destroy(model);
    hr_preset_close(preset);
    return p;
}

START_TEST(only_these_layers_have_rows_that_are_not_whole)
{
    static const char *const policies[] = {"precision.policy=float32", "precision.policy=mixed_bfloat16"};
    for (int k = 0; k < 2; k++) {
        program *p = compile(table[_i].model, policies[k]);
        unsigned besides = 0;
        for (uint32_t n = 0; n < p->instr_count; n++) {
            op_query q;
            int64_t columns = 0;
            program_query(p, &p->instrs[n], &q);
            const unsigned found = is_product(&q) ? rides(&q, &columns) : 0;
            if (found != 0 && columns * (int64_t)dtype_bytes((hr_dtype)q.in[0].dtype) % ROW_BYTES != 0) {
                ck_assert_int_eq(columns, table[_i].columns);
                besides |= found;
            }
        }
        ck_assert_uint_eq(besides, table[_i].besides);
        program_destroy(p);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("product_rows");
    TCase *c = tcase_create("presets");
    tcase_add_loop_test(c, only_these_layers_have_rows_that_are_not_whole, 0, ROWS);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
