// SPDX-License-Identifier: Apache-2.0
// The names behind the public enumerations, each from its one table.
#include <stddef.h>

#include "headroom/category.h"
#include "headroom/engine.h"
#include "headroom/event.h"
#include "headroom/report.h"

static const char *const category_names[] = {
#define X(name, text, letter) [HR_CATEGORY_##name] = text,
    HR_CATEGORY_MAP(X)
#undef X
};

static const char category_letters[] = {
#define X(name, text, letter) [HR_CATEGORY_##name] = letter,
    HR_CATEGORY_MAP(X)
#undef X
};

static const char *const phase_names[] = {
#define X(name, text) [HR_PHASE_##name] = text,
    HR_PHASE_MAP(X)
#undef X
};

static const char *const event_names[] = {
#define X(name, text) [HR_EVENT_##name] = text,
    HR_EVENT_MAP(X)
#undef X
};

static const char *const cause_names[] = {
#define X(id, text) [HR_OOM_##id] = text,
    HR_OOM_CAUSE_MAP(X)
#undef X
};

static const char *const turn_cost_names[] = {
#define X(id, name, words) [HR_TURN_COST_##id] = name,
    HR_TURN_COST_MAP(X)
#undef X
};

static const char *const state_names[] = {
#define X(id, text) [HR_ENGINE_##id] = text,
    HR_ENGINE_STATE_MAP(X)
#undef X
};

static const char *const tune_reason_texts[] = {
#define X(name, text) [HR_TUNE_##name] = text,
    HR_TUNE_REASON_MAP(X)
#undef X
};

// Records come from other processes and files: a number beyond the table is "?", never an access beyond it.
#define NAME_OF(table, index) ((size_t)(index) < sizeof(table) / sizeof *(table) ? (table)[index] : "?")

const char *hr_category_name(hr_category category)
{
    return category == HR_CATEGORY_COUNT ? "unknown" : NAME_OF(category_names, category);
}

char hr_category_letter(hr_category category)
{
    return (size_t)category < sizeof category_letters ? category_letters[category] : '?';
}

const char *hr_phase_name(hr_phase phase)
{
    return phase == HR_PHASE_COUNT ? "recorded" : NAME_OF(phase_names, phase);
}

const char *hr_event_name(hr_event_kind kind)
{
    return NAME_OF(event_names, kind);
}

const char *hr_tune_reason_text(hr_tune_reason reason)
{
    return NAME_OF(tune_reason_texts, reason);
}

const char *hr_oom_cause_name(hr_oom_cause cause)
{
    return NAME_OF(cause_names, cause);
}

bool hr_oom_cause_refuses(hr_oom_cause cause)
{
    return cause != HR_OOM_NONE && cause != HR_OOM_RETRIES && cause != HR_OOM_NEAR_FULL;
}

const char *hr_turn_cost_name(hr_turn_cost cost)
{
    return NAME_OF(turn_cost_names, cost);
}

const char *hr_engine_state_name(hr_engine_state state)
{
    return NAME_OF(state_names, state);
}
