// SPDX-License-Identifier: Apache-2.0
// The report for people: the step's implementations, what a library refused, and the workspaces worth naming.
#include <inttypes.h>
#include <string.h>

#include "headroom/units.h"

#include "app/cli/report.h"
#include "app/cli/say.h"

enum {
    LABEL_COLUMN = 23,
    WORTH_NAMING = 100,
    LINE_MAX_BYTES = 512,
    WHERE_COLUMN = 43,
    BELOW_COLUMN = 17,
    REPORT_COLUMNS = 80
}; // worth: that part of the peak, or more

// ---- implementations ------------------------------------------------------------------------------------------

static void add(char *line, const char *words)
{
    strncat(line, words, LINE_MAX_BYTES - strlen(line) - 1);
}

static void print_libraries(const hr_report *r)
{
    char line[LINE_MAX_BYTES] = "";
    for (uint32_t k = 0; k < r->step.implementation_count; k++) {
        const hr_report_implementation *i = &r->step.implementations[k];
        char count[SAY_COUNT_TEXT_MAX], words[96];
        (void)snprintf(words, sizeof words, "%s%s %s", k == 0 ? "" : ", ", i->name,
                       say_count(i->instructions, count));
        add(line, words);
    }
    add(line, " instructions");
    printf("  computed by          ");
    say_paragraph(line, LABEL_COLUMN);
}

static void add_reason(char *line, uint32_t count, const char *reason, bool *first)
{
    char words[128];
    if (count > 0) {
        (void)snprintf(words, sizeof words, "%s%s for %" PRIu32, *first ? ": " : ", ", reason, count);
        add(line, words);
        *first = false;
    }
}

static void print_fallback(const hr_report_fallback *f)
{
    char line[LINE_MAX_BYTES];
    bool first = true;
    (void)snprintf(line, sizeof line, "%" PRIu32 " of %" PRIu32 " %s run on kernels of our own, %s first",
                   f->instructions, f->of, f->kind, f->first);
    add_reason(line, f->beyond_limit, "cuDNN needs more than workspace.limit", &first);
    add_reason(line, f->without_engine, "cuDNN has no engine", &first);
    add_reason(line, f->without_driver, "cuDNN shows no engine where there is no driver", &first);
    add_reason(line, f->known_fault, "cuDNN of this version has a known fault", &first);
    add_reason(line, f->without_library, "there is no cuDNN", &first);
    printf("  fallback             ");
    say_paragraph(line, LABEL_COLUMN);
}

static void print_prepared(const hr_report_prepared *p)
{
    char line[LINE_MAX_BYTES];
    (void)snprintf(line, sizeof line, "%s computes %" PRIu32 " instruction%s planned for %s, %s first%s%s",
                   p->implementation, p->instructions, p->instructions == 1 ? "" : "s", p->planned, p->first,
                   p->reason[0] == '\0' ? "" : ": ", p->reason);
    printf("  not as planned       ");
    say_paragraph(line, LABEL_COLUMN);
}

static void print_capture(const hr_report_capture *c)
{
    char line[LINE_MAX_BYTES], count[SAY_COUNT_TEXT_MAX];
    (void)snprintf(line, sizeof line, "%s steps replayed as a CUDA graph%s%s", say_count(c->replays, count),
                   c->refused[0] == '\0' ? "" : "; not captured: ", c->refused);
    printf("  capture              ");
    say_paragraph(line, LABEL_COLUMN);
}

static void print_search(const hr_report_search *s)
{
    char line[LINE_MAX_BYTES];
    int used = snprintf(line, sizeof line, "measured times of %" PRIu32 " graphs are known", s->known);
    if (s->measured > 0) {
        used += snprintf(line + used, sizeof line - (size_t)used, ", %" PRIu32 " timed now in %.1f s",
                         s->measured, s->seconds);
    }
    if (s->unmeasured > 0) {
        used +=
            snprintf(line + used, sizeof line - (size_t)used, "; %" PRIu32 " have none, %s", s->unmeasured,
                     s->refused[0] == '\0' ? "until a run on the card: this plan is not exact"
                                           : "and take the library's first engine");
    }
    (void)snprintf(line + used, sizeof line - (size_t)used, "%s%s", s->refused[0] == '\0' ? "" : ": ",
                   s->refused);
    printf("  engines              ");
    say_paragraph(line, LABEL_COLUMN);
}

