// The text of an approval: every character can be recognised, and none hides or reorders another.
import assert from "node:assert/strict";
import { test } from "node:test";
import { unit } from "./units.mjs";

const { show, showInline } = await unit("escape");
const line = (text) =>
  show(text)
    .lines.map((each) => each.map(({ text: part, kind }) => (kind === "plain" ? part : `{${part}}`)).join(""))
    .join("\n");

test("what can't be seen is a sign", () => {
  const rows = [
    ["ls -la", "ls -la"],
    ["a\tb", "a{→}b"],
    ["a\r", "a{␍U+000D}"],
    ["\x1b[2K", "{␛U+001B}[2K"],
    ["a\0b", "a{␀U+0000}b"],
    ["\x7f\x9b", "{␡U+007F}{U+009B}"],
    ["x\u202egpj.exe", "x{U+202E}gpj.exe"],
    ["\u2066\u2069\u200f\u061c", "{U+2066}{U+2069}{U+200F}{U+061C}"],
    ["zero\u200bwidth\u00ad\ufeff", "zero{U+200B}width{U+00AD}{U+FEFF}"],
    ["a\u00a0b\u3000c", "a{U+00A0}b{U+3000}c"],
    ["l\u2028p\u2029", "l{U+2028}p{U+2029}"],
    ["tag\u{e0041}\u{e007f}", "tag{U+E0041}{U+E007F}"],
    ["v\ufe0f\u{e0100}", "v{U+FE0F}{U+E0100}"],
    ["é\ufe0f\u034fю\u180b", "{é}{U+FE0F}{U+034F}{ю}{U+180B}"],
    ["\u115f\u3164\uffa0\u2800", "{U+115F}{U+3164}{U+FFA0}{U+2800}"],
    ["\ue000\u{10ffff}\ud800", "{U+E000}{U+10FFFF}{U+D800}"],
    ["end  \nnext", "end{··}\nnext"],
    ["   ", "{···}"],
    ["\n\n", "\n\n"],
    ["аpt", "{а}pt"],
    ["e\u0301", "e{U+0301}"],
    ["é\u0301\u0302\u0303", "{é\u0301\u0302}{U+0303}"],
  ];
  for (const [text, wanted] of rows) assert.equal(line(text), wanted, JSON.stringify(text));
});

test("every code point is shown as itself, or as its number", () => {
  for (let point = 0; point <= 0x10ffff; point += point < 0x3000 ? 1 : 37) {
    if (point === 10 || point === 32) continue;
    const character = String.fromCodePoint(point);
    const [[segment]] = show(character).lines;
    if (segment.kind !== "hidden") assert.equal(segment.text, character);
    else if (point !== 9)
      assert.ok(segment.text.endsWith(`U+${point.toString(16).toUpperCase().padStart(4, "0")}`), segment.text);
    if (point > 126) assert.notEqual(segment.kind, "plain", point.toString(16));
  }
});

test("counts", () => {
  const { hidden, foreign, bytes } = show("a\tb \u202e\u202dжé\n");
  assert.deepEqual({ hidden, foreign, bytes }, { hidden: 2, foreign: 2, bytes: 15 });
});

test("a long text loses nothing", () => {
  const text = `${"x".repeat(70)}\n`.repeat(230) + "rm -rf /";
  const { lines } = show(text);
  assert.equal(lines.map((each) => each.map((part) => part.text).join("")).join("\n"), text);
});

test("inline: signs in brackets, line ends as arrows, cut with dots", () => {
  assert.equal(showInline("a\n\u202eb"), "a ↵ ⟨U+202E⟩b");
  assert.equal(showInline("x".repeat(300), 10), `${"x".repeat(10)}…`);
});
