// SPDX-License-Identifier: Apache-2.0
#include "insight/implementations.h"

#include <stdio.h>
#include <string.h>

#include "headroom/event.h"

#include "base/text.h"

// ---- implementations ------------------------------------------------------------------------------------------

static bool is_computed(const instr *i)
{
    return i->impl != NULL && i->impl[0] != '\0' && !op_row_of(i->op)->orders;
}

static size_t first_word(const char *impl)
{
    return strcspn(impl, " ");
}

static void count_library(hr_report *r, const char *impl)
{
    const size_t length = first_word(impl);
    size_t k = 0;
    while (k < r->step.implementation_count && (strncmp(r->step.implementations[k].name, impl, length) != 0 ||
                                                r->step.implementations[k].name[length] != '\0')) {
        k++;
    }
    if (k == HR_LIBRARIES_MAX || length >= sizeof r->step.implementations[0].name) {
        return;
    }
    if (k == r->step.implementation_count) {
        r->step.implementation_count++;
        memcpy(r->step.implementations[k].name, impl, length);
    }
    r->step.implementations[k].instructions++;
}

// ---- instead of a library ---------------------------------------------------------------------------------------

static const char *kind_of(hr_op op)
{
    const uint8_t cost = op_row_of(op)->traits.cost;
    const bool convolves = cost == COST_CONV || cost == COST_CONV_DATA || cost == COST_CONV_WEIGHTS;
    return convolves ? "convolutions" : cost == COST_ATTENTION ? "attentions" : "operations";
}

static uint32_t count_of_kind(const program *p, const char *kind)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        count += is_computed(&p->instrs[n]) && strcmp(kind_of(p->instrs[n].op), kind) == 0;
    }
    return count;
}

static void count_fallback(const program *p, const instr *i, hr_report *r)
{
    const char *kind = kind_of(i->op);
    size_t k = 0;
    while (k < r->step.fallback_count && strcmp(r->step.fallbacks[k].kind, kind) != 0) {
        k++;
    }
    if (k == HR_FALLBACKS_MAX) {
        return;
    }
    hr_report_fallback *f = &r->step.fallbacks[k];
    if (k == r->step.fallback_count) {
        r->step.fallback_count++;
        (void)text_copy(f->kind, sizeof f->kind, kind);
        (void)program_instr_name(p, i, f->first, sizeof f->first);
        f->of = count_of_kind(p, kind);
    }
    f->instructions++;
    f->beyond_limit += i->instead == TARGET_INSTEAD_LIMIT;
    f->without_engine += i->instead == TARGET_INSTEAD_ENGINE;
    f->without_driver += i->instead == TARGET_INSTEAD_DRIVER;
    f->known_fault += i->instead == TARGET_INSTEAD_FAULT;
    f->without_library += i->instead == TARGET_INSTEAD_LIBRARY;
}

static void count_unserved(const program *p, const instr *i, hr_report_unserved *u)
{
    if (u->instructions == 0) {
        (void)program_instr_name(p, i, u->first, sizeof u->first);
    }
    u->instructions++;
    u->without_driver += i->theirs == TARGET_INSTEAD_DRIVER;
}

void implementations_count(const program *p, hr_report *r)
{
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if (is_computed(i)) {
            count_library(r, i->impl);
        }
        if (i->instead != TARGET_INSTEAD_NONE) {
            count_fallback(p, i, r);
        }
        if (i->theirs != TARGET_INSTEAD_NONE) {
            count_unserved(p, i, &r->step.unserved);
        }
    }
}

// ---- what was prepared --------------------------------------------------------------------------------------------

void implementations_prepared(const program *p, uint32_t n, const char *reason, hr_report *r)
{
    const instr *i = &p->instrs[n];
    uint32_t k = 0;
    if (i->planned == NULL) {
        return;
    }
    r->step.unplanned++;
    while (k < r->step.prepared_count && (strcmp(r->step.prepared[k].planned, i->planned) != 0 ||
                                          strcmp(r->step.prepared[k].implementation, i->impl) != 0)) {
        k++;
    }
    if (k == HR_PREPARED_MAX) {
        return;
    }
    hr_report_prepared *row = &r->step.prepared[k];
    if (k == r->step.prepared_count) {
        r->step.prepared_count++;
        (void)program_instr_name(p, i, row->first, sizeof row->first);
        (void)text_copy(row->planned, sizeof row->planned, i->planned);
        (void)text_copy(row->implementation, sizeof row->implementation, i->impl);
        (void)text_copy(row->reason, sizeof row->reason, reason == NULL ? "" : reason);
    }
    row->instructions++;
}

