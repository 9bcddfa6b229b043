/* bridge.h in C++: llama.cpp's chat templates and tokenizer, with each exception turned into an error. */
extern "C" {
#include "base/utf8.h"
#include "engine/llama/bridge.h"
}

#include "chat.h"
#include "fit.h"
#include "log.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

struct fm_templates {
    common_chat_templates_ptr parsed;
    bool has_tools; /* it reads `tools` */
};

/*
 * What an exception says, as one short line, without memory of its own. A template's has several lines: where it was,
 * its source there, an arrow below that, and last "Error: " and the reason.
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

extern "C" fm_code fm_templates_load(const llama_model *model, const char *source, fm_templates **templates,
                                     bool *replaced, fm_error *error) {
    *templates = nullptr;
    *replaced = false;
    return guarded(error, FM_UNAVAILABLE, "the chat template can't be used", [&]() {
        common_log_set_verbosity_thold(-1); /* its lines hold prompts */
        auto result = std::make_unique<fm_templates>();
        try {
            result->parsed = common_chat_templates_init(model, source ? source : "");
            *replaced = !source && !common_chat_templates_was_explicit(result->parsed.get());
        } catch (const std::exception &) {
            if (source) {
                throw;
            }
            result->parsed = common_chat_templates_init(model, "chatml");
            *replaced = true;
        }
        result->has_tools = common_chat_templates_get_caps(result->parsed.get())["supports_tools"];
        *templates = result.release();
        return FM_OK;
    });
}

extern "C" void fm_templates_free(fm_templates *templates) {
    delete templates;
}

static common_chat_msg message_of(const fm_chat_message &from) {
    common_chat_msg message;
    message.role = from.role;
    message.content.assign(from.content, from.content_len);
    if (from.reasoning) {
        message.reasoning_content.assign(from.reasoning, from.reasoning_len);
    }
    for (size_t i = 0; i < from.call_count; i++) {
        const fm_chat_call &call = from.calls[i];
        message.tool_calls.push_back({call.name, std::string(call.arguments, call.arguments_len), call.id});
    }
    if (from.answered_id) {
        message.tool_call_id = from.answered_id;
        message.tool_name = from.answered_name;
    }
    return message;
}

/* Each family of models has a name of its own for it; a template does not read those that it does not know. */
static void set_thinking(const fm_chat &chat, common_chat_templates_inputs &inputs) {
    std::map<std::string, std::string> &said = inputs.chat_template_kwargs; /* as JSON */
    bool on = chat.thinking != FM_CHAT_THINKING_OFF;
    inputs.enable_thinking = on;
    if (chat.thinking != FM_CHAT_THINKING_DEFAULT) {
        said["thinking"] = on ? "true" : "false";
        said["thinking_mode"] = on ? "\"enabled\"" : "\"disabled\"";
        said["thinking_option"] = on ? "\"on\"" : "\"off\"";
    }
    if (!on) {
        said["thinking_budget"] = "0";
    }
    if (chat.effort) {
        said["reasoning_effort"] = std::string("\"") + chat.effort + "\"";
    }
}

/* Some templates have another name for them than `tools`, and want JSON text. */
static void set_functions(common_chat_templates_inputs &inputs) {
    if (!inputs.tools.empty()) {
        const std::string text = common_chat_tools_to_json_oaicompat(inputs.tools).dump(2);
        inputs.chat_template_kwargs["functions"] = common_json::make(text).dump();
    }
}

static common_chat_templates_inputs inputs_of(const fm_templates &templates, const fm_chat &chat) {
    common_chat_templates_inputs inputs;
    inputs.force_pure_content = true; /* the answer is taken apart elsewhere: no parser is made */
    inputs.add_generation_prompt = !chat.closed;
    set_thinking(chat, inputs);
    inputs.parallel_tool_calls = true; /* as far as the template has an opinion */
    for (size_t i = 0; i < chat.count; i++) {
        inputs.messages.push_back(message_of(chat.messages[i]));
    }
    for (size_t i = 0; i < chat.tool_count; i++) {
        const fm_chat_tool &tool = chat.tools[i];
        inputs.tools.push_back(
            {tool.name, tool.description ? tool.description : "", std::string(tool.parameters, tool.parameters_len)});
    }
    if (!templates.has_tools) {
        set_functions(inputs);
    }
    return inputs;
}

extern "C" fm_code fm_templates_apply(const fm_templates *templates, const fm_chat *chat, char **prompt, size_t *len,
                                      fm_error *error) {
    *prompt = nullptr;
    *len = 0;
    const char *what = "the model's chat template (--chat-template gives another) refuses these messages";
    return guarded(error, FM_INVALID_REQUEST, what, [&]() {
        auto params = common_chat_templates_apply(templates->parsed.get(), inputs_of(*templates, *chat));
        auto copy = static_cast<char *>(std::malloc(params.prompt.size() + 1));
        if (!copy) {
            return fm_fail_no_memory(error);
        }
        std::memcpy(copy, params.prompt.c_str(), params.prompt.size() + 1);
        *prompt = copy;
        *len = params.prompt.size();
        return FM_OK;
    });
}

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

#define MARGIN ((size_t)1 << 30) /* bytes of a GPU that others may need, as llama.cpp has it */

extern "C" fm_code fm_fit_layers(const char *path, const llama_context_params *context, llama_model_params *params,
                                 fm_error *error) {
    static std::vector<float> split; /* llama.cpp reads them when the model is loaded */
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
