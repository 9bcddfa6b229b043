// Downloads one file, over several connections if necessary, checks it, and gives it its name at the end.
import { open, readFile, rename, rm, stat, statfs, writeFile, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { FmError } from "./errors.js";
import { callBack, warnOf } from "./events.js";
import { hashFile, hashText } from "./hash.js";
import { toFmError } from "./thrown.js";

/** The progress of a download. */
export interface PullProgress {
  /** Bytes that have been downloaded, earlier tries included. */
  received: number;
  /** Bytes of the whole file; absent if the server does not report them. */
  total?: number;
}

/** Options of a download. */
export interface DownloadOptions {
  onProgress?: ((progress: PullProgress) => void) | undefined;
  /** Ends the download. The bytes that have arrived are kept for the next try. */
  signal?: AbortSignal | undefined;
  /** A connection that brings no byte for this many ms is closed, and a new one is tried. Default: 30000. */
  stallMs?: number | undefined;
  /** The pause before the second try, in ms. It doubles after each further try that gets no byte, up to 30000. Default: 1000. */
  retryMs?: number | undefined;
  /** Called before each pause between two tries. It gets the error and the length of the pause, in ms. */
  onRetry?: ((error: FmError, pauseMs: number) => void) | undefined;
}

/** A file that has been downloaded. */
export interface Downloaded {
  path: string;
  /** In bytes. */
  size: number;
  /** In hexadecimal. */
  sha256: string;
  /** The origin of the expected SHA-256: a server, the option `sha256`, or an earlier download; null: none was known. */
  sha256From: string | null;
}

/** The most tries in a row that bring no new byte. */
const TRIES = 5;
/** How many pages of a list are read at most. */
const MOST_PAGES = 100;
/** The first bytes of a GGUF file (ggml/docs/gguf.md). */
const MAGIC = "GGUF";

/** An address as it is written down. A query may be a credential, as in signed addresses, so only its SHA-256 is kept. */
export interface Address {
  url: string;
  query_sha256?: string;
}

/** The address of a file, and what is expected of the file. */
export interface Source {
  url: URL;
  address: Address;
  file: string;
  /** In bytes; null: not known yet. */
  size: number | null;
  /** The SHA-256 that the file must have; null: not known yet. */
  sha256: string | null;
  /** Where `sha256` comes from; null: it is not known. */
  sha256From: string | null;
}

/** The record of an unfinished download. It is stored in a file beside the partial file. */
interface Begun extends Address {
  etag: string | null;
  total: number | null;
  sha256: string | null;
}

/** Makes the form of an address that is stored on disk. The SHA-256 of the query replaces the query. */
export async function addressOf({ origin, pathname, search }: URL): Promise<Address> {
  const url = origin + pathname;
  return search === "" ? { url } : { url, query_sha256: await hashText(search) };
}

/** Whether `told`, the stored address of a file, is the same as the other address. */
export function isFrom(told: Address, { url, query_sha256 }: Address): boolean {
  return told.url === url && told.query_sha256 === query_sha256;
}

/** The address of Hugging Face, or of another server that has the same paths. */
export function hubEndpoint(): string {
  const given = process.env["HF_ENDPOINT"] || "https://huggingface.co";
  if (URL.canParse(given)) return given.replace(/\/+$/, "");
  const what = `The variable HF_ENDPOINT is no address: ${JSON.stringify(given)}. It must begin with https://, or be unset.`;
  throw new FmError("INVALID_REQUEST", what);
}

/** Throws for addresses without https, except those of servers on this machine. */
export function checkProtocol(url: URL): void {
  const local = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  if (url.protocol === "https:" || (url.protocol === "http:" && local)) return;
  throw new FmError("INVALID_REQUEST", `${url.protocol}//${url.host} is not used for downloads: use https.`);
}

/** One download, over as many connections as it takes. */
export class Download {
  readonly #source: Source;
  readonly #path: string;
  readonly #part: string;
  readonly #options: DownloadOptions;
  #begun: Begun | null = null;
  #received = 0;
  #threw = false;

  constructor(source: Source, path: string, options: DownloadOptions) {
    this.#source = source;
    this.#path = path;
    this.#part = `${path}.part`;
    this.#options = options;
  }

  async run(): Promise<Downloaded> {
    await this.#resume();
    const once = async (): Promise<Downloaded> => {
      await this.#connect();
      return this.#finish();
    };
    const errorOf = (reason: unknown): FmError => toPullError(reason, this.#source.url, dirname(this.#path));
    return withTries(this.#options, once, errorOf, () => this.#received);
  }

  /** Continues with the partial file of an earlier try, unless it belongs to another file. */
  async #resume(): Promise<void> {
    const begun = await readJson<Begun>(`${this.#part}.json`);
    const { size } = await stat(this.#part).catch(() => ({ size: 0 }));
    const { sha256 } = this.#source;
    const fits = begun !== null && isFrom(begun, this.#source.address) && begun.etag !== null;
    if (!fits || (begun.total !== null && size > begun.total)) return;
    this.#begun = { ...begun, sha256: sha256 ?? begun.sha256 };
    this.#received = size;
  }

  async #connect(): Promise<void> {
    if (this.#begun !== null && this.#received === this.#begun.total) return;
    const stall = new Stall(this.#options.stallMs ?? 30_000, this.#options.signal);
    try {
      const response = await request(this.#source.url, this.#rangeHeaders(), stall.signal);
      await this.#begin(response);
      await this.#receive(response, stall);
    } catch (error) {
      throw stall.reason() ?? error;
    } finally {
      stall.end();
    }
  }

  #rangeHeaders(): Record<string, string> {
    const etag = this.#begun?.etag ?? null;
    return etag === null || this.#received === 0 ? {} : { range: `bytes=${this.#received}-`, "if-range": etag };
  }

  /** Continues where the last connection ended, if the server supports that. Otherwise it starts from the beginning. */
  async #begin(response: Response): Promise<void> {
    const range = /^bytes (\d+)-\d+\/(\d+)$/.exec(response.headers.get("content-range") ?? "");
    const goesOn = response.status === 206 && range !== null && Number(range[1]) === this.#received;
    if (goesOn && this.#begun !== null && Number(range[2]) === this.#begun.total) return;
    if (response.status === 206 || response.status === 416) {
      await this.#discard();
      throw new FmError("UNAVAILABLE", "The server continued another file than the one that was begun.");
    }
    this.#received = 0;
    this.#begun = {
      ...this.#source.address,
      etag: strongTag(response),
      total: lengthOf(response),
      sha256: this.#source.sha256 ?? hubHash(response),
    };
    await this.#checkSpace();
    await writeFile(this.#part, "");
    await writeFile(`${this.#part}.json`, JSON.stringify(this.#begun));
  }

  async #checkSpace(): Promise<void> {
    const { bavail, bsize } = await statfs(dirname(this.#path));
    const wanted = this.#begun?.total ?? 0;
    if (wanted > bavail * bsize) throw noSpace(dirname(this.#path), wanted);
  }

  async #receive(response: Response, stall: Stall): Promise<void> {
    const handle = await open(this.#part, "r+");
    try {
      for await (const chunk of response.body ?? []) {
        stall.push();
        await writeAll(handle, chunk, this.#received);
        this.#received += chunk.length;
        const total = this.#begun?.total ?? null;
        if (total !== null && this.#received > total) throw new FmError("UNAVAILABLE", "The server sent more than it had said.");
        this.#tell({ received: this.#received, ...(total === null ? {} : { total }) });
      }
      await handle.sync();
    } finally {
      await handle.close();
    }
    const total = this.#begun?.total ?? null;
    if (total !== null && this.#received < total) {
      throw new FmError("UNAVAILABLE", `The connection ended after ${this.#received} of ${total} bytes.`);
    }
  }

  /** If the host's function throws, it is not called again, and the download continues. */
  #tell(progress: PullProgress): void {
    const { onProgress } = this.#options;
    if (onProgress === undefined || this.#threw) return;
    callBack("onProgress", onProgress, progress, (what, error) => {
      this.#threw = true;
      warnOf(what, error);
    });
  }

  /** Checks the whole file on the disk, and gives it its name. */
  async #finish(): Promise<Downloaded> {
    const sha256 = await hashFile(this.#part);
    const wanted = this.#begun?.sha256 ?? null;
    const differs = wanted !== null && sha256 !== wanted;
    const wrong = differs ? `has the SHA-256 ${sha256}, not ${wanted}` : await whyNotGguf(this.#part);
    if (wrong !== null) {
      await this.#discard();
      throw new FinalError(`What came from ${this.#source.url.host} ${wrong}. It was deleted.`);
    }
    const { size } = await stat(this.#part);
    await writeFile(`${this.#path}.json`, `${JSON.stringify({ ...this.#source.address, sha256, size })}\n`);
    await rename(this.#part, this.#path);
    await syncFolder(dirname(this.#path));
    await rm(`${this.#part}.json`, { force: true });
    const from = this.#source.sha256From ?? this.#source.url.host;
    return { path: this.#path, size, sha256, sha256From: wanted === null ? null : from };
  }

  async #discard(): Promise<void> {
    this.#received = 0;
    this.#begun = null;
    await rm(this.#part, { force: true });
    await rm(`${this.#part}.json`, { force: true });
  }
}

/** Ends a connection that brings no byte for `ms`. */
class Stall {
  readonly #controller = new AbortController();
  readonly #ms: number;
  readonly #host: AbortSignal | undefined;
  readonly #abort = (): void => this.#controller.abort();
  #timer: ReturnType<typeof setTimeout>;
  #stalled = false;

  constructor(ms: number, host: AbortSignal | undefined) {
    this.#ms = ms;
    this.#host = host;
    host?.addEventListener("abort", this.#abort, { once: true });
    if (host?.aborted === true) this.#abort();
    this.#timer = this.#start();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  push(): void {
    clearTimeout(this.#timer);
    this.#timer = this.#start();
  }

  reason(): FmError | null {
    return this.#stalled ? new FmError("UNAVAILABLE", `The server sent nothing for ${this.#ms} ms.`) : null;
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#host?.removeEventListener("abort", this.#abort);
    this.#abort();
  }

  #start(): ReturnType<typeof setTimeout> {
    return setTimeout(() => {
      this.#stalled = true;
      this.#abort();
    }, this.#ms);
  }
}

/** An error that would occur again in another try. */
class FinalError extends FmError {
  constructor(detail: string) {
    super("UNAVAILABLE", detail);
  }
}

const isFinal = (error: FmError): boolean => error instanceof FinalError;

/** Follows redirects itself, so that each address is checked; the token goes only to the hub's host. */
async function request(url: URL, headers: Record<string, string>, signal: AbortSignal): Promise<Response> {
  const token = process.env["HF_TOKEN"];
  const hub = new URL(hubEndpoint()).host;
  let at = url;
  let hash: string | null = null;
  for (let hops = 0; hops < 10; hops++) {
    const authorization = token !== undefined && token !== "" && at.host === hub ? { authorization: `Bearer ${token}` } : {};
    const sent = { "accept-encoding": "identity", ...headers, ...authorization };
    const response = await fetch(at, { headers: sent, redirect: "manual", signal });
    hash ??= response.headers.get("x-linked-etag");
    const location = response.headers.get("location");
    if (response.status >= 300 && response.status < 400 && location !== null) {
      await response.body?.cancel();
      const next = new URL(location, at);
      checkProtocol(next);
      // http is only for servers on this machine, and a server elsewhere must not redirect to them.
      if (at.protocol !== next.protocol && next.protocol !== "https:") {
        throw new FinalError(`${at.host} redirects from https to ${next.protocol}//${next.host}, which is not followed.`);
      }
      at = next;
      continue;
    }
    if (response.ok || response.status === 416) return hash === null ? response : withHeader(response, "x-linked-etag", hash);
    await response.body?.cancel();
    throw statusError(response.status, url);
  }
  throw new FmError("UNAVAILABLE", `${url.host} redirects without end.`);
}

/** Reads all pages of a JSON list of the hub (RFC 8288, the link `next`). GitHub's lists have the same form. */
export async function fetchPages(first: URL, options: DownloadOptions): Promise<unknown[]> {
  const pages: unknown[] = [];
  for (let url: URL | null = first; url !== null && pages.length < MOST_PAGES; ) {
    checkProtocol(url);
    const { page, next }: Page = await fetchPage(url, options);
    pages.push(page);
    url = next?.origin === first.origin ? next : null;
  }
  return pages;
}

interface Page {
  page: unknown;
  next: URL | null;
}

function fetchPage(url: URL, options: DownloadOptions): Promise<Page> {
  const once = async (): Promise<Page> => {
    const stall = new Stall(options.stallMs ?? 30_000, options.signal);
    try {
      const response = await request(url, {}, stall.signal);
      const [, next = ""] = /<([^>]*)>\s*;\s*rel="?next"?/.exec(response.headers.get("link") ?? "") ?? [];
      return { page: await response.json(), next: next !== "" && URL.canParse(next, url.href) ? new URL(next, url) : null };
    } catch (error) {
      throw stall.reason() ?? error;
    } finally {
      stall.end();
    }
  };
  return withTries(options, once, (reason) => toPullError(reason, url, ""));
}

/** The longest pause between two tries, in ms. */
const LONGEST_PAUSE = 30_000;

/** Tries again if a later try may succeed. Each new byte resets the count of tries and the pauses, which double. */
async function withTries<Result>(
  { signal, retryMs = 1000, onRetry }: DownloadOptions,
  once: () => Promise<Result>,
  errorOf: (reason: unknown) => FmError,
  received = (): number => 0,
): Promise<Result> {
  for (let failures = 0; ; ) {
    const before = received();
    let pause: number;
    try {
      return await once();
    } catch (reason) {
      signal?.throwIfAborted();
      const error = errorOf(reason);
      failures = received() > before ? 1 : failures + 1;
      if (error.code !== "UNAVAILABLE" || isFinal(error) || failures >= TRIES) throw error;
      pause = Math.min(retryMs * 2 ** (failures - 1), LONGEST_PAUSE);
      onRetry?.(error, pause);
    }
    await sleep(pause, undefined, signal === undefined ? {} : { signal }).catch(() => signal?.throwIfAborted());
  }
}

function withHeader(response: Response, name: string, value: string): Response {
  const headers = new Headers(response.headers);
  headers.set(name, value);
  return new Response(response.body, { status: response.status, headers });
}

function statusError(status: number, url: URL): FmError {
  if (status === 404) return new FmError("NOT_FOUND", `${url.host} has no file ${url.pathname}.`);
  if (status === 401 || status === 403) {
    const what = `${url.host} does not give ${url.pathname} to you (${status}).`;
    return new FinalError(`${what} It does not exist, or it needs a token in the variable HF_TOKEN.`);
  }
  const what = `${url.host} answered with status ${status}.`;
  return status === 408 || status === 429 || status >= 500 ? new FmError("UNAVAILABLE", what) : new FinalError(what);
}

const UNREACHED = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/;
/** Advice about proxies; see "NODE_USE_ENV_PROXY=1" in Node's documentation. */
const PROXY =
  " Is this machine online? Where a proxy is needed, set HTTPS_PROXY and NODE_USE_ENV_PROXY=1, which Node 22.21 and later take.";

function toPullError(reason: unknown, url: URL, folder: string): FmError {
  if (reason instanceof FmError) return reason;
  const { code, cause } = reason as NodeJS.ErrnoException & { cause?: NodeJS.ErrnoException };
  if (code === "ENOSPC" || code === "EDQUOT") return noSpace(folder, null);
  if (code !== undefined && /^E(ACCES|ROFS|PERM|IO|FBIG)$/.test(code)) return diskError(reason, folder);
  const why = cause?.code ?? cause?.message ?? code ?? toFmError(reason).detail;
  if (why === "bad port") return new FinalError(`Node refuses the port of ${url.host} (WHATWG Fetch, "bad port"): use another.`);
  const what = `The download from ${url.host} failed: ${why}.${UNREACHED.test(why) ? PROXY : ""}`;
  return new FmError("UNAVAILABLE", what, { cause: reason });
}

export function diskError(error: unknown, folder: string): FmError {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "EFBIG") return new FinalError(`A limit of this system for the size of files ends the download in ${folder}.`);
  const advice = "Correct its permissions, or name another folder with the variable FM_PROXY_MODELS_DIR.";
  return new FinalError(`The folder ${folder} can't be written to (${code ?? message}). ${advice}`);
}

function noSpace(folder: string, wanted: number | null): FmError {
  const size = wanted === null ? "" : ` for a file of ${(wanted / 1e6).toFixed(1)} MB`;
  return new FinalError(`The disk of ${folder} has not enough room${size}. Make room and try again.`);
}

/** A weak tag does not promise the same bytes (RFC 9110, 8.8.1). */
function strongTag(response: Response): string | null {
  const tag = response.headers.get("etag");
  return tag !== null && /^"/.test(tag) ? tag : null;
}

function lengthOf(response: Response): number | null {
  const value = response.headers.get("content-length");
  return value !== null && response.headers.get("content-encoding") === null ? Number(value) : null;
}

/** Hugging Face names a large file's SHA-256 in this header. */
function hubHash(response: Response): string | null {
  return /^"?([0-9a-f]{64})"?$/.exec(response.headers.get("x-linked-etag") ?? "")?.[1] ?? null;
}

async function writeAll(handle: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < chunk.length; ) {
    const { bytesWritten } = await handle.write(chunk, done, chunk.length - done, position + done);
    done += bytesWritten;
  }
}

/** Says what is wrong if a file does not begin like a GGUF file; null: nothing is wrong. */
export async function whyNotGguf(path: string): Promise<string | null> {
  const handle = await open(path, "r");
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(4), 0, 4, 0);
    return buffer.toString("latin1", 0, bytesRead) === MAGIC ? null : "is not a GGUF file";
  } finally {
    await handle.close();
  }
}

/** The contents of a JSON file; null: the file can't be read, or is no JSON. */
export async function readJson<T>(path: string): Promise<T | null> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as T;
  } catch {
    return null;
  }
}

/** The record of a downloaded file. */
interface DownloadRecord extends Address {
  sha256: string;
  /** In bytes. */
  size: number;
  /** False: the model was tried, and can't be used. */
  usable?: boolean;
}

/** The record that was written when a model file was downloaded; null: there is none. */
export const readRecord = (path: string): Promise<DownloadRecord | null> => readJson(`${path}.json`);

/** Records whether a downloaded model can be used. If it can't, another model answers requests that name no model. */
export async function noteUsable(path: string, usable: boolean): Promise<void> {
  const record = await readRecord(path);
  if (record === null || (record.usable ?? true) === usable) return;
  await writeFile(`${path}.json`, `${JSON.stringify({ ...record, usable })}\n`);
}

/** Writes the folder to the disk, so that the new name outlives a power cut; Windows has no such call. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r").catch(() => null);
  await handle?.sync().catch(() => {});
  await handle?.close();
}
