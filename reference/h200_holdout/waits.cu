// Chains of dependent launches, grid barriers and persistent blocks on a full machine, with the clock of each step.
//   ./waits OUT    writes OUT/rows.csv (what was run, and its span) and OUT/{chains,barriers,tasks}.bin: the row and ten
//   numbers each, of which waits.py makes the tables.
#include "harness.h"

typedef unsigned u32;
__device__ __forceinline__ u32 now() { return (u32)clock64(); }

constexpr int kFields = 10;
constexpr u32 kRounds = 10;
constexpr u32 kTasks = 16;
constexpr u32 kWhole = 1000;  // the row of a block as a whole

// second::spin_pdl with the clock before the kernel ahead was complete, behind it, and behind the signal.
__global__ void __launch_bounds__(1024, 2) chained(u32 n, u32 trigger, u32 asleep, u32* log, u32 kernel) {
  u32 in = now();
  u32 g_in = threadIdx.x == 0 ? (u32)gtime() : 0;
  cudaGridDependencySynchronize();
  u32 go = now();
  u64 c0 = clock64();
  if (trigger) cudaTriggerProgrammaticLaunchCompletion();
  u32 told = now();
  if (asleep) while (clock64() - (long long)c0 < n) __nanosleep(50);
  else while (clock64() - (long long)c0 < n) {}
  __syncthreads();
  if (log && threadIdx.x == 0) {
    u32* row = log + (u64)blockIdx.x * kFields;
    row[0] = kernel, row[1] = blockIdx.x, row[2] = smid(), row[3] = g_in, row[4] = in;
    row[5] = go, row[6] = (u32)c0, row[7] = told, row[8] = now(), row[9] = (u32)gtime();
  }
}

// gridsync; `kind` 1: all warps wait, 2: the first warp waits for all of its block.
__global__ void __launch_bounds__(1024, 2) barriers(u32 rounds, u32 n, u32 kind, u32* log) {
  __shared__ u32 seen[2][kRounds][2];
  cg::grid_group g = cg::this_grid();
  u32 start = now(), g_start = (u32)gtime();
  bool first = threadIdx.x == 0, last = threadIdx.x == blockDim.x - 1;
  for (u32 i = 0; i < rounds; i++) {
    u64 c0 = clock64();
    if (kind == 1 || threadIdx.x < 32) while (clock64() - (long long)c0 < n) {}
    if (first) seen[0][i][0] = (u32)c0, seen[0][i][1] = now();
    if (last) seen[1][i][0] = (u32)c0, seen[1][i][1] = now();
    if (kind == 2) __syncthreads();
    g.sync();
  }
  u32 end = now();
  if (!first) return;
  u32* row = log + (u64)blockIdx.x * (rounds + 1) * kFields;
  row[0] = blockIdx.x, row[1] = smid(), row[2] = kWhole, row[3] = start, row[4] = g_start, row[5] = end, row[6] = (u32)gtime();
  for (u32 i = 0; i < rounds; i++) {
    row += kFields;
    row[0] = blockIdx.x, row[1] = smid(), row[2] = i;
    row[3] = seen[0][i][0], row[4] = seen[0][i][1], row[5] = seen[1][i][0], row[6] = seen[1][i][1];
  }
}

