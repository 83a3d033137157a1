// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "headroom/engine.h"
#include "headroom/file_kind.h"
#include "headroom/replay.h"

#include "app/cli/compare.h"
#include "app/cli/plan_play.h"

enum { WORD_MAX = 4096, STEPS = 2 };

// ---- the word -------------------------------------------------------------------------------------------------

typedef struct subject_words {
    char base[WORD_MAX]; // preset or file
    const char *pairs;   // behind its comma; "": none
} subject_words;

static hr_status part(const char *word, subject_words *out, hr_err *err)
{
    const char *comma = strchr(word, ',');
    size_t length = comma == NULL ? strlen(word) : (size_t)(comma - word);
    if (length == 0 || length >= sizeof out->base) {
        hr_status status =
            HR_FAIL(err, USAGE, "compare needs a PRESET, a report or a trace, had '%.64s'", word);
        hr_err_try(err, "headroom compare demo demo,execution.mode=graph");
        return status;
    }
    (void)snprintf(out->base, sizeof out->base, "%.*s", (int)length, word);
    out->pairs = comma == NULL ? "" : comma + 1;
    return HR_OK;
}

// The length of the pair at the front: up to the comma behind which another one begins.
static size_t pair_length(const char *pairs)
{
    size_t length = strcspn(pairs, ",");
    while (pairs[length] == ',') {
        size_t next = strcspn(pairs + length + 1, ",=");
        if (pairs[length + 1 + next] == '=') {
            break;
        }
        length += 1 + strcspn(pairs + length + 1, ",");
    }
    return length;
}

static hr_status turn(hr_knobs *knobs, const char *pairs, hr_err *err)
{
    while (*pairs != '\0') {
        char pair[2 * HR_KNOB_TEXT_MAX];
        size_t length = pair_length(pairs);
        if (length >= sizeof pair) {
            return HR_FAIL(err, USAGE, "a setting needs at most %zu characters, had %.32s…", sizeof pair - 1,
                           pairs);
        }
        (void)snprintf(pair, sizeof pair, "%.*s", (int)length, pairs);
        HR_TRY(hr_knobs_set_pair(knobs, pair, err));
        pairs += length + (pairs[length] == ',');
    }
    return HR_OK;
}

// ---- a plan ---------------------------------------------------------------------------------------------------

static hr_status plan(const cli_args *args, const subject_words *words, compare_side *out, hr_err *err)
{
    cli_subject subject;
    hr_engine *engine = NULL;
    hr_report report = {0};
    const hr_engine_options options = {.plan_only = true};
    HR_TRY(cli_open(args, words->base, &subject, err));
    hr_status status = turn(&subject.knobs, words->pairs, err);
    if (status == HR_OK) {
        status = hr_engine_create(subject.preset, &subject.knobs, &options, &engine, err);
    }
    if (status == HR_OK) {
        status = plan_play(engine, STEPS, err);
    }
    if (status == HR_OK) {
        status = hr_engine_report(engine, &report, err);
    }
    if (status == HR_OK) {
        bool built = report.step.instructions > 0;
        out->has_knobs = true;
        out->knobs = subject.knobs;
        out->measures = measures_of_report(&report);
        out->measures.value[MEASURE_STEPS] = UNKNOWN; // as many as a plan needs
        out->measures.value[MEASURE_PARAMETERS] = built ? out->measures.value[MEASURE_PARAMETERS] : UNKNOWN;
        (void)snprintf(out->name, sizeof out->name, "%.60s on %.30s", report.preset, report.device.kind);
        bool fits = report.oom.cause == HR_OOM_NONE;
        (void)snprintf(out->oom, sizeof out->oom, "%s", fits ? "" : hr_oom_cause_name(report.oom.cause));
    }
    hr_report_deinit(&report);
    hr_engine_destroy(engine);
    cli_close(&subject);
    return status;
}

// ---- a trace --------------------------------------------------------------------------------------------------

static double known(uint64_t count)
{
    return count == HR_NONE ? UNKNOWN : (double)count;
}

static void take_result(const hr_replay_about *about, const hr_replay_result *result, compare_side *out)
{
    const hr_replay_memory *m = &result->memory;
    out->measures = measures_unknown();
    out->measures.value[MEASURE_PEAK] = known(m->peak_in_use_bytes);
    out->measures.value[MEASURE_LIMIT] = known(m->limit_bytes);
    out->measures.value[MEASURE_POOL] = known(m->peak_pool_bytes);
    out->measures.value[MEASURE_REQUESTED] = known(m->peak_requested_bytes);
    out->measures.value[MEASURE_WASTE] = known(m->waste_bytes);
    out->measures.value[MEASURE_LARGEST_FREE] = known(m->largest_free_bytes);
    out->measures.value[MEASURE_FRAGMENTATION] = m->fragmentation;
    out->measures.value[MEASURE_STEPS] = known(about->steps);
    (void)snprintf(out->name, sizeof out->name, "a %s on %s", about->format, result->name);
    if (result->failures_total > 0) {
        char sentence[512];
        hr_oom_cause cause = result->failure_heap == NULL
                                 ? HR_OOM_CAPACITY
                                 : hr_heap_diagnose(result->failure_heap, sentence, sizeof sentence);
        (void)snprintf(out->oom, sizeof out->oom, "%s", hr_oom_cause_name(cause));
    }
}

static hr_status replay(const cli_args *args, const subject_words *words, compare_side *out, hr_err *err)
{
    hr_replay *r = NULL;
    hr_knobs knobs;
    hr_replay_result result = {0};
    hr_replay_knobs_init(&knobs);
    for (unsigned k = 0; k < args->set_count; k++) {
        HR_TRY(hr_knobs_set_pair(&knobs, args->sets[k], err));
    }
    HR_TRY(turn(&knobs, words->pairs, err));
    HR_TRY(hr_replay_open(words->base, &r, err));
    hr_status status = hr_replay_run(r, &knobs, &(hr_replay_options){0}, &result, err);
    if (status == HR_OK) {
        take_result(hr_replay_get_about(r), &result, out);
    }
    hr_replay_result_deinit(&result);
    hr_replay_close(r);
    return status;
}

// ---- which of them --------------------------------------------------------------------------------------------

static hr_status read_report(const subject_words *words, compare_side *out, hr_err *err)
{
    if (words->pairs[0] != '\0') {
        hr_status status =
            HR_FAIL(err, USAGE, "a report is what it is: needed no settings, had '%.64s'", words->pairs);
        hr_err_try(err, "headroom compare %.200s demo", words->base);
        return status;
    }
    return compare_read_report(words->base, out, err);
}

hr_status compare_open(const cli_args *args, const char *word, compare_side *out, hr_err *err)
{
    subject_words words;
    *out = (compare_side){.word = word};
    HR_TRY(part(word, &words, err));
    const hr_file_kind kind = hr_file_kind_of(words.base);
    if (kind == HR_FILE_REPORT || kind == HR_FILE_JSON) {
        out->kind = COMPARE_REPORT;
        return read_report(&words, out, err);
    }
    if (kind == HR_FILE_TRACE) {
        out->kind = COMPARE_TRACE;
        return replay(args, &words, out, err);
    }
    out->kind = COMPARE_PLAN;
    return plan(args, &words, out, err);
}
