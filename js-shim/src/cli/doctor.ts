// `fm-proxy doctor`: what works, what does not, and what to do.
import {
  createClient,
  findHelper,
  findModels,
  modelsFolder,
  PROTOCOL_VERSION,
  type Client,
  type EngineReport,
} from "../index.js";
import { kindOf, type FileKind } from "../file-kind.js";
import { adviceFor, betterThan, modelOption, whyNotChosen } from "./models.js";
import { errorText, plain, say, sayJson } from "./output.js";
import type { Arguments } from "./parse.js";

/** One finding of a check. */
interface Finding {
  check: string;
  ok: boolean;
  detail: string;
  /** What to do about the finding. */
  advice?: string;
}

/** Node's first version that the package supports. */
const NODE = 20;

export async function doctor({ options }: Arguments): Promise<number> {
  const findings: Finding[] = [];
  const json = options["json"] === true;
  const report = (finding: Finding): boolean => {
    findings.push(finding);
    if (!json) say(lineOf(finding));
    return finding.ok;
  };
  report(checkNode());
  if (report(await look("helper", checkPackage))) await tryClient(options["model"] as string | undefined, report);
  report(await look("models", checkModels));
  const ok = findings.every((finding) => finding.ok);
  if (json) sayJson({ ok, findings });
  return ok ? 0 : 1;
}

/** Tries what a client does, and stops at the first failure. */
async function tryClient(name: string | undefined, report: (finding: Finding) => boolean): Promise<void> {
  let client: Client;
  try {
    client = createClient({ model: await modelOption(name) });
  } catch (error) {
    return void report({ check: "model", ok: false, detail: errorText(error) });
  }
  const checks = { start: checkStart, model: checkMachine, answer: checkAnswer, sandbox: checkSandbox, GPU: checkGpu };
  try {
    for (const [check, find] of Object.entries(checks)) if (!report(await look(check, () => find(client)))) break;
  } finally {
    await client.close();
  }
}

/** Makes one check; an error becomes its finding. */
async function look(check: string, find: () => Promise<Finding>): Promise<Finding> {
  try {
    return await find();
  } catch (error) {
    return { check, ok: false, detail: errorText(error) };
  }
}

function lineOf({ ok, check, detail, advice }: Finding): string {
  return `${ok ? "ok  " : "FAIL"}  ${check}: ${plain(detail)}${advice === undefined ? "" : `\n      ${advice}`}`;
}

function checkNode(): Finding {
  const ok = Number.parseInt(process.versions.node, 10) >= NODE;
  const advice = ok ? {} : { advice: `Install Node ${NODE} or later.` };
  return { check: "Node", ok, detail: `${process.version} on ${process.platform}-${process.arch}`, ...advice };
}

const NO_HELPER: Partial<Record<FileKind, string>> = {
  absent: "does not exist",
  folder: "is a directory",
  other: "is not a program",
};

async function checkPackage(): Promise<Finding> {
  try {
    const { executablePath, origin } = await findHelper();
    const found = `${executablePath}, from ${origin}`;
    // A name without a folder was not found in PATH, or only the system can find it.
    const wrong = /[\\/]/.test(executablePath) ? NO_HELPER[kindOf(executablePath)] : undefined;
    if (wrong === undefined) return { check: "helper", ok: true, detail: found };
    return { check: "helper", ok: false, detail: `${found}, ${wrong}`, advice: `Correct ${origin}, or unset it.` };
  } catch (error) {
    const advice = "Install fm-proxy again, with optional dependencies (npm install --include=optional fm-proxy).";
    return { check: "helper", ok: false, detail: errorText(error), advice };
  }
}

async function checkStart(client: Client): Promise<Finding> {
  const begun = performance.now();
  try {
    const { version } = await client.health.ping();
    const detail = `version ${version}, protocol ${PROTOCOL_VERSION}, ${Math.round(performance.now() - begun)} ms`;
    return { check: "start", ok: true, detail };
  } catch (error) {
    return { check: "start", ok: false, detail: errorText(error) };
  }
}

async function checkMachine(client: Client): Promise<Finding> {
  const report = await client.compatibility.check();
  const { compatible, reason_code, detail, engines = [] } = report;
  if (compatible) {
    const model = (await defaultModel(client)) ?? "there is one";
    const advice = (await whyNotChosen()) ?? betterThan(model);
    const detail = [model, ...engines.map(lineOfEngine)].join("; ");
    return { check: "model", ok: true, detail, ...(advice === undefined ? {} : { advice }) };
  }
  const advice = await adviceFor(report);
  return { check: "model", ok: false, detail: `${reason_code}: ${detail}`, ...(advice === undefined ? {} : { advice }) };
}

function lineOfEngine({ name, available, reason_code, detail }: EngineReport): string {
  return `${name}: ${available ? "available" : `${reason_code}: ${detail}`}`;
}

async function defaultModel(client: Client): Promise<string | undefined> {
  const { models } = await client.capabilities.get();
  return (models as { id: string; default: boolean }[]).find((model) => model.default)?.id;
}

async function checkSandbox(client: Client): Promise<Finding> {
  const { engine } = await client.capabilities.get();
  return { check: "sandbox", ok: true, detail: engine.sandbox === null ? "none" : JSON.stringify(engine.sandbox) };
}

/** A missing GPU is no fault, because the CPU computes then. */
async function checkGpu(client: Client): Promise<Finding> {
  const { gpu } = (await client.capabilities.get()).engine;
  const why = gpu?.detail ?? "the package of docs/gpu.md is not installed, or it is switched off";
  const used = gpu?.device != null;
  return { check: "GPU", ok: true, detail: used ? `${gpu.device}, ${gpu.layers} of ${gpu.total_layers} layers` : `none: ${why}` };
}

async function checkAnswer(client: Client): Promise<Finding> {
  const begun = performance.now();
  try {
    const { usage } = await client.responses.create({ input: "Hello", max_output_tokens: 8, store: false });
    const detail = `${usage?.output_tokens ?? 0} tokens, ${Math.round(performance.now() - begun)} ms with the model's load`;
    return { check: "answer", ok: true, detail };
  } catch (error) {
    return { check: "answer", ok: false, detail: errorText(error) };
  }
}

async function checkModels(): Promise<Finding> {
  const models = await findModels();
  const own = models.filter(({ source }) => source === "fm-proxy").length;
  const detail = `${own} in ${modelsFolder()}, ${models.length - own} of other programs (npx fm-proxy models list)`;
  return { check: "models", ok: true, detail };
}
