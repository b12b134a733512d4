//   nvcc -O3 -std=c++17 -arch=sm_90 l2.cu -o l2 && ./l2 FOLDER
// Where L2 keeps what: which of its banks of sets each row of a buffer goes to (banks.csv), which lines make room for others
// (order.csv), and what launches find of a buffer that they read again and again (again.csv). README.md says what it shows.
//
// A row is 47 pairs of lines, one pair a slice; 64 rows are a stretch, and fill one way pair of a bank's sets.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

typedef unsigned u;
typedef std::vector<u> List;
const u LINES = 94, ROWS = 64;          // of a row, and rows of a stretch
const u NEAR_CYCLES = 420;              // at most
const u OWN_SM = 0, OTHER_SM = 4;       // SMs of the two halves, on all cards seen

__device__ u clock_now() { u t; asm volatile("mov.u32 %0,%%clock;" : "=r"(t)::"memory"); return t; }
__device__ u sm_id() { u id; asm("mov.u32 %0,%%smid;" : "=r"(id)); return id; }
__device__ unsigned long long time_now() { unsigned long long t; asm volatile("mov.u64 %0,%%globaltimer;" : "=l"(t)::"memory"); return t; }

// One SM reads some runs of rows, one run after the other, `passes` times: how many lines of each run it does not find near in the last.
__global__ void reads(const u* buffer, const u* first, const u* rows, u runs, u sm, u passes, u* not_near) {
  if (sm_id() != sm) return;
  __shared__ u missed[128];
  __shared__ volatile u waits_for_it[256];
  u zero = 0;
  for (u i = threadIdx.x; i < runs; i += blockDim.x) missed[i] = 0;
  __syncthreads();
  for (u pass = 0; pass < passes; pass++)
    for (u i = 0; i < runs; i++) {
      const u* from = buffer + (size_t)first[i] * 32;
      for (u line = threadIdx.x; line < rows[i] * LINES; line += blockDim.x) {
        u start = clock_now();
        zero = __ldcg(from + line * 32 + zero);
        waits_for_it[threadIdx.x] = zero;
        bool far = clock_now() - start > NEAR_CYCLES;
        if (far && pass == passes - 1) atomicAdd(&missed[i], 1);
      }
      __syncthreads();
    }
  for (u i = threadIdx.x; i < runs; i += blockDim.x) not_near[i] = missed[i];
}

// Each block reads its part of a buffer, 16 bytes a thread at once, as `stream_read` of kernels.cu does.
__global__ void stream(const uint4* in, size_t vectors, u* sink, unsigned long long* times) {
  unsigned long long start = 0;
  if (threadIdx.x == 0) start = time_now();
  const uint4* mine = in + blockIdx.x * vectors;
  u sum = 0;
#pragma unroll 4
  for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) { uint4 v = __ldcg(mine + i); sum ^= v.x ^ v.y ^ v.z ^ v.w; }
  if (sum == 0xdeadbeef) *sink = sum;
  __syncthreads();
  if (threadIdx.x == 0) { times[2 * blockIdx.x] = start; times[2 * blockIdx.x + 1] = time_now(); }
}

// The same by one thread a block, line by line: how many lines it finds near.
__global__ void stream_lines(const u* in, u lines, u* near) {
  __shared__ volatile u waits_for_it;
  if (threadIdx.x) return;
  const u* mine = in + (size_t)blockIdx.x * lines * 32;
  u zero = 0, found = 0;
  for (u i = 0; i < lines; i++) {
    u start = clock_now();
    zero = __ldcg(mine + (size_t)i * 32 + zero);
    waits_for_it = zero;
    found += clock_now() - start < 400;
  }
  near[blockIdx.x] = found;
}

__global__ void sweep(const uint4* in, size_t vectors, u* sink) {
  u sum = 0;
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += gridDim.x * blockDim.x) sum ^= __ldcg(in + i).x;
  if (sum == 9) *sink = sum;
}

u *in_first, *in_rows, *out, *swept;
const u* buffer;
unsigned long long* times;

