// SPDX-License-Identifier: Apache-2.0
// Pass fuse on MobileNetV2: every RELU6 goes behind its normalisation, for a target that can do that and for no other,
// and what backward does is the same.
#include <check.h>
#include <stdlib.h>

#include "headroom/event.h"
#include "headroom/knobs.h"
#include "headroom/preset.h"

#include "model/model.h"
#include "program/compile.h"

static hr_status ask_nothing(void *context, const op_query *q, uint64_t limit, target_answer *out,
                             hr_err *err)
{
    (void)context, (void)q, (void)limit, (void)err;
    *out = (target_answer){0};
    return HR_OK;
}

static bool fuses_all(void *context, hr_op op, hr_act act)
{
    (void)context, (void)act;
    return op == HR_OP_BATCH_NORM || op == HR_OP_CONV2D || op == HR_OP_ADD;
}

static bool fuses_relu_only(void *context, hr_op op, hr_act act)
{
    return act == HR_ACT_RELU && fuses_all(context, op, act);
}

static const hr_target all = {.name = "all", .key = 11, .ask = ask_nothing, .fuses = fuses_all};
static const hr_target relu_only = {.name = "relu", .key = 12, .ask = ask_nothing, .fuses = fuses_relu_only};

static program *compile(const char *fuse, const char *mode, const hr_target *target)
{
    hr_err err = {0};
    hr_preset *preset = NULL;
    hr_model *model = NULL;
    program *p = NULL;
    ck_assert_msg(hr_preset_open("presets/models/mobilenet_v2_tiny.yaml", false, &preset, NULL, &err) ==
                      HR_OK,
                  "%s", err.sentence);
    hr_knobs knobs = *hr_preset_knobs(preset);
    ck_assert(hr_knobs_set_pair(&knobs, fuse, &err) == HR_OK &&
              hr_knobs_set_pair(&knobs, mode, &err) == HR_OK);
    ck_assert(model_create(preset, &model, NULL, &err) == HR_OK);
    ck_assert_msg(program_compile(model, &knobs, PROGRAM_TRAIN, 2, target, &p, &err) == HR_OK, "%s",
                  err.sentence);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
    model_destroy(model);
    hr_preset_close(preset);
    return p;
}

static unsigned count(const program *p, hr_op op, int32_t act)
{
    unsigned sum = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        sum += p->instrs[n].op == op && p->instrs[n].attr.act == act;
    }
    return sum;
}

START_TEST(relu6_goes_behind_its_normalisation)
{
    program *fused = compile("execution.fuse=on", "execution.mode=graph", &all);
    program *apart = compile("execution.fuse=off", "execution.mode=graph", &all);
    program *other = compile("execution.fuse=on", "execution.mode=graph", &relu_only);
    const unsigned activations = count(apart, HR_OP_RELU6, HR_ACT_NONE);
    ck_assert_uint_gt(activations, 5);
    ck_assert_uint_eq(count(fused, HR_OP_RELU6, HR_ACT_NONE), 0);
    ck_assert_uint_eq(count(fused, HR_OP_BATCH_NORM, HR_ACT_RELU6), activations);
    ck_assert_uint_eq(count(apart, HR_OP_BATCH_NORM, HR_ACT_RELU6), 0);
    ck_assert_uint_eq(count(other, HR_OP_RELU6, HR_ACT_NONE), activations);
    for (hr_op op = 0; op < HR_OP_COUNT; op++) {
        const bool forward =
            op == HR_OP_RELU6 || op == HR_OP_BATCH_NORM || op == HR_OP_ALLOC || op == HR_OP_FREE;
        ck_assert_msg(forward || count(fused, op, HR_ACT_NONE) == count(apart, op, HR_ACT_NONE), "%s",
                      op_name(op));
    }
    ck_assert_uint_eq(count(fused, HR_OP_RELU6_BWD, HR_ACT_NONE), activations);
    ck_assert_uint_eq(fused->saved_for_backward_bytes, apart->saved_for_backward_bytes);
    program_destroy(fused);
    program_destroy(apart);
    program_destroy(other);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fuse");
    TCase *c = tcase_create("fuse");
    tcase_add_test(c, relu6_goes_behind_its_normalisation);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
