// SPDX-License-Identifier: Apache-2.0
// The screens by name and key. shell/rows.c has their panes.
#ifndef TUI_PANE_SCREENS_H
#define TUI_PANE_SCREENS_H

// X(ID, key, "key as shown", "name", "its job"), in the order of their keys. Every screen is a request too.
#define SCREEN_MAP(X)                                                                                        \
    X(BENCH, '1', "1", "bench", "the Bench: memory, loss and knobs")                                         \
    X(MEMORY, '2', "2", "memory", "Memory: the heap as a map, event by event")                               \
    X(TIMELINE, '3', "3", "timeline", "the Timeline: the planned step, instruction by instruction")          \
    X(DOCTOR, '4', "4", "doctor", "the Doctor: why it ran out of memory, and what to turn")                  \
    X(RUNS, '5', "5", "runs", "the Runs: each configuration of this session, and what differs")              \
    X(LEARN, '6', "6", "learn", "Learn: lessons, what the words mean, and situations to try")                \
    X(PIPELINE, '7', "7", "pipeline", "the Pipeline: what feeds the step, and who waits for whom")           \
    X(MODEL, '8', "8", "model", "the Model: what each layer costs")                                          \
    X(PROGRAM, '9', "9", "program", "the Program: the step as it is listed, and what a turn changes in it")  \
    X(FIT, '0', "0", "fit", "the Fit: what the knobs trade, peak against step time")

typedef enum screen_id {
#define X(id, key, shown, name, line) SCREEN_##id,
    SCREEN_MAP(X)
#undef X
        SCREEN_COUNT,
} screen_id;

#endif
