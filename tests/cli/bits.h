// SPDX-License-Identifier: Apache-2.0
// One set of weights after a few steps, whatever is done with the memory: eager, graph, static, every checkpoint
// strategy, offload, tapes, allocators, in place or not. And the memory differs where it should.
#ifndef TESTS_CLI_BITS_H
#define TESTS_CLI_BITS_H

// Trains `model` in every `nth` of the ways, from the `first` on; `pairs` (NULL-terminated, "key=value") hold for all.
void bits_check(const char *model, const char *const *pairs, int first, int nth);

#endif
