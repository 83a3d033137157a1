// SPDX-License-Identifier: Apache-2.0
// What a time that was not measured is made from.
#ifndef HEADROOM_TIME_BASIS_H
#define HEADROOM_TIME_BASIS_H

// X(ID, "word of JSON and Lua", "what a column has room for", "behind a time")
#define HR_TIME_BASIS_MAP(X)                                                                                 \
    X(UNKNOWN, "unknown", "unknown", "not known")                                                            \
    X(CALIBRATION, "calibration", "calibrated", "estimated from this machine's calibration")                 \
    X(DATASHEET, "datasheet", "datasheet", "estimated from the card's datasheet")                            \
    X(USUAL_CARD, "usual_card", "as an A100", "estimated as an A100 takes it until device.card is set")      \
    X(USUAL_CORES, "usual_cores", "not calibrated",                                                          \
      "estimated, not calibrated: headroom doctor --calibrate")                                              \
    X(USUAL_LOOPS, "usual_loops", "plain loops", "estimated as plain loops on one core take it")

typedef enum hr_time_basis {
#define X(id, word, brief, sentence) HR_TIME_##id,
    HR_TIME_BASIS_MAP(X)
#undef X
        HR_TIME_BASIS_COUNT
} hr_time_basis;

// Of what is none: UNKNOWN's.
const char *hr_time_basis_name(hr_time_basis basis); // "calibration"
const char *hr_time_basis_brief(hr_time_basis basis);
const char *hr_time_basis_sentence(hr_time_basis basis);

#endif
