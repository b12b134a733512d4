// Experiments that each answer one question about the device; each writes one CSV file:
//   nvcc -O3 -arch=sm_90 settle.cu -o settle && ./settle OUT [NAME...]
// An experiment that fails is reported, and the others still run.
#include <cstring>
#include <functional>

#include "harness.h"

struct Lab {
  std::string folder;
  Log log{size_t(1) << 20};
  cudaStream_t main, other[256];
  FILE* file = nullptr;

  explicit Lab(std::string out) : folder(std::move(out)) {
    CHECK(cudaStreamCreateWithFlags(&main, cudaStreamNonBlocking));
    for (auto& stream : other) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaFuncSetAttribute(::spin, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxDynamicSharedMemory));
    CHECK(cudaFuncSetAttribute(::spin, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  }
  void open(const char* name, const char* columns) {
    file = fopen((folder + "/" + name + ".csv").c_str(), "w");
    if (!file) throw std::runtime_error("cannot write to " + folder);
    fprintf(file, "%s\n", columns);
  }
  void close() { if (file) fclose(file); file = nullptr; }
};

// ---- halves: how long an atomic takes from each SM to each of 64 lines. Atomics are done where a line is at home, so that an
// SM's times split by the half of L2 in which the line lives, with nothing to flush.
__global__ void atomics_from(unsigned target, unsigned* buffer, unsigned lines, unsigned zero, float* out) {
  if (smid() != target || threadIdx.x) return;
  for (unsigned line = 0; line < lines; line++) {
    unsigned* word = buffer + size_t(line) * 1056;
    unsigned value = atomicAdd(word, 0u);
    long long start = clock64();
    for (int i = 0; i < 16; i++) value = atomicAdd(word, value & zero);  // each waits for the one before
    out[line] = float(clock64() - start + (value & zero)) / 16;
  }
}
void halves(Lab& lab) {
  constexpr unsigned kLines = 64;
  unsigned* buffer;
  float* out;
  CHECK(cudaMalloc(&buffer, kLines * 4224));
  CHECK(cudaMemset(buffer, 0, kLines * 4224));
  CHECK(cudaMalloc(&out, kLines * 4));
  CHECK(cudaFuncSetAttribute(atomics_from, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxDynamicSharedMemory));
  lab.open("halves", "smid,line,cycles");
  for (unsigned sm = 0; sm < 132; sm++) {
    float times[kLines];
    atomics_from<<<132, 32, kMaxDynamicSharedMemory>>>(sm, buffer, kLines, 0, out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(times, out, sizeof times, cudaMemcpyDeviceToHost));
    for (unsigned line = 0; line < kLines; line++) fprintf(lab.file, "%u,%u,%.1f\n", sm, line, times[line]);
  }
}

// ---- gpcs: which SMs share a cluster, and where each block of it starts.
void clustered(Lab& lab, unsigned size, unsigned grid, unsigned smem) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = size;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = 128;
  config.dynamicSmemBytes = smem;
  config.stream = lab.main;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, ::spin, (const unsigned*)nullptr, 10000u, lab.log.of(grid), 0u));
  CHECK(cudaStreamSynchronize(lab.main));
  lab.log.read(grid);
}
void gpcs(Lab& lab) {
  lab.open("gpcs", "launch,size,cta,smid,start_ns,start_clock");
  int launch = 0;
  auto record = [&](unsigned size, unsigned grid, unsigned smem) {
    clustered(lab, size, grid, smem);
    for (size_t i = 0; i < grid; i++) {
      const Rec& r = lab.log.blocks[i];
      fprintf(lab.file, "%d,%u,%zu,%u,%llu,%llu\n", launch, size, i, r.smid, r.g0, r.c0);
    }
    launch++;
  };
  for (int i = 0; i < 10; i++) record(16, 928, 0), record(8, 992, 0), record(2, 132, 200000), record(4, 120, 200000);
}

