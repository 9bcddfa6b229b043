// Checks every stream and every answer of a client with invariants.mjs, in addition to the test's own checks. helper.mjs and
// transport.mjs make the clients with it, and no test makes them in another way (harness.test.mjs checks that).
import assert from "node:assert/strict";
import {
  checkChatChoices,
  checkCompletionStream,
  checkErrorBody,
  checkResponse,
  checkResponseStream,
} from "./invariants.mjs";

/**
 * Collects violations. It throws them at the end of a test, which then fails. Without a test, it throws them at the reader of the
 * stream.
 */
export class Audit {
  #violations = [];
  #open = new Set();
  #deferred;

  constructor(t) {
    this.#deferred = t !== undefined;
    t?.after(() => this.verify());
  }

  /** Runs a check; an exception is a violation. */
  run(check) {
    try {
      check();
    } catch (error) {
      if (!this.#deferred) throw error;
      this.#violations.push(error);
    }
  }

  /** Watches a stream. If it is not read to its end, the part so far is checked. */
  watch(check) {
    const events = [];
    const finish = (how) => {
      if (!this.#open.delete(finish)) return;
      this.run(() => check(events, how));
    };
    this.#open.add(finish);
    return { events, push: (event) => void events.push(event), finish };
  }

  /** Throws the first violation. */
  verify() {
    for (const finish of [...this.#open]) finish({ aborted: true });
    if (this.#violations.length > 0) throw this.#violations[0];
  }
}

const KINDS = {
  responses:
    ({ starting_after: after }) =>
    (events, how) =>
      checkResponseStream(events, { ...how, after }),
  chat:
    ({ stream_options: options }) =>
    (chunks, how) =>
      checkChatChoices(chunks, { usage: options?.include_usage === true, ...how }),
  completions:
    ({ stream_options: options }) =>
    (chunks, how) =>
      checkCompletionStream(chunks, { usage: options?.include_usage === true, ...how }),
};

/** A fetch that checks all its answers. `partial` skips members that a stub's answers don't have. */
export function auditFetch(fetch, audit, { partial = false } = {}) {
  return async (input, init) => {
    const response = await fetch(input, init);
    const type = response.headers.get("content-type") ?? "";
    audit.run(() => checkHead(response, type));
    const { status, headers } = response;
    if (type.startsWith("text/event-stream"))
      return new Response(auditBody(response.body, audit, input, init), { headers });
    if (response.body === null || !type.startsWith("application/json")) return response;
    const text = await response.text();
    audit.run(() => checkAnswer(status, JSON.parse(text), partial));
    return new Response(text, { status, headers });
  };
}

function checkHead({ status, body, headers }, type) {
  assert.match(headers.get("x-request-id") ?? "", /^req_[0-9a-f]{32}$/, "no x-request-id");
  if (body !== null) assert.match(type, /^(application\/json|text\/event-stream; charset=utf-8)$/);
  if (status < 400) return;
  assert.equal(type, "application/json", "an error that is not JSON");
  assert.match(headers.get("x-should-retry") ?? "", /^(true|false)$/, "an error without x-should-retry");
  const again = headers.get("x-should-retry") === "true";
  // The error for a rate limit of the model has a time to wait, but does not tell the client to retry.
  assert.ok(headers.has("retry-after-ms") === again || status === 429, "retry-after-ms where none is due, or none");
}

function checkAnswer(status, body, partial) {
  if (status >= 400) checkErrorBody(body);
  else if (body.object === "response" && !partial && !("deleted" in body)) checkResponse(body);
}

/** The kind of the stream, from the path and the request. */
function kindOf(input, init) {
  const url = new URL(input.url ?? String(input), "http://x/");
  const body = typeof init?.body === "string" ? JSON.parse(init.body) : {};
  if (/\/chat\/completions\/?$/.test(url.pathname)) return KINDS.chat(body);
  if (/\/completions\/?$/.test(url.pathname)) return KINDS.completions(body);
  const after = url.searchParams.get("starting_after");
  return KINDS.responses(after === null ? {} : { starting_after: Number(after) });
}

function auditBody(body, audit, input, init) {
  const reader = body.getReader();
  const watcher = audit.watch(kindOf(input, init));
  const frames = { done: false, failed: false };
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await reader.read().catch((error) => {
          watcher.finish({ aborted: true });
          throw error;
        });
        if (done) {
          audit.run(() => assert.ok(frames.done, "a stream without [DONE]"));
          watcher.finish(frames.failed ? { failed: true } : {});
          controller.close();
          return;
        }
        audit.run(() => takeChunk(frames, watcher, Buffer.from(value).toString("utf8")));
        controller.enqueue(value);
      },
      cancel(reason) {
        watcher.finish({ aborted: true });
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}

/** One chunk of a body is one whole event: some clients lose events that are split. */
export function takeChunk(frames, watcher, text) {
  assert.ok(!frames.done, "something after [DONE]");
  assert.ok(!/[\r\u2028\u2029]/.test(text), "a line break that is no LF");
  const [, type, data] = /^(?:event: ([^\n]+)\n)?data: ([^\n]+)\n\n$/.exec(text) ?? [];
  assert.ok(data !== undefined, `not one whole event: ${JSON.stringify(text)}`);
  if (data === "[DONE]") {
    frames.done = true;
    return;
  }
  assert.ok(!frames.failed, "something after an error");
  const event = JSON.parse(data);
  assert.equal(event.type, type, "the name of an event is not its type");
  if (type === undefined && "error" in event) {
    checkErrorBody(event);
    frames.failed = true;
  } else watcher.push(event);
}

/** A client whose fetch and streams are all checked. */
export function auditClient(client, audit) {
  client.fetch = auditFetch(client.fetch, audit);
  auditApi(client.responses, "responses", audit);
  auditApi(client.chat.completions, "chat", audit);
  auditApi(client.completions, "completions", audit);
  return client;
}

/** One of the package's APIs; its streams are all checked. */
export function auditApi(api, name, audit) {
  const kind = KINDS[name];
  for (const name of ["create", "stream", "retrieve"].filter((name) => name in api)) {
    const original = api[name].bind(api);
    api[name] = (...args) => {
      const result = original(...args);
      const params = args.find((arg) => typeof arg === "object") ?? {};
      if (Symbol.asyncIterator in result) auditStream(result, audit.watch(kind(params)), args.at(-1)?.signal);
      return result;
    };
  }
  return api;
}

/** Checks the values from an iteration of one of the package's streams. */
function auditStream(stream, watcher, signal) {
  const { next, return: leave, abort } = stream;
  let stopped = false;
  stream.next = async () => {
    const aborted = () => stopped || signal?.aborted === true;
    try {
      const result = await next.call(stream);
      if (!result.done) watcher.push(result.value);
      else watcher.finish({ aborted: aborted() });
      return result;
    } catch (error) {
      // Only a function of the host, as `onProgress`, throws an error without a code; the stream ends with it.
      watcher.finish({ aborted: aborted() || error.code === undefined, failed: true });
      throw error;
    }
  };
  stream.return = (...args) => {
    stopped = true;
    watcher.finish({ aborted: true });
    return leave.apply(stream, args);
  };
  stream.abort = () => {
    stopped = true;
    abort.call(stream);
  };
}
