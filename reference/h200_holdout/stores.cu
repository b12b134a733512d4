//   nvcc -O3 -std=c++17 -arch=sm_90 stores.cu -o stores && ./stores OUT
//   ncu --clock-control none --cache-control none --metrics dram__bytes_read.sum,dram__bytes_write.sum -k 'regex:stream_read|writer' ./stores OUT count
// What a store leaves in L2, what a memset leaves, and how often a chase misses by footprint and pass.
#include "../h200/kernels.cu"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>
#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)
constexpr size_t MB = 1 << 20;
char *data, *flush; unsigned* out; Rec* rec; unsigned* sink;
__global__ void sweep(const uint4* p, size_t n, unsigned* sink) { unsigned a = 0; for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) a ^= __ldcg(p + i).x; if (a == 0xdeadbeef) *sink = a; }
__global__ void fill(uint4* p, size_t n) { for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) p[i] = make_uint4(1, 2, 3, 4); }
// kind 0: read by one thread; 1: one thread stores 4 bytes; 2: a warp stores the line; 3: atomic add
__global__ void touch(char* p, unsigned lines, unsigned stride, unsigned sm, int kind, unsigned* sink) {
  if (smid() != sm) return;
  unsigned a = 0;
  for (unsigned i = 0; i < lines; i++) {
    unsigned* q = (unsigned*)(p + (size_t)i * stride);
    if (kind == 0) { if (threadIdx.x == 0) a += __ldcg(q); }
    else if (kind == 1) { if (threadIdx.x == 0) __stcg(q, 7u); }
    else if (kind == 2) __stcg(q + threadIdx.x, 7u);
    else if (threadIdx.x == 0) atomicAdd(q, 1u);
  }
  __threadfence();
  if (a == 0xdeadbeef) *sink = a;
}
__global__ void probe(char* p, unsigned lines, unsigned stride, unsigned sm, unsigned* out) {
  if (smid() != sm || threadIdx.x) return;
  unsigned z = 0;
  for (unsigned i = 0; i < lines; i++) {
    long long t = clock64();
    unsigned v = __ldcg((unsigned*)(p + (size_t)i * stride) + (z & 1));
    z = (v == 0x12345678);
    t = clock64() + z - t;
    out[i] = (unsigned)t;
  }
}
int main(int, char** v) {
  char name[500];
  CHECK(cudaMalloc(&data, 1024 * MB)); CHECK(cudaMalloc(&flush, 512 * MB)); CHECK(cudaMalloc(&out, 64 * MB)); CHECK(cudaMalloc(&rec, sizeof(Rec) * 65536)); CHECK(cudaMalloc(&sink, 256));
  CHECK(cudaMemset(data, 0, 1024 * MB));
  if (v[2]) {  // under the profiler: what a read kernel writes back after a memset, a kernel's stores, reads
    for (int how = 0; how < 3; how++) for (size_t mb : {8, 16, 24, 32, 40, 48, 64, 96}) {
      if (how == 0) CHECK(cudaMemset(flush, 1, 256 * MB));
      if (how == 1) fill<<<1056, 256>>>((uint4*)flush, 256 * MB / 16);
      if (how == 2) sweep<<<1056, 256>>>((uint4*)flush, 256 * MB / 16, sink);
      stream_read<<<mb * 64, 256>>>((uint4*)data, 1024, sink, rec);
      CHECK(cudaDeviceSynchronize());
    }
    for (size_t mb : {8, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64}) {  // written, then read again
      sweep<<<1056, 256>>>((uint4*)flush, 256 * MB / 16, sink);
      second::writer<<<mb * 64, 256>>>((uint4*)data, 1024, rec);
      stream_read<<<mb * 64, 256>>>((uint4*)data, 1024, sink, rec);
      CHECK(cudaDeviceSynchronize());
    }
    return 0;
  }
  snprintf(name, 500, "%s/copies.csv", v[1]); FILE* f = fopen(name, "w"); fprintf(f, "kind,writer,reader,again,near,far,more,mean\n");
  std::vector<unsigned> got(1 << 16); const unsigned lines = 2048, stride = 4224;
  for (int kind = 0; kind < 4; kind++) for (unsigned writer : {0u, 2u, 17u, 4u}) for (unsigned reader : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 8u, 10u, 12u, 14u, 16u, 17u}) {
    sweep<<<1056, 256>>>((uint4*)flush, 256 * MB / 16, sink);
    touch<<<132, 32>>>(data, lines, stride, writer, kind, sink);
    for (int again = 0; again < 2; again++) {
      probe<<<132, 32>>>(data, lines, stride, reader, out); CHECK(cudaDeviceSynchronize());
      CHECK(cudaMemcpy(got.data(), out, lines * 4, cudaMemcpyDeviceToHost));
      int n = 0, fa = 0, m = 0; double s = 0; for (unsigned i = 64; i < lines; i++) { unsigned x = got[i]; s += x; if (x < 390) n++; else if (x < 560) fa++; else m++; }
      fprintf(f, "%d,%u,%u,%d,%d,%d,%d,%.1f\n", kind, writer, reader, again, n, fa, m, s / (lines - 64));
    }
  }
  fclose(f);
  snprintf(name, 500, "%s/after.csv", v[1]); f = fopen(name, "w"); fprintf(f, "how,wait_us,mb,span_ns,mean_cycles,rep\n");
  std::vector<Rec> host(65536);
  for (int rep = 0; rep < 2; rep++) for (int how = 0; how < 4; how++) for (unsigned wait : {0u, 20u, 200u, 5000u}) for (size_t mb : {4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 96, 128}) {
    unsigned grid = mb * 64;
    if (how == 0) CHECK(cudaMemset(flush, 1, 256 * MB));
    if (how == 1) fill<<<1056, 256>>>((uint4*)flush, 256 * MB / 16);
    if (how == 2) sweep<<<1056, 256>>>((uint4*)flush, 256 * MB / 16, sink);
    if (how == 3) { sweep<<<1056, 256>>>((uint4*)flush, 256 * MB / 16, sink); stream_read<<<grid, 256>>>((uint4*)(data + 512 * MB), 1024, sink, rec); }
    if (wait) spin<<<1, 32>>>(nullptr, wait * 1980u, nullptr, 0);
    stream_read<<<grid, 256>>>((uint4*)data, 1024, sink, rec);
    CHECK(cudaDeviceSynchronize()); CHECK(cudaMemcpy(host.data(), rec, grid * sizeof(Rec), cudaMemcpyDeviceToHost));
    u64 a = ~0ull, b = 0; double s = 0; for (unsigned i = 0; i < grid; i++) a = std::min(a, host[i].g0), b = std::max(b, host[i].g1), s += host[i].c1 - host[i].c0;
    fprintf(f, "%d,%u,%zu,%llu,%.0f,%d\n", how, wait, mb, b - a, s / grid, rep);
  }
  fclose(f);
  snprintf(name, 500, "%s/chase.csv", v[1]); f = fopen(name, "w"); fprintf(f, "offset_mb,mb,pass,cycles\n");
  for (size_t offset : {0, 256}) for (size_t mb : {20, 22, 24, 26, 27, 28, 29, 30, 31, 32, 34, 36, 44, 50, 52, 54, 56, 58, 60, 62, 64}) {
    size_t n = mb * 8192; std::vector<unsigned> next(n * 32), way(n);
    std::iota(way.begin(), way.end(), 0u); std::mt19937 random{unsigned(mb)}; std::shuffle(way.begin() + 1, way.end(), random);
    for (size_t i = 0; i < n; i++) next[size_t(way[i]) * 32] = way[(i + 1) % n] * 32;
    CHECK(cudaMemcpy(data + offset * MB, next.data(), next.size() * 4, cudaMemcpyHostToDevice));
    sweep<<<1056, 256>>>((uint4*)flush, 256 * MB / 16, sink);
    for (int pass = 0; pass < 8; pass++) {
      chase<<<1, 1>>>((unsigned*)(data + offset * MB), unsigned(n), 0, (long long*)sink); CHECK(cudaDeviceSynchronize());
      long long t; CHECK(cudaMemcpy(&t, sink, 8, cudaMemcpyDeviceToHost)); fprintf(f, "%zu,%zu,%d,%.2f\n", offset, mb, pass, double(t) / n);
    }
    fflush(f);
  }
  fclose(f);
  return 0;
}
