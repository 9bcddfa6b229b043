// An answer as it comes, on standard output.
import type { Client, ResponseCreateParams } from "../index.js";
import { errorText, fail, ProgressLine, say, sayText } from "./output.js";

/** Exit status of a program that was ended by SIGINT, as shells tell it. */
const INTERRUPTED = 130;

/** Prints an answer while it arrives. Before that, a terminal shows how long the wait is. Ctrl-C ends the answer. */
export async function answer(client: Client, body: ResponseCreateParams): Promise<{ status: number; id?: string }> {
  const stop = new AbortController();
  const interrupt = (): void => stop.abort();
  process.once("SIGINT", interrupt);
  const wait = new Wait();
  let id: string | undefined;
  let last = "";
  try {
    for await (const event of client.responses.stream(body, { signal: stop.signal })) {
      if (event.type === "response.output_text.delta") {
        wait.end();
        sayText((last = event.delta));
      }
      if (event.type === "response.completed" || event.type === "response.incomplete") id = event.response.id;
    }
    return { status: 0, ...(id === undefined ? {} : { id }) };
  } catch (error) {
    wait.end();
    if (stop.signal.aborted) return { status: INTERRUPTED };
    if (last !== "") say("");
    last = "";
    fail(errorText(error));
    return { status: 1 };
  } finally {
    wait.end();
    if (last !== "" && !last.endsWith("\n")) say("");
    process.off("SIGINT", interrupt);
  }
}

/** A line on a terminal while the model is loaded, or reads a long prompt. */
class Wait {
  readonly #line = new ProgressLine();
  readonly #since = performance.now();
  readonly #timer = setInterval(() => {
    this.#line.update(`waiting for the model, ${Math.round((performance.now() - this.#since) / 1000)} s`);
  }, 1000);

  end(): void {
    clearInterval(this.#timer);
    this.#line.end();
  }
}
