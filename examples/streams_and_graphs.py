"""Many small kernels: issued one by one, as a graph, and as a graph on four streams."""

import wavesim
from wavesim import Duration, Graph, Kernel, Launch, Program, Record, Wait

small = Kernel(40, work=Duration.constant(ns=3_000))
chain = [Launch(small) for _ in range(40)]
fork = [Record("fork"), *(Wait("fork", stream) for stream in (1, 2, 3))]
four = [*fork, *(Launch(small, stream=i % 4) for i in range(40))]

for name, program in {
    "one by one": Program(chain),
    "as a graph": Program([Graph(chain)]),
    "as a graph of four branches": Program([Graph(four)]),
}.items():
    run = wavesim.simulate("h200", program)
    print(f"{name:28} {run.makespan_ns / 1e3:6.1f} us, slots busy {run.ledger['share'][0]:.1%}")
