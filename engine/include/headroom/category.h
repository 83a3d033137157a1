// SPDX-License-Identifier: Apache-2.0
// What a tensor is there for: the bands of the memory graph. Part of every event and report.
#ifndef HEADROOM_CATEGORY_H
#define HEADROOM_CATEGORY_H

// X(NAME, "name", letter)
#define HR_CATEGORY_MAP(X)                                                                                   \
    X(WEIGHTS, "weights", 'W')                                                                               \
    X(CASTS, "casts", 'C')                                                                                   \
    X(GRADIENTS, "gradients", 'G')                                                                           \
    X(OPTIMIZER, "optimizer", 'O')                                                                           \
    X(ACCUMULATORS, "accumulators", 'U')                                                                     \
    X(ACTIVATIONS, "activations", 'A')                                                                       \
    X(TEMPORARIES, "temporaries", 'T')                                                                       \
    X(INPUT, "input", 'I')                                                                                   \
    X(STATE, "state", 'S')                                                                                   \
    X(RETAINED, "retained", 'R')                                                                             \
    X(OUTSIDE, "outside", 'X')

typedef enum hr_category {
#define X(name, text, letter) HR_CATEGORY_##name,
    HR_CATEGORY_MAP(X)
#undef X
        HR_CATEGORY_COUNT
} hr_category;

// X(NAME, "name")
#define HR_PHASE_MAP(X)                                                                                      \
    X(BUILD, "build")                                                                                        \
    X(INPUT, "input")                                                                                        \
    X(FORWARD, "forward")                                                                                    \
    X(BACKWARD, "backward")                                                                                  \
    X(UPDATE, "update")

typedef enum hr_phase {
#define X(name, text) HR_PHASE_##name,
    HR_PHASE_MAP(X)
#undef X
        HR_PHASE_COUNT
} hr_phase;

// Of HR_CATEGORY_COUNT, HR_PHASE_COUNT, which is what a recorded step says: "unknown", '?' and "recorded".
const char *hr_category_name(hr_category category);
char hr_category_letter(hr_category category);
const char *hr_phase_name(hr_phase phase);

#endif
