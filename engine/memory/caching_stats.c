// SPDX-License-Identifier: Apache-2.0
#include "memory/caching_stats.h"

#include <stdio.h>

enum { NAME_MAX = 64 };

typedef struct speaker {
    allocator_say say;
    void *context;
} speaker;

static void say_stat(const speaker *to, const char *family, const char *scope, const caching_stat *s)
{
    const struct {
        const char *name;
        uint64_t value;
    } metrics[] = {{"allocated", s->current + s->freed},
                   {"current", s->current},
                   {"freed", s->freed},
                   {"peak", s->peak}};
    for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++) {
        char name[NAME_MAX];
        (void)snprintf(name, sizeof name, "%s%s.%s", family, scope, metrics[m].name);
        to->say(to->context, name, metrics[m].value);
    }
}

static void say_families(const speaker *to, const caching_stats *s, caching_family first,
                         caching_family behind)
{
    static const char *const names[] = {
#define X(name, text) text,
        CACHING_FAMILY_MAP(X)
#undef X
    };
    for (int f = (int)first; f < (int)behind; f++) {
        const caching_stat *small = &s->family[f][0], *large = &s->family[f][1];
        const caching_stat all = {small->current + large->current, s->peak[f], small->freed + large->freed};
        say_stat(to, names[f], ".all", &all);
        say_stat(to, names[f], ".large_pool", large);
        say_stat(to, names[f], ".small_pool", small);
    }
}

void caching_say_stats(const caching_stats *s, uint64_t max_split_bytes, allocator_say say, void *context)
{
    const speaker to = {say, context};
    say_families(&to, s, CACHING_ACTIVE, CACHING_REQUESTED_BYTES);
    say(context, "max_split_size", max_split_bytes);
    say(context, "num_alloc_retries", s->alloc_retries);
    say(context, "num_device_alloc", s->device_allocs);
    say(context, "num_device_free", s->device_frees);
    say(context, "num_oom_rejections", s->oom_rejections);
    say(context, "num_ooms", s->ooms);
    say(context, "num_sync_all_streams", s->synchronizations);
    say_stat(&to, "oversize_allocations", "", &s->oversize_allocations);
    say_stat(&to, "oversize_segments", "", &s->oversize_segments);
    say_families(&to, s, CACHING_REQUESTED_BYTES, CACHING_FAMILIES);
}
