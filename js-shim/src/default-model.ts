// The model that a user has chosen for all applications. A small file in the models folder names it.
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join, relative, resolve, sep } from "node:path";
import { diskError, readJson } from "./download.js";
import { isFile } from "./file-kind.js";

const fileOf = (folder: string): string => join(folder, "default.json");

/** The file of the chosen model. Null: no model is chosen, or its file no longer exists. */
export async function chosenModel(folder: string): Promise<string | null> {
  const path = await readChoice(folder);
  return path !== null && (await isFile(path)) ? path : null;
}

/** The path of a chosen model whose file no longer exists. Null: no model is chosen, or its file exists. */
export async function lostModel(folder: string): Promise<string | null> {
  const path = await readChoice(folder);
  return path !== null && (await isFile(path)) ? null : path;
}

async function readChoice(folder: string): Promise<string | null> {
  const model = (await readJson<{ model?: unknown }>(fileOf(folder)))?.model;
  return typeof model === "string" ? resolve(folder, model) : null;
}

/** Undoes the choice of a model file. */
export async function forgetChoice(path: string, folder: string): Promise<void> {
  if ((await chosenModel(folder)) === path) await rm(fileOf(folder), { force: true });
}

/** Chooses a model file. The file may belong to another program. */
export async function chooseModel(path: string, folder: string): Promise<void> {
  const name = relative(folder, path);
  const fresh = `${fileOf(folder)}.${process.pid}`;
  try {
    await mkdir(folder, { recursive: true });
    await writeFile(fresh, `${JSON.stringify({ model: name.includes(sep) ? path : name })}\n`);
    await rename(fresh, fileOf(folder));
  } catch (error) {
    await rm(fresh, { force: true });
    throw diskError(error, folder);
  }
}
