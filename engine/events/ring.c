// SPDX-License-Identifier: Apache-2.0
// Every slot is a sequence lock. The producer makes the slot's stamp odd, writes the words, then makes the stamp the
// even number that belongs to the record; a reader keeps a copy only when it read that same number before and after
// it. Words are stored with release and loaded with acquire order, which carries what fences would otherwise carry
// (Boehm, "Can seqlocks get along with programming language memory models?", 2012) and which the thread sanitizer
// understands; on x86 they are plain moves.
#include "events/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host_mem.h"

enum {
    WORDS = sizeof(hr_event) / sizeof(uint64_t),
    CACHE_LINE_BYTES = 64,
    MAX_EVENTS = 1 << 20, // 109 MB: a reader's pages are its own process's, whichever process made the ring
    RING_VERSION = 2,
    SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL
};

static const char ring_magic[8] = "hr-ring";

_Static_assert(WORDS * sizeof(uint64_t) == sizeof(hr_event), "an event is whole words");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "what is mapped twice cannot be locked");

typedef struct slot {
    _Atomic uint64_t stamp; // 2n + 2 when it holds record n, odd while record n is written
    _Atomic uint64_t word[WORDS];
} slot;

typedef struct ring_about {
    char magic[8];
    uint32_t ring_version, event_version;
    uint64_t capacity, slot_bytes;
} ring_about;

// Cache lines apart, so that what is written often does not slow readers of the rest.
typedef struct shared {
    union {
        ring_about about;
        uint8_t line[CACHE_LINE_BYTES];
    } u;
    _Atomic uint64_t put; // records written so far
    uint8_t behind_put[CACHE_LINE_BYTES - sizeof(uint64_t)];
    trace_heartbeat heartbeat;
    uint8_t behind_heartbeat[2 * CACHE_LINE_BYTES - sizeof(trace_heartbeat)];
    slot slots[];
} shared;

struct trace_ring {
    shared *memory;
    size_t bytes;
    uint64_t mask;
    int fd;
};

struct trace_reader {
    const shared *memory;
    size_t mapped_bytes; // 0: the ring's own
    uint64_t mask, taken;
};

// ---- the producer ---------------------------------------------------------------------------------------------

static size_t bytes_of(uint64_t capacity)
{
    return sizeof(shared) + (size_t)capacity * sizeof(slot); // at most 2^20 slots of 104 bytes
}

static void fill_head(shared *s, uint64_t capacity)
{
    s->u.about = (ring_about){.ring_version = RING_VERSION,
                              .event_version = HR_EVENT_VERSION,
                              .capacity = capacity,
                              .slot_bytes = sizeof(slot)};
    memcpy(s->u.about.magic, ring_magic, sizeof ring_magic);
    atomic_store(&s->heartbeat.position.instr, HR_NO_ID);
    atomic_store(&s->heartbeat.saved_step, UINT64_MAX);
}

static bool seal(int fd)
{
    return fcntl(fd, F_ADD_SEALS, SEALS) == 0 ||
           (errno == EINVAL && fcntl(fd, F_ADD_SEALS, SEALS & ~F_SEAL_FUTURE_WRITE) == 0);
}

