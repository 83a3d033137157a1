// SPDX-License-Identifier: Apache-2.0
#include "insight/play_limit.h"

#include "headroom/units.h"

enum { FINER = 256 };

#define LEAST_UNIT_BYTES ((uint64_t)256)
#define PLENTY_BYTES     (UINT64_C(1) << 50)

typedef struct search {
    const limit_case *c;
    uint64_t unit_bytes;
    uint64_t too_small, enough;        // enough 0: not found yet
    uint64_t in_use_bytes, pool_bytes; // at most, with plenty
    int plays;
} search;

static uint64_t max_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t round_up(const search *s, uint64_t bytes)
{
    return (bytes + s->unit_bytes - 1) / s->unit_bytes * s->unit_bytes;
}

static hr_status try_limit(search *s, uint64_t bytes, hr_err *err)
{
    limit_outcome played = {0};
    HR_TRY(s->c->play(s->c->context, bytes, &played, err));
    if (played.fits) {
        s->enough = bytes;
    } else {
        s->too_small = bytes;
    }
    if (s->plays++ == 0) {
        s->in_use_bytes = played.in_use_bytes;
        s->pool_bytes = played.pool_bytes;
    }
    return HR_OK;
}

// Below what it asks for at its peak no limit will do, and below the one that failed none is wanted.
static void begin(search *s)
{
    const uint64_t asked_bytes = s->c->asked_bytes;
    s->too_small = max_of(s->c->failed_bytes, asked_bytes == 0 ? 0 : asked_bytes - 1);
    s->unit_bytes = LEAST_UNIT_BYTES;
    while (s->unit_bytes < s->too_small / FINER) {
        s->unit_bytes *= 2;
    }
}

static bool is_open(const search *s, uint64_t bytes)
{
    return bytes > s->too_small && bytes < s->enough && s->plays < PLAY_LIMIT_MOST;
}

// First what was in use with plenty, then what was taken for it; then upwards in steps that double.
static hr_status close_in_from_below(search *s, hr_err *err)
{
    uint64_t guess = max_of(round_up(s, s->in_use_bytes), round_up(s, s->too_small + 1));
    uint64_t pool_bytes = round_up(s, s->pool_bytes);
    if (is_open(s, guess)) {
        HR_TRY(try_limit(s, guess, err));
    }
    if (is_open(s, pool_bytes)) {
        HR_TRY(try_limit(s, pool_bytes, err));
    }
    for (uint64_t step = s->unit_bytes; s->enough == PLENTY_BYTES && is_open(s, s->too_small + step);
         step *= 2) {
        HR_TRY(try_limit(s, round_up(s, s->too_small + step), err));
    }
    return HR_OK;
}

hr_status limit_smallest(const limit_case *c, uint64_t *fits_bytes, hr_err *err)
{
    search s = {.c = c};
    *fits_bytes = 0;
    begin(&s);
    if (s.too_small >= PLENTY_BYTES) {
        return HR_OK;
    }
    HR_TRY(try_limit(&s, PLENTY_BYTES, err));
    if (s.enough == 0) {
        return HR_OK;
    }
    HR_TRY(close_in_from_below(&s, err));
    for (;;) {
        uint64_t middle = round_up(&s, s.too_small + (s.enough - s.too_small) / 2);
        if (!is_open(&s, middle)) {
            break;
        }
        HR_TRY(try_limit(&s, middle, err));
    }
    *fits_bytes = s.enough == PLENTY_BYTES ? 0 : s.enough;
    return HR_OK;
}

// ---- of programs ----------------------------------------------------------------------------------------------

static hr_status play(void *context, uint64_t limit_bytes, limit_outcome *out, hr_err *err)
{
    const play_case *c = context;
    play_result played;
    HR_TRY(play_programs(c->device, c->device_context, c->knobs, limit_bytes, c->programs, c->count, c->steps,
                         &played, err));
    *out = (limit_outcome){played.fits, played.stats.peak_in_use_bytes, played.stats.peak_pool_bytes};
    return HR_OK;
}

hr_status play_smallest_limit(const play_case *c, uint64_t *fits_bytes, hr_err *err)
{
    play_case own = *c;
    limit_case of_programs = {.play = play, .context = &own, .failed_bytes = c->failed_bytes};
    for (uint32_t k = 0; k < c->count; k++) {
        const program *p = c->programs[k];
        of_programs.asked_bytes = max_of(of_programs.asked_bytes, p == NULL ? 0 : program_peak_bytes(p));
    }
    return limit_smallest(&of_programs, fits_bytes, err);
}
