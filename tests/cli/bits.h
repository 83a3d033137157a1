// SPDX-License-Identifier: Apache-2.0
// One set of weights after a few steps, whatever is done with the memory: eager, graph, static, every checkpoint
// strategy, offload, tapes, allocators, in place or not. And the memory differs where it should.
#ifndef TESTS_CLI_BITS_H
#define TESTS_CLI_BITS_H

enum { BITS_MODELS = 8 };
extern const char *const bits_models[BITS_MODELS]; // of every kind of layer

// Knobs that do arithmetic, or say which, stand in a list with their reason; every value of every other one leaves the
// weights as they are, by itself, where the constraints let it. A new knob is of the others until it is in the list.

// Trains `model` in every `nth` of the ways, from the `first` on; `pairs` (NULL-terminated, "key=value") hold for all.
void bits_check(const char *model, const char *const *pairs, int first, int nth);
// Trains `model` in checkpoint.strategy=blocks and without, by the rules of PyTorch and by ours, in float32 and mixed.
void bits_check_blocks(const char *model, const char *const *pairs);
// The same of every value of every knob that does no arithmetic, with others turned where it needs them.
void bits_check_knobs(const char *model);

#endif