void flush() { sweep<<<1056, 256>>>((const uint4*)swept, 16 << 20, out); }

// A run of rows that begins with a line of all memory that was allocated.
struct Run { u first, rows; };
u origin;  // the first line of what stretches are counted in

List read(u sm, const std::vector<Run>& runs, u passes = 1) {
  List first, rows, missed(runs.size());
  for (auto& run : runs) { first.push_back(run.first); rows.push_back(run.rows); }
  cudaMemcpy(in_first, first.data(), first.size() * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(in_rows, rows.data(), rows.size() * 4, cudaMemcpyHostToDevice);
  reads<<<132, 256>>>(buffer, in_first, in_rows, runs.size(), sm, passes, out);
  cudaMemcpy(missed.data(), out, missed.size() * 4, cudaMemcpyDeviceToHost);
  return missed;
}

Run stretch(u number) { return {origin + number * ROWS * LINES, ROWS}; }

std::vector<Run> stretches(const List& which, u from = 0, u count = ~0u) {
  std::vector<Run> runs;
  for (u i = from; i < which.size() && i - from < count; i++) runs.push_back(stretch(which[i]));
  return runs;
}

// Nine stretches that drive each other out, of each bank: read more and more of them until some miss; these are one group.
std::vector<List> groups() {
  std::vector<List> found;
  List open;
  for (u number = 0; number < 90 && found.size() < 5; number++) {
    bool known = false;
    for (auto& group : found) {
      auto runs = stretches(group, 0, 8);
      runs.push_back(stretch(number));
      known |= read(OWN_SM, runs, 4).back() > ROWS * LINES / 2;
    }
    if (known) continue;
    open.push_back(number);
    List missed = read(OWN_SM, stretches(open), 4), group, rest;
    for (u i = 0; i < open.size(); i++) (missed[i] > ROWS * LINES / 2 ? group : rest).push_back(open[i]);
    if (group.size() >= 9) { found.push_back(group); open = rest; }
  }
  return found;
}

// The bank of a run of rows, and the share of its lines that the bank's other stretches drive out, in per cent.
std::pair<int, u> bank_of(const std::vector<List>& groups, Run run) {
  int bank = -1;
  u most = 0;
  for (u k = 0; k < groups.size(); k++) {
    List others;
    for (u number : groups[k]) {
      u first = stretch(number).first;
      bool apart = first + ROWS * LINES <= run.first || run.first + run.rows * LINES <= first;
      if (apart && others.size() < 8) others.push_back(number);
    }
    auto runs = stretches(others);
    runs.push_back(run);
    u missed = read(OWN_SM, runs, 4).back() * 100 / (run.rows * LINES);
    if (missed > most) { most = missed; bank = k; }
  }
  return {bank, most};
}

void banks(FILE* file, const std::vector<List>& groups, const std::vector<Run>& allocations) {
  fprintf(file, "allocation,row,bank,driven_out\n");
  for (u a = 0; a < allocations.size(); a++)
    for (u row = 0; row < allocations[a].rows; row += 8) {
      auto [bank, share] = bank_of(groups, {allocations[a].first + row * LINES, 2});
      fprintf(file, "%u,%u,%d,%u\n", a, row, bank, share);
    }
}

// What is still near of `kept` stretches of a bank that one half's SM has read, behind `more` others of the same bank by an SM of
// the same or of the other half; asked for by either.
void order(FILE* file, const std::vector<List>& groups) {
  List one_bank;
  for (u number = 0; number < 300 && one_bank.size() < 24; number++) {
    auto [bank, share] = bank_of(groups, stretch(number));
    if (bank == 0 && share > 95) one_bank.push_back(number);
  }
  fprintf(file, "kept,by_other,more,asked_by_other,lines,near\n");
  for (u kept : {1, 2, 4})
    for (u by_other : {0, 1})
      for (u more = 1; kept + more <= one_bank.size() && more <= 16; more++)
        for (u asks : {0, 1}) {
          flush();
          read(OWN_SM, stretches(one_bank, 0, kept));
          read(by_other ? OTHER_SM : OWN_SM, stretches(one_bank, kept, more));
          u near = 0;
          for (u missed : read(asks ? OTHER_SM : OWN_SM, stretches(one_bank, 0, kept))) near += ROWS * LINES - missed;
          fprintf(file, "%u,%u,%u,%u,%u,%u\n", kept, by_other, more, asks, kept * ROWS * LINES, near);
        }
}

void again(FILE* file, const u* from) {
  fprintf(file, "block,blocks,bytes_per_block,offset_mb,launch,span_ns,median_block_ns,near\n");
  for (u offset_mb : {0, 130, 333}) {
    const u* in = from + (size_t)offset_mb * (1 << 18);
    for (u block : {32, 128, 512})
      for (u blocks : {132, 528, 2112})
        for (u mb = 24; mb <= 60; mb += mb < 32 || mb > 48 ? 4 : 2) {
          if (block * blocks > 132 * 2048) continue;
          size_t each = ((size_t)mb << 20) / blocks / (16 * block) * (16 * block);
          flush();
          for (u launch = 1; launch <= 12; launch++) {
            std::vector<unsigned long long> t(2 * blocks), took;
            List near(blocks);
            unsigned long long first = ~0ull, last = 0, found = 0;
            if (block == 32) {
              stream_lines<<<blocks, 32, 50000>>>(in, each / 128, out);
              cudaMemcpy(near.data(), out, blocks * 4, cudaMemcpyDeviceToHost);
              for (u n : near) found += n;
              if (launch == 2 || launch == 4 || launch == 12) fprintf(file, "%u,%u,%zu,%u,%u,,,%.4f\n", block, blocks, each, offset_mb, launch, found * 128.0 / each / blocks);
              continue;
            }
            stream<<<blocks, block>>>((const uint4*)in, each / 16, out, times);
            cudaMemcpy(t.data(), times, t.size() * 8, cudaMemcpyDeviceToHost);
            for (u i = 0; i < blocks; i++) { first = std::min(first, t[2 * i]); last = std::max(last, t[2 * i + 1]); took.push_back(t[2 * i + 1] - t[2 * i]); }
            std::sort(took.begin(), took.end());
            if (launch <= 4 || launch >= 10) fprintf(file, "%u,%u,%zu,%u,%u,%llu,%llu,\n", block, blocks, each, offset_mb, launch, last - first, took[blocks / 2]);
          }
        }
  }
}

int main(int, char** arguments) {
  std::string folder = arguments[1];
  auto open = [&](const char* name) { return fopen((folder + "/" + name).c_str(), "w"); };
  const u sizes_mb[] = {600, 600, 200, 320, 2000};
  std::vector<char*> made;
  for (u mb : sizes_mb) { char* p; cudaMalloc(&p, (size_t)mb << 20); cudaMemset(p, 0, (size_t)mb << 20); made.push_back(p); }
  cudaMalloc(&in_first, 1024); cudaMalloc(&in_rows, 1024); cudaMalloc(&out, 1 << 16); cudaMalloc(&swept, 256 << 20); cudaMalloc(&times, 1 << 20);
  cudaFuncSetAttribute(stream_lines, cudaFuncAttributeMaxDynamicSharedMemorySize, 50000);
  char* lowest = *std::min_element(made.begin(), made.end());
  buffer = (const u*)lowest;
  std::vector<Run> allocations;
  for (u a = 0; a < made.size(); a++) {
    allocations.push_back({(u)((made[a] - lowest) / 128), (a ? 150u : 590u) * (8192 / LINES)});
    printf("allocation %u of %u MB: %zu MB above the lowest\n", a, sizes_mb[a], (made[a] - lowest) >> 20);
  }
  origin = allocations[0].first;
  auto found = groups();
  printf("%zu banks\n", found.size());
  if (found.size() != 5) return 1;
  banks(open("banks.csv"), found, allocations);
  order(open("order.csv"), found);
  again(open("again.csv"), (const u*)made[0]);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
