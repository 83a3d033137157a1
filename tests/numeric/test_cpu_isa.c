// SPDX-License-Identifier: Apache-2.0
// What the cpu device makes of a processor's facts: machines as a table, and this one.
#include <check.h>
#include <string.h>

#include "headroom/devices.h"

#include "device_cpu/gemm.h"
#include "device_cpu/isa.h"
#include "device_cpu/onednn.h"

enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25, TILES_SAVED = 3 << 17, AVX_SAVED = 7 };

typedef struct machine {
    const char *name;
    uint32_t features; // leaf 7, EDX
    uint32_t palettes; // leaf 0x1D, EAX
    uint64_t saved;
    bool permits;
    const char *onednn, *dnnl; // what the user set
    isa_cause cause;
    bool without_tiles;
    const char *says;
    int minor; // of oneDNN 2; 0: one that knows every word
} machine;

#define AMX (AMX_TILE | AMX_BF16 | AMX_INT8)

static const machine machines[] = {
    {"no AMX", 0, 0, AVX_SAVED, false, NULL, NULL, ISA_NOTHING_AMISS, false, "", 0},
    {"Sapphire Rapids", AMX, 1, AVX_SAVED | TILES_SAVED, true, NULL, NULL, ISA_NOTHING_AMISS, false, "", 0},
    {"AMX without palette", AMX, 0, AVX_SAVED | TILES_SAVED, true, NULL, NULL, ISA_NO_PALETTE, true,
     "CPUID leaf 0x1D", 0},
    {"bf16 tiles only, without palette", AMX_TILE | AMX_BF16, 0, AVX_SAVED | TILES_SAVED, true, NULL, NULL,
     ISA_NO_PALETTE, true, "CPUID leaf 0x1D", 0},
    {"an older kernel", AMX, 1, AVX_SAVED, false, NULL, NULL, ISA_TILES_NOT_SAVED, true, "XCR0", 0},
    {"half of the state", AMX, 1, AVX_SAVED | 1 << 17, true, NULL, NULL, ISA_TILES_NOT_SAVED, true, "XCR0",
     0},
    {"a sandbox that forbids it", AMX, 1, AVX_SAVED | TILES_SAVED, false, NULL, NULL, ISA_TILES_FORBIDDEN,
     true, "arch_prctl", 0},
    {"the user's", AMX, 0, AVX_SAVED | TILES_SAVED, true, "AVX2", NULL, ISA_USERS, false,
     "ONEDNN_MAX_CPU_ISA=AVX2 says how far; the processor announces AMX and has no palette", 0},
    {"the user's under the old name", AMX, 1, AVX_SAVED | TILES_SAVED, true, NULL, "avx512_core", ISA_USERS,
     false, "DNNL_MAX_CPU_ISA=avx512_core says how far", 0},
    {"the new name comes first", 0, 0, AVX_SAVED, false, "AVX", "AVX2", ISA_USERS, false,
     "ONEDNN_MAX_CPU_ISA=AVX ", 0},
    {"an empty one is none", AMX, 0, AVX_SAVED, true, "", NULL, ISA_NO_PALETTE, true, "kept from AMX", 0},
    {"a word that oneDNN does not know", AMX, 0, AVX_SAVED, true, "AVX3", NULL, ISA_NO_PALETTE, true,
     "kept from AMX", 0},
    {"a word that nobody knows, and no AMX", 0, 0, AVX_SAVED, false, "AVX3", NULL, ISA_NOTHING_AMISS, false,
     "ONEDNN_MAX_CPU_ISA=AVX3 is no word of this oneDNN", 0},
    {"a word that this oneDNN does not know yet", AMX, 0, AVX_SAVED, true, "AVX2_VNNI_2", NULL,
     ISA_NO_PALETTE, true, "kept from AMX", 6},
    {"one that knows AVX2 with two-byte types", AMX, 0, AVX_SAVED, true, "AVX2_VNNI_2", NULL, ISA_USERS,
     false, "ONEDNN_MAX_CPU_ISA=AVX2_VNNI_2 says how far", 7},
    {"float16", 0, 0, AVX_SAVED, true, "AVX512_CORE_FP16", NULL, ISA_USERS, false, "AVX512_CORE_FP16 says",
     0},
    {"float16 in tiles", AMX, 1, AVX_SAVED | TILES_SAVED, true, "AVX512_CORE_AMX_FP16", NULL, ISA_USERS,
     false, "AVX512_CORE_AMX_FP16 says how far", 0},
};
enum { MACHINES = sizeof machines / sizeof *machines };

