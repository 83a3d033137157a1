// SPDX-License-Identifier: Apache-2.0
#include "data/image_members.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/host_mem.h"
#include "base/text.h"

enum { USES = 3 };

// Names of folders, in byte order.
typedef struct class_table {
    char **name;
    uint32_t count, room;
} class_table;

// The sample under way, of a WebDataset.
typedef struct group {
    char key[MEMBER_NAME_MAX];
    bool has_image, has_class;
    uint32_t label;
    image_entry image;
    name_use use;
} group;

struct image_members {
    image_options options;
    member_reader reader;
    image_index *index; // borrowed
    bool fills;         // the second pass
    bool by_number;     // a .cls was seen: a WebDataset
    group open;
    class_table classes;
    uint64_t in_folders[USES], in_groups[USES]; // samples, by either rule
    uint32_t most_label;
    name_use held_out;
    uint64_t filled[DATA_SET_COUNT];
};

// ---- names
// ------------------------------------------------------------------------------------------------------

// Which set a folder of that name is.
static bool names_set(const char *name, size_t length, name_use *use)
{
    static const struct {
        const char *word;
        name_use use;
    } words[] = {{"train", NAME_TRAIN},      {"training", NAME_TRAIN}, {"val", NAME_VALIDATION},
                 {"valid", NAME_VALIDATION}, {"dev", NAME_VALIDATION}, {"validation", NAME_VALIDATION},
                 {"eval", NAME_VALIDATION},  {"test", NAME_TEST},      {"testing", NAME_TEST}};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        if (strlen(words[k].word) == length && strncasecmp(words[k].word, name, length) == 0) {
            *use = words[k].use;
            return true;
        }
    }
    return false;
}

// Neither absolute nor through "..".
static bool is_below(const char *name)
{
    if (name[0] == '/') {
        return false;
    }
    for (const char *part = name; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0')) {
            return false;
        }
    }
    return true;
}

// The folder of its class: name[*begin .. + *length). False for a file that lies in none.
static bool find_class(const char *name, size_t *begin, size_t *length, name_use *use)
{
    size_t last = 0, last_length = 0;
    for (size_t at = 0; name[at] != '\0';) {
        const size_t count = strcspn(name + at, "/");
        if (name[at + count] == '\0') {
            break; // the file itself
        }
        const char *behind = name + at + count + 1;
        if (strchr(behind, '/') != NULL && names_set(name + at, count, use)) {
            *begin = (size_t)(behind - name);
            *length = strcspn(behind, "/");
            return *length > 0;
        }
        if (count > 0 && !(count == 1 && name[at] == '.')) {
            last = at;
            last_length = count;
        }
        at += count + 1;
    }
    *begin = last;
    *length = last_length;
    return last_length > 0;
}

static const char *leaf_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash != NULL ? slash + 1 : name;
}

// Files of systems that say nothing of the data.
static bool is_hidden(const char *name)
{
    return leaf_of(name)[0] == '.';
}

// ---- classes
// ----------------------------------------------------------------------------------------------------

static int order_of(const char *name, const char *other, size_t length)
{
    const int order = strncmp(name, other, length);
    return order != 0 ? order : name[length] == '\0' ? 0 : 1;
}

// Its place, or where it would be.
static uint32_t find_name(const class_table *t, const char *name, size_t length, bool *found)
{
    uint32_t below = 0, above = t->count;
    *found = false;
    while (below < above) {
        const uint32_t middle = below + (above - below) / 2;
        const int order = order_of(t->name[middle], name, length);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0) {
            below = middle + 1;
        } else {
            above = middle;
        }
    }
    return below;
}

static hr_status add_name(class_table *t, const char *wanted, size_t length, hr_err *err)
{
    bool found;
    const uint32_t at = find_name(t, wanted, length, &found);
    if (found) {
        return HR_OK;
    }
    if (t->count == t->room) {
        const uint32_t room = t->room == 0 ? 16 : 2 * t->room;
        char **name = hr_realloc(t->name, room, sizeof *name);
        if (name == NULL) {
            return HR_FAIL(err, NOMEM, "the names of %u classes: needed memory, had less", room);
        }
        t->name = name;
        t->room = room;
    }
    char *copy = hr_calloc(length + 1, 1);
    if (copy == NULL) {
        return HR_FAIL(err, NOMEM, "the name of a class: needed %zu bytes, had less", length + 1);
    }
    memcpy(copy, wanted, length);
    memmove(t->name + at + 1, t->name + at, (t->count - at) * sizeof *t->name);
    t->name[at] = copy;
    t->count++;
    return HR_OK;
}

