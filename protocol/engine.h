/*
 * The words and the limits of the engine protocol (ENGINE.md), for both of its sides: the front, and the kit around
 * each engine. Parameters of a job have their own file, params.h.
 */
#ifndef FM_PROTOCOL_ENGINE_H
#define FM_PROTOCOL_ENGINE_H

/* ---- limits; engine.schema.json has them too ---- */

#define FM_DESCRIPTION_MAX   65536  /* bytes of an engine's description */
#define FM_SLOTS_MAX         64     /* jobs that an engine may have at once */
#define FM_LISTED_MAX        256    /* models that an engine may list */
#define FM_LISTED_ID_MAX     255    /* bytes of the id of a listed model */
#define FM_TOOLS_MAX         128u   /* tools of a job; OpenAI's limit */
#define FM_TOOL_NAME_MAX     64u    /* bytes of a tool's name; OpenAI's limit */
#define FM_CALLS_MAX         128u   /* calls of an answer */
#define FM_STATES_MAX        16     /* texts of job.state of an answer */
#define FM_STATE_BYTES_MAX   262144 /* bytes of all states together */
#define FM_STOPS_MAX         4u     /* stop strings of a job; OpenAI's limit */
#define FM_INPUTS_MAX        2048u  /* texts to embed; OpenAI's limit */
#define FM_QUESTIONS_MAX     400u   /* to decide; OpenAI's limit */
#define FM_QUESTION_CHOICES_MAX       255u   /* answers of a question; OpenAI's limit */
#define FM_LOGIT_BIASES_MAX  1024   /* of a job */
#define FM_TOP_LOGPROBS_MAX  20u    /* alternatives of a token; OpenAI's limit */
#define FM_LOGPROB_BYTES_MAX 2048u  /* bytes of a token in its entry; a longer token is cut */

/* ---- calls, from the front ---- */

#define FM_ENGINE_INITIALIZE "engine.initialize"
#define FM_ENGINE_AVAILABLE  "engine.available"
#define FM_ENGINE_LOAD       "engine.load"
#define FM_ENGINE_SHUTDOWN   "engine.shutdown"
#define FM_JOB_START         "job.start"
#define FM_JOB_ABORT         "job.abort"

/* ---- events, from the engine ---- */

#define FM_ENGINE_LOAD_PROGRESS  "engine.load_progress"
#define FM_ENGINE_SAVED          "engine.saved"
#define FM_ENGINE_SAVED_UNUSABLE "engine.saved_unusable"
#define FM_JOB_ACCEPTED          "job.accepted"
#define FM_JOB_PROGRESS          "job.progress"
#define FM_JOB_DELTA             "job.delta"
#define FM_JOB_REASONING         "job.reasoning"
#define FM_JOB_REFUSAL           "job.refusal"
#define FM_JOB_TOOL_CALL         "job.tool_call"
#define FM_JOB_TOOL_DELTA        "job.tool_delta"
#define FM_JOB_STATE             "job.state"
#define FM_JOB_EMBEDDING         "job.embedding"
#define FM_JOB_DECISION          "job.decision"
#define FM_JOB_RESTARTED         "job.restarted"
#define FM_JOB_FINISHED          "job.finished"

/* ---- features: what an engine can do, as its description says ---- */

/* ROW(ID, name). Those from GRAMMARS on are only reported to hosts: the front sends such jobs to any engine. */
#define FM_FEATURES(ROW)                                                                                               \
    ROW(STRUCTURED_OUTPUT, "structured_output")                                                                        \
    ROW(TOOLS, "tools")                                                                                                \
    ROW(EMBEDDINGS, "embeddings")                                                                                      \
    ROW(COMPLETIONS, "completions")                                                                                    \
    ROW(IMAGES, "images")                                                                                              \
    ROW(INPUT_TOKENS, "input_tokens")                                                                                  \
    ROW(TRUNCATION, "truncation")                                                                                      \
    ROW(SAVED_STATE, "saved_state")                                                                                    \
    ROW(AVAILABILITY, "availability")                                                                                  \
    ROW(SESSION, "session")                                                                                            \
    ROW(RESTARTS, "restarts")                                                                                          \
    ROW(GRAMMARS, "grammars")                                                                                          \
    ROW(SEEDS, "seeds")                                                                                                \
    ROW(STOPS, "stops")                                                                                                \
    ROW(PENALTIES, "penalties")                                                                                        \
    ROW(LOGIT_BIAS, "logit_bias")                                                                                      \
    ROW(LOGPROBS, "logprobs")                                                                                          \
    ROW(PREFILL, "prefill")                                                                                            \
    ROW(DECISIONS, "decisions")

#define FM_FEATURE_INDEX(id, name) FM_FEATURE_INDEX_##id,
#define FM_FEATURE_BIT(id, name)   FM_FEATURE_##id = 1 << FM_FEATURE_INDEX_##id,

enum { FM_FEATURES(FM_FEATURE_INDEX) FM_FEATURE_COUNT };
enum fm_feature { FM_FEATURES(FM_FEATURE_BIT) }; /* bits, in the order of the names */

extern const char *const fm_feature_names[FM_FEATURE_COUNT];

/* ---- how much the model is to think before it answers: `reasoning.effort` ---- */

enum fm_effort {
    FM_EFFORT_DEFAULT, /* as the model does by itself */
    FM_EFFORT_NONE,    /* not at all */
    FM_EFFORT_MINIMAL,
    FM_EFFORT_LOW,
    FM_EFFORT_MEDIUM,
    FM_EFFORT_HIGH,
    FM_EFFORT_XHIGH,
    FM_EFFORT_MAX,
};

/* The names from FM_EFFORT_NONE on; NULL ends the list. */
extern const char *const fm_effort_words[];

#endif
