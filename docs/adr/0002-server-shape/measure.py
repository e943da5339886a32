"""Which gRPC server shape serves a SQLite ledger best? Measures rate and latency of each shape, beside its own bare echo.

    pip install grpcio grpcio-tools protobuf apsw uvloop
    python measure.py [--store DIR] [--shapes A/uvloop C2/16] [--cells append:32 history:8] [--rounds 3] [--seconds 3]

Shapes, as NAME/LOOP or NAME/POOL:
  A/asyncio A/uvloop   grpc.aio; a writer thread with group commit and a reader thread, one wake-up of the loop per batch
  B/asyncio B/uvloop   grpc.aio; apsw's own async connections, one async_run per batch
  C1/40                threaded server, a writer thread, each caller woken by a lock
  C2/16                threaded server, leader/follower: the first caller commits for everyone queued
Cells are METHOD:CALLERS; methods are echo, append, echo24 (a bare 24 KB answer) and history.
"""
import argparse
import asyncio
import collections
import hashlib
import itertools
import json
import operator
import os
import queue
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import apsw
import grpc
import uvloop

SCHEMA = """CREATE TABLE conversation_sessions(id INTEGER PRIMARY KEY AUTOINCREMENT, agent_handle TEXT, conversation_key TEXT,
  work_key TEXT, turn_id TEXT, entry_id TEXT, ordinal INTEGER, version INTEGER, trimmed INTEGER, entry BLOB, checksum BLOB,
  created_at INTEGER) STRICT;
CREATE UNIQUE INDEX once ON conversation_sessions(agent_handle, conversation_key, work_key) WHERE work_key <> '';
CREATE INDEX in_order ON conversation_sessions(agent_handle, conversation_key, trimmed, ordinal);"""
OWN = "FROM conversation_sessions WHERE agent_handle=?1 AND conversation_key=?2"
INSERT = f"""INSERT INTO conversation_sessions(agent_handle, conversation_key, work_key, turn_id, entry_id, ordinal, version,
  trimmed, entry, checksum, created_at) VALUES(?1, ?2, ?3, ?4, ?5, 1 + coalesce((SELECT max(ordinal) {OWN} AND trimmed=0),
  (SELECT max(ordinal) {OWN} AND trimmed=1), 0), 1, 0, ?6, ?7, ?8) ON CONFLICT DO NOTHING RETURNING ordinal"""
TRIM = """UPDATE conversation_sessions SET entry=NULL, trimmed=1
  WHERE agent_handle=? AND conversation_key=? AND trimmed=0 AND ordinal<=?"""
KNOWN = f"SELECT ordinal, entry_id {OWN} AND work_key=?3 AND work_key <> ''"
NEWEST = f"SELECT entry_id, ordinal, entry {OWN} AND trimmed=0 ORDER BY ordinal DESC LIMIT 20"
M = grpc.protos("bench.proto")  # compiled by grpcio-tools
SEAT, CONVERSATIONS, LIMIT, WARMUP = "agent.example", 500, 64, 0.4
CELLS = ["echo:1", "append:1", "history:1", "echo:8", "append:8", "echo:32", "append:32", "echo24:32", "history:32"]


def turn(conversation, work_key):
    """A turn of about 2 KB with four calls, whose entry is about 1.2 KB once the results are cut."""
    calls = [M.Call(name=f"tool_{n}", arguments=json.dumps({"path": f"src/module_{n}.py", "note": "x" * 90}), result="r" * 210,
                    millis=120 + n) for n in range(4)]
    return M.Turn(seat=SEAT, conversation=conversation, work_key=work_key, turn_id="turn-" + work_key, ask="a" * 260,
                  reply="p" * 300, calls=calls)


