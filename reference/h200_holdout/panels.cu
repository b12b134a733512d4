// When each CTA of `panel` begins and ends, wave by wave, and where: nvcc -O3 -std=c++17 -arch=sm_90 panels.cu -o panels && ./panels OUT
#include "../h200/kernels.cu"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)
__global__ void panel_steps(const uint4* __restrict__ A, const uint4* __restrict__ B, const unsigned* order, unsigned tiles_n,
                           unsigned ksteps, unsigned vecs_a, unsigned vecs_b, unsigned* sink, Rec* rec, u64* steps) {
  u64 g0 = 0, c0 = clock64();
  if (threadIdx.x == 0) g0 = gtime();
  unsigned t = order[blockIdx.x], m = t / tiles_n, n = t % tiles_n;
  unsigned acc = 0;
  for (unsigned k = 0; k < ksteps; k++) {
    const uint4* pa = A + ((u64)m * ksteps + k) * vecs_a;
    const uint4* pb = B + ((u64)n * ksteps + k) * vecs_b;
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < vecs_a; i += blockDim.x) { uint4 v = __ldcg(pa + i); acc ^= v.x ^ v.y ^ v.z ^ v.w; }
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < vecs_b; i += blockDim.x) { uint4 v = __ldcg(pb + i); acc ^= v.x ^ v.y ^ v.z ^ v.w; }
    __syncthreads();
    if (threadIdx.x == 0 && steps) steps[blockIdx.x * ksteps + k] = gtime();
  }
  if (acc == 0xdeadbeef) *sink = acc;
  if (rec && threadIdx.x == 0) {
    Rec r; r.g0 = g0; r.c0 = c0; r.smid = smid(); r.tag = t; r.c1 = clock64(); r.g1 = gtime();
    rec[blockIdx.x] = r;
  }
}
std::vector<unsigned> tiles(std::string name, unsigned M, unsigned N) {
  std::vector<unsigned> l; unsigned g = name == "row" ? 1 : atoi(name.c_str() + 5);
  if (name == "row") { for (unsigned i = 0; i < M * N; i++) l.push_back(i); return l; }
  for (unsigned m0 = 0; m0 < M; m0 += g) for (unsigned n = 0; n < N; n++) for (unsigned m = m0; m < m0 + g && m < M; m++) l.push_back(m * N + n);
  return l;
}
int main(int, char** argv) {
  std::string folder = argv[1];
  uint4* data; void* flushed; unsigned *order, *sink; Rec* rec; u64* steps;
  CHECK(cudaMalloc(&data, size_t(4) << 30)); CHECK(cudaMalloc(&flushed, size_t(256) << 20)); CHECK(cudaMalloc(&order, 1 << 20)); CHECK(cudaMalloc(&sink, 256)); CHECK(cudaMalloc(&rec, sizeof(Rec) * 5000)); CHECK(cudaMalloc(&steps, 8 * 64 * 5000));
  CHECK(cudaMemset(data, 1, size_t(4) << 30));
  CHECK(cudaFuncSetAttribute(panel_read, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448));
  CHECK(cudaFuncSetAttribute(panel_steps, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448));
  FILE* out = fopen((folder + "/blocks.csv").c_str(), "w"); fprintf(out, "order,steps,rep,cta,smid,start,end\n");
  FILE* st = fopen((folder + "/steps.bin").c_str(), "wb");
  for (std::string name : {"row", "group4", "group8", "group16"}) {
    auto l = tiles(name, 64, 64); CHECK(cudaMemcpy(order, l.data(), l.size() * 4, cudaMemcpyHostToDevice));
    uint4* B = data + size_t(64) * 64 * 1024;
    for (int kind = 0; kind < 2; kind++) for (int rep = 0; rep < 4; rep++) {
      CHECK(cudaMemset(flushed, 1, size_t(256) << 20));
      if (kind == 0) panel_read<<<4096, 256, 100000>>>(data, B, order, 64, 64, 1024, 1024, sink, rec);
      else panel_steps<<<4096, 256, 100000>>>(data, B, order, 64, 64, 1024, 1024, sink, rec, steps);
      CHECK(cudaDeviceSynchronize());
      std::vector<Rec> r(4096); CHECK(cudaMemcpy(r.data(), rec, sizeof(Rec) * 4096, cudaMemcpyDeviceToHost));
      u64 first = ~0ull, last = 0; for (auto& x : r) { if (x.g0 < first) first = x.g0; if (x.g1 > last) last = x.g1; }
      printf("%s %d %d span %llu\n", name.c_str(), kind, rep, last - first);
      if (rep < 2) continue;
      for (int i = 0; i < 4096; i++) fprintf(out, "%s,%d,%d,%d,%u,%llu,%llu\n", name.c_str(), kind, rep, i, r[i].smid, r[i].g0 - first, r[i].g1 - first);
      if (kind == 1 && rep == 3) { std::vector<u64> s(4096 * 64); CHECK(cudaMemcpy(s.data(), steps, 8 * s.size(), cudaMemcpyDeviceToHost)); std::vector<unsigned> d(s.size()); for (size_t i = 0; i < s.size(); i++) d[i] = unsigned(s[i] - first); fwrite(d.data(), 4, d.size(), st); }
    }
  }
  fclose(out); fclose(st);
}
