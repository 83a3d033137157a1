// SPDX-License-Identifier: Apache-2.0
#include "data/listing.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/host_mem.h"

// From the back: '#' stands for digits.
static bool ends_in_one(const char *name, const char *ending, size_t wanted)
{
    size_t length = strlen(name);
    while (wanted > 0) {
        const char c = ending[--wanted];
        const size_t before = length;
        while (c == '#' && length > 0 && name[length - 1] >= '0' && name[length - 1] <= '9') {
            length--;
        }
        if (c != '#' && length > 0 && strncasecmp(&name[length - 1], &c, 1) == 0) {
            length--;
        }
        if (length == before) {
            return false;
        }
    }
    return length > 0;
}

bool name_ends_in(const char *name, const char *endings)
{
    const char *ending = endings;
    bool ends = false;
    for (bool more = true; more && !ends;) {
        const size_t length = strcspn(ending, " ");
        ends = ends_in_one(name, ending, length);
        more = ending[length] == ' ';
        ending += length + more;
    }
    return ends;
}

static bool is_wanted(const struct dirent *entry, const char *ending)
{
    return entry->d_name[0] != '.' && name_ends_in(entry->d_name, ending);
}

// How many names there are, and their bytes.
static void measure(DIR *folder, const char *ending, uint64_t *count, uint64_t *bytes)
{
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (is_wanted(entry, ending)) {
            (*count)++;
            *bytes += strlen(entry->d_name) + 1;
        }
    }
}

bool folder_is_at(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool files_are_at(const char *path, const char *ending)
{
    struct stat facts;
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return name_ends_in(path, ending) && stat(path, &facts) == 0 && S_ISREG(facts.st_mode);
    }
    uint64_t count = 0, bytes = 0;
    measure(folder, ending, &count, &bytes);
    closedir(folder);
    return count > 0;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

name_use name_use_of(const char *name)
{
    static const struct {
        const char *word;
        name_use use;
    } words[] = {{"val", NAME_VALIDATION}, {"valid", NAME_VALIDATION}, {"validation", NAME_VALIDATION},
                 {"dev", NAME_VALIDATION}, {"eval", NAME_VALIDATION},  {"test", NAME_TEST}};
    for (const char *c = name; *c != '\0';) {
        size_t length = 0;
        while (is_letter(c[length])) {
            length++;
        }
        for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
            if (strlen(words[k].word) == length && strncasecmp(c, words[k].word, length) == 0) {
                return words[k].use;
            }
        }
        c += length > 0 ? length : 1;
    }
    return NAME_TRAIN;
}

name_use listing_held_out_use(const listing *l)
{
    for (uint32_t k = 0; k < l->count; k++) {
        if (name_use_of(listing_name(l, k)) == NAME_VALIDATION) {
            return NAME_VALIDATION;
        }
    }
    return NAME_TEST;
}

const char *listing_name(const listing *l, uint32_t k)
{
    return l->names + l->name[k];
}

void listing_free(listing *l)
{
    hr_free(l->names);
    hr_free(l->name);
    *l = (listing){0};
}

// False when names came in the meantime that there is no room for.
static bool fill(DIR *folder, const char *ending, uint64_t count, uint64_t bytes, listing *out)
{
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (!is_wanted(entry, ending)) {
            continue;
        }
        const size_t length = strlen(entry->d_name) + 1;
        if (out->count == count || length > bytes - out->names_bytes) {
            return false;
        }
        memcpy(out->names + out->names_bytes, entry->d_name, length);
        out->name[out->count++] = out->names_bytes;
        out->names_bytes += (uint32_t)length;
    }
    return true;
}

static int by_name(const void *a, const void *b, void *names)
{
    const char *const base = names;
    return strcmp(base + *(const uint32_t *)a, base + *(const uint32_t *)b);
}

static hr_status read_names(DIR *folder, const char *path, const char *ending, listing *out, hr_err *err)
{
    uint64_t count = 0, bytes = 0;
    measure(folder, ending, &count, &bytes);
    if (count == 0) {
        return HR_OK;
    }
    if (count > LISTING_MOST_NAMES) {
        return HR_FAIL(err, DATA, "%s: needed at most %d files *%s, had more", path, LISTING_MOST_NAMES,
                       ending);
    }
    out->names = hr_calloc(bytes, 1);
    out->name = hr_calloc(count, sizeof *out->name);
    if (out->names == NULL || out->name == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed room for %u names, had less", path, (uint32_t)count);
    }
    rewinddir(folder);
    if (!fill(folder, ending, count, bytes, out)) {
        return HR_FAIL(err, DATA, "%s: needed a folder that stays as it is, had new files while it was read",
                       path);
    }
    qsort_r(out->name, out->count, sizeof *out->name, by_name, out->names);
    return HR_OK;
}

hr_status listing_read(const char *folder, const char *ending, listing *out, hr_err *err)
{
    *out = (listing){0};
    DIR *d = opendir(folder);
    if (d == NULL) {
        return HR_FAIL(err, DATA, "%s: needed a folder that can be read, had: %s", folder, strerror(errno));
    }
    const hr_status status = read_names(d, folder, ending, out, err);
    closedir(d);
    if (status != HR_OK) {
        listing_free(out);
    }
    return status;
}
