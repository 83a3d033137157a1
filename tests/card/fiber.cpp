// SPDX-License-Identifier: Apache-2.0
#include "fiber.hpp"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifndef __x86_64__
#error "the emulated card changes stacks as System V's x86-64 has them"
#endif

// Registers that a callee keeps go onto the stack that is left and come from the one that is gone to.
extern "C" void card_change_stack(void **left, void *to);
asm(R"(
.text
.type card_change_stack, @function
.hidden card_change_stack
card_change_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size card_change_stack, .-card_change_stack
)");

namespace card::fiber
{
namespace
{

#if defined(__SANITIZE_ADDRESS__)
enum : size_t { STACK = 512 * 1024 };
#else
enum : size_t { STACK = 128 * 1024 };
#endif
enum : size_t { GUARD = 4096, KEPT_REGISTERS = 6 };

struct one {
    void *sp;
    bool begun, dirty; // dirty: left in the middle of things
    bool torn;         // by a fault: nobody knows how deep it was
    void *fake;        // AddressSanitizer's
};
one fibers[COUNT], main_fiber;
unsigned char *stacks; // guard, stack, guard, stack, …
int now = MAIN;
void (*fiber_body)(int);
void (*fault_landing)();
void *fault_at;
pthread_t owner;
volatile sig_atomic_t running;
struct sigaction before[2];
[[maybe_unused]] const void *main_bottom;
[[maybe_unused]] size_t main_size;

unsigned char *bottom_of(int f)
{
    return stacks + (size_t)f * (STACK + GUARD) + GUARD;
}

one &at(int f)
{
    return f == MAIN ? main_fiber : fibers[f];
}

void announce([[maybe_unused]] int to, [[maybe_unused]] void **fake)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(fake, to == MAIN ? main_bottom : bottom_of(to),
                                   to == MAIN ? main_size : STACK);
#endif
}

void arrived([[maybe_unused]] void *fake, [[maybe_unused]] bool from_main)
{
#if defined(__SANITIZE_ADDRESS__)
    const void *bottom = nullptr;
    size_t size = 0;
    __sanitizer_finish_switch_fiber(fake, &bottom, &size);
    if (from_main) {
        main_bottom = bottom;
        main_size = size;
    }
#endif
}

bool came_from_main;

void first_entry()
{
    arrived(nullptr, came_from_main);
    fiber_body(now);
    abort(); // a body leaves
}

void begin(int f)
{
    one &o = fibers[f];
#if defined(__SANITIZE_ADDRESS__)
    // The frames that nobody came back to: clearing the whole stack of every thread would be half of a test's time.
    if (o.dirty) {
        unsigned char *deepest = o.torn ? bottom_of(f) : static_cast<unsigned char *>(o.sp);
        __asan_unpoison_memory_region(deepest, (size_t)(bottom_of(f) + STACK - deepest));
    }
    o.torn = false;
#endif
    void **sp = (void **)(bottom_of(f) + STACK) - 1; // as if called: 8 below a multiple of 16
    *sp = nullptr;
    *--sp = (void *)first_entry;
    sp -= KEPT_REGISTERS;
    memset(sp, 0, KEPT_REGISTERS * sizeof *sp);
    o.sp = sp;
    o.begun = true;
    o.dirty = true;
}

void on_fault(int signal, siginfo_t *info, void *context)
{
    if (running == 0 || now == MAIN || !pthread_equal(pthread_self(), owner)) {
        (void)sigaction(signal, &before[signal == SIGSEGV ? 0 : 1], nullptr); // and again, for its owner
        return;
    }
    fault_at = info->si_addr;
    fibers[now].torn = true;
    greg_t *registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
    // The stack may be what has overflowed: begin it anew.
    registers[REG_RSP] = (greg_t)(bottom_of(now) + STACK - 64 - 8);
    registers[REG_RIP] = (greg_t)fault_landing;
}

void catch_faults()
{
    static thread_local bool has_stack;
    stack_t old;
    if (!has_stack && sigaltstack(nullptr, &old) == 0 && (old.ss_flags & SS_DISABLE) != 0) {
        stack_t fresh = {};
        fresh.ss_size = 64 * 1024;
        fresh.ss_sp =
            mmap(nullptr, fresh.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        (void)sigaltstack(&fresh, nullptr);
    }
    has_stack = true;
    struct sigaction action = {}, current = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    const int signals[2] = {SIGSEGV, SIGBUS};
    for (int k = 0; k < 2; k++) {
        (void)sigaction(signals[k], nullptr, &current);
        if (current.sa_sigaction != on_fault) {
            before[k] = current;
            (void)sigaction(signals[k], &action, nullptr);
        }
    }
}

} // namespace

void prepare(void (*body)(int), void (*landed)())
{
    if (stacks == nullptr) {
        void *room = mmap(nullptr, COUNT * (STACK + GUARD), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (room == MAP_FAILED) {
            perror("card: stacks");
            abort();
        }
        stacks = static_cast<unsigned char *>(room);
        for (int f = 0; f < COUNT; f++) {
            (void)mprotect(bottom_of(f) - GUARD, GUARD, PROT_NONE);
        }
    }
    fiber_body = body;
    fault_landing = landed;
    owner = pthread_self();
    for (one &o : fibers) {
        o.begun = false;
    }
    catch_faults();
}

void go(int to)
{
    const int self = now;
    if (to != MAIN && !fibers[to].begun) {
        begin(to);
    }
    came_from_main = self == MAIN;
    now = to;
    running = to != MAIN;
    announce(to, &at(self).fake);
    card_change_stack(&at(self).sp, at(to).sp);
    arrived(at(self).fake, false);
}

void leave(int to)
{
    const int self = now;
    fibers[self].begun = false;
    if (to != MAIN && !fibers[to].begun) {
        begin(to);
    }
    came_from_main = false;
    now = to;
    running = to != MAIN;
    announce(to, nullptr);
    card_change_stack(&at(self).sp, at(to).sp);
    abort();
}

int current()
{
    return now;
}

void *fault_address()
{
    return fault_at;
}

} // namespace card::fiber
