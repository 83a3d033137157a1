// SPDX-License-Identifier: Apache-2.0
#include "onnx_file.h"

#include <pb_decode.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "headroom/words.h"

#include "base/file.h"

enum { WINDOW_BYTES = 65536, MEMORY_MAX = 192 << 20, INTERNED_BYTES = 32 }; // interned: beside its letters

// What nanopb reads from: a window of the file.
typedef struct source {
    onnx_graph *g;
    uint64_t at;          // of the byte that comes next
    uint64_t from, bytes; // what lies in the window
    pb_byte_t window[WINDOW_BYTES];
} source;

// ---- memory and refusals --------------------------------------------------------------------------------------

// Whether so many bytes more are within the limit; they count from now on.
static bool charge(onnx_graph *g, size_t bytes)
{
    if (bytes > MEMORY_MAX - g->used_bytes) {
        onnx_refuse(
            g, "its graph and the numbers in it take more than %d MiB of host memory, which is the limit",
            MEMORY_MAX >> 20);
        return false;
    }
    g->used_bytes += bytes;
    return true;
}

void *onnx_take(onnx_graph *g, size_t count, size_t size)
{
    size_t bytes = 0;
    if (g->status != HR_OK || !charge(g, __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes)) {
        return NULL;
    }
    void *memory = arena_take(&g->memory, count, size);
    if (memory == NULL && bytes > 0) {
        g->status = HR_FAIL(g->err, NOMEM, "%.160s: no memory to read it", g->path);
    }
    return memory;
}

char *onnx_print(onnx_graph *g, const char *format, ...)
{
    char words[2 * ONNX_NAME];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(words, sizeof words, format, args);
    va_end(args);
    const size_t bytes = length < 0 ? 1 : (size_t)length < sizeof words ? (size_t)length + 1 : sizeof words;
    char *text = onnx_take(g, bytes, 1);
    if (text != NULL) {
        memcpy(text, words, bytes);
        text[bytes - 1] = '\0';
    }
    return text;
}

