// SPDX-License-Identifier: Apache-2.0
#include "insight/calibrate_part.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/host_mem.h"

enum { SAMPLES_MAX = 1 << 16 };

typedef struct part_head {
    char magic[16];
    uint64_t key, programs; // of the device; of what is run
    uint64_t done, sample_count, sample_bytes;
    uint64_t hash; // of outcomes and samples
} part_head;

static const char magic[16] = "headroom.part1";

static uint64_t programs_hash(void)
{
    uint64_t hash = sizeof(calibration_outcome);
    for (int k = 0; k < CALIBRATION_MODELS; k++) {
        const calibration_program *p = &calibration_programs[k];
        hash = hash64(p->preset, strlen(p->preset), hash64_mix(hash, p->batch));
        hash = hash64(p->optimizer, strlen(p->optimizer), hash);
    }
    return hash;
}

static uint64_t content_hash(const calibration_outcome *outcomes, const rate_sample *samples, uint64_t count)
{
    const uint64_t hash = hash64(outcomes, CALIBRATION_PROGRAMS * sizeof *outcomes, 0);
    return hash64(samples, count * sizeof *samples, hash);
}

// ---- reading --------------------------------------------------------------------------------------------------

static bool is_amount(double value)
{
    return isfinite(value) && value >= 0;
}

static bool is_sample_of(const rate_sample *s, uint64_t at)
{
    return s->seconds > 0 && is_amount(s->seconds) && is_amount(s->flops) && is_amount(s->bytes) &&
           s->family > COST_NOTHING && s->family < COST_FAMILY_COUNT && (unsigned)s->width < RATE_WIDTHS &&
           s->program == at;
}

// The samples are those of the programs, one behind the other.
static bool are_whole(const calibration_part *part)
{
    uint32_t at = 0;
    for (size_t k = 0; k < part->done; k++) {
        const calibration_outcome *o = &part->outcomes[k];
        if (o->steps < CALIBRATION_STEPS_LEAST || o->sample_begin != at ||
            o->sample_count > part->samples.count - at || !is_amount(o->seconds) ||
            !is_amount(o->fastest_seconds) || !isfinite(o->besides_seconds)) {
            return false;
        }
        for (; at < o->sample_begin + o->sample_count; at++) {
            if (!is_sample_of(&part->samples.data[at], k)) {
                return false;
            }
        }
    }
    return at == part->samples.count;
}

static bool take(const char *data, size_t bytes, uint64_t key, calibration_part *part)
{
    part_head head;
    if (bytes < sizeof head + sizeof part->outcomes) {
        return false;
    }
    memcpy(&head, data, sizeof head);
    const size_t left = bytes - sizeof head - sizeof part->outcomes;
    if (memcmp(head.magic, magic, sizeof magic) != 0 || head.key != key || head.programs != programs_hash() ||
        head.done > CALIBRATION_PROGRAMS || head.sample_bytes != sizeof(rate_sample) ||
        head.sample_count > SAMPLES_MAX || left != head.sample_count * sizeof(rate_sample)) {
        return false;
    }
    memcpy(part->outcomes, data + sizeof head, sizeof part->outcomes);
    for (uint64_t k = 0; k < head.sample_count; k++) {
        rate_sample *s = vec_push(&part->samples);
        if (s == NULL) {
            return false;
        }
        memcpy(s, data + sizeof head + sizeof part->outcomes + k * sizeof *s, sizeof *s);
    }
    part->done = head.done;
    return content_hash(part->outcomes, part->samples.data, part->samples.count) == head.hash &&
           are_whole(part);
}

void calibration_part_load(const char *path, uint64_t key, calibration_part *part)
{
    char *data = NULL;
    size_t bytes = 0;
    const uint64_t most = sizeof(part_head) + sizeof part->outcomes + SAMPLES_MAX * sizeof(rate_sample);
    if (file_read(path, most, &data, &bytes, NULL) == HR_OK && !take(data, bytes, key, part)) {
        calibration_part_deinit(part);
    }
    hr_free(data);
}

// ---- writing --------------------------------------------------------------------------------------------------

static hr_status write_part(file_writer *w, uint64_t key, const calibration_part *part)
{
    part_head head = {.key = key,
                      .programs = programs_hash(),
                      .done = part->done,
                      .sample_count = part->samples.count,
                      .sample_bytes = sizeof(rate_sample),
                      .hash = content_hash(part->outcomes, part->samples.data, part->samples.count)};
    memcpy(head.magic, magic, sizeof magic);
    HR_TRY(file_writer_add(w, &head, sizeof head, NULL));
    HR_TRY(file_writer_add(w, part->outcomes, sizeof part->outcomes, NULL));
    return file_writer_add(w, part->samples.data, part->samples.count * sizeof *part->samples.data, NULL);
}

bool calibration_part_save(const char *path, uint64_t key, const calibration_part *part)
{
    file_writer *w = NULL;
    if (!hr_file_make_folders(path) || file_writer_open(path, &w, NULL) != HR_OK) {
        return false;
    }
    if (write_part(w, key, part) != HR_OK) {
        file_writer_abandon(w);
        return false;
    }
    return file_writer_commit(w, NULL) == HR_OK;
}

void calibration_part_remove(const char *path)
{
    (void)unlink(path);
}

void calibration_part_deinit(calibration_part *part)
{
    vec_deinit(&part->samples);
    *part = (calibration_part){0};
}

// ---- one at a time --------------------------------------------------------------------------------------------

hr_status calibration_lock(const char *path, int *fd, hr_err *err)
{
    *fd = hr_file_make_folders(path) ? open(path, O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    if (*fd < 0 || flock(*fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
        return HR_OK;
    }
    (void)close(*fd);
    *fd = -1;
    (void)HR_FAIL(err, STATE,
                  "another calibration measures on this machine, and two would measure each other");
    hr_err_try(err, "headroom doctor --calibrate, when the other one has ended");
    return HR_STATE;
}

void calibration_unlock(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}
