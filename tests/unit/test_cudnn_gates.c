// SPDX-License-Identifier: Apache-2.0
// The table of cuDNN's known faults: which versions and cases are refused, and that every row has its source.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#if HEADROOM_HAVE_CUDA

#include "device_cuda/gates.h"

static const struct {
    cudnn_case c;
    bool refused;
} cases[] = {
    {{.version = 90900, .compute_major = 9, .queries = 128, .keys = 128}, false},
    {{.version = 91000, .compute_major = 9, .queries = 128, .keys = 128}, true},
    {{.version = 91001, .compute_major = 8, .queries = 128, .keys = 128, .backward = true}, true},
    {{.version = 91002, .compute_major = 9, .queries = 128, .keys = 128, .backward = true}, false},
    {{.version = 91500, .compute_major = 9, .queries = 128, .keys = 100, .backward = true}, true},
    {{.version = 91500, .compute_major = 9, .queries = 100, .keys = 128, .backward = true}, false},
    {{.version = 91500, .compute_major = 9, .queries = 100, .keys = 100}, false},
    {{.version = 91501, .compute_major = 9, .queries = 128, .keys = 100, .backward = true}, false},
    {{.version = 91900, .compute_major = 9, .queries = 1, .keys = 1, .backward = true}, true},
    {{.version = 91900, .compute_major = 9, .queries = 1, .keys = 2, .backward = true}, false},
    {{.version = 91799,
      .compute_major = 10,
      .queries = 128,
      .keys = 128,
      .backward = true,
      .deterministic = true},
     true},
    {{.version = 91800,
      .compute_major = 10,
      .queries = 128,
      .keys = 128,
      .backward = true,
      .deterministic = true},
     false},
    {{.version = 91700,
      .compute_major = 9,
      .queries = 128,
      .keys = 128,
      .backward = true,
      .deterministic = true},
     false},
    {{.kind = GATE_CONVOLUTION, .version = 91900, .compute_major = 9, .backward = true, .is_float32 = true},
     true},
    {{.kind = GATE_CONVOLUTION, .version = 91900, .compute_major = 9, .is_float32 = true}, false},
    {{.kind = GATE_CONVOLUTION, .version = 91900, .compute_major = 9, .backward = true}, false},
    {{.kind = GATE_CONVOLUTION,
      .version = 91900,
      .compute_major = 9,
      .backward = true,
      .is_float32 = true,
      .pads_evenly = true},
     false},
    {{.kind = GATE_CONVOLUTION, .version = 91000, .compute_major = 9, .queries = 128, .keys = 128}, false},
    {{.kind = GATE_CONVOLUTION,
      .version = 91900,
      .compute_major = 9,
      .backward = true,
      .of_data = true,
      .odd_channels = true},
     true},
    {{.kind = GATE_CONVOLUTION, .version = 91900, .compute_major = 9, .backward = true, .odd_channels = true},
     false},
    {{.kind = GATE_CONVOLUTION, .version = 91900, .compute_major = 9, .backward = true, .of_data = true},
     false},
    {{.kind = GATE_CONVOLUTION,
      .version = 91900,
      .compute_major = 9,
      .backward = true,
      .of_data = true,
      .odd_channels = true,
      .pads_evenly = true},
     false},
};

START_TEST(a_gate_is_as_wide_as_its_fault)
{
    ck_assert_msg((cudnn_gate_of(&cases[_i].c) != NULL) == cases[_i].refused, "case %d", _i);
}
END_TEST

START_TEST(every_gate_says_what_and_whence)
{
    uint32_t count = 0;
    const cudnn_gate *gates = cudnn_gates(&count);
    ck_assert_uint_gt(count, 0);
    for (uint32_t k = 0; k < count; k++) {
        ck_assert(gates[k].first <= gates[k].last && (gates[k].forward || gates[k].backward));
        ck_assert_uint_gt(strlen(gates[k].fault), 20);
        ck_assert_uint_gt(strlen(gates[k].source), 20);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cudnn_gates");
    TCase *c = tcase_create("gates");
    tcase_add_loop_test(c, a_gate_is_as_wide_as_its_fault, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(c, every_gate_says_what_and_whence);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#else

enum { SKIPPED = 77 };

int main(void)
{
    return SKIPPED; // CUDA is not built
}

#endif
