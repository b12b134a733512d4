// What the dispatcher does when the CTAs of a full machine end: nvcc -O3 -arch=sm_90 refills.cu -o refills && ./refills OUT
// Logs every block, by what holds residency and by how the warps of a block leave. A row a block: run, block, smid, first and
// last clock, first %globaltimer.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>
typedef unsigned long long u64;
struct Rec { u64 g0, g1, c0, c1; unsigned smid, tag; };
__device__ __forceinline__ u64 gtime() { u64 t; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); return t; }
__device__ __forceinline__ unsigned smid() { unsigned s; asm volatile("mov.u32 %0, %smid;" : "=r"(s)); return s; }

enum Mode { PLAIN, TOGETHER, EARLY, SLEEP, SECOND_ONLY, SOME_SMS };

// PLAIN: as the measured kernel `spin`: warps other than the first leave at the barrier, the first one writes the record.
// TOGETHER: a barrier behind the record, so that all leave at once. EARLY: the others leave 400 cycles before the first.
// SLEEP: waits without reading the clock over and over. SECOND_ONLY: blocks of the first wave write nothing.
// SOME_SMS: only every `arg`th SM's blocks wait `cycles`, the others 8 times as long.
template <int MODE> __global__ void wait_and_log(unsigned cycles, Rec* rec, unsigned arg) {
  u64 g0 = 0, c0 = clock64();
  if (threadIdx.x == 0) g0 = gtime();
  unsigned n = cycles;
  if (MODE == SOME_SMS && smid() % arg) n = 8 * cycles;
  if (MODE == EARLY && threadIdx.x < 32) n += 400;
  if (MODE == SLEEP) {
    while (clock64() - (long long)c0 + 300 < n) __nanosleep(40);
    while (clock64() - (long long)c0 < n) {}
  } else {
    while (clock64() - (long long)c0 < n) {}
  }
  if (MODE != EARLY) __syncthreads();
  if (threadIdx.x == 0 && (MODE != SECOND_ONLY || blockIdx.x >= arg)) {
    Rec r; r.g0 = g0; r.c0 = c0; r.smid = smid(); r.tag = 0; r.c1 = clock64(); r.g1 = gtime();
    rec[blockIdx.x] = r;
  }
  if (MODE == TOGETHER) __syncthreads();
}

static FILE* runs; static FILE* blocks; static int run_id = 0;
static Rec* rec; static const int MOST = 40000;
#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)

template <int MODE> void measure(const char* what, int block, int smem, double waves, unsigned cycles, int cluster = 0, unsigned arg = 0) {
  auto kernel = wait_and_log<MODE>;
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024));
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  int resident = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, block, smem));
  cudaLaunchConfig_t config = {}; cudaLaunchAttribute attribute;
  config.blockDim = dim3(block); config.dynamicSmemBytes = smem;
  int capacity = resident * 132;
  if (cluster) {
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = cluster; attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.attrs = &attribute; config.numAttrs = 1;
    config.gridDim = dim3(cluster * 10000);
    int clusters = 0;
    CHECK(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
    capacity = clusters * cluster;
  }
  int grid = (int)(capacity * waves); if (cluster) grid = grid / cluster * cluster;
  if (MODE == SOME_SMS) grid = capacity + resident * (131 / (int)arg + 1);
  if (MODE == SECOND_ONLY) arg = capacity;
  if (grid > MOST) exit(2);
  config.gridDim = dim3(grid);
  std::vector<Rec> host(grid);
  cudaEvent_t a, b; cudaEventCreate(&a); cudaEventCreate(&b); float ms = 0;
  for (int i = 0; i < 4; i++) {
    CHECK(cudaMemset(rec, 0, sizeof(Rec) * MOST)); CHECK(cudaDeviceSynchronize());
    cudaEventRecord(a);
    CHECK(cudaLaunchKernelEx(&config, kernel, cycles, rec, arg));
    cudaEventRecord(b);
    CHECK(cudaDeviceSynchronize()); cudaEventElapsedTime(&ms, a, b);
  }
  CHECK(cudaMemcpy(host.data(), rec, sizeof(Rec) * grid, cudaMemcpyDeviceToHost));
  u64 first = ~0ull, last = 0, c = ~0ull;
  for (auto& r : host) if (r.g0) { if (r.g0 < first) first = r.g0; if (r.g1 > last) last = r.g1; if (r.c0 < c) c = r.c0; }
  fprintf(runs, "%d,%s,%d,%d,%d,%d,%d,%u,%u,%d,%llu,%.3f\n", run_id, what, MODE, block, smem, resident, cluster, cycles, arg, grid, last - first, ms * 1e3);
  for (int i = 0; i < grid; i++) { Rec& r = host[i]; if (r.g0) fprintf(blocks, "%d,%d,%u,%llu,%llu,%llu\n", run_id, i, r.smid, r.c0 - c, r.c1 - c, r.g0 - first); }
  run_id++;
}

