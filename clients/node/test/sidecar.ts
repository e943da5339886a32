/** Sidecars for the tests: a real one in a process of its own, started as an operator would, and sockets that fail. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
const PYTHON = process.env["TURNLEDGER_PYTHON"] ?? join(ROOT, ".venv/bin/python");
// How long a sidecar may take to start, on a machine that does much else.
const START_MS = 20_000;

/** A folder that goes when the test ends, with a path that is short enough for a socket. */
export class Folder implements AsyncDisposable {
  private constructor(readonly path: string) {}

  static async make(): Promise<Folder> {
    return new Folder(await mkdtemp(join(tmpdir(), "tl-node-")));
  }

  get socket(): string {
    return join(this.path, "s");
  }

  get target(): string {
    return `unix://${this.socket}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}

/** A real sidecar on a folder's socket and store. */
export class Sidecar implements AsyncDisposable {
  readonly #process: ChildProcess;

  private constructor(started: ChildProcess) {
    this.#process = started;
  }

  /** Start one, with these settings under `turn_engine.conversation_session`; `listen` is the folder's socket if left out. */
  static async start(folder: Folder, settings = "max_entries: 20", listen = folder.target): Promise<Sidecar> {
    const [config, log] = [join(folder.path, "settings.yaml"), join(folder.path, "log")];
    await writeFile(config, `turn_engine:\n  conversation_session:\n    ${settings}\n`);
    await rm(folder.socket, { force: true });
    const args = ["-m", "sidecar", "serve", "--config", config, "--listen", listen];
    const env = { ...process.env, PYTHONPATH: `${ROOT}:${join(ROOT, "clients/python")}` };
    const started = spawn(
      "sh",
      [
        "-c",
        'log=$1; shift; exec "$@" >>"$log" 2>&1',
        "sh",
        log,
        PYTHON,
        ...args,
        "--store",
        join(folder.path, "store.db"),
      ],
      { env, cwd: folder.path, stdio: "ignore" },
    );
    const sidecar = new Sidecar(started);
    const until = performance.now() + START_MS;
    while (!(listen === folder.target ? existsSync(folder.socket) : await listens(listen))) {
      if (started.exitCode !== null || performance.now() > until) {
        await sidecar.kill();
        throw new Error(`the sidecar did not start: ${await readFile(log, "utf8")}`);
      }
      await sleep(20);
    }
    return sidecar;
  }

  /** End it as a crash would. */
  async kill(): Promise<void> {
    await this.#ended("SIGKILL");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#ended("SIGTERM");
  }

  async #ended(signal: NodeJS.Signals): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exit = once(this.#process, "exit");
    this.#process.kill(signal);
    await exit;
  }
}

/** A socket that accepts connections and never says a word. */
export class HungSidecar implements AsyncDisposable {
  readonly #server = createServer((socket) => {
    this.#sockets.push(socket);
    socket.on("error", () => {});
    socket.resume();
  });
  readonly #sockets: Socket[] = [];

  static async start(folder: Folder): Promise<HungSidecar> {
    const hung = new HungSidecar();
    hung.#server.listen(folder.socket);
    await once(hung.#server, "listening");
    return hung;
  }

  /** Accept no more; the connections that are there stay as they are. */
  stopListening(): void {
    this.#server.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** A port of the loopback interface that nobody listens on. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
  return address.port;
}

async function listens(address: string): Promise<boolean> {
  const { connect } = await import("node:net");
  const socket = connect(Number(address.split(":").at(-1)), "127.0.0.1");
  const came = await Promise.race([once(socket, "connect"), once(socket, "error").then(() => null)]).catch(() => null);
  socket.destroy();
  return came !== null;
}
