// How an SM takes CTAs out and in: nvcc -O3 -std=c++17 -arch=sm_90 turns.cu -o turns && ./turns OUT
// The first CTAs of a full machine end at set times and write nothing; those that follow note their first instruction.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>
typedef unsigned long long u64;
#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)
__device__ __forceinline__ unsigned smid() { unsigned s; asm volatile("mov.u32 %0, %smid;" : "=r"(s)); return s; }
__device__ __forceinline__ void until(u64 t) {
  while ((long long)(t - clock64()) > 3000) __nanosleep(200);
  while ((long long)(t - clock64()) > 0) {}
}

constexpr int kSms = 132, kSlots = 32, kLong = 500000;  // cycles: CTAs that are not to end
struct Start { u64 clock; unsigned smid, tag; };
struct Plan { unsigned char ends[kSms]; };  // which SMs' CTAs end

__device__ void note(Start* log, unsigned wave, u64 clock) {
  if (threadIdx.x == 0) log[blockIdx.x - wave] = {clock, smid(), 1};
  while (clock64() - clock < 20000) __nanosleep(200);
}

// The first `count` CTAs of each chosen SM end `apart` cycles one after the other, from a multiple of 2^17 on its clock.
__global__ void at_set_times(Start* log, Plan plan, int count, int apart, unsigned wave, unsigned* ranks) {
  u64 clock = clock64();
  if (blockIdx.x >= wave) return note(log, wave, clock);
  __shared__ unsigned rank;
  if (threadIdx.x == 0) rank = atomicAdd(&ranks[smid()], 1);
  __syncthreads();
  u64 first = ((clock + 65536) >> 17 << 17) + 131072;
  until(plan.ends[smid()] && rank < count ? first + (u64)apart * rank : first + kLong);
}

// All CTAs of the chosen SMs end 6,000 cycles after they began.
__global__ void as_they_came(Start* log, Plan plan, unsigned wave, u64* began) {
  u64 clock = clock64();
  if (blockIdx.x >= wave) return note(log, wave, clock);
  if (threadIdx.x == 0) atomicMin(&began[smid()], clock);
  until(clock + (plan.ends[smid()] ? 6000 : kLong));
}

// While `count` CTAs of one SM end at once, another one of it reads a register over and over: what a reading takes.
struct Reading { int at, cycles; };
constexpr int kReadings = 120;
template <int WHAT> __global__ void reads(Reading* log, int count, unsigned* ranks) {
  __shared__ unsigned rank;
  __shared__ Reading readings[kReadings];
  u64 clock = clock64();
  if (threadIdx.x == 0) rank = atomicAdd(&ranks[smid()], 1);
  __syncthreads();
  u64 first = ((clock + 65536) >> 17 << 17) + 131072;
  if (smid() != 2 || (int)rank < count) return until(smid() == 2 ? first : first + kLong);
  if ((int)rank > count) return until(first + kLong);
  until(first - 400);
  for (int i = 0; i < kReadings; i++) {
    u64 before = clock64();
    unsigned value;
    if (WHAT == 0) asm volatile("mov.u32 %0, %smid;" : "=r"(value));
    if (WHAT == 1) asm volatile("mov.u32 %0, %ctaid.x;" : "=r"(value));
    if (WHAT == 2) asm volatile("mov.u32 %0, %laneid;" : "=r"(value));
    if (WHAT == 3) asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(value) : "r"((unsigned)__cvta_generic_to_shared(&rank)));
    if (WHAT == 4) { asm volatile("bar.sync 1, 32;" ::: "memory"); value = 0; }
    asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"((unsigned)__cvta_generic_to_shared(&readings[i].cycles)), "r"(value) : "memory");
    readings[i] = {(int)(before - first), (int)(clock64() - before)};
    while (clock64() - before < 30) {}
  }
  if (threadIdx.x == 0) for (int i = 0; i < kReadings; i++) log[i] = readings[i];
}

// The GPCs of this card, as their clocks tell.
std::vector<std::vector<int>> gpcs(const std::vector<u64>& began) {
  std::vector<int> order(kSms);
  for (int i = 0; i < kSms; i++) order[i] = i;
  std::sort(order.begin(), order.end(), [&](int a, int b) { return began[a] < began[b]; });
  std::vector<std::vector<int>> groups;
  for (int i = 0; i < kSms; i++) {
    if (!i || began[order[i]] - began[order[i - 1]] > 2000) groups.emplace_back();
    groups.back().push_back(order[i]);
  }
  for (auto& group : groups) std::sort(group.begin(), group.end());
  std::sort(groups.begin(), groups.end());
  return groups;
}

