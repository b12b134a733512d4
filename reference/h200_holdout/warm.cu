// One wave of `panel` with parts of A or B in L2 before it begins: nvcc -O3 -std=c++17 -arch=sm_90 warm.cu -o warm && ./warm
#include "harness.h"
__global__ void warm(const uint4* p, const unsigned* chunks, unsigned n, unsigned* sink) {
  unsigned acc = 0, start = n * blockIdx.x / gridDim.x;
  for (unsigned c = 0; c < n; c++) { const uint4* q = p + size_t(chunks[(start + c) % n]) * 1024; for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) { uint4 v = __ldcg(q + i); acc ^= v.x ^ v.y; } }
  if (acc == 0xdeadbeef) *sink = acc;
}
int main() {
  uint4* data; void* flushed; unsigned *order, *sink, *list; Rec* rec;
  CHECK(cudaMalloc(&data, size_t(4) << 30)); CHECK(cudaMalloc(&flushed, size_t(256) << 20)); CHECK(cudaMalloc(&order, 1 << 20)); CHECK(cudaMalloc(&list, 1 << 20)); CHECK(cudaMalloc(&sink, 256)); CHECK(cudaMalloc(&rec, sizeof(Rec) * 5000));
  CHECK(cudaMemset(data, 1, size_t(4) << 30));
  CHECK(cudaFuncSetAttribute(panel_read, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxDynamicSharedMemory));
  int shapes[][2] = {{1, 1}, {1, 2}, {2, 2}, {8, 1}, {1, 8}, {4, 4}, {8, 8}, {8, 16}, {16, 8}, {4, 33}, {8, 33}, {16, 16}, {33, 8}};
  const char* names[] = {"none", "all", "half the rows", "half the steps", "half of each", "a third missing", "one row missing", "one row warm"};
  for (auto& s : shapes) {
    unsigned M = s[0], N = s[1], steps = 64;
    std::vector<unsigned> l; for (unsigned n = 0; n < N; n++) for (unsigned m = 0; m < M; m++) l.push_back(m * N + n);
    CHECK(cudaMemcpy(order, l.data(), l.size() * 4, cudaMemcpyHostToDevice));
    size_t a = size_t(M) * steps * 1024;
    for (int w = 0; w < 8; w++) {
      std::vector<unsigned> chunks;
      for (unsigned m = 0; m < M; m++) for (unsigned k = 0; k < steps; k++) {
        bool pick[] = {false, true, m < 4, k % 2 != 0, (m + k) % 2 != 0, (m + k) % 3 != 0, m != 0, m == 0};
        if (pick[w]) chunks.push_back(m * steps + k);
      }
      if (!chunks.empty()) CHECK(cudaMemcpy(list, chunks.data(), chunks.size() * 4, cudaMemcpyHostToDevice));
      std::vector<double> spans; double dur = 0;
      for (int rep = 0; rep < 5; rep++) {
        CHECK(cudaMemset(flushed, 1, size_t(256) << 20));
        for (int i = 0; i < 2; i++) if (!chunks.empty()) warm<<<264, 256>>>(data, list, chunks.size(), sink);
        panel_read<<<M * N, 256, 100000>>>(data, data + a, order, N, steps, 1024, 1024, sink, rec);
        CHECK(cudaDeviceSynchronize());
        std::vector<Rec> r(M * N); CHECK(cudaMemcpy(r.data(), rec, sizeof(Rec) * r.size(), cudaMemcpyDeviceToHost));
        u64 first = ~0ull, last = 0; double d = 0; for (auto& x : r) { first = std::min(first, x.g0); last = std::max(last, x.g1); d += x.c1 - x.c0; }
        spans.push_back((last - first) / 1e3); dur = d / r.size();
      }
      printf("%u %u %s: %.1f %.1f %.1f %.1f us, mean %.1f us\n", M, N, names[w], spans[1], spans[2], spans[3], spans[4], dur / 1980);
    }
  }
}
