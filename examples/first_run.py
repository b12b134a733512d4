"""One kernel on an H200: how long, how full, and what the time was lost to."""

import wavesim

kernel = wavesim.Kernel(
    grid=1_200,
    block=256,
    registers=64,
    name="matmul",
    work=wavesim.Duration.lognormal(mean_ns=20_000, cv=0.05),
)
run = wavesim.simulate("h200", kernel)

print(run)
print(run.kernels.select("name", "residency", "limiter", "waves", "utilization", "tail_share"))
print(run.diagnose())