def row(data):
    """What the handler does before the store: parse, build the entry, mint an id, sum."""
    t = M.Turn.FromString(data)
    entry = M.Entry(seat=t.seat, turn_id=t.turn_id, ask=t.ask, reply=t.reply, calls=t.calls)
    for call in entry.calls:
        call.result = call.result[:20]
    blob = entry.SerializeToString()
    checksum = hashlib.sha256(f"{t.seat}\0{t.conversation}\0{t.work_key}\0".encode() + blob).digest()
    return t.seat, t.conversation, t.work_key, t.turn_id, os.urandom(16).hex(), blob, checksum, int(time.time())


def recorded(result):
    if isinstance(result, Exception):
        raise result
    return M.Recorded(disposition=result[0], entry_id=result[1], ordinal=result[2]).SerializeToString()


def history(rows):
    return M.History(rows=[M.Row(entry_id=i, ordinal=o, entry=e) for i, o, e in reversed(rows)]).SerializeToString()


KEY = operator.attrgetter("seat", "conversation")
SHORT, LONG = recorded((1, "e" * 32, 7)), history([("e" * 32, n, b"x" * 1200) for n in range(20)])


def tune(db):
    db.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=ON; PRAGMA busy_timeout=5000").fetchall()
    return db


def write(db, item):
    ordinal = db.execute(INSERT, item).get
    if ordinal is None:
        ordinal, entry_id = db.execute(KNOWN, item[:3]).get
        return 2, entry_id, ordinal
    if ordinal > 20:
        db.execute(TRIM, (item[0], item[1], ordinal - 20))
    return 1, item[4], ordinal


def commit(db, items):
    """One transaction for all items; if it fails, one for each, so that a bad item fails alone."""
    try:
        db.execute("BEGIN IMMEDIATE")
        results = [write(db, item) for item in items]
        db.execute("COMMIT")
        return results
    except Exception as error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        return [error] if len(items) == 1 else [result for item in items for result in commit(db, [item])]


def settle(batch, results):
    for (_, waiter), result in zip(batch, results, strict=True):
        if not waiter.done():
            waiter.set_result(result)


class Worker(threading.Thread):
    """One thread that owns a connection, takes what waits as a batch, and delivers all results at once."""

    def __init__(self, path, work, deliver):
        super().__init__(daemon=True)
        self.db, self.work, self.deliver, self.queue = tune(apsw.Connection(path)), work, deliver, queue.SimpleQueue()
        self.start()

    def run(self):
        while True:
            batch = [self.queue.get()]
            while len(batch) < LIMIT and not self.queue.empty():
                batch.append(self.queue.get())
            self.deliver(batch, self.work(self.db, [item for item, _ in batch]))


async def serve_aio(name, path, address):
    loop, waiting, busy = asyncio.get_running_loop(), [], False

    def on_thread(work):  # A
        worker = Worker(path, work, lambda *done: loop.call_soon_threadsafe(settle, *done))

        def submit(item):
            worker.queue.put((item, waiter := loop.create_future()))
            return waiter
        return submit

    async def drain():  # B
        nonlocal waiting, busy
        while waiting:
            batch, waiting = waiting[:LIMIT], waiting[LIMIT:]
            settle(batch, await writer.async_run(commit, writer, [item for item, _ in batch]))
        busy = None

    def append(item):
        nonlocal busy
        waiting.append((item, waiter := loop.create_future()))
        busy = busy or loop.create_task(drain())
        return waiter

    def fetch(key):
        return reader.async_run(lambda: reader.execute(NEWEST, key).fetchall())

    if name == "A":
        append, fetch = on_thread(commit), on_thread(lambda db, keys: [db.execute(NEWEST, key).fetchall() for key in keys])
    else:
        writer, reader = await apsw.Connection.as_async(path), await apsw.Connection.as_async(path)
        await writer.async_run(tune, writer)
        await reader.async_run(tune, reader)

    async def on_append(data, context):
        return recorded(await append(row(data)))

    async def on_history(data, context):
        return history(await fetch(KEY(M.Ask.FromString(data))))

    async def on_echo(data, context):
        return LONG if len(data) < 100 else SHORT

    server = grpc.aio.server()
    await prepare(server, address, on_echo, on_append, on_history).start()
    print("ready", flush=True)
    await server.wait_for_termination()


