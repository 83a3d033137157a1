// SPDX-License-Identifier: Apache-2.0
#include "insight/host_facts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"

enum {
    REMEMBERED = 16,
    STAMPS = 4,
    FOLDER_DEPTH = 3,      // PATH/train/class/image
    FILES_MOST = 1 << 21,  // of all its folders
    CHEAP_NS = 5000000,    // what costs less is looked at anew each time
    COSTS_REMEMBERED = 20, // the rest no more often than takes a twentieth of the time
};

// What was found out about a data set:
//
//   NOTHING ──one asks──▶ COMES ──its files were opened──▶ KNOWN, or NOTHING where that may be otherwise next time
//
// Files are opened without the lock; who asks the same meanwhile waits.
typedef struct remembered {
    enum { FACTS_NOTHING, FACTS_COME, FACTS_KNOWN } state;
    uint64_t key[2];
    uint64_t until_ns; // of what was refused
    hr_status status;
    hr_err err;
    data_facts facts;
} remembered;

// What lay under a path when it was last looked at.
typedef struct stamp {
    uint64_t path, value;
    uint64_t until_ns;
    bool is_whole; // of all there is
} stamp;

static pthread_mutex_t facts_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t facts_came = PTHREAD_COND_INITIALIZER;
static remembered facts_kept[REMEMBERED];
static stamp stamps_kept[STAMPS];
static uint32_t facts_next, stamps_next;

// Of this thread: what else the machine does is no cost.
static uint64_t spent_ns(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0
               ? (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec
               : 0;
}

// Until when that is not done again which was begun at spent_ns() == began_ns; 0: it was cheap.
static uint64_t until_ns(uint64_t began_ns)
{
    const uint64_t cost_ns = spent_ns() - began_ns;
    return cost_ns < CHEAP_NS ? 0 : clock_now_ns() + COSTS_REMEMBERED * cost_ns;
}

// ---- files that change ----------------------------------------------------------------------------------------

// With the time of its last change of whatever kind: a file may be written to and have its other time set back.
static uint64_t stamp_of(const char *name, const struct stat *s)
{
    const uint64_t numbers[] = {(uint64_t)s->st_dev,          (uint64_t)s->st_ino,
                                (uint64_t)s->st_size,         (uint64_t)s->st_mtim.tv_sec,
                                (uint64_t)s->st_mtim.tv_nsec, (uint64_t)s->st_ctim.tv_sec,
                                (uint64_t)s->st_ctim.tv_nsec};
    return hash64(numbers, sizeof numbers, hash64(name, strlen(name), 0));
}

// Of what lies in the folder, in whatever order it is listed, and in its own. Closes fd. *left: files that may still be looked at.
static uint64_t folder_stamp(int fd, uint32_t depth, uint32_t *left)
{
    uint64_t sum = 0;
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (folder == NULL) {
        (void)(fd >= 0 && close(fd) == 0);
        return (uint64_t)errno;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL && *left > 0; entry = readdir(folder)) {
        const char *name = entry->d_name;
        struct stat s;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || fstatat(dirfd(folder), name, &s, 0) != 0) {
            continue;
        }
        --*left;
        const uint64_t one = stamp_of(name, &s);
        const bool deeper = S_ISDIR(s.st_mode) && depth < FOLDER_DEPTH;
        const int inner = deeper ? openat(dirfd(folder), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        sum += deeper ? hash64_mix(one, folder_stamp(inner, depth + 1, left)) : one;
    }
    (void)closedir(folder);
    return sum;
}

static stamp look_at(const char *path)
{
    struct stat s;
    uint32_t left = FILES_MOST;
    if (stat(path, &s) != 0) {
        return (stamp){.value = (uint64_t)errno, .is_whole = true};
    }
    uint64_t value = stamp_of("", &s);
    if (S_ISDIR(s.st_mode)) {
        value = hash64_mix(value, folder_stamp(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), 1, &left));
    }
    return (stamp){.value = value, .is_whole = left > 0};
}

// Called with the lock held.
static const stamp *stamp_kept(uint64_t path)
{
    const uint64_t now_ns = clock_now_ns();
    for (uint32_t k = 0; k < STAMPS; k++) {
        if (stamps_kept[k].path == path && stamps_kept[k].until_ns > now_ns) {
            return &stamps_kept[k];
        }
    }
    return NULL;
}

