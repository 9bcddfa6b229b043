// The stand-in's answers for people who look at the page or its pictures. One answer has everything that a page shows.
import { deflateSync } from "node:zlib";
import { StandIn } from "./stand-in.mjs";

export const ANSWER = `DNS finds an address by asking a chain of servers, from the root down. \
Your machine asks **one** resolver; the resolver does the walking.

1. Your program asks the *stub resolver* of the system for \`www.example.org\`.
2. The stub asks the recursive resolver, which looks into its cache first.
3. If nothing is there, it asks a root server, then one for \`org\`, then one for \`example.org\`.

Here is how to watch it:

\`\`\`bash
# each line is one step of the walk
for name in www.example.org example.org; do
  dig +trace "$name" | grep -E 'IN\\s+(NS|A)' | head -n 20
done
\`\`\`

| Record | Holds | Typical lifetime |
|---|---|---:|
| A | an IPv4 address | 300 s |
| AAAA | an IPv6 address | 300 s |
| NS | the servers of a zone | 86,400 s |

> The lifetime says how long a resolver may keep an answer.

What one resolver has in its cache:

\`\`\`bash
dig +norecurse www.example.org
\`\`\`

See [RFC 1034](https://www.rfc-editor.org/rfc/rfc1034) for the rest.`;

/** A picture of `width` by `height` in two colours, as base64 of a PNG. */
export function picture(width = 640, height = 360) {
  const rows = Buffer.alloc(height * (width * 3 + 1));
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const at = y * (width * 3 + 1) + 1 + x * 3;
      const bar = y < 44;
      rows.set(
        bar
          ? [31, 111, 96]
          : (x > 60 && x < 420 && y > 90 && y < 110) || (x > 60 && x < 560 && y > 140 && y % 28 < 10 && y < 300)
            ? [190, 196, 204]
            : [248, 249, 250],
        at,
      );
    }
  }
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const out = Buffer.alloc(body.length + 8);
    out.writeUInt32BE(data.length, 0);
    body.copy(out, 4);
    out.writeUInt32BE(crc(body), body.length + 4);
    return out;
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
  return Buffer.concat([
    signature,
    chunk("IHDR", head),
    chunk("IDAT", deflateSync(rows)),
    chunk("IEND", Buffer.alloc(0)),
  ]).toString("base64");
}

function crc(bytes) {
  let value = ~0;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
  }
  return ~value >>> 0;
}

export const TITLES = [
  ["How DNS finds an address", 0],
  ["Backup script for the photo folder", 0],
  ["Moving the meeting", 0],
  ["Why the build is slow", 1],
  ["Regular expressions for dates", 1],
  ["A very long title that does not fit into the side bar at all", 3],
  ["Trip to Ghent", 5],
  ["Recipe: lentil soup", 12],
  ["SQLite or files?", 20],
  ["Notes on Landlock", 70],
];

/** A gateway with chats of several ages. Returns the key of the chat that has everything. */
export function fill(gateway) {
  const day = 86_400_000;
  let whole;
  for (const [title, days] of [...TITLES].reverse()) {
    const updatedAt = Date.now() - days * day - 60_000;
    const first = title === TITLES[0][0];
    const messages = first
      ? wholeChat(gateway)
      : [
          ["user", `Tell me about: ${title}`],
          ["assistant", `Here is what I know about ${title}.`],
        ];
    const usage = first ? { inputTokens: 18_402, outputTokens: 1_233 } : { inputTokens: 210, outputTokens: 40 };
    const key = gateway.add({ title, messages, updatedAt, usage });
    if (first) whole = key;
  }
  return whole;
}

function wholeChat(gateway) {
  gateway.blobs.set("shot-1", picture());
  const listing =
    "total 12\n-rw-r--r-- 1 me me  812 Nov 24 18:02 notes.md\n-rw-r--r-- 1 me me 4402 Nov 25 07:40 zones.txt\n";
  const bash = { command: "ls -l ~/dns && dig +short www.example.org", workingDir: "/home/me/dns" };
  return [
    ["user", "Explain how DNS finds the address of a name, step by step, for a newcomer."],
    {
      role: "assistant",
      content: ANSWER,
      parts: [{ type: "text", text: ANSWER }],
      usage: { inputTokens: 1_402, outputTokens: 611 },
      model: "local/default",
    },
    ["user", "What do I have about it in ~/dns? And what does their page look like?"],
    {
      role: "assistant",
      content: "There are two files.",
      usage: { inputTokens: 17_000, outputTokens: 622 },
      model: "local/default",
      parts: [
        { type: "text", text: "I'll look into the folder first." },
        {
          type: "tool",
          callId: "c1",
          toolName: "bash",
          summary: bash.command,
          details: bash,
          state: "done",
          output: listing,
          exitCode: 0,
          durationMs: 412,
        },
        {
          type: "tool",
          callId: "c2",
          toolName: "bash",
          summary: "rm -r ~/dns/old",
          details: { command: "rm -r ~/dns/old", workingDir: "/home/me" },
          state: "denied",
          output: "Denied: keep it",
        },
        {
          type: "tool",
          callId: "c3",
          toolName: "browser",
          summary: "Navigate to www.example.org, screenshot",
          state: "done",
          durationMs: 2_310,
          output: "Example Domain",
          details: { actions: [{ type: "navigate", url: "https://www.example.org/" }, { type: "screenshot" }] },
          attachments: [
            { type: "image", mimeType: "image/png", name: "example.org.png", blobId: "shot-1", bytes: 1_200 },
          ],
        },
        {
          type: "text",
          text: "There are two files: `notes.md` and `zones.txt`. The page is plain: a title and a paragraph.",
        },
      ],
    },
  ];
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const gateway = await new StandIn().start(Number(process.argv[2] ?? 0));
  fill(gateway);
  gateway.script = async (run) => {
    run.usage = { inputTokens: 120, outputTokens: 300 };
    for (const word of ANSWER.match(/\S+\s*/g)) {
      run.delta(word);
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    const command = "echo hello\nls -la";
    const id = run.call("bash", command, { command, workingDir: "/home/me" });
    const { outcome } = await run.approval(id, { canRemember: true });
    run.result(id, {
      state: outcome === "approved" ? "done" : "denied",
      output: "hello\n",
      exitCode: 0,
      durationMs: 20,
    });
    run.delta("\n\nThat was it.");
  };
  console.log(gateway.link());
}