class LockWaiter:
    """The cheapest way for a thread to wait for its result: a held lock that the writer releases."""
    def __init__(self):
        self.lock, self.value = threading.Lock(), None
        self.lock.acquire()

    done = staticmethod(lambda: False)

    def set_result(self, value):
        self.value = value
        self.lock.release()

    def result(self):
        self.lock.acquire()
        return self.value


class Leader:
    """The first caller commits for all that wait; the next leader is the oldest that came meanwhile."""

    def __init__(self, path):
        self.db, self.mutex, self.waiting, self.busy = tune(apsw.Connection(path)), threading.Lock(), collections.deque(), False

    def submit(self, item):
        with self.mutex:
            self.waiting.append((item, waiter := LockWaiter()))
            follow, self.busy = self.busy, True
        if follow and (done := waiter.result()):
            return done
        batch = [self.waiting.popleft() for _ in range(min(LIMIT, len(self.waiting)))]
        results = commit(self.db, [item for item, _ in batch])
        with self.mutex:
            self.busy = bool(self.waiting)
            if self.busy:
                self.waiting[0][1].set_result(None)
        settle(batch[1:], results[1:])
        return results[0]


def serve_threads(name, pool, path, address):
    own, worker = threading.local(), Worker(path, commit, settle)

    def submit(item):
        worker.queue.put((item, waiter := LockWaiter()))
        return waiter.result()

    def on_history(data, context):
        if not hasattr(own, "db"):
            own.db = tune(apsw.Connection(path))
        return history(own.db.execute(NEWEST, KEY(M.Ask.FromString(data))).fetchall())

    append = submit if name == "C1" else Leader(path).submit
    server = grpc.server(ThreadPoolExecutor(pool))
    echo = lambda data, _: LONG if len(data) < 100 else SHORT  # noqa: E731
    prepare(server, address, echo, lambda data, _: recorded(append(row(data))), on_history).start()
    print("ready", flush=True)
    server.wait_for_termination()


def prepare(server, address, *handlers):
    methods = dict(zip(("echo", "append", "history"), map(grpc.unary_unary_rpc_method_handler, handlers)))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench", methods),))
    server.add_insecure_port(address)
    return server


def serve(args):
    name, kind = args.serve.split("/")
    path, address = os.path.join(args.store, "ledger.db"), "unix:" + os.path.join(args.store, "s")
    db = tune(apsw.Connection(path))
    db.execute(SCHEMA)
    for c in range(CONVERSATIONS):
        commit(db, [row(turn(f"conv-{c:05}", f"old-{n:016}").SerializeToString()) for n in range(20)])
    db.close()
    sys.setswitchinterval(args.switch / 1000)
    if name.startswith("C"):
        return serve_threads(name, int(kind), path, address)
    return (uvloop if kind == "uvloop" else asyncio).run(serve_aio(name, path, address))


def cpu(pid):
    with open(f"/proc/{pid}/stat") as file:
        return sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def requests(method):
    """Ready-made requests of random conversations, each Append with a work key of its own."""
    if method in ("echo24", "history"):
        return lambda: M.Ask(seat=SEAT, conversation=f"conv-{random.randrange(CONVERSATIONS):05}").SerializeToString()
    template, run, numbers = turn("conv-#####", "#" * 20).SerializeToString(), random.randrange(10**9), itertools.count()
    return lambda: template.replace(b"#" * 20, b"%010d%010d" % (run, next(numbers))).replace(
        b"#####", b"%05d" % random.randrange(CONVERSATIONS))


