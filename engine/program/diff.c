// SPDX-License-Identifier: Apache-2.0
// What differs between two listings: a patience diff. Lines that occur once in both programs and keep their order are
// matched first (the longest increasing run of them), then their equal neighbours; n log n for any two programs.
//
// Two lines are equal when their text is, places in the list and live bytes aside: those move with every line above.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"
#include "headroom/units.h"

#include "base/hash.h"
#include "base/host_mem.h"
#include "program/program.h"

// A persistent tensor, or an instruction: lines [0, persistent_count) are the tensors.
typedef struct line {
    uint64_t key;
    uint32_t index, match; // its own; that of its partner in the other program, HR_NO_ID
} line;

typedef struct side {
    const program *p;
    line *line;
    line *sorted; // by key
    uint32_t count;
} side;

typedef struct anchor {
    uint32_t a, b;
    uint32_t before; // the anchor before it in the longest run that ends here, HR_NO_ID
} anchor;

// ---- what a line says -----------------------------------------------------------------------------------------

static uint64_t tensor_key(const program *p, uint32_t id, uint64_t key)
{
    const tensor *t = &p->tensors[id];
    uint32_t owner = id;
    while (p->tensors[owner].storage != owner) {
        owner = p->tensors[owner].storage;
    }
    key = hash64(t->name, strlen(t->name), hash64_mix(key, (uint64_t)t->category << 32 | t->dtype));
    key = hash64(t->shape.dim, t->shape.rank * sizeof t->shape.dim[0], key);
    key = hash64(p->tensors[owner].name, strlen(p->tensors[owner].name), key);
    return hash64_mix(key, t->bytes);
}

static uint64_t instr_key(const program *p, const instr *i)
{
    char name[128];
    const char *text = program_instr_name(p, i, name, sizeof name);
    uint64_t key = hash64(text, strlen(text), hash64_mix(i->op, i->phase));
    key = hash64_mix(key, i->op == HR_OP_REPEAT ? (uint64_t)i->attr.count : 0);
    for (uint32_t k = 0; k < i->out_count; k++) {
        key = tensor_key(p, i->out[k], key);
    }
    for (uint32_t k = 0; k < i->in_count; k++) {
        bool memory = op_row_of(i->op)->control;
        const char *operand = p->tensors[i->in[k]].name;
        key = memory ? tensor_key(p, i->in[k], key) : hash64(operand, strlen(operand), key);
    }
    key = i->impl == NULL ? key : hash64(i->impl, strlen(i->impl), key);
    return hash64_mix(key, i->workspace == HR_NO_ID ? 0 : p->tensors[i->workspace].bytes);
}

static int by_key(const void *a, const void *b)
{
    const line *x = a;
    const line *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return x->index < y->index ? -1 : 1;
}

static bool side_init(side *s, const program *p)
{
    *s = (side){.p = p, .count = p->persistent_count + p->instr_count};
    s->line = hr_calloc(s->count + 1u, sizeof *s->line);
    s->sorted = hr_calloc(s->count + 1u, sizeof *s->sorted);
    if (s->line == NULL || s->sorted == NULL) {
        return false;
    }
    for (uint32_t k = 0; k < s->count; k++) {
        uint64_t key =
            k < p->persistent_count ? tensor_key(p, k, 1) : instr_key(p, &p->instrs[k - p->persistent_count]);
        s->line[k] = (line){.key = key, .index = k, .match = HR_NO_ID};
    }
    memcpy(s->sorted, s->line, s->count * sizeof *s->line);
    qsort(s->sorted, s->count, sizeof *s->sorted, by_key);
    return true;
}

static void side_deinit(side *s)
{
    hr_free(s->line);
    hr_free(s->sorted);
}

// ---- matching -------------------------------------------------------------------------------------------------

static bool is_single(const side *s, uint32_t k)
{
    return (k == 0 || s->sorted[k - 1].key != s->sorted[k].key) &&
           (k + 1 == s->count || s->sorted[k + 1].key != s->sorted[k].key);
}

static int by_place(const void *a, const void *b)
{
    const anchor *x = a;
    const anchor *y = b;
    return x->a < y->a ? -1 : x->a > y->a;
}

// Lines that occur once on both sides, in the order of side a. Returns how many.
static uint32_t find_anchors(const side *a, const side *b, anchor *out)
{
    uint32_t count = 0;
    uint32_t k = 0;
    uint32_t j = 0;
    while (k < a->count && j < b->count) {
        if (a->sorted[k].key == b->sorted[j].key && is_single(a, k) && is_single(b, j)) {
            out[count++] = (anchor){a->sorted[k].index, b->sorted[j].index, HR_NO_ID};
        }
        if (a->sorted[k].key < b->sorted[j].key) {
            k++;
        } else {
            j++;
        }
    }
    qsort(out, count, sizeof *out, by_place);
    return count;
}

