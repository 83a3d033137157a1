// SPDX-License-Identifier: Apache-2.0
// Any bytes as a pickle, with a visitor that numbers containers and holds the reader to what pickle.h promises of words.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "base/input.h"
#include "formats/pickle.h"
#include "fuzz/fuzz.h"

enum { LASTING_EVERY = 3 };

typedef struct judge {
    intern texts;
    uint32_t containers; // numbered so far
    uint64_t items;
} judge;

static void must(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "fuzz: %s\n", what);
        abort();
    }
}

static void judge_item(const judge *j, const pickle_value *v)
{
    must(v->kind <= PICKLE_DICT, "a value of no kind");
    if (v->kind == PICKLE_TEXT) {
        must(v->word == INTERN_NONE || intern_text(&j->texts, v->word) != NULL, "a text without its number");
    }
    if (v->kind >= PICKLE_TUPLE) {
        must(v->word <= j->containers, "a word that nobody gave");
        must(!v->again || v->word == 0 || v->word % LASTING_EVERY == 0, "a word that was not to last");
        must(!v->again || v->lasting == (v->word != 0), "a lasting word that says it is none");
    }
}

static hr_status fill(void *context, const pickle *p, pickle_value *into, const pickle_value *items,
                      uint32_t count, hr_err *err)
{
    judge *j = context;
    (void)p;
    (void)err;
    must(count > 0 && !into->again && into->kind >= PICKLE_TUPLE, "a container that is not to be filled");
    must(into->kind != PICKLE_DICT || count % 2 == 0, "a key without its value");
    for (uint32_t k = 0; k < count; k++) {
        judge_item(j, &items[k]);
    }
    j->items += count;
    if (into->word == 0 && j->containers < PICKLE_WORD_MAX) {
        into->word = ++j->containers;
        into->lasting = into->word % LASTING_EVERY == 0;
    }
    return HR_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    judge j = {0};
    input in;
    hr_err err = {0};
    pickle_value top;
    pickle_visitor visitor = {.fill = fill, .context = &j, .texts = &j.texts};
    int64_t live = hr_host_mem_live();
    fuzz_memory_begin();
    int64_t begin_bytes = fuzz_memory_peak();
    input_of_memory(&in, "fuzz", data, size);
    hr_status status = pickle_read(&in, &visitor, &top, &err);
    must(fuzz_memory_peak() - begin_bytes <= FUZZ_MEMORY_BASE_BYTES + FUZZ_MEMORY_FACTOR * (int64_t)size,
         "too much memory");
    must(status == HR_OK || (status == HR_READ && err.sentence[0] != '\0'), "an unfit status");
    must(j.items <= size, "more items than bytes");
    intern_deinit(&j.texts);
    input_close(&in);
    must(hr_host_mem_live() == live, "leaked host memory");
    return 0;
}
