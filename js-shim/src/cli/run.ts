// `fm-proxy run`: one question, or a conversation on a terminal.
import { text } from "node:stream/consumers";
import { createClient, type ResponseCreateParams } from "../index.js";
import { answer } from "./answer.js";
import { converse } from "./converse.js";
import { warnOfMemory } from "./memory.js";
import { adviceFor, defaultPath, modelOption, modelVariable, whyNotChosen } from "./models.js";
import { fail, Usage } from "./output.js";
import type { Arguments } from "./parse.js";

export async function ask({ words, options }: Arguments): Promise<number> {
  const settings = requestOf(options);
  const model = options["model"] as string | undefined;
  const path = await modelOption(model);
  const wrong = path === undefined ? await whyNotChosen() : null;
  if (wrong !== null) fail(wrong);
  const client = createClient({ model: path });
  try {
    const report = await client.compatibility.check();
    if (!report.compatible) {
      fail(report.detail ?? report.reason_code ?? "");
      const advice = await adviceFor(report);
      if (advice !== undefined) fail(advice);
      return 1;
    }
    await warnOfMemory(path ?? (await defaultPath()));
    const [prompt] = words;
    if (prompt === undefined && process.stdin.isTTY === true) return await converse(client, model ?? modelVariable(), settings);
    const input = prompt ?? (await text(process.stdin));
    if (input.trim() === "") throw new Usage('the prompt is empty. An example: npx fm-proxy run "Why is the sky blue?"');
    return (await answer(client, { ...settings, input })).status;
  } finally {
    await client.close();
  }
}

function requestOf(options: Arguments["options"]): ResponseCreateParams {
  const settings: Record<string, unknown> = {};
  if (options["instructions"] !== undefined) settings["instructions"] = options["instructions"];
  for (const name of ["max-output-tokens", "temperature"]) {
    const value = options[name];
    if (value === undefined) continue;
    if (value === "" || !Number.isFinite(Number(value))) throw new Usage(`--${name} must be a number, not '${value}'`);
    settings[name.replaceAll("-", "_")] = Number(value);
  }
  return settings as ResponseCreateParams;
}
