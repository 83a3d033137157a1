// SPDX-License-Identifier: Apache-2.0
// Events a second of a replay, over a million events shaped like training: resident weights and optimizer slots, then
// steps of a forward pass that keeps activations between short-lived workspaces and a backward pass that gives them
// back in reverse. Beside it the floor: the same allocator asked in a bare loop, and the same loop over the events with
// no allocator at all. Prints medians of 11 in processor time; asserts nothing.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "headroom/units.h"

#include "insight/play.h"
#include "insight/replay.h"

enum { ROUNDS = 11, EVENTS = 1000000, LAYERS = 96, RESIDENT = 3 * LAYERS };

// ---- the trace ------------------------------------------------------------------------------------------------

static trace_builder builder;
static trace recorded;

static void record(trace_kind kind, uint64_t address, uint64_t bytes)
{
    trace_event e = {.kind = (uint8_t)kind,
                     .bytes = bytes,
                     .name = HR_NO_ID,
                     .row = recorded.events.count,
                     .time_ns = recorded.events.count};
    if (trace_add(&builder, e, address, NULL) != HR_OK) {
        fputs("bench_replay: no host memory\n", stderr);
        exit(1);
    }
}

// Sizes of a residual network: few different ones, falling with the depth.
static uint64_t activation_bytes(uint32_t layer)
{
    return (UINT64_C(3) << 20) >> (layer / 24) | (layer % 7 == 0 ? 4096 : 0);
}

static void record_step(void)
{
    uint64_t workspace = UINT64_C(1) << 40;
    for (uint32_t k = 0; k < LAYERS; k++) {
        record(TRACE_ALLOC, workspace, activation_bytes(k) / 2 + 512 * (k % 5));
        record(TRACE_ALLOC, 1 + k, activation_bytes(k));
        record(TRACE_FREE, workspace, 0);
    }
    for (uint32_t k = LAYERS; k-- > 0;) {
        record(TRACE_ALLOC, workspace, activation_bytes(k) / 2 + 512 * (k % 5));
        record(TRACE_ALLOC, 1000 + k, activation_bytes(k));
        record(TRACE_FREE, workspace, 0);
        record(TRACE_FREE, 1 + k, 0);
        if (k + 1 < LAYERS) {
            record(TRACE_FREE, 1001 + k, 0);
        }
    }
    record(TRACE_FREE, 1000, 0);
    record(TRACE_STEP, 0, 0);
}

static void record_training(void)
{
    trace_builder_init(&builder, &recorded);
    for (uint32_t k = 0; k < RESIDENT; k++) {
        record(TRACE_ALLOC, 100000 + k, UINT64_C(9216) << k % 9);
    }
    while (recorded.events.count < EVENTS) {
        record_step();
    }
    trace_builder_deinit(&builder);
}

// ---- what is measured -----------------------------------------------------------------------------------------

static uint64_t *addresses;

// Nothing but the walk: what no replay can be faster than.
static void walk(const allocator_config *config)
{
    (void)config;
    for (uint32_t k = 0; k < recorded.events.count; k++) {
        const trace_event *e = &recorded.events.data[k];
        if (e->kind == TRACE_ALLOC) {
            addresses[e->block] = e->bytes;
        } else if (e->kind == TRACE_FREE) {
            addresses[e->block] = 0;
        }
    }
}

static void must(hr_status status)
{
    if (status != HR_OK) {
        fprintf(stderr, "bench_replay: %s\n", hr_status_name(status));
        exit(1);
    }
}

static void ask_in_a_loop(const allocator_config *config)
{
    backing source;
    allocator *heap = NULL;
    must(backing_numbers_open(config->limit_bytes, 2 * HR_MIB, &source, NULL));
    must(allocator_create(config, &source, NULL, &heap, NULL));
    for (uint32_t k = 0; k < recorded.events.count; k++) {
        const trace_event *e = &recorded.events.data[k];
        if (e->kind == TRACE_ALLOC) {
            must(allocator_alloc(heap, e->bytes, HR_NO_ID, &addresses[e->block], NULL));
        } else if (e->kind == TRACE_FREE) {
            allocator_free(heap, addresses[e->block]);
        }
    }
    allocator_destroy(heap);
    backing_close(&source);
}

static void replay(const allocator_config *config)
{
    replay_player p;
    replay_setup setup = {.config = *config};
    must(replay_start(&p, &recorded, &setup, NULL));
    must(replay_play(&p, UINT32_MAX, NULL));
    replay_close(&p);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Of this thread: what else runs on the machine does not count, only what it does to the caches.
static uint64_t processor_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

typedef struct peer {
    const char *kind, *name;
    void (*work)(const allocator_config *);
    double ns[ROUNDS];
} peer;

static void measure(peer *p, int round)
{
    allocator_config config = allocator_config_of(p->kind, 4 * HR_GIB);
    config.growth = true;
    uint64_t begin_ns = processor_ns();
    p->work(&config);
    p->ns[round] = (double)(processor_ns() - begin_ns) / (double)recorded.events.count;
}

static void print(peer *p)
{
    qsort(p->ns, ROUNDS, sizeof p->ns[0], by_value);
    printf("%-8s %-24s %7.2f ns an event, %6.1f M events/s   (fastest %.2f ns)\n", p->kind, p->name,
           p->ns[ROUNDS / 2], 1e3 / p->ns[ROUNDS / 2], p->ns[0]);
}

static bool exists(const char *kind)
{
    allocator_config config = allocator_config_of(kind, HR_GIB);
    backing source;
    allocator *heap = NULL;
    must(backing_numbers_open(HR_GIB, 2 * HR_MIB, &source, NULL));
    bool found = allocator_create(&config, &source, NULL, &heap, NULL) == HR_OK;
    allocator_destroy(heap);
    backing_close(&source);
    return found;
}

enum { PEERS_MAX = 16 };

static uint32_t find_peers(peer *peers)
{
    static const char *const kinds[] = {"bfc", "caching", "async", "direct"};
    uint32_t count = 0;
    peers[count++] = (peer){.kind = "none", .name = "the walk alone", .work = walk};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (exists(kinds[k])) {
            peers[count++] = (peer){.kind = kinds[k], .name = "asked in a bare loop", .work = ask_in_a_loop};
            peers[count++] = (peer){.kind = kinds[k], .name = "replay", .work = replay};
        }
    }
    peers[count++] = (peer){.kind = "static", .name = "replay, plan and all", .work = replay};
    return count;
}

// Interleaved: whatever else the machine does falls on all of them.
int main(void)
{
    static peer peers[PEERS_MAX];
    record_training();
    addresses = calloc((size_t)recorded.block_count + 1, sizeof *addresses);
    if (addresses == NULL) {
        return 1;
    }
    uint32_t count = find_peers(peers);
    printf("%u events, at most %u blocks alive\n", recorded.events.count, recorded.block_count);
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t k = 0; k < count; k++) {
            measure(&peers[k], round);
        }
    }
    for (uint32_t k = 0; k < count; k++) {
        print(&peers[k]);
    }
    free(addresses);
    trace_deinit(&recorded);
    return 0;
}
