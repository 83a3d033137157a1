// SPDX-License-Identifier: Apache-2.0
// Fit: plans of many combinations of the knobs that trade memory for time, in search of the fastest that fits.
#ifndef HEADROOM_FIT_H
#define HEADROOM_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/engine.h"
#include "headroom/report_fields.h"

enum { HR_FIT_POINTS_MAX = 2048, HR_FIT_CHANGE_MAX = 512 };

// X(ID): what Fit may turn beyond what leaves what is learned alone; a later one includes the earlier.
#define HR_PERMISSION_MAP(X)                                                                                 \
    X(NOTHING)                                                                                               \
    X(PRECISION) /* precision.policy and .tf32 */                                                            \
    X(OPTIMIZER) /* optimizer.kind: what does the same job with less state */

typedef enum hr_fit_permission {
#define X(id) HR_PERMIT_##id,
    HR_PERMISSION_MAP(X)
#undef X
        HR_PERMISSION_COUNT
} hr_fit_permission;

// What a search for what fits may turn.
typedef struct hr_fit_wish {
    hr_fit_permission permission;
    bool keeps[HR_KNOB_COUNT]; // these stay as they are
    uint32_t threads;          // that plan; 0: as many as there are processors. The answer is the same
} hr_fit_wish;

// What Fit needs before it turns this knob: NOTHING for all that leave alone what is learned.
hr_fit_permission hr_fit_permission_for(hr_knob_id knob);
// What turning from the one to the other changes about what is learned, of what a permission allows: "mixed_float16
// rounds …; lion keeps …". "": nothing. With batch normalisation (`normalises_batches`) a batch that is split is one, too.
const char *hr_fit_change(const hr_knobs *from, const hr_knobs *to, bool normalises_batches,
                          char text[HR_FIT_CHANGE_MAX]);

// What turning from the one to the other costs: of several turns the most. A batch that is split alone costs a model without
// batch normalisation but the order in which its gradients are summed.
hr_turn_cost hr_turn_cost_of(const hr_knobs *from, const hr_knobs *to, bool normalises_batches);
// Whether a turn of this knob is worth advice there: offloading is none where the device's memory is the host's, which a card that
// is named (device.card) stands for.
bool hr_turn_helps(const hr_knobs *knobs, hr_knob_id id);
// In words, with what a step takes more or less: "same numbers, +8 % step time". Times that are not known (NaN) are left out.
enum { HR_TURN_WORDS_MAX = 72 };
const char *hr_turn_words(hr_turn_cost cost, double seconds_before, double seconds,
                          char text[HR_TURN_WORDS_MAX]);
// Whether a turn goes before another: it costs less, or as much and takes less time. What is not known goes behind.
bool hr_turn_goes_before(hr_turn_cost a, double a_seconds, hr_turn_cost b, double b_seconds);

// Fit turns the knobs that trade memory for time and leave what is learned alone: execution.mode, checkpoint.strategy,
// optimizer.fused_backward, offload.*, allocator.kind, .growth and .expandable_segments, execution.fuse and .inplace,
// workspace.limit, and batch.size against batch.accumulate so that an update sees as many samples as before (batch
// normalisation alone sees the smaller batch). With a permission also what it names, which changes what is learned.
// checkpoint.strategy=budget:SIZE is tried last, of the limit. Point 0 are the knobs themselves. Then what a search plans: first for the fastest that fits, then for the least peak, then
// for the fastest at peaks between them. No point is a combination that is refused, or a turn that changes neither
// peak nor time. Under execution.as pytorch or tensorflow allocator.kind stays as it is.
typedef struct hr_fit_point {
    char knobs
        [256]; // pairs that differ from the knobs asked about, one space between two; "": those themselves
    hr_whatif plan;
    bool normalises_batches; // of the model, whatever the point
} hr_fit_point;

// The knobs of a point of a search that was asked about `asked`.
HR_MUST_CHECK hr_status hr_fit_knobs(const hr_knobs *asked, const hr_fit_point *point, hr_knobs *out,
                                     hr_err *err);
// Keeps what `words` name: keys that Fit turns, or their groups, with commas: "batch,optimizer.kind". USAGE with the words there are.
HR_MUST_CHECK hr_status hr_fit_keep(hr_fit_wish *wish, const char *words, hr_err *err);

// Whether a is better than b in peak or time and worse in neither, or (`comes_first`) as good; what fits is not beaten by what does not.
// Times that are not known are alike.
bool hr_fit_beats(const hr_whatif *a, const hr_whatif *b, bool comes_first);

// A point, beside the others.
typedef struct hr_fit_way {
    hr_fit_point point;
    uint64_t missing_bytes;          // of the device or of the host; 0: it fits
    char changes[HR_FIT_CHANGE_MAX]; // about what is learned (hr_fit_change); "": nothing
    // No other beats it (hr_fit_beats): of all, and of those that leave alone what is learned.
    bool on_frontier, on_same_frontier;
} hr_fit_way;

typedef struct hr_fit_found {
    hr_whatif asked; // the plan of the knobs that were asked about
    uint32_t count;
    hr_fit_way ways[HR_FIT_POINTS_MAX]; // the largest peak first
    uint32_t plans;                     // that were made
    double seconds;                     // that they took
} hr_fit_found;

// The whole search; it returns when its threads have ended. `goes_on` (NULL: to the end) is asked after every point, and before what comes nearest is planned to the byte; what was found until it says no
// is there. While it is asked, `out` has what was found so far, in no order. The errors of hr_planner_plan; NOMEM.
HR_MUST_CHECK hr_status hr_planner_fit(const hr_planner *planner, const hr_knobs *knobs,
                                       const hr_fit_wish *wish, bool (*goes_on)(void *context), void *context,
                                       hr_fit_found *out, hr_err *err);
// Of what fits; NULL: nothing does. Without `may_learn` of what leaves alone what is learned.
const hr_fit_way *hr_fit_fastest(const hr_fit_found *found, bool may_learn);

// How a way is shown, and all of them (headroom/report_fields.h).
const hr_field *hr_fit_way_fields(void);
const hr_field *hr_fit_fields(void);

#endif
