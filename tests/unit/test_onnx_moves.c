// SPDX-License-Identifier: Apache-2.0
// Promises of the reader of ONNX files of chains that move bytes: each element is where ONNX has it, a chain of Transpose is one
// layer that moves or none, and what such a layer is called. Judged by a plain interpreter of ONNX's
// operators beside one of our layers.
#include "unit/onnx_words.h"

enum { MOST = 4096, RANK = 8, LINES = 64, CHAINS = 500, INPUTS = 8 };

// The elements of a sample, each by the number that it has in the input.
typedef struct block {
    int rank, dims[RANK], count, at[MOST];
} block;

static block plain(int rank, const int *dims)
{
    block b = {.rank = rank, .count = 1};
    for (int k = 0; k < rank; k++) {
        b.dims[k] = dims[k];
        b.count *= dims[k];
    }
    for (int k = 0; k < b.count; k++) {
        b.at[k] = k;
    }
    return b;
}

static block reshaped(const block *x, int rank, const int *dims)
{
    block b = plain(rank, dims);
    ck_assert_int_eq(b.count, x->count);
    memcpy(b.at, x->at, sizeof b.at);
    return b;
}

static block transposed(const block *x, const int *order)
{
    int dims[RANK], digits[RANK];
    for (int k = 0; k < x->rank; k++) {
        dims[k] = x->dims[order[k]];
    }
    block b = plain(x->rank, dims);
    for (int k = 0; k < b.count; k++) {
        int from = 0;
        for (int d = x->rank, rest = k; d-- > 0; rest /= dims[d]) {
            digits[order[d]] = rest % dims[d];
        }
        for (int d = 0; d < x->rank; d++) {
            from = from * x->dims[d] + digits[d];
        }
        b.at[k] = x->at[from];
    }
    return b;
}

static block cut(const block *x, int axis, int from, int count)
{
    int dims[RANK], behind = 1;
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = count;
    for (int d = axis + 1; d < x->rank; d++) {
        behind *= x->dims[d];
    }
    block b = plain(x->rank, dims);
    for (int k = 0; k < b.count; k++) {
        const int outer = k / (behind * count), place = k / behind % count;
        b.at[k] = x->at[(outer * x->dims[axis] + from + place) * behind + k % behind];
    }
    return b;
}

static block beside(const block *x, const block *y, int axis)
{
    int dims[RANK], behind = 1;
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] += y->dims[axis];
    for (int d = axis + 1; d < x->rank; d++) {
        behind *= x->dims[d];
    }
    block b = plain(x->rank, dims);
    for (int k = 0; k < b.count; k++) {
        const int outer = k / (behind * dims[axis]), place = k / behind % dims[axis];
        const block *of = place < x->dims[axis] ? x : y;
        b.at[k] =
            of->at[(outer * of->dims[axis] + place - (of == x ? 0 : x->dims[axis])) * behind + k % behind];
    }
    return b;
}

// Places first, first + step … of a dimension.
static block nth(const block *x, int axis, int first, int step)
{
    block b = cut(x, axis, first, 1);
    for (int place = first + step; place < x->dims[axis]; place += step) {
        const block one = cut(x, axis, place, 1);
        b = beside(&b, &one, axis);
    }
    return b;
}

// ---- our layers -----------------------------------------------------------------------------------------------

typedef struct line {
    char name[80], kind[40];
    block out;
} line;

static line lines[LINES];
static int line_count, moves;

// The whole numbers behind "key: " of the line, in brackets or alone.
static int numbers_behind(const char *text, const char *key, int out[RANK])
{
    char word[40];
    int count = 0;
    (void)snprintf(word, sizeof word, ", %s: ", key);
    const char *at = strstr(text, word);
    if (at == NULL) {
        return 0;
    }
    at += strlen(word);
    const bool many = *at == '[';
    for (char *next = NULL;; at = next) {
        at += strspn(at, many ? "[, " : "");
        out[count++] = (int)strtol(at, &next, 10);
        ck_assert_ptr_ne(at, next);
        if (!many || *next == ']') {
            return count;
        }
    }
}

