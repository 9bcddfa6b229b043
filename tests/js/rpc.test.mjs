// The JSON-RPC connection: calls, answers in any order, notifications, cancels and errors; without a process.
import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeFrame } from "../../js-shim/dist/esm/framing.js";
import { RpcConnection } from "../../js-shim/dist/esm/rpc.js";

function open() {
  const written = [];
  const rpc = new RpcConnection((bytes) =>
    written.push(JSON.parse(Buffer.from(bytes).toString().split("\r\n\r\n")[1])),
  );
  const receive = (message) => rpc.receive(encodeFrame({ jsonrpc: "2.0", ...message }));
  return { rpc, written, receive };
}

test("calls are numbered, and answers find them in any order", async () => {
  const { rpc, written, receive } = open();
  const [first, second] = [rpc.call("a", { x: 1 }), rpc.call("b", {})];
  assert.deepEqual(written, [
    { jsonrpc: "2.0", id: 1, method: "a", params: { x: 1 } },
    { jsonrpc: "2.0", id: 2, method: "b", params: {} },
  ]);
  receive({ id: 2, result: { ok: true, n: 2 } });
  receive({ id: 1, result: { ok: true, n: 1 } });
  assert.equal((await first.result).n, 1);
  assert.equal((await second.result).n, 2);
  assert.equal(rpc.pending, 0);
});

test("notifications reach their own call only, and none after its result", async () => {
  const { rpc, receive } = open();
  const got = [];
  const call = rpc.call("responses.create", {}, ({ event }) => got.push(event));
  receive({ method: "responses.event", params: { id: 1, event: "a" } });
  receive({ method: "responses.event", params: { id: 2, event: "other" } });
  receive({ method: "something.new", params: { id: 1, event: "other" } });
  receive({ method: "responses.event", params: 7 });
  receive({ id: 1, result: { ok: true } });
  receive({ method: "responses.event", params: { id: 1, event: "late" } });
  await call.result;
  assert.deepEqual(got, ["a"]);
});

test("a cancel names its call, and is not sent for one that is over", async () => {
  const { rpc, written, receive } = open();
  const call = rpc.call("a", {});
  rpc.cancel(call.id);
  receive({ id: 1, result: { ok: true } });
  rpc.cancel(call.id);
  assert.deepEqual(written.slice(1), [{ jsonrpc: "2.0", method: "$/cancelRequest", params: { id: 1 } }]);
});

test("ok:false is an FmError with all that the result says", async () => {
  const { rpc, receive } = open();
  const call = rpc.call("a", {});
  const openai = { status: 408, type: "timeout_error", code: "timeout", param: null, message: "m" };
  const error = { code: "TIMEOUT", detail: "d", openai, limit: "total", limit_ms: 5 };
  receive({
    id: 1,
    result: { ok: false, error, response: { output: [{ content: [{ type: "output_text", text: "so far" }] }] } },
  });
  await assert.rejects(call.result, (failure) => {
    const { name, code, detail, message, status, limit, limitMs, partialText } = failure;
    assert.deepEqual(
      { name, code, detail, message, status, limit, limitMs, partialText },
      {
        name: "FmError",
        code: "TIMEOUT",
        detail: "d",
        message: "d",
        status: 408,
        limit: "total",
        limitMs: 5,
        partialText: "so far",
      },
    );
    assert.deepEqual(failure.openai, openai);
    return true;
  });
});

for (const [name, reply, code] of [
  ["a JSON-RPC error", { error: { code: -32601, message: "no such method" } }, "RPC_ERROR"],
  ["a result without ok", { result: {} }, "PROTOCOL_ERROR"],
  ["no result at all", {}, "PROTOCOL_ERROR"],
  ["ok:false without an error", { result: { ok: false } }, "INTERNAL"],
  ["a code that is not known", { result: { ok: false, error: { code: "NEW", detail: "d" } } }, "INTERNAL"],
  [
    "a code that is a method of objects",
    { result: { ok: false, error: { code: "toString", detail: "d" } } },
    "INTERNAL",
  ],
]) {
  test(`the call alone is rejected by ${name}`, async () => {
    const { rpc, receive } = open();
    const call = rpc.call("a", {});
    receive({ id: 1, ...reply });
    await assert.rejects(call.result, { code });
    const next = rpc.call("a", {});
    receive({ id: 2, result: { ok: true } });
    await next.result;
  });
}

test("an answer to nothing is ignored", () => {
  const { receive } = open();
  for (const id of [7, "x", undefined]) receive({ id, result: { ok: true } });
});

const withBytes = (...bytes) => {
  const [before, after] = ['{"jsonrpc":"2.0","id":1,"result":{"ok":true,"a":"', '"}}'].map((text) => Buffer.from(text));
  return raw(Buffer.concat([before, Buffer.from(bytes), after]));
};
const raw = (body) => Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]);
for (const [name, bytes] of [
  ["a header without length", Buffer.from("X: y\r\n\r\n")],
  ["half a character", withBytes(0xc3)],
  ["an overlong character", withBytes(0xc0, 0x80)],
  ["a byte order mark", raw(Buffer.from("\ufeff{}"))],
  ["no JSON", raw(Buffer.from("{"))],
  ["no object", raw(Buffer.from("[]"))],
  ["another version", raw(Buffer.from('{"jsonrpc":"1.0","id":1,"result":{"ok":true}}'))],
  ["an error without an id", raw(Buffer.from('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}'))],
]) {
  test(`the connection breaks on ${name}`, () => {
    assert.throws(() => open().rpc.receive(bytes), { code: "PROTOCOL_ERROR" });
  });
}

test("an internal error without an id is the helper's end, for want of memory", () => {
  const body = Buffer.from('{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no memory left"}}');
  assert.throws(
    () => open().rpc.receive(raw(body)),
    ({ code, detail }) => code === "HELPER_EXITED" && /no memory left/.test(detail),
  );
});

test("a failure rejects what waits and what comes, for the first reason", async () => {
  const { rpc, written } = open();
  const call = rpc.call("a", {});
  const [first, second] = [new Error("first"), new Error("second")];
  rpc.fail(first);
  rpc.fail(second);
  await assert.rejects(call.result, (error) => error === first);
  assert.throws(
    () => rpc.call("b", {}),
    (error) => error === first,
  );
  rpc.cancel(1);
  assert.equal(written.length, 1);
});

test("what cannot be sent leaves nothing after", () => {
  const { rpc, written } = open();
  assert.throws(
    () => rpc.call("a", { y: 1, x: 1n }),
    ({ code, openai }) => code === "INVALID_REQUEST" && openai.param === "x",
  );
  assert.equal(rpc.pending, 0);
  assert.deepEqual(written, []);
});
