// Beginnings of GGUF files: a header with key-value pairs, and no tensors.
const [UINT32, STRING, ARRAY] = [4, 8, 9];
const u32 = (value) => Buffer.from(Uint32Array.of(value).buffer);
const u64 = (value) => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
const text = (value) => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);

function valueOf(value) {
  if (Array.isArray(value)) {
    const [type, write] = typeof value[0] === "number" ? [UINT32, u32] : [STRING, text];
    return [u32(ARRAY), u32(type), u64(value.length), ...value.map(write)];
  }
  return typeof value === "string" ? [u32(STRING), text(value)] : [u32(UINT32), u32(value)];
}

/** A header; a value is a text, a 32-bit number, or an array of either. */
export function ggufHeader(pairs) {
  const written = Object.entries(pairs).flatMap(([key, value]) => [text(key), ...valueOf(value)]);
  return Buffer.concat([Buffer.from("GGUF"), u32(3), u64(0), u64(Object.keys(pairs).length), ...written]);
}
