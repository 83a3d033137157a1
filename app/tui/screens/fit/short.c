// SPDX-License-Identifier: Apache-2.0
// A point in its row: every knob that FIT turns and that differs, as short as it can be understood, what changes what is learned first. Of a row
// that may be cut off, what tells it from those beside it stands before that. Its pairs stand whole below.
#include <stdio.h>
#include <string.h>

#include "app/tui/screens/fit/fit.h"

// "": the value alone says it; on: the name alone. What most points have in common stands last.
static const struct {
    hr_knob_id id;
    const char *name;
} shorts[] = {
    {HR_KNOB_PRECISION_POLICY, ""},
    {HR_KNOB_PRECISION_TF32, "tf32"},
    {HR_KNOB_OPTIMIZER_KIND, ""},
    {HR_KNOB_BATCH_SIZE, ""},
    {HR_KNOB_BATCH_ACCUMULATE, "×"},
    {HR_KNOB_CHECKPOINT_STRATEGY, "ckpt="},
    {HR_KNOB_OFFLOAD_OPTIMIZER, "offload_opt"},
    {HR_KNOB_OFFLOAD_ACTIVATIONS, "offload_act"},
    {HR_KNOB_OFFLOAD_PREFETCH, "prefetch="},
    {HR_KNOB_OPTIMIZER_FUSED_BACKWARD, "fused_bwd"},
    {HR_KNOB_ALLOCATOR_KIND, ""},
    {HR_KNOB_ALLOCATOR_GROWTH, "growth"},
    {HR_KNOB_ALLOCATOR_EXPANDABLE_SEGMENTS, "expandable"},
    {HR_KNOB_WORKSPACE_LIMIT, "workspace="},
    {HR_KNOB_EXECUTION_INPLACE, "inplace"},
    {HR_KNOB_EXECUTION_FUSE, "fuse"},
    {HR_KNOB_EXECUTION_MODE, ""},
};
enum { SHORTS = sizeof shorts / sizeof *shorts };

// The value that these pairs have for a knob. False: none.
static bool value_of(const char *pairs, hr_knob_id id, char value[HR_KNOB_TEXT_MAX])
{
    const char *key = hr_knob_rows(NULL)[id].key;
    const size_t length = strlen(key);
    for (const char *at = pairs; *at != '\0'; at += strcspn(at, " "), at += *at == ' ') {
        if (strncmp(at, key, length) == 0 && at[length] == '=') {
            (void)snprintf(value, HR_KNOB_TEXT_MAX, "%.*s", (int)strcspn(at + length + 1, " "),
                           at + length + 1);
            return true;
        }
    }
    return false;
}

static bool changes_learning(const hr_fit_point *point, hr_knob_id id)
{
    return hr_fit_permission_for(id) > HR_PERMIT_NOTHING ||
           (id == HR_KNOB_BATCH_SIZE && point->normalises_batches);
}

// "~mixed_bfloat16", "no fuse", "×4": with what stands before it.
static size_t put_word(char *text, size_t size, bool first, int at, const hr_fit_point *point,
                       const char *value)
{
    const hr_knob_id id = shorts[at].id;
    const bool on = strcmp(value, "on") == 0, off = strcmp(value, "off") == 0;
    const char *between = first || id == HR_KNOB_BATCH_ACCUMULATE ? "" : " ";
    const int length = snprintf(text, size, "%s%s%s%s%s", between, changes_learning(point, id) ? "~" : "",
                                off ? "no " : "", shorts[at].name, on || off ? "" : value);
    return length < 0 ? 0 : (size_t)length < size ? (size_t)length : size - 1;
}

// A batch's two are one word.
static hr_knob_id told_with(hr_knob_id id)
{
    return id == HR_KNOB_BATCH_ACCUMULATE ? HR_KNOB_BATCH_SIZE : id;
}

static bool is_alike(const hr_fit_point *a, const hr_fit_point *b, hr_knob_id id)
{
    char one[HR_KNOB_TEXT_MAX] = "", other[HR_KNOB_TEXT_MAX] = "";
    (void)value_of(a->knobs, id, one);
    (void)value_of(b->knobs, id, other);
    return strcmp(one, other) == 0;
}

// From how many of the rows above and below it this knob tells the row.
static int tells(const fit_points *fit, size_t row, hr_knob_id id)
{
    const hr_fit_point *own = &fit->point[fit->order[row]];
    return (row > 0 && !is_alike(own, &fit->point[fit->order[row - 1]], told_with(id))) +
           (row + 1 < fit->count && !is_alike(own, &fit->point[fit->order[row + 1]], told_with(id)));
}

enum { BESIDE = 2, ANY = -1, ALL_SEEN_BYTES = 46 }; // rows beside it; a row that 80 columns do not cut

static size_t put_words(const fit_points *fit, size_t row, int telling, size_t used,
                        char text[TABLE_CELL_MAX])
{
    const hr_fit_point *point = &fit->point[fit->order[row]];
    char value[HR_KNOB_TEXT_MAX];
    for (int k = 0; k < SHORTS; k++) {
        if (value_of(point->knobs, shorts[k].id, value) &&
            (telling == ANY || tells(fit, row, shorts[k].id) == telling)) {
            used += put_word(text + used, TABLE_CELL_MAX - used, used == 0, k, point, value);
        }
    }
    return used;
}

const char *fit_short(const fit_points *fit, size_t row, char text[TABLE_CELL_MAX])
{
    text[0] = '\0';
    size_t used = put_words(fit, row, ANY, 0, text);
    if (used > ALL_SEEN_BYTES) {
        used = 0;
        for (int telling = BESIDE; telling >= 0; telling--) {
            used = put_words(fit, row, telling, used, text);
        }
    }
    return text;
}
