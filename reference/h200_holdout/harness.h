// What measure.cu and settle.cu share: checked calls, timing, the logs' reading and writing.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "../h200/kernels.cu"

#define CHECK(call)                                                                             \
  do {                                                                                          \
    cudaError_t status_ = (call);                                                               \
    if (status_ != cudaSuccess)                                                                 \
      throw std::runtime_error(std::string(#call) + ": " + cudaGetErrorString(status_));        \
  } while (0)

constexpr int kMaxDynamicSharedMemory = 232448;  // bytes: all that one block of this device can have

inline double now_us() {
  using namespace std::chrono;
  return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// The device's log, read back. Its first use fixes the largest size.
struct Log {
  Rec* device = nullptr;
  size_t room = 0;
  std::vector<Rec> blocks;

  explicit Log(size_t size) : room(size) {
    CHECK(cudaMalloc(&device, size * sizeof(Rec)));
    CHECK(cudaMemset(device, 0, size * sizeof(Rec)));
  }
  Rec* of(size_t size) const {
    if (size > room) throw std::runtime_error("more blocks than the log has room for");
    return device;
  }
  void read(size_t size) {
    blocks.resize(size);
    CHECK(cudaMemcpy(blocks.data(), device, size * sizeof(Rec), cudaMemcpyDeviceToHost));
  }
  double span_ns() const {
    u64 first = ~0ull, last = 0;
    for (const Rec& r : blocks) first = std::min(first, r.g0), last = std::max(last, r.g1);
    return blocks.empty() ? 0 : double(last - first);
  }
  int sms() const {
    std::vector<unsigned> seen;
    for (const Rec& r : blocks) seen.push_back(r.smid);
    std::sort(seen.begin(), seen.end());
    return int(std::unique(seen.begin(), seen.end()) - seen.begin());
  }
  void write(FILE* file, int run) const {
    u64 first = ~0ull;
    for (const Rec& r : blocks) first = std::min(first, r.g0);
    for (size_t i = 0; i < blocks.size(); i++) {
      const Rec& r = blocks[i];
      fprintf(file, "%d,%zu,%u,%u,%llu,%llu,%llu,%llu\n", run, i, r.smid, r.tag, r.g0 - first, r.g1 - first, r.c0, r.c1);
    }
    fflush(file);
  }
};

struct Events {
  cudaEvent_t start, stop;
  Events() {
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
  }
  ~Events() {
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
  }
  double us() const {
    float ms = 0;
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    return ms * 1e3;
  }
};

// Keeps SMs full until %globaltimer has run on by `ns`, touching no memory meanwhile.
__global__ void hold(u64 ns) {
  u64 until = gtime() + ns;
  while (gtime() < until) __nanosleep(500);
}

// Brings the clocks up, and gives the SM clock in MHz.
inline double warm_up(Log& log) {
  for (int i = 0; i < 200; i++) spin<<<1056, 128>>>(nullptr, 4000000, log.of(1056), 0);
  CHECK(cudaGetLastError());
  log.read(1056);
  const Rec& r = log.blocks[0];
  return double(r.c1 - r.c0) / double(r.g1 - r.g0) * 1e3;
}