// ---- order: where the dispatcher begins, launch after launch.
void order(Lab& lab) {
  lab.open("order", "launch,grid,smem,cta,smid,start_clock,end_clock");
  unsigned grids[] = {132, 132, 132, 1, 132, 2, 132, 50, 132, 17, 132, 133, 132, 264, 132, 200, 132, 1000, 132, 131};
  int launch = 0;
  for (unsigned smem : {200000u, 0u}) {
    for (int turn = 0; turn < 2; turn++) {
      for (unsigned grid : grids) {
        ::spin<<<grid, 128, smem, lab.main>>>(nullptr, 6000, lab.log.of(grid), 0);
        CHECK(cudaGetLastError());
        CHECK(cudaStreamSynchronize(lab.main));
        lab.log.read(grid);
        for (size_t i = 0; i < grid; i++) {
          const Rec& r = lab.log.blocks[i];
          fprintf(lab.file, "%d,%u,%u,%zu,%u,%llu,%llu\n", launch, grid, smem, i, r.smid, r.c0, r.c1);
        }
        launch++;
      }
    }
  }
}

// ---- carveout: on how many SMs blocks of kernel B run beside one of kernel A, by both kernels' shared memory and preference.
template <int> __global__ void spin_of(unsigned n, Rec* rec, unsigned tag) {
  BEGIN while (clock64() - (long long)c0 < n) {}
  END(tag)
}
template <class Kernel> void prefer(Kernel kernel, int percent) {
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, percent));
}
void carveout(Lab& lab) {
  auto a = spin_of<0>, b = spin_of<1>;
  CHECK(cudaFuncSetAttribute(a, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxDynamicSharedMemory));
  CHECK(cudaFuncSetAttribute(b, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxDynamicSharedMemory));
  lab.open("carveout", "a_block,a_grid,a_smem,a_percent,b_block,b_smem,b_percent,beside,beside_sms,wait_ns,after_ns");
  auto one = [&](unsigned a_block, unsigned a_grid, unsigned a_smem, int a_percent, unsigned b_block, unsigned b_smem, int b_percent) {
    constexpr unsigned kB = 264;
    prefer(a, a_percent);
    prefer(b, b_percent);
    Rec* rec = lab.log.of(a_grid + kB);
    for (int i = 0; i < 2; i++) {
      a<<<a_grid, a_block, a_smem, lab.main>>>(160000, rec, 1);
      CHECK(cudaGetLastError());
      double until = now_us() + 15;
      while (now_us() < until) {}
      b<<<kB, b_block, b_smem, lab.other[0]>>>(4000, rec + a_grid, 2);
      CHECK(cudaGetLastError());
      CHECK(cudaDeviceSynchronize());
    }
    lab.log.read(a_grid + kB);
    const std::vector<Rec>& all = lab.log.blocks;
    std::vector<u64> a_end(132, 0);
    u64 a_first = ~0ull, a_last = 0, b_first = ~0ull;
    for (unsigned i = 0; i < a_grid; i++) {
      a_end[all[i].smid] = std::max(a_end[all[i].smid], all[i].g1);
      a_first = std::min(a_first, all[i].g0), a_last = std::max(a_last, all[i].g1);
    }
    int beside = 0;
    std::vector<bool> sms(132, false);
    for (unsigned i = a_grid; i < a_grid + kB; i++) {
      b_first = std::min(b_first, all[i].g0);
      if (all[i].g0 < a_end[all[i].smid]) beside++, sms[all[i].smid] = true;
    }
    fprintf(lab.file, "%u,%u,%u,%d,%u,%u,%d,%d,%d,%lld,%lld\n", a_block, a_grid, a_smem, a_percent, b_block, b_smem, b_percent, beside,
            int(std::count(sms.begin(), sms.end(), true)), (long long)(b_first - a_first), (long long)(b_first - a_last));
  };
  for (unsigned a_smem : {0u, 4000u, 20000u, 50000u, 100000u, 150000u, 200000u})
    for (int a_percent : {-1, 0, 30, 60, 100})
      for (unsigned b_smem : {0u, 2000u, 10000u, 20000u, 40000u, 70000u})
        for (int b_percent : {-1, 0, 50, 100}) one(512, 132, a_smem, a_percent, 64, b_smem, b_percent);
  for (unsigned b_block : {32u, 128u, 256u, 512u})
    for (unsigned b_smem : {0u, 2000u, 10000u, 20000u}) one(512, 132, 0, -1, b_block, b_smem, -1), one(128, 132, 30000, -1, b_block, b_smem, -1);
}

