"""What the comparisons of scripts/peers run on and write to: the device with its clock, the report, and one comparison."""
import datetime
import json
import math
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

import tilert_abi as abi
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOLERANCE = 1e-2  # of the largest element, for results that were rounded to 16 bits on the way
ITEM_SECONDS = 3.0  # enough rounds, even if fewer than asked for
LEAST_ROUNDS = 5


def tensor(t):
    return abi.Tensor(t.data_ptr(), str(t.dtype).removeprefix("torch."), tuple(t.shape), None if t.is_contiguous() else t.stride())


class Machine:
    """The device, the library on it, and the clock."""

    def __init__(self, args):
        self.cpu = args.device == "cpu"
        self.device = torch.device(args.device)
        self.pack = pathlib.Path(args.pack)
        torch.manual_seed(1)
        if not self.cpu:
            torch.zeros(1, device=self.device)  # makes the context
            self.dirty, self.clean = (torch.zeros(1 << 26, device=self.device) for _ in range(2))  # 256 MiB each
        self.library = abi.Library(args.library or str(self.pack / "libtilert.so"))
        self.std = self.library.bundle(args.bundle or self.pack / "std.tilert")
        self.tool = args.tool or str(self.pack / "tilert")
        families = ["cpu"] if self.cpu else args.families.split(",")
        cache = tempfile.mkdtemp(prefix="tilert-peers-")
        self.runtimes = {}
        for family in families:
            runtime = self.library.runtime("cpu" if self.cpu else "cuda", None if self.cpu else family, cache, 60000)
            self.runtimes[family] = runtime
        self.kernels = {}

    def kernel(self, family, entry, bundle=None, wait=True):
        """Compiled in the background until it is wanted."""
        key = (family, entry, id(bundle))
        if key not in self.kernels:
            self.kernels[key] = (self.runtimes[family].kernel(bundle or self.std, entry, wait=False), bundle)
        kernel = self.kernels[key][0]
        return kernel.prepare() if wait else kernel

    def compile(self, source, entry, settings):
        """A bundle of one kernel with settings of its own."""
        path = os.path.join(tempfile.mkdtemp(prefix="tilert-peers-"), "one.tilert")
        words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        subprocess.run([self.tool, "compile", str(ROOT / "kernels" / source), "--entry", entry, *words, "-o", path], check=True,
                       capture_output=True, text=True)
        return self.library.bundle(path)

    def call(self, kernel, args):
        def allocate(size):
            memory = torch.empty(size + 256, dtype=torch.uint8, device=self.device)
            return (memory.data_ptr() + 255) // 256 * 256, memory
        stream = 0 if self.cpu else torch.cuda.current_stream().cuda_stream
        packed = [tensor(a) if isinstance(a, torch.Tensor) else a for a in args]
        run = kernel.bind(packed, stream, allocate)
        return lambda _alive=args: run()

    def random(self, *shape, dtype=torch.bfloat16):
        return torch.randn(*shape, device=self.device, dtype=torch.float32).to(dtype)

    def like(self, *others):
        """For results: what is not written stays NaN."""
        return [torch.full_like(other, math.nan) for other in others]

    def synchronize(self):
        if not self.cpu:
            torch.cuda.synchronize()

    def measure(self, run):
        """Queues a timed run; gives a function that, once the device has come to rest, tells the microseconds."""
        if self.cpu:
            start = time.perf_counter()
            run()
            end = time.perf_counter()
            return lambda: (end - start) * 1e6
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(400_000)  # so that launches are queued before their turn comes, slow ones too
        self.dirty.fill_(1.0)
        self.clean.sum()
        start.record()
        run()
        end.record()
        return lambda: start.elapsed_time(end) * 1e3

    def compare(self, candidates, rounds):
        """Microseconds of each candidate, a list in the order of the rounds."""
        began = time.monotonic()
        for run in candidates.values():
            for _ in range(2):
                run()
        self.synchronize()
        times = {name: [] for name in candidates}
        for number in range(rounds):
            if number >= LEAST_ROUNDS and time.monotonic() - began > ITEM_SECONDS:
                break
            for name in random.sample(list(candidates), len(candidates)):
                microseconds = self.measure(candidates[name])
                self.synchronize()
                times[name].append(microseconds())
        return times


