// Numbers, groups of the side bar, exports.
import assert from "node:assert/strict";
import { test } from "node:test";
import { unit } from "./units.mjs";

const format = await unit("format");
const { toMarkdown, toJsonl, fileName } = await unit("export");

test("numbers as people read them", () => {
  assert.equal(format.usageLine({ inputTokens: 1204, outputTokens: 31 }), "1,204 in · 31 out");
  assert.equal(
    format.usageLine({ inputTokens: 120_400, outputTokens: 31, costUsd: 0.0042 }),
    "120.4K in · 31 out · $0.0042",
  );
  assert.equal(format.usageLine({ inputTokens: 1, outputTokens: 1, costUsd: 0 }), "1 in · 1 out");
  assert.deepEqual([0.2, 999, 1500, 12_400, 61_000].map(format.duration), [
    "1 ms",
    "999 ms",
    "1.5 s",
    "12 s",
    "1 min 1 s",
  ]);
  assert.deepEqual([0, 900, 61_000, -5].map(format.countdown), ["0:00", "0:01", "1:01", "0:00"]);
  assert.deepEqual([12, 2048, 3_145_728].map(format.bytes), ["12 bytes", "2.0 KiB", "3.0 MiB"]);
});

test("sessions by age, the newest first", () => {
  const now = new Date(2026, 4, 20, 12).getTime();
  const at = (days, key) => ({ sessionKey: key, updatedAt: now - days * 86_400_000 });
  const found = format.groups([at(40, "e"), at(0.1, "a"), at(1, "b"), at(0, "a0"), at(4, "c"), at(20, "d")], now);
  assert.deepEqual(
    found.map(({ name, sessions }) => [name, sessions.map(({ sessionKey }) => sessionKey).join()]),
    [
      ["Today", "a0,a"],
      ["Yesterday", "b"],
      ["Previous 7 days", "c"],
      ["Previous 30 days", "d"],
      ["Older", "e"],
    ],
  );
});

test("exports: all of a conversation, whatever is in it", () => {
  const session = { sessionKey: "k", title: "A / B: \u202e?" };
  const part = { type: "tool", toolName: "bash", summary: "echo ```", state: "done", output: "```\nx\n````" };
  const messages = [
    { role: "user", content: "hi", time: 0 },
    { role: "assistant", content: "a", parts: [{ type: "text", text: "a" }, part], error: "late" },
  ];
  const text = toMarkdown(session, messages);
  assert.match(text, /## You \(1970-01-01T00:00:00.000Z\)\n\nhi/);
  assert.match(text, /`````\n```\nx\n````\n`````/, "the fence is longer than any in the text");
  assert.match(text, /> late/);
  assert.deepEqual(
    toJsonl(session, messages)
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
    [session, ...messages],
  );
  assert.equal(fileName(session, "markdown"), "a-b.md");
  assert.equal(fileName({}, "jsonl"), "new-chat.jsonl");
});
