// CTAs that come and go on few SMs: nvcc -O3 -std=c++17 -arch=sm_90 churn.cu -o churn && ./churn OUT
#include "harness.h"

__device__ unsigned free_sms[4];  // bits

// Keeps all SMs but the free ones, on which its blocks leave at once.
__global__ void keep(u64 ns) {
  unsigned s = smid();
  if (s < 128 && free_sms[s / 32] >> (s % 32) & 1) return;
  u64 end = gtime() + ns;
  while (gtime() < end) {}
}

// `spin` of ../h200/kernels.cu that notes in its tag when it came to its loop, and when it left it.
__global__ void noted(unsigned cycles, Rec* rec) {
  u64 c0 = clock64();
  u64 e = clock64(), t = e;
  while (t - c0 < cycles) t = clock64();
  __syncthreads();
  if (threadIdx.x == 0) {
    Rec r; r.g0 = c0; r.c0 = c0; r.smid = smid(); r.tag = ((unsigned)(e - c0) & 0xffff) | ((unsigned)(t - c0) << 16); r.c1 = clock64(); r.g1 = gtime();
    rec[blockIdx.x] = r;
  }
}

int main(int, char** argv) {
  FILE* out = fopen((std::string(argv[1]) + "/churn.csv").c_str(), "w");
  fprintf(out, "sms,block,smem,cycles,cta,smid,start,left,end\n");
  Log log(1000);
  cudaStream_t keeping, coming;
  CHECK(cudaStreamCreateWithFlags(&keeping, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&coming, cudaStreamNonBlocking));
  CHECK(cudaFuncSetAttribute(keep, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxDynamicSharedMemory));
  CHECK(cudaFuncSetAttribute(noted, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
  for (int sms : {1, 2}) {  // both SMs of a TPC, or one of them
    unsigned bits[4] = {sms == 1 ? 1u << 16 : 3u << 16};
    CHECK(cudaMemcpyToSymbol(free_sms, bits, sizeof bits));
    for (int block : {32, 64, 128}) for (int smem : {0, 9000, 20000}) for (unsigned cycles : {0u, 300u, 1000u}) {
      if (smem && cycles == 1000) continue;
      int grid = 400 * sms;
      for (int rep = 0; rep < 3; rep++) {
        keep<<<132, 32, kMaxDynamicSharedMemory, keeping>>>(3000000);
        double until = now_us() + 150;
        while (now_us() < until) {}
        noted<<<grid, block, smem, coming>>>(cycles, log.of(grid));
        CHECK(cudaStreamSynchronize(coming));
        if (cudaStreamQuery(keeping) != cudaErrorNotReady) throw std::runtime_error("the SMs were let go too early");
        CHECK(cudaDeviceSynchronize());
      }
      log.read(grid);
      std::vector<u64> first(132, ~0ull);
      for (const Rec& r : log.blocks) first[r.smid] = std::min(first[r.smid], r.c0);
      for (int i = 0; i < grid; i++) {
        const Rec& r = log.blocks[i];
        fprintf(out, "%d,%d,%d,%u,%d,%u,%llu,%u,%llu\n", sms, block, smem, cycles, i, r.smid, r.c0 - first[r.smid], r.tag >> 16, r.c1 - r.c0);
      }
    }
  }
  fclose(out);
}
