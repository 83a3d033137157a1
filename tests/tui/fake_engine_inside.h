// SPDX-License-Identifier: Apache-2.0
// What the files of the scripted engine know of each other: fake_engine.c is the session, fake_heap.c what build and step
// take and release, fake_report.c what they say afterwards.
#ifndef TESTS_TUI_FAKE_ENGINE_INSIDE_H
#define TESTS_TUI_FAKE_ENGINE_INSIDE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/tui/fake_engine.h"

enum { FAKE_QUEUE = 64, FAKE_RING = 8192, FAKE_TENSORS = 64, FAKE_LAYERS = 7 };

typedef struct fake_network_layer {
    const char *name;
    uint64_t weights_bytes;           // weights and bias
    uint64_t output_bytes_per_sample; // 0: a reshape
    uint64_t scratch_bytes_per_sample;
    bool graph_drops; // graph mode frees its output after the next layer has used it
    const char *shape;
} fake_network_layer;

extern const fake_network_layer fake_layers[FAKE_LAYERS];

typedef struct fake_tensor {
    char name[48];
    hr_category category;
    uint64_t requested_bytes;
    const char *shape;
    bool alive;
} fake_tensor;

struct hr_session {
    hr_knobs knobs;
    pthread_t thread;
    bool threaded;
    int fd;
    bool read_only;
    hr_session_life life; // the workbench's thread
    hr_session_end end;

    pthread_mutex_t lock; // of everything below
    hr_command queue[FAKE_QUEUE];
    size_t queue_count;
    bool quits;
    unsigned looks_left; // until its end, once that is asked for
    hr_event ring[FAKE_RING];
    uint64_t put, taken; // events ever
    hr_report report;    // with tensors of its own
    uint64_t report_version, error_version;
    hr_err error, refusal; // of the next knob, where its status is not OK

    // of the engine
    hr_engine_state state;
    bool built, dry; // dry: nothing is emitted
    uint64_t time_ns, tick_ns;
    uint32_t step;
    fake_tensor tensors[FAKE_TENSORS];
    size_t tensor_count;
    uint64_t in_use, pool, requested, limit;
    uint64_t peak, floor, peak_requested;
    hr_phase phase;
    hr_phase peak_phase;
    char peak_name[48];
    fake_tensor at_peak[FAKE_TENSORS];
    size_t at_peak_count;
    uint64_t next_address;
    bool failed;
    fake_tensor failing;
    const fake_watcher *watcher; // NULL: nobody watches
};

// Into the ring; the lock is held.
void fake_put(hr_session *h, hr_event event);
void fake_put_note(hr_session *h, hr_event_kind kind, uint64_t count, const char *text);

void fake_set_limit(hr_session *h);
void fake_empty_heap(hr_session *h);
void fake_allocate_weights(hr_session *h);
// One step; `failed` is set, and the heap stands as it stood, where something does not fit.
void fake_run_program(hr_session *h);

void fake_publish_report(hr_session *h);
// As if the weights' singular values were all the same.
void fake_put_ranks(hr_session *h, const char *name);

#endif
