// Runs the rows of a CSV file (made by rows.py) on the device and writes what was measured:
//   nvcc -O3 -arch=sm_90 measure.cu -o measure && ./measure rows.csv OUT [FIRST_RUN]
// OUT/runs.csv has a line a row, OUT/blocks.csv a line a block of the logged ones, OUT/asked.csv the block or task times that
// were drawn. Each line is flushed, so that a row that fails loses only itself; after an error that the
// context does not survive the program ends with 3, and can be started again at the next run.
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "harness.h"

constexpr int kWarmUps = 2, kRepeats = 9, kChainRepeats = 5, kLoggedKernels = 200;
constexpr unsigned kGateCycles = 100000;

struct Row {
  std::map<std::string, std::string> cells;
  bool has(const char* name) const {
    auto found = cells.find(name);
    return found != cells.end() && !found->second.empty();
  }
  std::string text(const char* name) const { return has(name) ? cells.at(name) : ""; }
  unsigned number(const char* name, unsigned otherwise = 0) const { return has(name) ? unsigned(atof(cells.at(name).c_str())) : otherwise; }
};

struct Measured {
  int regs = 0, blocks_per_sm = 0, max_active_clusters = 0, sms_used = 0;
  std::vector<double> event_us, span_ns, host_us;
};

struct Bench {
  Log log{size_t(1) << 21};
  unsigned *counter, *times;
  float* sink;
  FILE *blocks, *asked;
  cudaStream_t main, low[64], high = nullptr;
  int greatest = 0, others = 0;