static int one_behind(const char *text, const char *key, int otherwise)
{
    int out[RANK];
    return numbers_behind(text, key, out) > 0 ? out[0] : otherwise;
}

static const block *output_of(const char *name, size_t length)
{
    for (int k = 0; k < line_count; k++) {
        if (strlen(lines[k].name) == length && memcmp(lines[k].name, name, length) == 0) {
            return &lines[k].out;
        }
    }
    ck_abort_msg("no layer %.*s", (int)length, name);
}

static int inputs_of(const char *text, const block *out[INPUTS])
{
    const char *one = strstr(text, ", input: "), *two = strstr(text, ", inputs: [");
    out[0] = &lines[line_count - 1].out;
    if (one != NULL) {
        out[0] = output_of(one + 9, strcspn(one + 9, ",}"));
    }
    int count = two != NULL ? 0 : 1;
    for (const char *at = two == NULL ? NULL : two + 11; at != NULL && count < INPUTS; count++) {
        const size_t length = strcspn(at, ",]");
        out[count] = output_of(at, length);
        at = at[length] == ',' ? at + length + 2 : NULL;
    }
    return count;
}

// Pixels of d by r that become channels, or back: x seen as `apart`, its dimensions in another order, those seen as `out`.
static block patches(const block *x, const int *apart, const int *order, const int *out)
{
    const block a = reshaped(x, 5, apart), b = transposed(&a, order);
    return reshaped(&b, 3, out);
}

static block patched(const char *kind, const block *x, const int size[2])
{
    const int d = size[0], r = size[1], h = x->dims[0], w = x->dims[1], c = x->dims[2];
    if (strcmp(kind, "pixel_shuffle") == 0) {
        return patches(x, (int[]){h, w, c / d / r, d, r}, (int[]){0, 3, 1, 4, 2},
                       (int[]){h * d, w * r, c / d / r});
    }
    const bool merges = strcmp(kind, "patch_merging") == 0;
    ck_assert(merges || strcmp(kind, "pixel_unshuffle") == 0);
    return patches(x, (int[]){h / d, d, w / r, r, c},
                   merges ? (int[]){0, 2, 3, 1, 4} : (int[]){0, 2, 4, 1, 3},
                   (int[]){h / d, w / r, c * d * r});
}

// Place i of a dimension goes to i + shift.
static block rolled(const block *x, const int *shift)
{
    block b = *x;
    for (int axis = 0; axis < 2; axis++) {
        const int size = x->dims[axis], from = ((size - shift[axis]) % size + size) % size;
        const block head = cut(&b, axis, 0, from), tail = cut(&b, axis, from, size - from);
        b = from == 0 ? b : beside(&tail, &head, axis);
    }
    return b;
}

static block computed(const char *kind, const char *text)
{
    const block *in[INPUTS];
    int list[RANK], count = inputs_of(text, in);
    const block *x = in[0];
    if (strcmp(kind, "concat") == 0) {
        block all = *x;
        for (int k = 1; k < count; k++) {
            all = beside(&all, in[k], one_behind(text, "axis", 0) - 1);
        }
        return all;
    }
    if (strcmp(kind, "slice") == 0) {
        return cut(x, one_behind(text, "axis", 0) - 1, one_behind(text, "from", 0),
                   one_behind(text, "count", 0));
    }
    if (strcmp(kind, "reshape") == 0) {
        count = numbers_behind(text, "shape", list);
        return reshaped(x, count, list);
    }
    if (strcmp(kind, "flatten") == 0) {
        return reshaped(x, 1, &x->count);
    }
    if (strcmp(kind, "roll") == 0) {
        count = numbers_behind(text, "shift", list);
        list[1] = list[count - 1];
        return rolled(x, list);
    }
    moves++;
    if (strcmp(kind, "permute") == 0) {
        ck_assert_int_eq(numbers_behind(text, "axes", list), x->rank);
        for (int k = 0; k < x->rank; k++) {
            list[k]--;
        }
        return transposed(x, list);
    }
    if (strcmp(kind, "channel_shuffle") == 0) {
        const int groups = one_behind(text, "groups", 0);
        const block a = reshaped(x, 4, (int[]){x->dims[0], x->dims[1], groups, x->dims[2] / groups});
        const block b = transposed(&a, (int[]){0, 1, 3, 2});
        return reshaped(&b, 3, x->dims);
    }
    count = numbers_behind(text, "size", list);
    list[1] = list[count - 1];
    return patched(kind, x, list);
}

