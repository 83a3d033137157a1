// SPDX-License-Identifier: Apache-2.0
// Lifetimes, as a trace and as themselves: what was read keeps its promises.
#include <stdlib.h>

#include "base/host_mem.h"
#include "formats/lifetimes_csv.h"
#include "fuzz/fuzz.h"

static void check(const lifetimes *l)
{
    uint32_t *births = hr_calloc((size_t)l->list.count + 1, sizeof *births);
    uint32_t *deaths = hr_calloc((size_t)l->list.count + 1, sizeof *deaths);
    if (births == NULL || deaths == NULL || lifetimes_instants(l, births, deaths, NULL) != HR_OK) {
        abort();
    }
    for (uint32_t k = 0; k < l->list.count; k++) {
        const lifetime *b = &l->list.data[k];
        if (b->lower >= b->upper || b->id != k || b->alignment_bytes == 0 || births[k] >= deaths[k]) {
            abort();
        }
    }
    hr_free(births);
    hr_free(deaths);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lifetimes l;
    input in;
    fuzz_read_trace("lifetimes", data, size);
    input_of_memory(&in, "fuzz", data, size);
    if (lifetimes_read_input(&in, &l, NULL) == HR_OK) {
        check(&l);
        lifetimes_deinit(&l);
    }
    return 0;
}
