// How often an SM serves special registers, single-thread stores, shared memory and constants: nvcc -O3 -std=c++17 -arch=sm_90 unit.cu -o unit && ./unit
// 64 of them by each of 1 to 32 warps. (The compiler reads %ctaid and %laneid once only: these two say nothing.)
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
typedef unsigned long long u64;
#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)
struct Pad { unsigned v[512]; };
template <int W> __device__ __forceinline__ unsigned op(u64* p, unsigned* sh, const Pad& pad, int i, unsigned z) {
  unsigned v = 0; u64 t;
  if (W == 0) asm volatile("mov.u32 %0, %smid;" : "=r"(v));
  if (W == 1) asm volatile("mov.u32 %0, %ctaid.x;" : "=r"(v));
  if (W == 2) asm volatile("mov.u32 %0, %laneid;" : "=r"(v));
  if (W == 3) { if (threadIdx.x % 32 == 0) asm volatile("st.global.u64 [%0], %1;" :: "l"(p + i), "l"((u64)i)); }
  if (W == 4) asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(v) : "r"((unsigned)__cvta_generic_to_shared(sh + threadIdx.x)));
  if (W == 5) v = pad.v[(i * 17 + z) & 255];
  if (W == 6) { asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); v = (unsigned)t; }
  if (W == 7) { if (threadIdx.x % 32 == 0) asm volatile("st.shared.u64 [%0], %1;" :: "r"((unsigned)__cvta_generic_to_shared(sh)), "l"((u64)i)); }
  if (W == 8) { asm volatile("mov.u32 %0, %smid;" : "=r"(v)); if (threadIdx.x % 32 == 0) asm volatile("st.global.u64 [%0], %1;" :: "l"(p + i), "l"((u64)i)); }
  if (W == 9) asm volatile("mov.u32 %0, %warpid;" : "=r"(v));
  return v;
}
template <int W> __global__ void run(u64* out, u64* mem, unsigned z, Pad pad) {
  __shared__ unsigned sh[1024]; __shared__ u64 first, last;
  if (threadIdx.x == 0) first = ~0ull, last = 0;
  sh[threadIdx.x] = threadIdx.x;
  unsigned s = 0; u64* p = mem + (threadIdx.x / 32) * 4096;
  u64 t0 = 0, t1 = 0;
  for (int rep = 0; rep < 3; rep++) {
    __syncthreads();
    t0 = clock64();
#pragma unroll
    for (int i = 0; i < 64; i++) s += op<W>(p, sh, pad, i * 5, z);
    if (s == 0xfffffff1) out[9] = s;
    t1 = clock64();
  }
  if (threadIdx.x % 32 == 0) { atomicMin(&first, t0); atomicMax(&last, t1); }
  __syncthreads();
  if (threadIdx.x == 0) out[0] = last - first;
}
u64 *out, *mem;
template <int W> void all(const char* name) {
  for (int warps : {1, 2, 4, 8, 16, 32}) {
    u64 t = 0;
    for (int i = 0; i < 3; i++) { run<W><<<1, warps * 32>>>(out, mem, 0, Pad{}); CHECK(cudaDeviceSynchronize()); }
    CHECK(cudaMemcpy(&t, out, 8, cudaMemcpyDeviceToHost));
    printf("%s warps %d: %.2f cycles an instruction of the SM, %.2f of a warp\n", name, warps, double(t) / (64 * warps), double(t) / 64);
  }
}
int main() {
  CHECK(cudaMalloc(&out, 256)); CHECK(cudaMalloc(&mem, 1 << 22));
  all<0>("smid"); all<1>("ctaid"); all<2>("laneid"); all<9>("warpid"); all<3>("store 8 bytes of one thread"); all<8>("smid and store"); all<4>("shared load"); all<7>("shared store of one thread"); all<5>("constant load"); all<6>("globaltimer");
}
