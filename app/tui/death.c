// SPDX-License-Identifier: Apache-2.0
#include "app/tui/death.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "headroom/devices.h"

#include "app/tui/app.h"

static bool is_fault(int signal_number)
{
    static const int faults[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGSYS, SIGTRAP};
    bool found = false;
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
        found = found || faults[k] == signal_number;
    }
    return found;
}

static bool is_same(const hr_knobs *one, const hr_knobs *other)
{
    bool same = true;
    for (int id = 0; same && id < HR_KNOB_COUNT; id++) {
        same = !knob_edit_differs(one, other, (hr_knob_id)id);
    }
    return same;
}

// Who computed what it died in, and with what; "" where that is not known.
static const char *implementation_of(const app *a)
{
    const hr_step_plan *p = app_step_plan(a);
    const bool known = p != NULL && a->end.instr != HR_NO_ID && a->end.instr < p->instr_count;
    return known ? hr_step_plan_text(p, p->instrs[a->end.instr].impl) : "";
}

static const char *isa_of(const app *a)
{
    return a->has_report ? a->report.device.isa : "";
}

// A knob that computes it in another way.
static const char *knob_for(const app *a, const char *impl)
{
    const hr_knobs *k = &a->applied;
    const bool narrow = !hr_knob_is(k, HR_KNOB_PRECISION_POLICY, "float32") &&
                        !hr_knob_is(k, HR_KNOB_PRECISION_POLICY, "float64");
    if (!hr_knob_is(k, HR_KNOB_DEVICE_KIND, "cpu")) {
        return "device.kind=plan";
    }
    return narrow && strncmp(impl, "own", 3) != 0 ? "precision.policy=float32" : "device.kind=reference";
}

static void write_remedy(app *a, const char *impl)
{
    const char *below = hr_devices_isa_below(isa_of(a)[0] != '\0' ? isa_of(a) : impl);
    const bool library = hr_knob_is(&a->applied, HR_KNOB_DEVICE_KIND, "cpu") && strncmp(impl, "own", 3) != 0;
    (void)snprintf(a->death.remedy, sizeof a->death.remedy, ":set %s%s%s%s", knob_for(a, impl),
                   library ? ", or leave and start ONEDNN_MAX_CPU_ISA=" : "",
                   !library        ? ""
                   : below != NULL ? below
                                   : "AVX2",
                   library ? " headroom" : "");
}

void death_note(app *a, const char *where)
{
    const hr_session_end *end = &a->end;
    death *d = &a->death;
    if (!is_fault(end->signal) || end->by_us) {
        *d = (death){0};
        return;
    }
    const char *impl = implementation_of(a), *isa = isa_of(a), *name = sigabbrev_np(end->signal);
    d->certain = end->signal == SIGILL || (d->signal == end->signal && d->instr == end->instr &&
                                           end->instr != HR_NO_ID && is_same(&d->knobs, &a->applied));
    d->signal = end->signal;
    d->instr = end->instr;
    d->knobs = a->applied;
    (void)snprintf(d->what, sizeof d->what, "it would end as before: SIG%s %s%s%s%s%s", name, where,
                   impl[0] != '\0' ? ", computed by " : "", impl, isa[0] != '\0' ? " with " : "", isa);
    write_remedy(a, impl);
}

const char *death_why_not(const app *a)
{
    const bool again = !app_engine_lives(a) && a->death.certain && is_same(&a->death.knobs, &a->knobs);
    return again ? a->death.what : NULL;
}
