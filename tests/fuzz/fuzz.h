// SPDX-License-Identifier: Apache-2.0
// What every fuzz target calls. A target is one file, fuzz_NAME.c, with LLVMFuzzerTestOneInput; its corpus lies in
// corpus/NAME/, words of its format in NAME.dict where there are any.
//
//   preset `fuzz`:     target + libFuzzer + address and undefined sanitizers      tests/soak/run fuzz
//   every other build: target + plain_driver.c, the test fuzz/NAME                runs the corpus, can mutate it
//
// An offence ends the program (abort), with a line on standard error.
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Host memory that reading `size` bytes may take at most: far below the 256 MiB of any file, because these are short.
// A byte of a file may well become an event of 32 bytes in a table that has just doubled.
enum { FUZZ_MEMORY_BASE_BYTES = 8 << 20, FUZZ_MEMORY_FACTOR = 256 };

// Reads the bytes as a trace: by the row of trace_formats with that name, or by whichever recognises them (NULL). What
// must hold: the reader returns within memory; on success the trace passes trace_check; on failure there is a sentence
// and the trace is empty; nothing is leaked; and the same with a request for host memory failing, chosen by the bytes.
void fuzz_read_trace(const char *format, const uint8_t *data, size_t size);

// A file of that name in a folder of the process, removed at its end.
const char *fuzz_path(const char *leaf);
void fuzz_put(const char *leaf, const void *data, size_t size);

// Reads the bytes as a file of another program of that name (preset_import). What must hold: it is refused with a
// sentence, or what it becomes is a preset without a problem, and that a model, or (unless needs_model) refused with a sentence;
// nothing is leaked; and the same with a request for host memory failing, chosen by the bytes. What came of it, where none failed.
hr_status fuzz_import(const char *leaf, bool needs_model, const uint8_t *data, size_t size);

// Counted by the frame (fuzz_memory.c) under every request of the engine for host memory.
int64_t
fuzz_memory_peak(void); // of live bytes since the last fuzz_memory_begin; only differences mean anything
void fuzz_memory_begin(void);

#endif
