"""Every metric of the sidecar: its name, its unit, and the one place where it is counted (docs/telemetry.md)."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from sidecar.telemetry.tally import Counter, Distribution, Gauge, Series, series

#: Seconds: from a History out of the cache to a disk that stalls.
SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

#: Bytes of messages: a question, a turn, a full block, what no model takes.
MESSAGE_BYTES: Final = (256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 33_554_432)

#: Bytes of a block, closer around its bound of 24 000.
BLOCK_BYTES: Final = (1_000, 2_000, 4_000, 8_000, 12_000, 16_000, 20_000, 24_000, 26_000, 32_000, 64_000, 256_000)

#: Bytes of a round's user message.
PROMPT_BYTES: Final = (1_000, 2_000, 4_000, 8_000, 16_000, 24_000, 32_000, 48_000, 64_000, 128_000, 256_000, 1_000_000)

#: Jobs of one batch of a store's thread.
JOBS: Final = (1, 2, 4, 8, 16, 32, 64)

#: Seconds of a sweep.
SWEEP_SECONDS: Final = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600)


class Metrics:
    """Counts what happens. From every thread, in about a microsecond each."""

    def __init__(self) -> None:
        self.counters: dict[str, tuple[Counter, str, str]] = {}
        self.gauges: dict[str, tuple[Gauge, str, str]] = {}
        self.distributions: list[Distribution] = []
        self._rpc()
        self._ledger()
        self._store()
        self._upkeep()

    def _rpc(self) -> None:
        self._duration = self._distribution(
            "rpc.server.call.duration", "s", "Calls, from their bytes to their answer's.", SECONDS
        )
        self._request = self._distribution("rpc.server.request.size", "By", "Requests.", MESSAGE_BYTES)
        self._response = self._distribution("rpc.server.response.size", "By", "Answers.", MESSAGE_BYTES)

    def _ledger(self) -> None:
        self._appends = self._counter("turnledger.appends", "{turn}", "Turns that came to be recorded.")
        self._issued = self._counter("turnledger.orders.issued", "{order}", "Orders in answers.")
        self._judged = self._counter("turnledger.orders.judged", "{order}", "Rewrites that came back, by verdict.")
        self._settles = self._counter("turnledger.settles", "{turn}", "Settles, by outcome.")
        self._forgotten = self._counter("turnledger.forgotten", "{turn}", "Turns that were erased.")
        self._histories = self._counter("turnledger.histories", "{history}", "Turns that began, by state.")
        self._entries = self._counter(
            "turnledger.history.entries", "{entry}", "Entries of histories, by what became of them."
        )
        self._history_size = self._distribution(
            "turnledger.history.size", "By", "Blocks, where there is one.", BLOCK_BYTES
        )
        self._prompt_size = self._distribution("turnledger.user_message.size", "By", "Rounds' messages.", PROMPT_BYTES)
        self._prompt_parts = self._counter("turnledger.user_message.parts", "By", "What rounds' messages are made of.")

    def _store(self) -> None:
        self._batch = self._distribution(
            "turnledger.store.batch.size", "{job}", "Jobs that one of the store's threads did together.", JOBS
        )
        self._wait = self._distribution(
            "turnledger.store.wait.duration", "s", "How long the oldest job of a batch had waited.", SECONDS
        )
        self._hold = self._distribution(
            "turnledger.store.hold.duration", "s", "How long a batch held its thread.", SECONDS
        )
        self._commit = self._distribution(
            "db.client.operation.duration", "s", "Commits, the sync of the disk included.", SECONDS
        )
        self._queue = self._gauge("turnledger.store.queue.depth", "{job}", "Jobs that wait for a thread.")
        self._size = self._gauge("turnledger.store.size", "By", "The store's files, and what of them is free.")
        self._rows = self._gauge("turnledger.store.rows", "{row}", "Rows, counted after each sweep.")
        self._disk_free = self._gauge("turnledger.disk.free", "By", "Free on the store's disk.")
        self._disk_size = self._gauge("turnledger.disk.size", "By", "The store's disk.")

    def _upkeep(self) -> None:
        self._sweeps = self._counter("turnledger.sweeps", "{sweep}", "Sweeps, by outcome.")
        self._sweep_duration = self._distribution(
            "turnledger.sweep.duration", "s", "Sweeps that came to their end.", SWEEP_SECONDS
        )
        self._swept = self._counter("turnledger.swept", "{row}", "What sweeps took away.")
        self._reloads = self._counter("turnledger.reloads", "{reload}", "Changed settings files, by outcome.")
        self._health = self._gauge("turnledger.health", "1", "1 for a component that is well, else 0.")

    # --- calls ---

    def called(self, method: str, code: str, reason: str, seconds: float, request: int, response: int) -> None:
        """An RPC is over. `response` is 0 where there was no answer, which then has no size."""
        ended = _call(method, code, reason)
        self._duration.record(seconds, ended)
        self._request.record(request, ended)
        if not reason:
            self._response.record(response, ended)

    # --- services ---

    def appended(self, disposition: str, skip_reason: str | None, orders: Iterable[str]) -> None:
        """An Append was answered; `orders` are the kinds of those in the answer."""
        self._appends.add(1, _disposition(disposition, skip_reason))
        self._orders(orders)

    def judged(self, kind: str, verdict: str) -> None:
        """A rewrite was judged; `kind` is `unknown` for what was no order."""
        self._judged.add(1, series(turnledger__order__kind=kind, turnledger__verdict=verdict))

    def settled(self, outcome: str) -> None:
        """A Settle was answered."""
        self._settles.add(1, series(turnledger__settle__outcome=outcome))

    def forgot(self, turns: int) -> None:
        """So many turns were erased."""
        self._forgotten.add(turns)

    def read_history(self, state: str, size: int, entries: Mapping[str, int], orders: Iterable[str]) -> None:
        """A History was answered: its bytes, and its entries by what became of them."""
        self._histories.add(1, series(turnledger__history__state=state))
        for fate, count in entries.items():
            self._entries.add(count, series(turnledger__entry__fate=fate))
        if size:
            self._history_size.record(size)
        self._orders(orders)

    def composed(self, phase: str, size: int, parts: Mapping[str, int]) -> None:
        """A round's message was composed: its bytes, and those of its parts."""
        self._prompt_size.record(size, series(turnledger__phase=phase))
        for part, count in parts.items():
            self._prompt_parts.add(count, series(turnledger__part=part, turnledger__phase=phase))

    def swept(self, seconds: float, taken: Mapping[str, int]) -> None:
        """A sweep came to its end."""
        self._sweeps.add(1, series(turnledger__sweep__outcome="done"))
        self._sweep_duration.record(seconds)
        for what, count in taken.items():
            self._swept.add(count, series(turnledger__swept=what))

    def sweep_failed(self) -> None:
        """A sweep ended in an error."""
        self._sweeps.add(1, series(turnledger__sweep__outcome="failed"))

    def reloaded(self, outcome: str) -> None:
        """A changed settings file came to something."""
        self._reloads.add(1, series(turnledger__reload__outcome=outcome))

    def health(self, component: str, well: bool) -> None:
        """A component was looked at."""
        self._health.set(int(well), series(turnledger__component=component))

    def rows(self, rows: Mapping[str, int]) -> None:
        """The store was counted."""
        for what, count in rows.items():
            self._rows.set(count, series(turnledger__row=what))

    def sizes(self, parts: Mapping[str, int], disk_free: int, disk_size: int) -> None:
        """Files and disk were looked at."""
        for part, size in parts.items():
            self._size.set(size, series(turnledger__store__part=part))
        self._disk_free.set(disk_free)
        self._disk_size.set(disk_size)

    def queues(self, waiting: Mapping[str, int]) -> None:
        """The store's queues were looked at."""
        for thread, depth in waiting.items():
            self._queue.set(depth, _thread(thread))

    # --- the store's threads ---

    def batch(self, thread: str, jobs: int, waited_s: float, held_s: float) -> None:
        """A thread did a batch."""
        self._batch.record(jobs, _thread(thread))
        self._wait.record(waited_s, _thread(thread))
        self._hold.record(held_s, _thread(thread))

    def committed(self, seconds: float) -> None:
        """A commit is on disk."""
        self._commit.record(seconds, _COMMIT)

    def register(self, meter: Meter, look: Callable[[], None]) -> None:
        """Show counters and gauges to the SDK. `look` is called before gauges are read."""
        for name, (counter, unit, description) in self.counters.items():
            meter.create_observable_counter(name, [_reading(counter.read)], unit, description)
        for name, (gauge, unit, description) in self.gauges.items():
            meter.create_observable_gauge(name, [_reading(gauge.read, look)], unit, description)

    def _orders(self, kinds: Iterable[str]) -> None:
        for kind in kinds:
            self._issued.add(1, series(turnledger__order__kind=kind))

    def _counter(self, name: str, unit: str, description: str) -> Counter:
        counter = Counter()
        self.counters[name] = (counter, unit, description)
        return counter

    def _gauge(self, name: str, unit: str, description: str) -> Gauge:
        gauge = Gauge()
        self.gauges[name] = (gauge, unit, description)
        return gauge

    def _distribution(self, name: str, unit: str, description: str, bounds: tuple[float, ...]) -> Distribution:
        distribution = Distribution(name, unit, description, bounds)
        self.distributions.append(distribution)
        return distribution


_COMMIT: Final = series(db__system__name="sqlite", db__operation__name="COMMIT")


@lru_cache(maxsize=256)
def _call(method: str, code: str, reason: str) -> Series:
    error = {"error__type": code, "turnledger__reason": reason} if reason else {}
    return series(rpc__system__name="grpc", rpc__method=method, rpc__response__status_code=code, **error)


@lru_cache(maxsize=32)
def _disposition(disposition: str, skip_reason: str | None) -> Series:
    because = {"turnledger__skip_reason": skip_reason} if skip_reason else {}
    return series(turnledger__disposition=disposition, **because)


@lru_cache(maxsize=8)
def _thread(name: str) -> Series:
    return series(turnledger__store__thread=name)


def _reading(
    read: Callable[[], Mapping[Series, int]], look: Callable[[], None] = lambda: None
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def callback(_: CallbackOptions) -> Iterable[Observation]:
        look()
        return [Observation(value, dict(of)) for of, value in read().items()]

    return callback
