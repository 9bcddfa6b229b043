// What chat completions and the older completions have in common: an answer whole, or chunk by chunk.
import { pick } from "./stream.js";
import { toFmError } from "./thrown.js";
import type { FmErrorFields } from "./errors.js";
import type { JsonObject, Operation, Transport } from "./types.js";

/** Chunks of a stream, put together. */
export interface Chunks<C> {
  /** Takes the next chunk. */
  add(chunk: C): void;
  /** The completion; null: there was no chunk. If the stream has not `ended`, nobody has counted the tokens. */
  whole(ended: boolean): NonNullable<FmErrorFields["completion"]> | null;
}

type Method = "chat.completions.create" | "completions.create";

/** One completion, whole. */
export function createWhole<T>(transport: Transport, method: Method, body: JsonObject): Operation<T> {
  return completionOf(transport.call(method, body));
}

/**
 * One completion, chunk by chunk. Chunks always come before the result settles. If the result is an error, it has the completion
 * that was put together from the chunks.
 */
export function streamChunks<C, T>(
  transport: Transport,
  method: Method,
  body: JsonObject,
  chunks: Chunks<C>,
  onChunk: (chunk: C) => void,
): Operation<T> {
  const onNotification = (params: JsonObject): void => {
    const chunk = params["chunk"] as C;
    chunks.add(chunk);
    onChunk(chunk);
  };
  const operation = completionOf<T>(transport.call(method, body, { onNotification }));
  const result = operation.result.catch((reason: unknown) => {
    const error = toFmError(reason);
    const completion = chunks.whole(false);
    throw error.completion !== undefined || completion === null ? error : error.withPartial({ completion });
  });
  return { result, cancel: operation.cancel };
}

function completionOf<T>(operation: Operation): Operation<T> {
  return pick(operation, (answer) => answer["completion"] as T);
}
