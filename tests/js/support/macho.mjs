// Programs and libraries for macOS that do nothing: they have a header and its load commands.
const ARM64 = 0x0100000c;
const SDK = (26 << 16) | (4 << 8);
/** The library that each of them loads. */
export const SYSTEM = "/usr/lib/libSystem.B.dylib";
const GOOD = { cpu: ARM64, platform: 1, floor: 14 << 16, sdk: SDK, libraries: [SYSTEM], rpaths: [], signed: true };

/** A correct program, except for these options. */
export function program(options = {}) {
  const { cpu, platform, floor, sdk, libraries, rpaths, signed } = { ...GOOD, ...options };
  const commands = [
    numbers(0x32, platform, floor, sdk, 0),
    ...libraries.map((name) => named(0xc, 24, name)),
    ...rpaths.map((path) => named(0x8000001c, 12, path)),
    ...(signed ? [numbers(0x1d, 0, 0)] : []),
  ];
  const header = Buffer.alloc(32);
  [0xfeedfacf, cpu, 0, 2, commands.length].forEach((number, index) => header.writeUInt32LE(number, index * 4));
  return Buffer.concat([header, ...commands]);
}

/** A load command: its kind, its size, and more numbers. */
function numbers(kind, ...more) {
  const all = [kind, 8 + more.length * 4, ...more];
  const bytes = Buffer.alloc(all.length * 4);
  all.forEach((number, index) => bytes.writeUInt32LE(number >>> 0, index * 4));
  return bytes;
}

/** A load command with a text at `offset`. Zeros after the text fill the last word. */
function named(kind, offset, text) {
  const bytes = Buffer.alloc(Math.ceil((offset + text.length + 1) / 8) * 8);
  [kind, bytes.length, offset].forEach((number, index) => bytes.writeUInt32LE(number, index * 4));
  bytes.write(text, offset);
  return bytes;
}
