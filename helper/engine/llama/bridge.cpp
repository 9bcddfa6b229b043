/* bridge.h in C++: llama.cpp's chat templates and tokenizer, with each exception turned into an error. */
extern "C" {
#include "base/utf8.h"
#include "engine/llama/bridge.h"
}

#include "chat-auto-parser.h"
#include "chat.h"
#include "fit.h"
#include "log.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iomanip>
#include <memory>
#include <new>
#include <sstream>
#include <vector>

struct fm_templates {
    std::unique_ptr<common_chat_template> usual;
    std::unique_ptr<common_chat_template> with_tools; /* nullptr: calls use the same template */
    bool add_bos;                                     /* the tokenizer adds the BOS token */
    bool add_eos;
    bool parts; /* a message with a thought is a list of parts */
};

/*
 * What an exception says, as one short line, without memory of its own. The text of a template's exception has several
 * lines: the place, the source there, an arrow below it, and at last "Error: " and the reason.
 */
template <size_t Size> static void describe(const std::exception &e, char (&line)[Size]) noexcept {
    static const char mark[] = "\nError: ";
    const char *reason = std::strstr(e.what(), mark);
    size_t len = 0;
    for (reason = reason ? reason + sizeof mark - 1 : e.what(); *reason && len + 1 < Size; reason++) {
        unsigned char c = static_cast<unsigned char>(*reason);
        bool space = c <= ' ' || c == 0x7f;
        if (!space || (len && line[len - 1] != ' ')) {
            line[len++] = space ? ' ' : *reason;
        }
    }
    line[fm_utf8_whole_prefix(line, len)] = '\0';
}

/* Runs `body`; an exception becomes an error of `code`. */
template <typename Body> static fm_code guarded(fm_error *error, fm_code code, const char *what, Body body) {
    try {
        return body();
    } catch (const std::bad_alloc &) {
        return fm_fail_no_memory(error);
    } catch (const std::exception &e) {
        char reason[128];
        describe(e, reason);
        return fm_fail(error, code, "%s: %s", what, reason);
    } catch (...) {
        return fm_fail(error, code, "%s", what);
    }
}

/* ---- the prompt ---- */

/* The keys that templates use for a thought. No template reads two of them. */
static const char *const thought_keys[] = {"reasoning_content", "reasoning", "thinking"};

static void add_thought(const fm_chat_message &from, bool parts, common_json &message) {
    const std::string thought(from.reasoning, from.reasoning_len);
    if (!parts) {
        for (const char *key : thought_keys) {
            message[key] = thought;
        }
        return;
    }
    auto list = common_json::array();
    list.push_back({{"type", "thinking"}, {"thinking", thought}});
    if (from.content_len > 0) {
        list.push_back({{"type", "text"}, {"text", message.at("content")}});
    }
    message["content"] = list;
}

/* `objects`: the template wants calls' arguments as objects, and not as JSON text. */
static common_json message_of(const fm_chat_message &from, bool objects) {
    common_chat_msg message;
    message.role = from.role;
    message.content.assign(from.content, from.content_len);
    for (size_t i = 0; i < from.call_count; i++) {
        const fm_chat_call &call = from.calls[i];
        message.tool_calls.push_back({call.name, std::string(call.arguments, call.arguments_len), call.id});
    }
    if (from.answered_id) {
        message.tool_call_id = from.answered_id;
        message.tool_name = from.answered_name;
    }
    common_json made = message.to_json_oaicompat();
    for (size_t i = 0; objects && i < from.call_count; i++) {
        made["tool_calls"][i]["function"]["arguments"] = common_json::parse(message.tool_calls[i].arguments);
    }
    return made;
}

/* Some templates have another name than `tools` for the tools, and want JSON text. */
static void set_tools(const fm_chat &chat, bool by_name, autoparser::generation_params &params) {
    std::vector<common_chat_tool> tools;
    for (size_t i = 0; i < chat.tool_count; i++) {
        const fm_chat_tool &tool = chat.tools[i];
        tools.push_back(
            {tool.name, tool.description ? tool.description : "", std::string(tool.parameters, tool.parameters_len)});
    }
    params.tools = common_chat_tools_to_json_oaicompat(tools);
    if (!tools.empty() && !by_name) {
        params.extra_context["functions"] = params.tools.dump(2);
    }
}

/* The present date and time for templates, in llama.cpp's form. */
static void set_date(common_json &said) {
    static const char *const dates[][2] = {{"datetime", "%b %d %Y"}, {"date_string", "%d %b %Y"}};
    const std::time_t now = std::time(nullptr);
    const std::tm *local = std::localtime(&now);
    for (const auto &date : dates) {
        std::ostringstream text;
        if (local) {
            text << std::put_time(local, date[1]);
        }
        said[date[0]] = text.str();
    }
}

