"""The doorway: what goes in, what is refused, and that a run can be stopped."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import wavesim
from wavesim import Access, Duration, Graph, GridSync, Kernel, Launch, Program, Warps
from wavesim.errors import CannotLaunch, Deadlock, InvalidInput, WavesimError
from wavesim.warps import Load, Loop

KERNEL = Kernel(1_000, work=Duration.constant(ns=1_000))


def test_a_device_can_be_given_by_name(h200):
    assert wavesim.simulate("h200", KERNEL) == wavesim.simulate(h200, KERNEL)


def test_an_unknown_device_suggests_the_nearest():
    with pytest.raises(InvalidInput, match=r"did you mean .*h200"):
        wavesim.simulate("h20", KERNEL)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"detail": "warps"}, "detail"),
        ({"dispatcher": "magic"}, "dispatcher"),
        ({"program": 7}, "program"),
        ({"device": 7}, "device"),
        ({"first_sms": (1, 128, 2)}, "first_sms"),
    ],
)
def test_an_argument_that_cannot_be_is_named(arguments, field):
    with pytest.raises(InvalidInput, match=rf"^{field}: ") as refused:
        wavesim.simulate(**({"device": "h200", "program": KERNEL} | arguments))
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"first_sms": [132]}, r"^first_sms\[0\]: SM numbers run from 0 to 131 \(got 132\)"),
        ({"first_sms": [128, -1]}, r"^first_sms\[1\]: SM numbers run from 0 to 131 \(got -1\)"),
        ({"first_sms": [2, 4]}, r"^first_sms\[1\]: the other one is in a whole GPC too"),
        ({"first_sms": [2], "dispatcher": "ideal"}, r"^first_sms\[0\]: the ideal dispatcher"),
    ],
)
def test_where_the_dispatcher_cannot_begin_is_said(arguments, said):
    with pytest.raises(InvalidInput, match=said):
        wavesim.simulate("h200", KERNEL, **arguments)


def test_the_dispatcher_begins_where_it_is_told_to(tmp_path):
    run = wavesim.simulate("h200", KERNEL, seed=3, first_sms=[130, 6])
    sms = run.ctas.sort("cta")["sm"].to_list()
    # Plain launches begin with one half of the left-over TPCs, then visit whole GPCs.
    assert sms[:8] == [128, 129, 130, 131, 124, 125, 126, 127]
    assert sms[8:12] == [6, 7, 22, 23]
    assert run.first_sms == (130, 6)
    assert run != wavesim.simulate("h200", KERNEL, seed=3, first_sms=[130, 8])
    run.save(tmp_path / "run")
    assert wavesim.load(tmp_path / "run").first_sms == (130, 6)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"shared_memory": 300_000}, "300000 bytes of shared memory a CTA, 67552 over the limit"),
        ({"registers": 300}, "300 registers a thread, 45 over the limit of 255"),
        ({"block": 1_024, "registers": 128}, "over the limit of 65536"),
        ({"block": (1_024, 2)}, "2048 threads a CTA, 1024 over the limit of 1024"),
        ({"cluster": 10}, "10 CTAs"),
    ],
)
def test_a_kernel_that_does_not_launch_says_which_limit_and_by_how_much(shape, message, h200):
    with pytest.raises(CannotLaunch) as refused:
        wavesim.simulate(h200, KERNEL.edited(name="big", **shape))
    assert message in str(refused.value)
    assert "`big` cannot launch on h200" in str(refused.value)
    # The field that asks for too much; of two it is the last.
    assert refused.value.field == f"kernel.{next(reversed(shape))}"


def test_a_lone_kernel_is_not_told_of_a_program_that_it_did_not_write(h200):
    walk = Loop(100, [Load(access=Access.stream(1_024))])
    with pytest.raises(InvalidInput, match="walks through it in 100 steps") as caught:
        wavesim.simulate(h200, Kernel(4, 128, work=Warps([walk])))
    field = "kernel.work.programs[0][0].body[0].access.pattern"
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")


def test_rounds_without_a_barrier_need_not_be_resident_at_once(h200):
    work = GridSync(0, Duration.constant(ns=10))
    assert wavesim.simulate(h200, Kernel(4_000, work=work)).ctas.height == 4_000


def test_a_grid_barrier_that_not_all_ctas_reach_is_a_deadlock_that_names_them(h200):
    kernel = Kernel(4_000, work=GridSync(2, Duration.constant(ns=10)))
    with pytest.raises(Deadlock, match=r"needs all 4000 CTAs at once and h200 holds 1056"):
        wavesim.simulate(h200, kernel)


def test_a_cooperative_launch_that_the_driver_refuses_names_the_largest_grid(h200):
    work = GridSync(2, Duration.constant(ns=10))
    with pytest.raises(CannotLaunch, match="4000 CTAs, and 1056 are the most") as refused:
        wavesim.simulate(h200, Kernel(4_000, cooperative=True, work=work))
    assert refused.value.field == "kernel.grid"
    assert wavesim.simulate(h200, Kernel(1_056, cooperative=True, work=work)).makespan_ps > 0


@pytest.mark.parametrize(
    ("value", "refused"),
    [
        (0, lambda: wavesim.device("h200").edited({"sync.queued_requests": 0})),
        (-5.0, lambda: wavesim.device("h200").edited({"dispatch.refill_cycles": -5.0})),
        (400_000, lambda: wavesim.simulate("h200", KERNEL.edited(shared_memory=400_000))),
        (1.5, lambda: Program([Graph([Launch(KERNEL, at_ns=1.5)])])),
        ("seen", lambda: Program([wavesim.Wait("seen")])),
        ("h300", lambda: wavesim.device("h300")),
        (200, lambda: wavesim.simulate("h200", KERNEL, first_sms=[200])),
    ],
)
def test_the_value_of_an_error_is_what_was_given_whoever_refused_it(value, refused):
    with pytest.raises(InvalidInput) as caught:
        refused()
    assert (caught.value.value, type(caught.value.value)) == (value, type(value))


def test_all_errors_have_one_root_and_bad_values_are_value_errors():
    assert issubclass(CannotLaunch, InvalidInput)
    assert issubclass(InvalidInput, ValueError)
    for error in (InvalidInput, CannotLaunch, Deadlock):
        assert issubclass(error, WavesimError)


def test_an_ideal_dispatcher_is_never_slower(h200):
    hardware = wavesim.simulate(h200, KERNEL)
    ideal = wavesim.simulate(h200, KERNEL, dispatcher="ideal")
    assert ideal.makespan_ps < hardware.makespan_ps
    assert (ideal.dispatcher, hardware.dispatcher) == ("ideal", "hardware")


def test_other_threads_go_on_while_a_run_is_simulated(h200):
    beats = []
    over = threading.Event()

    def beat():
        while not over.wait(0.001):
            beats.append(None)

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        wavesim.simulate(h200, Kernel(300_000, work=Duration.constant(ns=100)), detail="kernels")
    finally:
        over.set()
        thread.join()
    assert len(beats) > 3


LONG_RUN = """
import sys, wavesim
from wavesim import Access, Chain, Duration, Kernel, Persistent, Streaming, Warps
from wavesim.streaming import Array
from wavesim.warps import Arithmetic, Loop
kernel = {kernel}
print("started", flush=True)
try:
    wavesim.simulate("h200", kernel, detail="kernels", issue="{issue}")
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(0)
"""


SHORT = "Duration.constant(ns=100)"


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize(
    ("kernel", "issue"),
    [
        (f"Kernel(2_000_000_000, work={SHORT})", "rates"),
        (f"Kernel(100, work=Persistent(2**31, {SHORT}, 'atomic'))", "rates"),
        (f"Kernel(2**24, work=Chain({SHORT}, {SHORT}))", "rates"),
        ("Kernel(1, 32, work=Access.chase(2**30, 2**40))", "rates"),
        ("Kernel(1_056, work=Streaming(2**37, Array(4), Array(4, 1)))", "rates"),
        ("Kernel(9, work=Warps([Loop(2**30, [Arithmetic(999)])]))", "exact"),
    ],
    ids=["ctas", "tasks", "chain", "chase", "stream", "cycles"],
)
def test_ctrl_c_stops_a_run_that_would_take_minutes(kernel, issue):
    with subprocess.Popen(
        [sys.executable, "-c", LONG_RUN.format(kernel=kernel, issue=issue)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        time.sleep(0.5)  # the run has begun: even if it has not, the interrupt must be noticed
        process.send_signal(signal.SIGINT)
        try:
            output, _ = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert output == "interrupted\n"
    assert process.returncode == 0


def test_a_long_program_is_simulated_whole(h200):
    program = Program([Launch(KERNEL.edited(grid=5), stream=i % 8) for i in range(2_000)])
    run = wavesim.simulate(h200, program)
    assert run.kernels.height == 2_000
    assert run.ctas.height == 10_000
