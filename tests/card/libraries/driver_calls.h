// SPDX-License-Identifier: Apache-2.0
// What an emulated library needs of the emulated driver, found in libcuda.so.1 as it is loaded: no driver, or another
// than that of the tests, is a machine without a card.
#ifndef CARD_LIBRARIES_DRIVER_CALLS_H
#define CARD_LIBRARIES_DRIVER_CALLS_H

#include "card.h"

typedef struct driver_calls {
    __typeof__(card_enqueue) *enqueue;
    __typeof__(card_take) *take;
    __typeof__(card_holds) *holds;
    __typeof__(card_fault) *fault;
    __typeof__(cuDeviceGetAttribute) *attribute;
    __typeof__(cuDeviceGetName) *name;
    __typeof__(cuDeviceTotalMem) *memory;
    __typeof__(cuDriverGetVersion) *version;
} driver_calls;

const driver_calls *driver_calls_get(void);   // NULL: there is no card
int driver_calls_fault(const char *function); // card_fault; 0 without a card

#endif