// ---- workspaces -----------------------------------------------------------------------------------------------

static uint64_t workspace_bytes(const program *p, uint32_t n)
{
    const uint32_t workspace = p->instrs[n].workspace;
    return workspace == HR_NO_ID ? 0 : p->tensors[workspace].bytes;
}

static void describe(const program *p, uint32_t n, hr_report_workspace *to)
{
    const instr *i = &p->instrs[n];
    *to = (hr_report_workspace){.instruction = n, .bytes = workspace_bytes(p, n)};
    (void)program_instr_name(p, i, to->name, sizeof to->name);
    (void)text_copy(to->implementation, sizeof to->implementation, i->impl == NULL ? "" : i->impl);
}

// Keeps the largest, those that come first before their equals.
static void enter(const program *p, uint32_t n, hr_report_memory *m)
{
    const uint64_t bytes = workspace_bytes(p, n);
    uint32_t at = m->workspace_count;
    while (at > 0 && m->workspaces[at - 1].bytes < bytes) {
        at--;
    }
    if (bytes == 0 || at == HR_WORKSPACES_MAX) {
        return;
    }
    m->workspace_count += m->workspace_count < HR_WORKSPACES_MAX;
    memmove(&m->workspaces[at + 1], &m->workspaces[at],
            (m->workspace_count - at - 1) * sizeof m->workspaces[0]);
    describe(p, n, &m->workspaces[at]);
}

// Its alloc stands before the instruction, its free behind, and neither is far.
static bool is_alive_at(const program *p, uint32_t n, uint32_t peak)
{
    const uint32_t workspace = p->instrs[n].workspace;
    uint32_t born = n, dies = n;
    while (born > 0 && (p->instrs[born].op != HR_OP_ALLOC || p->instrs[born].out[0] != workspace)) {
        born--;
    }
    while (dies < p->instr_count &&
           (p->instrs[dies].op != HR_OP_FREE || p->instrs[dies].in[0] != workspace)) {
        dies++;
    }
    return born <= peak && peak < dies;
}

// The largest limit below `bytes` that no other workspace exceeds which is not as large: all else stays as it is.
static uint64_t next_smaller(const program *p, uint64_t bytes)
{
    uint64_t smaller = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const uint64_t other = workspace_bytes(p, n);
        smaller = other < bytes && other > smaller ? other : smaller;
    }
    return smaller;
}

// The implementation of instruction n under a limit; false: there is none.
static bool ask(const program *p, const hr_target *target, uint32_t n, uint64_t limit, target_answer *out)
{
    op_query q;
    program_query(p, &p->instrs[n], &q);
    return target_ask(target, &q, limit, out, NULL) == HR_OK && out->impl != NULL;
}

// A limit is for all instructions: each with as much or more needs an implementation that obeys it.
static bool all_obey(const program *p, const hr_target *target, uint64_t limit)
{
    bool obey = true;
    for (uint32_t n = 0; n < p->instr_count && obey; n++) {
        target_answer other;
        obey = workspace_bytes(p, n) <= limit || ask(p, target, n, limit, &other);
    }
    return obey;
}

// The implementation under a limit that is too small for the present one.
static void ask_for_less(const program *p, const hr_target *target, hr_report_memory *m)
{
    const uint64_t bytes = m->at_peak.workspace.bytes, others = next_smaller(p, bytes);
    target_answer less;
    if (!ask(p, target, m->at_peak.workspace.instruction, bytes - 1, &less) ||
        less.workspace_bytes >= bytes) {
        return;
    }
    const uint64_t limit = others > less.workspace_bytes ? others : less.workspace_bytes;
    if (all_obey(p, target, limit)) {
        m->at_peak.less_limit_bytes = limit;
        m->at_peak.less_bytes = less.workspace_bytes;
        (void)text_copy(m->at_peak.less_implementation, sizeof m->at_peak.less_implementation, less.impl);
    }
}

void implementations_workspaces(const program *p, const hr_target *target, uint32_t peak, hr_report_memory *m)
{
    m->at_peak.less_bytes = m->at_peak.less_limit_bytes = HR_NONE;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const uint64_t bytes = workspace_bytes(p, n);
        enter(p, n, m);
        if (bytes > m->at_peak.workspace.bytes && peak != HR_NO_ID && is_alive_at(p, n, peak)) {
            describe(p, n, &m->at_peak.workspace);
        }
    }
    if (m->at_peak.workspace.bytes > 0 && target != NULL) {
        ask_for_less(p, target, m);
    }
}