class Report:
    def __init__(self, args, machine):
        self.rows, self.failures = [], []
        versions = {"torch": torch.__version__, "cudnn": str(torch.backends.cudnn.version()), "cuda": torch.version.cuda}
        try:
            import triton
            versions["triton"] = triton.__version__
        except ImportError:
            pass
        info = next(iter(machine.runtimes.values())).info()
        gpu = "CPU" if machine.cpu else torch.cuda.get_device_name()
        driver = "" if machine.cpu else subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True,
                                                       text=True).stdout.strip().split("\n")[0]
        packed = machine.pack / "commit"
        commit = packed.read_text().strip() if packed.exists() else subprocess.run(
            ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
        self.meta = {"gpu": gpu, "driver": driver, "nvrtc": str(info["nvrtc_version"]), "commit": commit or "unknown",
                     "date": datetime.date.today().isoformat(), "peers": versions}
        name = re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-")
        self.path = pathlib.Path(args.out) / f"{name}-{self.meta['commit']}-peers.json"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():  # of an earlier process, with other jobs or one that broke off
            earlier = json.loads(self.path.read_text())
            self.rows, self.failures = earlier["results"], earlier["failures"]

    def write(self):
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps({"meta": self.meta, "failures": self.failures, "results": self.rows}, indent=1, ensure_ascii=False) + "\n")
        partial.replace(self.path)

    def failed(self, what, error):
        self.failures.append({"what": what, "error": f"{type(error).__name__}: {error}"[:2000]})
        print(f"FAILED {what}: {error}", file=sys.stderr, flush=True)
        self.write()

    def _put(self, row):
        def key(r):
            return [r.get(name) for name in ("bench", "dtype", "shape", "layout", "family", "schedule")] + r.get("peer", "").split()[:2]
        self.rows = [r for r in self.rows if key(r) != key(row)] + [row]

    def add(self, item, times):
        """A row for each of our candidates and each peer; of peers that are one with several settings, the quickest."""
        peers = {}
        for name in times:
            if name not in item.ours:
                peer = item.peers[name]
                if peer not in peers or statistics.median(times[name]) < statistics.median(times[peers[peer]]):
                    peers[peer] = name
        for name, (family, schedule) in item.ours.items():
            if name not in times:
                continue
            us = statistics.median(times[name])
            row = {"bench": item.bench, "dtype": item.dtype, "shape": item.shape, "layout": item.layout, "family": family, "schedule": schedule,
                   "us": round(us, 2), "tflops": round(item.flop / us / 1e6, 1), "gbs": round(item.bytes / us / 1e3, 1)}
            for peer, key in list(peers.items()) or [(None, None)]:
                more = {}
                if peer:
                    ratios = [theirs / ours for theirs, ours in zip(times[key], times[name])]
                    quartiles = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
                    more = {"peer": key, "peer_us": round(statistics.median(times[key]), 2), "ratio": round(statistics.median(ratios), 3),
                            "ratio_quartiles": [round(quartiles[0], 3), round(quartiles[2], 3)]}
                self._put({**row, **more})
                print(json.dumps(self.rows[-1], ensure_ascii=False), flush=True)
        self.write()


class Item:
    """What is compared. Candidates that fail, or are wrong, are reported and left out."""

    def __init__(self, machine, report, bench, dtype, shape, layout, flop=0.0, bytes=0.0):
        self.machine, self.report = machine, report
        self.bench, self.dtype, self.shape, self.layout, self.flop, self.bytes = bench, dtype, shape, layout, float(flop), float(bytes)
        self.candidates, self.ours, self.peers = {}, {}, {}

    def _try(self, name, make, results, right):
        try:
            run = make()
            for result in results:
                result.fill_(math.nan)
            run()
            self.machine.synchronize()
            right()
            self.candidates[name] = run
            return True
        except Exception as error:  # of any kind: the others must go on
            traceback.print_exc()
            self.report.failed(f"{self.bench} {self.dtype} {self.shape} {self.layout}: {name}", error)
            return False

    def our(self, family, schedule, make, results, right):
        name = f"tilert {family} {schedule}".strip()
        if self._try(name, make, results, right):
            self.ours[name] = (family, schedule)

    def peer(self, peer, make, results, right, setting=""):
        name = f"{peer} {setting}".strip()
        if self._try(name, make, results, right):
            self.peers[name] = peer

    def compare(self, rounds):
        if self.ours:
            self.report.add(self, self.machine.compare(self.candidates, rounds))


def expect_close(what, actual, expected, tolerance=TOLERANCE):
    error = (actual.double() - expected.double()).abs().max().item() if expected.numel() else 0.0
    allowed = tolerance * expected.double().abs().max().item() if expected.numel() else 0.0
    if not error <= allowed:
        raise ValueError(f"{what} is off by {error:.4g}, allowed {allowed:.4g}")
