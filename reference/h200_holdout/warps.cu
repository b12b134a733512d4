// fma, mixed and smem_barrier with other parameters, a row a run: nvcc -O3 -std=c++17 -arch=sm_90 warps.cu -o warps && ./warps OUT
#include "../h200/kernels.cu"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>
#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)
Rec* rec; std::vector<Rec> host(132 * 64);
template <class F> void row(FILE* f, const char* head, unsigned grid, F launch) {
  double mean[2]; long long span[2];
  for (int again = 0; again < 2; again++) {
    for (int i = 0; i < 4; i++) { launch(); CHECK(cudaGetLastError()); }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(host.data(), rec, grid * sizeof(Rec), cudaMemcpyDeviceToHost));
    u64 first = ~0ull, last = 0; double sum = 0;
    for (unsigned b = 0; b < grid; b++) first = std::min(first, host[b].g0), last = std::max(last, host[b].g1), sum += double(host[b].c1 - host[b].c0);
    mean[again] = sum / grid; span[again] = (long long)(last - first);
  }
  fprintf(f, "%s,%.2f,%.2f,%lld,%lld\n", head, mean[0], mean[1], span[0], span[1]);
}
template <int ILP> void fma(FILE* f, float* sink) {
  for (unsigned block : {96u, 192u, 384u, 768u}) for (unsigned an : {1u, 2u, 4u, 8u}) {
    if (block * an > 2048) continue;
    unsigned per = 9600; char h[200];
    snprintf(h, 200, "fma,%u,%u,%d,%u,,,,", 132 * an, block, ILP, per);
    row(f, h, 132 * an, [&] { fma_chain<ILP><<<132 * an, block>>>(per / (16 * ILP), sink, rec); });
  }
}
int main(int, char** v) {
  char p[500]; snprintf(p, 500, "%s/runs.csv", v[1]); FILE* f = fopen(p, "w");
  fprintf(f, "experiment,grid,block,ilp,fma_per_thread,iters,fma_per_load,fma_per_iter,footprint_mb,mean_cycles,mean_cycles_again,span_ns,span_ns_again\n");
  float* sink; unsigned* buf; CHECK(cudaMalloc(&sink, 1024)); CHECK(cudaMalloc(&rec, sizeof(Rec) * 132 * 64)); CHECK(cudaMalloc(&buf, 1ull << 30)); CHECK(cudaMemset(buf, 0, 1ull << 30));
  fma<1>(f, sink); fma<2>(f, sink); fma<3>(f, sink); fma<4>(f, sink); fma<8>(f, sink);
  for (unsigned mb : {8u, 32u, 256u, 512u}) for (unsigned block : {64u, 192u, 512u, 1024u}) for (unsigned an : {1u, 2u, 3u}) for (unsigned comp : {0u, 16u, 48u, 120u, 400u}) {
    if (block * an > 2048) continue;
    unsigned iters = 120; char h[200];
    snprintf(h, 200, "mixed,%u,%u,,,%u,%u,,%u", 132 * an, block, iters, comp, mb);
    row(f, h, 132 * an, [&] { mixed<<<132 * an, block>>>(buf, mb * 8192u - 1, iters, comp, (unsigned*)sink, rec); });
  }
  for (unsigned block : {64u, 192u, 512u, 768u}) for (unsigned an : {1u, 2u, 4u}) for (unsigned comp : {0u, 16u, 40u, 128u, 300u}) {
    if (block * an > 2048) continue;
    unsigned iters = 200; char h[200];
    snprintf(h, 200, "smem_barrier,%u,%u,,,%u,,%u,", 132 * an, block, iters, comp);
    row(f, h, 132 * an, [&] { second::smem_barrier<<<132 * an, block>>>(iters, comp, sink, rec); });
  }
  fclose(f); return 0;
}
