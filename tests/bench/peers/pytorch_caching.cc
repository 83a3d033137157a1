// SPDX-License-Identifier: Apache-2.0
// PyTorch's own caching allocator over a driver of numbers (fake_cuda.c): what it answers to one of the streams of
// tests/memory/caching_streams.h, or to a random one, or how long a pair takes. Built and run by
// tests/bench/peers/pytorch_caching.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/PeerToPeerAccess.h>

#include "caching_streams.h"

namespace caching = c10::cuda::CUDACachingAllocator;

namespace {

std::string first_message;  // of running out of memory
uint64_t first_bytes;

uint64_t ask(void*, uint64_t bytes, uint32_t stream) {
  try {
    return reinterpret_cast<uint64_t>(
        caching::get()->raw_alloc_with_stream(bytes, reinterpret_cast<cudaStream_t>(uint64_t{stream} * 16)));
  } catch (const c10::OutOfMemoryError& e) {
    if (first_message.empty()) {
      first_message = e.what_without_backtrace();
      first_bytes = bytes;
    }
    return 0;
  }
}

void give(void*, uint64_t address) { caching::get()->raw_delete(reinterpret_cast<void*>(address)); }

void answer(const caching_stream& s) {
  bool expandable = std::strstr(s.conf, "expandable_segments:True") != nullptr;
  request_subject subject = {nullptr, expandable ? UINT64_C(1) << 44 : UINT64_C(1) << 40, ask, give};
  request_answer a = requests_play(&s.mix, &subject);
  auto stats = caching::getDeviceStats(0);
  std::printf("    {\"%s\", UINT64_C(0x%016llx), %u, %u, UINT64_C(%lld), UINT64_C(%lld), UINT64_C(%lld), %lld, %lld, UINT64_C(%llu), \"%s\"},\n",
              s.mix.name, static_cast<unsigned long long>(a.hash), a.served, a.failed,
              static_cast<long long>(stats.allocated_bytes[0].peak), static_cast<long long>(stats.reserved_bytes[0].peak),
              static_cast<long long>(stats.requested_bytes[0].peak), static_cast<long long>(stats.num_alloc_retries),
              static_cast<long long>(stats.num_device_alloc),
              static_cast<unsigned long long>(first_bytes), first_message.c_str());
}

double pair_ns(int batch) {
  constexpr int kPairs = 200000;
  static void* live[1000];
  auto* heap = caching::get();
  auto begin = std::chrono::steady_clock::now();
  for (int done = 0; done < kPairs; done += batch) {
    for (int k = 0; k < batch; k++) live[k] = heap->raw_alloc_with_stream(1024, nullptr);
    for (int k = 0; k < batch; k++) heap->raw_delete(live[k]);
  }
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / kPairs;
}

double training_ns() {
  static const request_mix training = {"training", 3, 200000, 3000, 1, REQUESTS_TRAINING, 0};
  request_subject subject = {nullptr, 0, ask, give};
  auto begin = std::chrono::steady_clock::now();
  requests_play(&training, &subject);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / training.operations;
}

}  // namespace

int main(int argc, char** argv) {
  bool times = argc > 1 && std::strcmp(argv[1], "--time") == 0;
  bool random = argc > 2 && std::strcmp(argv[1], "--random") == 0;
  size_t which = argc > 1 && !times && !random ? std::strtoul(argv[1], nullptr, 10) : 0;
  if (which >= sizeof caching_streams / sizeof *caching_streams) return 1;
  static caching_random drawn;
  if (random) caching_random_stream(std::strtoull(argv[2], nullptr, 10), &drawn);
  const caching_stream& s = random ? drawn.stream : caching_streams[which];
  uint64_t bytes = times ? UINT64_C(1) << 30 : s.mix.limit_bytes;
  setenv("FAKE_CUDA_BYTES", std::to_string(bytes).c_str(), 1);
  setenv("FAKE_CUDA_POLICY", std::to_string(times ? 0 : s.policy).c_str(), 1);
  setenv("PYTORCH_ALLOC_CONF", s.conf, 1);
  setenv("PYTORCH_CUDA_ALLOC_CONF", s.conf, 1);
  c10::cuda::detail::init_p2p_access_cache(1);
  caching::init(1);
  if (s.fraction < 1) caching::setMemoryFraction(s.fraction, 0);
  if (times) {
    for (int batch : {1, 100, 1000}) {
      for (int round = 0; round < 11; round++) std::printf("%d %.1f\n", batch, pair_ns(batch));
    }
    for (int round = 0; round < 11; round++) std::printf("training %.1f\n", training_ns());
    return 0;
  }
  answer(s);
  return 0;
}
