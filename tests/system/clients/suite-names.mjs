// Maps the names in the conformance suite to ours: the suite expects certain tools, a prompt and a resource. A scenario is
// about the protocol's rules for a tool that fails, or asks; the tool's name does not matter.
const CLOSES = { name: "close_tab", arguments: { tab_indices: [1, 2] } }; // fm-system asks the user before it closes two tabs
const LISTS = { name: "list_apps", arguments: {} };

export const TOOLS = {
  test_simple_text: LISTS,
  test_logging_tool: LISTS,
  test_error_handling: { name: "focus_app", arguments: { app_name: "nobody" } },
  test_tool_with_progress: { name: "run_commands", arguments: { commands: Array(3).fill({ type: "list_apps" }) } },
  test_streaming_elicitation: CLOSES,
  test_input_required_result_elicitation: CLOSES,
  test_input_required_result_request_state: CLOSES,
  test_input_required_result_tampered_state: CLOSES,
};
export const PROMPTS = { test_simple_prompt: "act", test_prompt_with_arguments: "act" };
export const RESOURCES = { "test://static-text": "fm-system://context/monitors" };
const QUESTION = ["confirm", "user_name"]; // the key of a question in fm-system, and in the suite

const own = (table, name) => (Object.hasOwn(table, name) ? table[name] : undefined);
const swap = (object, from, to) =>
  object && Object.hasOwn(object, from) ? { ...object, [from]: undefined, [to]: object[from] } : object;

function request(message) {
  const { method, params } = message;
  const tool = method === "tools/call" && own(TOOLS, params.name);
  if (tool) {
    const { inputResponses } = params;
    return { ...message, params: { ...params, ...tool, inputResponses: swap(inputResponses, ...[...QUESTION].reverse()) } };
  }
  const prompt = method === "prompts/get" && own(PROMPTS, params.name);
  if (prompt) {
    const words = Object.values(params.arguments ?? { words: "close all" }).join(" and ");
    return { ...message, params: { ...params, name: prompt, arguments: { words } } };
  }
  const uri = method === "resources/read" && own(RESOURCES, params.uri);
  return uri ? { ...message, params: { ...params, uri } } : message;
}

function answer({ params }, told) {
  if (!told.result?.inputRequests || !own(TOOLS, params.name)) return told;
  return { ...told, result: { ...told.result, inputRequests: swap(told.result.inputRequests, ...QUESTION) } };
}

export const rename = { request, answer };