static const machine *here;
static bool asked_for_tiles;

static void cpuid_of(uint32_t leaf, uint32_t subleaf, uint32_t of[4])
{
    (void)subleaf;
    memset(of, 0, 4 * sizeof *of);
    of[3] = leaf == 7 ? here->features : 0;
    of[0] = leaf == 0x1D ? here->palettes : 0;
}

static uint64_t saved_of(void)
{
    return here->saved;
}

static bool permits(void)
{
    asked_for_tiles = true;
    return here->permits;
}

static const char *variable_of(const char *name)
{
    return strcmp(name, "ONEDNN_MAX_CPU_ISA") == 0 ? here->onednn
           : strcmp(name, "DNNL_MAX_CPU_ISA") == 0 ? here->dnnl
                                                   : NULL;
}

START_TEST(a_machine_gets_tiles_where_all_of_them_is_there)
{
    here = &machines[_i];
    asked_for_tiles = false;
    const isa_reader reader = {cpuid_of, saved_of, permits, variable_of, here->minor > 0 ? here->minor : 7};
    const isa_decision d = isa_decide(&reader);
    ck_assert_msg(d.cause == here->cause && d.without_tiles == here->without_tiles, "%s: cause %d, %s",
                  here->name, (int)d.cause, d.remark);
    ck_assert_msg(strstr(d.remark, here->says) != NULL && (here->says[0] != '\0') == (d.remark[0] != '\0'),
                  "%s: %s", here->name, d.remark);
    ck_assert_msg(here->features != 0 || !asked_for_tiles, "%s: asked for what is not there", here->name);
}
END_TEST

START_TEST(own_tiles_are_no_wider_than_the_library_goes)
{
    static const char *const at_most[] = {[4] = "plain", [8] = "avx2", [16] = "avx512"};
    hr_err err = {0};
    ck_assert_msg(onednn_load(&err) == HR_OK, "%s", err.sentence);
    const uint32_t lanes = onednn_lanes();
    for (uint32_t k = 4; k <= lanes; k *= 2) {
        gemm_keep_to(k);
        ck_assert(strcmp(gemm_isa(), at_most[k]) == 0 || strcmp(gemm_isa(), "plain") == 0);
    }
    gemm_keep_to(4);
    ck_assert_str_eq(gemm_isa(), "plain");
    ck_assert_uint_eq(lanes == 16, strstr(onednn_isa(), "avx512") != NULL);
}
END_TEST

START_TEST(below_an_instruction_set_there_is_another_one)
{
    ck_assert_str_eq(hr_devices_isa_below("avx512_core_amx"), "AVX512_CORE_BF16");
    ck_assert_str_eq(hr_devices_isa_below("onednn brg:avx512_core_amx_bf16"), "AVX512_CORE_BF16");
    ck_assert_str_eq(hr_devices_isa_below("avx512_core"), "AVX2");
    ck_assert_str_eq(hr_devices_isa_below("avx2"), "AVX");
    ck_assert_ptr_null(hr_devices_isa_below("sse41"));
    ck_assert_ptr_null(hr_devices_isa_below("sm_90 NVIDIA H200"));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("isa");
    tcase_add_loop_test(tests, a_machine_gets_tiles_where_all_of_them_is_there, 0, MACHINES);
    tcase_add_test(tests, own_tiles_are_no_wider_than_the_library_goes);
    tcase_add_test(tests, below_an_instruction_set_there_is_another_one);
    Suite *suite = suite_create("isa");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