/* Each family of models has its own name for this setting. A template ignores the names that it does not know. */
static void set_thinking(const fm_chat &chat, common_json &said) {
    bool on = chat.thinking != FM_CHAT_THINKING_OFF;
    if (chat.thinking != FM_CHAT_THINKING_DEFAULT) {
        said["thinking"] = on;
        said["thinking_mode"] = on ? "enabled" : "disabled";
        said["thinking_option"] = on ? "on" : "off";
    }
    if (!on) {
        said["thinking_budget"] = 0;
    }
    if (chat.effort) {
        said["reasoning_effort"] = chat.effort;
    }
}

static bool has_text_and_call(const fm_chat_message &message) {
    return message.content_len > 0 && message.call_count > 0;
}

/* `beside`: a message with a text and a call may also have a thought. */
static std::string render(const fm_templates &templates, const fm_chat &chat, bool parts, bool beside) {
    const bool tools = chat.tool_count > 0 && templates.with_tools;
    const common_chat_template &chosen = tools ? *templates.with_tools : *templates.usual;
    autoparser::generation_params params;
    params.messages = common_json::array();
    for (size_t i = 0; i < chat.count; i++) {
        const fm_chat_message &from = chat.messages[i];
        common_json message = message_of(from, chosen.caps.supports_object_arguments);
        if (from.reasoning && from.reasoning_len > 0 && (beside || !has_text_and_call(from))) {
            add_thought(from, parts, message);
        }
        params.messages.push_back(message);
    }
    params.add_generation_prompt = !chat.closed;
    params.enable_thinking = chat.thinking != FM_CHAT_THINKING_OFF;
    params.add_bos = templates.add_bos;
    params.add_eos = templates.add_eos;
    params.extra_context = common_json::object();
    set_date(params.extra_context);
    set_thinking(chat, params.extra_context);
    set_tools(chat, chosen.caps.supports_tools, params);
    if (parts) {
        params.extra_context["messages"] = params.messages; /* unchanged: llama.cpp would turn such lists into texts */
    }
    return common_chat_template_direct_apply(chosen, params);
}

/* Some templates refuse a thought beside a text and a call: then the thought is left out. */
static std::string render_any(const fm_templates &templates, const fm_chat &chat) {
    try {
        return render(templates, chat, templates.parts, true);
    } catch (const std::exception &) {
        bool thinks = std::any_of(chat.messages, chat.messages + chat.count, [](const fm_chat_message &message) {
            return message.reasoning_len > 0 && has_text_and_call(message);
        });
        if (!thinks) {
            throw;
        }
        return render(templates, chat, templates.parts, false);
    }
}

extern "C" fm_code fm_templates_apply(const fm_templates *templates, const fm_chat *chat, char **prompt, size_t *len,
                                      fm_error *error) {
    *prompt = nullptr;
    *len = 0;
    const char *what = "the model's chat template (--chat-template gives another) refuses these messages";
    return guarded(error, FM_INVALID_REQUEST, what, [&]() {
        const std::string text = render_any(*templates, *chat);
        auto copy = static_cast<char *>(std::malloc(text.size() + 1));
        if (!copy) {
            return fm_fail_no_memory(error);
        }
        std::memcpy(copy, text.c_str(), text.size() + 1);
        *prompt = copy;
        *len = text.size();
        return FM_OK;
    });
}

/* ---- the templates ---- */

/* Whether the template shows a thought in a list of parts, but under none of the keys. */
static bool takes_parts(const fm_templates &templates) {
    static const char thought[] = "fm_thought";
    static const char text[] = "fm_text";
    fm_chat_message messages[2] = {};
    fm_chat chat = {};
    chat.messages = messages;
    for (const char *said : {"hi", text}) {
        messages[chat.count].content = said;
        messages[chat.count++].content_len = std::strlen(said);
    }
    messages[0].role = "user";
    messages[1].role = "assistant";
    messages[1].reasoning = thought;
    messages[1].reasoning_len = std::strlen(thought);
    auto shows = [&](bool parts) {
        const std::string made = render(templates, chat, parts, true);
        bool as_json = made.find(std::string("'") + text) != std::string::npos ||
                       made.find(std::string("\"") + text) != std::string::npos;
        return made.find(thought) != std::string::npos && made.find(text) != std::string::npos && !as_json;
    };
    try {
        return !shows(false) && shows(true);
    } catch (const std::exception &) {
        return false;
    }
}

