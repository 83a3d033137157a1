// SPDX-License-Identifier: Apache-2.0
// What the Doctor finds, and what it would turn.
#ifndef TUI_SCREENS_DOCTOR_H
#define TUI_SCREENS_DOCTOR_H

#include "headroom/fit.h"

#include "app/tui/pane/pane.h"

// A turn that is known to fit: one of the engine's dry runs, of the plans beside a knob, or of the points of Fit.
typedef struct fix_row {
    int dry_run; // index of report.oom.fixes; −1: none of them
    int point;   // index of fit.point; −1: none of them
    hr_knob_id id;
    int side; // WHATIF_LESS, WHATIF_MORE
    uint64_t peak_bytes;
    uint64_t limit_bytes; // with it; 0: there is none
    double seconds;       // NaN: the device cannot tell
    hr_turn_cost cost;    // beside the knobs as they are
} fix_row;

enum { FIX_ROWS_MAX = 24 };

// Of its panes.
typedef struct doctor_state {
    const feed *feed;
    const glyphs *glyphs;
    size_t
        top; // 0: the verdict, with what shows it below as far as there is room; from 1 on: that alone, from row top - 1
    uint64_t report;           // of which it is
    fix_row fix[FIX_ROWS_MAX]; // as the next frame shows them
    size_t fix_count;
} doctor_state;

extern const pane_ops pane_doctor, pane_fixes;
void place_doctor(layout *l, rect body, const layout_wish *wish);

// evidence.c: what shows the verdict, in rows of that width; drawn from row `first` of it on.
size_t doctor_evidence_rows(const doctor_state *s, int width);
void doctor_draw_evidence(const canvas *c, int y, const doctor_state *s, size_t first);

// Whether the last step did not fit, and its verdict is here.
bool doctor_has_oom(const feed *f);

// Whether turned knobs wait for the training to go on, and are planned not to fit.
bool doctor_misses(const feed *f);

// X(ID): what can be found of a step that fits, the most urgent first
#define FINDING_MAP(X)                                                                                       \
    X(GROWTH)        /* what stays grew with each of the last steps */                                       \
    X(NEARLY_FULL)   /* the peak is above 90 % of the limit */                                               \
    X(FRAGMENTATION) /* more than a fifth of what is free is not in one piece */                             \
    X(WASTE)         /* rounding takes more than a twentieth of what is in use */                            \
    X(RETAINED)      /* tensors of earlier steps are kept */                                                 \
    X(WORKSPACE)     /* one operation's scratch is more than a twentieth of the peak */                      \
    X(FALLBACK)      /* kernels of our own do what a library refused */                                      \
    X(PREPARED)      /* the card computes otherwise than was planned */                                      \
    X(CAPTURE)       /* steps could not be captured */                                                       \
    X(SEARCH)        /* engines could not be timed, or their times not kept */                               \
    X(WAITS)         /* steps wait for input */                                                              \
    X(IDLE_KNOB)     /* a turn would need less at no cost in time */

typedef enum finding_kind {
#define X(id) FINDING_##id,
    FINDING_MAP(X)
#undef X
        FINDING_COUNT
} finding_kind;

enum { FINDING_TEXT_MAX = 320 };

// What is found, as a whole sentence with its numbers; "" when there is nothing of that kind. Returns text.
const char *doctor_finding(const feed *f, finding_kind kind, char text[FINDING_TEXT_MAX]);

// Bytes that are short are the host's: then peaks are the host's too.
bool doctor_is_of_host(const feed *f);

// After an out-of-memory: the dry runs' fixes in their order, then the single turns that fit. Where the knobs wait and are
// planned not to fit: the single turns that do and the points of Fit. Both as the dry runs' stand: what costs least first, of that
// the fastest. Otherwise the turns that need less than the knobs as they are, the least first. What raises the limit stands behind what fits into it. Returns how
// many.
size_t doctor_fixes(const feed *f, fix_row rows[FIX_ROWS_MAX]);
const char *doctor_fix_text(const feed *f, const fix_row *row,
                            char text[HR_KNOB_TEXT_MAX]); // "batch.size=64"
const char *doctor_fix_cost(const feed *f, const fix_row *row,
                            char text[HR_TURN_WORDS_MAX]); // "same numbers, +8 % step time"

#endif
