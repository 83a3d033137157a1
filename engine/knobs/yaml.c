// SPDX-License-Identifier: Apache-2.0
// From libyaml's events to a tree with marks, taken one by one under our limits. A syntax error ends the file;
// what is merely not allowed (anchors, tags, a key that stands twice) is reported and reading goes on.
#include "knobs/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "headroom/words.h"

#include "base/file.h"
#include "base/text.h"
#include "base/torch_file.h"
#include "knobs/yaml_file.h"

// ---- the tree ---------------------------------------------------------------------------------------------

typedef struct level {
    yaml_node *node, *last; // the open collection and its last child
    bool has_key;           // a key waits for its value
    const char *key;
    uint32_t key_line, key_column;
} level;

typedef struct builder {
    yaml_file *file;
    level stack[YAML_MAX_DEPTH];
    size_t depth;
    uint32_t documents, events;
} builder;

static bool no_memory(builder *b)
{
    b->file->no_memory = true;
    b->file->trouble_count++;
    return false;
}

static uint32_t line_of(const yaml_event_t *event)
{
    return (uint32_t)event->start_mark.line + 1;
}

static uint32_t column_of(const yaml_event_t *event)
{
    return (uint32_t)event->start_mark.column + 1;
}

static int compare_keys(const void *a, const void *b)
{
    const yaml_node *x = *(const yaml_node *const *)a, *y = *(const yaml_node *const *)b;
    int order = strcmp(x->key, y->key);
    if (order != 0) {
        return order;
    }
    return x->key_line != y->key_line ? (x->key_line < y->key_line ? -1 : 1)
                                      : (x->key_column > y->key_column) - (x->key_column < y->key_column);
}

// Sorted, so that a mapping of many keys costs no more than n log n.
static bool report_duplicates(builder *b, const yaml_node *mapping)
{
    if (mapping->count < 2) {
        return true;
    }
    const yaml_node **sorted = hr_calloc(mapping->count, sizeof *sorted);
    if (sorted == NULL) {
        return no_memory(b);
    }
    uint32_t count = 0;
    for (const yaml_node *child = mapping->child; child != NULL; child = child->next) {
        sorted[count++] = child;
    }
    qsort(sorted, count, sizeof *sorted, compare_keys);
    const yaml_node *first = sorted[0];
    for (uint32_t i = 1; i < count; i++) {
        if (strcmp(first->key, sorted[i]->key) != 0) {
            first = sorted[i];
            continue;
        }
        yaml_problem(b->file, sorted[i]->key_line, sorted[i]->key_column,
                     "key '%s' stands twice in this mapping, on lines %u and %u", first->key, first->key_line,
                     sorted[i]->key_line);
    }
    hr_free(sorted);
    return true;
}

// Puts a new node where the next one belongs. NULL when memory is short.
static yaml_node *add_node(builder *b, yaml_kind kind, const yaml_event_t *event)
{
    yaml_node *node = arena_take(&b->file->memory, 1, sizeof *node);
    if (node == NULL) {
        return NULL;
    }
    node->kind = kind;
    node->line = line_of(event);
    node->column = column_of(event);
    if (b->depth == 0) {
        b->file->root = node;
        return node;
    }
    level *top = &b->stack[b->depth - 1];
    if (top->last == NULL) {
        top->node->child = node;
    } else {
        top->last->next = node;
    }
    top->last = node;
    top->node->count++;
    node->key = top->key;
    node->key_line = top->key_line;
    node->key_column = top->key_column;
    top->key = NULL;
    top->has_key = false;
    return node;
}

static bool awaits_key(const builder *b)
{
    return b->depth > 0 && b->stack[b->depth - 1].node->kind == YAML_MAPPING &&
           !b->stack[b->depth - 1].has_key;
}

// The first character that a terminal would obey, which only an escape can have written; -1: none. Behind the bytes of a
// scalar libyaml has a NUL.
static int find_control(const char *value, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++) {
        const size_t control = value[k] == '\0' ? 1 : hr_control_bytes(value + k, "\t\n");
        if (control > 0) {
            return (unsigned char)value[k + control - 1];
        }
    }
    return -1;
}

