// SPDX-License-Identifier: Apache-2.0
// Names of what lives, by address: a heap's chunks carry tags that mean nothing without the program of their moment, and
// this remembers what the events said. One thread.
#ifndef FORMATS_LIVE_NAMES_H
#define FORMATS_LIVE_NAMES_H

#include "headroom/event.h"
#include "headroom/status.h"

#include "base/intern.h"
#include "events/heap.h"
#include "formats/live_table.h"

// Starts zeroed.
typedef struct live_names {
    live_table live; // id: of names
    intern names;
} live_names;

// Of every memory event in order. `name` is that of the event's tensor, NULL when it has none. Where host memory is
// short the name is not remembered.
void live_names_note(live_names *n, const hr_event *event, const char *name);
// Gives the chunks of the device's heap their names: `tensor` becomes a number in p->names, HR_NO_ID where nothing is
// known, as it is for the refusal. NOMEM: the snapshot is half named.
HR_MUST_CHECK hr_status live_names_give(const live_names *n, uint8_t device, heap_snapshot *p, hr_err *err);
void live_names_deinit(live_names *n);

#endif
