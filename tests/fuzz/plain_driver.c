// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target where there is no libFuzzer:
//
//   fuzz_NAME FOLDER                            every file of the folder, each cut short at some places too
//   fuzz_NAME FOLDER --seconds S [--seed N]     then changes of those files, drawn from the seed, for so long
//   fuzz_NAME FOLDER --runs N [--seed N]        … or so many
//
// Prints what it did as JSON. An offence aborts; the bytes that did it are then in ./fuzz-finding.
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/host_mem.h"
#include "base/vec.h"
#include "fuzz/fuzz.h"

enum { FILE_LIMIT_BYTES = 1 << 20, CUTS_PER_FILE = 16, CHANGES_MAX = 6, PIECE_MAX = 64 };

typedef struct sample {
    char *bytes;
    size_t count;
} sample;

static VEC(sample) samples;
static uint8_t *now; // what runs: a copy of exact size, so that a sanitizer sees every step beyond it
static size_t now_count;
static uint64_t executions, random_state;

static uint64_t draw(uint64_t below)
{
    random_state = hash64_mix(random_state, executions);
    return random_state % below;
}

// Only what may be called within a signal handler.
static void keep_finding(int signal_number)
{
    (void)signal(signal_number, SIG_DFL);
    int fd = open("fuzz-finding", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd >= 0 && write(fd, now, now_count) == (ssize_t)now_count) {
        (void)close(fd);
    }
    (void)raise(signal_number);
}

static void run(const void *bytes, size_t count)
{
    now = malloc(count + (count == 0));
    if (now == NULL) {
        abort();
    }
    memcpy(now, bytes, count);
    now_count = count;
    executions++;
    (void)LLVMFuzzerTestOneInput(now, count);
    free(now);
    now = NULL;
}

// ---- the corpus -----------------------------------------------------------------------------------------------

static void load(const char *folder, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    hr_err err;
    sample *s = vec_push(&samples);
    if (s == NULL || file_read(path, FILE_LIMIT_BYTES, &s->bytes, &s->count, &err) != HR_OK) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void load_folder(const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, by_name);
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            load(folder, entries[i]->d_name);
        }
        free(entries[i]);
    }
    if (count >= 0) {
        free(entries);
    }
    if (samples.count == 0) {
        fprintf(stderr, "%s: there is no corpus\n", folder);
        exit(1);
    }
}

static void run_corpus(void)
{
    run("", 0);
    for (uint32_t i = 0; i < samples.count; i++) {
        const sample *s = &samples.data[i];
        run(s->bytes, s->count);
        for (unsigned cut = 0; cut < CUTS_PER_FILE && s->count > 0; cut++) {
            run(s->bytes, draw(s->count));
        }
    }
}

// ---- changes --------------------------------------------------------------------------------------------------

static void replace(uint8_t *at, size_t count, const uint8_t *with)
{
    memmove(at, with, count);
}

// One change in place of bytes[0..count): a bit, a byte, an interesting byte, a piece of the same file, a count.
static void change(uint8_t *bytes, size_t count)
{
    static const uint8_t odd[] = {0, 1, 0x7f, 0x80, 0xff, '\n', ',', '"', '-', '9', '(', '.', '}', ']'};
    size_t at = draw(count), piece = 1 + draw(PIECE_MAX), from = draw(count);
    switch (draw(5)) {
    case 0:
        bytes[at] ^= (uint8_t)(1u << draw(8));
        break;
    case 1:
        bytes[at] = (uint8_t)draw(256);
        break;
    case 2:
        bytes[at] = odd[draw(sizeof odd)];
        break;
    case 3:
        piece = piece < count - at ? piece : count - at;
        replace(bytes + at, piece < count - from ? piece : count - from, bytes + from);
        break;
    default:
        memset(bytes + at, draw(2) == 0 ? 0xff : 0, count - at < 4 ? count - at : 4);
        break;
    }
}

// A file cut, joined with the rest of another, and changed at some places.
static void run_changed(void)
{
    const sample *a = &samples.data[draw(samples.count)], *b = &samples.data[draw(samples.count)];
    size_t head = draw(4) == 0 ? draw(a->count + 1) : a->count;
    size_t from = head == a->count ? b->count : draw(b->count + 1);
    size_t count = head + b->count - from;
    uint8_t *bytes = malloc(count + 1);
    if (bytes == NULL) {
        abort();
    }
    memcpy(bytes, a->bytes, head);
    memcpy(bytes + head, b->bytes + from, b->count - from);
    for (uint64_t left = draw(CHANGES_MAX + 1); left > 0 && count > 0; left--) {
        change(bytes, count);
    }
    run(bytes, count);
    free(bytes);
}

int main(int argc, char **argv)
{
    uint64_t seconds = 0, runs = 0, seed = 1;
    for (int i = 2; i + 1 < argc; i += 2) {
        uint64_t value = strtoull(argv[i + 1], NULL, 10);
        *(strcmp(argv[i], "--seconds") == 0 ? &seconds
          : strcmp(argv[i], "--runs") == 0  ? &runs
                                            : &seed) = value;
    }
    if (argc < 2 || argc % 2 != 0) {
        fprintf(stderr, "usage: %s FOLDER [--seconds S] [--runs N] [--seed N]\n", argv[0]);
        return 2;
    }
    random_state = seed;
    (void)signal(SIGABRT, keep_finding);
    (void)signal(SIGSEGV, keep_finding);
    load_folder(argv[1]);
    run_corpus();
    uint64_t end_ns = clock_now_ns() + seconds * 1000000000u;
    for (uint64_t k = 0; k < runs || (seconds > 0 && clock_now_ns() < end_ns); k++) {
        run_changed();
    }
    printf("{\"files\": %" PRIu32 ", \"executions\": %" PRIu64 ", \"seed\": %" PRIu64 "}\n", samples.count,
           executions, seed);
    for (uint32_t i = 0; i < samples.count; i++) {
        hr_free(samples.data[i].bytes);
    }
    vec_deinit(&samples);
    return 0;
}
