// SPDX-License-Identifier: Apache-2.0
#include "driver_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static driver_calls calls;
static bool found;

static bool find(void *library, const char *name, void *pointer)
{
    void *symbol = dlsym(library, name);
    memcpy(pointer, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void look(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    found = library != NULL && find(library, "card_enqueue", &calls.enqueue) &&
            find(library, "card_take", &calls.take) && find(library, "card_holds", &calls.holds) &&
            find(library, "card_fault", &calls.fault) &&
            find(library, "cuDeviceGetAttribute", &calls.attribute) &&
            find(library, "cuDeviceGetName", &calls.name) &&
            find(library, "cuDeviceTotalMem_v2", &calls.memory) &&
            find(library, "cuDriverGetVersion", &calls.version);
}

const driver_calls *driver_calls_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, look);
    return found ? &calls : NULL;
}

int driver_calls_fault(const char *function)
{
    const driver_calls *driver = driver_calls_get();
    return driver == NULL ? 0 : driver->fault(function);
}
