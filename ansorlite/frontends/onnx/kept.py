"""Models that were loaded before, from the cache: nothing is parsed, folded or cut into tasks again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ansorlite import lazy
from ansorlite.cache import disk as caches
from ansorlite.cache.disk import default_cache
from ansorlite.frontends.onnx.file import File, Source
from ansorlite.graph import stored
from ansorlite.graph.model import Model
from ansorlite.target import Target, resolve

if TYPE_CHECKING:
    from ansorlite.frontends.onnx import loading
    from ansorlite.graph.dimensions import Dim, Sizes
    from ansorlite.graph.hybrid import AnyModel
    from ansorlite.graph.open_model import OpenModel
else:
    # A model that comes from the cache does without what reads models.
    loading = lazy.module("ansorlite.frontends.onnx.loading")

#: By this key a tensor names the other file that its data are in. A model that has the word anywhere is not kept, as the bytes
#: of its own file do not say all of it.
_EXTERNAL: Final = b"location"


def load_kept(
    source: Source,
    shapes: Mapping[str, Sequence[Dim]] | None = None,
    dims: Mapping[str, Sizes] | None = None,
    target: str | Target = "llvm",
    *,
    blocked: bool = True,
    precision: str = "float32",
) -> AnyModel | OpenModel:
    """As :func:`ansorlite.frontends.onnx.load_any`; a model that is native from end to end and has no open dimension is
    remembered by the bytes of its file.

    Raises:
        ModelError, ArgumentError, TargetError: as for that function.
    """
    if not isinstance(source, bytes | str | os.PathLike):
        return loading.load_any(source, shapes, dims, target, blocked=blocked, precision=precision)
    machine, file, cache = resolve(target), File.of(source), default_cache()
    # SHA-1 is twice as fast as others, and nobody gains by two models of his own that are taken for each other.
    digest = hashlib.sha1(file.data, usedforsecurity=False).hexdigest()
    fixed = {name: tuple(shape) for name, shape in (shapes or {}).items()}
    key = caches.key("model", digest, fixed, dict(dims or {}), machine, blocked, precision)
    parts = cache.get_parts(key)
    known = None if parts is None else stored.loads(parts, machine)
    if known is not None:
        return known
    model = loading.load_any(file, shapes, dims, machine, blocked=blocked, precision=precision)
    if isinstance(model, Model) and _EXTERNAL not in file.data:
        with suppress(stored.NotStorableError):  # it is imported anew each time
            cache.put_parts(key, stored.dumps(model))
    return model
