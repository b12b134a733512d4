// Short one-warp CTAs that fill the machine, by what they do at their end: nvcc -O3 -std=c++17 -arch=sm_90 ends.cu -o ends && ./ends OUT
#include "harness.h"

// STORES of BYTES (the first of 8, or of 16), with the global timer (TIMER) and the SM's number (NUMBER) read before.
template <int STORES, int BYTES, int TIMER, int NUMBER> __global__ void ending(const unsigned* cycles, unsigned uniform, char* log) {
  u64 g0 = 0, c0 = clock64();
  if (threadIdx.x == 0) g0 = gtime();
  unsigned n = cycles ? cycles[blockIdx.x] : uniform;
  u64 e = clock64(), t = e;
  while (t - c0 < n) t = clock64();
  __syncthreads();
  if (log && threadIdx.x == 0) {
    unsigned s = NUMBER ? smid() : 0;
    u64 c1 = clock64(), g1 = TIMER ? gtime() : g0;
    char* p = log + blockIdx.x * (BYTES == 16 ? 48 : 40);
    u64 v[5] = {((e - c0) & 0xffff) | ((t - c0) & 0xffff) << 16 | ((c1 - c0) & 0xffff) << 32 | (u64)s << 48, g1, c0, c1, g0};
#pragma unroll
    for (int i = 0; i < STORES; i++) {
      if (BYTES == 16) asm volatile("st.global.v2.u64 [%0], {%1, %2};" :: "l"(p + 16 * i), "l"(v[2 * i % 5]), "l"(v[(2 * i + 1) % 5]));
      else if (BYTES == 8 || i == 0) asm volatile("st.global.u64 [%0], %1;" :: "l"(p + 8 * i), "l"(v[i]));
      else asm volatile("st.global.u32 [%0], %1;" :: "l"(p + 8 * i), "r"((unsigned)v[i]));
    }
  }
}
FILE* out;
char* log_;
template <int STORES, int BYTES, int TIMER, int NUMBER> void measure() {
  constexpr int kGrid = 4224, kWords = BYTES == 16 ? 6 : 5;
  std::vector<u64> read(kGrid * kWords);
  for (unsigned cycles : {500u, 2000u}) {
    for (int rep = 0; rep < 5; rep++) {
      ending<STORES, BYTES, TIMER, NUMBER><<<kGrid, 32>>>(nullptr, cycles, log_);
      CHECK(cudaGetLastError());
      CHECK(cudaDeviceSynchronize());
    }
    CHECK(cudaMemcpy(read.data(), log_, read.size() * sizeof(u64), cudaMemcpyDeviceToHost));
    for (int i = 2112; i < kGrid; i++) {
      u64 v = read[i * kWords];
      fprintf(out, "%u,%d,%d,%d,%d,%d,%u,%u,%u\n", cycles, STORES, BYTES, TIMER, NUMBER, i, unsigned(v & 0xffff), unsigned(v >> 16 & 0xffff), unsigned(v >> 32 & 0xffff));
    }
  }
}
int main(int, char** argv) {
  out = fopen((std::string(argv[1]) + "/ends.csv").c_str(), "w");
  fprintf(out, "cycles,stores,bytes,timer,number,cta,entered,left,end\n");
  CHECK(cudaMalloc(&log_, 48 * 4224));
  measure<5, 8, 1, 1>(); measure<5, 8, 0, 1>(); measure<5, 8, 1, 0>(); measure<5, 8, 0, 0>(); measure<4, 8, 1, 1>(); measure<3, 8, 1, 1>(); measure<2, 8, 1, 1>();
  measure<1, 8, 1, 1>(); measure<1, 8, 0, 0>(); measure<5, 4, 1, 1>(); measure<5, 4, 0, 0>(); measure<3, 16, 1, 1>(); measure<2, 16, 1, 1>();
  fclose(out);
}