async def load(args):
    method, callers = args.load.split(":")
    call = grpc.aio.insecure_channel("unix:" + os.path.join(args.store, "s")).unary_unary("/bench/" + method.removesuffix("24"))
    make, answers = requests(method), []
    end = (begin := time.monotonic() + WARMUP) + args.seconds

    async def caller():
        while (t := time.monotonic()) < end:
            assert await call(make())
            answers.append((t, time.monotonic() - t))

    jobs = [asyncio.create_task(caller()) for _ in range(int(callers))]
    await asyncio.sleep(WARMUP)
    server, client = cpu(args.pid), time.process_time()
    await asyncio.sleep(args.seconds)
    server, client = cpu(args.pid) - server, time.process_time() - client
    await asyncio.gather(*jobs)
    taken = sorted(took for t, took in answers if t >= begin)
    count = len(taken)
    print(json.dumps({"rate": count / args.seconds, "p50": taken[count // 2] * 1000, "p99": taken[count * 99 // 100] * 1000,
                      "server": server / count * 1e6, "client": client / count * 1e6, "total": len(answers)}))


def measure(args, shape, found):
    with tempfile.TemporaryDirectory(dir=args.store) as store:
        command = [sys.executable, __file__, "--store", store, "--switch", str(args.switch), "--seconds", str(args.seconds)]
        server = subprocess.Popen([*command, "--serve", shape], stdout=subprocess.PIPE, text=True)
        assert server.stdout.readline() == "ready\n"
        appended = 0
        for name in args.cells:
            client = subprocess.run([*command, "--load", name, "--pid", str(server.pid)], stdout=subprocess.PIPE, check=True)
            result = json.loads(client.stdout)
            found.setdefault((shape, name), []).append(result)
            appended += result["total"] * name.startswith("append")
            print(shape, name, {k: round(v, 2) for k, v in result.items()}, file=sys.stderr, flush=True)
        server.kill()  # whatever was acknowledged must be there after it, and every conversation sound
        server.wait()
        db = apsw.Connection(os.path.join(store, "ledger.db"))
        assert db.execute("SELECT count(*) FROM conversation_sessions").get == appended + 20 * CONVERSATIONS
        assert not db.execute("""SELECT count(*) FROM (SELECT 1 FROM conversation_sessions GROUP BY conversation_key
            HAVING max(ordinal) <> count(*) OR count(DISTINCT ordinal) <> count(*) OR sum(entry IS NOT NULL) <> 20)""").get


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", default=tempfile.gettempdir(), help="folder on the disk to measure")
    parser.add_argument("--shapes", nargs="+", default=["A/asyncio", "A/uvloop", "B/uvloop", "C1/40", "C2/16"])
    parser.add_argument("--cells", nargs="+", default=CELLS)
    for name, default in (("--rounds", 3), ("--seconds", 3), ("--switch", 5)):  # --switch: sys.setswitchinterval in ms
        parser.add_argument(name, type=float, default=default)
    for hidden in ("--serve", "--load", "--pid"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve or args.load:
        return serve(args) if args.serve else uvloop.run(load(args))
    found = {}
    for _ in range(int(args.rounds)):
        for shape in random.sample(args.shapes, len(args.shapes)):
            measure(args, shape, found)
    print("| shape | cell | requests/s (min..max) | p50 ms | p99 ms (min..max) | server µs/call | client µs/call |\n"
          "|---|---|---:|---:|---:|---:|---:|")
    for name in args.cells:
        for shape in args.shapes:
            v = {k: sorted(r[k] for r in found[shape, name]) for k in found[shape, name][0]}
            m = {k: statistics.median(each) for k, each in v.items()}
            print(f"| {shape} | {name} | {m['rate']:.0f} ({v['rate'][0]:.0f}..{v['rate'][-1]:.0f}) | {m['p50']:.2f} | "
                  f"{m['p99']:.2f} ({v['p99'][0]:.2f}..{v['p99'][-1]:.2f}) | {m['server']:.0f} | {m['client']:.0f} |")


if __name__ == "__main__":
    main()
