"""Results of functions as entries: memoize and memoize_stampede."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
import math
import pickle
import random
import struct
import threading
import time
import types
from typing import Any, Callable, Optional, Sequence, TypeVar, Union, cast

from ._errors import ClosedError
from ._keys import Key, encode
from ._store import Options, Store
from ._values import Values, kind_of

F = TypeVar("F", bound=Callable[..., Any])
Tags = Union[None, str, Sequence[str]]
#: How long the function took, and when its result expires: seconds, behind the letter of the value.
_TIMES = struct.Struct("<dd")
_LONGEST = 512
_MISSING = object()


async def _on_thread(function: Callable[..., Any], *args: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, functools.partial(function, *args))


def _argument(value: Any, typed: bool) -> bytes:
    """An argument as bytes that no other argument has."""
    if isinstance(value, bool) or value is None or isinstance(value, float):
        # As dict keys: 1.0 is 1, and True is 1, unless types are distinguished from each other.
        if not typed and value is not None and math.isfinite(value) and value == int(value):
            return encode(int(value))
        return b"v" + type(value).__name__.encode() + b":" + repr(value).encode()
    if isinstance(value, (list, tuple)):
        parts = [_argument(part, typed) for part in value]
        letter = b"l" if isinstance(value, list) else b"t"
        return letter + b"".join(b"%d:%s" % (len(part), part) for part in parts)
    if isinstance(value, dict):
        pairs = sorted((_argument(name, typed), _argument(part, typed)) for name, part in value.items())
        return b"d" + b"".join(b"%d:%s%d:%s" % (len(a), a, len(b), b) for a, b in pairs)
    try:
        return encode(value)
    except TypeError:
        raise TypeError(
            f"an argument of type {type(value).__name__} cannot be part of a key: ignore it, or convert it"
        ) from None


class Functions:
    """The part of ``Cache`` that remembers what functions returned."""

    _store: Store
    _values: Values
    _options_for: Callable[..., Options]

    def memoize(
        self, name: Optional[str] = None, typed: bool = False, expire: Optional[float] = None, tag: Tags = None,
        ignore: Sequence[Union[int, str]] = (),
    ) -> Callable[[F], F]:
        """A decorator: the function runs once for arguments, and its result is an entry. It comes back as it was
        stored, the first time, too: a tuple as a list, with JSON. Of an ``async def`` the result is what it returns, and
        the event loop does not wait for the cache; calls at the same time each run the function.

        :param name: in the keys, instead of the function's module and name.
        :param typed: True: ``f(1)``, ``f(1.0)`` and ``f(True)`` are different calls.
        :param expire: seconds until a result expires.
        :param ignore: places and names of arguments that do not matter.
        """

        if callable(name):
            raise TypeError("name is not callable: write @cache.memoize()")

        def decorate(function: F) -> F:
            base = _base(function, name)

            def stored(key: bytes) -> Any:
                found = self._store.read(key)
                return _MISSING if found is None else self._values.decode(kind_of(found[0]), found[1])

            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                key = encode(_key(base, args, kwargs, typed, ignore))
                result = stored(key)
                if result is _MISSING:
                    result = self._keep(key, function(*args, **kwargs), expire, tag, b"")
                return result

            @functools.wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                key = encode(_key(base, args, kwargs, typed, ignore))
                result = await _on_thread(stored, key)
                if result is _MISSING:
                    result = await _on_thread(self._keep, key, await function(*args, **kwargs), expire, tag, b"")
                return result

            made: Any = call_async if inspect.iscoroutinefunction(function) else call
            made.__cache_key__ = lambda *args, **kwargs: _key(base, args, kwargs, typed, ignore)
            return cast(F, made)

        return decorate

    def memoize_stampede(
        self, expire: float, name: Optional[str] = None, typed: bool = False, tag: Tags = None, beta: float = 1,
        ignore: Sequence[Union[int, str]] = (),
    ) -> Callable[[F], F]:
        """As `memoize`, and a result is computed again before it expires, by one of the callers and in a thread: the
        sooner the longer the function takes (Vattani et al., Optimal Probabilistic Cache Stampede Prevention, 2015).

        :param expire: seconds until a result expires.
        :param beta: greater than 1: earlier; less: later.
        """

        def decorate(function: F) -> F:
            if inspect.iscoroutinefunction(function):
                raise TypeError("memoize_stampede computes again in a thread, where no event loop runs: use memoize")
            base = _base(function, name)

            def compute(key: bytes, args: Any, kwargs: Any) -> Any:
                began = time.monotonic()
                result = function(*args, **kwargs)
                times = _TIMES.pack(time.monotonic() - began, time.time() + expire)
                return self._keep(key, result, expire, tag, times)

            def refresh(key: bytes, args: Any, kwargs: Any) -> None:
                # A fresh entry under this key says that someone is at it. It is not the encoding of a key.
                guard = b"\0refresh" + key
                try:
                    if self._store.put_if_absent(guard, b"", Options(b"b", max(1.0, expire))):
                        try:
                            compute(key, args, kwargs)
                        finally:
                            self._store.remove(guard)
                except ClosedError:
                    pass  # The cache was closed meanwhile.

            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                key = encode(_key(base, args, kwargs, typed, ignore))
                found = self._store.read(key)
                if found is None:
                    return compute(key, args, kwargs)
                metadata, body = found
                if len(metadata) == 1 + _TIMES.size:
                    took, expires = _TIMES.unpack_from(metadata, 1)
                    if time.time() - took * beta * math.log(1 - random.random()) >= expires:
                        threading.Thread(target=refresh, args=(key, args, kwargs), daemon=True).start()
                return self._values.decode(kind_of(metadata), body)

            call.__cache_key__ = lambda *args, **kwargs: _key(base, args, kwargs, typed, ignore)  # type: ignore
            return call  # type: ignore[return-value]

        return decorate

    def _keep(self, key: bytes, result: Any, expire: Optional[float], tag: Tags, extra: bytes) -> Any:
        kind, body = self._values.encode(result)
        self._store.put(key, body, self._options_for(kind, expire, tag, extra))
        return self._values.decode(kind, bytes(body))


def _base(function: Any, name: Optional[str]) -> bytes:
    if name is not None:
        return name.encode("utf-8")
    full = f"{function.__module__}.{function.__qualname__}"
    # Many functions may have such a name: lambdas, those within others, those of scripts.
    if "<" in full or function.__module__ == "__main__":
        full += ":" + _fingerprint(function)
    return full.encode("utf-8")


def _fingerprint(function: Any) -> str:
    """What a function does, as far as this is known: its code, its defaults, and the values that it captured."""
    digest = hashlib.sha256()

    def add(*values: Any) -> None:
        for value in values:
            try:
                data = pickle.dumps(value, protocol=4)
            except Exception:  # pickle raises what the value's methods raise.
                data = type(value).__qualname__.encode("utf-8")
            digest.update(b"%d:" % len(data) + data)

    def add_code(code: Any) -> None:
        add(code.co_code, code.co_names, code.co_varnames)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                add_code(constant)
            else:
                add(constant)

    function = inspect.unwrap(function)
    if isinstance(function, types.FunctionType):
        add_code(function.__code__)
        add(*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items()))
        for cell in function.__closure__ or ():
            try:
                add(cell.cell_contents)
            except ValueError:
                add(None)  # Not set yet: a function that calls itself.
    return digest.hexdigest()[:32]


def _key(base: bytes, args: Any, kwargs: Any, typed: bool, ignore: Sequence[Union[int, str]]) -> Key:
    """The key of a call, which ``__cache_key__`` returns: ``del cache[function.__cache_key__(1)]`` forgets a result."""
    places = [(_argument(value, typed)) for index, value in enumerate(args) if index not in ignore]
    names = sorted((name, _argument(value, typed)) for name, value in kwargs.items() if name not in ignore)
    parts = [base, *places, b"*"]
    for word, argument in names:
        parts += [word.encode("utf-8"), argument]
    key = b"".join(b"%d:%s" % (len(part), part) for part in parts)
    return ("memoize", key if len(key) <= _LONGEST else hashlib.sha256(key).digest())
