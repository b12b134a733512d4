// Waiting loops of known instructions: how often each warp of an SM reads the clock, by its age; and where blocks lose
// time that come late to a crowded SM.
//
//     nvcc -O3 -arch=sm_90 -o loops loops.cu && ./loops OUT
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                              \
  do {                                                                           \
    cudaError_t status_ = (call);                                                \
    if (status_ != cudaSuccess) {                                                \
      fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status_));           \
      exit(1);                                                                   \
    }                                                                            \
  } while (0)

typedef unsigned long long u64;
constexpr int kSms = 132;

__device__ __forceinline__ u64 gtime() { u64 t; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); return t; }
__device__ __forceinline__ unsigned smid() { unsigned s; asm volatile("mov.u32 %0, %smid;" : "=r"(s)); return s; }
__device__ __forceinline__ unsigned warpid() { unsigned s; asm volatile("mov.u32 %0, %warpid;" : "=r"(s)); return s; }

// ---- loops ----
struct Loop { u64 first, last, entered; unsigned smid, readings; };

// What stands in the loop beside CS2R, IADD3, IMAD.X, two ISETP and BRA: 0 MOV and a uniform add, 1 two FFMA and an add,
// 2 four FFMA and an add, 3 two LOP3 and an add, 4 four LOP3 and an add, 5 eight FFMA and an add, 6 one FFMA and an add,
// 7 one LOP3 and an add. 8 reads 32 bits: MOV, CS2R.32, an add, a uniform add, ISETP, BRA.
template <int KIND> __global__ void __launch_bounds__(1024) loop(unsigned cycles, Loop* log) {
  u64 first = clock64();
  unsigned n = 0;
  float a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
  unsigned i = threadIdx.x, j = i + 1, k = i + 2, l = i + 3;
  u64 entered = clock64();
  if (KIND == 8) {
    unsigned since = clock();
    while ((unsigned)clock() - since < cycles) n++;
  } else while (clock64() - (long long)first < cycles) {
    n++;
    if (KIND == 1 || KIND == 2) asm volatile("fma.rn.f32 %0,%0,%0,%0; fma.rn.f32 %1,%1,%1,%1;" : "+f"(a), "+f"(b));
    if (KIND == 2) asm volatile("fma.rn.f32 %0,%0,%0,%0; fma.rn.f32 %1,%1,%1,%1;" : "+f"(c), "+f"(d));
    if (KIND == 3 || KIND == 4) asm volatile("xor.b32 %0,%0,%2; xor.b32 %1,%1,%3;" : "+r"(i), "+r"(j) : "r"(n), "r"(cycles));
    if (KIND == 4) asm volatile("xor.b32 %0,%0,%2; xor.b32 %1,%1,%3;" : "+r"(k), "+r"(l) : "r"(n), "r"(cycles));
    if (KIND == 5) asm volatile("fma.rn.f32 %0,%0,%0,%0; fma.rn.f32 %1,%1,%1,%1; fma.rn.f32 %2,%2,%2,%2; fma.rn.f32 %3,%3,%3,%3;"
                                "fma.rn.f32 %0,%0,%0,%0; fma.rn.f32 %1,%1,%1,%1; fma.rn.f32 %2,%2,%2,%2; fma.rn.f32 %3,%3,%3,%3;"
                                : "+f"(a), "+f"(b), "+f"(c), "+f"(d));
    if (KIND == 6) asm volatile("fma.rn.f32 %0,%0,%0,%0;" : "+f"(a));
    if (KIND == 7) asm volatile("xor.b32 %0,%0,%1;" : "+r"(i) : "r"(n));
  }
  u64 last = clock64();
  if ((threadIdx.x & 31) == 0) log[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = {first, last, entered, smid(), n};
  if (a + b + c + d == 12345.678f || i + j * 5 + k * 7 + l == 77123456) log[0].readings = 0;
}

FILE* loops;
Loop* loop_log;

template <int KIND> void measure_loop(int block, int blocks) {
  const unsigned cycles = 8000;
  const int warps = kSms * blocks * block / 32, per_block = block / 32;
  for (int i = 0; i < 4; i++) {
    CHECK(cudaMemset(loop_log, 0, sizeof(Loop) * warps));
    loop<KIND><<<kSms * blocks, block>>>(cycles, loop_log);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
  }
  std::vector<Loop> log(warps);
  CHECK(cudaMemcpy(log.data(), loop_log, sizeof(Loop) * warps, cudaMemcpyDeviceToHost));
  for (unsigned sm : {9u, 50u}) {
    u64 from = ~0ull;
    for (const Loop& w : log) if (w.smid == sm && w.first < from) from = w.first;
    for (int w = 0; w < warps; w++) if (log[w].smid == sm)
      fprintf(loops, "%d,%d,%d,%u,%u,%d,%d,%llu,%llu,%llu,%u\n", KIND, block, blocks, cycles, sm, w / per_block, w % per_block,
              log[w].first - from, log[w].entered - from, log[w].last - from, log[w].readings);
  }
}

template <int KIND> void measure_loops() {
  for (int blocks : {1, 2, 4, 8, 12, 16, 20, 24, 28, 32}) measure_loop<KIND>(32, blocks);
  for (int blocks : {1, 2, 3, 4, 6, 8, 10, 12, 16}) measure_loop<KIND>(128, blocks);
  for (int blocks : {1, 2, 4, 8}) measure_loop<KIND>(256, blocks);
  for (int blocks : {1, 2}) measure_loop<KIND>(1024, blocks);
}

// ---- late blocks ----
struct Late { u64 at[6], from, until; unsigned smid, warp, readings, tag; };

// `spin` of ../h200/kernels.cu that reads the clock along the way: at its start, behind the global timer, before the loop,
// behind it, behind the barrier, and where the record is written. 0 as it is, 2 without the barrier, 3 asleep.
template <int KIND> __global__ void spin(const unsigned* list, unsigned uniform, Late* log, unsigned tag) {
  u64 from = 0, start = clock64();
  if (threadIdx.x == 0) from = gtime();
  u64 timed = clock64();
  unsigned cycles = list ? list[blockIdx.x] : uniform, readings = 0;
  u64 entered = clock64(), now = entered;
  if (KIND == 3) while (now - start + 150 < cycles) { __nanosleep(20); now = clock64(); readings++; }
  while (now - start < cycles) { now = clock64(); readings++; }
  u64 left = clock64();
  if (KIND != 2) __syncthreads();
  u64 met = clock64();
  if (log && threadIdx.x == 0) {
    Late r = {{start, timed, entered, left, met, 0}, from, 0, smid(), warpid(), readings, tag};
    r.at[5] = clock64();
    r.until = gtime();
    log[blockIdx.x] = r;
  }
}

FILE* late;
Late* late_log;

template <int KIND> void measure_late(int grid, int block, unsigned cycles) {
  for (int i = 0; i < 5; i++) {
    CHECK(cudaMemset(late_log, 0, sizeof(Late) * grid));
    CHECK(cudaDeviceSynchronize());
    spin<KIND><<<grid, block>>>(nullptr, cycles, late_log, 0);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
  }
  std::vector<Late> log(grid);
  CHECK(cudaMemcpy(log.data(), late_log, sizeof(Late) * grid, cudaMemcpyDeviceToHost));
  std::vector<u64> first(kSms, ~0ull);
  for (const Late& r : log) if (r.at[0] < first[r.smid]) first[r.smid] = r.at[0];
  for (int i = 0; i < grid; i++) {
    const Late& r = log[i];
    fprintf(late, "%d,%d,%d,%u,%d,%u,%u,%u,%llu", KIND, grid, block, cycles, i, r.smid, r.warp, r.readings, r.at[0] - first[r.smid]);
    for (int k = 1; k < 6; k++) fprintf(late, ",%llu", r.at[k] - r.at[0]);
    fprintf(late, "\n");
  }
}

template <int KIND> void measure_lates() {
  measure_late<KIND>(4224, 32, 500);
  measure_late<KIND>(4224, 32, 2000);
  measure_late<KIND>(2112, 128, 500);
}

int main(int, char** argv) {
  char path[4096];
  snprintf(path, sizeof path, "%s/loops.csv", argv[1]);
  loops = fopen(path, "w");
  fprintf(loops, "kind,block,blocks,cycles,smid,cta,warp,first,entered,last,readings\n");
  CHECK(cudaMalloc(&loop_log, sizeof(Loop) * kSms * 64));
  measure_loops<0>(); measure_loops<1>(); measure_loops<2>(); measure_loops<3>(); measure_loops<4>();
  measure_loops<5>(); measure_loops<6>(); measure_loops<7>(); measure_loops<8>();
  fclose(loops);
  snprintf(path, sizeof path, "%s/late.csv", argv[1]);
  late = fopen(path, "w");
  fprintf(late, "kind,grid,block,cycles,cta,smid,warp,readings,start,timed,entered,left,met,end\n");
  CHECK(cudaMalloc(&late_log, sizeof(Late) * 9000));
  measure_lates<0>(); measure_lates<2>(); measure_lates<3>();
  fclose(late);
  return 0;
}
