// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_memo.h"

#include <assert.h>

#include "base/host_mem.h"

bool pickle_memo_add(pickle_memo *m, uint32_t entry)
{
    assert(!pickle_memo_is_full(m));
    uint32_t **page = &m->pages[m->count / PICKLE_MEMO_PAGE];
    if (*page == NULL) {
        *page = hr_realloc(NULL, PICKLE_MEMO_PAGE, sizeof **page);
        if (*page == NULL) {
            return false;
        }
    }
    (*page)[m->count++ % PICKLE_MEMO_PAGE] = entry;
    return true;
}

void pickle_memo_deinit(pickle_memo *m)
{
    for (uint32_t k = 0; k < PICKLE_MEMO_PAGES && m->pages[k] != NULL; k++) {
        hr_free(m->pages[k]);
    }
    *m = (pickle_memo){0};
}
