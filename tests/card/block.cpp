// SPDX-License-Identifier: Apache-2.0
#include "block.hpp"

#include <algorithm>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "fiber.hpp"

card_index threadIdx, blockIdx, blockDim, gridDim;
unsigned char *card_dynamic_shared;

namespace card
{

uint64_t draw_next(uint64_t &state)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

namespace
{

enum { WARP = 32, THREADS_MAX = 1024, WARPS_MAX = THREADS_MAX / WARP, NAN_BYTE = 0xff };
enum : size_t { DYNAMIC_MAX = 256 * 1024, PAGE = 4096 };

struct warp {
    const char *word;          // what its threads are saying
    size_t bytes;              // and how much they carry
    unsigned arrived, nonzero; // a bit per lane
    unsigned last_nonzero;     // of the exchange before
    unsigned round;            // table[round % 2] is being filled
    uint64_t table[2][WARP];
    int waiting[WARP];
    unsigned waiting_count;
};

// The block that runs.
struct {
    const card_kernel *kernel;
    const void *arguments;
    const std::function<void()> *work; // instead of a kernel
    unsigned threads, started, finished;
    bool from_last;  // threads begin with the last
    bool runs_ahead; // the warp that can go on goes as far as it can before another does
    CUresult result;
    int thread_of[fiber::COUNT]; // that the fiber is running
    int ready[THREADS_MAX + 1];
    unsigned ready_head, ready_count;
    int at_barrier[THREADS_MAX];
    unsigned barrier_count;
    int free_fiber[fiber::COUNT];
    unsigned free_count;
    warp warps[WARPS_MAX];
} block;

const char *kernel_name()
{
    return block.kernel == nullptr ? "work of a library" : block.kernel->name;
}

unsigned thread_now()
{
    return (unsigned)block.thread_of[fiber::current()];
}

void be_thread(unsigned thread)
{
    threadIdx.x = thread % blockDim.x;
    threadIdx.y = thread / blockDim.x % blockDim.y;
    threadIdx.z = thread / blockDim.x / blockDim.y;
}

void make_ready(int f)
{
    block.ready[(block.ready_head + block.ready_count++) % (THREADS_MAX + 1)] = f;
}

// Who became ready last is of the warp that spoke last.
int take_ready()
{
    const unsigned at = block.ready_head + (block.runs_ahead ? block.ready_count - 1 : 0);
    block.ready_head = block.runs_ahead ? block.ready_head : (block.ready_head + 1) % (THREADS_MAX + 1);
    block.ready_count--;
    return block.ready[at % (THREADS_MAX + 1)];
}

[[noreturn]] void give_up(CUresult result)
{
    block.result = result;
    fiber::leave(fiber::MAIN);
    abort();
}

[[noreturn]] void refuse(const char *why)
{
    (void)fprintf(stderr, "card: kernel %s, block %u, thread %u: %s\n", kernel_name(), blockIdx.x,
                  thread_now(), why);
    give_up(CUDA_ERROR_LAUNCH_FAILED);
}

// The fiber that runs next when this one cannot go on; MAIN when nothing is left to do.
int next_fiber()
{
    if (block.ready_count > 0) {
        const int f = take_ready();
        be_thread((unsigned)block.thread_of[f]);
        return f;
    }
    if (block.started < block.threads) {
        return block.free_fiber[--block.free_count];
    }
    if (block.finished < block.threads) {
        (void)fprintf(
            stderr,
            "card: kernel %s, block %u of %u threads: %u have finished, %u wait in __syncthreads, the "
            "others for their warp; nobody can go on\n",
            kernel_name(), blockIdx.x, block.threads, block.finished, block.barrier_count);
        block.result = CUDA_ERROR_LAUNCH_FAILED;
    }
    return fiber::MAIN;
}

// Fibers run threads that nobody has begun.
void run_threads(int self)
{
    while (block.started < block.threads) {
        const unsigned k = block.started++;
        const unsigned thread = block.from_last ? block.threads - 1 - k : k;
        block.thread_of[self] = (int)thread;
        be_thread(thread);
        if (block.kernel != nullptr) {
            block.kernel->call(block.arguments);
        } else {
            (*block.work)();
        }
        block.finished++;
    }
    block.free_fiber[block.free_count++] = self;
    fiber::leave(next_fiber());
}

void wait_for_others()
{
    fiber::go(next_fiber());
}

void release(const int *waiting, unsigned count)
{
    for (unsigned k = 0; k < count; k++) {
        make_ready(waiting[k]);
    }
}

void landed() // of an address that is nobody's, on the fiber that used it
{
    (void)fprintf(stderr, "card: kernel %s, block %u, thread %u: illegal address %p\n", kernel_name(),
                  blockIdx.x, thread_now(), fiber::fault_address());
    give_up(CUDA_ERROR_ILLEGAL_ADDRESS);
}

void begin_launch()
{
    fiber::prepare(run_threads, landed);
    block.result = CUDA_SUCCESS;
    block.free_count = fiber::COUNT;
    for (int k = 0; k < fiber::COUNT; k++) {
        block.free_fiber[k] = fiber::COUNT - 1 - k;
    }
}

// `order`: two bits of chance.
void begin_block(unsigned threads, uint64_t order)
{
    block.threads = threads;
    block.started = block.finished = block.ready_head = block.ready_count = block.barrier_count = 0;
    block.from_last = (order & 1) != 0;
    block.runs_ahead = (order & 2) != 0;
    for (unsigned k = 0; k < (threads + WARP - 1) / WARP; k++) {
        block.warps[k].arrived = block.warps[k].waiting_count = 0;
    }
}

CUresult run_block(unsigned threads, uint64_t order)
{
    begin_block(threads, order);
    fiber::go(next_fiber());
    return block.result;
}

// Shared memory: only what some block has touched is filled again.
class shared_memory
{
  public:
    explicit shared_memory(const card_module_info &m) : begin(m.shared_begin), end(m.shared_end)
    {
        std::fill(begin, end, (unsigned char)NAN_BYTE);
        low = end;
        high = begin;
    }
    void refill(unsigned char *dynamic, size_t dynamic_bytes)
    {
        if (low < high) {
            memset(low, NAN_BYTE, (size_t)(high - low));
        }
        if (dynamic_bytes > 0) {
            memset(dynamic, NAN_BYTE, dynamic_bytes);
        }
    }
    // After the first block: a kernel's variables are those that it has touched.
    void look()
    {
        const auto touched = [](unsigned char c) { return c != NAN_BYTE; };
        low = std::find_if(begin, end, touched);
        high = end;
        while (high > low && !touched(high[-1])) {
            high--;
        }
    }
    ~shared_memory()
    {
        std::fill(begin, end, (unsigned char)NAN_BYTE);
    }