// What our layers give to the position embedding at their end, of an input whose elements lie so.
static block of_preset(const char *imported, const block *input)
{
    static char all[ROOM];
    char *each[PARTS];
    (void)snprintf(all, sizeof all, "%s", strstr(imported, "  layers:\n") + 10);
    lines[0] = (line){.name = "input", .out = *input};
    line_count = 1;
    moves = 0;
    const size_t count = split(all, "\n", each);
    for (size_t k = 0; k < count; k++) {
        line *to = &lines[line_count];
        ck_assert_int_lt(line_count, LINES);
        ck_assert_int_eq(sscanf(each[k], "    - {name: %79[^,], kind: %39[^,}]", to->name, to->kind), 2);
        if (strcmp(to->kind, "position_embedding") == 0) {
            const block *in[INPUTS];
            (void)inputs_of(each[k], in);
            return *in[0];
        }
        to->out = computed(to->kind, each[k]);
        line_count++;
    }
    ck_abort_msg("no end in %s", imported);
}

// ---- chains ---------------------------------------------------------------------------------------------------

typedef struct chain {
    block now;
    char input[64], output[64], weights[2048], nodes[2048], value[16];
    int values, first_rank, first[RANK];
    int reshapes, transposes;
    bool image, slices;
} chain;

static char *end_of(char *text)
{
    return text + strlen(text);
}

#define APPEND(text, ...) (void)snprintf(end_of(text), sizeof text - strlen(text), __VA_ARGS__)

static void begin_chain(chain *c, int rank, const int *dims)
{
    *c = (chain){.now = plain(rank, dims), .first_rank = rank, .image = rank == 3};
    memcpy(c->first, dims, (size_t)rank * sizeof *dims);
    APPEND(c->input, "x f ");
    for (int k = 0; k < rank; k++) {
        APPEND(c->input, "%s%d", k > 0 ? "," : "", dims[k]);
    }
    APPEND(c->value, "x");
}

static void next_value(chain *c, const char *rest)
{
    (void)snprintf(c->value, sizeof c->value, "v%d", ++c->values);
    APPEND(c->nodes, " > %s%s;", c->value, rest);
}

static void put_reshape(chain *c, int rank, const int *dims)
{
    APPEND(c->weights, "s%d = 0", c->values);
    for (int k = 0; k < rank; k++) {
        APPEND(c->weights, " %d", dims[k]);
    }
    APPEND(c->weights, ";");
    APPEND(c->nodes, "Reshape %s s%d", c->value, c->values);
    next_value(c, "");
    c->now = reshaped(&c->now, rank, dims);
    c->reshapes++;
}

static void put_transpose(chain *c, const int *order)
{
    char words[64] = " perm=0";
    for (int k = 0; k < c->now.rank; k++) {
        APPEND(words, ",%d", order[k] + 1);
    }
    c->image = c->image && c->values > 0;
    APPEND(c->nodes, "Transpose %s", c->value);
    next_value(c, words);
    c->now = transposed(&c->now, order);
    c->transposes++;
}

// The places of one dimension behind `from`, and those up to it, joined along another.
static void put_pieces(chain *c, int axis, int from, int joined)
{
    char words[32];
    const int size = c->now.dims[axis], at = c->values++;
    const block a = cut(&c->now, axis, from, size - from), b = cut(&c->now, axis, 0, from);
    APPEND(c->weights, "p%d = %d %d;", at, from, size - from);
    APPEND(c->nodes, "Split %s p%d > a%d b%d axis=%d;", c->value, at, at, at, axis + 1);
    (void)snprintf(words, sizeof words, " axis=%d", joined + 1);
    APPEND(c->nodes, "Concat b%d a%d", at, at);
    next_value(c, words);
    c->now = beside(&a, &b, joined);
    c->slices = true;
}