void onnx_refuse(onnx_graph *g, const char *format, ...)
{
    char sentence[HR_ERR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    if (g->status == HR_OK) {
        g->status = HR_FAIL(g->err, PRESET, "%.160s: %s", g->path, sentence);
        hr_err_try(g->err, "headroom presets, for a model like it that can be copied and changed");
    }
}

// ---- bytes ----------------------------------------------------------------------------------------------------

static bool fill(source *s)
{
    onnx_graph *g = s->g;
    const uint64_t left = g->file_bytes - s->at;
    s->from = s->at;
    s->bytes = left < WINDOW_BYTES ? left : WINDOW_BYTES;
    const hr_status status = file_read_at(g->fd, s->at, s->window, s->bytes, g->path, g->err);
    if (status != HR_OK) {
        g->status = status;
    }
    return status == HR_OK;
}

static bool give_bytes(pb_istream_t *stream, pb_byte_t *to, size_t count)
{
    source *s = stream->state;
    while (count > 0) {
        if ((s->at < s->from || s->at >= s->from + s->bytes) && !fill(s)) {
            return false;
        }
        const uint64_t here = s->from + s->bytes - s->at;
        const size_t piece = here < count ? (size_t)here : count;
        memcpy(to, s->window + (s->at - s->from), piece);
        s->at += piece;
        to += piece;
        count -= piece;
    }
    return true;
}

// Over bytes that are not looked at: nothing of them is read.
static bool pass(pb_istream_t *in, uint64_t bytes)
{
    if (bytes > in->bytes_left) {
        return false;
    }
    ((source *)in->state)->at += bytes;
    in->bytes_left -= (size_t)bytes;
    return true;
}

static bool skip(pb_istream_t *in, pb_wire_type_t wire)
{
    uint64_t bytes = 0;
    return wire == PB_WT_STRING ? pb_decode_varint(in, &bytes) && pass(in, bytes) : pb_skip_field(in, wire);
}

// One message: `take` is called for each field of it and reads that whole.
typedef bool (*take_field)(pb_istream_t *in, pb_wire_type_t wire, uint32_t tag, source *s, void *to);

static bool read_fields(pb_istream_t *in, take_field take, source *s, void *to)
{
    pb_wire_type_t wire;
    uint32_t tag;
    bool end = false;
    while (pb_decode_tag(in, &wire, &tag, &end)) {
        if (s->g->status != HR_OK || !take(in, wire, tag, s, to)) {
            return false;
        }
    }
    return end;
}

static bool read_message(pb_istream_t *in, pb_wire_type_t wire, take_field take, source *s, void *to)
{
    pb_istream_t inner;
    return wire == PB_WT_STRING && pb_make_string_substream(in, &inner) && read_fields(&inner, take, s, to) &&
           pb_close_string_substream(in, &inner);
}

static bool read_name(pb_istream_t *in, pb_wire_type_t wire, char name[ONNX_NAME + 1], size_t *length)
{
    uint64_t bytes = 0;
    if (wire != PB_WT_STRING || !pb_decode_varint(in, &bytes) || bytes > in->bytes_left) {
        return false;
    }
    *length = bytes < ONNX_NAME ? (size_t)bytes : ONNX_NAME;
    if (!pb_read(in, (pb_byte_t *)name, *length) || !pass(in, bytes - *length)) {
        return false;
    }
    name[*length] = '\0';
    return true;
}

// A copy of a text as it may be shown.
static bool keep_shown(onnx_graph *g, const char *name, size_t length, const char **out)
{
    char *text = onnx_take(g, length + 1, 1);
    for (size_t k = 0; text != NULL && k < length; k++) {
        text[k] = name[k] < ' ' || name[k] > '~' ? '?' : name[k];
    }
    *out = text;
    return text != NULL;
}

// A text of the file, as it may be shown.
static bool read_text(pb_istream_t *in, pb_wire_type_t wire, source *s, const char **out)
{
    char name[ONNX_NAME + 1];
    size_t length = 0;
    return read_name(in, wire, name, &length) && keep_shown(s->g, name, length, out);
}

// Of a value's name. INTERN_NONE with g->status set, when there is no memory or the limit is reached.
static uint32_t number_of(onnx_graph *g, const char *name, size_t length)
{
    const uint32_t before = intern_count(&g->values), number = intern_add(&g->values, name, length);
    if (number == INTERN_NONE) {
        g->status = HR_FAIL(g->err, NOMEM, "%.160s: no memory to read it", g->path);
    }
    return intern_count(&g->values) == before || charge(g, length + INTERNED_BYTES) ? number : INTERN_NONE;
}

// A value's number; a longer name is refused.
static bool read_value(pb_istream_t *in, pb_wire_type_t wire, source *s, uint32_t *out)
{
    char name[ONNX_NAME + 1];
    size_t length = 0;
    const uint64_t before = in->bytes_left;
    if (!read_name(in, wire, name, &length)) {
        return false;
    }
    if (before - in->bytes_left > ONNX_NAME + 2) {
        onnx_refuse(s->g, "a value has a name of more than %d letters", ONNX_NAME);
        return false;
    }
    *out = length == 0 ? ONNX_NOTHING : number_of(s->g, name, length);
    return s->g->status == HR_OK;
}

static bool read_whole(pb_istream_t *in, pb_wire_type_t wire, int64_t *out)
{
    uint64_t bits = 0;
    const bool good = wire == PB_WT_VARINT && pb_decode_varint(in, &bits);
    *out = (int64_t)bits;
    return good;
}

// ---- growing lists: the arena has no realloc, so that they double ----------------------------------------------

static void *grown(onnx_graph *g, void *old, uint32_t count, size_t size)
{
    if (count > 0 && (count & (count - 1)) != 0) {
        return old;
    }
    if (count >= ONNX_LIST) {
        onnx_refuse(g, "a node has a list of more than %d", ONNX_LIST);
        return NULL;
    }
    void *more = onnx_take(g, count == 0 ? 1 : (size_t)count * 2, size);
    if (more != NULL && count > 0) {
        memcpy(more, old, count * size);
    }
    return more;
}

static bool push_value(pb_istream_t *in, pb_wire_type_t wire, source *s, uint32_t **list, uint32_t *count)
{
    uint32_t *more = grown(s->g, *list, *count, sizeof **list);
    *list = more;
    return more != NULL && read_value(in, wire, s, &more[(*count)++]);
}

static bool push_whole(onnx_graph *g, onnx_attribute *a, int64_t value)
{
    int64_t *more = grown(g, a->wholes, a->count, sizeof *more);
    if (more != NULL) {
        a->wholes = more;
        more[a->count++] = value;
    }
    return more != NULL;
}

// ---- messages -------------------------------------------------------------------------------------------------

static bool push_dim(source *s, onnx_tensor *t, int64_t dim)
{
    if (t->rank == ONNX_RANK || dim < 0 || dim > ONNX_DIM_MAX) {
        onnx_refuse(s->g, "a tensor has a shape beyond %d dimensions of 0 to 2^40", ONNX_RANK);
        return false;
    }
    t->dims[t->rank++] = dim;
    return true;
}

static bool read_dims(pb_istream_t *in, pb_wire_type_t wire, source *s, onnx_tensor *t)
{
    int64_t dim = 0;
    pb_istream_t inner;
    if (wire == PB_WT_VARINT) {
        return read_whole(in, wire, &dim) && push_dim(s, t, dim);
    }
    if (wire != PB_WT_STRING || !pb_make_string_substream(in, &inner)) {
        return false;
    }
    while (inner.bytes_left > 0) {
        if (!read_whole(&inner, PB_WT_VARINT, &dim) || !push_dim(s, t, dim)) {
            return false;
        }
    }
    return pb_close_string_substream(in, &inner);
}

static bool keep_place(pb_istream_t *in, uint32_t tag, source *s, onnx_tensor *t)
{
    uint64_t bytes = 0;
    if (!pb_decode_varint(in, &bytes)) {
        return false;
    }
    t->field = tag;
    t->at = s->at;
    t->bytes = bytes;
    return pass(in, bytes);
}

// TensorProto
static bool take_tensor(pb_istream_t *in, pb_wire_type_t wire, uint32_t tag, source *s, void *to)
{
    onnx_tensor *t = to;
    int64_t number = 0;
    switch (tag) {
    case 1:
        return read_dims(in, wire, s, t);
    case 2:
    case 14:
        if (!read_whole(in, wire, &number)) {
            return false;
        }
        t->type = tag == 2 ? (int32_t)number : t->type;
        t->external = tag == 14 ? number == 1 : t->external;
        return true;
    case 8:
        return read_text(in, wire, s, &t->name);
    case 4:
    case 5:
    case 7:
    case 9:
    case 10:
    case 11:
        return wire == PB_WT_STRING ? keep_place(in, tag, s, t) : skip(in, wire);
    default:
        return skip(in, wire);
    }
}

// TensorProto of a weight, which nodes read by its name as it lies in the file
static bool take_weight(pb_istream_t *in, pb_wire_type_t wire, uint32_t tag, source *s, void *to)
{
    onnx_weight *w = to;
    if (tag != 8) {
        return take_tensor(in, wire, tag, s, &w->tensor);
    }
    if (!read_value(in, wire, s, &w->value)) {
        return false;
    }
    const char *name = intern_text(&s->g->values, w->value);
    return keep_shown(s->g, name == NULL ? "" : name, name == NULL ? 0 : strlen(name), &w->tensor.name);
}

static bool is_countable(source *s, const onnx_tensor *t)
{
    int64_t elements = 1;
    for (uint32_t k = 0; k < t->rank; k++) {
        if (__builtin_mul_overflow(elements, t->dims[k], &elements) || elements > ONNX_DIM_MAX) {
            onnx_refuse(s->g, "'%s' is beyond the largest tensor of 2^40 elements", t->name);
            return false;
        }
    }
    return true;
}

static void begin_tensor(source *s, onnx_tensor *t)
{
    t->name = "";
    t->number = s->g->tensor_count++;
}

static bool read_tensor(pb_istream_t *in, pb_wire_type_t wire, source *s, onnx_tensor *t)
{
    begin_tensor(s, t);
    return read_message(in, wire, take_tensor, s, t) && is_countable(s, t);
}

static bool read_attribute_list(pb_istream_t *in, pb_wire_type_t wire, source *s, onnx_attribute *a)
{
    int64_t value = 0;
    pb_istream_t inner;
    if (wire == PB_WT_VARINT) {
        return read_whole(in, wire, &value) && push_whole(s->g, a, value);
    }
    if (wire != PB_WT_STRING || !pb_make_string_substream(in, &inner)) {
        return false;
    }
    while (inner.bytes_left > 0) {
        if (!read_whole(&inner, PB_WT_VARINT, &value) || !push_whole(s->g, a, value)) {
            return false;
        }
    }
    return pb_close_string_substream(in, &inner);
}

// AttributeProto
static bool take_attribute(pb_istream_t *in, pb_wire_type_t wire, uint32_t tag, source *s, void *to)
{
    onnx_attribute *a = to;
    float real = 0;
    switch (tag) {
    case 1:
        return read_text(in, wire, s, &a->name);
    case 2:
        if (wire != PB_WT_32BIT || !pb_decode_fixed32(in, &real)) {
            return false;
        }
        a->real = (double)real;
        return true;
    case 3:
        return read_whole(in, wire, &a->whole);
    case 4:
        return read_text(in, wire, s, &a->word);
    case 5:
        a->tensor = onnx_take(s->g, 1, sizeof *a->tensor);
        return a->tensor != NULL && read_tensor(in, wire, s, a->tensor);
    case 8:
        return read_attribute_list(in, wire, s, a);
    case 6:
    case 11:
        a->graph = true;
        return skip(in, wire);
    default:
        return skip(in, wire);
    }
}

static bool push_attribute(pb_istream_t *in, pb_wire_type_t wire, source *s, onnx_node *node)
{
    onnx_attribute *more = grown(s->g, node->attributes, node->attribute_count, sizeof *more);
    if (more == NULL) {
        return false;
    }
    node->attributes = more;
    onnx_attribute *a = &more[node->attribute_count++];
    *a = (onnx_attribute){.name = "", .word = ""};
    return read_message(in, wire, take_attribute, s, a);
}

// NodeProto
static bool take_node(pb_istream_t *in, pb_wire_type_t wire, uint32_t tag, source *s, void *to)
{
    onnx_node *node = to;
    switch (tag) {
    case 1:
        return push_value(in, wire, s, &node->inputs, &node->input_count);
    case 2:
        return push_value(in, wire, s, &node->outputs, &node->output_count);
    case 3:
        return read_text(in, wire, s, &node->name);
    case 4:
        return read_text(in, wire, s, &node->op);
    case 5:
        return push_attribute(in, wire, s, node);
    case 7:
        return read_text(in, wire, s, &node->domain);
    default:
        return skip(in, wire);
    }
}

// TensorShapeProto.Dimension
static bool take_dim(pb_istream_t *in, pb_wire_type_t wire, uint32_t tag, source *s, void *to)
{
    onnx_value *v = to;
    int64_t *dim = &v->dims[v->rank - 1];
    if (tag == 2) {
        return read_text(in, wire, s, &v->symbols[v->rank - 1]);
    }
    if (tag != 1) {
        return skip(in, wire);
    }
    if (!read_whole(in, wire, dim) || *dim < 0 || *dim > ONNX_DIM_MAX) {
        onnx_refuse(s->g, "'%s' has a dimension beyond 0 to 2^40", v->name);
        return false;
    }
    return true;
}

static bool take_shape(pb_istream_t *in, pb_wire_type_t wire, uint32_t tag, source *s, void *to)
{
    onnx_value *v = to;
    if (tag != 1) {
        return skip(in, wire);
    }
    if (v->rank == ONNX_RANK) {
        onnx_refuse(s->g, "'%s' has more than %d dimensions", v->name, ONNX_RANK);
        return false;
    }
    v->dims[v->rank] = -1;
    v->symbols[v->rank++] = "";
    return read_message(in, wire, take_dim, s, v);
}

// TypeProto.Tensor
static bool take_tensor_type(pb_istream_t *in, pb_wire_type_t wire, uint32_t tag, source *s, void *to)
{
    onnx_value *v = to;
    int64_t type = 0;
    if (tag == 1) {
        const bool good = read_whole(in, wire, &type);
        v->type = (int32_t)type;
        return good;
    }
    v->has_shape = v->has_shape || tag == 2;
    return tag == 2 ? read_message(in, wire, take_shape, s, v) : skip(in, wire);
}

static bool take_type(pb_istream_t *in, pb_wire_type_t wire, uint32_t tag, source *s, void *to)
{
    return tag == 1 ? read_message(in, wire, take_tensor_type, s, to) : skip(in, wire);
}

// ValueInfoProto
static bool take_value(pb_istream_t *in, pb_wire_type_t wire, uint32_t tag, source *s, void *to)
{
    onnx_value *v = to;
    if (tag == 1) {
        if (!read_value(in, wire, s, &v->value)) {
            return false;
        }
        const char *name = intern_text(&s->g->values, v->value);
        char *shown = onnx_print(s->g, "%s", name == NULL ? "" : name);
        v->name = shown == NULL ? "" : hr_plain_text(shown, "");
        return shown != NULL;
    }
    return tag == 2 ? read_message(in, wire, take_type, s, v) : skip(in, wire);
}

// Each list ends in a pointer to where its next element belongs.
typedef struct ends {
    onnx_node **node;
    onnx_value **input, **output, **shape;
    onnx_weight **weight;
} ends;

static bool push_node(pb_istream_t *in, pb_wire_type_t wire, source *s, ends *at)
{
    onnx_graph *g = s->g;
    if (g->node_count++ == ONNX_NODES) {
        onnx_refuse(g, "it has more than %d nodes, which is the limit", ONNX_NODES);
        return false;
    }
    onnx_node *node = onnx_take(g, 1, sizeof *node);
    if (node == NULL) {
        return false;
    }
    node->name = node->op = node->domain = "";
    *at->node = node;
    at->node = &node->next;
    return read_message(in, wire, take_node, s, node);
}

static bool push_graph_value(pb_istream_t *in, pb_wire_type_t wire, source *s, onnx_value ***end)
{
    onnx_value *v = onnx_take(s->g, 1, sizeof *v);
    if (v == NULL) {
        return false;
    }
    v->name = "";
    v->value = ONNX_NOTHING;
    **end = v;
    *end = &v->next;
    return read_message(in, wire, take_value, s, v);
}

static bool push_weight(pb_istream_t *in, pb_wire_type_t wire, source *s, ends *at)
{
    onnx_graph *g = s->g;
    onnx_weight *w = onnx_take(g, 1, sizeof *w);
    if (w == NULL) {
        return false;
    }
    begin_tensor(s, &w->tensor);
    w->value = ONNX_NOTHING;
    if (!read_message(in, wire, take_weight, s, w) || !is_countable(s, &w->tensor)) {
        return false;
    }
    g->weight_count++;
    *at->weight = w;
    at->weight = &w->next;
    return true;
}

// GraphProto
static bool take_graph(pb_istream_t *in, pb_wire_type_t wire, uint32_t tag, source *s, void *to)
{
    ends *at = to;
    switch (tag) {
    case 1:
        return push_node(in, wire, s, at);
    case 5:
        return push_weight(in, wire, s, at);
    case 11:
        return push_graph_value(in, wire, s, &at->input);
    case 12:
        return push_graph_value(in, wire, s, &at->output);
    case 13:
        return s->g->lets_pass ? push_graph_value(in, wire, s, &at->shape) : skip(in, wire);
    case 15:
        onnx_refuse(s->g, "it has sparse weights, which are not read");
        return false;
    default:
        return skip(in, wire);
    }
}

typedef struct opset {
    const char *domain;
    int64_t version;
} opset;

static bool take_opset(pb_istream_t *in, pb_wire_type_t wire, uint32_t tag, source *s, void *to)
{
    opset *o = to;
    return tag == 1   ? read_text(in, wire, s, &o->domain)
           : tag == 2 ? read_whole(in, wire, &o->version)
                      : skip(in, wire);
}

// ModelProto
static bool take_model(pb_istream_t *in, pb_wire_type_t wire, uint32_t tag, source *s, void *to)
{
    onnx_graph *g = s->g;
    opset o = {.domain = ""};
    switch (tag) {
    case 2:
        return read_text(in, wire, s, &g->producer);
    case 7:
        if (g->has_graph) {
            return false;
        }
        g->has_graph = true;
        return read_message(in, wire, take_graph, s, to);
    case 8:
        if (!read_message(in, wire, take_opset, s, &o)) {
            return false;
        }
        if (o.domain[0] == '\0' || strcmp(o.domain, "ai.onnx") == 0) {
            g->opset = o.version;
        }
        return true;
    default:
        return skip(in, wire);
    }
}

// ---- the file -------------------------------------------------------------------------------------------------

static hr_status read_file(onnx_graph *g, source *s)
{
    ends at = {&g->nodes, &g->inputs, &g->outputs, &g->shapes, &g->weights};
    pb_istream_t in = {.callback = give_bytes, .state = s, .bytes_left = (size_t)g->file_bytes};
    const bool good = read_fields(&in, take_model, s, &at);
    if (!good && g->status == HR_OK) {
        onnx_refuse(g,
                    g->has_graph
                        ? "it is cut or damaged at byte %llu: needed the messages of an ONNX file to end"
                        : "needed an ONNX file, had other bytes at %llu",
                    (unsigned long long)s->at);
    } else if (good && !g->has_graph) {
        onnx_refuse(g, "needed an ONNX file with a graph, had none");
    }
    return g->status;
}

hr_status onnx_open(const char *path, bool lets_pass, onnx_graph *out, hr_err *err)
{
    struct stat info;
    *out = (onnx_graph){.path = path, .fd = -1, .producer = "", .lets_pass = lets_pass, .err = err};
    HR_TRY(file_open(path, &out->fd, err));
    if (fstat(out->fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        return HR_FAIL(err, READ, "%.160s: needed a file, had a pipe or a device", path);
    }
    out->file_bytes = (uint64_t)info.st_size;
    source *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "%.160s: no memory to read it", path);
    }
    s->g = out;
    const hr_status status = read_file(out, s);
    hr_free(s);
    return status;
}

void onnx_close(onnx_graph *g)
{
    if (g->fd >= 0) {
        file_close(g->fd);
    }
    g->fd = -1;
    intern_deinit(&g->values);
    arena_deinit(&g->memory);
}

// ---- attributes -----------------------------------------------------------------------------------------------

const onnx_attribute *onnx_find(const onnx_node *node, const char *name)
{
    for (uint32_t k = 0; k < node->attribute_count; k++) {
        if (strcmp(node->attributes[k].name, name) == 0) {
            return &node->attributes[k];
        }
    }
    return NULL;
}

int64_t onnx_whole(const onnx_node *node, const char *name, int64_t otherwise)
{
    const onnx_attribute *a = onnx_find(node, name);
    return a == NULL ? otherwise : a->whole;
}

double onnx_real(const onnx_node *node, const char *name, double otherwise)
{
    const onnx_attribute *a = onnx_find(node, name);
    return a == NULL ? otherwise : a->real;
}
