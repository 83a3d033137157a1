// SPDX-License-Identifier: Apache-2.0
// Where an exact search asks next, and in which order it tries the answers (pack_exact.h has the drawing).
#ifndef MEMORY_PACK_NICHE_H
#define MEMORY_PACK_NICHE_H

#include "memory/pack_exact.h"
#include "memory/pack_state.h"

// Which of the sections is asked: of those with the fewest answers the one with the largest rest, or that with the
// fewest answers for each failure it saw. And which answer is tried first.
typedef struct pack_style {
    enum { PACK_AT_MOST_REST, PACK_AT_MOST_FAILURES } asks;
    enum { PACK_LONG_FIRST, PACK_LARGE_FIRST, PACK_AREA_FIRST } tries;
} pack_style;

typedef struct pack_niche {
    uint32_t begin, end;
    uint64_t wall;     // the lower of its walls; UINT64_MAX: none
    uint64_t smallest; // room of an item that lies within
} pack_niche;

typedef struct pack_niches {
    pack_niche *list;
    uint32_t count;
    uint32_t *niche_of; // [section_count], or PACK_NONE
    uint32_t *fits;     // [section_count + 1], differences of how many items lie within a niche here
    double *worth;      // [items], what is tried first
    uint32_t *answers;  // to the last question, the best first
    pack_style style;
    bool is_hasty; // the first dive into many items: no conclusions, they cost more than they save
} pack_niches;

typedef struct pack_question {
    uint32_t section;
    uint32_t count; // of the answers
    bool may_lose;  // one more answer: nothing lies at the floor
} pack_question;

HR_MUST_CHECK bool pack_niches_init(pack_niches *n, const pack_state *s);
void pack_niches_deinit(pack_niches *n);
void pack_niches_choose_style(pack_niches *n, const pack_state *s, uint32_t round, uint64_t seed);

// The question to ask about [begin, end), of which every section has a rest; false when one of them has no answer.
bool pack_niches_ask(pack_niches *n, pack_state *s, uint32_t begin, uint32_t end, pack_question *question);
// The lowest floor at which a section of a niche can go on when nothing lies at its floor; UINT64_MAX: none.
uint64_t pack_niches_next_floor(const pack_state *s, uint32_t begin, uint32_t section);

#endif