// As exporters write a roll.
static void put_turn(chain *c, int axis, int from)
{
    put_pieces(c, axis, from, axis);
}

// The value v with every step-th place of another.
static void put_nth(chain *c, const char *of, const char *value, int axis, int first, int step)
{
    const int at = c->values++;
    APPEND(c->weights, "f%d = %d;e%d = 999999;x%d = %d;n%d = %d;", at, first, at, at, axis + 1, at, step);
    APPEND(c->nodes, "Slice %s f%d e%d x%d n%d > %s;", of, at, at, at, at, value);
    c->slices = true;
}

// As rows of features, which a table is added to: that layer reads each of them where ONNX has it.
static void end_chain(chain *c, int rows)
{
    const int dims[2] = {rows, c->now.count / rows};
    put_reshape(c, 2, dims);
    APPEND(c->weights, "t f %d,%d", dims[0], dims[1]);
    APPEND(c->output, "y f %d,%d", dims[0], dims[1]);
    APPEND(c->nodes, "Add %s t > y", c->value);
    graph_in_words(c->input, c->output, c->weights, c->nodes);
}

// The input as our layers have it: an image as [height, width, channels].
static block first_of(const chain *c)
{
    const block x = plain(c->first_rank, c->first);
    return c->image ? transposed(&x, (int[]){1, 2, 0}) : x;
}

static bool is_in_order(const block *x, const block *y)
{
    return memcmp(x->at, y->at, (size_t)x->count * sizeof x->at[0]) == 0;
}

// Whether it is read; then each element is where ONNX has it.
static bool check_chain(const chain *c)
{
    const block input = first_of(c);
    if (hr_preset_open(path, false, &preset, NULL, &err) != HR_OK) {
        ck_assert_msg(strstr(err.sentence, "a permute of") != NULL ||
                          strstr(err.sentence, "a view that cuts") != NULL,
                      "%s: %s", c->nodes, err.sentence);
        return false;
    }
    const char *imported = hr_preset_imported(preset);
    const block given = of_preset(imported, &input);
    ck_assert_msg(given.count == c->now.count && is_in_order(&given, &c->now), "%s\n%s\n%s", c->input,
                  c->nodes, imported);
    // A reshape may have to move what a transpose has left; without one between them there is one move or none.
    const bool one = !c->slices && c->reshapes == 1;
    ck_assert_msg(one ? moves == (is_in_order(&input, &c->now) ? 0 : 1)
                      : c->slices || moves <= c->transposes + (c->image ? 1 : 0),
                  "%s\n%s", c->nodes, imported);
    return true;
}

// ---- random ones ----------------------------------------------------------------------------------------------

static uint32_t seed;

static int below(int count)
{
    seed = seed * 1664525 + 1013904223;
    return (int)((seed >> 8) % (uint32_t)count);
}

// Factors of count, in any order, up to five of them.
static int random_dims(int count, int dims[RANK])
{
    int rank = 1, most = 1 + below(5);
    dims[0] = count;
    for (int k = 0; k < 12 && rank < most; k++) {
        const int which = below(rank), by = 2 + below(3);
        if (dims[which] % by == 0 && dims[which] > by) {
            dims[which] /= by;
            dims[rank] = dims[which];
            dims[which] = by;
            rank++;
        }
    }
    return rank;
}

static void random_order(int rank, int order[RANK])
{
    for (int k = 0; k < rank; k++) {
        const int at = below(k + 1);
        order[k] = order[at];
        order[at] = k;
    }
}