int main(int, char** argv) {
  char path[4096];
  snprintf(path, sizeof path, "%s/runs.csv", argv[1]); runs = fopen(path, "w");
  snprintf(path, sizeof path, "%s/blocks.csv", argv[1]); blocks = fopen(path, "w");
  fprintf(runs, "run,what,mode,block,smem,blocks_per_sm,cluster,cycles,arg,grid,span_ns,event_us\n");
  fprintf(blocks, "run,cta,smid,start_clock,end_clock,start_ns\n");
  CHECK(cudaMalloc(&rec, sizeof(Rec) * MOST));
  // What holds residency: 32 threads, by shared memory, up to the 32 slots.
  for (int smem : {27000, 13000, 8200, 7000, 6400, 6200, 0}) measure<PLAIN>("slots", 32, smem, 2, 2000);
  for (int smem : {7000, 6200, 0}) measure<PLAIN>("slots_short", 32, smem, 1.1, 500);
  measure<SLEEP>("slots_sleep", 32, 0, 2, 2000);
  measure<SECOND_ONLY>("slots_no_stores", 32, 0, 2, 2000);
  // How the warps of a block leave, where threads hold residency, and where shared memory does.
  for (int block : {64, 128, 256, 512}) {
    measure<PLAIN>("leave", block, 0, 2, 2000);
    measure<TOGETHER>("leave", block, 0, 2, 2000);
    measure<EARLY>("leave", block, 0, 2, 2000);
  }
  measure<SLEEP>("leave_sleep", 128, 0, 2, 2000);
  measure<PLAIN>("leave_smem", 128, 14200, 2, 2000);
  measure<EARLY>("leave_smem", 128, 14200, 2, 2000);
  measure<PLAIN>("leave_smem", 256, 31000, 2, 2000);
  measure<EARLY>("leave_smem", 256, 31000, 2, 2000);
  measure<TOGETHER>("leave_smem", 256, 31000, 2, 2000);
  // The latency of a burst: by blocks an SM, and by how many SMs take part.
  for (int smem : {200000, 100000, 70000, 40000}) measure<PLAIN>("burst", 128, smem, 2, 2000);
  measure<PLAIN>("burst", 32, 200000, 2, 2000);
  for (unsigned every : {2, 4, 16, 66}) measure<SOME_SMS>("some", 128, 40000, 2, 2000, 0, every);
  for (unsigned every : {4, 16}) measure<SOME_SMS>("some", 32, 0, 2, 2000, 0, every);
  for (unsigned every : {4, 16}) measure<SOME_SMS>("some", 128, 0, 2, 2000, 0, every);
  // Refilled clusters.
  for (int cluster : {1, 2, 4, 8, 16}) {
    measure<PLAIN>("cluster", 256, 150000, 3, 2500, cluster);
    measure<PLAIN>("cluster", 128, 50000, 3, 2500, cluster);
    measure<PLAIN>("cluster", 128, 0, 3, 2500, cluster);
  }
  measure<PLAIN>("cluster", 256, 0, 3, 2500, 1);
  measure<PLAIN>("cluster", 256, 0, 3, 2500, 2);
  measure<PLAIN>("cluster", 32, 0, 3, 2500, 2);
  measure<TOGETHER>("cluster", 256, 0, 3, 2500, 1);
  fclose(runs); fclose(blocks);
  return 0;
}
