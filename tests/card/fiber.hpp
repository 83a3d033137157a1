// SPDX-License-Identifier: Apache-2.0
// Stacks that the processor changes between. Fiber MAIN is the caller of go. One set of fibers, one thread at a time.
// Of an address that is nobody's while a fiber runs, the fiber goes on in `landed`.
#ifndef TESTS_CARD_FIBER_HPP
#define TESTS_CARD_FIBER_HPP

namespace card::fiber
{

enum { MAIN = -1, COUNT = 1024 };

// Every fiber begins in `body` when it is gone to for the first time from here on.
void prepare(void (*body)(int self), void (*landed)());
void go(int to); // comes back when somebody goes to this fiber
// Never comes back: this fiber begins in `body` the next time. Not [[noreturn]]: AddressSanitizer would make a system
// call before each.
void leave(int to);
int current();
void *fault_address();

} // namespace card::fiber

#endif
