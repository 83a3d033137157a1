// SPDX-License-Identifier: Apache-2.0
// Promises of --style: our own verdict first, then the framework's words, of a plan and of a run alike; nothing where
// memory sufficed; and a sentence for what cannot be.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

#define DEMO_TOO_LARGE "demo -s batch.size=256"

static const char *must_say(const outcome *o, const char *part)
{
    const char *at = strstr(o->out, part);
    ck_assert_msg(at != NULL, "no '%s' in what was said", part);
    return at;
}

static outcome started(const char *words, int exit_code)
{
    outcome o = program_run(words);
    assert_exit(&o, words, exit_code);
    return o;
}

START_TEST(the_verdict_comes_first_then_tensorflows_dump)
{
    outcome plan = started("plan " DEMO_TOO_LARGE " --style tensorflow", 1);
    const char *verdict = must_say(&plan, "\ndoes not fit: capacity: ");
    const char *dump =
        must_say(&plan, "\nin the words of tensorflow:\nAllocator (GPU_0_bfc) ran out of memory");
    ck_assert(verdict < dump);
    ck_assert(dump < must_say(&plan, "BFCAllocator dump for GPU_0_bfc\n"));
    (void)must_say(&plan, "Limit:                        67108864\n");
    (void)must_say(&plan,
                   "and type uint8 on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n");
    outcome run = started("run " DEMO_TOO_LARGE " -s device.kind=reference --style tensorflow", 1);
    (void)must_say(&run, "BFCAllocator dump for GPU_0_bfc\n");
    outcome_deinit(&plan);
    outcome_deinit(&run);
}
END_TEST

START_TEST(pytorch_says_it_in_a_sentence)
{
    outcome o = started("plan " DEMO_TOO_LARGE " --style pytorch", 1);
    (void)must_say(&o, "\nin the words of pytorch:\nCUDA out of memory. Tried to allocate ");
    (void)must_say(&o, " GPU 0 has a total capacity of 64.00 MiB of which 0 bytes is free. ");
    outcome_deinit(&o);
}
END_TEST

START_TEST(our_own_style_adds_nothing)
{
    outcome plain = started("plan " DEMO_TOO_LARGE, 1);
    outcome own = started("plan " DEMO_TOO_LARGE " --style headroom", 1);
    ck_assert_str_eq(own.out, plain.out);
    outcome_deinit(&plain);
    outcome_deinit(&own);
    plain = started("plan demo", 0);
    own = started("plan demo --style tensorflow", 0); // it fits
    ck_assert_str_eq(own.out, plain.out);
    outcome_deinit(&plain);
    outcome_deinit(&own);
}
END_TEST

START_TEST(what_cannot_be_has_a_sentence)
{
    static const struct {
        const char *words, *sentence;
    } cases[] = {
        {"plan demo --style tensorlfow", "there is no style 'tensorlfow' — did you mean 'tensorflow'?"},
        {"run demo --style jax", "there is no style 'jax'"},
        {"plan demo --style tensorflow --listing", "--listing stands alone"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        outcome o = started(cases[k].words, 2);
        ck_assert_msg(strstr(o.err, cases[k].sentence) != NULL, "%s", o.err);
        outcome_deinit(&o);
    }
}
END_TEST

START_TEST(a_style_does_not_stand_beside_a_document)
{
    static const char *const commands[] = {"plan demo --style pytorch --json",
                                           "replay growth_boundary --style pytorch --json"};
    outcome o = started(commands[_i], 2);
    json_t *document = assert_json(&o, commands[_i]);
    ck_assert_ptr_nonnull(
        strstr(json_string_value(json_object_get(document, "sentence")), "needed one, had both"));
    json_decref(document);
    outcome_deinit(&o);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("style");
    TCase *cases = tcase_create("style");
    tcase_add_test(cases, the_verdict_comes_first_then_tensorflows_dump);
    tcase_add_test(cases, pytorch_says_it_in_a_sentence);
    tcase_add_test(cases, our_own_style_adds_nothing);
    tcase_add_test(cases, what_cannot_be_has_a_sentence);
    tcase_add_loop_test(cases, a_style_does_not_stand_beside_a_document, 0, 2);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    program_remove_home();
    return failed != 0;
}
