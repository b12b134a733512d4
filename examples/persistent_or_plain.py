"""Short CTAs starve behind the dispatcher; a persistent kernel with the same tasks does not.

An H200 gives freed slots away one CTA at a time, 0.6 ns each, for the whole die. CTAs of 300 ns on
132 SMs end faster than that, so slots stand idle. As tasks of a persistent kernel the same work is
placed once.
"""

import wavesim

TASKS = 200_000
work = wavesim.Duration.constant(ns=300)
plain = wavesim.Kernel(TASKS, block=128, name="plain", work=work)
resident = 132 * wavesim.occupancy("h200", block=128).ctas_per_sm
persistent = wavesim.Kernel(
    resident, block=128, name="persistent", work=wavesim.Persistent(TASKS, work)
)

for kernel in (plain, persistent):
    run = wavesim.simulate("h200", kernel, detail="kernels")
    starved = run.ledger["share"][3]
    print(f"{kernel.name:10}  {run.makespan_ns / 1e3:7.1f} us, {starved:5.1%} of slot time starved")
