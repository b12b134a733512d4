// stream, write, latency, reuse, broadcast and panel with other parameters, a row a run:
//   nvcc -O3 -std=c++17 -arch=sm_90 memory.cu -o memory && ./memory time memory_rows.csv OUT.csv
//   ncu --clock-control none --metrics ... ./memory count memory_rows.csv none       (a launch a row; only reuse, broadcast and panel were counted)
#include "../h200/kernels.cu"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>
#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)
constexpr size_t kData = size_t(4) << 30, kFlush = size_t(256) << 20;
Rec* rec; std::vector<Rec> host(1 << 16);
uint4 *data; void* flushed; unsigned *order; unsigned* sink;
struct Row {
  std::map<std::string, std::string> cells;
  std::string text(const char* name) const { auto found = cells.find(name); return found == cells.end() ? "" : found->second; }
  double number(const char* name) const { return text(name).empty() ? 0 : atof(text(name).c_str()); }
};
std::vector<Row> read(const char* path) {
  std::ifstream file(path); std::string line, cell; std::vector<std::string> names; std::vector<Row> rows;
  getline(file, line); { std::stringstream s(line); while (getline(s, cell, ',')) names.push_back(cell); }
  while (getline(file, line)) { Row row; std::stringstream s(line); size_t i = 0; while (getline(s, cell, ',')) row.cells[names[i++]] = cell; rows.push_back(row); }
  return rows;
}
std::vector<unsigned> tiles(const std::string& name, unsigned m, unsigned n) {
  std::vector<unsigned> out;
  if (name == "row") for (unsigned i = 0; i < m * n; i++) out.push_back(i);
  else if (name == "col") for (unsigned j = 0; j < n; j++) for (unsigned i = 0; i < m; i++) out.push_back(i * n + j);
  else if (name.rfind("group", 0) == 0) {
    unsigned g = atoi(name.c_str() + 5);
    for (unsigned first = 0; first < m; first += g) for (unsigned j = 0; j < n; j++) for (unsigned i = first; i < std::min(first + g, m); i++) out.push_back(i * n + j);
  } else { fprintf(stderr, "order %s\n", name.c_str()); exit(1); }
  return out;
}
int main(int, char** v) {
  bool timed = !strcmp(v[1], "time");
  std::vector<Row> rows = read(v[2]);
  FILE* out = timed ? fopen(v[3], "w") : nullptr;
  CHECK(cudaMalloc(&data, kData)); CHECK(cudaMalloc(&flushed, kFlush)); CHECK(cudaMalloc(&order, 1 << 20)); CHECK(cudaMalloc(&sink, 256)); CHECK(cudaMalloc(&rec, sizeof(Rec) * host.size()));
  CHECK(cudaMemset(data, 1, kData)); CHECK(cudaMemset(rec, 0, sizeof(Rec) * host.size()));
  CHECK(cudaFuncSetAttribute(panel_read, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448));
  if (timed) fprintf(out, "run,blocks_per_sm,regs,span_ns,span_ns_again,cycles_per_load,cycles_per_load_again\n");
  for (const Row& row : rows) {
    std::string e = row.text("experiment"); unsigned grid = row.number("grid"), block = row.number("block"), smem = row.number("smem");
    if (e == "latency") {
      size_t lines = size_t(row.number("footprint_mb") * 8192); unsigned hops = unsigned(lines);
      std::vector<unsigned> next(lines * 32), way(lines);
      std::iota(way.begin(), way.end(), 0u); std::mt19937 random(1); std::shuffle(way.begin() + 1, way.end(), random);
      for (size_t i = 0; i < lines; i++) next[size_t(way[i]) * 32] = way[(i + 1) % lines] * 32;
      CHECK(cudaMemcpy(data, next.data(), next.size() * 4, cudaMemcpyHostToDevice));
      double found[2]; long long* cycles = (long long*)sink;
      for (int again = 0; again < 2; again++) {
        for (int i = 0; i < 2; i++) chase<<<1, 1>>>((unsigned*)data, hops, 0, cycles);
        CHECK(cudaDeviceSynchronize()); long long got; CHECK(cudaMemcpy(&got, cycles, 8, cudaMemcpyDeviceToHost)); found[again] = double(got) / hops;
      }
      if (timed) fprintf(out, "%s,1,0,0,0,%.3f,%.3f\n", row.text("run").c_str(), found[0], found[1]), fflush(out);
      continue;
    }
    const void* kernel = nullptr; unsigned kb = row.number("kb_per_block"); size_t vecs = size_t(kb) * 64; bool flush = true;
    unsigned footprint = unsigned(row.number("footprint_mb") * 1024 * 1024 / 16);
    std::vector<unsigned> list;
    if (e == "panel") { list = tiles(row.text("order"), row.number("tiles_m"), row.number("tiles_n")); CHECK(cudaMemcpy(order, list.data(), list.size() * 4, cudaMemcpyHostToDevice)); kernel = (void*)panel_read; }
    else if (e == "reuse") kernel = (void*)second::reuse_read;
    else if (e == "broadcast") kernel = (void*)second::broadcast_read;
    else if (e == "write") kernel = (void*)second::writer, flush = false;
    else kernel = (void*)stream_read, flush = false;
    auto launch = [&] {
      if (flush) CHECK(cudaMemset(flushed, 1, kFlush));
      if (e == "panel") {
        size_t a = size_t(row.number("a_bytes")) / 16, b = size_t(row.number("b_bytes")) / 16;
        uint4* B = data + (size_t)row.number("tiles_m") * size_t(row.number("ksteps")) * a;
        panel_read<<<grid, block, smem>>>(data, B, order, row.number("tiles_n"), row.number("ksteps"), a, b, sink, rec);
      } else if (e == "reuse") {
        unsigned chunk = row.number("chunk_kb") * 64;
        second::reuse_read<<<grid, block>>>(data, footprint / chunk, chunk, row.number("passes"), row.number("shift_chunks"), sink, rec);
      } else if (e == "broadcast") second::broadcast_read<<<grid, block>>>(data, footprint, u64(row.number("skew_bytes")) / 16, sink, rec);
      else if (e == "write") second::writer<<<grid, block>>>(data, vecs, rec);
      else stream_read<<<grid, block>>>(data, vecs, sink, rec);
      CHECK(cudaGetLastError());
    };
    if (!timed) { launch(); CHECK(cudaDeviceSynchronize()); continue; }
    long long span[2]; int per; cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, kernel)); CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per, kernel, block, smem));
    for (int again = 0; again < 2; again++) {
      for (int i = 0; i < 5; i++) launch();
      CHECK(cudaDeviceSynchronize()); CHECK(cudaMemcpy(host.data(), rec, grid * sizeof(Rec), cudaMemcpyDeviceToHost));
      u64 first = ~0ull, last = 0; for (unsigned b = 0; b < grid; b++) first = std::min(first, host[b].g0), last = std::max(last, host[b].g1);
      span[again] = (long long)(last - first);
    }
    fprintf(out, "%s,%d,%d,%lld,%lld,,\n", row.text("run").c_str(), per, attributes.numRegs, span[0], span[1]); fflush(out);
  }
  return 0;
}
