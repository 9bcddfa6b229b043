// `fm-proxy models pull`.
import { FmError, modelsFolder, pullModel, type PulledModel } from "../index.js";
import { forgetChoice, noteUsable } from "../later.js";
import { checkModel } from "./check.js";
import { about, memoryAhead, warnOfMemory } from "./memory.js";
import { chooseUsable, sayVariable } from "./models.js";
import { bytes, errorText, fail, plain, ProgressLine, say, sayJson, timeOf } from "./output.js";
import type { Arguments } from "./parse.js";

export async function pullOne({ words, options }: Arguments): Promise<number> {
  const model = await download(words[0] ?? "", options["sha256"] as string | undefined);
  if (options["json"] === true) {
    sayJson(model);
    return 0;
  }
  sayPulled(model);
  const isChecked = options["no-check"] !== true;
  if (isChecked && (await warnOfMemory(model.path))) {
    fail(`So it was not tried. To try it all the same: npx fm-proxy models check ${nameOf(model)}`);
  } else if (isChecked) {
    const usable = await tryPulled(model);
    await noteUsable(model.path, usable);
    if (!usable) {
      if (model.default) await forgetChoice(model.path, modelsFolder());
      await chooseUsable(modelsFolder());
      fail(`The model can't be used. To delete it: npx fm-proxy models rm ${nameOf(model)}`);
      return 1;
    }
  }
  sayNext(model);
  return 0;
}

/** Downloads a model and shows the progress. Ctrl-C stops the download so that it can continue later. */
async function download(reference: string, sha256: string | undefined): Promise<PulledModel> {
  const line = new ProgressLine();
  const stop = new AbortController();
  const interrupt = (): void => stop.abort(new Error("Stopped. The same command goes on from here."));
  process.once("SIGINT", interrupt);
  const begun = performance.now();
  let first = -1;
  try {
    return await pullModel(reference, {
      sha256,
      signal: stop.signal,
      onRetry: ({ detail }, pauseMs) => line.tell(`${plain(detail)} It is tried again in ${timeOf(pauseMs / 1000)}.`),
      onProgress: ({ received, total }) => {
        if (first < 0) first = received;
        const rate = (received - first) / Math.max(0.001, (performance.now() - begun) / 1000);
        const share = total === undefined ? "" : ` of ${bytes(total)} (${Math.floor((100 * received) / total)} %)`;
        const left = total === undefined || rate === 0 ? "" : `, ${timeOf((total - received) / rate)} left`;
        line.update(`${bytes(received)}${share}, ${bytes(rate)}/s${left}`);
      },
    });
  } finally {
    line.end();
    process.off("SIGINT", interrupt);
  }
}

function sayPulled({ id, size, files }: PulledModel): void {
  say(`${plain(id)}  ${bytes(size)}`);
  for (const { path, sha256, sha256From } of files) {
    const unnamed = "which the server does not name, so it was compared with nothing";
    const whose = sha256From === null ? unnamed : `which matches that of ${sha256From}`;
    say(`${plain(path)}\n  sha256 ${sha256}, ${whose}`);
  }
}

/** Tries the model, like `models check`. False: the model can't be loaded. */
async function tryPulled({ path }: PulledModel): Promise<boolean> {
  const memory = about(await memoryAhead(path));
  say(`\nIt is tried now${memory === "" ? "" : `, with ${memory} of memory`}. Ctrl-C ends this; the model stays.`);
  try {
    await checkModel(path, false);
  } catch (error) {
    fail(errorText(error));
    return !(error instanceof FmError && error.code === "UNAVAILABLE");
  }
  return true;
}

/** The name as it is typed in a command. */
function nameOf({ id }: PulledModel): string {
  const quoted = /^[\w.-]+$/.test(id) ? id : `"${plain(id)}"`;
  return id.startsWith("-") ? `-- ${quoted}` : quoted;
}

/** Prints the next command to type. */
function sayNext(model: PulledModel): void {
  if (sayVariable()) return;
  if (model.default) say("\nIt answers where no model is named:\n  npx fm-proxy run \"Why is the sky blue?\"");
  else say(`\nTo use it where no model is named:\n  npx fm-proxy models use ${nameOf(model)}`);
}
