// SPDX-License-Identifier: Apache-2.0
// Private to the emulated driver: its state, and what every call begins with. One lock is held during every call.
//
// Work on streams is a graph of commands, each of which waits for others. A command that waits for nothing may run at
// any time: a draw decides which does, at calls that enqueue and at calls that wait. A program that forgets to wait
// therefore sees wrong numbers.
#ifndef TESTS_CARD_DRIVER_HPP
#define TESTS_CARD_DRIVER_HPP

#include <cuda.h>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "block.hpp"
#include "card.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace card
{

// ---- state (driver.cpp) ---------------------------------------------------------------------------------------------

struct fault {
    uint64_t after; // calls
    int result;     // a CUresult, or the status of another library
};

struct settings {
    uint64_t vram, context_bytes, others, others_later, others_at;
    int multiprocessors, devices, version;
    uint64_t piece_bytes;
    uint64_t lose_at;
    bool guard;
};

struct state {
    std::recursive_mutex lock;
    settings set;
    bool started;
    int pid;         // that has called cuInit
    CUresult lost;   // sticky
    double ahead_ms; // of the processor's clock: what work was said to take beside
    int contexts;    // retained
    uint64_t rng;
    card_totals totals;
    uint64_t launches_begun; // of all time
    std::map<std::string, uint64_t> calls, launches;
    std::map<std::string, fault> faults;
    uint64_t used_bytes; // memory of the card, without the context
};
state &the();

uint64_t draw(); // of the order
bool lost();
int due(const char *name);

enum : unsigned { BEFORE_INIT = 1, WITHOUT_CONTEXT = 2, WHEN_LOST = 4, NOT_IN_CAPTURE = 8 };

// Holds the lock for a call's duration, counts it, and knows what refuses it.
class call
{
  public:
    call(const char *name, unsigned flags);
    CUresult refused;

  private:
    std::lock_guard<std::recursive_mutex> held;
};

#define ENTER(name, flags)                                                                                   \
    card::call entered_(#name, flags);                                                                       \
    if (entered_.refused != CUDA_SUCCESS) {                                                                  \
        return entered_.refused;                                                                             \
    }

// ---- memory (driver_memory.cpp, driver_pool.cpp) --------------------------------------------------------------------

enum : uint64_t { GRANULE = 2 * 1024 * 1024 };

uint64_t others_bytes();
uint64_t free_bytes();
bool holds(CUdeviceptr address, uint64_t bytes); // accessible, every byte
bool pinned(const void *host, uint64_t bytes);
CUresult allocate(CUdeviceptr *out, uint64_t bytes); // a piece of its own, of whole granules
void deallocate(CUdeviceptr address);
void pools_settle(); // at a synchronisation: gives back what is above the thresholds

// While one stands, kernels may use the card's memory. Nobody may else.
class opened
{
  public:
    opened();
    ~opened();
};

// ---- commands (driver_stream.cpp) -----------------------------------------------------------------------------------

typedef std::function<void()> work; // fails by lose()
void lose(CUresult result);

struct node {
    work run;
    std::vector<size_t> after;
};

struct capture {
    CUstream origin;
    std::vector<node> nodes;
    bool broken;
};

// On the stream: at once recorded when it captures.
CUresult enqueue(CUstream stream, work run);
bool known(CUstream stream);
bool capturing(); // does any stream capture in a mode that forbids what may wait
void wait_for(uint64_t command);
void wait_for_stream(CUstream stream);
void wait_for_all();
void break_captures();
uint64_t run_graph(CUstream stream, const std::vector<node> &nodes);

} // namespace card

struct CUstream_st {
    bool blocking;
    uint64_t tail; // the last command; 0: none
    card::capture *into;
    std::vector<size_t> ends; // nodes that the next one comes after
};
struct CUevent_st {
    bool timed;
    uint64_t command;    // that it was recorded with; 0: never
    double at_ms;        // when that ran
    card::capture *into; // recorded while capturing
    std::vector<size_t> ends;
};
struct CUgraph_st {
    std::vector<card::node> nodes;
};
struct CUgraphExec_st {
    std::vector<card::node> nodes;
};

#endif
