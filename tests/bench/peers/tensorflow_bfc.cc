// SPDX-License-Identifier: Apache-2.0
// TensorFlow's own best-fit allocator, out of its CPU build, over numbers: what it answers to the streams of
// tests/memory/requests.h, and how long a pair takes. Built and run by tests/bench/peers/tensorflow_bfc.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>

#include "xla/tsl/framework/bfc_allocator.h"

#include "bfc_streams.h"

namespace {

// Addresses from 1 << 40 upwards.
class Numbers : public tsl::SubAllocator {
 public:
  explicit Numbers(const bfc_stream& s)
      : SubAllocator({}, {}), stream_(s), places_(numbers_from(UINT64_C(1) << 40, s.policy)) {}
  ~Numbers() override { numbers_deinit(&places_); }
  void* Alloc(size_t, size_t bytes, size_t* received) override {
    if (held_ + bytes > stream_.backing_bytes) {
      return nullptr;
    }
    held_ += bytes;
    *received = bytes;
    return reinterpret_cast<void*>(numbers_take(&places_, bytes));
  }
  // A coalesced region goes back as one: it was taken as several.
  void Free(void* region, size_t bytes) override {
    for (size_t freed = 0; freed < bytes;) {
      freed += numbers_give(&places_, reinterpret_cast<uint64_t>(region) + freed);
    }
    held_ -= bytes;
  }
  bool SupportsCoalescing() const override { return stream_.coalesces; }

 private:
  const bfc_stream& stream_;
  number_places places_;
  uint64_t held_ = 0;
};

std::unique_ptr<tsl::BFCAllocator> make(const bfc_stream& s) {
  tsl::BFCAllocator::Options options;
  options.allow_growth = s.growth;
  options.allow_retry_on_failure = false;
  options.garbage_collection = s.collects;
  return std::make_unique<tsl::BFCAllocator>(std::make_unique<Numbers>(s), s.mix.limit_bytes, "peer", options);
}

uint64_t ask(void* context, uint64_t bytes, uint32_t) {
  tsl::AllocationAttributes attributes(false, false, nullptr);
  return reinterpret_cast<uint64_t>(
      static_cast<tsl::BFCAllocator*>(context)->AllocateRaw(256, bytes, attributes));
}

void give(void* context, uint64_t address) {
  static_cast<tsl::BFCAllocator*>(context)->DeallocateRaw(reinterpret_cast<void*>(address));
}

void answer(const bfc_stream& s) {
  auto heap = make(s);
  request_subject subject = {heap.get(), UINT64_C(1) << 40, ask, give};
  request_answer a = requests_play(&s.mix, &subject);
  auto stats = heap->GetStats();
  std::printf("    {\"%s\", UINT64_C(0x%016llx), %u, %u, UINT64_C(%lld), UINT64_C(%lld)},\n", s.mix.name,
              static_cast<unsigned long long>(a.hash), a.served, a.failed,
              static_cast<long long>(stats->peak_bytes_in_use), static_cast<long long>(stats->largest_alloc_size));
}

double pair_ns(tsl::BFCAllocator* heap, int batch) {
  constexpr int kPairs = 200000;
  static void* live[1000];
  tsl::AllocationAttributes attributes(false, false, nullptr);
  auto begin = std::chrono::steady_clock::now();
  for (int done = 0; done < kPairs; done += batch) {
    for (int k = 0; k < batch; k++) live[k] = heap->AllocateRaw(256, 1024, attributes);
    for (int k = 0; k < batch; k++) heap->DeallocateRaw(live[k]);
  }
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / kPairs;
}

// The same cases as bench_allocators.c, eleven rounds each.
void measure(int batch) {
  bfc_stream s = {{"pair", 0, 0, 0, 1, REQUESTS_SMALL, 256u << 20}, false, false, false, 256u << 20, NUMBERS_NEVER_TWICE};
  auto heap = make(s);
  for (int round = 0; round < 11; round++) {
    std::printf("%d %.1f\n", batch, pair_ns(heap.get(), batch));
  }
}

void measure_training() {
  bfc_stream s = {{"training", 3, 200000, 3000, 1, REQUESTS_TRAINING, 1024u << 20}, false, false, false, 1024u << 20, NUMBERS_NEVER_TWICE};
  auto heap = make(s);
  request_subject subject = {heap.get(), 0, ask, give};
  for (int round = 0; round < 11; round++) {
    auto begin = std::chrono::steady_clock::now();
    requests_play(&s.mix, &subject);
    std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    std::printf("training %.1f\n", took.count() / s.mix.operations);
  }
}

// Runs out of memory in the heap that tests/memory/test_tensorflow_dump_peer.c makes too; the dump goes to the log.
void dump() {
  static const size_t sizes[] = {1, 300, 5000, 70000, 1 << 20, 3 << 20, 5000000, 256, 1500, 700};
  bfc_stream s = {{"dump", 0, 0, 0, 1, REQUESTS_SMALL, 64u << 20}, true, true, false, 64u << 20, NUMBERS_NEVER_TWICE};
  tsl::BFCAllocator::Options options;
  options.allow_growth = true;
  options.garbage_collection = true;
  tsl::BFCAllocator heap(std::make_unique<Numbers>(s), s.mix.limit_bytes, "GPU_0_bfc", options);
  tsl::AllocationAttributes once(false, false, nullptr), patient(true, false, nullptr);
  void* blocks[40];
  for (size_t k = 0; k < 40; k++) blocks[k] = heap.AllocateRaw(256, sizes[k % 10] + k, once);
  for (size_t k = 0; k < 40; k += 3) heap.DeallocateRaw(blocks[k]);
  heap.AllocateRaw(256, 2500000, once);
  heap.AllocateRaw(256, 60u << 20, patient);  // waits ten seconds, then dumps
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--time") == 0) {
    for (int batch : {1, 100, 1000}) measure(batch);
    measure_training();
    return 0;
  }
  if (argc > 1 && std::strcmp(argv[1], "--dump") == 0) {
    dump();
    return 0;
  }
  for (const bfc_stream& s : bfc_streams) answer(s);
  return 0;
}