  private:
    unsigned char *begin, *end, *low, *high;
};

// Dynamic shared memory ends where a page begins that is nobody's.
unsigned char *dynamic_memory(size_t bytes)
{
    static unsigned char *end;
    if (end == nullptr) {
        void *room =
            mmap(nullptr, DYNAMIC_MAX + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED || mprotect((unsigned char *)room + DYNAMIC_MAX, PAGE, PROT_NONE) != 0) {
            perror("card: shared memory");
            abort();
        }
        end = (unsigned char *)room + DYNAMIC_MAX;
    }
    return end - (bytes + 15) / 16 * 16;
}

void place_block(uint64_t k)
{
    blockIdx.x = (unsigned)(k % gridDim.x);
    blockIdx.y = (unsigned)(k / gridDim.x % gridDim.y);
    blockIdx.z = (unsigned)(k / gridDim.x / gridDim.y);
}

// A step that visits every block once.
uint64_t drawn_stride(uint64_t count, uint64_t &draw)
{
    uint64_t stride = count <= 1 ? 1 : 1 + draw_next(draw) % count;
    const auto common = [](uint64_t a, uint64_t b) {
        while (b != 0) {
            const uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        return a;
    };
    while (common(stride, count) != 1) {
        stride++;
    }
    return stride % count == 0 ? 1 : stride % count;
}

} // namespace

CUresult run_kernel(const card_kernel &kernel, const card_module_info &module, const grid &g,
                    const void *arguments, uint64_t draw)
{
    shared_memory shared(module);
    block.kernel = &kernel;
    block.arguments = arguments;
    gridDim = g.blocks;
    blockDim = g.threads;
    card_dynamic_shared = dynamic_memory(g.shared_bytes);
    const uint64_t count = (uint64_t)g.blocks.x * g.blocks.y * g.blocks.z;
    const uint64_t stride = drawn_stride(count, draw);
    uint64_t at = draw_next(draw) % count;
    CUresult result = CUDA_SUCCESS;
    begin_launch();
    for (uint64_t k = 0; k < count && result == CUDA_SUCCESS; k++, at = (at + stride) % count) {
        place_block(at);
        shared.refill(card_dynamic_shared, g.shared_bytes);
        result = run_block(g.threads.x * g.threads.y * g.threads.z, draw_next(draw));
        if (k == 0) {
            shared.look();
        }
    }
    return result;
}

CUresult run_work(const char *, const std::function<void()> &work)
{
    block.kernel = nullptr;
    block.work = &work;
    blockDim = gridDim = card_index{1, 1, 1};
    blockIdx = card_index{0, 0, 0};
    begin_launch();
    return run_block(1, 0);
}

} // namespace card

void card_syncthreads(void)
{
    using namespace card;
    if (block.barrier_count + 1 == block.threads) {
        const unsigned count = block.barrier_count;
        block.barrier_count = 0;
        release(block.at_barrier, count);
        return;
    }
    block.at_barrier[block.barrier_count++] = fiber::current();
    wait_for_others();
}

unsigned card_exchange(const char *word, unsigned mask, const void *mine, size_t bytes, int source, void *out)
{
    using namespace card;
    const unsigned thread = thread_now(), lane = thread % WARP;
    warp &w = block.warps[thread / WARP];
    if (mask != 0xffffffffu || thread - lane + WARP > block.threads) {
        refuse("shuffles are over warps of 32 threads");
    }
    if (w.arrived == 0) {
        w.word = word;
        w.bytes = bytes;
        w.nonzero = 0;
    } else if (strcmp(w.word, word) != 0 || w.bytes != bytes) {
        refuse("its warp says something else");
    }
    const unsigned round = w.round % 2;
    uint64_t value = 0;
    if (bytes > 0) {
        memcpy(&value, mine, bytes);
    }
    w.table[round][lane] = value;
    w.nonzero |= value != 0 ? 1u << lane : 0u;
    w.arrived |= 1u << lane;
    if (w.arrived == 0xffffffffu) {
        w.arrived = 0;
        w.last_nonzero = w.nonzero;
        w.round++;
        const unsigned count = w.waiting_count;
        w.waiting_count = 0;
        release(w.waiting, count);
    } else {
        w.waiting[w.waiting_count++] = fiber::current();
        wait_for_others();
    }
    if (out != nullptr) {
        memcpy(out, &w.table[round][source], bytes);
    }
    return w.last_nonzero;
}
