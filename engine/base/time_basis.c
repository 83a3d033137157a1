// SPDX-License-Identifier: Apache-2.0
#include "headroom/time_basis.h"

static const struct {
    const char *name, *brief, *sentence;
} rows[] = {
#define X(id, word, brief, sentence) [HR_TIME_##id] = {word, brief, sentence},
    HR_TIME_BASIS_MAP(X)
#undef X
};

const char *hr_time_basis_name(hr_time_basis basis)
{
    return rows[basis].name;
}

const char *hr_time_basis_brief(hr_time_basis basis)
{
    return rows[basis].brief;
}

const char *hr_time_basis_sentence(hr_time_basis basis)
{
    return rows[basis].sentence;
}
