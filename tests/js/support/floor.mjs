// A system with only the oldest C and C++ libraries that the packages promise.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/**
 * Gcc 11's C++ library, which RHEL 9 also has. Debian 12 only has it as a static archive, and the versions of its symbols in
 * another package.
 */
const CXX = {
  version: "11.3.0-12",
  packages: {
    "libstdc++-11-dev": "9db1a0a4f4db845191380e25ce7d8669ee4785e24e9550c2fcd79d010ea2d513",
    "libstdc++-11-pic": "8100eebebd0c96f49b1f777511ecc014db202500f6a9e0daeefe747d687bc067",
  },
};
/** Glibc's libraries that Node and our programs load. */
const GLIBC = ["ld-linux-x86-64.so.2", "libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"];

/**
 * Makes such a system in the folder `root`.
 * @param glibc    a folder with glibc's libraries
 * @param gcc      libgcc_s.so.1 of a system that is not newer than these
 * @param scratch  an empty folder, for what is downloaded
 */
export async function makeFloor(root, { glibc, gcc, scratch }) {
  const missing = GLIBC.filter((name) => !existsSync(join(glibc, name)));
  if (missing.length > 0) throw new Error(`${glibc} has no ${missing.join(" and no ")}. Name a folder with all of a glibc`);
  const folder = join(root, "lib64");
  for (const name of ["dev", "lib", "lib64", "proc", "root", "tmp"]) mkdirSync(join(root, name), { recursive: true });
  symlinkSync("../lib64", join(root, "lib", "x86_64-linux-gnu")); // Debian's loader looks here
  for (const name of GLIBC) copyFileSync(join(glibc, name), join(folder, name));
  copyFileSync(gcc, join(folder, "libgcc_s.so.1"));
  await linkCxxLibrary(folder, scratch);
}

/** Makes a shared library from Debian's archive again, with the C library in `folder`. */
async function linkCxxLibrary(folder, scratch) {
  for (const [name, sha256] of Object.entries(CXX.packages)) await unpack(name, sha256, scratch);
  const gcc = join(scratch, "usr", "lib", "gcc", "x86_64-linux-gnu", "11");
  const atexit = (await run("gcc", ["-print-file-name=libc_nonshared.a"])).stdout.trim();
  const libraries = ["libm.so.6", "libc.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"].map((name) => join(folder, name));
  const options = ["-shared", "-nodefaultlibs", "-Wl,-z,defs", "-Wl,-soname,libstdc++.so.6"];
  options.push(`-Wl,--version-script=${join(gcc, "libstdc++_pic.map")}`, "-o", join(folder, "libstdc++.so.6"));
  await run("gcc", [...options, "-Wl,--whole-archive", join(gcc, "libstdc++.a"), "-Wl,--no-whole-archive", ...libraries, atexit]);
}

async function unpack(name, sha256, scratch) {
  await run("apt-get", ["download", "-q", "-o", "APT::Sandbox::User=root", `${name}=${CXX.version}`], { cwd: scratch });
  const file = join(scratch, `${name}_${CXX.version}_amd64.deb`);
  const found = createHash("sha256").update(readFileSync(file)).digest("hex");
  if (found !== sha256) throw new Error(`${file} has the SHA-256 ${found}, not ${sha256}`);
  await run("dpkg-deb", ["-x", file, scratch]);
}