void report_print_implementations(const hr_report *r)
{
    if (r->step.implementation_count > 1) { // one that does everything is the device
        print_libraries(r);
    }
    for (uint32_t k = 0; k < r->step.fallback_count; k++) {
        print_fallback(&r->step.fallbacks[k]);
    }
    for (uint32_t k = 0; k < r->step.prepared_count; k++) {
        print_prepared(&r->step.prepared[k]);
    }
    if (r->step.capture.wanted) {
        print_capture(&r->step.capture);
    }
    if (r->step.search.wanted) {
        print_search(&r->step.search);
    }
}

// ---- as PyTorch -----------------------------------------------------------------------------------------------

static bool convolves(const hr_report *r)
{
    bool found = false;
    for (uint32_t k = 0; k < r->model.layer_count && !found; k++) {
        found = strstr(r->model.layers[k].kind, "conv") != NULL;
    }
    return found;
}

static void print_unserved(const hr_report_unserved *u)
{
    char line[LINE_MAX_BYTES];
    (void)snprintf(line, sizeof line,
                   "workspaces of %" PRIu32 " of PyTorch's convolutions, %s first: cuDNN %s", u->instructions,
                   u->first,
                   u->without_driver > 0 ? "shows no engine where there is no driver"
                                         : "has no engine for them, and PyTorch itself would fail there");
    printf("  left out             ");
    say_paragraph(line, LABEL_COLUMN);
}

void report_print_left_out(const hr_report *r, const hr_knobs *knobs)
{
    if (r->step.unserved.instructions > 0) {
        print_unserved(&r->step.unserved);
    }
    const bool on_a_card = strcmp(r->device.kind, "cuda") == 0;
    const bool asked = on_a_card && strstr(r->device.isa, "no cuDNN") == NULL;
    if (!hr_knob_is(knobs, HR_KNOB_EXECUTION_AS, "pytorch") || asked || !convolves(r)) {
        return;
    }
    printf("  left out             ");
    say_paragraph(on_a_card
                      ? "cuDNN's workspaces of PyTorch's convolutions: there is no cuDNN, or no device "
                        "properties of the card"
                      : "cuDNN's workspaces of PyTorch's convolutions; -s device.kind=cuda asks for them",
                  LABEL_COLUMN);
}

// ---- workspaces -----------------------------------------------------------------------------------------------

static bool is_worth_naming(const hr_report_memory *m, const hr_report_workspace *w)
{
    return w->bytes >= m->peak_in_use_bytes / WORTH_NAMING && w->bytes > 0;
}

static void print_at_peak(const hr_report_memory *m)
{
    const hr_report_workspace *w = &m->at_peak.workspace;
    char bytes[HR_BYTES_TEXT_MAX], less[HR_BYTES_TEXT_MAX], exact[HR_BYTES_TEXT_MAX];
    printf("  at the peak: %s for %s\n", hr_bytes_human(w->bytes, bytes), w->name);
    if (m->at_peak.less_limit_bytes != HR_NONE) {
        printf("    try: -s workspace.limit=%s # %s computes it, with %s\n",
               hr_bytes_exact(m->at_peak.less_limit_bytes, exact), m->at_peak.less_implementation,
               hr_bytes_human(m->at_peak.less_bytes, less));
    }
}

void report_print_workspaces(const hr_report *r, report_source source)
{
    const hr_report_memory *m = &r->memory;
    if (m->workspace_count == 0 || !is_worth_naming(m, &m->workspaces[0])) {
        return;
    }
    puts("\nlargest workspaces");
    for (uint32_t k = 0; k < m->workspace_count && is_worth_naming(m, &m->workspaces[k]); k++) {
        const hr_report_workspace *w = &m->workspaces[k];
        char human[HR_BYTES_TEXT_MAX];
        char where[sizeof w->name + 32];
        const int length = snprintf(where, sizeof where, "%s, instruction %" PRIu32, w->name, w->instruction);
        const bool below = WHERE_COLUMN + length > REPORT_COLUMNS;
        printf("  T %10s %c  %-*s%s%*s%s\n", hr_bytes_human(w->bytes, human), source, below ? 0 : 24,
               w->implementation, below ? "\n" : " ", below ? BELOW_COLUMN : 0, "", where);
    }
    if (is_worth_naming(m, &m->at_peak.workspace)) {
        print_at_peak(m);
    }
}