  Bench() {
    int least;
    CHECK(cudaMalloc(&counter, 256));
    CHECK(cudaMalloc(&times, sizeof(unsigned) << 20));
    CHECK(cudaMalloc(&sink, 256));
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(cudaStreamCreateWithFlags(&main, cudaStreamNonBlocking));
    CHECK(cudaFuncSetAttribute(::spin, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxDynamicSharedMemory));
    CHECK(cudaFuncSetAttribute(second::spin, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxDynamicSharedMemory));
    CHECK(cudaFuncSetAttribute(::spin, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    CHECK(cudaFuncSetAttribute(hold, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxDynamicSharedMemory));
  }

  // A further stream; none is made before it is needed.
  cudaStream_t other(int i) {
    for (; others <= i; others++) CHECK(cudaStreamCreateWithFlags(&low[others], cudaStreamNonBlocking));
    return low[i];
  }
  cudaStream_t urgent() {
    if (!high) CHECK(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, greatest));
    return high;
  }

  // What two events see around `launch`, and what its log shows, of each repeat.
  void repeat(Measured& out, size_t logged, const std::function<void()>& launch, int launches = 1) {
    Events events;
    for (int i = 0; i < kWarmUps + kRepeats; i++) {
      CHECK(cudaStreamSynchronize(main));
      CHECK(cudaEventRecord(events.start, main));
      launch();
      CHECK(cudaGetLastError());
      CHECK(cudaEventRecord(events.stop, main));
      double us = events.us() / launches;
      CHECK(cudaDeviceSynchronize());
      log.read(logged);
      if (i < kWarmUps) continue;
      out.event_us.push_back(us);
      out.span_ns.push_back(log.span_ns());
    }
  }

  template <class Kernel> void shape(Measured& out, Kernel kernel, const Row& row, bool note_regs = true) {
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, kernel));
    if (note_regs) out.regs = attributes.numRegs;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&out.blocks_per_sm, kernel, row.number("block"), row.number("smem")));
    if (!out.blocks_per_sm) throw std::runtime_error("no block fits");
  }

  const unsigned* drawn(const Row& row, unsigned count) {
    std::string law = row.text("dist");
    double mean = row.number("mean");
    std::mt19937_64 random(row.number("run"));
    std::vector<unsigned> values(count);
    std::uniform_real_distribution<double> uniform(0, 1);
    std::normal_distribution<double> normal(0, 1);
    for (unsigned i = 0; i < count; i++) {
      double x = 1;
      if (law == "uniform") x = 0.5 + uniform(random);
      else if (law == "normal10") x = 1 + 0.1 * normal(random);
      else if (law == "exp") x = -std::log1p(-uniform(random));
      else if (law == "lognormal") x = std::exp(0.8 * normal(random) - 0.32);
      else if (law == "bimodal") x = uniform(random) < 0.01 ? 10 : 0.9 / 0.99;
      else if (law == "ramp_up") x = 2.0 * i / count;
      else if (law == "ramp_down") x = 2 - 2.0 * i / count;
      else if (law == "alternate") x = i % 2 ? 1.5 : 0.5;
      else if (law == "last_slow") x = i + 1 < count ? 1 : 20;
      else throw std::runtime_error("no such law: " + law);
      values[i] = unsigned(std::max(mean * x, 0.0));
      fprintf(asked, "%u,%u,%u\n", row.number("run"), i, values[i]);
    }
    CHECK(cudaMemcpy(times, values.data(), count * sizeof(unsigned), cudaMemcpyHostToDevice));
    return times;
  }

  void join(cudaStream_t stream) {
    cudaEvent_t done;
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    CHECK(cudaEventRecord(done, stream));
    CHECK(cudaStreamWaitEvent(main, done));
    CHECK(cudaEventDestroy(done));
  }

  void empty(Measured& out, const Row& row) {
    unsigned grid = row.number("grid"), block = row.number("block"), launches = row.number("launches", 20);
    shape(out, empty_kernel, row);
    repeat(out, 0, [&] { for (unsigned i = 0; i < launches; i++) empty_kernel<<<grid, block, 0, main>>>(); }, launches);
  }

  void plain_spin(Measured& out, const Row& row, bool logged) {
    unsigned grid = row.number("grid"), block = row.number("block"), smem = row.number("smem"), cycles = row.number("cycles");
    shape(out, ::spin, row);
    const unsigned* list = row.has("dist") ? drawn(row, grid) : nullptr;
    Rec* rec = logged ? log.of(grid) : nullptr;
    repeat(out, logged ? grid : 0, [&] { ::spin<<<grid, block, smem, main>>>(list, cycles, rec, 0); });
  }

  void spin_with_registers(Measured& out, const Row& row) {
    unsigned grid = row.number("grid"), block = row.number("block"), cycles = row.number("cycles");
    shape(out, spin_regs, row);
    repeat(out, grid, [&] { spin_regs<<<grid, block, 0, main>>>(cycles, log.of(grid), sink); });
  }

  void persistent(Measured& out, const Row& row, bool atomic) {
    unsigned grid = row.number("grid"), block = row.number("block"), cycles = row.number("cycles"), tasks = row.number("tasks");
    if (atomic) shape(out, persistent_atomic, row); else shape(out, persistent_static, row);
    const unsigned* list = row.has("dist") ? drawn(row, tasks) : nullptr;
    repeat(out, grid, [&] {
      if (atomic) {
        CHECK(cudaMemsetAsync(counter, 0, 4, main));
        persistent_atomic<<<grid, block, 0, main>>>(list, cycles, tasks, counter, log.of(grid));
      } else {
        persistent_static<<<grid, block, 0, main>>>(list, cycles, tasks, log.of(grid));
      }
    });
  }

  void grid_barrier(Measured& out, const Row& row) {
    unsigned grid = row.number("grid"), block = row.number("block"), cycles = row.number("cycles"), rounds = row.number("rounds");
    shape(out, gridsync, row);
    const unsigned* list = nullptr;
    Rec* rec = log.of(grid);
    void* arguments[] = {&rounds, &list, &cycles, &rec};
    repeat(out, grid, [&] { CHECK(cudaLaunchCooperativeKernel((void*)gridsync, grid, block, arguments, 0, main)); });
  }

  void clusters(Measured& out, const Row& row) {
    shape(out, ::spin, row);
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = row.number("cluster");
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = row.number("grid");
    config.blockDim = row.number("block");
    config.dynamicSmemBytes = row.number("smem");
    config.stream = main;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CHECK(cudaOccupancyMaxActiveClusters(&out.max_active_clusters, ::spin, &config));
    unsigned grid = row.number("grid"), cycles = row.number("cycles");
    repeat(out, grid, [&] { CHECK(cudaLaunchKernelEx(&config, ::spin, (const unsigned*)nullptr, cycles, log.of(grid), 0u)); });
  }

  void streams(Measured& out, const Row& row) {
    unsigned grid = row.number("grid"), block = row.number("block"), smem = row.number("smem"), cycles = row.number("cycles");
    unsigned count = row.number("streams");
    shape(out, ::spin, row);
    other(int(count) - 1);
    cudaEvent_t go;
    CHECK(cudaEventCreateWithFlags(&go, cudaEventDisableTiming));
    Rec* rec = log.of(size_t(grid) * count);
    repeat(out, size_t(grid) * count, [&] {
      CHECK(cudaEventRecord(go, main));
      for (unsigned i = 0; i < count; i++) {
        CHECK(cudaStreamWaitEvent(low[i], go));
        ::spin<<<grid, block, smem, low[i]>>>(nullptr, cycles, rec + size_t(i) * grid, i);
      }
      for (unsigned i = 0; i < count; i++) join(low[i]);
    });
    CHECK(cudaEventDestroy(go));
  }

  void two_kernels(Measured& out, const Row& row) {
    unsigned grid = row.number("grid"), block = row.number("block"), smem = row.number("smem"), cycles = row.number("cycles");
    unsigned second_grid = row.number("second_grid"), second_cycles = row.number("second_cycles");
    cudaStream_t second = row.number("high_priority") ? urgent() : other(0);
    shape(out, ::spin, row);
    Rec* rec = log.of(grid + second_grid);
    repeat(out, grid + second_grid, [&] {
      ::spin<<<grid, block, smem, main>>>(nullptr, cycles, rec, 1);
      ::spin<<<second_grid, block, smem, second>>>(nullptr, second_cycles, rec + grid, 2);
      join(second);
    });
  }

  void mixed_residency(Measured& out, const Row& row) {
    unsigned grid = row.number("grid"), second_grid = row.number("second_grid");
    shape(out, second::spin, row, false);
    other(1);
    cudaEvent_t gate;
    CHECK(cudaEventCreateWithFlags(&gate, cudaEventDisableTiming));
    Rec* rec = log.of(grid + second_grid);
    auto one = [&] { second::spin<<<grid, row.number("block"), row.number("smem"), low[0]>>>(row.number("cycles"), rec, 1); };
    auto two = [&] {
      second::spin<<<second_grid, row.number("second_block"), row.number("second_smem"), low[1]>>>(row.number("second_cycles"), rec + grid, 2);
    };
    repeat(out, grid + second_grid, [&] {
      ::spin<<<1, 32, 0, main>>>(nullptr, kGateCycles, nullptr, 0);
      CHECK(cudaEventRecord(gate, main));
      CHECK(cudaStreamWaitEvent(low[0], gate));
      CHECK(cudaStreamWaitEvent(low[1], gate));
      if (row.number("second_first")) two(), one(); else one(), two();
      join(low[0]);
      join(low[1]);
    });
    CHECK(cudaEventDestroy(gate));
  }

  void spoiler(Measured& out, const Row& row) {
    unsigned grid = row.number("grid"), block = row.number("block"), smem = row.number("smem"), cycles = row.number("cycles"), held = row.number("held_sms");
    shape(out, second::spin, row, false);
    // Long enough for the kernel at its slowest, on the SMs that are left.
    double work_us = double(grid) / ((132 - held) * double(out.blocks_per_sm)) * (cycles + 700) / 1980;
    u64 hold_ns = u64(work_us * 1500) + 1000000;
    const char* chosen = getenv("HOLDER");
    int holder = chosen ? atoi(chosen) : 0;
    other(0);
    Events events;
    for (int i = 0; i < kWarmUps + kRepeats; i++) {
      if (holder == 0) hold<<<held, 32, kMaxDynamicSharedMemory, low[0]>>>(hold_ns);
      if (holder == 1) ::spin<<<held, 32, kMaxDynamicSharedMemory, low[0]>>>(nullptr, unsigned(hold_ns * 2), nullptr, 0);
      if (holder == 2) ::spin<<<held, 1024, kMaxDynamicSharedMemory, low[0]>>>(nullptr, unsigned(hold_ns * 2), nullptr, 0);
      if (holder == 3) ::spin<<<held, 1024, 120000, low[0]>>>(nullptr, unsigned(hold_ns * 2), nullptr, 0);
      CHECK(cudaGetLastError());
      double until = now_us() + 200;
      while (now_us() < until) {}
      CHECK(cudaEventRecord(events.start, main));
      second::spin<<<grid, block, smem, main>>>(cycles, log.of(grid), 1);
      CHECK(cudaGetLastError());
      CHECK(cudaEventRecord(events.stop, main));
      double us = events.us();
      if (cudaStreamQuery(low[0]) != cudaErrorNotReady) throw std::runtime_error("the SMs were let go too early");
      CHECK(cudaDeviceSynchronize());
      log.read(grid);
      if (i < kWarmUps) continue;
      out.event_us.push_back(us);
      out.span_ns.push_back(log.span_ns());
      out.sms_used = log.sms();
    }
  }

  // The kernels of a chain, on `main`; the first ones log.
  void issue_chain(const Row& row, bool dependent) {
    unsigned grid = row.number("grid"), block = row.number("block"), cycles = row.number("cycles"), trigger = row.number("trigger");
    unsigned kernels = row.number("kernels");
    for (unsigned k = 0; k < kernels; k++) {
      Rec* rec = k < kLoggedKernels ? log.of(size_t(grid) * kLoggedKernels) + size_t(grid) * k : nullptr;
      if (!dependent) {
        ::spin<<<grid, block, 0, main>>>(nullptr, cycles, rec, k);
        continue;
      }
      cudaLaunchAttribute attribute = {};
      attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attribute.val.programmaticStreamSerializationAllowed = 1;
      cudaLaunchConfig_t config = {};
      config.gridDim = grid;
      config.blockDim = block;
      config.stream = main;
      config.attrs = &attribute;
      config.numAttrs = 1;
      CHECK(cudaLaunchKernelEx(&config, second::spin_pdl, cycles, trigger, rec, k));
    }
    CHECK(cudaGetLastError());
  }

  void chain(Measured& out, const Row& row, bool graphed, bool dependent) {
    if (dependent) shape(out, second::spin_pdl, row, false); else shape(out, ::spin, row);
    double kernels = row.number("kernels");
    cudaGraphExec_t ready = nullptr;
    if (graphed) {
      cudaGraph_t graph;
      CHECK(cudaStreamBeginCapture(main, cudaStreamCaptureModeGlobal));
      issue_chain(row, dependent);
      CHECK(cudaStreamEndCapture(main, &graph));
      CHECK(cudaGraphInstantiate(&ready, graph, 0));
      CHECK(cudaGraphDestroy(graph));
    }
    for (int i = 0; i < 1 + kChainRepeats; i++) {
      CHECK(cudaDeviceSynchronize());
      double start = now_us();
      if (graphed) CHECK(cudaGraphLaunch(ready, main)); else issue_chain(row, dependent);
      double issued = now_us();
      CHECK(cudaStreamSynchronize(main));
      double done = now_us();
      log.read(size_t(row.number("grid")) * std::min(unsigned(kernels), unsigned(kLoggedKernels)));
      if (i == 0) continue;
      out.event_us.push_back((done - start) / kernels);
      out.host_us.push_back((issued - start) / kernels);
      out.span_ns.push_back(log.span_ns());
    }
    if (ready) CHECK(cudaGraphExecDestroy(ready));
  }

  void run(Measured& out, const Row& row) {
    std::string name = row.text("experiment");
    if (name == "empty") empty(out, row);
    else if (name == "spin" || name == "spin_dist") plain_spin(out, row, true);
    else if (name == "spin_grid") plain_spin(out, row, false);
    else if (name == "spin_regs") spin_with_registers(out, row);
    else if (name.rfind("persistent_atomic", 0) == 0) persistent(out, row, true);
    else if (name.rfind("persistent_static", 0) == 0) persistent(out, row, false);
    else if (name == "gridsync") grid_barrier(out, row);
    else if (name == "cluster") clusters(out, row);
    else if (name == "streams") streams(out, row);
    else if (name == "two_kernels") two_kernels(out, row);
    else if (name == "mixed_residency") mixed_residency(out, row);
    else if (name == "spoiler") spoiler(out, row);
    else if (name == "launch_stream") chain(out, row, false, false);
    else if (name == "launch_graph") chain(out, row, true, false);
    else if (name == "launch_graph_pdl") chain(out, row, true, true);
    else throw std::runtime_error("no such experiment: " + name);
  }
};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells;
  std::stringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) {
    if (!cell.empty() && cell.back() == '\r') cell.pop_back();
    cells.push_back(cell);
  }
  return cells;
}

