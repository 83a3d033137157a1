// SPDX-License-Identifier: Apache-2.0
#include "isa.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LEAF_FEATURES = 7, LEAF_TILES = 0x1D, EAX = 0, EDX = 3 };

// Intel's manual of the architectures' instruction set extensions: leaf 7, EDX.
#define HAS_AMX_BF16 (UINT32_C(1) << 22)
#define HAS_AMX_TILE (UINT32_C(1) << 24)
#define HAS_AMX_INT8 (UINT32_C(1) << 25)
// XTILECFG and XTILEDATA
#define TILE_STATE (UINT64_C(3) << 17)

static const char *const variables[] = {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}; // as oneDNN looks

// oneDNN's guide, "CPU dispatcher control" of each version. 2.6 does not know the later ones: it goes as far as it can.
static const struct {
    const char *word;
    int since_minor;
} words[] = {{"ALL", 0},
             {"SSE41", 0},
             {"AVX", 0},
             {"AVX2", 0},
             {"AVX2_VNNI", 0},
             {"AVX2_VNNI_2", 7},
             {"AVX512_MIC", 0},
             {"AVX512_MIC_4OPS", 0},
             {"AVX512_CORE", 0},
             {"AVX512_CORE_VNNI", 0},
             {"AVX512_CORE_BF16", 0},
             {"AVX512_CORE_FP16", 7},
             {"AVX512_CORE_AMX", 0},
             {"AVX512_CORE_AMX_FP16", 7}};

static bool is_word(const isa_reader *reader, const char *value)
{
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        if (strcasecmp(value, words[k].word) == 0) {
            return reader->onednn_minor >= words[k].since_minor;
        }
    }
    return false; // oneDNN does not know it either, and does as if it were not there
}

// The first that is set, as oneDNN takes it; NULL: none is.
static const char *set_variable(const isa_reader *reader, const char **value)
{
    for (size_t k = 0; k < sizeof variables / sizeof *variables; k++) {
        *value = reader->variable(variables[k]);
        if (*value != NULL && (*value)[0] != '\0') {
            return variables[k];
        }
    }
    return NULL;
}

static isa_cause look_at_tiles(const isa_reader *reader)
{
    uint32_t of[4];
    reader->cpuid(LEAF_FEATURES, 0, of);
    if ((of[EDX] & (HAS_AMX_TILE | HAS_AMX_BF16 | HAS_AMX_INT8)) == 0) {
        return ISA_NOTHING_AMISS;
    }
    reader->cpuid(LEAF_TILES, 0, of);
    if (of[EAX] == 0) {
        return ISA_NO_PALETTE;
    }
    if ((reader->saved_state() & TILE_STATE) != TILE_STATE) {
        return ISA_TILES_NOT_SAVED;
    }
    return reader->may_use_tiles() ? ISA_NOTHING_AMISS : ISA_TILES_FORBIDDEN;
}

isa_decision isa_decide(const isa_reader *reader)
{
    static const char *const reasons[ISA_CAUSES] = {
        [ISA_NO_PALETTE] = "the processor announces AMX and has no palette of tiles (CPUID leaf 0x1D is 0)",
        [ISA_TILES_NOT_SAVED] = "the processor announces AMX and the system saves no tiles (XCR0)",
        [ISA_TILES_FORBIDDEN] = "the processor has AMX and the system does not permit it (arch_prctl)"};
    isa_decision d = {.cause = look_at_tiles(reader)};
    const char *value = NULL, *name = set_variable(reader, &value);
    const bool amiss = d.cause != ISA_NOTHING_AMISS, users = name != NULL && is_word(reader, value);
    char said[96] = "";
    if (name != NULL) {
        (void)snprintf(said, sizeof said, "%s=%.24s %s%s", name, value,
                       users ? "says how far" : "is no word of this oneDNN", amiss ? "; " : "");
    }
    (void)snprintf(d.remark, sizeof d.remark, "%s%s%s", said, amiss && !users ? "kept from AMX: " : "",
                   amiss ? reasons[d.cause] : "");
    d.without_tiles = amiss && !users;
    d.cause = users ? ISA_USERS : d.cause;
    return d;
}