// persistent_static (`counter` null) and persistent_atomic.
template <bool kAtomic> __global__ void __launch_bounds__(1024, 2) tasked(u32 n, u32 tasks, u32* counter, u32* log) {
  __shared__ u32 task;
  __shared__ u32 seen[2][kTasks][2], asked[kTasks][2];
  u32 start = now(), g_start = (u32)gtime();
  bool first = threadIdx.x == 0, last = threadIdx.x == blockDim.x - 1;
  u32 done = 0;
  if (kAtomic) {
    while (true) {
      if (threadIdx.x == 0) {
        u32 ask = now();
        u32 t = atomicAdd(counter, 1u);
        task = t;
        if (done < kTasks) asked[done][0] = ask, asked[done][1] = t == ~0u ? 0 : now();
      }
      __syncthreads();
      u32 t = task;
      __syncthreads();
      if (t >= tasks) break;
      u64 c0 = clock64();
      while (clock64() - (long long)c0 < n) {}
      if (done < kTasks) {
        if (first) seen[0][done][0] = (u32)c0, seen[0][done][1] = now();
        if (last) seen[1][done][0] = (u32)c0, seen[1][done][1] = now();
      }
      done++;
    }
  } else {
    for (u32 t = blockIdx.x; t < tasks; t += gridDim.x) {
      u64 c0 = clock64();
      while (clock64() - (long long)c0 < n) {}
      if (done < kTasks) {
        if (first) seen[0][done][0] = (u32)c0, seen[0][done][1] = now();
        if (last) seen[1][done][0] = (u32)c0, seen[1][done][1] = now();
      }
      __syncthreads();
      if (first && done < kTasks) asked[done][0] = asked[done][1] = now();
      done++;
    }
  }
  u32 end = now();
  __syncthreads();
  if (!first) return;
  u32* row = log + (u64)blockIdx.x * (kTasks + 1) * kFields;
  row[0] = blockIdx.x, row[1] = smid(), row[2] = kWhole, row[3] = start, row[4] = g_start, row[5] = end, row[6] = (u32)gtime(), row[7] = done;
  for (u32 i = 0; i < done && i < kTasks; i++) {
    row += kFields;
    row[0] = blockIdx.x, row[1] = smid(), row[2] = i;
    row[3] = seen[0][i][0], row[4] = seen[0][i][1], row[5] = seen[1][i][0], row[6] = seen[1][i][1];
    row[7] = asked[i][0], row[8] = asked[i][1];
  }
}

constexpr size_t kRoom = 64u << 20;  // bytes of log

struct Bench {
  std::string folder;
  FILE* rows = nullptr;
  u32 *log = nullptr, *counter = nullptr;
  Rec* rec = nullptr;
  cudaStream_t main = nullptr;
  int row = 0;

  explicit Bench(std::string out) : folder(out) {
    rows = fopen((folder + "/rows.csv").c_str(), "w");
    if (!rows) throw std::runtime_error("cannot write to " + folder);
    fprintf(rows, "row,what,kind,grid,block,cycles,trigger,count,span_ns,period_ns\n");
    CHECK(cudaMalloc(&log, kRoom));
    CHECK(cudaMalloc(&rec, 3 * 8192 * sizeof(Rec)));
    CHECK(cudaMalloc(&counter, 4));
    CHECK(cudaStreamCreate(&main));
  }

  void describe(const char* what, u32 kind, u32 grid, u32 block, u32 cycles, u32 trigger, u32 count, double span, double period) {
    fprintf(rows, "%d,%s,%u,%u,%u,%u,%u,%u,%.0f,%.1f\n", row++, what, kind, grid, block, cycles, trigger, count, span, period);
    fflush(rows);
  }

  void append(const char* file, size_t count) {
    std::vector<u32> host(count * kFields);
    CHECK(cudaMemcpy(host.data(), log, host.size() * 4, cudaMemcpyDeviceToHost));
    FILE* out = fopen((folder + "/" + file).c_str(), row ? "ab" : "wb");
    std::vector<u32> wide;
    for (size_t i = 0; i < count; i++) {
      if (host[i * kFields + 9] == 0xfffffffeu && host[i * kFields] == 0xfffffffeu) continue;  // nobody wrote it
      wide.push_back(u32(row));
      wide.insert(wide.end(), &host[i * kFields], &host[i * kFields] + kFields);
    }
    fwrite(wide.data(), 4, wide.size(), out);
    fclose(out);
  }

  void clear(size_t count) {
    std::vector<u32> empty(count * kFields, 0xfffffffeu);
    if (empty.size() * 4 > kRoom) throw std::runtime_error("log too small");
    CHECK(cudaMemcpy(log, empty.data(), empty.size() * 4, cudaMemcpyHostToDevice));
  }

  double span(size_t count) {
    std::vector<Rec> blocks(count);
    CHECK(cudaMemcpy(blocks.data(), rec, count * sizeof(Rec), cudaMemcpyDeviceToHost));
    u64 first = ~0ull, last = 0;
    for (const Rec& r : blocks) first = std::min(first, r.g0), last = std::max(last, r.g1);
    return double(last - first);
  }

