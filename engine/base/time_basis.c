// SPDX-License-Identifier: Apache-2.0
#include "headroom/time_basis.h"

static const struct {
    const char *name, *brief, *sentence;
} rows[] = {
#define X(id, word, brief, sentence) [HR_TIME_##id] = {word, brief, sentence},
    HR_TIME_BASIS_MAP(X)
#undef X
};

// What comes from another process may be anything.
static unsigned row_of(hr_time_basis basis)
{
    return (unsigned)basis < HR_TIME_BASIS_COUNT ? (unsigned)basis : HR_TIME_UNKNOWN;
}

const char *hr_time_basis_name(hr_time_basis basis)
{
    return rows[row_of(basis)].name;
}

const char *hr_time_basis_brief(hr_time_basis basis)
{
    return rows[row_of(basis)].brief;
}

const char *hr_time_basis_sentence(hr_time_basis basis)
{
    return rows[row_of(basis)].sentence;
}
