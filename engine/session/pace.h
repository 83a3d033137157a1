// SPDX-License-Identifier: Apache-2.0
// A simulated step takes no time of its own: people watch it at the pace of the card. Every event waits until it is
// due, and what readers get has the clock's time, whatever the device: they may see one after the other. A command ends
// the waiting for the rest of the step.
#ifndef SESSION_PACE_H
#define SESSION_PACE_H

#include "session/callbacks.h"

typedef struct pace {
    const session_callbacks *
        out; // NULL: nothing waits, times stay as they are, and the clock is left out where they are simulated
    uint64_t clock_ns, simulated_ns; // where the two met: the beginning of the step
    uint64_t last_ns;                // simulated time of the last event
    uint64_t told_ns;                // time that the last event was told with: no later one has less
    bool simulating;                 // the build at hand has no clock of its own
    bool hurried;
} pace;

void pace_begin_step(pace *p);
// Waits until the event is due. Returns the time to tell it with. `simulates`: whether what is (or will be) built has no
// clock of its own.
uint64_t pace_event(pace *p, const hr_event *event, bool simulates);
void pace_end_step(pace *p);

#endif