// Mapped first and sealed then: this mapping stays the only one that can be written to.
static bool map_ring(trace_ring *ring)
{
    ring->fd = memfd_create("headroom-events", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (ring->fd < 0 || ftruncate(ring->fd, (off_t)ring->bytes) != 0) {
        return false;
    }
    void *memory = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
    ring->memory = memory != MAP_FAILED ? memory : NULL;
    return ring->memory != NULL && seal(ring->fd);
}

hr_status trace_ring_create(uint32_t capacity_events, trace_ring **out, hr_err *err)
{
    uint64_t capacity = 1;
    *out = NULL;
    while (capacity < capacity_events) {
        capacity *= 2;
    }
    trace_ring *ring = capacity <= MAX_EVENTS ? hr_calloc(1, sizeof *ring) : NULL;
    if (ring != NULL) {
        *ring = (trace_ring){.bytes = bytes_of(capacity), .mask = capacity - 1, .fd = -1};
    }
    if (ring == NULL || !map_ring(ring)) {
        const char *why = ring != NULL ? strerror(errno) : "no host memory for so many";
        (void)HR_FAIL(err, NOMEM, "event ring: needed %llu slots of %zu bytes in shared memory, had none: %s",
                      (unsigned long long)capacity, sizeof(slot), why);
        trace_ring_destroy(ring);
        return HR_NOMEM;
    }
    fill_head(ring->memory, capacity);
    *out = ring;
    return HR_OK;
}

void trace_ring_destroy(trace_ring *ring)
{
    if (ring == NULL) {
        return;
    }
    if (ring->memory != NULL) {
        (void)munmap(ring->memory, ring->bytes);
    }
    if (ring->fd >= 0) {
        (void)close(ring->fd);
    }
    hr_free(ring);
}

void trace_ring_put(trace_ring *ring, const hr_event *event)
{
    shared *m = ring->memory;
    uint64_t words[WORDS];
    memcpy(words, event, sizeof words);
    uint64_t n = atomic_load_explicit(&m->put, memory_order_relaxed);
    slot *s = &m->slots[n & ring->mask];
    atomic_store_explicit(&s->stamp, 2 * n + 1, memory_order_relaxed);
    for (int i = 0; i < WORDS; i++) {
        atomic_store_explicit(&s->word[i], words[i], memory_order_release);
    }
    atomic_store_explicit(&s->stamp, 2 * n + 2, memory_order_release);
    atomic_store_explicit(&m->put, n + 1, memory_order_release);
}

trace_heartbeat *trace_ring_heartbeat(trace_ring *ring)
{
    return &ring->memory->heartbeat;
}

int trace_ring_fd(const trace_ring *ring)
{
    return ring->fd;
}

uint64_t trace_ring_put_count(const trace_ring *ring)
{
    return atomic_load_explicit(&ring->memory->put, memory_order_acquire);
}

// ---- a reader -------------------------------------------------------------------------------------------------

// The size is the file's and cannot change any more: what is mapped is there for good.
static bool is_sealed(int fd, size_t *bytes)
{
    struct stat info;
    int seals = fcntl(fd, F_GET_SEALS);
    const bool fixed =
        seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &info) == 0 && info.st_size > 0;
    *bytes = fixed ? (size_t)info.st_size : 0;
    return fixed && *bytes >= sizeof(shared) && *bytes <= bytes_of(MAX_EVENTS);
}

// Looks at each number once: the other side could change it afterwards.
static bool is_valid(const shared *memory, size_t bytes, uint64_t *capacity)
{
    const volatile ring_about *about = &memory->u.about;
    bool ours = about->ring_version == RING_VERSION && about->event_version == HR_EVENT_VERSION &&
                about->slot_bytes == sizeof(slot);
    for (size_t k = 0; k < sizeof ring_magic; k++) {
        ours = ours && about->magic[k] == ring_magic[k];
    }
    *capacity = about->capacity;
    return ours && *capacity >= 1 && *capacity <= MAX_EVENTS && (*capacity & (*capacity - 1)) == 0 &&
           bytes == bytes_of(*capacity);
}

hr_status trace_reader_open(int fd, trace_reader **out, hr_err *err)
{
    size_t bytes = 0;
    uint64_t capacity = 0;
    *out = NULL;
    if (!is_sealed(fd, &bytes)) {
        return HR_FAIL(err, READ, "event ring: needed sealed memory of a ring's size, had something else");
    }
    void *memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        return HR_FAIL(err, READ, "event ring: %zu bytes cannot be mapped: %s", bytes, strerror(errno));
    }
    bool valid = is_valid(memory, bytes, &capacity);
    trace_reader *reader = valid ? hr_calloc(1, sizeof *reader) : NULL;
    if (reader == NULL) {
        (void)munmap(memory, bytes);
        return valid ? HR_FAIL(err, NOMEM, "no host memory for a reader of events")
                     : HR_FAIL(err, READ, "event ring: needed version %d, had another or none", RING_VERSION);
    }
    *reader = (trace_reader){.memory = memory, .mapped_bytes = bytes, .mask = capacity - 1};
    *out = reader;
    return HR_OK;
}

