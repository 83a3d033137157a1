// SPDX-License-Identifier: Apache-2.0
#ifndef SESSION_PLANNING_SERVE_H
#define SESSION_PLANNING_SERVE_H

// The planner process: answers what comes over the socket, which it closes, until the other side has ended. It takes
// what nobody else wants of the processor; between two plans it looks whether something else is asked. Returns the exit
// code.
int planning_serve(int socket);
// The same at the priority that it has: for tests on a busy machine.
int planning_serve_eagerly(int socket);

#endif