static void random_step(chain *c)
{
    int list[RANK] = {0};
    const int what = below(10), axis = below(c->now.rank);
    if (what < 4) {
        const int rank = random_dims(c->now.count, list);
        put_reshape(c, rank, list);
    } else if (what < 8 || c->now.dims[axis] < 2) {
        random_order(c->now.rank, list);
        put_transpose(c, list);
    } else if (what == 9 && c->now.dims[axis] % 2 == 0 && c->now.count > 24) {
        char value[16];
        (void)snprintf(value, sizeof value, "h%d", c->values);
        put_nth(c, c->value, value, axis, c->values % 2, 2);
        c->now = nth(&c->now, axis, (c->values - 1) % 2, 2);
        (void)snprintf(c->value, sizeof c->value, "%s", value);
    } else if (c->now.dims[axis] % 2 == 0 && below(2) == 0) {
        put_pieces(c, axis, c->now.dims[axis] / 2, below(c->now.rank));
    } else {
        put_turn(c, axis, 1 + below(c->now.dims[axis] - 1));
    }
}

START_TEST(each_element_of_a_random_chain_is_where_onnx_has_it)
{
    static chain c;
    static const int sides[] = {2, 3, 4, 6};
    int reads = 0, moved = 0;
    seed = 7;
    for (int n = 0; n < CHAINS; n++) {
        int dims[3], rank = 2 + below(2);
        for (int k = 0; k < rank; k++) {
            dims[k] = sides[below(4)];
        }
        begin_chain(&c, rank, dims);
        for (int k = 1 + below(6); k > 0; k--) {
            random_step(&c);
        }
        end_chain(&c, c.now.count % 2 == 0 ? 2 : 3);
        const bool good = check_chain(&c);
        reads += good ? 1 : 0;
        moved += good && moves > 0 ? 1 : 0;
        close_preset();
    }
    ck_assert_int_gt(reads, CHAINS / 2);
    ck_assert_int_gt(moved, CHAINS / 4);
}
END_TEST

// ---- known ones -----------------------------------------------------------------------------------------------

static const struct {
    int dims[3], apart[6], rank, order[6];
    int out[3];
    const char *words;
} known[] = {
    {{6, 2, 4}, {3, 2, 2, 4}, 4, {1, 0, 2, 3}, {6, 2, 4}, "kind: channel_shuffle, groups: 3}"},
    {{12, 2, 3}, {2, 2, 3, 2, 3}, 5, {0, 3, 1, 4, 2}, {2, 4, 9}, "kind: pixel_shuffle, size: [2, 3]}"},
    {{12, 2, 3}, {3, 2, 2, 2, 3}, 5, {0, 3, 1, 4, 2}, {3, 4, 6}, "kind: pixel_shuffle, size: 2}"},
    {{2, 4, 6}, {2, 2, 2, 3, 2}, 5, {0, 2, 4, 1, 3}, {8, 2, 3}, "kind: pixel_unshuffle, size: 2}"},
    {{2, 4, 6}, {2, 2, 2, 2, 3}, 5, {4, 2, 0, 1, 3}, {12, 2, 2}, "kind: permute, axes: [1, 3, 2, 4]}"},
    {{4, 6, 2}, {4, 6, 2}, 3, {1, 0, 2}, {6, 4, 2}, "kind: permute, axes: [3, 2, 1]}"},
};

START_TEST(a_known_chain_is_the_layer_of_its_name)
{
    static chain c;
    begin_chain(&c, 3, known[_i].dims);
    put_reshape(&c, known[_i].rank, known[_i].apart);
    put_transpose(&c, known[_i].order);
    put_reshape(&c, 3, known[_i].out);
    // as our images lie, so that nothing else has to move
    put_transpose(&c, (int[]){1, 2, 0});
    end_chain(&c, 2);
    ck_assert_msg(check_chain(&c), "%s", err.sentence);
    ck_assert_msg(strstr(hr_preset_imported(preset), known[_i].words) != NULL, "%s",
                  hr_preset_imported(preset));
    ck_assert_int_eq(moves, 1);
}
END_TEST