// ---- carveswitch: what it costs a chain that its kernels' shared memory differs.
void carveswitch(Lab& lab) {
  auto a = spin_of<2>, b = spin_of<3>;
  CHECK(cudaFuncSetAttribute(a, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxDynamicSharedMemory));
  CHECK(cudaFuncSetAttribute(b, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxDynamicSharedMemory));
  lab.open("carveswitch", "grid,a_smem,b_smem,graph,period_ns");
  for (unsigned grid : {1u, 132u})
    for (unsigned a_smem : {0u, 20000u, 100000u})
      for (unsigned b_smem : {0u, 2000u, 20000u, 100000u, 200000u})
        for (int graphed : {0, 1}) {
          constexpr unsigned kKernels = 100;
          Rec* rec = lab.log.of(kKernels * grid);
          cudaGraph_t graph;
          cudaGraphExec_t ready;
          auto issue = [&] {
            for (unsigned k = 0; k < kKernels; k++) (k % 2 ? b : a)<<<grid, 128, k % 2 ? b_smem : a_smem, lab.main>>>(10000, rec + k * grid, k);
          };
          if (graphed) {
            CHECK(cudaStreamBeginCapture(lab.main, cudaStreamCaptureModeGlobal));
            issue();
            CHECK(cudaStreamEndCapture(lab.main, &graph));
            CHECK(cudaGraphInstantiate(&ready, graph, 0));
          }
          for (int i = 0; i < 3; i++) {
            if (graphed) CHECK(cudaGraphLaunch(ready, lab.main)); else issue();
            CHECK(cudaStreamSynchronize(lab.main));
          }
          lab.log.read(kKernels * grid);
          u64 from = ~0ull, to = ~0ull;
          for (unsigned i = 0; i < grid; i++) {
            from = std::min(from, lab.log.blocks[20 * grid + i].g0);
            to = std::min(to, lab.log.blocks[90 * grid + i].g0);
          }
          fprintf(lab.file, "%u,%u,%u,%d,%.1f\n", grid, a_smem, b_smem, graphed, double(to - from) / 70);
          if (graphed) CHECK(cudaGraphExecDestroy(ready));
          if (graphed) CHECK(cudaGraphDestroy(graph));
        }
}

// ---- queues: how many one-block kernels of as many streams (or branches of a graph) run at once.
void queues(Lab& lab) {
  const char* connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  std::string name = std::string("queues_") + (connections ? connections : "default");
  lab.open(name.c_str(), "graph,kernels,most_at_once,first_start_to_last_start_ns,span_ns");
  for (int graphed : {0, 1})
    for (unsigned n : {1u, 2u, 4u, 7u, 8u, 9u, 12u, 16u, 24u, 31u, 32u, 33u, 40u, 64u, 100u, 127u, 128u, 129u, 132u, 160u, 200u, 256u}) {
      Rec* rec = lab.log.of(n);
      cudaGraph_t graph;
      cudaGraphExec_t ready;
      unsigned cycles = 3000000;
      if (graphed) {
        CHECK(cudaGraphCreate(&graph, 0));
        for (unsigned i = 0; i < n; i++) {
          const unsigned* list = nullptr;
          Rec* own = rec + i;
          void* arguments[] = {&list, &cycles, &own, &i};
          cudaKernelNodeParams node = {};
          node.func = (void*)::spin;
          node.gridDim = 1;
          node.blockDim = 32;
          node.kernelParams = arguments;
          cudaGraphNode_t added;
          CHECK(cudaGraphAddKernelNode(&added, graph, nullptr, 0, &node));
        }
        CHECK(cudaGraphInstantiate(&ready, graph, 0));
      }
      for (int repeat = 0; repeat < 2; repeat++) {
        if (graphed) CHECK(cudaGraphLaunch(ready, lab.main));
        else
          for (unsigned i = 0; i < n; i++) ::spin<<<1, 32, 0, lab.other[i]>>>(nullptr, cycles, rec + i, i);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
      }
      lab.log.read(n);
      std::vector<std::pair<u64, int>> edges;
      u64 first = ~0ull, last = 0;
      for (const Rec& r : lab.log.blocks) {
        edges.push_back({r.g0, 1}), edges.push_back({r.g1, -1});
        first = std::min(first, r.g0), last = std::max(last, r.g0);
      }
      std::sort(edges.begin(), edges.end());
      int now = 0, most = 0;
      for (auto& edge : edges) most = std::max(most, now += edge.second);
      fprintf(lab.file, "%d,%u,%d,%llu,%.0f\n", graphed, n, most, last - first, lab.log.span_ns());
      fflush(lab.file);
      if (graphed) CHECK(cudaGraphExecDestroy(ready));
      if (graphed) CHECK(cudaGraphDestroy(graph));
    }
}

