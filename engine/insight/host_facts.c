// SPDX-License-Identifier: Apache-2.0
#include "insight/host_facts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"

enum { REMEMBERED = 16, FOLDER_MOST = 1 << 16 };

typedef struct remembered {
    uint64_t key[2]; // both 0: nothing
    hr_status status;
    hr_err err;
    data_facts facts;
} remembered;

static pthread_mutex_t facts_lock = PTHREAD_MUTEX_INITIALIZER;
static remembered facts_kept[REMEMBERED];
static uint32_t facts_next;

// ---- files that change ----------------------------------------------------------------------------------------

static uint64_t stamp_of(const char *name, const struct stat *s)
{
    const uint64_t numbers[] = {(uint64_t)s->st_ino, (uint64_t)s->st_size, (uint64_t)s->st_mtim.tv_sec,
                                (uint64_t)s->st_mtim.tv_nsec};
    return hash64(numbers, sizeof numbers, hash64(name, strlen(name), 0));
}

// Of what lies in a folder, in whatever order it is listed.
static uint64_t folder_stamp(const char *path)
{
    uint64_t sum = 0;
    DIR *folder = opendir(path);
    const struct dirent *entry = folder == NULL ? NULL : readdir(folder);
    for (uint32_t n = 0; entry != NULL && n < FOLDER_MOST; n++) {
        struct stat s;
        if (strcmp(entry->d_name, "..") != 0 && fstatat(dirfd(folder), entry->d_name, &s, 0) == 0) {
            sum += stamp_of(entry->d_name, &s);
        }
        entry = readdir(folder);
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return sum;
}

static uint64_t path_stamp(const char *path)
{
    struct stat s;
    if (stat(path, &s) != 0) {
        return (uint64_t)errno;
    }
    return S_ISDIR(s.st_mode) ? hash64_mix(stamp_of("", &s), folder_stamp(path)) : stamp_of("", &s);
}

// ---- questions ------------------------------------------------------------------------------------------------

static uint64_t form_hash(const data_form *form)
{
    uint64_t hash = form->count;
    for (uint32_t k = 0; k < form->count; k++) {
        const data_slot *s = &form->slot[k];
        const uint32_t numbers[] = {(uint32_t)s->type, s->is_label, s->classes, s->rank};
        hash = hash64(s->dim, s->rank * sizeof *s->dim, hash64(numbers, sizeof numbers, hash));
    }
    return hash;
}

static void key_of(const hr_knobs *knobs, const data_form *form, uint64_t key[2])
{
    uint64_t parts[HR_KNOB_COUNT + 2] = {0};
    char value[HR_KNOB_TEXT_MAX];
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        if (data_source_depends_on((hr_knob_id)id)) {
            const char *text = hr_knob_format(knobs, (hr_knob_id)id, value);
            parts[id] = hash64(text, strlen(text), 1);
        }
    }
    parts[HR_KNOB_COUNT] = form_hash(form);
    parts[HR_KNOB_COUNT + 1] = path_stamp(hr_knob_text(knobs, HR_KNOB_PIPELINE_PATH));
    hash128(parts, sizeof parts, key);
}

// Called with the lock held.
static const remembered *find(const uint64_t key[2])
{
    for (uint32_t k = 0; k < REMEMBERED; k++) {
        if (memcmp(facts_kept[k].key, key, sizeof facts_kept[k].key) == 0) {
            return &facts_kept[k];
        }
    }
    return NULL;
}

static const remembered *look(const uint64_t key[2], const hr_knobs *knobs, const data_form *model)
{
    remembered *r = &facts_kept[facts_next++ % REMEMBERED];
    *r = (remembered){.status = HR_OK};
    r->status = data_facts_read(knobs, model, &r->facts, &r->err);
    if (r->status != HR_NOMEM) { // another time there may be memory
        memcpy(r->key, key, sizeof r->key);
    }
    return r;
}

hr_status host_facts_for(const hr_knobs *knobs, const data_form *model, data_facts *out, hr_err *err)
{
    uint64_t key[2];
    if (hr_knob_text(knobs, HR_KNOB_PIPELINE_PATH)[0] == '\0') { // no files: opening it is no work
        return data_facts_read(knobs, model, out, err);
    }
    key_of(knobs, model, key);
    pthread_mutex_lock(&facts_lock);
    const remembered *r = find(key);
    r = r == NULL ? look(key, knobs, model) : r;
    const hr_status status = r->status;
    *out = r->facts;
    if (status != HR_OK && err != NULL) {
        *err = r->err;
    }
    pthread_mutex_unlock(&facts_lock);
    return status;
}
