// SPDX-License-Identifier: Apache-2.0
#include "insight/diagnose_evidence.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#define CONTEXT_BYTES HR_GIB // what a process holds of a card beside its pool, at most
#define NS_PER_MS     1e6

static uint64_t without(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

// ---- parts ----------------------------------------------------------------------------------------------------

// Without it the whole record would ask for no more than there is: of what grows that is enough.
static bool ends_it(const oom_part *part, uint64_t short_bytes)
{
    return short_bytes > 0 && part->most_bytes >= short_bytes && part->without.held_bytes > 0;
}

// Bytes are short: its own are enough, now and at the peak to come (a leak has none), and come to more than what is wasted
// elsewhere, unless more is asked for than the limit, whatever is wasted. They are not: a leak stands in the only hole.
static bool explains(const oom_part *part, bool grows, const heap_room *room, uint64_t short_bytes)
{
    const heap_without *w = &part->without;
    const uint64_t missing = without(room->needed_bytes, room->free_bytes);
    if (missing > 0 && w->held_bytes < missing) {
        return grows && ends_it(part, short_bytes);
    }
    if (missing > 0) {
        return (grows || part->most_bytes >= short_bytes) &&
               (short_bytes > 0 || part->most_bytes > without(room->waste_bytes, w->waste_bytes));
    }
    return grows && w->held_bytes > 0 && w->hole_bytes >= room->needed_bytes;
}

static void say_leak(const oom_evidence *shown, hr_report_oom *oom)
{
    const oom_part *part = &shown->leak;
    const bool at_once = part->without.held_bytes + oom->free_bytes >= oom->requested_bytes;
    char then[160] = "without them the steps would fit";
    if (at_once) {
        (void)snprintf(then, sizeof then, "without them %s of %s would have room", oom->tensor,
                       human(oom->requested_bytes).text);
    }
    (void)snprintf(oom->sentence, sizeof oom->sentence,
                   "leak, +%s/step: %s that earlier steps asked for by %s are never freed (%" PRIu32
                   " steps seen); %s",
                   human(part->step_bytes).text, human(part->without.held_bytes).text,
                   part->name[0] == '\0' ? "who has no name" : part->name, shown->steps, then);
}

static void say_queue(const oom_evidence *shown, hr_report_oom *oom)
{
    const oom_part *part = &shown->queue;
    const bool one = part->largest == 1;
    (void)snprintf(oom->sentence, sizeof oom->sentence,
                   "pipeline: %" PRIu32 " %s on the device, %s, %s each for %s; without %s %s of %s would "
                   "have room",
                   part->largest, one ? "batch waits" : "batches wait", human(part->without.held_bytes).text,
                   human(part->block_bytes).text,
                   part->name[0] == '\0' ? "blocks without a name" : part->name, one ? "it" : "them",
                   oom->tensor, human(oom->requested_bytes).text);
}

static void say_twin(const oom_evidence *shown, hr_report_oom *oom)
{
    const oom_part *part = &shown->twin;
    (void)snprintf(
        oom->sentence, sizeof oom->sentence,
        "double_copy: %s needs %s while %s of the same size lives: two copies at once, where each alone has "
        "room",
        oom->tensor, human(oom->requested_bytes).text, part->name[0] == '\0' ? "a block" : part->name);
}

bool diagnose_evidence(const oom_evidence *shown, const heap_room *room, uint64_t short_bytes,
                       hr_report_oom *oom)
{
    static const hr_oom_cause causes[] = {HR_OOM_LEAK, HR_OOM_PIPELINE, HR_OOM_DOUBLE_COPY};
    static void (*const say[])(const oom_evidence *, hr_report_oom *) = {say_leak, say_queue, say_twin};
    const oom_part *const parts[] = {&shown->leak, &shown->queue, &shown->twin};
    uint64_t most_bytes = 0;
    for (size_t k = 0; room->any && k < sizeof parts / sizeof *parts; k++) {
        if (parts[k]->without.held_bytes > most_bytes && explains(parts[k], k == 0, room, short_bytes)) {
            most_bytes = parts[k]->without.held_bytes;
            oom->cause = causes[k];
            say[k](shown, oom);
        }
    }
    return most_bytes > 0;
}

// ---- the driver -----------------------------------------------------------------------------------------------

static void say_own_limit(const heap_snapshot *p, hr_report_oom *oom)
{
    const heap_refusal *r = &p->refusal;
    oom->cause = HR_OOM_LIMIT;
    if (r->told) {
        (void)snprintf(
            oom->sentence, sizeof oom->sentence,
            "limit: %s needs %s and was refused while the card had %s free: a limit of one's own keeps the "
            "pool at %s",
            oom->tensor, human(oom->requested_bytes).text, human(r->device_free_bytes).text,
            human(p->counters.pool_bytes).text);
        return;
    }
    (void)snprintf(
        oom->sentence, sizeof oom->sentence,
        "limit: the pool may have %s of a card of %s, and %s needs %s: a fraction sets it so low, or others "
        "had the card when the pool was made",
        human(p->counters.limit_bytes).text, human(r->device_bytes).text, oom->tensor,
        human(oom->requested_bytes).text);
}

static void say_outside(const heap_snapshot *p, uint64_t outside_bytes, hr_report_oom *oom)
{
    oom->cause = HR_OOM_OUTSIDE;
    if (outside_bytes == 0) {
        (void)snprintf(
            oom->sentence, sizeof oom->sentence,
            "outside: %s needs %s, the limit of %s would allow it beside a pool of %s, and the card had no "
            "more to give: others hold it",
            oom->tensor, human(oom->requested_bytes).text, human(p->counters.limit_bytes).text,
            human(p->counters.pool_bytes).text);
        return;
    }
    (void)snprintf(
        oom->sentence, sizeof oom->sentence,
        "outside: %s needs %s; of the card's %s the pool holds %s and %s are free: contexts, libraries and "
        "other processes have %s",
        oom->tensor, human(oom->requested_bytes).text, human(p->refusal.device_bytes).text,
        human(p->counters.pool_bytes).text, human(p->refusal.device_free_bytes).text,
        human(outside_bytes).text);
}

bool diagnose_driver(const heap_snapshot *p, const heap_room *room, hr_report_oom *oom)
{
    const heap_refusal *r = &p->refusal;
    const uint64_t needed = room->needed_bytes > room->driver_bytes ? room->needed_bytes : room->driver_bytes;
    const uint64_t used_bytes = without(room->limit_bytes, room->free_bytes);
    if (!r->recorded || p->damaged_regions > 0) {
        return false;
    }
    if (r->told ? r->device_free_bytes >= needed
                : p->counters.limit_bytes > 0 && p->counters.limit_bytes < r->device_bytes / 2 &&
                      used_bytes + needed + CONTEXT_BYTES / 2 <= r->device_bytes) {
        say_own_limit(p, oom);
        return true;
    }
    const uint64_t outside_bytes =
        r->told ? without(r->device_bytes, p->counters.pool_bytes + r->device_free_bytes) : 0;
    const uint64_t others_bytes = without(outside_bytes, CONTEXT_BYTES);
    if (r->told ? room->free_bytes < needed && others_bytes >= needed - room->free_bytes
                : room->ungrown_bytes >= needed) {
        say_outside(p, outside_bytes, oom);
        return true;
    }
    return false;
}

// ---- what fits --------------------------------------------------------------------------------------------------

hr_report_oom diagnose_nothing(const hr_report_memory *m)
{
    hr_report_oom oom = {.cause = HR_OOM_NONE,
                         .instruction = HR_NO_ID,
                         .requested_bytes = HR_NONE,
                         .free_bytes =
                             m->limit_bytes == HR_NONE ? HR_NONE : m->limit_bytes - m->peak_in_use_bytes,
                         .largest_free_bytes = HR_NONE,
                         .in_use_bytes = m->peak_in_use_bytes,
                         .pool_bytes = m->peak_pool_bytes,
                         .limit_bytes = m->limit_bytes,
                         .needed_bytes = HR_NONE};
    memcpy(oom.by_category, m->at_peak.by_category, sizeof oom.by_category);
    return oom;
}

// " in 12.3 ms"; "" where the record has no times.
static const char *say_time(const oom_evidence *shown, char out[32])
{
    out[0] = '\0';
    if (shown->retry_ns > 0) {
        (void)snprintf(out, 32, " in %.1f ms", (double)shown->retry_ns / NS_PER_MS);
    }
    return out;
}

bool diagnose_retries(const oom_evidence *shown, hr_report_oom *oom)
{
    char time[32];
    if (shown->retries == 0) {
        return false;
    }
    oom->cause = HR_OOM_RETRIES;
    (void)snprintf(oom->sentence, sizeof oom->sentence,
                   "retries: nothing was refused in the end, but %" PRIu64
                   " time%s the device had nothing left and the pool went back to it first, %s%s",
                   shown->retries, shown->retries == 1 ? "" : "s", human(shown->retry_bytes).text,
                   say_time(shown, time));
    return true;
}

// ---- what is to come ------------------------------------------------------------------------------------------

// Longer trainings are rare: what fills it later than that is nothing to act on.
enum { STEPS_AHEAD = 1000000 };

bool diagnose_near_full(const oom_evidence *shown, const hr_report_memory *memory, hr_report_oom *oom)
{
    const oom_part *leak = &shown->leak;
    const uint64_t limit = memory->limit_bytes;
    if (leak->step_bytes == 0 || limit == HR_NONE || shown->last_peak_bytes > limit) {
        return false;
    }
    const uint64_t left_bytes = limit - shown->last_peak_bytes;
    const uint64_t steps = left_bytes / leak->step_bytes + 1;
    if (steps > STEPS_AHEAD) {
        return false;
    }
    oom->cause = HR_OOM_NEAR_FULL;
    (void)snprintf(
        oom->sentence, sizeof oom->sentence,
        "leak, +%s/step: nothing was refused yet; the last step leaves %s of %s, at this rate full "
        "in at most %" PRIu64 " step%s. The largest block that stays of every step has %s, %s",
        human(leak->step_bytes).text, human(left_bytes).text, human(limit).text, steps, steps == 1 ? "" : "s",
        human(leak->block_bytes).text, leak->name[0] == '\0' ? "without a name" : leak->name);
    return true;
}

// ---- lines ----------------------------------------------------------------------------------------------------

void diagnose_add(hr_report_oom *oom, const char *format, ...)
{
    if (oom->evidence_count >= HR_EVIDENCE_MAX) {
        return;
    }
    va_list args;
    va_start(args, format);
    char *line = oom->evidence[oom->evidence_count++].line;
    (void)vsnprintf(line, sizeof oom->evidence[0].line, format, args);
    va_end(args);
}

static void add_part(const char *what, const oom_part *part, hr_report_oom *oom)
{
    if (part->without.held_bytes > 0) {
        diagnose_add(oom, "%s: %" PRIu32 " block%s, %s, the largest %s %s", what, part->blocks,
                     part->blocks == 1 ? "" : "s", human(part->without.held_bytes).text,
                     human(part->block_bytes).text, part->name);
    }
}

void diagnose_lines(const oom_evidence *shown, const heap_room *room, hr_report_oom *oom)
{
    char time[32];
    if (room->any) {
        diagnose_add(oom, "needed %s; free %s of %s, the largest piece %s", human(room->needed_bytes).text,
                     human(room->free_bytes).text, human(room->limit_bytes).text,
                     human(room->largest_bytes).text);
        diagnose_add(oom, "in use %s, of which rounding and unsplit chunks waste %s",
                     human(without(room->limit_bytes, room->free_bytes)).text, human(room->waste_bytes).text);
    }
    if (shown->leak.step_bytes > 0) {
        diagnose_add(oom, "what lives at the ends of %" PRIu32 " steps %s rises by %s a step", shown->steps,
                     shown->steps_marked ? "that are marked" : "seen as troughs",
                     human(shown->leak.step_bytes).text);
    }
    add_part("stays of every step", &shown->leak, oom);
    add_part("waits on the device", &shown->queue, oom);
    add_part("the same once more", &shown->twin, oom);
    if (shown->retries > 0) {
        diagnose_add(oom, "%" PRIu64 " time%s before, the pool went back to the device for one request: %s%s",
                     shown->retries, shown->retries == 1 ? "" : "s", human(shown->retry_bytes).text,
                     say_time(shown, time));
    }
}

void diagnose_categories(hr_report_oom *oom)
{
    char line[sizeof oom->evidence[0].line] = "";
    size_t used = 0;
    for (int k = 0; k < HR_CATEGORY_COUNT && used < sizeof line; k++) {
        if (oom->by_category[k] > 0) {
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%s %s", used == 0 ? "held: " : ", ",
                                     hr_category_name((hr_category)k), human(oom->by_category[k]).text);
        }
    }
    if (used > 0) {
        diagnose_add(oom, "%s", line);
    }
}
