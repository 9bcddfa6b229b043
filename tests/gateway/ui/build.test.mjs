// The built page: its size, and that it loads nothing from elsewhere.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { UI } from "./stand-in.mjs";
import { ROOT } from "./units.mjs";

const files = readdirSync(UI, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
const texts = new Map(files.map((each) => [each.name, readFileSync(join(each.parentPath ?? each.path, each.name))]));

test("150 KB at most, gzipped", () => {
  const sizes = [...texts].map(([name, bytes]) => [name, gzipSync(bytes, { level: 9 }).length]);
  const all = sizes.reduce((sum, [, size]) => sum + size, 0);
  console.log(`${all} bytes: ${sizes.map(([name, size]) => `${name} ${size}`).join(", ")}`);
  assert.ok(all > 30_000 && all <= 150_000, `${all} bytes`);
});

test("names and kinds that the gateway serves", () => {
  for (const name of texts.keys()) assert.match(name, /^[\w-][\w.-]*\.(html|js|css|svg|txt)$/);
});

test("the licences of what it is made of", () => {
  const licences = String(texts.get("licenses.txt"));
  for (const name of ["dompurify", "highlight.js", "lit", "lit-html", "marked"]) {
    assert.match(licences, new RegExp(`^## ${name}`, "m"));
  }
});

test("no address of elsewhere in the page, nothing inline", () => {
  const html = String(texts.get("index.html"));
  assert.doesNotMatch(html, /https?:|<style|style=|\son\w+=|<script>[^<]/);
  const css = [...texts]
    .filter(([name]) => name.endsWith(".css"))
    .map(([, bytes]) => String(bytes))
    .join("");
  assert.doesNotMatch(css, /url\(|@import/);
  const js = [...texts]
    .filter(([name]) => name.endsWith(".js"))
    .map(([, bytes]) => String(bytes))
    .join("");
  assert.doesNotMatch(js, /\beval\(|new Function\(|importScripts/);
});

test("PROTOCOL.md lists the methods of the stand-in and the events of the page", () => {
  const document = readFileSync(join(ROOT, "gateway", "PROTOCOL.md"), "utf8");
  const listed = (title) => {
    const part = document.split(`## ${title}\n`)[1].split("\n## ")[0];
    return [...part.matchAll(/^\| `([a-z]+\.[a-z_]+)`/gm)].map(([, name]) => name).sort();
  };
  const standIn = readFileSync(join(ROOT, "tests", "gateway", "ui", "stand-in.mjs"), "utf8");
  const methods = [
    ...standIn
      .split("const PARAMS = {")[1]
      .split("};")[0]
      .matchAll(/"([a-z]+\.[a-z]+)":/g),
  ].map(([, name]) => name);
  assert.deepEqual(listed("Methods"), methods.sort());
  const types = readFileSync(join(ROOT, "gateway", "ui", "src", "protocol.ts"), "utf8");
  const events = [
    ...types
      .split("export interface Events {")[1]
      .split("\n}")[0]
      .matchAll(/^ {2}"([a-z.]+_?[a-z]*)":/gm),
  ].map(([, name]) => name);
  assert.deepEqual(listed("Events"), events.sort());
});
