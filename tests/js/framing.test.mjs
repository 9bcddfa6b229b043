// Frames: the strict parser, fed in pieces of any size, and the encoder.
import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeFrame, FrameParser, MAX_BODY_BYTES } from "../../js-shim/dist/esm/framing.js";
import { repeated, soon } from "./support/patience.mjs";

const bytes = (text) => Buffer.from(text, "latin1");
const frame = (body) => Buffer.concat([bytes(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`), Buffer.from(body)]);

/** Feeds a parser in pieces of the given size; returns the bodies, or the error's message. */
function parse(input, size = Infinity) {
  const bodies = [];
  const parser = new FrameParser((body) => bodies.push(Buffer.from(body).toString("utf8")));
  try {
    for (let at = 0; at < input.length; at += size) parser.push(input.subarray(at, Math.min(input.length, at + size)));
  } catch (error) {
    assert.equal(error.name, "FramingError");
    return error.message;
  }
  return parser.atBoundary ? bodies : [...bodies, "..."];
}

const good = {
  "one frame": [frame("{}"), ["{}"]],
  "two frames": [Buffer.concat([frame("[1]"), frame("[2]")]), ["[1]", "[2]"]],
  "64 frames": [Buffer.concat(Array.from({ length: 64 }, () => frame("7"))), Array(64).fill("7")],
  "any case": [bytes("cOnTeNt-LeNgTh: 2\r\n\r\n{}"), ["{}"]],
  "no space": [bytes("Content-Length:2\r\n\r\n{}"), ["{}"]],
  "tabs and spaces": [bytes("Content-Length:\t 2 \t\r\n\r\n{}"), ["{}"]],
  "Content-Type before": [
    bytes("Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}"),
    ["{}"],
  ],
  "Content-Type after it, utf8": [bytes("Content-Length: 2\r\nContent-Type: x; charset=utf8\r\n\r\n{}"), ["{}"]],
  "an unknown header of 4 KiB": [bytes(`X-Long: ${"x".repeat(4096)}\r\nContent-Length: 2\r\n\r\n{}`), ["{}"]],
  "32 lines": [bytes(`${"A: b\r\n".repeat(31)}Content-Length: 2\r\n\r\n{}`), ["{}"]],
  "characters of 2, 3 and 4 bytes": [frame('"é€😀"'), ['"é€😀"']],
  "a frame inside a frame": [frame('"Content-Length: 2\\r\\n\\r\\n{}"'), ['"Content-Length: 2\\r\\n\\r\\n{}"']],
  "an end inside a header": [bytes("Content-Len"), ["..."]],
  "an end inside a body": [bytes("Content-Length: 5\r\n\r\n{}"), ["..."]],
};

const bad = {
  "LF only": "Content-Length: 2\n\n{}",
  "bare CR": "Content-Length: 2\r\r{}",
  "mixed ends": "Content-Length: 2\r\n\n{}",
  folded: "Content-Length:\r\n 2\r\n\r\n{}",
  "no colon": "Content-Length 2\r\n\r\n{}",
  "no name": ": 2\r\n\r\n{}",
  "no Content-Length": "Content-Type: x\r\n\r\n{}",
  "no header at all": "\r\n{}",
  negative: "Content-Length: -1\r\n\r\n{}",
  "with a plus": "Content-Length: +5\r\n\r\n{}",
  hexadecimal: "Content-Length: 0x10\r\n\r\n{}",
  "leading zero": "Content-Length: 010\r\n\r\n{}",
  exponent: "Content-Length: 1e3\r\n\r\n{}",
  fraction: "Content-Length: 5.0\r\n\r\n{}",
  list: "Content-Length: 5,5\r\n\r\n{}",
  empty: "Content-Length: \r\n\r\n{}",
  "an empty body": "Content-Length: 0\r\n\r\n",
  "more than 64 bits": "Content-Length: 99999999999999999999999\r\n\r\n{}",
  "one more than the cap": `Content-Length: ${MAX_BODY_BYTES + 1}\r\n\r\n`,
  twice: "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
  "33 lines": `${"A: b\r\n".repeat(32)}Content-Length: 2\r\n\r\n{}`,
  "more than 8 KiB": `X: ${"x".repeat(9000)}`,
  NUL: "Content\0Length: 2\r\n\r\n{}",
  "NUL in a value": "X: a\0b\r\nContent-Length: 2\r\n\r\n{}",
  "a high byte": "Content-Length: 2\xe9\r\n\r\n{}",
  "a high byte in a value that nobody reads": "X: \xe9\r\nContent-Length: 2\r\n\r\n{}",
  "a byte order mark": "\xef\xbb\xbfContent-Length: 2\r\n\r\n{}",
  "utf-16": "Content-Type: x; charset=utf-16\r\nContent-Length: 2\r\n\r\n{}",
  "plain text": "Hello\n",
  "junk after a frame": "Content-Length: 2\r\n\r\n{}\nContent-Length: 2\r\n\r\n{}",
};

for (const [name, [input, expected]] of Object.entries(good)) {
  test(`the parser takes ${name}, in pieces of any size`, () => {
    for (const size of [1, 2, 3, 7, 64, Infinity]) assert.deepEqual(parse(input, size), expected, `pieces of ${size}`);
  });
}

for (const [name, input] of Object.entries(bad)) {
  test(`the parser refuses: ${name}`, () => {
    for (const size of [1, 5, Infinity]) assert.equal(typeof parse(bytes(input), size), "string", `pieces of ${size}`);
  });
}

test("a body of the full 10 MB arrives in small pieces in time that grows with its length only", repeated(() => {
  const body = "x".repeat(MAX_BODY_BYTES);
  const started = performance.now();
  assert.deepEqual(parse(frame(body), 1000), [body]);
  soon(performance.now() - started, 2000);
}));

test("the encoder writes header and body in one piece and counts bytes", () => {
  assert.equal(Buffer.from(encodeFrame({ a: "é😀" })).toString(), 'Content-Length: 14\r\n\r\n{"a":"é😀"}');
});

test("half a surrogate pair becomes U+FFFD; an escaped backslash before a u stays", () => {
  const [body] = parse(Buffer.from(encodeFrame({ a: "x\ud83d", b: "\\ud83d", c: "😀", d: "\udc00\\" })));
  assert.deepEqual(JSON.parse(body), { a: "x\ufffd", b: "\\ud83d", c: "😀", d: "\ufffd\\" });
});

const nested = (depth, innermost = 1) => {
  let value = innermost;
  for (let level = 0; level < depth; level++) value = [value];
  return value;
};

const levels = (count) => ({ toJSON: () => nested(count) });
const unencodable = {
  "an object whose toJSON goes too deep": [{ params: { metadata: levels(80) } }, /'metadata\[0\]\[0\].*64 levels/],
  "65 levels, the last one empty": [nested(64, []), /64 levels/],
  "a NUL in a key far down": [{ params: { a: [1, { "b c": { "x\0": 1 } }] } }, /'a\[1\]\["b c"\]\["x\\u0000"\]'.*NUL/],
  "a NUL in a key, after quotes and backslashes": [{ '\\"': '"\\', "\\\0": 1 }, /NUL/],
  "a NUL in a key that toJSON made": [{ a: { toJSON: () => ({ "\0": 1 }) } }, /NUL/],
  "a circle": [Object.assign([], { 0: { get self() { return this; } } }), /not JSON/],
  "65 levels": [nested(65), /64 levels/],
  "a hundred thousand levels": [nested(100_000), /64 levels|nested too deeply/],
  "65,537 values": [{ params: { input: Array(65_534).fill(0) } }, /'input\[65533\]'.*65536 values/],
  "more than the cap": ["x".repeat(MAX_BODY_BYTES - 1), /limit is 10000000/],
  "a NUL in a key": [{ "a\0b": 1 }, /NUL/],
  "a BigInt": [{ a: 1n }, /not JSON/],
  "NaN, which would be null": [{ params: { input: "x", max_output_tokens: NaN } }, /'max_output_tokens'.*NaN is no number/],
  "Infinity far down": [{ params: { a: null, fm: { timeout_ms: [Infinity] } } }, /'fm'.*Infinity is no number/],
};
for (const [name, [value, message]] of Object.entries(unencodable)) {
  test(`the encoder refuses: ${name}`, () => {
    assert.throws(
      () => encodeFrame(value),
      (error) => error.name === "UnencodableError" && message.test(error.message),
    );
  });
}

test("the encoder takes what is just within the limits", () => {
  encodeFrame(nested(64));
  const each = [true, false, null, "a", '"', 1, -1.5, [], {}, { a: 0 }]; // 11 values; with the array, 65,536
  encodeFrame([...Array.from({ length: 5957 }, () => each).flat(), ...Array(8).fill(0)]);
  assert.equal(
    encodeFrame("x".repeat(MAX_BODY_BYTES - 2)).length,
    MAX_BODY_BYTES + "Content-Length: 10000000\r\n\r\n".length,
  );
});

test("the encoder looks at what is sent, not at the object", () => {
  const body = (value) => JSON.parse(parse(Buffer.from(encodeFrame(value)))[0]);
  const shallow = Object.assign([nested(80)], { toJSON: () => 7 });
  assert.deepEqual(body({ a: shallow, "b\0": undefined, c: "\0", d: '{"x\0":[[[', e: "\\u0000" }), {
    a: 7,
    c: "\0",
    d: '{"x\0":[[[',
    e: "\\u0000",
  });
  assert.deepEqual(body({ "\\u0000": 1 }), { "\\u0000": 1 });
  assert.deepEqual(body([Number.MAX_VALUE, -5e-324, 1e21, null]), [Number.MAX_VALUE, -5e-324, 1e21, null]);
});

const raw = { skip: JSON.rawJSON === undefined && "this Node has no JSON.rawJSON" };
test("JSON.rawJSON: a number that is none is refused by name; a surrogate pair stays whole", raw, () => {
  for (const text of ["1e400", "-1E+400", "9".repeat(400)]) {
    assert.throws(
      () => encodeFrame({ params: { temperature: JSON.rawJSON(text) } }),
      (error) => error.param === "temperature" && /double/.test(error.message),
    );
  }
  const value = { a: JSON.rawJSON("1e308"), b: JSON.rawJSON('"\\uD83D\\ude00 \\uD83D"') };
  const [body] = parse(Buffer.from(encodeFrame(value)));
  assert.deepEqual(JSON.parse(body), { a: 1e308, b: "\u{1f600} \ufffd" });
});

test("a request of 10 MB is looked at in time that grows with its length only", repeated(() => {
  const started = performance.now();
  encodeFrame({ a: '"\\'.repeat(2_400_000) });
  encodeFrame(Array.from({ length: 32_000 }, (_, index) => [`${index}`.padEnd(300)]));
  soon(performance.now() - started, 5000);
}));
