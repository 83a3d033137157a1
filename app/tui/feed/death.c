// SPDX-License-Identifier: Apache-2.0
#include "app/tui/feed/death.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "headroom/devices.h"

#include "app/tui/feed/feed.h"
#include "app/tui/feed/knob_edit.h"

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

// The implementation that it died in, and its library; "" where that is not known.
static const char *implementation_of(const feed *f)
{
    const hr_step_plan *p = feed_step_plan(f);
    const bool known = p != NULL && f->end.instr != HR_NO_ID && f->end.instr < p->instr_count;
    return known ? hr_step_plan_text(p, p->instrs[f->end.instr].impl) : "";
}

static const char *isa_of(const feed *f)
{
    return f->has_report ? f->report.device.isa : "";
}

// A knob that computes it in another way.
static const char *knob_for(const feed *f, const char *impl)
{
    const hr_knobs *k = &f->applied;
    const bool narrow = !hr_knob_is(k, HR_KNOB_PRECISION_POLICY, "float32") &&
                        !hr_knob_is(k, HR_KNOB_PRECISION_POLICY, "float64");
    if (!hr_knob_is(k, HR_KNOB_DEVICE_KIND, "cpu")) {
        return "device.kind=plan";
    }
    return narrow && strncmp(impl, "own", 3) != 0 ? "precision.policy=float32" : "device.kind=reference";
}

static void write_remedy(feed *f, const char *impl)
{
    const char *below = hr_devices_isa_below(isa_of(f)[0] != '\0' ? isa_of(f) : impl);
    const bool library = hr_knob_is(&f->applied, HR_KNOB_DEVICE_KIND, "cpu") && strncmp(impl, "own", 3) != 0;
    (void)snprintf(f->death.remedy, sizeof f->death.remedy, ":set %s%s%s%s", knob_for(f, impl),
                   library ? ", or leave and start ONEDNN_MAX_CPU_ISA=" : "",
                   !library        ? ""
                   : below != NULL ? below
                                   : "AVX2",
                   library ? " headroom" : "");
}

void feed_note_death(feed *f, const char *where)
{
    const hr_session_end *end = &f->end;
    death *d = &f->death;
    if (!is_fault(end->signal) || end->by_us) {
        *d = (death){0};
        return;
    }
    const char *impl = implementation_of(f), *isa = isa_of(f), *name = sigabbrev_np(end->signal);
    d->certain = end->signal == SIGILL || (d->signal == end->signal && d->instr == end->instr &&
                                           end->instr != HR_NO_ID && is_same(&d->knobs, &f->applied));
    d->signal = end->signal;
    d->instr = end->instr;
    d->knobs = f->applied;
    (void)snprintf(d->what, sizeof d->what, "it would end as before: SIG%s %s%s%s%s%s", name, where,
                   impl[0] != '\0' ? ", computed by " : "", impl, isa[0] != '\0' ? " with " : "", isa);
    write_remedy(f, impl);
}

const char *feed_why_not_again(const feed *f)
{
    const bool again = !feed_engine_lives(f) && f->death.certain && is_same(&f->death.knobs, &f->knobs);
    return again ? f->death.what : NULL;
}
