// The main process. The model runs in other processes: if one of them crashes or hangs, the window gets an error, never this one.
const { app, BrowserWindow, ipcMain } = require("electron");
const { join } = require("node:path");
const { createClient } = require("fm-proxy");

/** Started by the first question. Where the programs can't be run in place, they are copied to the application's folder. */
const client = createClient({ storageDir: join(app.getPath("userData"), "fm-proxy") });
/** What stops the answer that a window waits for. */
const answers = new Map();

/** Whether there is a model, and if not, why. Starts no engine. */
ipcMain.handle("model:check", () => client.compatibility.check());

/** Answers one question: its text goes to the window as it comes, what became of it is the result. */
ipcMain.handle("model:ask", async ({ sender }, input) => {
  answers.get(sender.id)?.abort();
  const stop = new AbortController();
  const close = () => stop.abort();
  answers.set(sender.id, stop);
  sender.once("destroyed", close);
  try {
    const body = { input: String(input), fm: { timeout_ms: 120_000 } };
    for await (const event of client.responses.stream(body, { signal: stop.signal })) {
      if (event.type === "response.output_text.delta") sender.send("model:text", event.delta);
    }
    return { ok: true };
  } catch (error) {
    return { ok: false, code: stop.signal.aborted ? "CANCELLED" : error.code, detail: error.detail ?? String(error) };
  } finally {
    if (answers.get(sender.id) === stop) answers.delete(sender.id);
    if (!sender.isDestroyed()) sender.removeListener("destroyed", close);
  }
});

ipcMain.on("model:stop", ({ sender }) => answers.get(sender.id)?.abort());

function open() {
  const window = new BrowserWindow({ width: 640, height: 480, webPreferences: { preload: join(__dirname, "preload.cjs") } });
  void window.loadFile(join(__dirname, "index.html"));
}

void app.whenReady().then(open);
app.on("activate", () => BrowserWindow.getAllWindows().length === 0 && open());
app.on("window-all-closed", () => process.platform !== "darwin" && app.quit());

/** The helper ends before the application does. If the application crashes, the helper notices it and ends too. */
app.once("will-quit", (event) => {
  event.preventDefault();
  void client.close().finally(() => app.quit());
});