// ---- words: the rate at which one word in L2 is read with acquire order, added to, or both, by thread 0 of each block.
__global__ void words(unsigned mode, unsigned iterations, unsigned* word, unsigned zero, Rec* rec) {
  cg::grid_group grid = cg::this_grid();
  bool own = mode >= 4;
  bool adds = mode == 1 || mode == 5 || (mode == 2 && blockIdx.x % 2) || (mode == 3 && blockIdx.x == 0);
  unsigned* mine = own ? word + size_t(blockIdx.x) * 32 : word;
  unsigned sum = 0;
  grid.sync();
  u64 g0 = 0, c0 = clock64();
  if (threadIdx.x == 0) {
    g0 = gtime();
    for (unsigned i = 0; i < iterations; i++) {
      unsigned value;
      if (adds) value = atomicAdd(mine, 1u + (sum & zero));
      else asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(mine + (sum & zero)) : "memory");
      sum += value;
    }
  }
  END(sum == 12345u ? 1 : 0)
}
void polls(Lab& lab) {
  unsigned* word;
  size_t bytes = size_t(4224) * 128;
  CHECK(cudaMalloc(&word, bytes));
  CHECK(cudaMemset(word, 0, bytes));
  lab.open("polls", "mode,grid,iterations,span_ns,ns_an_operation,mean_cycles,mean_cycles_adds");
  for (unsigned mode = 0; mode < 6; mode++)
    for (unsigned grid : {1u, 8u, 66u, 132u, 264u, 396u, 528u, 792u, 1056u, 1584u, 2112u, 3168u, 4224u}) {
      unsigned iterations = 100, zero = 0;
      Rec* rec = lab.log.of(grid);
      void* arguments[] = {&mode, &iterations, &word, &zero, &rec};
      for (int i = 0; i < 2; i++) CHECK(cudaLaunchCooperativeKernel((void*)words, grid, 32, arguments, 0, lab.main));
      CHECK(cudaStreamSynchronize(lab.main));
      lab.log.read(grid);
      double all = 0, adding = 0;
      int adders = 0;
      for (unsigned i = 0; i < grid; i++) {
        double each = double(lab.log.blocks[i].c1 - lab.log.blocks[i].c0) / iterations;
        all += each;
        if (mode == 1 || mode == 5 || (mode == 2 && i % 2) || (mode == 3 && i == 0)) adding += each, adders++;
      }
      double span = lab.log.span_ns();
      fprintf(lab.file, "%u,%u,%u,%.0f,%.4f,%.1f,%.1f\n", mode, grid, iterations, span, span / iterations / grid, all / grid, adders ? adding / adders : 0.0);
    }
}

// ---- barriers: grid.sync() alone, every size, to see where it grows.
void barriers(Lab& lab) {
  lab.open("barriers", "grid,block,cycles,rounds,span_ns,ns_a_round");
  for (unsigned block : {32u, 128u})
    for (unsigned cycles : {0u, 2000u})
      for (unsigned grid : {1u, 2u, 4u, 8u, 16u, 33u, 66u, 100u, 132u, 200u, 264u, 396u, 528u, 660u, 792u, 924u, 1056u, 1188u, 1320u, 1584u, 1848u, 2112u, 2640u, 3168u, 3696u, 4224u}) {
        if (grid > 132 * (block == 32 ? 32u : 16u)) continue;
        unsigned rounds = 40;
        const unsigned* list = nullptr;
        Rec* rec = lab.log.of(grid);
        void* arguments[] = {&rounds, &list, &cycles, &rec};
        std::vector<double> spans;
        for (int i = 0; i < 5; i++) {
          CHECK(cudaLaunchCooperativeKernel((void*)gridsync, grid, block, arguments, 0, lab.main));
          CHECK(cudaStreamSynchronize(lab.main));
          lab.log.read(grid);
          spans.push_back(lab.log.span_ns());
        }
        fprintf(lab.file, "%u,%u,%u,%u,%.0f,%.1f\n", grid, block, cycles, rounds, median(spans), median(spans) / rounds);
      }
}

