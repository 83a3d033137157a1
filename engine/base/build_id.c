// SPDX-License-Identifier: Apache-2.0
#include "base/build_id.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "base/hash.h"

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + 3) & ~UINT64_C(3);
}

// Goes through the notes of one segment: header, name and description, each padded to four bytes.
static uint64_t hash_in_notes(const char *notes, uint64_t bytes)
{
    for (uint64_t at = 0; at + sizeof(ElfW(Nhdr)) <= bytes;) {
        ElfW(Nhdr) note;
        memcpy(&note, notes + at, sizeof note);
        const uint64_t name = at + sizeof note, description = name + aligned(note.n_namesz);
        const uint64_t end = description + aligned(note.n_descsz);
        if (end > bytes) {
            return 0;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof "GNU" &&
            memcmp(notes + name, "GNU", sizeof "GNU") == 0) {
            return hash64(notes + description, note.n_descsz, 0);
        }
        at = end;
    }
    return 0;
}

// The first object is the program itself.
static int look_at_program(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    uint64_t *hash = context;
    for (int k = 0; k < info->dlpi_phnum && *hash == 0; k++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[k];
        if (segment->p_type == PT_NOTE) {
            const char *notes = (const char *)(uintptr_t)(info->dlpi_addr + segment->p_vaddr);
            *hash = hash_in_notes(notes, segment->p_memsz);
        }
    }
    return 1;
}

uint64_t build_id_hash(void)
{
    uint64_t hash = 0;
    (void)dl_iterate_phdr(look_at_program, &hash);
    return hash;
}