hr_status trace_reader_of(const trace_ring *ring, trace_reader **out, hr_err *err)
{
    *out = hr_calloc(1, sizeof **out);
    if (*out == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a reader of events");
    }
    **out = (trace_reader){.memory = ring->memory, .mask = ring->mask};
    return HR_OK;
}

static void unmap(const void *memory, size_t bytes)
{
    void *mapped = NULL;
    memcpy(&mapped, &memory, sizeof mapped);
    (void)munmap(mapped, bytes);
}

void trace_reader_close(trace_reader *reader)
{
    if (reader != NULL) {
        if (reader->mapped_bytes > 0) {
            unmap(reader->memory, reader->mapped_bytes);
        }
        hr_free(reader);
    }
}

// Copies record n; false when the producer has begun to overwrite it.
static bool copy_record(const trace_reader *reader, uint64_t n, hr_event *out)
{
    const slot *s = &reader->memory->slots[n & reader->mask];
    uint64_t words[WORDS];
    if (atomic_load_explicit(&s->stamp, memory_order_acquire) != 2 * n + 2) {
        return false;
    }
    for (int i = 0; i < WORDS; i++) {
        words[i] = atomic_load_explicit(&s->word[i], memory_order_acquire);
    }
    if (atomic_load_explicit(&s->stamp, memory_order_relaxed) != 2 * n + 2) {
        return false;
    }
    memcpy(out, words, sizeof words);
    return true;
}

// Ends also where the other side's count makes no sense: it looks at no more records than there are slots and room.
size_t trace_reader_take(trace_reader *reader, hr_event *out, size_t max, uint64_t *lost_events)
{
    size_t got = 0;
    uint64_t lost = 0, capacity = reader->mask + 1;
    for (uint64_t looks = capacity + max; got < max && looks > 0; looks--) {
        uint64_t put = atomic_load_explicit(&reader->memory->put, memory_order_acquire);
        if (put == reader->taken) {
            break;
        }
        if (put - reader->taken > capacity) {
            lost += put - capacity - reader->taken;
            reader->taken = put - capacity;
        }
        if (copy_record(reader, reader->taken, &out[got])) {
            got++;
        } else {
            lost++;
        }
        reader->taken++;
    }
    if (lost_events != NULL) {
        *lost_events = lost;
    }
    return got;
}

bool trace_reader_waits(const trace_reader *reader)
{
    return atomic_load_explicit(&reader->memory->put, memory_order_acquire) != reader->taken;
}

uint64_t trace_reader_taken(const trace_reader *reader)
{
    return reader->taken;
}

trace_heartbeat_copy trace_reader_heartbeat(const trace_reader *reader)
{
    const trace_heartbeat *p = &reader->memory->heartbeat;
    return (trace_heartbeat_copy){
        .step = atomic_load_explicit(&p->position.step, memory_order_relaxed),
        .beats = atomic_load_explicit(&p->beats, memory_order_relaxed),
        .commands = atomic_load_explicit(&p->commands, memory_order_relaxed),
        .saved_step = atomic_load_explicit(&p->saved_step, memory_order_relaxed),
        .instr = atomic_load_explicit(&p->position.instr, memory_order_relaxed),
        .state = atomic_load_explicit(&p->state, memory_order_relaxed),
        .timeout_s = atomic_load_explicit(&p->timeout_s, memory_order_relaxed),
        .evaluates = atomic_load_explicit(&p->position.evaluates, memory_order_relaxed) != 0,
    };
}