static void free_names(class_table *t)
{
    for (uint32_t k = 0; k < t->count; k++) {
        hr_free(t->name[k]);
    }
    hr_free(t->name);
    *t = (class_table){.name = NULL};
}

// ---- samples
// ----------------------------------------------------------------------------------------------------

// Is what is refused passed over, and counted?
static bool passes_over(image_members *m)
{
    m->index->left_out += m->options.leave_out && m->fills ? 1 : 0;
    return m->options.leave_out;
}

static hr_status refuse_change(const char *archive, hr_err *err)
{
    return HR_FAIL(err, DATA, "%s: needed an archive that stays as it is, had other members than before",
                   archive);
}

// One sample of the second pass; those of a set that is not used are passed over.
static hr_status keep(image_members *m, const char *archive, name_use use, const image_entry *e, hr_err *err)
{
    const data_set set = use == NAME_TRAIN ? DATA_TRAIN : DATA_EVAL;
    if (use != NAME_TRAIN && use != m->held_out) {
        return HR_OK;
    }
    if (m->filled[set] == m->index->count[set]) {
        return refuse_change(archive, err);
    }
    m->index->entry[(set == DATA_EVAL ? m->index->count[DATA_TRAIN] : 0) + m->filled[set]++] = *e;
    return HR_OK;
}

static hr_status entry_of(image_members *m, const member *one, image_entry *e, hr_err *err)
{
    const bool is_large = one->size_bytes > IMAGE_FILE_MOST_BYTES;
    *e = (image_entry){.size_bytes = is_large ? IMAGE_TOO_LARGE : (uint32_t)one->size_bytes,
                       .file = one->file};
    return is_large ? HR_OK : m->reader.place(m->reader.context, one, &e->at, err);
}

static hr_status show_in_folder(image_members *m, const member *one, image_entry *e, hr_err *err)
{
    size_t begin, length;
    name_use use = one->use;
    if (!find_class(one->name, &begin, &length,
                    &use)) { // in the first pass it may still be a WebDataset
        return !m->fills || passes_over(m)
                   ? HR_OK
                   : HR_FAIL(err, DATA, "%s: needed images in folders of their classes, had %.200s",
                             one->archive, one->name);
    }
    if (!m->fills) {
        m->in_folders[use]++;
        return add_name(&m->classes, one->name + begin, length, err);
    }
    bool found;
    e->label = find_name(&m->classes, one->name + begin, length, &found);
    return found ? keep(m, one->archive, use, e, err) : refuse_change(one->archive, err);
}

// ---- WebDataset
// -------------------------------------------------------------------------------------------------

static hr_status close_group(image_members *m, const char *archive, hr_err *err)
{
    group *g = &m->open;
    hr_status status = HR_OK;
    if (g->has_image && g->has_class) {
        g->image.label = g->label;
        if (!m->fills) {
            m->in_groups[g->use]++;
            m->most_label = g->label > m->most_label ? g->label : m->most_label;
        } else {
            status = keep(m, archive, g->use, &g->image, err);
        }
    } else if (m->fills && g->has_image != g->has_class) {
        status = passes_over(m) ? HR_OK
                                : HR_FAIL(err, DATA, "%s: needed an image and a .cls of %.200s, had only %s",
                                          archive, g->key, g->has_image ? "the image" : "the .cls");
    }
    *g = (group){.has_image = false};
    return status;
}

// A decimal number, with blanks and line ends around it.
static bool read_label(const char *words, uint32_t *label)
{
    int64_t number;
    char digits[MEMBER_CLASS_MOST_BYTES + 1];
    words += strspn(words, " \t\r\n");
    const size_t length = strcspn(words, " \t\r\n");
    memcpy(digits, words, length);
    digits[length] = '\0';
    if (words[length + strspn(words + length, " \t\r\n")] != '\0' || !text_to_int(digits, &number) ||
        number < 0 || number >= INT32_MAX) {
        return false;
    }
    *label = (uint32_t)number;
    return true;
}

