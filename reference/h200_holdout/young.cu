// What holds up CTAs that come last to a crowded SM, while older ones end: nvcc -O3 -std=c++17 -arch=sm_90 young.cu -o young && ./young OUT
// The first 3,000 of 4,224 one-warp CTAs wait and end in different ways; the others note the clock along their way to the loop.
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <vector>
typedef unsigned long long u64;
#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)
__device__ __forceinline__ unsigned smid() { unsigned s; asm volatile("mov.u32 %0, %smid;" : "=r"(s)); return s; }
__device__ __forceinline__ u64 gtime() { u64 t; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); return t; }
struct Log { unsigned t[10]; unsigned smid, readings; };
struct Pad { unsigned v[100]; };
struct Rec { u64 g0, g1, c0, c1; unsigned smid, tag; };

// What an old CTA does behind its wait, bits of END: 1 barrier, 2 smid, 4 globaltimer, 8 ctaid, 16 one 8-byte store, 32 four more, 64 globaltimer at its start. LOOP 0 polls, 1 sleeps.
template <int END, int LOOP> __global__ void spin(unsigned cycles, Log* log, Rec* rec, unsigned first_logged, unsigned zero, unsigned magic, Pad pad) {
  u64 z = clock64();
  __shared__ unsigned shared[32];
  if (blockIdx.x < first_logged) {
    u64 c0 = z;
    u64 g0 = 0;
    if ((END & 64) && threadIdx.x == 0) g0 = gtime();
    if (LOOP == 0) while (clock64() - (long long)c0 < cycles) {}
    else while (clock64() - (long long)c0 < cycles) __nanosleep(40);
    if (END & 1) __syncthreads();
    if (threadIdx.x == 0) {
      unsigned s = 0; u64 g1 = 0;
      if (END & 2) s = smid();
      u64 c1 = clock64();
      if (END & 4) g1 = gtime();
      u64* p = (u64*)&rec[blockIdx.x];
      if (END & 8) asm volatile("{.reg .u32 r; mov.u32 r, %ctaid.x; mad.wide.u32 %0, r, 40, %1;}" : "=l"(p) : "l"(rec));
      if (END & 16) asm volatile("st.global.u64 [%0], %1;" :: "l"(p), "l"(c0 + s));
      if (END & 32) {
        asm volatile("st.global.u64 [%0+8], %1;" :: "l"(p), "l"(g1));
        asm volatile("st.global.u64 [%0+16], %1;" :: "l"(p), "l"(c1));
        asm volatile("st.global.u64 [%0+24], %1;" :: "l"(p), "l"(g0));
        asm volatile("st.global.u64 [%0+32], %1;" :: "l"(p), "l"((u64)s));
      }
      if (!(END & 16) && s + g1 + (u64)p == 12345) rec[0].tag = 1;
    }
    return;
  }
  u64 t0 = z, t1 = clock64();
  unsigned a = (unsigned)t1;
#pragma unroll
  for (int i = 0; i < 8; i++) asm volatile("xor.b32 %0, %0, %1; add.u32 %0, %0, 1;" : "+r"(a) : "r"(zero));
  if (a == magic) return;
  u64 t2 = clock64();
  unsigned tid; asm volatile("mov.u32 %0, %laneid;" : "=r"(tid) :: "memory");
  if (tid == magic) return;
  u64 t3 = clock64();
  unsigned far = pad.v[90];
  if (far == magic) return;
  u64 t4 = clock64();
  u64 g = gtime();
  if ((unsigned)g == magic) return;
  u64 t5 = clock64();
  __syncthreads();
  u64 t6 = clock64();
  shared[threadIdx.x] = a;
  if (*(volatile unsigned*)&shared[threadIdx.x ^ 1] == magic) return;
  u64 t7 = clock64();
  unsigned n = 0;
  while (clock64() - (long long)t0 < cycles) n++;
  u64 t8 = clock64();
  __syncthreads();
  u64 t9 = clock64();
  if (threadIdx.x == 0) log[blockIdx.x] = {{(unsigned)t0, (unsigned)t1, (unsigned)t2, (unsigned)t3, (unsigned)t4, (unsigned)t5, (unsigned)t6, (unsigned)t7, (unsigned)t8, (unsigned)t9}, smid(), n};
}
FILE* out; Log* log_; Rec* rec_;
template <int END, int LOOP> void measure(unsigned cycles, int grid = 4224, unsigned from = 3000) {
  for (int rep = 0; rep < 5; rep++) {
    CHECK(cudaMemset(log_, 0, sizeof(Log) * grid));
    CHECK(cudaDeviceSynchronize());
    spin<END, LOOP><<<grid, 32>>>(cycles, log_, rec_, from, 0, 0xfffffff1, Pad{});
    CHECK(cudaDeviceSynchronize());
    if (rep < 3) continue;
    std::vector<Log> l(grid);
    CHECK(cudaMemcpy(l.data(), log_, sizeof(Log) * grid, cudaMemcpyDeviceToHost));
    for (int i = from; i < grid; i++) {
      fprintf(out, "%d,%d,%u,%d,%d,%u,%u,%u", END, LOOP, cycles, rep, i, l[i].smid, l[i].readings, l[i].t[0]);
      for (int k = 1; k < 10; k++) fprintf(out, ",%u", l[i].t[k] - l[i].t[0]);
      fprintf(out, "\n");
    }
  }
}
template <int END> void both() { measure<END, 0>(500); measure<END, 1>(500); measure<END, 0>(2000); }
int main(int, char** argv) {
  char path[4096]; snprintf(path, sizeof path, "%s/young.csv", argv[1]); out = fopen(path, "w");
  fprintf(out, "end,loop,cycles,rep,cta,smid,readings,t0,t1,t2,t3,t4,t5,t6,t7,t8,t9\n");
  CHECK(cudaMalloc(&log_, sizeof(Log) * 9000)); CHECK(cudaMalloc(&rec_, sizeof(Rec) * 9000));
  both<0>(); both<1>(); both<2>(); both<4>(); both<8>(); both<16>(); both<48>(); both<64>(); both<3>(); both<50>(); both<57>(); both<63>(); both<127>();
  fclose(out); return 0;
}
