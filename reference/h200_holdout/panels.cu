// When each CTA of `panel` begins and ends, wave by wave, and where: nvcc -O3 -std=c++17 -arch=sm_90 panels.cu -o panels && ./panels OUT
#include "harness.h"
std::vector<unsigned> tiles(std::string name, unsigned M, unsigned N) {
  std::vector<unsigned> l; unsigned g = name == "row" ? 1 : atoi(name.c_str() + 5);
  if (name == "row") { for (unsigned i = 0; i < M * N; i++) l.push_back(i); return l; }
  for (unsigned m0 = 0; m0 < M; m0 += g) for (unsigned n = 0; n < N; n++) for (unsigned m = m0; m < m0 + g && m < M; m++) l.push_back(m * N + n);
  return l;
}
int main(int, char** argv) {
  std::string folder = argv[1];
  uint4* data; void* flushed; unsigned *order, *sink; Rec* rec;
  CHECK(cudaMalloc(&data, size_t(4) << 30)); CHECK(cudaMalloc(&flushed, size_t(256) << 20)); CHECK(cudaMalloc(&order, 1 << 20)); CHECK(cudaMalloc(&sink, 256)); CHECK(cudaMalloc(&rec, sizeof(Rec) * 5000));
  CHECK(cudaMemset(data, 1, size_t(4) << 30));
  CHECK(cudaFuncSetAttribute(panel_read, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxDynamicSharedMemory));
  FILE* out = fopen((folder + "/blocks.csv").c_str(), "w"); fprintf(out, "order,rep,cta,smid,start,end\n");
  for (std::string name : {"row", "group4", "group8", "group16"}) {
    auto l = tiles(name, 64, 64); CHECK(cudaMemcpy(order, l.data(), l.size() * 4, cudaMemcpyHostToDevice));
    uint4* B = data + size_t(64) * 64 * 1024;
    for (int rep = 0; rep < 4; rep++) {
      CHECK(cudaMemset(flushed, 1, size_t(256) << 20));
      panel_read<<<4096, 256, 100000>>>(data, B, order, 64, 64, 1024, 1024, sink, rec);
      CHECK(cudaDeviceSynchronize());
      std::vector<Rec> r(4096); CHECK(cudaMemcpy(r.data(), rec, sizeof(Rec) * 4096, cudaMemcpyDeviceToHost));
      u64 first = ~0ull, last = 0; for (auto& x : r) { if (x.g0 < first) first = x.g0; if (x.g1 > last) last = x.g1; }
      printf("%s %d span %llu\n", name.c_str(), rep, last - first);
      if (rep < 2) continue;
      for (int i = 0; i < 4096; i++) fprintf(out, "%s,%d,%d,%u,%llu,%llu\n", name.c_str(), rep, i, r[i].smid, r[i].g0 - first, r[i].g1 - first);
    }
  }
  fclose(out);
}