// The operators for blocks, and the chain that each is.
static const struct {
    const char *nodes;
    int apart[5], order[5], out[3];
} blocks[] = {
    {"DepthToSpace x > v1 blocksize=2 mode=CRD;", {3, 2, 2, 2, 3}, {0, 3, 1, 4, 2}, {3, 4, 6}},
    {"DepthToSpace x > v1 blocksize=2 mode=DCR;", {2, 2, 3, 2, 3}, {2, 3, 0, 4, 1}, {3, 4, 6}},
    {"DepthToSpace x > v1 blocksize=2;", {2, 2, 3, 2, 3}, {2, 3, 0, 4, 1}, {3, 4, 6}},
};

START_TEST(an_operator_for_blocks_is_the_chain_that_it_stands_for)
{
    static chain c;
    begin_chain(&c, 3, (int[]){12, 2, 3});
    const block apart = reshaped(&c.now, 5, blocks[_i].apart), turned = transposed(&apart, blocks[_i].order);
    c.now = reshaped(&turned, 3, blocks[_i].out);
    APPEND(c.nodes, "%s", blocks[_i].nodes);
    (void)snprintf(c.value, sizeof c.value, "v1");
    c.values = 1;
    put_transpose(&c, (int[]){1, 2, 0});
    end_chain(&c, 2);
    ck_assert_msg(check_chain(&c), "%s", err.sentence);
}
END_TEST

START_TEST(pixels_to_depth_are_the_chain_that_they_stand_for)
{
    static chain c;
    begin_chain(&c, 3, (int[]){3, 4, 6});
    const block apart = reshaped(&c.now, 5, (int[]){3, 2, 2, 3, 2});
    const block turned = transposed(&apart, (int[]){2, 4, 0, 1, 3});
    c.now = reshaped(&turned, 3, (int[]){12, 2, 3});
    APPEND(c.nodes, "SpaceToDepth x > v1 blocksize=2;");
    (void)snprintf(c.value, sizeof c.value, "v1");
    c.values = 1;
    put_transpose(&c, (int[]){1, 2, 0});
    end_chain(&c, 2);
    ck_assert_msg(check_chain(&c), "%s", err.sentence);
}
END_TEST

// Four tensors of every second pixel; rows first is Swin's order, for which there is a layer.
START_TEST(patches_that_are_merged_are_one_layer)
{
    static chain c;
    const bool rows_first = _i == 0;
    begin_chain(&c, 3, (int[]){3, 4, 6});
    put_transpose(&c, (int[]){1, 2, 0});
    const block image = c.now;
    for (int k = 0; k < 4; k++) {
        const int inner = k % 2, outer = k / 2, row = rows_first ? inner : outer,
                  column = rows_first ? outer : inner;
        char rows[16], value[16];
        (void)snprintf(rows, sizeof rows, "r%d", k);
        (void)snprintf(value, sizeof value, "p%d", k);
        put_nth(&c, c.value, rows, 0, row, 2);
        put_nth(&c, rows, value, 1, column, 2);
        const block some = nth(&image, 0, row, 2), one = nth(&some, 1, column, 2);
        c.now = k == 0 ? one : beside(&c.now, &one, 2);
    }
    APPEND(c.nodes, "Concat p0 p1 p2 p3");
    next_value(&c, " axis=3");
    end_chain(&c, 2);
    ck_assert_msg(check_chain(&c), "%s", err.sentence);
    const char *imported = hr_preset_imported(preset);
    ck_assert_msg((strstr(imported, "kind: patch_merging, size: 2}") != NULL) == rows_first, "%s", imported);
    ck_assert_msg((strstr(imported, "slice") == NULL) == rows_first, "%s", imported);
}
END_TEST