static std::unique_ptr<common_chat_template> parse(const llama_vocab *vocab, const std::string &source) {
    auto piece = [&](llama_token token) {
        return token == LLAMA_TOKEN_NULL ? std::string() : common_token_to_piece(vocab, token, true);
    };
    return source.empty() ? nullptr
                          : std::make_unique<common_chat_template>(source, piece(llama_vocab_bos(vocab)),
                                                                   piece(llama_vocab_eos(vocab)));
}

/* llama.cpp chooses among the templates of the model. */
static common_chat_templates_ptr choose(const llama_model *model, const char *source, bool *replaced) {
    if (source) {
        (void)parse(llama_model_get_vocab(model), source); /* its exception says what is wrong; the one below does not */
    }
    try {
        auto chosen = common_chat_templates_init(model, source ? source : "");
        *replaced = !source && !common_chat_templates_was_explicit(chosen.get());
        return chosen;
    } catch (const std::exception &) {
        if (source) {
            throw;
        }
        *replaced = true;
        return common_chat_templates_init(model, "chatml");
    }
}

extern "C" fm_code fm_templates_load(const llama_model *model, const char *source, fm_templates **templates,
                                     bool *replaced, fm_error *error) {
    *templates = nullptr;
    *replaced = false;
    return guarded(error, FM_UNAVAILABLE, "the chat template can't be used", [&]() {
        common_log_set_verbosity_thold(-1); /* lines of that log hold prompts */
        const llama_vocab *vocab = llama_model_get_vocab(model);
        auto chosen = choose(model, source, replaced);
        auto result = std::make_unique<fm_templates>();
        result->usual = parse(vocab, common_chat_templates_source(chosen.get()));
        result->with_tools = parse(vocab, common_chat_templates_source(chosen.get(), "tool_use"));
        result->add_bos = llama_vocab_get_add_bos(vocab);
        result->add_eos = llama_vocab_get_add_eos(vocab);
        result->parts = takes_parts(*result);
        *templates = result.release();
        return FM_OK;
    });
}

extern "C" void fm_templates_free(fm_templates *templates) {
    delete templates;
}

/* ---- the rest ---- */

extern "C" fm_code fm_tokenize(const llama_vocab *vocab, const char *text, size_t len, bool first, bool parse_control,
                               int32_t *tokens, size_t room, size_t *count, fm_error *error) {
    *count = 0;
    return guarded(error, FM_INTERNAL, "the prompt can't be tokenized", [&]() {
        int32_t got = llama_tokenize(vocab, text, static_cast<int32_t>(len), tokens, static_cast<int32_t>(room), first,
                                     parse_control);
        if (got < 0) {
            return fm_fail(error, FM_INTERNAL, "the prompt can't be tokenized");
        }
        *count = static_cast<size_t>(got);
        return FM_OK;
    });
}

#define MARGIN ((size_t)1 << 30) /* bytes of a GPU that other programs may need; llama.cpp's default */

extern "C" fm_code fm_fit_layers(const char *path, const llama_context_params *context, llama_model_params *params,
                                 fm_error *error) {
    static std::vector<float> split; /* llama.cpp reads these while the model is loaded */
    static std::vector<llama_model_tensor_buft_override> overrides;
    return guarded(error, FM_UNAVAILABLE, "the memory of the GPU can't be measured", [&]() {
        common_log_set_verbosity_thold(-1);
        split.assign(llama_max_devices(), 0.0f);
        overrides.assign(llama_max_tensor_buft_overrides(), {nullptr, nullptr});
        std::vector<size_t> margins(llama_max_devices(), MARGIN);
        llama_context_params wanted = *context;
        auto status = common_fit_params(path, params, &wanted, split.data(), overrides.data(), margins.data(),
                                        wanted.n_ctx, nullptr, GGML_LOG_LEVEL_ERROR);
        return status == COMMON_PARAMS_FIT_STATUS_SUCCESS
                   ? FM_OK
                   : fm_fail(error, FM_UNAVAILABLE, "the model does not fit into the memory of the GPU");
    });
}

extern "C" int32_t fm_compute(llama_context *context, const llama_batch *batch, bool encode, fm_error *error) {
    int32_t status = FM_COMPUTE_THREW;
    (void)guarded(error, FM_INTERNAL, "computing failed", [&]() {
        int32_t result = encode ? llama_encode(context, *batch) : llama_decode(context, *batch);
        llama_synchronize(context);
        status = result;
        return FM_OK;
    });
    return status;
}

extern "C" int fm_math_cores(void) {
    fm_error ignored;
    int cores = 1;
    (void)guarded(&ignored, FM_INTERNAL, "cores", [&]() {
        cores = std::max<int>(1, common_cpu_get_num_math());
        return FM_OK;
    });
    return cores;
}
