#include "harness.h"
#include <cstring>
int main(int count, char** arguments) try {
  auto has = [&](const char* word) { for (int i = 1; i < count; i++) if (!strcmp(arguments[i], word)) return true; return false; };
  Log log(size_t(1) << 19);
  warm_up(log);
  cudaStream_t main, extra[64];
  CHECK(cudaStreamCreateWithFlags(&main, cudaStreamNonBlocking));
  int n = has("s1") ? 1 : has("s2") ? 2 : has("s8") ? 8 : has("s32") ? 32 : has("s64") ? 64 : 0;
  for (int i = 0; i < n; i++) CHECK(cudaStreamCreateWithFlags(&extra[i], cudaStreamNonBlocking));
  if (has("high")) { cudaStream_t s; CHECK(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, -5)); }
  if (has("used")) for (int i = 0; i < n; i++) spin<<<1, 32, 0, extra[i]>>>(nullptr, 1000, nullptr, 0);
  if (has("smem")) CHECK(cudaFuncSetAttribute(::spin, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxDynamicSharedMemory));
  if (has("smem")) spin<<<1, 32, 100000, main>>>(nullptr, 1000, nullptr, 0);
  if (has("nonportable")) CHECK(cudaFuncSetAttribute(::spin, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  if (has("cluster")) {
    cudaLaunchAttribute a = {}; a.id = cudaLaunchAttributeClusterDimension; a.val.clusterDim.x = 2; a.val.clusterDim.y = a.val.clusterDim.z = 1;
    cudaLaunchConfig_t c = {}; c.gridDim = 132; c.blockDim = 128; c.stream = main; c.attrs = &a; c.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&c, ::spin, (const unsigned*)nullptr, 10000u, log.of(132), 0u));
  }
  if (has("coop")) {
    unsigned rounds = 5, cycles = 0; const unsigned* list = nullptr; Rec* rec = log.of(132);
    void* values[] = {&rounds, &list, &cycles, &rec};
    CHECK(cudaLaunchCooperativeKernel((void*)gridsync, 132, 128, values, 0, main));
  }
  if (has("stream_pdl")) for (int k = 0; k < 20; k++) {
    cudaLaunchAttribute a = {}; a.id = cudaLaunchAttributeProgrammaticStreamSerialization; a.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t c = {}; c.gridDim = 1; c.blockDim = 128; c.stream = main; c.attrs = &a; c.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&c, second::spin_pdl, 500u, 0u, log.of(1), 0u));
  }
  CHECK(cudaDeviceSynchronize());
  constexpr unsigned kKernels = 200;
  for (unsigned grid : {1u, 132u}) for (unsigned trigger : {0u, 1u}) {
    unsigned cycles = 500;
    cudaGraph_t graph;
    cudaGraphExec_t ready = nullptr;
    Rec* rec = log.of(size_t(grid) * kKernels);
    CHECK(cudaStreamBeginCapture(main, cudaStreamCaptureModeGlobal));
    for (unsigned k = 0; k < kKernels; k++) {
      cudaLaunchAttribute a = {}; a.id = cudaLaunchAttributeProgrammaticStreamSerialization; a.val.programmaticStreamSerializationAllowed = 1;
      cudaLaunchConfig_t c = {}; c.gridDim = grid; c.blockDim = 128; c.stream = main; c.attrs = &a; c.numAttrs = 1;
      CHECK(cudaLaunchKernelEx(&c, second::spin_pdl, cycles, trigger, rec + size_t(grid) * k, k));
    }
    CHECK(cudaStreamEndCapture(main, &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    if (has("destroy")) CHECK(cudaGraphDestroy(graph));
    for (int i = 0; i < 4; i++) { CHECK(cudaGraphLaunch(ready, main)); CHECK(has("streamsync") ? cudaStreamSynchronize(main) : cudaDeviceSynchronize()); }
    log.read(size_t(grid) * kKernels);
    printf("%u/%u %.0f  ", grid, trigger, log.span_ns());
  }
  for (int i = 1; i < count; i++) printf("%s ", arguments[i]);
  printf("\n");
  return 0;
} catch (const std::exception& error) { printf("%s\n", error.what()); return 1; }
