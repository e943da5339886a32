/** The connection to the sidecar: bytes out, bytes or a failure back, within a time, and never after `close`. */

import { setMaxListeners } from "node:events";
import { type ChannelOptions, Client, credentials, type Metadata, status } from "@grpc/grpc-js";
import { CLOSED, DEADLINE_EXCEEDED, Failure } from "./failure.js";
import { failureOf } from "./rich-status.js";

// Every option with its reason. None but these differ from grpc-js's own.
const OPTIONS: ChannelOptions = {
  // The library checks what it sends, against the message limit and with a reason. What it is sent it takes whole: a newest
  // entry is shown however long, and a history that the transport refused would be lost for good.
  "grpc.max_send_message_length": -1,
  "grpc.max_receive_message_length": -1,
  // Retries are this library's own; grpc's would repeat a message that is never to be asked for twice.
  "grpc.enable_retries": 0,
  // A sidecar is on this machine: a proxy of the environment has no business between.
  "grpc.enable_http_proxy": 0,
  // A sidecar that comes back is found within a second.
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 1_000,
  // Two ledgers of one process share no connection, so that closing and making one anew starts fresh.
  "grpc.use_local_subchannel_pool": 1,
};

// A connection on which nothing was answered for this long is given up, and the next call dials anew. grpc-js would wait for
// ever for one that accepts and says nothing, and for seconds on one that a foreign answer has broken.
const SILENT_MS = 2_000;

// The longest time that a timer takes.
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** `target`, if it has one of the three forms; throws RangeError for others, a bare path above all. */
export function checkedTarget(target: string): string {
  if (/^unix:\/*[^/]/.test(target)) return target;
  if (!target.startsWith("unix:") && /^[^/]+:\d+$/.test(target)) return target;
  throw new RangeError(`the target must be "unix:///path", "unix:path" or "host:port", not ${JSON.stringify(target)}`);
}

/** One connection, dialled at the first call. */
export class Channel {
  readonly #target: string;
  readonly #metadata: () => Metadata;
  readonly #closing = new AbortController();
  #client: Client;
  /** When the last answer came, in monotonic milliseconds. */
  #answeredAt = 0;
  /** Since when calls have gone unanswered, none answered in between; null while they are answered. */
  #silentSince: number | null = null;

  /** `metadata` gives what each call sends beside its request, such as a trace's context. */
  constructor(target: string, metadata: () => Metadata) {
    setMaxListeners(0, this.closing); // one for each call in flight
    this.#target = checkedTarget(target);
    this.#metadata = metadata;
    this.#client = this.#made();
  }

  /** Aborted by `close`. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /**
   * Make one call, and wait for it no longer than `ms`. Throws the signal's reason when it is aborted; the call is
   * cancelled then, and what was asked may have happened all the same.
   */
  call(path: string, request: Uint8Array, ms: number, signal: AbortSignal | undefined): Promise<Uint8Array | Failure> {
    signal?.throwIfAborted();
    if (this.closing.aborted) return Promise.resolve(closed());
    const client = this.#client;
    const began = performance.now();
    const timeout = Math.min(ms, LONGEST_TIMER_MS);
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        this.closing.removeEventListener("abort", onClose);
      };
      const call = client.makeUnaryRequest(
        path,
        (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
        (bytes: Buffer): Uint8Array => bytes,
        request,
        this.#metadata(),
        { deadline: Date.now() + timeout },
        (error, answer) => {
          end();
          if (error?.code === status.DEADLINE_EXCEEDED) this.#unanswered(client, began);
          else if (error?.code !== status.CANCELLED) this.#answered();
          resolve(error ? failureOf(error) : (answer ?? new Uint8Array()));
        },
      );
      // What is resolved or rejected first stands; the callback comes once more after a cancel, and changes nothing.
      const onAbort = () => {
        reject(signal?.reason);
        call.cancel();
      };
      const onClose = () => {
        resolve(closed());
        call.cancel();
      };
      // grpc-js counts by the wall clock, which may be set back, and lets the process end while it dials.
      const timer = setTimeout(() => {
        this.#unanswered(client, began);
        resolve(new Failure("DEADLINE_EXCEEDED", DEADLINE_EXCEEDED));
        call.cancel();
      }, timeout);
      signal?.addEventListener("abort", onAbort, { once: true });
      this.closing.addEventListener("abort", onClose, { once: true });
    });
  }

  /** Calls that are in flight, and later ones, fail as CLOSED. */
  close(): void {
    this.#closing.abort();
    this.#client.close();
  }

  #made(): Client {
    return new Client(this.#target, credentials.createInsecure(), OPTIONS);
  }

  #answered(): void {
    this.#answeredAt = performance.now();
    this.#silentSince = null;
  }

  /** A call got no answer in time. Who has been silent for too long is not waited for: the next call dials anew. */
  #unanswered(client: Client, began: number): void {
    if (client !== this.#client) return;
    this.#silentSince ??= Math.max(began, this.#answeredAt);
    if (performance.now() - this.#silentSince < SILENT_MS) return;
    this.#silentSince = null;
    this.#client = this.#made();
    client.close(); // calls that are under way on it may still be answered
  }
}

function closed(): Failure {
  return new Failure("CANCELLED", CLOSED);
}
