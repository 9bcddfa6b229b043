// fm-system on a fake desktop, as a client starts it.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));
export const program = join(process.env.FM_BIN ?? join(root, "build", "bin"), "fm-system");

const description = {
  monitors: [{ area: [0, 0, 1920, 1080], primary: true }],
  apps: [
    { id: "xterm.desktop", name: "XTerm", class: "XTerm", program: "xterm" },
    { id: "slow.desktop", name: "Slow", class: "slow", program: "slow" },
    { id: "notes.desktop", name: "Notes", class: "notes", program: "notes" },
    { id: "stuck.desktop", name: "Stuck", class: "Stuck", program: "stuck" },
  ],
  windows: [{ id: "w1", class: "XTerm", title: "sh", bounds: [0, 0, 640, 480], active: true }],
  tabs: [
    { id: "t1", window: "1", active: true, title: "Reddit", url: "https://www.reddit.com/" },
    { id: "t2", window: "1", title: "GitHub", url: "https://github.com/a" },
    { id: "t3", window: "2", active: true, title: "r/c", url: "https://old.reddit.com/r/c" },
  ],
  rules: [{ on: "launch stuck.desktop", do: "refuse" }], // focus_app waits for this application until its time limit
  takes_time: true,
};

// Returns {args: the program's arguments, actions(): the actions so far}. The files are removed after the test. `changes` change
// the desktop.
export function fakeDesktop(t, changes = {}) {
  const folder = mkdtempSync(join(tmpdir(), "fm-system-"));
  const file = join(folder, "desktop.json");
  const log = join(folder, "log");
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(log, "");
  writeFileSync(file, JSON.stringify({ ...description, ...changes, log }));
  return { args: ["--desktop", file], actions: () => readFileSync(log, "utf8").trimEnd().split("\n") };
}