static bool take_text(builder *b, const yaml_event_t *event, const char *value, size_t bytes, bool quoted)
{
    const int control = find_control(value, bytes);
    if (control >= 0) {
        yaml_problem(b->file, line_of(event), column_of(event), "this text holds a control character, U+%04X",
                     (unsigned)control);
        return false;
    }
    char *kept = arena_take(&b->file->memory, bytes + 1, 1);
    if (kept == NULL) {
        return no_memory(b);
    }
    memcpy(kept, value, bytes);
    if (awaits_key(b)) {
        level *top = &b->stack[b->depth - 1];
        top->has_key = true;
        top->key = kept;
        top->key_line = line_of(event);
        top->key_column = column_of(event);
        return true;
    }
    yaml_node *node = add_node(b, YAML_SCALAR, event);
    if (node == NULL) {
        return no_memory(b);
    }
    node->text = kept;
    node->quoted = quoted;
    return true;
}

static bool open_collection(builder *b, yaml_kind kind, const yaml_event_t *event)
{
    if (awaits_key(b)) {
        yaml_problem(b->file, line_of(event), column_of(event),
                     "a key must be one word, had a list or a mapping");
        return false;
    }
    if (b->depth == YAML_MAX_DEPTH) {
        yaml_problem(b->file, line_of(event), column_of(event), "nested more than %d deep", YAML_MAX_DEPTH);
        return false;
    }
    yaml_node *node = add_node(b, kind, event);
    if (node == NULL) {
        return no_memory(b);
    }
    b->stack[b->depth++] = (level){.node = node};
    return true;
}

static bool close_collection(builder *b)
{
    const yaml_node *node = b->stack[--b->depth].node;
    return node->kind != YAML_MAPPING || report_duplicates(b, node);
}

static void refuse_marks(builder *b, const yaml_event_t *event, const yaml_char_t *anchor,
                         const yaml_char_t *tag)
{
    if (anchor != NULL) {
        yaml_problem(b->file, line_of(event), column_of(event),
                     "anchors ('&%s') are not used here: write the values out, or use 'extends'",
                     (const char *)anchor);
    }
    if (tag != NULL) {
        yaml_problem(b->file, line_of(event), column_of(event),
                     "tags ('%s') are not used here: the key says what its value is", (const char *)tag);
    }
}

static bool open_document(builder *b, const yaml_event_t *event)
{
    if (b->documents++ > 0) {
        yaml_problem(b->file, line_of(event), column_of(event),
                     "a second document begins here: a file holds one only");
        return false;
    }
    if (event->data.document_start.version_directive != NULL ||
        event->data.document_start.tag_directives.start != event->data.document_start.tag_directives.end) {
        yaml_problem(b->file, line_of(event), column_of(event), "directives ('%%…') are not used here");
    }
    return true;
}

// Takes one event into the tree; false ends the reading.
static bool take_event(builder *b, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return open_document(b, event);
    case YAML_ALIAS_EVENT:
        yaml_problem(b->file, line_of(event), column_of(event),
                     "aliases ('*%s') are not used here: write the values out, or use 'extends'",
                     (const char *)event->data.alias.anchor);
        return take_text(b, event, "", 0, true);
    case YAML_SCALAR_EVENT:
        refuse_marks(b, event, event->data.scalar.anchor, event->data.scalar.tag);
        return take_text(b, event, (const char *)event->data.scalar.value, event->data.scalar.length,
                         event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE);
    case YAML_SEQUENCE_START_EVENT:
        refuse_marks(b, event, event->data.sequence_start.anchor, event->data.sequence_start.tag);
        return open_collection(b, YAML_SEQUENCE, event);
    case YAML_MAPPING_START_EVENT:
        refuse_marks(b, event, event->data.mapping_start.anchor, event->data.mapping_start.tag);
        return open_collection(b, YAML_MAPPING, event);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_collection(b);
    case YAML_STREAM_END_EVENT:
        return false;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return true;
}

// Bounds what the tree of a small file full of tiny values can take.
static bool refuse_size(builder *b, const yaml_event_t *event)
{
    yaml_problem(b->file, line_of(event), column_of(event), "more than %d keys and values", YAML_MAX_EVENTS);
    return false;
}

