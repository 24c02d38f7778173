"""The jobs that scripts/peers compares."""
import importlib.util
import math
import pathlib
import sys

import torch
import torch.nn.functional as F
from comparison import ROOT, Item, expect_close

BLOCKS = [(128, 256, 64, 8, 3), (128, 128, 64, 4, 3)]  # of Triton's matmul: M, N, K, warps, stages


class Job:
    """`entries`: kernels of std.tilert, to be compiled early, with the lowerings that are measured (None: all)."""
    entries = ()
    families = None

    def of(self, machine):
        return [f for f in machine.runtimes if machine.cpu or self.families is None or f in self.families]

    def start(self, machine, report):
        for family in self.of(machine):
            for entry in self.entries:
                try:
                    machine.kernel(family, entry, wait=False)
                except Exception as error:
                    report.failed(f"{self.name}: {entry} {family}", error)


def triton_kernel(args, file, name):
    """From the folder given, else our own; None on the CPU."""
    if args.device == "cpu":
        return None
    path = pathlib.Path(args.listings) / file if args.listings else pathlib.Path(__file__).with_name("triton_kernels.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return getattr(module, name)


class Add(Job):
    families = ("hopper",)

    def __init__(self, dtype, count):
        self.name, self.dtype, self.count = f"add {dtype}", dtype, count
        self.entries = [f"add_{'f32' if dtype == 'float32' else 'bf16'}"]

    def run(self, machine, report, args):
        dtype = getattr(torch, self.dtype)
        x, y = machine.random(self.count, dtype=dtype), machine.random(self.count, dtype=dtype)
        z, expected = torch.empty_like(x), x + y

        def right():
            if not torch.equal(z, expected):
                raise ValueError("a sum is wrong")
        item = Item(machine, report, "add", self.dtype, str(self.count), "row", bytes=3 * x.nbytes)
        for family in self.of(machine):
            item.our(family, "", lambda: machine.call(machine.kernel(family, self.entries[0]), [x, y, z]), [z], right)
        item.peer("torch", lambda: lambda: torch.add(x, y, out=z), [z], right)
        kernel = triton_kernel(args, "triton_add.py", "add_kernel")
        for block, warps in ((1024, 4), (4096, 8)) if kernel else ():
            def run(block=block, warps=warps):
                kernel[(-(-self.count // block),)](x, y, z, self.count, BLOCK_SIZE=block, num_warps=warps)
            item.peer("Triton", lambda: run, [z], right, str(block))
        item.compare(args.repeats)


def strided_gemm(machine, family, a, b, c):
    """C = A · B of matrices with any strides of which one is 1, by the kernel for their orders."""
    if c.stride(1) != 1:
        a, b, c = b.t(), a.t(), c.t()
    orders = ""
    operands = []
    for operand in (a, b):
        transposed = operand.stride(1) != 1
        orders += "t" if transposed else "n"
        operands.append(operand.t() if transposed else operand)
    if any(t.stride(1) != 1 for t in (*operands, c)):
        raise ValueError("neither rows nor columns are dense")
    return machine.call(machine.kernel(family, f"gemm_strided_{orders}_bf16"), [*operands, c])


class Matmul(Job):
    """`views`: of A, B and C, a letter each: n row-major, t column-major, p rows padded to a multiple of 16 bytes, u unaligned rows."""
    families = ("hopper",)

    def __init__(self, m, n, k, views):
        self.name, self.sizes, self.views = f"matmul {m}x{n}x{k} {views}", (m, n, k), views
        if views[2] == "t":
            orders = "".join("n" if v == "t" else "t" for v in (views[1], views[0]))
        else:
            orders = "".join("t" if v == "t" else "n" for v in views[:2])
        self.entries = [f"gemm_strided_{orders}_bf16"]

    @staticmethod
    def matrix(machine, rows, columns, view):
        if view == "t":
            return machine.random(columns, rows).t()
        pad = {"n": 0, "p": 64, "u": 3}[view]
        return machine.random(rows, columns + pad)[:, :columns]

    def run(self, machine, report, args):
        m, n, k = self.sizes
        a, b, c = (self.matrix(machine, *of) for of in ((m, k, self.views[0]), (k, n, self.views[1]), (m, n, self.views[2])))
        rows = torch.randperm(m, device=machine.device)[:64]
        expected = a[rows].double() @ b.double()

        def right():
            expect_close("C", c[rows], expected)
            if c.isnan().any():
                raise ValueError("part of C was not written")
        item = Item(machine, report, "matmul", "bf16", f"{m}x{n}x{k}", self.views, 2.0 * m * n * k, 2.0 * (m * k + k * n + m * n))
        for family in self.of(machine):
            item.our(family, "", lambda: strided_gemm(machine, family, a, b, c), [c], right)
        item.peer("torch", lambda: lambda: torch.matmul(a, b, out=c), [c], right)
        kernel = triton_kernel(args, "triton_matmul.py", "matmul_kernel")
        for bm, bn, bk, warps, stages in BLOCKS if kernel else ():
            def run(bm=bm, bn=bn, bk=bk, warps=warps, stages=stages):
                kernel[(-(-m // bm), -(-n // bn))](a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk,
                                                   num_warps=warps, num_stages=stages)
            item.peer("Triton", lambda: run, [c], right, f"{bm}x{bn}x{bk}")
        item.compare(args.repeats)


class AttentionProblem:
    """Tensors (batch, sequence, heads, dim); what torch wants is a view. Expected values of some heads, in float64."""

    def __init__(self, machine, dim, causal):
        self.batch, self.heads, self.seq, self.dim, self.causal = (1, 2, 80, dim, causal) if machine.cpu else (4, 16, 4096, dim, causal)
        self.q, self.k, self.v, self.d_o = (machine.random(self.batch, self.seq, self.heads, dim) for _ in range(4))
        self.shape = f"{self.batch}x{self.heads}x{self.seq}x{dim}"
        self.flop = 4.0 * self.batch * self.heads * self.seq * self.seq * dim * (0.5 if causal else 1)
        self.sample = [(0, 0), (self.batch - 1, self.heads - 1)]
        self.expected = [self.reference(*at) for at in self.sample]

    def reference(self, b, h):
        q, k, v, d_o = (t[b, :, h].double() for t in (self.q, self.k, self.v, self.d_o))
        scores = q @ k.t() / math.sqrt(self.dim)
        if self.causal:
            scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu_(1), -math.inf)
        weights = scores.softmax(1)
        o = weights @ v
        d_scores = weights * (d_o @ v.t() - (d_o * o).sum(1, keepdim=True)) / math.sqrt(self.dim)
        return {"O": o, "lse": scores.logsumexp(1), "dQ": d_scores @ k, "dK": d_scores.t() @ q, "dV": weights.t() @ d_o}

    def expect(self, **actual):
        for (b, h), expected in zip(self.sample, self.expected):
            for name, t in actual.items():
                part = t[b, h] if name == "lse" else t[b, :, h]
                expect_close(f"{name} of head {h}", part, expected[name], 1e-4 if name == "lse" else 1e-2)

    def for_torch(self):
        return [t.transpose(1, 2) for t in (self.q, self.k, self.v)]


def backends(machine):
    from torch.nn.attention import SDPBackend
    if machine.cpu:
        return {"torch math": SDPBackend.MATH}
    return {"torch flash": SDPBackend.FLASH_ATTENTION, "torch cuDNN": SDPBackend.CUDNN_ATTENTION}


class Attention(Job):
    def __init__(self, dim, causal):
        self.dim, self.causal = dim, causal
        self.name = f"attention{'_causal' if causal else ''} d{dim}"
        self.entries = [f"attention_{'causal_' if causal else ''}d{dim}_bf16"]

    def ours(self, machine, item, p, o):
        for family in self.of(machine):
            item.our(family, "", lambda: machine.call(machine.kernel(family, self.entries[0]), [p.q, p.k, p.v, o]), [o], lambda: p.expect(O=o))

    def run(self, machine, report, args):
        from torch.nn.attention import sdpa_kernel
        p = AttentionProblem(machine, self.dim, self.causal)
        o = torch.empty_like(p.q)
        item = Item(machine, report, "attention_causal" if self.causal else "attention", "bf16", p.shape, "bshd", p.flop, 4.0 * p.q.nbytes)
        self.ours(machine, item, p, o)
        kept = {}
        for name, backend in backends(machine).items():
            def forward(name=name, backend=backend):
                with torch.no_grad(), sdpa_kernel(backend):
                    kept[name] = F.scaled_dot_product_attention(*p.for_torch(), is_causal=self.causal)
            item.peer(name, lambda: forward, [], lambda: p.expect(O=kept[name].transpose(1, 2)))
        item.compare(args.repeats)


class AttentionTiles(Attention):
    """One program with other numbers of rows a block, 32 a warp."""
    families = ("ampere",)
    rows = (64, 128, 256)

    def __init__(self, dim, causal):
        super().__init__(dim, causal)
        self.name, self.entries = self.name + " tiles", ()

    def start(self, machine, report):
        self.bundles = {}
        for block in self.rows:
            try:
                settings = {"dtype": "bfloat16", "head_dim": self.dim, "causal": str(self.causal).lower(), "block_M": block, "block_N": 64,
                            "threads": block, "slack": 8, "longest_first": 1}
                self.bundles[block] = machine.compile("attention.py", "attention", settings)
                for family in self.of(machine):
                    machine.kernel(family, "attention", self.bundles[block], wait=False)
            except Exception as error:
                report.failed(f"{self.name}: block_M={block}", error)

    def ours(self, machine, item, p, o):
        for family in self.of(machine):
            for block, bundle in self.bundles.items():
                item.our(family, f"block_M={block}", lambda: machine.call(machine.kernel(family, "attention", bundle), [p.q, p.k, p.v, o]), [o],
                         lambda: p.expect(O=o))


class AttentionBackward(Job):
    """With std.tilert's tiles, and with others: (block_M, block_N, threads)."""

    def __init__(self, dim, causal, families, tiles=()):
        mask = "causal_" if causal else ""
        self.dim, self.causal, self.families, self.tiles = dim, causal, families, tiles
        self.name = f"attention_backward{'_causal' if causal else ''} d{dim} {','.join(families)}"
        self.entries = [f"attention_{kind}_{mask}d{dim}_bf16" for kind in ("lse", "backward")]

    def start(self, machine, report):
        super().start(machine, report)
        self.bundles = {}
        for rows, columns, threads in self.tiles:
            name = f"{rows}x{columns} of {threads} threads"
            try:
                settings = {"dtype": "bfloat16", "head_dim": self.dim, "causal": str(self.causal).lower(), "block_M": rows, "block_N": columns,
                            "threads": threads, "shared_weights": 1, "longest_first": 1}
                self.bundles[name] = machine.compile("attention_backward.py", "attention_backward", settings)
                for family in self.of(machine):
                    machine.kernel(family, "attention_backward", self.bundles[name], wait=False)
            except Exception as error:
                report.failed(f"{self.name}: {name}", error)

    def run(self, machine, report, args):
        p = AttentionProblem(machine, self.dim, self.causal)
        o, lse = torch.empty_like(p.q), torch.empty(p.batch, p.heads, p.seq, device=machine.device)
        grads = [torch.empty_like(p.q) for _ in range(3)]
        item = Item(machine, report, "attention_backward_causal" if self.causal else "attention_backward", "bf16", p.shape, "bshd", 2.5 * p.flop,
                    8.0 * p.q.nbytes)

        def ours(family, entry, bundle=None):
            machine.call(machine.kernel(family, self.entries[0]), [p.q, p.k, p.v, o, lse])()
            machine.synchronize()
            p.expect(O=o, lse=lse)
            return machine.call(machine.kernel(family, entry, bundle), [p.q, p.k, p.v, o, p.d_o, lse, *grads])

        def right():
            p.expect(dQ=grads[0], dK=grads[1], dV=grads[2])
        for family in self.of(machine):
            item.our(family, "", lambda: ours(family, self.entries[1]), grads, right)
            for name, bundle in self.bundles.items():
                item.our(family, name, lambda: ours(family, "attention_backward", bundle), grads, right)
        for name, backend in backends(machine).items():
            self.torch_peer(machine, item, p, name, backend)
        item.compare(args.repeats)

    def torch_peer(self, machine, item, p, name, backend):
        from torch.nn.attention import sdpa_kernel
        kept = []

        def make():
            inputs = [t.detach().requires_grad_() for t in p.for_torch()]
            with sdpa_kernel(backend):
                o = F.scaled_dot_product_attention(*inputs, is_causal=self.causal)
            d_o = p.d_o.transpose(1, 2)

            def run():
                kept[:] = torch.autograd.grad(o, inputs, d_o, retain_graph=True)
            return run
        item.peer(name, make, [], lambda: p.expect(**dict(zip(("dQ", "dK", "dV"), (g.transpose(1, 2) for g in kept)))))


class Rows(Job):
    families = ("hopper",)

    def __init__(self, bench):
        self.name, self.bench, self.entries = bench, bench, [f"{bench}_bf16"]

    def run(self, machine, report, args):
        m, n = (6, 100) if machine.cpu else (16384, 8192)
        x, weight = machine.random(m, n), machine.random(n)
        y, copied = torch.empty_like(x), torch.empty_like(x)
        rows = x[:64].double()
        if self.bench == "softmax":
            inputs, expected = [x], rows.softmax(1)
        else:
            inputs, expected = [x, weight], rows * (rows.square().mean(1, keepdim=True) + 1e-6).rsqrt() * weight.double()
        item = Item(machine, report, self.bench, "bf16", f"{m}x{n}", "row", bytes=2 * x.nbytes)
        for family in self.of(machine):
            item.our(family, "", lambda: machine.call(machine.kernel(family, self.entries[0]), [*inputs, y]), [y],
                     lambda: expect_close("Y", y[:64], expected))
        item.peer("torch copy", lambda: lambda: copied.copy_(x), [copied], lambda: expect_close("the copy", copied, x, 0))
        item.compare(args.repeats)


def jobs(args, machine):
    """What could harm the context of all others comes last."""
    small = machine.cpu
    n = 40 if small else 4096
    tiles = {128: [(48, 128, 256), (64, 64, 128)], 64: [(96, 128, 256), (64, 64, 128)]}
    found = [Attention(dim, causal) for dim in (128, 64) for causal in (False, True)]
    found += [Add("float32", 5000 if small else 1 << 26), Add("bfloat16", 5000 if small else 1 << 27)]
    found += [AttentionTiles(128, causal) for causal in (False, True)]
    found += [AttentionBackward(dim, causal, ("ampere",), tiles[dim]) for dim in (128, 64) for causal in (False, True)]
    found += [Matmul(*([48] * 3 if small else [size] * 3), "nnn") for size in (4096, 8192, 2048)]
    found += [Matmul(n, n, n, views) for views in ("ppp", "tnn", "ntn", "nnt", "unn")]
    found += [Rows("softmax"), Rows("rms_norm")]
    if not small:
        found += [AttentionBackward(dim, causal, ("hopper",)) for dim in (128, 64) for causal in (False, True)]
    return found
