// Made by scripts/types.mjs from protocol/host.schema.json: change that, then run `npm run types`.
// What a host can run into (see "All limits" in PROTOCOL.md).

/** Engines in `--engine`. */
export const ordered_engines = 8;
/** The largest `retry_after_ms`. */
export const longest_retry_ms = 86_400_000;
/** The longest body of a frame that is served, in bytes. */
export const frame_bytes = 10_000_000;
/** The longest body that is read, discarded and answered by an error. A longer one is fatal. */
export const skipped_frame_bytes = 40_000_000;
/** The longest header of a frame in bytes, the empty line included. */
export const header_bytes = 8192;
/** The most lines of a header. */
export const header_lines = 32;
/** The deepest nesting of arrays and objects in a body, the message itself included. */
export const json_depth = 64;
/** The most JSON values in a body: strings, numbers, true, false, null, arrays and objects; keys do not count. */
export const json_values = 65_536;
/** The longest string that can be a JSON-RPC id, in bytes. */
export const id_bytes = 256;
/** The largest integer that can be a JSON-RPC id, and with a minus sign the smallest. */
export const id_integer = 9_007_199_254_740_991;
/** Requests in flight at once. */
export const requests = 64;
/** Calls that wait for the store at once. */
export const store_calls = 64;
/** Calls that wait for the same cancel. */
export const cancel_calls = 4;
/** Default of `fm.queue_timeout_ms`. */
export const queue_timeout_ms = 120_000;
/** Default of `fm.first_token_timeout_ms`. */
export const first_token_timeout_ms = 120_000;
/** Default of `fm.no_progress_timeout_ms`. */
export const no_progress_timeout_ms = 60_000;
/** Default of `fm.timeout_ms`. */
export const timeout_ms = 600_000;
/** The longest time limit that a request can set. */
export const longest_timeout_ms = 86_400_000;
/** The time from a request to stop until an engine that has not stopped is ended. */
export const grace_ms = 750;
/** A host that reads no byte for this time counts as gone. */
export const stall_ms = 60_000;
/** How long `capabilities.get` reports a load that failed. */
export const failed_load_ms = 60_000;
/** Replies that may wait for a host that does not read. With more of them the host counts as gone. */
export const reply_queue_bytes = 8_388_608;
/** Streams and results of streams are queued only while less than this is queued. */
export const stream_queue_bytes = 65_536;
/** Text that may wait for a host that does not read. With more of it generation pauses. */
export const backlog_bytes = 2_097_152;
/** Reasoning, text and arguments of an answer together, as JSON. */
export const output_bytes = 4_194_304;
/** Log probabilities of an answer, as JSON. */
export const logprobs_bytes = 4_194_304;
/** The longest string that can be `input`, in characters. */
export const input_characters = 10_485_760;
/** The longest id of an item, in characters. */
export const item_id_characters = 64;
/** A conversation that continues stored responses, as JSON. */
export const conversation_bytes = 16_777_216;
/** Items of such a conversation. */
export const conversation_items = 16_384;
/** The largest `limit` of `responses.input_items`. */
export const page_items = 100;
/** Default of that `limit`. */
export const page_items_default = 20;
/** A name in `--aliases`, or its model, in bytes. */
export const alias_bytes = 255;
/** The largest `--max-engines`. */
export const max_engines = 8;
/** Default of that option. */
export const max_engines_default = 3;
/** Default of `--idle-unload-ms`: the time without a request after which an engine is ended, in ms. */
export const idle_unload_ms = 600_000;
/** Default of `--store-bytes`. */
export const store_bytes = 67_108_864;
/** The bytes that a stored response counts in addition to its JSON. */
export const store_row_bytes = 512;
/** How long the first call waits for a store that another process has locked. */
export const store_lock_ms = 200;
/** Tools of a request. */
export const tools = 128;
/** Calls of tools in an answer. */
export const calls = 128;
/** The longest name of a tool or of a schema, in characters. */
export const name_characters = 64;
/** The deepest nesting of a JSON schema. */
export const schema_levels = 50;
/** JSON values of a schema, and of all schemas of a request's tools together. */
export const schema_values = 32_768;
/** The longest `definition` of a grammar, in bytes. */
export const grammar_bytes = 65_536;
/** Entries of each list of a schema report. */
export const report_entries = 200;
/** The longest entry of such a list, in bytes. */
export const report_entry_bytes = 255;
/** Paths of ignored parameters that an answer reports. */
export const ignored_paths = 64;
/** The longest such path, in bytes. */
export const ignored_path_bytes = 255;
/** Names of ignored parameters that the log reports. */
export const logged_names = 64;
/** The longest such name, in bytes. */
export const logged_name_bytes = 64;
/** Strings in `stop`. */
export const stop_strings = 4;
/** Members of `logit_bias`. */
export const logit_biases = 1024;
/** Alternatives of a token. */
export const top_logprobs = 20;
/** A lower log probability is reported as this value. */
export const logprob_floor = -9999;
/** The largest `n` of a chat completion. */
export const choices = 128;
/** Default of `max_tokens` of a legacy completion. */
export const completion_tokens = 16;
/** The largest `repeat_penalty`. */
export const repeat_penalty = 10;
/** Members of `metadata`. */
export const metadata_pairs = 16;
/** The longest key of `metadata`, in characters. */
export const metadata_key_characters = 64;
/** The longest value of `metadata`, in characters. */
export const metadata_value_characters = 512;
/** The longest `safety_identifier` or `prompt_cache_key`, in characters. */
export const identifier_characters = 64;
/** Tokens of a summary that `responses.compact` makes. */
export const summary_tokens = 1024;
/** Questions of a request for decisions. */
export const questions = 400;
/** Choices or levels of a question; there are at least 2. */
export const question_choices = 255;
/** The longest choice, label or name of a question, in characters. */
export const choice_characters = 512;
/** The longest description of a choice or level, in characters. */
export const description_characters = 4096;
/** Texts of an embeddings request. */
export const embedding_inputs = 2048;
/** The longest side of an image. */
export const image_side_pixels = 16_384;
/** Pixels of an image, width by height. */
export const image_pixels = 33_554_432;
/** Deaths of an engine in a row, with one model, after which requests for that model are refused for a while. */
export const engine_deaths = 3;
/** How long these requests are refused at first; the time doubles. */
export const engine_pause_ms = 1000;
/** How long these requests are refused at most. */
export const longest_engine_pause_ms = 30_000;
/** Models whose deaths are counted. */
export const engine_death_models = 8;