static stamp path_stamp(const char *path)
{
    const uint64_t hash = hash64(path, strlen(path), 0);
    pthread_mutex_lock(&facts_lock);
    const stamp *kept = stamp_kept(hash);
    stamp now = kept != NULL ? *kept : (stamp){0};
    pthread_mutex_unlock(&facts_lock);
    if (kept != NULL) {
        return now;
    }
    const uint64_t began_ns = spent_ns();
    now = look_at(path);
    now.path = hash;
    now.until_ns = until_ns(began_ns);
    if (now.until_ns > 0) {
        pthread_mutex_lock(&facts_lock);
        stamps_kept[stamps_next++ % STAMPS] = now;
        pthread_mutex_unlock(&facts_lock);
    }
    return now;
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

// False where there is more under the path than was looked at.
static bool key_of(const hr_knobs *knobs, const data_form *form, uint64_t key[2])
{
    uint64_t parts[HR_KNOB_COUNT + 2] = {0};
    char value[HR_KNOB_TEXT_MAX];
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        if (data_source_depends_on((hr_knob_id)id)) {
            const char *text = hr_knob_format(knobs, (hr_knob_id)id, value);
            parts[id] = hash64(text, strlen(text), 1);
        }
    }
    const stamp files = path_stamp(hr_knob_text(knobs, HR_KNOB_PIPELINE_PATH));
    parts[HR_KNOB_COUNT] = form_hash(form);
    parts[HR_KNOB_COUNT + 1] = files.value;
    hash128(parts, sizeof parts, key);
    return files.is_whole;
}

// The knobs without what is made of the files' samples by a rule: one opening tells all values of those.
static hr_knobs knobs_of_files(const hr_knobs *knobs)
{
    hr_knobs files = *knobs, defaults;
    hr_knobs_init(&defaults);
    files.value[HR_KNOB_PIPELINE_ARRAY] = defaults.value[HR_KNOB_PIPELINE_ARRAY];
    files.value[HR_KNOB_PIPELINE_MODE] = defaults.value[HR_KNOB_PIPELINE_MODE];
    return files;
}

// ---- answers: called with the lock held -----------------------------------------------------------------------

static remembered *find(const uint64_t key[2])
{
    for (uint32_t k = 0; k < REMEMBERED; k++) {
        remembered *r = &facts_kept[k];
        if (r->state == FACTS_NOTHING || memcmp(r->key, key, sizeof r->key) != 0) {
            continue;
        }
        if (r->state == FACTS_KNOWN && r->status != HR_OK && r->until_ns < clock_now_ns()) {
            r->state = FACTS_NOTHING;
            return NULL;
        }
        return r;
    }
    return NULL;
}

// NULL: all of them are on their way.
static remembered *reserve(const uint64_t key[2])
{
    for (uint32_t k = 0; k < REMEMBERED; k++) {
        remembered *r = &facts_kept[facts_next++ % REMEMBERED];
        if (r->state != FACTS_COME) {
            r->state = FACTS_COME;
            memcpy(r->key, key, sizeof r->key);
            return r;
        }
    }
    return NULL;
}

// A refusal that was cheap, or is not about what is in the files, may be no more next time: no descriptors, no library.
static void publish(remembered *place, const remembered *found)
{
    if (place == NULL) {
        return;
    }
    const bool stays = found->status == HR_OK || (found->status == HR_DATA && found->until_ns > 0);
    *place = *found;
    place->state = stays ? FACTS_KNOWN : FACTS_NOTHING;
    pthread_cond_broadcast(&facts_came);
}

// ---- both -----------------------------------------------------------------------------------------------------

static void look(const hr_knobs *files, const data_form *model, remembered *out)
{
    const uint64_t began_ns = spent_ns();
    out->status = data_facts_read(files, model, &out->facts, &out->err);
    out->until_ns = until_ns(began_ns);
}

static void ask(const hr_knobs *files, const data_form *model, const uint64_t key[2], remembered *out)
{
    pthread_mutex_lock(&facts_lock);
    remembered *r = find(key);
    while (r != NULL && r->state == FACTS_COME) {
        pthread_cond_wait(&facts_came, &facts_lock);
        r = find(key);
    }
    if (r != NULL) {
        *out = *r;
    } else {
        memcpy(out->key, key, sizeof out->key);
        r = reserve(key);
        pthread_mutex_unlock(&facts_lock);
        look(files, model, out);
        pthread_mutex_lock(&facts_lock);
        publish(r, out);
    }
    pthread_mutex_unlock(&facts_lock);
}

hr_status host_facts_for(const hr_knobs *knobs, const data_form *model, data_facts *out, hr_err *err)
{
    uint64_t key[2] = {0}; // hash128 goes on from it
    remembered found = {.state = FACTS_NOTHING};
    if (hr_knob_text(knobs, HR_KNOB_PIPELINE_PATH)[0] == '\0') { // no files: opening it is no work
        return data_facts_read(knobs, model, out, err);
    }
    const hr_knobs files = knobs_of_files(knobs);
    if (key_of(&files, model, key)) {
        ask(&files, model, key, &found);
    } else {
        look(&files, model, &found);
    }
    if (found.status != HR_OK) {
        if (err != NULL) {
            *err = found.err;
        }
        return found.status;
    }
    *out = found.facts;
    return data_facts_make_array(knobs, out, err);
}
