"""Counting where it costs next to nothing: plain numbers under one lock, which the exporter comes to read.

An instrument of the SDK takes 10 µs for each measurement, and a call has several (docs/adr/0014-telemetry.md).
"""

import threading
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
)

#: Attributes of one series, as sorted pairs.
Series = tuple[tuple[str, str], ...]


@lru_cache(maxsize=1024)
def series(**attributes: str) -> Series:
    """The attributes of one series; a name's `__` stands for a dot, and a trailing `_` is left out."""
    return tuple(sorted((name.rstrip("_").replace("__", "."), value) for name, value in attributes.items()))


class Counter:
    """Sums by series. Only ever up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[Series, int] = {}

    def add(self, amount: int, of: Series = ()) -> None:
        """Count; nothing too, so that a series is there before the first of its kind."""
        with self._lock:
            self._sums[of] = self._sums.get(of, 0) + amount

    def read(self) -> dict[Series, int]:
        """The sums as they stand."""
        with self._lock:
            return dict(self._sums)


class Gauge:
    """The last value by series."""

    def __init__(self) -> None:
        self._values: dict[Series, int] = {}

    def set(self, value: int, of: Series = ()) -> None:
        """This is how it is now."""
        self._values[of] = value

    def read(self) -> dict[Series, int]:
        """The values as they stand."""
        return dict(self._values)


@dataclass(slots=True)
class _Buckets:
    """One series of a histogram."""

    counts: list[int]
    sum: float = 0.0
    least: float = float("inf")
    most: float = float("-inf")


@dataclass(slots=True)
class Distribution:
    """A histogram, cumulative from its making on."""

    name: str
    unit: str
    description: str
    bounds: Sequence[float]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _series: dict[Series, _Buckets] = field(default_factory=dict)
    _since: int = field(default_factory=time.time_ns)

    def record(self, value: float, of: Series = ()) -> None:
        """Measure."""
        with self._lock:
            buckets = self._series.get(of)
            if buckets is None:
                buckets = self._series[of] = _Buckets([0] * (len(self.bounds) + 1))
            buckets.counts[bisect_left(self.bounds, value)] += 1
            buckets.sum += value
            buckets.least = min(buckets.least, value)
            buckets.most = max(buckets.most, value)

    def read(self) -> Metric | None:
        """As the SDK's exporters take it; None while there is nothing."""
        with self._lock:
            points = [self._point(of, buckets) for of, buckets in self._series.items()]
        if not points:
            return None
        return Metric(self.name, self.description, self.unit, Histogram(points, AggregationTemporality.CUMULATIVE))

    def _point(self, of: Series, buckets: _Buckets) -> HistogramDataPoint:
        return HistogramDataPoint(
            attributes=dict(of),
            start_time_unix_nano=self._since,
            time_unix_nano=time.time_ns(),
            count=sum(buckets.counts),
            sum=buckets.sum,
            bucket_counts=tuple(buckets.counts),
            explicit_bounds=tuple(self.bounds),
            min=buckets.least,
            max=buckets.most,
        )
