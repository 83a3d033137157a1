// SPDX-License-Identifier: Apache-2.0
// A recipe runs in a process of its own, because functions of C may not come back and no hook interrupts them. That
// process says when it hangs and where; the one that started it says so to the person, and ends it.
//
//     headroom script FILE ──spawn──▶ headroom @recipe FILE      (headroom/child.h; limits come first over the socket)
//        INT, TERM, HUP ──SIGUSR1, the number──▶ ends gently: the hook raises, a run under way is saved
//        ◀── script_hang, then script_trace ──── a timer found Lua past its time, or past an interruption: it ends
#ifndef APP_LUA_WATCH_H
#define APP_LUA_WATCH_H

#include "app/lua/script.h"

typedef struct script_hang {
    int why;         // a script_stop
    int interrupted; // the signal, where it is that
    uint64_t steps;  // of a run under way whose last ones are in no save: they are lost; 0: none are
} script_hang;

// Lua's processor time may pass its limit by this much before the recipe counts as hanging: the hook comes first where
// Lua itself runs.
static inline uint64_t script_grace_ns(const script_limits *limits)
{
    return limits->lua_ns / 10;
}

// In the recipe's process. From now on SIGUSR1 interrupts; returns where the number stands, for script_options.
const volatile sig_atomic_t *script_hear_interrupts(void);
// The same, said from any thread; and it is forgotten, before the next recipe of this process.
void script_interrupt(int number);
const volatile sig_atomic_t *script_interruption(void); // where its number stands
void script_forget_interrupt(void);
// Timers look after `s`, until the end, and tell `socket`; without one (−1, beside a workbench) one line of stderr says where it
// hangs. One at a time. STATE error where there is no timer.
HR_MUST_CHECK hr_status script_watch(script *s, int socket, hr_err *err);
void script_watch_end(void);
// The interruption was for what has ended.
void script_watch_forget(void);

#endif