  // `kind` 0: spin_pdl as it is, 1: with more clocks, 2: the same, asleep while it waits. Kernels 8, 9 and 10 of 12 log.
  void chain(u32 kind, u32 grid, u32 block, u32 cycles, u32 trigger) {
    const u32 kernels = 12, from = 8, logged = 3;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamBeginCapture(main, cudaStreamCaptureModeGlobal));
    for (u32 k = 0; k < kernels; k++) {
      cudaLaunchAttribute attribute = {};
      attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attribute.val.programmaticStreamSerializationAllowed = 1;
      cudaLaunchConfig_t config = {};
      config.gridDim = dim3(grid), config.blockDim = dim3(block), config.stream = main;
      config.attrs = &attribute, config.numAttrs = 1;
      bool logs = k >= from && k < from + logged;
      size_t at = size_t(grid) * (k - from);
      if (kind == 0) CHECK(cudaLaunchKernelEx(&config, second::spin_pdl, cycles, trigger, logs ? rec + at : (Rec*)nullptr, k));
      else CHECK(cudaLaunchKernelEx(&config, chained, cycles, trigger, u32(kind == 2), logs ? log + at * kFields : (u32*)nullptr, k));
    }
    CHECK(cudaStreamEndCapture(main, &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    clear(size_t(grid) * logged);
    for (int i = 0; i < 3; i++) {
      CHECK(cudaGraphLaunch(ready, main));
      CHECK(cudaStreamSynchronize(main));
    }
    size_t count = size_t(grid) * logged;
    std::vector<u32> host(count * kFields);
    if (kind == 0) {
      std::vector<Rec> blocks(count);
      CHECK(cudaMemcpy(blocks.data(), rec, count * sizeof(Rec), cudaMemcpyDeviceToHost));
      for (size_t i = 0; i < count; i++) {
        const Rec& r = blocks[i];
        u32 one[kFields] = {r.tag, u32(i % grid), r.smid, u32(r.g0), u32(r.c0), u32(r.c0), u32(r.c0), u32(r.c0), u32(r.c1), u32(r.g1)};
        std::copy(one, one + kFields, &host[i * kFields]);
      }
      CHECK(cudaMemcpy(log, host.data(), host.size() * 4, cudaMemcpyHostToDevice));
    } else {
      CHECK(cudaMemcpy(host.data(), log, host.size() * 4, cudaMemcpyDeviceToHost));
    }
    u32 base = host[9];
    int latest[logged] = {-(1 << 30), -(1 << 30), -(1 << 30)};
    for (size_t i = 0; i < count; i++) latest[i / grid] = std::max(latest[i / grid], int(host[i * kFields + 9] - base));
    append("chains.bin", count);
    describe("chain", kind, grid, block, cycles, trigger, kernels, 0, (latest[2] - latest[0]) / 2.0);
    CHECK(cudaGraphExecDestroy(ready));
    CHECK(cudaGraphDestroy(graph));
  }

  void barrier(u32 kind, u32 grid, u32 block, u32 cycles) {
    u32 rounds = kRounds;
    const u32* none = nullptr;
    void* plain[] = {&rounds, &none, &cycles, &rec};
    for (int i = 0; i < 3; i++) {
      CHECK(cudaLaunchCooperativeKernel((void*)gridsync, dim3(grid), dim3(block), plain, 0, main));
      CHECK(cudaStreamSynchronize(main));
    }
    double whole = span(grid);
    size_t count = size_t(grid) * (rounds + 1);
    clear(count);
    void* logging[] = {&rounds, &cycles, &kind, &log};
    for (int i = 0; i < 3; i++) {
      CHECK(cudaLaunchCooperativeKernel((void*)barriers, dim3(grid), dim3(block), logging, 0, main));
      CHECK(cudaStreamSynchronize(main));
    }
    append("barriers.bin", count);
    describe("barrier", kind, grid, block, cycles, 0, rounds, whole, 0);
  }

  void task(bool atomic, u32 grid, u32 block, u32 cycles, u32 tasks) {
    for (int i = 0; i < 3; i++) {
      CHECK(cudaMemsetAsync(counter, 0, 4, main));
      if (atomic) persistent_atomic<<<grid, block, 0, main>>>(nullptr, cycles, tasks, counter, rec);
      else persistent_static<<<grid, block, 0, main>>>(nullptr, cycles, tasks, rec);
      CHECK(cudaGetLastError());
      CHECK(cudaStreamSynchronize(main));
    }
    double whole = span(grid);
    size_t count = size_t(grid) * (kTasks + 1);
    clear(count);
    for (int i = 0; i < 3; i++) {
      CHECK(cudaMemsetAsync(counter, 0, 4, main));
      if (atomic) tasked<true><<<grid, block, 0, main>>>(cycles, tasks, counter, log);
      else tasked<false><<<grid, block, 0, main>>>(cycles, tasks, counter, log);
      CHECK(cudaGetLastError());
      CHECK(cudaStreamSynchronize(main));
    }
    append("tasks.bin", count);
    describe(atomic ? "atomic" : "static", 0, grid, block, cycles, 0, tasks, whole, 0);
  }
};

int main(int count, char** arguments) try {
  if (count != 2) return fprintf(stderr, "usage: waits OUT\n"), 2;
  Bench bench(arguments[1]);
  for (u32 cycles : {0u, 500u, 1000u, 2000u, 4000u, 8000u})
    for (u32 kind : {0u, 1u}) bench.chain(kind, 2112, 128, cycles, 1);
  for (u32 cycles : {1000u, 2000u, 4000u}) bench.chain(2, 2112, 128, cycles, 1);
  for (u32 cycles : {2000u, 4000u}) bench.chain(0, 2112, 128, cycles, 0), bench.chain(1, 2112, 128, cycles, 0);
  for (u32 grid : {792u, 1056u, 1320u, 1584u, 1848u})
    for (u32 kind : {0u, 1u}) bench.chain(kind, grid, 128, 2000, 1);
  for (u32 kind : {0u, 1u, 2u}) {
    bench.chain(kind, 4224, 32, 2000, 1);
    bench.chain(kind, 4224, 64, 2000, 1);
    bench.chain(kind, 1056, 256, 2000, 1);
    bench.chain(kind, 528, 512, 2000, 1);
    bench.chain(kind, 528, 512, 4000, 1);
    bench.chain(kind, 264, 1024, 2000, 1);
  }

  for (u32 cycles : {0u, 1000u, 2000u, 4000u})
    for (u32 kind : {1u, 2u}) {
      bench.barrier(kind, 528, 256, cycles);
      bench.barrier(kind, 1056, 256, cycles);
      bench.barrier(kind, 528, 512, cycles);
      bench.barrier(kind, 264, 1024, cycles);
    }
  bench.barrier(1, 500, 256, 4000);
  bench.barrier(1, 792, 256, 4000);
  bench.barrier(1, 264, 1024, 300);
  for (u32 cycles : {0u, 2000u}) bench.barrier(1, 1056, 128, cycles), bench.barrier(1, 1320, 128, cycles), bench.barrier(1, 2112, 128, cycles);
  for (u32 cycles : {0u, 2000u}) bench.barrier(1, 396, 512, cycles), bench.barrier(1, 132, 1024, cycles), bench.barrier(1, 660, 384, cycles);

  for (u32 cycles : {0u, 150u, 500u, 1500u}) {
    for (int atomic : {0, 1}) {
      bench.task(atomic, 264, 1024, cycles, 2640);
      bench.task(atomic, 132, 1024, cycles, 1320);
    }
    bench.task(false, 528, 384, cycles, 5280);
    bench.task(true, 528, 512, cycles, 5280);
    bench.task(true, 198, 1024, cycles, 2000);
  }
  bench.task(false, 660, 384, 1500, 6600);
  bench.task(false, 132, 512, 0, 10000);
  bench.task(false, 400, 192, 0, 6000);
  bench.task(false, 528, 512, 4000, 3000);
  bench.task(false, 396, 512, 4000, 3000);
  bench.task(true, 1056, 256, 1000, 3000);
  bench.task(true, 1056, 256, 2000, 1000);
  bench.task(true, 528, 512, 200, 3000);
  bench.task(true, 528, 512, 500, 700);
  bench.task(true, 528, 64, 500, 700);
  CHECK(cudaDeviceSynchronize());
  return 0;
} catch (const std::exception& error) {
  fprintf(stderr, "%s\n", error.what());
  return 1;
}
