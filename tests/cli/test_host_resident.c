// SPDX-License-Identifier: Apache-2.0
// The host's ledger is what the process takes: of runs whose data is large in one stage or another, the resident memory grows as
// the ledger does. A run in a process of its own, one epoch long, beside one that holds next to nothing.
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "headroom/engine.h"
#include "headroom/preset.h"
#include "headroom/units.h"

enum { SAMPLES = 4096, BATCH = 64, PAIRS_MAX = 4 };

#define SHARE_OFF 0.05
#define BYTES_OFF (8 * HR_MIB)

static const struct subject {
    const char *pairs[PAIRS_MAX];
    uint64_t least_bytes; // that the ledger is to hold, so that it is worth looking at
} subjects[] = {
    {{"pipeline.array=float64"}, 90 * HR_MIB},
    {{"pipeline.array=float32", "pipeline.mode=eager_stack"}, 90 * HR_MIB},
    {{"pipeline.cache=ram", "pipeline.stages=map,cache,shuffle,batch,prefetch"}, 45 * HR_MIB},
    {{"pipeline.cache=ram", "pipeline.samples=16384"}, 45 * HR_MIB},
    {{"pipeline.shuffle_of=elements", "pipeline.shuffle=16384", "pipeline.samples=16384"}, 45 * HR_MIB},
    {{"pipeline.stages=slices,shuffle,map,batch", "pipeline.samples=16384"}, 45 * HR_MIB},
    {{"pipeline.prefetch=64"}, 45 * HR_MIB},
    {{"pipeline.array=float64", "pipeline.cache=ram", "pipeline.prefetch=16"}, 180 * HR_MIB},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static const char model[] = "device: {kind: reference, vram: 4MiB}\n"
                            "batch: {size: 64}\n"
                            "pipeline: {samples: 4096, prefetch: 1, map_threads: 1}\n"
                            "model:\n"
                            "  name: small\n"
                            "  input: {shape: [32, 32, 3]}\n"
                            "  classes: 10\n"
                            "  loss: softmax_cross_entropy\n"
                            "  layers:\n"
                            "    - {kind: global_avg_pool}\n"
                            "    - {kind: dense, units: 10}\n";

typedef struct taken {
    uint64_t resident_bytes, ledger_bytes;
} taken;

// The most that this process has held.
static uint64_t resident_peak(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    uint64_t kib = 0;
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "VmHWM: %" SCNu64, &kib) == 1) {
            break;
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return kib * HR_KIB;
}

static bool run(const hr_preset *of, const char *const pairs[PAIRS_MAX], taken *out)
{
    hr_knobs knobs = *hr_preset_knobs(of);
    hr_engine *e = NULL;
    hr_report r;
    for (size_t k = 0; k < PAIRS_MAX && pairs[k] != NULL; k++) {
        if (hr_knobs_set_pair(&knobs, pairs[k], NULL) != HR_OK) {
            return false;
        }
    }
    // The evaluation behind the last step of an epoch is left out.
    const hr_command steps = {.version = HR_EVENT_VERSION,
                              .kind = HR_COMMAND_RUN,
                              .count = (uint64_t)hr_knob_int(&knobs, HR_KNOB_PIPELINE_SAMPLES) / BATCH - 1};
    if (hr_engine_create(of, &knobs, NULL, &e, NULL) != HR_OK ||
        hr_engine_command(e, &steps, NULL) != HR_OK) {
        return false;
    }
    for (bool idle = false; !idle;) {
        hr_engine_advance(e, &idle);
    }
    if (hr_engine_get_state(e) != HR_ENGINE_IDLE || hr_engine_report(e, &r, NULL) != HR_OK) {
        return false;
    }
    *out = (taken){resident_peak(), r.host.peak_bytes};
    hr_report_deinit(&r);
    hr_engine_destroy(e);
    return true;
}

// In a process of its own, so that what one run leaves behind is not the next one's.
static taken run_apart(const hr_preset *of, const char *const pairs[PAIRS_MAX])
{
    taken t = {0};
    int ends[2], status = 0;
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        const bool ran = run(of, pairs, &t) && write(ends[1], &t, sizeof t) == (ssize_t)sizeof t;
        _exit(ran ? 0 : 1);
    }
    (void)close(ends[1]);
    ck_assert_int_eq(read(ends[0], &t, sizeof t), sizeof t);
    (void)close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    return t;
}

static double difference(uint64_t a, uint64_t b)
{
    return (double)a - (double)b;
}

static hr_preset *preset;
static taken base; // of a run that holds next to nothing

static void open_all(void)
{
    const char *const nothing[PAIRS_MAX] = {NULL};
    char path[] = "/tmp/headroom-resident-XXXXXX";
    const int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, model, sizeof model - 1), sizeof model - 1);
    (void)close(file);
    ck_assert_int_eq(hr_preset_open(path, false, &preset, NULL, NULL), HR_OK);
    (void)unlink(path);
    base = run_apart(preset, nothing);
}

static void close_all(void)
{
    hr_preset_close(preset);
}

START_TEST(resident_memory_grows_as_the_ledger)
{
    const struct subject *s = &subjects[_i];
    const taken held = run_apart(preset, s->pairs);
    const double grown = difference(held.resident_bytes, base.resident_bytes);
    const double counted = difference(held.ledger_bytes, base.ledger_bytes);
    const double off = grown > counted ? grown - counted : counted - grown;
    ck_assert_uint_ge(held.ledger_bytes, s->least_bytes);
    ck_assert_msg(off <= SHARE_OFF * (double)held.ledger_bytes + (double)BYTES_OFF,
                  "%s: resident +%.2f MiB, the ledger +%.2f MiB", s->pairs[0], grown / (double)HR_MIB,
                  counted / (double)HR_MIB);
}
END_TEST

int main(void)
{
    if (HEADROOM_SANITIZED) {
        puts("a sanitizer takes memory of its own: not looked at");
        return 0;
    }
    hr_preset_search_beside(".");
    TCase *tests = tcase_create("host resident");
    tcase_set_timeout(tests, 120);
    tcase_add_unchecked_fixture(tests, open_all, close_all);
    tcase_add_loop_test(tests, resident_memory_grows_as_the_ledger, 0, SUBJECTS);
    Suite *suite = suite_create("host resident");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
