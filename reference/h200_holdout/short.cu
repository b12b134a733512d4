// Short one-warp CTAs that fill the machine: nvcc -O3 -std=c++17 -arch=sm_90 short.cu -o short && ./short OUT
#include "harness.h"

// `spin` of ../h200/kernels.cu that notes in its tag when it came to its loop, and when it left it.
__global__ void noted(const unsigned* cycles, unsigned uniform, Rec* rec, unsigned tag) {
  u64 g0 = 0, c0 = clock64();
  if (threadIdx.x == 0) g0 = gtime();
  unsigned n = cycles ? cycles[blockIdx.x] : uniform;
  u64 e = clock64(), t = e;
  while (t - c0 < n) t = clock64();
  __syncthreads();
  if (rec && threadIdx.x == 0) {
    Rec r; r.g0 = g0; r.c0 = c0; r.smid = smid(); r.tag = ((unsigned)(e - c0) & 0xffff) | ((unsigned)(t - c0) << 16); r.c1 = clock64(); r.g1 = gtime();
    rec[blockIdx.x] = r;
  }
}
int main(int, char** argv) {
  FILE* out = fopen((std::string(argv[1]) + "/short.csv").c_str(), "w");
  fprintf(out, "kind,grid,cycles,cta,smid,start_ns,end_ns,start,entered,left,end\n");
  struct Run { int grid; unsigned cycles; };
  const Run runs[] = {{3084, 300}, {4224, 500}, {4229, 500}, {4647, 500}, {4224, 2000}, {4229, 2000}, {4647, 2000}, {4224, 800}};
  Log log(5000);
  for (int kind = 0; kind < 2; kind++) for (const Run& run : runs) {
    for (int rep = 0; rep < 4; rep++) {
      if (kind == 0) spin<<<run.grid, 32>>>(nullptr, run.cycles, log.of(run.grid), 0);
      else noted<<<run.grid, 32>>>(nullptr, run.cycles, log.of(run.grid), 0);
      CHECK(cudaGetLastError());
      CHECK(cudaDeviceSynchronize());
    }
    log.read(run.grid);
    std::vector<u64> first(1024, ~0ull);
    u64 begin = ~0ull;
    for (const Rec& r : log.blocks) first[r.smid] = std::min(first[r.smid], r.c0), begin = std::min(begin, r.g0);
    for (int i = 0; i < run.grid; i++) {
      const Rec& r = log.blocks[i];
      fprintf(out, "%d,%d,%u,%d,%u,%llu,%llu,%llu,", kind, run.grid, run.cycles, i, r.smid, r.g0 - begin, r.g1 - begin, r.c0 - first[r.smid]);
      if (kind) fprintf(out, "%u,%u,", r.tag & 0xffff, r.tag >> 16);
      else fprintf(out, ",,");
      fprintf(out, "%llu\n", r.c1 - r.c0);
    }
  }
  fclose(out);
}