static hr_status show_class(image_members *m, const member *one, hr_err *err)
{
    char words[MEMBER_CLASS_MOST_BYTES + 1] = "";
    m->by_number = true;
    if (one->size_bytes <= MEMBER_CLASS_MOST_BYTES) {
        HR_TRY(m->reader.text(m->reader.context, one, words, err));
    }
    if (!read_label(words, &m->open.label)) {
        return !m->fills || passes_over(m)
                   ? HR_OK
                   : HR_FAIL(err, DATA, "%s: needed the number of a class in %.200s, had another text",
                             one->archive, one->name);
    }
    m->open.has_class = true;
    return HR_OK;
}

// The key goes up to the first dot of the last part.
static hr_status enter_group(image_members *m, const member *one, hr_err *err)
{
    const char *leaf = leaf_of(one->name);
    const size_t length = (size_t)(leaf - one->name) + strcspn(leaf, ".");
    if (length >= sizeof m->open.key) {
        return HR_OK;
    }
    if (strlen(m->open.key) != length || memcmp(m->open.key, one->name, length) != 0) {
        HR_TRY(m->by_number || !m->fills ? close_group(m, one->archive, err) : HR_OK);
        memcpy(m->open.key, one->name, length);
        m->open.key[length] = '\0';
    }
    m->open.use = one->use;
    return HR_OK;
}

static bool ends_group(const char *name, const char *ending)
{
    const char *leaf = leaf_of(name);
    return strcasecmp(leaf + strcspn(leaf, "."), ending) == 0;
}

static bool is_group_image(const char *name)
{
    return ends_group(name, ".jpg") || ends_group(name, ".jpeg") || ends_group(name, ".png");
}

// ---- passes
// -----------------------------------------------------------------------------------------------------

static hr_status show_image(image_members *m, const member *one, hr_err *err)
{
    image_entry e;
    HR_TRY(entry_of(m, one, &e, err));
    if (is_group_image(one->name) && !m->open.has_image) {
        m->open.has_image = true;
        m->open.image = e;
    }
    return m->fills && m->by_number ? HR_OK : show_in_folder(m, one, &e, err);
}

hr_status members_show(image_members *m, const member *one, hr_err *err)
{
    if (!is_below(one->name)) {
        return passes_over(m)
                   ? HR_OK
                   : HR_FAIL(err, DATA, "%s: needed names below it, had %.200s", one->archive, one->name);
    }
    if (is_hidden(one->name)) {
        return HR_OK;
    }
    HR_TRY(enter_group(m, one, err));
    if (ends_group(one->name, ".cls")) {
        return show_class(m, one, err);
    }
    const bool is_image =
        image_is_named(one->name) || (m->reader.looks != NULL && m->reader.looks(m->reader.context, one));
    return is_image ? show_image(m, one, err) : HR_OK;
}

hr_status members_end(image_members *m, hr_err *err)
{
    return m->by_number || !m->fills ? close_group(m, "the archive", err) : HR_OK;
}

void members_learn(image_members *m)
{
    const uint64_t *count = m->by_number ? m->in_groups : m->in_folders;
    m->held_out = count[NAME_VALIDATION] > 0 ? NAME_VALIDATION : NAME_TEST;
    m->index->count[DATA_TRAIN] = count[NAME_TRAIN];
    m->index->count[DATA_EVAL] = count[m->held_out];
    m->index->classes = m->by_number ? m->most_label + 1 : m->classes.count;
    m->fills = true;
    m->open = (group){.has_image = false};
}

hr_status members_finish(image_members *m, const char *path, hr_err *err)
{
    bool same = true;
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        same = same && m->filled[set] == m->index->count[set];
    }
    return same ? HR_OK : refuse_change(path, err);
}

hr_status members_open(const image_options *options, const member_reader *reader, image_index *index,
                       image_members **out, hr_err *err)
{
    *out = hr_calloc(1, sizeof **out);
    if (*out == NULL) {
        return HR_FAIL(err, NOMEM, "members of an archive: needed %zu bytes, had less", sizeof **out);
    }
    **out = (image_members){.options = *options, .reader = *reader, .index = index};
    return HR_OK;
}

void members_close(image_members *m)
{
    if (m != NULL) {
        free_names(&m->classes);
        hr_free(m);
    }
}
