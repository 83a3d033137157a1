// SPDX-License-Identifier: Apache-2.0
// What to try after an out-of-memory: candidates in the order of how little they change, each proved by a dry run
// before it is named.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "train/engine_impl.h"

#define REMEDY_VRAM_BYTES (4096 * HR_GIB)

typedef struct candidate {
    const char *pairs[2]; // "key=value"; NULL where there is none
} candidate;

static const candidate candidates[] = {
    {{"allocator.kind=bfc", NULL}},
    {{"allocator.growth=off", NULL}},
    {{"execution.mode=graph", NULL}},
    {{"execution.mode=graph", "allocator.growth=off"}},
};

static const candidate stop_the_leak = {{"execution.retain=none", NULL}};

// Applies the pairs that change something; false when none does.
static bool apply(const candidate *c, hr_knobs *knobs)
{
    hr_knobs before = *knobs;
    for (size_t k = 0; k < 2 && c->pairs[k] != NULL; k++) {
        if (hr_knobs_set_pair(knobs, c->pairs[k], NULL) != HR_OK) {
            return false;
        }
    }
    return memcmp(&before, knobs, sizeof before) != 0 && hr_knobs_validate(knobs, NULL) == HR_OK;
}

static bool would_fit(const hr_engine *e, const hr_knobs *knobs)
{
    build_request request = {.model = e->model, .knobs = knobs, .plan_only = true};
    play_result played = {0};
    build *b = NULL;
    if (build_prepare(&request, &b, NULL) != HR_OK) {
        return false;
    }
    hr_status status = build_dry_run(b, knobs, &played, NULL);
    build_destroy(b);
    return status == HR_OK && played.fits;
}

static bool try_candidate(const hr_engine *e, const candidate *c, char *attempt, size_t size)
{
    hr_knobs knobs = e->knobs;
    if (!apply(c, &knobs) || !would_fit(e, &knobs)) {
        return false;
    }
    (void)snprintf(attempt, size, c->pairs[1] == NULL ? "-s %s" : "-s %s -s %s", c->pairs[0], c->pairs[1]);
    return true;
}

static bool try_batches(const hr_engine *e, char *attempt, size_t size)
{
    for (int64_t batch = hr_knob_int(&e->knobs, HR_KNOB_BATCH_SIZE) / 2; batch > 0; batch /= 2) {
        hr_knobs knobs = e->knobs;
        char pair[40];
        (void)snprintf(pair, sizeof pair, "batch.size=%" PRId64, batch);
        if (hr_knobs_set_pair(&knobs, pair, NULL) == HR_OK && would_fit(e, &knobs)) {
            (void)snprintf(attempt, size, "-s %s", pair);
            return true;
        }
    }
    return false;
}

// The last resort: a larger card.
static bool try_vram(const hr_engine *e, char *attempt, size_t size)
{
    for (uint64_t bytes = e->oom.limit_bytes * 2; bytes != 0 && bytes <= REMEDY_VRAM_BYTES; bytes *= 2) {
        hr_knobs knobs = e->knobs;
        char exact[HR_BYTES_TEXT_MAX];
        char pair[64];
        (void)snprintf(pair, sizeof pair, "device.vram=%s", hr_bytes_exact(bytes, exact));
        if (hr_knobs_set_pair(&knobs, pair, NULL) == HR_OK && would_fit(e, &knobs)) {
            (void)snprintf(attempt, size, "-s %s", pair);
            return true;
        }
    }
    return false;
}

void engine_find_remedy(const hr_engine *e, char *attempt, size_t size)
{
    attempt[0] = '\0';
    if (e->oom.cause == HR_OOM_LEAK) {
        (void)try_candidate(e, &stop_the_leak, attempt, size); // any other change only runs out later
        return;
    }
    for (size_t k = 0; k < sizeof candidates / sizeof *candidates; k++) {
        if (try_candidate(e, &candidates[k], attempt, size)) {
            return;
        }
    }
    (void)(try_batches(e, attempt, size) || try_vram(e, attempt, size));
}
