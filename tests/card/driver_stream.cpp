// SPDX-License-Identifier: Apache-2.0
// Streams, events and copies of the emulated card, and the order in which what was enqueued runs.
#include <algorithm>
#include <memory>
#include <string.h>
#include <time.h>

#include "driver.hpp"

namespace card
{
namespace
{

struct command {
    work run;
    std::vector<uint64_t> after, before; // commands
    size_t waits;
};

enum { PENDING_MAX = 4096 };

std::map<uint64_t, command> pending;
std::vector<uint64_t> ready;
uint64_t last_command, legacy_tail;
std::set<CUstream> streams;
std::set<CUevent> events;
std::set<CUgraph> graphs;
std::set<CUgraphExec> execs;
std::vector<std::unique_ptr<capture>> captures;

uint64_t add(work run, const std::vector<uint64_t> &after)
{
    const uint64_t id = ++last_command;
    command c = {std::move(run), {}, {}, 0};
    for (const uint64_t dep : after) {
        const auto found = pending.find(dep);
        if (found != pending.end()) {
            found->second.before.push_back(id);
            c.after.push_back(dep);
            c.waits++;
        }
    }
    if (c.waits == 0) {
        ready.push_back(id);
    }
    pending.emplace(id, std::move(c));
    return id;
}

void run_command(uint64_t id)
{
    ready.erase(std::find(ready.begin(), ready.end(), id));
    command &c = pending[id];
    if (!lost()) {
        c.run();
    }
    for (const uint64_t next : c.before) {
        if (--pending[next].waits == 0) {
            ready.push_back(next);
        }
    }
    pending.erase(id);
}

void run_any()
{
    run_command(ready[draw() % ready.size()]);
}

// Sometimes something goes on, sometimes nothing.
void go_on()
{
    if (draw() % 4 != 0 && pending.size() < PENDING_MAX) {
        return;
    }
    opened window;
    for (uint64_t k = 1 + draw() % 8; k > 0 && !ready.empty(); k--) {
        run_any();
    }
}

// What `id` waits for and itself, of what is pending.
std::set<uint64_t> ancestors(uint64_t id)
{
    std::set<uint64_t> found;
    std::vector<uint64_t> open = {id};
    while (!open.empty()) {
        const uint64_t at = open.back();
        open.pop_back();
        const auto c = pending.find(at);
        if (c != pending.end() && found.insert(at).second) {
            open.insert(open.end(), c->second.after.begin(), c->second.after.end());
        }
    }
    return found;
}

// As little as can be: other streams stand still meanwhile.
void run_only(uint64_t id)
{
    const std::set<uint64_t> needed = ancestors(id);
    while (pending.count(id) != 0) {
        std::vector<uint64_t> can;
        for (const uint64_t r : ready) {
            if (needed.count(r) != 0) {
                can.push_back(r);
            }
        }
        run_command(can[draw() % can.size()]);
    }
}

double now_ms()
{
    timespec t = {};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

// What a command of this stream comes after. The legacy stream (NULL) waits for the blocking ones and they for it.
std::vector<uint64_t> tails(CUstream stream)
{
    std::vector<uint64_t> after;
    if (stream != nullptr) {
        after.push_back(stream->tail);
    }
    if (stream == nullptr || stream->blocking) {
        after.push_back(legacy_tail);
    }
    for (const CUstream s : streams) {
        if (stream == nullptr && s->blocking) {
            after.push_back(s->tail);
        }
    }
    return after;
}

void put_behind(CUstream stream, uint64_t id)
{
    (stream == nullptr ? legacy_tail : stream->tail) = id;
}

} // namespace

bool known(CUstream stream)
{
    return stream == nullptr || streams.count(stream) != 0;
}

bool capturing()
{
    return std::any_of(streams.begin(), streams.end(), [](CUstream s) { return s->into != nullptr; });
}

void break_captures()
{
    for (const CUstream s : streams) {
        if (s->into != nullptr) {
            s->into->broken = true;
        }
    }
}

CUresult enqueue(CUstream stream, work run)
{
    if (!known(stream)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (stream != nullptr && stream->into != nullptr) {
        capture &c = *stream->into;
        if (c.broken) {
            return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        }
        c.nodes.push_back({std::move(run), stream->ends});
        stream->ends = {c.nodes.size() - 1};
        return CUDA_SUCCESS;
    }
    if (stream == nullptr && capturing()) {
        break_captures();
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    put_behind(stream, add(std::move(run), tails(stream)));
    go_on();
    return CUDA_SUCCESS;
}

uint64_t run_graph(CUstream stream, const std::vector<node> &nodes)
{
    const uint64_t begin = add([] {}, tails(stream));
    std::vector<uint64_t> ids;
    for (const node &n : nodes) {
        std::vector<uint64_t> after = {begin};
        for (const size_t k : n.after) {
            after.push_back(ids[k]);
        }
        ids.push_back(add(n.run, after));
    }
    ids.push_back(begin);
    const uint64_t end = add([] {}, ids);
    put_behind(stream, end);
    go_on();
    return end;
}

void wait_for(uint64_t id)
{
    opened window;
    if (draw() % 2 == 0) {
        run_only(id);
    }
    while (pending.count(id) != 0) {
        run_any();
    }
}

void wait_for_stream(CUstream stream)
{
    for (const uint64_t id : tails(stream)) {
        if (stream == nullptr || id == stream->tail) {
            wait_for(id);
        }
    }
}

void wait_for_all()
{
    opened window;
    while (!pending.empty()) {
        run_any();
    }
    pools_settle();
}

} // namespace card

using namespace card;

// ---- streams --------------------------------------------------------------------------------------------------------

EXPORTED CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    ENTER(cuStreamCreate, 0)
    *out = new CUstream_st{(flags & CU_STREAM_NON_BLOCKING) == 0, 0, nullptr, {}};
    streams.insert(*out);
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuStreamDestroy_v2(CUstream stream)
{
    ENTER(cuStreamDestroy_v2, WHEN_LOST)
    if (stream == nullptr || streams.erase(stream) == 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    delete stream; // what it was given still runs
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuStreamSynchronize(CUstream stream)
{
    ENTER(cuStreamSynchronize, NOT_IN_CAPTURE)
    if (!known(stream)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    the().totals.synchronisations++;
    wait_for_stream(stream);
    pools_settle();
    return the().lost;
}

// ---- events ---------------------------------------------------------------------------------------------------------

EXPORTED CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    ENTER(cuEventCreate, 0)
    *out = new CUevent_st{(flags & CU_EVENT_DISABLE_TIMING) == 0, 0, 0, nullptr, {}};
    events.insert(*out);
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuEventDestroy_v2(CUevent event)
{
    ENTER(cuEventDestroy_v2, WHEN_LOST)
    if (events.erase(event) == 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    delete event;
    return CUDA_SUCCESS;
}

EXPORTED void card_take(double ms)
{
    std::lock_guard<std::recursive_mutex> held(the().lock);
    the().ahead_ms += ms;
}

EXPORTED CUresult cuEventRecord(CUevent event, CUstream stream)
{
    ENTER(cuEventRecord, 0)
    if (events.count(event) == 0 || !known(stream)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (stream != nullptr && stream->into != nullptr) {
        event->into = stream->into;
        event->ends = stream->ends;
        return CUDA_SUCCESS;
    }
    event->into = nullptr;
    const CUresult result = enqueue(stream, [event] {
        if (events.count(event) != 0) {
            event->at_ms = now_ms() + the().ahead_ms;
        }
    });
    event->command = last_command;
    return result;
}

// A stream that waits for an event of a capture is captured too.
static CUresult join_capture(CUstream stream, CUevent event)
{
    if (stream == nullptr || (stream->into != nullptr && stream->into != event->into)) {
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (stream->into == nullptr) {
        stream->ends.clear();
    }
    stream->into = event->into;
    for (const size_t end : event->ends) {
        if (std::find(stream->ends.begin(), stream->ends.end(), end) == stream->ends.end()) {
            stream->ends.push_back(end);
        }
    }
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned)
{
    ENTER(cuStreamWaitEvent, 0)
    if (events.count(event) == 0 || !known(stream)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (event->into != nullptr) {
        return join_capture(stream, event);
    }
    if (stream != nullptr && stream->into != nullptr) {
        // An event that nobody has recorded holds nobody up.
        stream->into->broken = event->command != 0;
        return event->command != 0 ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION : CUDA_SUCCESS;
    }
    std::vector<uint64_t> after = tails(stream);
    after.push_back(event->command);
    put_behind(stream, add([] {}, after));
    go_on();
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuEventSynchronize(CUevent event)
{
    ENTER(cuEventSynchronize, 0)
    if (events.count(event) == 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (event->into != nullptr) {
        event->into->broken = true;
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    the().totals.synchronisations++;
    wait_for(event->command);
    return the().lost;
}

EXPORTED CUresult cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to)
{
    ENTER(cuEventElapsedTime_v2, 0)
    if (events.count(from) == 0 || events.count(to) == 0 || !from->timed || !to->timed ||
        from->command == 0 || to->command == 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (pending.count(from->command) != 0 || pending.count(to->command) != 0) {
        return CUDA_ERROR_NOT_READY;
    }
    *ms = (float)(to->at_ms - from->at_ms);
    return CUDA_SUCCESS;
}

// ---- copies ---------------------------------------------------------------------------------------------------------

enum direction { TO_CARD, FROM_CARD, ON_CARD };

static void count_copy(direction way, uint64_t bytes)
{
    card_totals &t = the().totals;
    (way == TO_CARD ? t.to_card_bytes : way == FROM_CARD ? t.from_card_bytes : t.on_card_bytes) += bytes;
}

// As the stream comes to it; by then the memory may be gone.
static work copying(direction way, void *to, const void *from, size_t bytes)
{
    return [=] {
        if ((way != FROM_CARD && !holds((CUdeviceptr)to, bytes)) ||
            (way != TO_CARD && !holds((CUdeviceptr)from, bytes))) {
            lose(CUDA_ERROR_ILLEGAL_ADDRESS);
            return;
        }
        count_copy(way, bytes);
        (void)memmove(to, from, bytes);
    };
}

static bool copy_is_valid(direction way, const void *to, const void *from, size_t bytes)
{
    return (way == FROM_CARD || holds((CUdeviceptr)to, bytes)) &&
           (way == TO_CARD || holds((CUdeviceptr)from, bytes));
}

static CUresult copy_in_order(direction way, void *to, const void *from, size_t bytes, CUstream stream)
{
    if (bytes == 0) {
        return CUDA_SUCCESS;
    }
    if (!copy_is_valid(way, to, from, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const CUresult result = enqueue(stream, copying(way, to, from, bytes));
    const void *on_host = way == TO_CARD ? from : to;
    const bool captured = stream != nullptr && stream->into != nullptr;
    // The driver cannot read pageable memory later: the call waits.
    if (result == CUDA_SUCCESS && way != ON_CARD && !captured && !pinned(on_host, bytes)) {
        the().totals.synchronisations++;
        wait_for_stream(stream);
        return the().lost;
    }
    return result;
}

// On the legacy stream, and waits for it: not for streams that do not block.
static CUresult copy_now(direction way, void *to, const void *from, size_t bytes)
{
    if (bytes == 0) {
        return CUDA_SUCCESS;
    }
    if (!copy_is_valid(way, to, from, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const CUresult result = enqueue(nullptr, copying(way, to, from, bytes));
    if (result != CUDA_SUCCESS) {
        return result;
    }
    the().totals.synchronisations++;
    wait_for(legacy_tail);
    return the().lost;
}

EXPORTED CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    ENTER(cuMemcpyHtoD_v2, 0)
    return copy_now(TO_CARD, (void *)to, from, bytes);
}

EXPORTED CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    ENTER(cuMemcpyDtoH_v2, 0)
    return copy_now(FROM_CARD, to, (const void *)from, bytes);
}

EXPORTED CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    ENTER(cuMemcpyHtoDAsync_v2, 0)
    return copy_in_order(TO_CARD, (void *)to, from, bytes, stream);
}

EXPORTED CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER(cuMemcpyDtoHAsync_v2, 0)
    return copy_in_order(FROM_CARD, to, (const void *)from, bytes, stream);
}

EXPORTED CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER(cuMemcpyDtoDAsync_v2, 0)
    return copy_in_order(ON_CARD, (void *)to, (const void *)from, bytes, stream);
}

EXPORTED CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    ENTER(cuMemsetD8Async, 0)
    if (!holds(to, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return enqueue(stream, [=] {
        if (!holds(to, bytes)) {
            lose(CUDA_ERROR_ILLEGAL_ADDRESS);
            return;
        }
        (void)memset((void *)to, value, bytes);
    });
}

// ---- graphs ---------------------------------------------------------------------------------------------------------

EXPORTED CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode)
{
    ENTER(cuStreamBeginCapture_v2, 0)
    if (stream == nullptr) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (!known(stream) || stream->into != nullptr) {
        return !known(stream) ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_ILLEGAL_STATE;
    }
    captures.push_back(std::make_unique<capture>(capture{stream, {}, false}));
    stream->into = captures.back().get();
    stream->ends.clear();
    return CUDA_SUCCESS;
}

// Nodes that no later one of `from` comes after, and that `from` does not come after itself.
static bool joined(const capture &c, const std::vector<size_t> &from)
{
    std::vector<bool> reached(c.nodes.size());
    std::vector<size_t> open = from;
    while (!open.empty()) {
        const size_t at = open.back();
        open.pop_back();
        if (!reached[at]) {
            reached[at] = true;
            open.insert(open.end(), c.nodes[at].after.begin(), c.nodes[at].after.end());
        }
    }
    return std::find(reached.begin(), reached.end(), false) == reached.end();
}

static void end_capture(capture *c)
{
    for (const CUstream s : streams) {
        s->into = s->into == c ? nullptr : s->into;
    }
    for (const CUevent e : events) {
        if (e->into == c) { // of the past: it holds nobody up any more
            e->into = nullptr;
            e->command = 0;
        }
    }
    const auto is_c = [c](const std::unique_ptr<capture> &other) { return other.get() == c; };
    captures.erase(std::find_if(captures.begin(), captures.end(), is_c));
}

EXPORTED CUresult cuStreamEndCapture(CUstream stream, CUgraph *out)
{
    card::call entered("cuStreamEndCapture", WHEN_LOST);
    *out = nullptr;
    if (entered.refused != CUDA_SUCCESS) { // whatever the call answers, the capture has ended
        if (stream != nullptr && known(stream) && stream->into != nullptr) {
            end_capture(stream->into);
        }
        return entered.refused;
    }
    if (stream == nullptr || !known(stream) || stream->into == nullptr) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    capture *c = stream->into;
    if (c->origin != stream) {
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    const CUresult result = lost()                      ? the().lost
                            : c->broken                 ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                            : !joined(*c, stream->ends) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                                        : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) {
        *out = new CUgraph_st{std::move(c->nodes)};
        graphs.insert(*out);
    }
    end_capture(c);
    return result;
}

EXPORTED CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long)
{
    ENTER(cuGraphInstantiateWithFlags, 0)
    if (graphs.count(graph) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = new CUgraphExec_st{graph->nodes};
    execs.insert(*out);
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    ENTER(cuGraphLaunch, 0)
    if (execs.count(exec) == 0 || !known(stream)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (stream == nullptr ? capturing() : stream->into != nullptr) {
        break_captures();
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; // of this card: graphs inside of graphs
    }
    the().totals.graph_launches++;
    (void)run_graph(stream, exec->nodes);
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    ENTER(cuGraphExecDestroy, WHEN_LOST)
    if (execs.erase(exec) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    delete exec;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuGraphDestroy(CUgraph graph)
{
    ENTER(cuGraphDestroy, WHEN_LOST)
    if (graphs.erase(graph) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    delete graph;
    return CUDA_SUCCESS;
}
