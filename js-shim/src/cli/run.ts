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

/** The options that are numbers, their values, and the words for these in an error. */
const NUMBERS: readonly (readonly [string, (value: number) => boolean, string])[] = [
  ["max-output-tokens", (value) => Number.isSafeInteger(value) && value >= 1, "an integer from 1 on"],
  ["temperature", (value) => value >= 0 && value <= 2, "a number from 0 to 2"],
];

function requestOf(options: Arguments["options"]): ResponseCreateParams {
  const settings: Record<string, unknown> = {};
  if (options["instructions"] !== undefined) settings["instructions"] = options["instructions"];
  for (const [name, fits, what] of NUMBERS) {
    const value = options[name];
    if (value === undefined) continue;
    if (value === "" || !fits(Number(value))) throw new Usage(`--${name} must be ${what}, not '${value}'`);
    settings[name.replaceAll("-", "_")] = Number(value);
  }
  return settings as ResponseCreateParams;
}