int main(int, char** argv) {
  char path[4096];
  snprintf(path, sizeof path, "%s/turns.csv", argv[1]);
  FILE* out = fopen(path, "w");
  fprintf(out, "kind,block,smem,blocks_per_sm,sms,ending,apart,more,cta,smid,start\n");
  snprintf(path, sizeof path, "%s/readings.csv", argv[1]);
  FILE* read = fopen(path, "w");
  fprintf(read, "what,ending,at,cycles\n");
  Start* log; unsigned* ranks; u64* began; Reading* readings;
  CHECK(cudaMalloc(&log, sizeof(Start) * kSms * kSlots)); CHECK(cudaMalloc(&ranks, 4 * kSms)); CHECK(cudaMalloc(&began, 8 * kSms));
  CHECK(cudaMalloc(&readings, sizeof(Reading) * kReadings));
  CHECK(cudaFuncSetAttribute(as_they_came, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024));

  auto prepare = [&] {
    CHECK(cudaMemset(log, 0, sizeof(Start) * kSms * kSlots)); CHECK(cudaMemset(ranks, 0, 4 * kSms));
    CHECK(cudaMemset(began, 0xff, 8 * kSms)); CHECK(cudaDeviceSynchronize());
  };
  auto starts = [&](int count) {
    CHECK(cudaGetLastError()); CHECK(cudaDeviceSynchronize());
    std::vector<Start> host(count);
    CHECK(cudaMemcpy(host.data(), log, sizeof(Start) * count, cudaMemcpyDeviceToHost));
    return host;
  };
  // On one SM, or on both of its TPC: `more` CTAs an SM follow.
  auto set_times = [&](int block, int sms, int count, int apart, int more) {
    int resident; CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, at_set_times, block, 0));
    if (count > resident || more > count) return;
    Plan plan = {}; for (int i = 0; i < sms; i++) plan.ends[2 + i] = 1;
    int wave = resident * kSms, extra = more * sms;
    for (int repeat = 0; repeat < 4; repeat++) {
      prepare();
      at_set_times<<<wave + extra, block>>>(log, plan, count, apart, wave, ranks);
      auto host = starts(extra);
      if (repeat < 2) continue;
      for (int i = 0; i < extra; i++) if (host[i].smid - 2u < (unsigned)sms)
        fprintf(out, "0,%d,0,%d,%d,%d,%d,%d,%d,%u,%llu\n", block, resident, sms, count, apart, more, i, host[i].smid, host[i].clock & 131071);
    }
  };
  std::vector<u64> clocks(kSms);
  auto came = [&](int block, int smem, const std::vector<int>& sms, const std::vector<std::vector<int>>& groups, bool keep) {
    int resident; CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, as_they_came, block, smem));
    Plan plan = {}; for (int sm : sms) plan.ends[sm] = 1;
    int wave = resident * kSms, extra = (int)sms.size() * resident;
    std::vector<Start> host;
    for (int repeat = 0; repeat < 3; repeat++) {
      prepare();
      as_they_came<<<wave + extra, block, smem>>>(log, plan, wave, began);
      host = starts(extra);
    }
    CHECK(cudaMemcpy(clocks.data(), began, 8 * kSms, cudaMemcpyDeviceToHost));
    if (!keep) return;
    std::vector<u64> base(kSms, ~0ull);
    for (auto& group : groups) {
      u64 least = ~0ull; for (int sm : group) least = std::min(least, clocks[sm]);
      for (int sm : group) base[sm] = least;
    }
    for (int i = 0; i < extra; i++) {
      long long at = (long long)(host[i].clock - base[host[i].smid]) - 6000;
      if (at < 100000) fprintf(out, "1,%d,%d,%d,%zu,%d,0,%d,%d,%u,%lld\n", block, smem, resident, sms.size(), resident, resident, i, host[i].smid, at);
    }
  };

  for (int sms : {1, 2}) {
    for (int count = 2; count <= 32; count += 2) for (int more : {1, 8, count}) set_times(32, sms, count, 0, more);
    for (int apart : {6, 12, 18, 21, 24, 27, 30, 36, 40, 44, 48, 52, 60, 100, 200}) for (int count : {8, 16, 32}) set_times(32, sms, count, apart, count);
    for (int block : {64, 128, 256, 512}) for (int count : {1, 2, 4, 8, 16, 32}) for (int apart : {0, 24, 60}) set_times(block, sms, count, apart, count);
  }
  came(32, 0, {}, {}, false);
  auto groups = gpcs(clocks);
  for (auto& group : groups) fprintf(stderr, "%zu ", group.size());
  for (auto [block, smem] : std::vector<std::pair<int, int>>{{32, 0}, {32, 8200}, {32, 13000}, {32, 17500}, {32, 27000}, {32, 54000}, {64, 0}, {128, 0}, {256, 0}}) {
    for (size_t many : {1, 2, 3, 4, 6, 8}) {
      std::vector<int> sms;
      for (size_t g = many == 8 ? 0 : 1; g < many + (many == 8 ? 0 : 1) && g < groups.size(); g++) sms.insert(sms.end(), groups[g].begin(), groups[g].end());
      came(block, smem, sms, groups, true);
    }
    std::vector<int> even; for (int sm = 0; sm < kSms; sm += 2) even.push_back(sm);
    came(block, smem, even, groups, true);
  }
  auto reading = [&](auto kernel, int what, int count) {
    for (int repeat = 0; repeat < 3; repeat++) {
      prepare();
      kernel<<<kSms * kSlots, 32>>>(readings, count, ranks);
      CHECK(cudaGetLastError()); CHECK(cudaDeviceSynchronize());
    }
    Reading host[kReadings]; CHECK(cudaMemcpy(host, readings, sizeof host, cudaMemcpyDeviceToHost));
    for (Reading r : host) fprintf(read, "%d,%d,%d,%d\n", what, count, r.at, r.cycles);
  };
  for (int count : {1, 8, 16, 31}) {
    reading(reads<0>, 0, count); reading(reads<1>, 1, count); reading(reads<2>, 2, count); reading(reads<3>, 3, count); reading(reads<4>, 4, count);
  }
  fclose(out); fclose(read);
  return 0;
}
