"""Tests the threads of the package: one OpenMP runtime, fork, the GIL, and pools of the caller."""
import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import bsmm
import numpy as np
import pytest

X = np.random.default_rng(3).standard_normal((256, 512), np.float32)


def work(_=None):
    return bsmm.matmul(X, bsmm.quantize(X, "mxfp4"), threads=4).tobytes()


def test_no_openmp_runtime_enters_the_process():
    code = ("import bsmm, numpy as np; x = np.ones((512, 512), np.float32); bsmm.matmul(x, x, threads=4);"
            "print(any('gomp' in l or 'omp.so' in l for l in open('/proc/self/maps') if 'numpy' not in l))")
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def test_child_after_fork_works():
    expected = work()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, b"same" if work() == expected else b"other")
        os._exit(0)
    os.close(write)
    assert os.read(read, 16) == b"same"
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_processes(method):
    expected = work()
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map_async(work, range(4), chunksize=1).get(timeout=60) == [expected] * 4


def test_fork_while_another_thread_multiplies():
    expected, stop = work(), threading.Event()

    def repeat():
        while not stop.is_set():
            work()

    busy = threading.Thread(target=repeat)
    busy.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                os._exit(0 if work() == expected else 1)
            deadline = time.monotonic() + 20
            while (done := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
                time.sleep(0.005)
            if done[0] == 0:
                os.kill(child, 9)
                os.waitpid(child, 0)
            assert done[0] == child and done[1] == 0
    finally:
        stop.set()
        busy.join()


def test_fork_between_tasks_of_other_threads():
    """Tests that fork copies no lock of the pool that another thread holds. Threads that call the
    library for little work take the locks often."""
    whole = np.ones((64, 64), np.float32)
    q, stop = bsmm.quantize(whole, "mxfp8"), threading.Event()

    def repeat():
        while not stop.is_set():
            bsmm.compare(whole, q, threads=4)

    busy = [threading.Thread(target=repeat) for _ in range(3)]
    for thread in busy:
        thread.start()
    try:
        for _ in range(200):
            child = os.fork()
            if child == 0:
                signal.alarm(30)  # The signal ends a child that waits for ever.
                bsmm.compare(whole, q, threads=4)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in busy:
            thread.join()


def test_the_gil_is_free_during_a_product():
    """Tests that a product releases the GIL. Otherwise this thread could not count while the
    product runs in the other thread."""
    w = np.ones((2048, 2048), np.float32)
    counts, done = [0], threading.Event()

    def product():
        bsmm.matmul(w, w, threads=1)
        done.set()

    thread = threading.Thread(target=product)
    thread.start()
    while not done.is_set():
        counts[0] += 1
        time.sleep(0.0005)
    thread.join()
    assert counts[0] > 3


def test_pool_of_the_caller():
    task_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)
    run_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, task_type, ctypes.c_void_p, ctypes.c_size_t)
    calls = []

    def run(context, task, tasks, count):
        calls.append((context, count))
        for index in range(count):
            task(tasks, index)

    expected, callback = work(), run_type(run)
    bsmm.use_pool(ctypes.cast(callback, ctypes.c_void_p).value, 7)
    try:
        assert work() == expected
    finally:
        bsmm.use_pool(None)
    assert calls and all(context == 7 and count <= 4 for context, count in calls)


def test_results_do_not_depend_on_threads():
    bsmm.set_threads(1)
    try:
        assert bsmm.matmul(X, X).tobytes() == bsmm.matmul(X, X, threads=5).tobytes()
    finally:
        bsmm.set_threads(0)
    with pytest.raises(ValueError, match="count: value is -1"):
        bsmm.set_threads(-1)
