/*
 * The parameters that go from a host's request through the front to an engine: one row each, for both sides of the two
 * protocols. Other parameters (seed, stop, logit_bias, logprobs, format, tools) have their own code.
 *
 * A new parameter of sampling is a row here, its effect in helper/engine/llama/sampler.c, and a line in each schema and
 * document that lists them. The other code uses the row: the check of requests, the list of ignored parameters,
 * writing, reading and admitting a job, and requests to the servers that get a job (ENGINE.md, Handing on).
 */
#ifndef FM_PROTOCOL_PARAMS_H
#define FM_PROTOCOL_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;

/*
 * Parameters of sampling that are one number: ROW(ID, name, KIND, least, most, neutral). KIND is NUMBER, ABOVE (a
 * number that is greater than `least`), INT or BOOL (1 is true). `neutral` is the value that changes nothing. A job
 * that does not name the parameter has this value. If each value within the bounds may change something, because
 * engines have defaults, `neutral` is outside of the bounds. An INT below `neutral` means the same as `neutral`.
 */
#define FM_OPENAI_PARAMS(ROW)                                                                                          \
    ROW(TEMPERATURE, "temperature", NUMBER, 0, 2, 1)                                                                   \
    ROW(TOP_P, "top_p", NUMBER, 0, 1, 1)                                                                               \
    ROW(PRESENCE_PENALTY, "presence_penalty", NUMBER, -2, 2, 0)                                                        \
    ROW(FREQUENCY_PENALTY, "frequency_penalty", NUMBER, -2, 2, 0)

#define FM_REPEAT_PENALTY_MAX 10

/* The parameters that OpenAI's API does not have. An engine may lack them. */
#define FM_EXTRA_PARAMS(ROW)                                                                                           \
    ROW(TOP_K, "top_k", INT, -1, INT32_MAX, 0)                                                                         \
    ROW(MIN_P, "min_p", NUMBER, 0, 1, -1)                                                                              \
    ROW(REPEAT_PENALTY, "repeat_penalty", ABOVE, 0, FM_REPEAT_PENALTY_MAX, 1)                                          \
    ROW(IGNORE_EOS, "ignore_eos", BOOL, 0, 1, 0)

/*
 * OpenAI's parameters that are strings and that no model sees: ROW(ID, name). If a job is handed on to a server
 * (ENGINE.md, Handing on), the server may use them.
 */
#define FM_PASSED_PARAMS(ROW)                                                                                          \
    ROW(VERBOSITY, "verbosity")                                                                                        \
    ROW(REASONING_SUMMARY, "reasoning_summary")                                                                        \
    ROW(SERVICE_TIER, "service_tier")                                                                                  \
    ROW(CACHE_KEY, "prompt_cache_key")                                                                                 \
    ROW(CACHE_RETENTION, "prompt_cache_retention")                                                                     \
    ROW(SAFETY_IDENTIFIER, "safety_identifier")                                                                        \
    ROW(USER, "user")

#define FM_PARAM_ID(id, name, kind, least, most, neutral) FM_PARAM_##id,
#define FM_PASSED_ID(id, name)                            FM_PASSED_##id,

enum fm_param { FM_OPENAI_PARAMS(FM_PARAM_ID) FM_EXTRA_PARAMS(FM_PARAM_ID) FM_PARAM_COUNT };
enum fm_passed { FM_PASSED_PARAMS(FM_PASSED_ID) FM_PASSED_COUNT };

#define FM_PARAM_FIRST_EXTRA FM_PARAM_TOP_K
#define FM_PARAM_BIT(id)     (1u << FM_PARAM_##id) /* in a set of parameters */

enum fm_param_kind { FM_PARAM_NUMBER, FM_PARAM_ABOVE, FM_PARAM_INT, FM_PARAM_BOOL };

struct fm_param_row {
    const char *name;
    enum fm_param_kind kind;
    double least;
    double most;
    double neutral;
};

extern const struct fm_param_row fm_params[FM_PARAM_COUNT];
extern const char *const fm_passed_names[FM_PASSED_COUNT];

/*
 * The extra parameters: an engine has one only if its reply to engine.initialize names it (ENGINE.md, Extra
 * parameters). Those of FM_EXTRA_PARAMS come first, then all of FM_PASSED_PARAMS.
 */
#define FM_EXTRA_COUNT (FM_PARAM_COUNT - FM_PARAM_FIRST_EXTRA + FM_PASSED_COUNT)
extern const char *const fm_extra_names[FM_EXTRA_COUNT];

/* The functions are pure. */

/* The parameter of sampling with this name; -1: no parameter has it. */
int fm_param_find(const char *name);

/* Whether the parameter with this name is an extra one, which OpenAI's API does not have. */
bool fm_param_is_extra(const char *name);

/* Reads a value of `param` into `*number`. False: the value is not valid, and `*number` does not count. */
bool fm_param_read(enum fm_param param, struct json_object *value, double *number);

/* Whether this value of `param` has an effect. An engine without the parameter can ignore any other value. */
bool fm_param_asks(enum fm_param param, double value);

/*
 * Writes the rule for values of `param`, such as "a number from 0 to 1", into `text`, of `size` bytes: 64 are enough.
 */
void fm_param_expect(enum fm_param param, char *text, size_t size);

#endif
