#!/usr/bin/env python3
"""Every construct of the grammar, read and thrown away. This file is input of a parser, not a program."""
from __future__ import annotations

import a.b.c, d as e
from . import f
from ..g import (h as i, j,)
from k import *

x = 1_000 + 0xFF_ff - 0o17 * 0b1010 / 1.5e-3 // .5 % 1e10 ** 2j @ y
x: int = 3
x: list[int]
a, *b = c = 1, 2, 3
(d), [e, *f] = g
x += 1; x -= 1; x *= 2; x /= 2; x //= 2; x %= 2; x **= 2; x @= 2; x &= 1; x |= 1; x ^= 1; x <<= 1; x >>= 1
s = "a" 'b' r"\d" b"\x00" u"c" """triple
quoted "string" """ + rb'\raw' + R'''x'''
t = f"{x!r:>{width}} {y=} {{literal}} {'nested'} {d['k']} {f'{inner}'}" f'{x:{a}.{b}}' rf"\d{x}"
u = f'{lambda_ if x != 1 else (lambda: 3)()}' f"{x:%Y-%m-%d}" f"{x}" "plain" f"\N{BULLET} {x}"
v = not a and b or c if d else e
w = a < b <= c != d == e is f is not g in h not in i
z = ~a | b ^ c & d << e >> f
k = lambda: 0
k = lambda a, /, b=1, *args, c, d=2, **kw: (a, b)
l = [i for i in range(3) if i if not i for j in k]
m = {i: j for i, j in k}
n = {i for i in j}
o = (i async for i in j)
p = {**a, 'b': 1, **c,}
q = {1, 2, *r}
r = a[1], a[1:2], a[:], a[::2], a[1:2, ..., None, :-1], a[b := 1], a[*c]
call(a, *b, c=1, **d)
call(i for i in j)
call(a, (b := 3), **{})
if (n := len(a)) > 10: pass
assert x, "message"
del a, b[0], c.d
...
print(*a, sep='')
match = case = type = _ = 1
match[0] = match(1, 2)
print(match, case)
type Alias[T: int, *Ts, **P] = list[T]


def plain(): pass


@decorator
@other.deco(1, x=2)
async def coroutine(a: int, b: str = "x", /, c=3, *args: int, d, e: float = 1.0, **kwargs: dict) -> list[int]:
    global x
    await a
    async with a as b, c() as (d, e):
        yield
    async for i in b:
        yield i
    else:
        return
    x = yield
    y = yield a, b
    return await b


def generic[T](x: T) -> T:
    def inner():
        nonlocal x
        yield from x
        return
    raise ValueError("x") from None


class Empty: ...


class Derived(Base, metaclass=Meta, **kw):
    """docstring"""
    field: int = 0

    @property
    def value(self): return self._v

    def method(self):
        for i, (j, *k) in enumerate(self): continue
        else:
            pass
        while True:
            break
        else: pass
        try:
            a
        except (A, B) as e:
            raise
        except C:
            raise e from None
        else:
            b
        finally:
            c
        try:
            a
        except* D as group:
            pass
        with a: b
        with (a as b, c as d,):
            pass
        with (a): pass
        with (a, b) as c: pass
        with (yield): pass
        with open(a) as f, (b) as g: pass
        if a: b
        elif c:
            d
        else:
            e


match command.split():
    case []:
        pass
    case [x]:
        pass
    case [x, y, *rest] if x > 0:
        pass
    case {"k": v, "l": [1, 2], **rest}:
        pass
    case Point(x=0, y=0) | Point(1):
        pass
    case -1 | 1.5 | 1 + 2j | "s" "t" | None | True:
        pass
    case (a.b.c as d):
        pass
    case (1, 2), [3]:
        pass
    case _:
        pass

for x in *a, b: pass
for x, in y: pass
for x.y, z[0] in w: pass
if __name__ == "__main__":
    import argparse
    parser = argparse.ArgumentParser(); parser.add_argument('--n', type=int, default=1)
