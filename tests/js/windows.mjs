// Tests the package for Windows on x86_64 on this machine, run by wine. tests/js/support/foreign.mjs has the steps.
//
// usage: node tests/js/windows.mjs       (after sh packaging/windows.sh; takes a minute)
import { join } from "node:path";
import { root } from "./support/helper.mjs";
import { tryPackage } from "./support/foreign.mjs";

process.env.WINEPREFIX ??= join(root, "build", "windows", "wine");
process.env.WINEDEBUG ??= "-all";
await tryPackage({
  platform: { os: "win32", cpu: "x64" },
  runner: `env WINEPREFIX='${process.env.WINEPREFIX}' WINEDEBUG='${process.env.WINEDEBUG}' wine`,
  programs: ["fm-proxy.exe"], // it starts the engine
});
console.log("NOT TESTED: Windows itself. wine stands for it.");
console.log("win32-x64 ok");
