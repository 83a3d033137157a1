// SPDX-License-Identifier: Apache-2.0
// How long a card takes for an instruction: a start, and then its arithmetic or its memory traffic (S. Williams,
// A. Waterman, D. Patterson: "Roofline", CACM 52(4), 2009), at rates that are reached instead of those on a data sheet
// (card_rates.h). Beside the card a host issues the kernels: where they are short, it is what a step waits for.
//
//   products    tiles of the result fill the multiprocessors in waves; what the last wave leaves idle is lost
//   the rest    bytes at the share of the bandwidth that kernels of its family reach, passes over memory counted
//
// Everything here is an estimate; card_time_spread says how good one.
#ifndef DEVICE_CARD_TIME_H
#define DEVICE_CARD_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/card.h"
#include "headroom/time_basis.h"

#include "device/card_rates.h"
#include "program/program.h"

// What is asked how long an instruction takes: a card, and what the knobs let its kernels do.
typedef struct card_time {
    hr_card card;
    const card_rates *rates; // of its generation
    double multiprocessors;
    bool tf32;     // float32 products run at the card's TF32 rate, where it has one
    bool captured; // the step was captured: the host issues it as one
} card_time;

void card_time_init(card_time *t, const hr_card *card, bool tf32, bool captured);
// NULL: the card `unlimited`, whose times are those of a usual one.
HR_MUST_CHECK hr_status card_time_open(card_time *t, const hr_card *card, bool tf32, bool captured,
                                       hr_err *err);
hr_time_basis card_time_basis(const card_time *t);
// On the card. Copies on the lanes h2d and d2h go at the speed of the link. 0 for what the executor does itself.
uint64_t card_time_ns(const card_time *t, const program *p, const instr *i);
// On the host, which issues it: slowly where an interpreter comes to one operation after the other (program.eager).
uint64_t card_issue_ns(const card_time *t, const program *p, const instr *i);
// The instruction takes between card_time_ns divided by this factor and times it, as a rule.
double card_time_spread(const instr *i);

#endif
