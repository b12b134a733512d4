// What decides the gap of a chain with programmatic edges: ./pdl VARIANT ; prints variant,grid,cycles,trigger,period_ns.
#include "harness.h"
#include <cstring>
int main(int count, char** arguments) try {
  int variant = atoi(arguments[1]);
  Log log(size_t(1) << 19);
  warm_up(log);
  cudaStream_t main;
  if (variant == 1) CHECK(cudaStreamCreate(&main)); else CHECK(cudaStreamCreateWithFlags(&main, cudaStreamNonBlocking));
  constexpr unsigned kKernels = 200;
  for (unsigned grid : {1u, 132u, 1056u}) for (unsigned cycles : {500u, 4000u}) for (unsigned trigger : {0u, 1u}) {
    cudaGraph_t graph;
    cudaGraphExec_t ready = nullptr;
    Rec* rec = log.of(size_t(grid) * kKernels);
    auto issue = [&](unsigned k) {
      cudaLaunchAttribute attribute[2] = {};
      attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attribute[0].val.programmaticStreamSerializationAllowed = 1;
      cudaLaunchConfig_t config = {};
      config.gridDim = grid; config.blockDim = 128; config.stream = main; config.attrs = attribute;
      config.numAttrs = variant == 6 && k == 0 ? 0 : 1;
      CHECK(cudaLaunchKernelEx(&config, second::spin_pdl, cycles, trigger, rec + size_t(grid) * k, k));
    };
    if (variant == 3 || variant == 4 || variant == 7) {
      CHECK(cudaGraphCreate(&graph, 0));
      cudaGraphNode_t previous = nullptr;
      for (unsigned k = 0; k < kKernels; k++) {
        Rec* own = rec + size_t(grid) * k;
        void* values[] = {&cycles, &trigger, &own, &k};
        cudaKernelNodeParams node = {};
        node.func = (void*)second::spin_pdl; node.gridDim = grid; node.blockDim = 128; node.kernelParams = values;
        cudaGraphNode_t added;
        CHECK(cudaGraphAddKernelNode(&added, graph, nullptr, 0, &node));
        if (k) {
          cudaGraphEdgeData edge = {};
          if (variant == 3) edge.from_port = cudaGraphKernelNodePortProgrammatic, edge.type = cudaGraphDependencyTypeProgrammatic;
          if (variant == 4) edge.from_port = cudaGraphKernelNodePortLaunchCompletion, edge.type = cudaGraphDependencyTypeProgrammatic;
          CHECK(cudaGraphAddDependencies(graph, &previous, &added, &edge, 1));
        }
        previous = added;
      }
    } else if (variant != 5) {
      CHECK(cudaStreamBeginCapture(main, variant == 8 ? cudaStreamCaptureModeThreadLocal : cudaStreamCaptureModeGlobal));
      for (unsigned k = 0; k < kKernels; k++) issue(k);
      CHECK(cudaStreamEndCapture(main, &graph));
    }
    if (variant != 5) CHECK(cudaGraphInstantiate(&ready, graph, variant == 9 ? cudaGraphInstantiateFlagUseNodePriority : variant == 10 ? cudaGraphInstantiateFlagUpload : 0));
    if (variant == 11) CHECK(cudaGraphUpload(ready, main));
    for (int i = 0; i < 4; i++) {
      if (variant == 5) for (unsigned k = 0; k < kKernels; k++) issue(k);
      else CHECK(cudaGraphLaunch(ready, variant == 2 ? 0 : main));
      CHECK(cudaDeviceSynchronize());
    }
    log.read(size_t(grid) * kKernels);
    u64 from = ~0ull, to = ~0ull;
    for (unsigned i = 0; i < grid; i++) from = std::min(from, log.blocks[size_t(20) * grid + i].g0), to = std::min(to, log.blocks[size_t(180) * grid + i].g0);
    printf("%d,%u,%u,%u,%.1f,%.0f\n", variant, grid, cycles, trigger, double(to - from) / 160, log.span_ns());
  }
  return 0;
} catch (const std::exception& error) { printf("%s: %s\n", arguments[1], error.what()); return 1; }