static hr_status read_events(yaml_file *file, yaml_parser_t *parser, hr_err *err)
{
    builder b = {.file = file};
    yaml_event_t event;
    bool more = true;
    while (more) {
        if (!yaml_parser_parse(parser, &event)) {
            if (parser->error == YAML_MEMORY_ERROR) {
                return HR_FAIL(err, NOMEM, "%s: no memory to read its %zu bytes", file->name, file->bytes);
            }
            yaml_report_syntax(file, parser);
            file->broken = true;
            return HR_OK;
        }
        more = ++b.events > YAML_MAX_EVENTS ? refuse_size(&b, &event) : take_event(&b, &event);
        file->broken = !more && event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    return HR_OK;
}

// ---- the file ---------------------------------------------------------------------------------------------

static hr_status parse(yaml_file *file, hr_err *err)
{
    static const char byte_order_mark[] = "\xEF\xBB\xBF";
    size_t skip = file->bytes >= 3 && memcmp(file->data, byte_order_mark, 3) == 0 ? 3 : 0;
    memmove(file->data, file->data + skip, file->bytes - skip + 1);
    file->bytes -= skip;
    if (!yaml_check_text(file)) {
        return HR_OK;
    }
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        return HR_FAIL(err, NOMEM, "%s: no memory to read it", file->name);
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)file->data, file->bytes);
    hr_status status = read_events(file, &parser, err);
    yaml_parser_delete(&parser);
    if (status == HR_OK && file->no_memory) {
        status = HR_FAIL(err, NOMEM, "%s: no memory for its %zu bytes as a tree", file->name, file->bytes);
    }
    return status;
}

// Takes `data` (hr_free) in every case.
static hr_status open_data(const char *name, char *data, size_t bytes, yaml_file **out, hr_err *err)
{
    *out = NULL;
    yaml_file *file = hr_calloc(1, sizeof *file);
    if (file == NULL) {
        hr_free(data);
        return HR_FAIL(err, NOMEM, "%s: no memory to read it", name);
    }
    file->data = data;
    file->bytes = bytes;
    file->name = hr_strdup(name);
    hr_status status =
        file->name == NULL ? HR_FAIL(err, NOMEM, "%s: no memory to read it", name) : parse(file, err);
    if (status != HR_OK) {
        yaml_close(file);
        return status;
    }
    *out = file;
    return HR_OK;
}

hr_status yaml_open(const char *path, yaml_file **out, hr_err *err)
{
    char *data;
    size_t bytes;
    *out = NULL;
    HR_TRY(file_read(path, YAML_MAX_BYTES, &data, &bytes, err));
    if (torch_file_begins(data, bytes)) {
        hr_free(data);
        return torch_file_refuse(HR_PRESET, path, err);
    }
    return open_data(path, data, bytes, out, err);
}

hr_status yaml_open_text(const char *name, const char *words, size_t bytes, yaml_file **out, hr_err *err)
{
    *out = NULL;
    if (bytes > YAML_MAX_BYTES) {
        return HR_FAIL(err, READ, "%s: may have at most %d bytes, has %zu", name, YAML_MAX_BYTES, bytes);
    }
    char *data = hr_calloc(bytes + 1, 1);
    if (data == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes to read it", name, bytes + 1);
    }
    memcpy(data, words, bytes);
    return open_data(name, data, bytes, out, err);
}

void yaml_close(yaml_file *file)
{
    if (file == NULL) {
        return;
    }
    arena_deinit(&file->memory);
    yaml_problems_forget(file);
    vec_deinit(&file->troubles);
    hr_free(file->name);
    hr_free(file->data);
    hr_free(file);
}

const yaml_node *yaml_root(const yaml_file *file)
{
    return file->broken ? NULL : file->root;
}

const char *yaml_name(const yaml_file *file)
{
    return file->name;
}

const yaml_node *yaml_find(const yaml_node *mapping, const char *key)
{
    for (const yaml_node *child = mapping->child; child != NULL; child = child->next) {
        if (child->key != NULL && strcmp(child->key, key) == 0) {
            return child;
        }
    }
    return NULL;
}