// Rows and columns, each turned by a Split and a Concat, are one roll.
START_TEST(an_image_that_is_turned_both_ways_is_one_layer)
{
    static chain c;
    begin_chain(&c, 3, (int[]){4, 3, 6});
    put_turn(&c, 1, 1);
    put_turn(&c, 2, 5);
    end_chain(&c, 2);
    ck_assert_msg(check_chain(&c), "%s", err.sentence);
    const char *imported = hr_preset_imported(preset);
    ck_assert_msg(strstr(imported, "kind: roll, shift: [-1, 1]}") != NULL, "%s", imported);
    ck_assert_msg(strstr(imported, "slice") == NULL && strstr(imported, "concat") == NULL, "%s", imported);
}
END_TEST

// Channels, height and width; what is cut in halves and what these are joined along. With as many channels as half a side has
// pixels the sizes alone are those of a roll.
static const struct {
    int dims[3], cut, joined;
} elsewhere[] = {
    {{4, 8, 8}, 1, 0}, {{4, 8, 8}, 2, 0}, {{3, 8, 8}, 1, 0}, {{3, 8, 8}, 1, 2},
    {{3, 8, 8}, 2, 1}, {{8, 8, 4}, 0, 1}, {{4, 8, 4}, 1, 2}, {{2, 4, 2}, 1, 0},
};

START_TEST(halves_that_are_joined_along_another_dimension_are_no_roll)
{
    static chain c;
    begin_chain(&c, 3, elsewhere[_i].dims);
    put_pieces(&c, elsewhere[_i].cut, c.now.dims[elsewhere[_i].cut] / 2, elsewhere[_i].joined);
    end_chain(&c, 2);
    ck_assert_msg(check_chain(&c), "%s", err.sentence);
    ck_assert_msg(strstr(hr_preset_imported(preset), "kind: concat") != NULL, "%s",
                  hr_preset_imported(preset));
}
END_TEST

static const struct {
    const char *input, *output, *weights, *nodes, *sentence;
} refused[] = {
    {"x f 6,2,3", "y f 6,2,3", "s = 0", "DepthToSpace x > y blocksize=2;",
     "channels that its blocks do not divide"},
    {"x f 6,2,3", "y f 6,2,3", "s = 0", "SpaceToDepth x > y blocksize=2;",
     "an image that its blocks do not divide"},
    {"x f 6,2,3", "y f 6,2,3", "s = 0", "SpaceToDepth x > y;", "and a block of 1 or more"},
    {"x f 64", "y f 32,2", "s = 0 2 2 2 2 2 2;r = 0 32 2;t f 32,2",
     "Reshape x s > a;Transpose a > b perm=0,6,5,4,3,2,1;Reshape b r > c;Add c t > y",
     "a permute of 6 dimensions of a sample, where our layers move at most 4"},
    {"x f 6,4", "y f 6", "r = 4 -1", "Transpose x > a perm=1,0,2;Reshape a r > y",
     "a tensor without the batch as its first dimension"},
};

START_TEST(a_chain_that_no_layer_moves_is_refused)
{
    graph_in_words(refused[_i].input, refused[_i].output, refused[_i].weights, refused[_i].nodes);
    assert_refused(refused[_i].sentence);
}
END_TEST

#define ROWS(table) (int)(sizeof(table) / sizeof *(table))

int main(void)
{
    TCase *tests = tcase_create("onnx_moves");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, each_element_of_a_random_chain_is_where_onnx_has_it);
    tcase_add_loop_test(tests, a_known_chain_is_the_layer_of_its_name, 0, ROWS(known));
    tcase_add_loop_test(tests, an_operator_for_blocks_is_the_chain_that_it_stands_for, 0, ROWS(blocks));
    tcase_add_test(tests, pixels_to_depth_are_the_chain_that_they_stand_for);
    tcase_add_loop_test(tests, patches_that_are_merged_are_one_layer, 0, 2);
    tcase_add_test(tests, an_image_that_is_turned_both_ways_is_one_layer);
    tcase_add_loop_test(tests, halves_that_are_joined_along_another_dimension_are_no_roll, 0,
                        ROWS(elsewhere));
    tcase_add_loop_test(tests, a_chain_that_no_layer_moves_is_refused, 0, ROWS(refused));
    Suite *suite = suite_create("onnx_moves");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
