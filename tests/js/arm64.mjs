// Tests the package for Linux on arm64 on this machine, run by qemu-user, which translates each instruction.
// tests/js/support/foreign.mjs has the steps.
//
// usage: node tests/js/arm64.mjs       (after sh packaging/setup.sh --arm64; takes some minutes)
import { tryPackage } from "./support/foreign.mjs";

const sandbox = await tryPackage({
  platform: { os: "linux", cpu: "arm64", libc: "glibc" },
  runner: "qemu-aarch64",
  programs: ["fm-proxy", "fm-engine-llama"],
});
// qemu-user passes on only a few of the sandbox's calls.
const unseen = ["no_new_privs", "seccomp", "landlock"].filter((name) => !sandbox[name]);
if (unseen.length > 0) console.log(`NOT TESTED: ${unseen.join(", ")}: qemu-user lacks these calls. They need an arm64 machine.`);
console.log("linux-arm64 ok");