// ---- warps: how often each warp of an SM reads the clock within 20,000 cycles.
struct Polled { u64 first, last; unsigned polls, smid; };
__global__ void count_polls(unsigned n, Polled* out) {
  u64 c0 = clock64();
  unsigned polls = 0;
  long long now;
  do { now = clock64(); polls++; } while (now - (long long)c0 < n);
  if (threadIdx.x % 32 == 0) out[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = {c0, u64(now), polls, smid()};
}
void warps(Lab& lab) {
  Polled* out;
  CHECK(cudaMalloc(&out, sizeof(Polled) * 132 * 64));
  lab.open("warps", "blocks_an_sm,block_warps,cta,warp,first,last,polls");
  for (unsigned block_warps : {1u, 2u, 4u, 8u, 16u, 32u})
    for (unsigned resident : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 12u, 16u, 20u, 24u, 28u, 32u}) {
      if (block_warps * resident > 64) continue;
      unsigned grid = 132 * resident, count = grid * block_warps;
      for (int i = 0; i < 2; i++) count_polls<<<grid, block_warps * 32, 0, lab.main>>>(20000, out);
      CHECK(cudaGetLastError());
      std::vector<Polled> all(count);
      CHECK(cudaStreamSynchronize(lab.main));
      CHECK(cudaMemcpy(all.data(), out, count * sizeof(Polled), cudaMemcpyDeviceToHost));
      u64 first = ~0ull;
      for (auto& p : all) if (p.smid == 20) first = std::min(first, p.first);
      for (unsigned i = 0; i < count; i++)
        if (all[i].smid == 20)
          fprintf(lab.file, "%u,%u,%u,%u,%llu,%llu,%u\n", resident, block_warps, i / block_warps, i % block_warps, all[i].first - first, all[i].last - first, all[i].polls);
    }
}

// ---- gate: which of two kernels behind one event starts first.
void gate(Lab& lab) {
  lab.open("gate", "repeat,first_issued,first_started,gap_ns");
  cudaEvent_t open;
  CHECK(cudaEventCreateWithFlags(&open, cudaEventDisableTiming));
  Rec* rec = lab.log.of(2);
  for (int i = 0; i < 200; i++) {
    int first = i % 2;
    ::spin<<<1, 32, 0, lab.main>>>(nullptr, 100000, nullptr, 0);
    CHECK(cudaEventRecord(open, lab.main));
    for (int k : {0, 1}) CHECK(cudaStreamWaitEvent(lab.other[k], open));
    for (int k : {first, 1 - first}) ::spin<<<1, 32, 0, lab.other[k]>>>(nullptr, 10000, rec + k, k);
    CHECK(cudaDeviceSynchronize());
    lab.log.read(2);
    long long gap = (long long)(lab.log.blocks[1].g0 - lab.log.blocks[0].g0);
    fprintf(lab.file, "%d,%d,%d,%lld\n", i, first, gap < 0, llabs(gap));
  }
}

int main(int count, char** arguments) try {
  if (count < 2) return fprintf(stderr, "usage: settle OUT [NAME...]\n"), 2;
  std::vector<std::pair<const char*, void (*)(Lab&)>> all = {
      {"halves", halves}, {"gpcs", gpcs}, {"order", order}, {"carveout", carveout}, {"carveswitch", carveswitch}, {"queues", queues},
      {"polls", polls}, {"barriers", barriers}, {"warps", warps}, {"gate", gate}};
  Lab lab(arguments[1]);
  warm_up(lab.log);
  int failed = 0;
  for (auto& [name, experiment] : all) {
    bool wanted = count == 2;
    for (int i = 2; i < count; i++) wanted |= !strcmp(arguments[i], name);
    if (!wanted) continue;
    double start = now_us();
    try {
      experiment(lab);
    } catch (const std::exception& error) {
      printf("%s: %s\n", name, error.what());
      failed++;
      cudaGetLastError();
    }
    lab.close();
    printf("%s: %.2f s\n", name, (now_us() - start) / 1e6);
    fflush(stdout);
  }
  return failed ? 1 : 0;
} catch (const std::exception& error) {
  fprintf(stderr, "%s\n", error.what());
  return 1;
}