// Matches the longest run of anchors that is in order on side b too. top[n]: the anchor that ends the best run of n + 1.
static void match_longest_run(side *a, side *b, anchor *anchors, uint32_t count, uint32_t *top)
{
    uint32_t length = 0;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t low = 0;
        uint32_t high = length;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (anchors[top[middle]].b < anchors[k].b) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        anchors[k].before = low == 0 ? HR_NO_ID : top[low - 1];
        top[low] = k;
        length = low == length ? length + 1 : length;
    }
    for (uint32_t k = length == 0 ? HR_NO_ID : top[length - 1]; k != HR_NO_ID; k = anchors[k].before) {
        a->line[anchors[k].a].match = anchors[k].b;
        b->line[anchors[k].b].match = anchors[k].a;
    }
}

static bool may_pair(const side *a, const side *b, uint32_t x, uint32_t y)
{
    return x < a->count && y < b->count && a->line[x].match == HR_NO_ID && b->line[y].match == HR_NO_ID &&
           a->line[x].key == b->line[y].key;
}

static void pair(side *a, side *b, uint32_t x, uint32_t y)
{
    a->line[x].match = y;
    b->line[y].match = x;
}

// Equal lines beside matched ones are matched too: behind them, then before them.
static void match_neighbours(side *a, side *b)
{
    for (uint32_t x = 0, y = 0; may_pair(a, b, x, y); x++, y++) {
        pair(a, b, x, y);
    }
    for (uint32_t x = 0; x < a->count; x++) {
        if (a->line[x].match != HR_NO_ID && may_pair(a, b, x + 1, a->line[x].match + 1)) {
            pair(a, b, x + 1, a->line[x].match + 1);
        }
    }
    for (uint32_t x = a->count; x-- > 1;) {
        if (a->line[x].match != HR_NO_ID && a->line[x].match > 0 &&
            may_pair(a, b, x - 1, a->line[x].match - 1)) {
            pair(a, b, x - 1, a->line[x].match - 1);
        }
    }
}

static hr_status match(side *a, side *b, hr_err *err)
{
    uint32_t most = a->count < b->count ? a->count : b->count;
    anchor *anchors = hr_calloc(most + 1u, sizeof *anchors);
    uint32_t *top = hr_calloc(most + 1u, sizeof *top);
    hr_status status = HR_OK;
    if (anchors == NULL || top == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory to compare %u lines with %u", a->count, b->count);
    } else {
        match_longest_run(a, b, anchors, find_anchors(a, b, anchors), top);
        match_neighbours(a, b);
    }
    hr_free(anchors);
    hr_free(top);
    return status;
}

// ---- printing -------------------------------------------------------------------------------------------------

static void print_line(const side *s, uint32_t k, char sign, FILE *out)
{
    const program *p = s->p;
    if (k < p->persistent_count) {
        fprintf(out, "%c     ; ", sign);
        program_print_persistent(p, k, out);
        return;
    }
    const instr *i = &p->instrs[k - p->persistent_count];
    fprintf(out, "%c %5u  %-8s  ", sign, k - p->persistent_count, hr_phase_name((hr_phase)i->phase));
    program_print_impl(i, out);
    program_print_instr(p, i, out);
}

static uint32_t unmatched(const side *s)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < s->count; k++) {
        count += s->line[k].match == HR_NO_ID;
    }
    return count;
}

static void print_all(const side *a, const side *b, FILE *out)
{
    char before[HR_BYTES_TEXT_MAX];
    char after[HR_BYTES_TEXT_MAX];
    uint32_t y = 0;
    fprintf(out, "; %u lines go, %u come; requested at the peak: %s before, %s after\n", unmatched(a),
            unmatched(b), hr_bytes_human(program_peak_bytes(a->p), before),
            hr_bytes_human(program_peak_bytes(b->p), after));
    for (uint32_t x = 0; x <= a->count; x++) {
        uint32_t until = x == a->count ? b->count : a->line[x].match;
        for (; until != HR_NO_ID && y < until; y++) {
            print_line(b, y, '+', out);
        }
        if (until == HR_NO_ID) {
            print_line(a, x, '-', out);
        } else {
            y++;
        }
    }
}

hr_status program_print_diff(const program *before, const program *after, FILE *out, hr_err *err)
{
    side a = {0};
    side b = {0};
    hr_status status = HR_OK;
    if (!side_init(&a, before) || !side_init(&b, after)) {
        status = HR_FAIL(err, NOMEM, "no host memory to compare two programs");
    } else {
        status = match(&a, &b, err);
    }
    if (status == HR_OK) {
        print_all(&a, &b, out);
    }
    side_deinit(&a);
    side_deinit(&b);
    return status;
}