int main(int count, char** arguments) try {
  if (count < 3) return fprintf(stderr, "usage: measure rows.csv OUT [FIRST_RUN]\n"), 2;
  std::string folder = arguments[2];
  unsigned first_run = count > 3 ? atoi(arguments[3]) : 0;
  const char* mode = first_run ? "a" : "w";
  std::ifstream rows(arguments[1]);
  std::string line;
  std::getline(rows, line);
  std::vector<std::string> names = split(line);
  Bench bench;
  FILE* runs = fopen((folder + "/runs.csv").c_str(), mode);
  bench.blocks = fopen((folder + "/blocks.csv").c_str(), mode);
  bench.asked = fopen((folder + "/asked.csv").c_str(), mode);
  if (!runs || !bench.blocks || !bench.asked) throw std::runtime_error("cannot write to " + folder);
  if (!first_run) {
    fprintf(runs, "run,regs,blocks_per_sm,event_us,span_ns,host_us,max_active_clusters,sms_used,span_least,span_median,span_most,problem\n");
    fprintf(bench.blocks, "run,cta,smid,tag,start_ns,end_ns,start_clock,end_clock\n");
    fprintf(bench.asked, "run,cta,cycles\n");
  }
  printf("SM clock %.2f MHz\n", warm_up(bench.log));
  while (std::getline(rows, line)) {
    Row row;
    std::vector<std::string> cells = split(line);
    for (size_t i = 0; i < cells.size() && i < names.size(); i++) row.cells[names[i]] = cells[i];
    unsigned run = row.number("run");
    if (run < first_run) continue;
    fprintf(stderr, "%u\n", run);  // the last of these is the run that broke the context
    Measured m;
    std::string problem;
    try {
      bench.run(m, row);
      if (row.number("log")) bench.log.write(bench.blocks, run);
    } catch (const std::exception& error) {
      problem = error.what();
      std::replace(problem.begin(), problem.end(), ',', ';');
      printf("run %u: %s\n", run, problem.c_str());
    }
    double least = m.span_ns.empty() ? 0 : *std::min_element(m.span_ns.begin(), m.span_ns.end());
    double most = m.span_ns.empty() ? 0 : *std::max_element(m.span_ns.begin(), m.span_ns.end());
    fprintf(runs, "%u,%d,%d,%.4f,%.0f,%.6f,%d,%d,%.0f,%.0f,%.0f,%s\n", run, m.regs, m.blocks_per_sm, median(m.event_us), m.span_ns.empty() ? 0 : m.span_ns.back(),
            median(m.host_us), m.max_active_clusters, m.sms_used, least, median(m.span_ns), most, problem.c_str());
    fflush(runs);
    fflush(bench.asked);
    cudaGetLastError();
    if (cudaDeviceSynchronize() != cudaSuccess) return 3;
  }
  return 0;
} catch (const std::exception& error) {
  fprintf(stderr, "%s\n", error.what());
  return 1;
}
